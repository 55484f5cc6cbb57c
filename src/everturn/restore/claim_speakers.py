"""Who a statement says it comes from: a person, or the agent. The words must then be theirs.

"The user wants Redis" must rest on a message of a person that speaks of Redis, "the agent suggested Redis" on one of the model.
An approval ("the user agreed to Redis") may also rest on a "yes" to a message of the model.
"""

from __future__ import annotations

import re

from msgspec import Struct

from everturn.text.stance_words import AGREEMENT

_PERSON = r"(?:(?:the\s+)?(?:user|human|person|customer|client|owner|developer)(?:['’]s)?|(?:der|die|vom|des)\s+(?:Nutzer|Benutzer|Anwender)(?:s|in)?|(?:Nutzer|Benutzer|Anwender)(?:in)?|l['’]utilisat(?:eur|rice)|(?:el|la)\s+usuari[oa]|ユーザー?|用户|用戶)"  # fmt: skip
_AGENT = r"(?:(?:the\s+)?(?:agent|assistant|model|AI|bot)(?:['’]s)?|(?:der|die)\s+(?:Agent|Assistent|KI)|l['’](?:agent|assistant)|el\s+(?:agente|asistente)|エージェント|アシスタント|助手|代理)"  # fmt: skip
_SAYS = (
    r"(?:\s+(?:has|have|had|also|then|first|later|now|explicitly|initially|originally|finally|clearly|hat|a|ha|does|did|do|never|not|n['’]t|would|once|again|still|just)){0,3}"
    r"\s*(?:want|wish|ask|sa(?:id|ys?)\b|told|tell|request|decid|ch[oó]o?se|prefer|suggest|propos|recommend|insist|require|demand|forb[ia]d|prohibit|allow|permit|expect|need|approv|agree|accept|confirm|reject"
    r"|refus|state|mention|explain|report|instruct|order|specif|stipulat|plan|announc|offer|promis|pick|opt|settl|choice|decision|request|instruction|wish|idea|suggestion|proposal|preference"
    r"|will\b|wollte|möchte|sagt|bat\b|bittet|verlangt|entschied|bevorzugt|schlug|empfiehlt|empfahl|gesagt|gebeten|verbietet|verbot|erlaubt"
    r"|veut|voulait|demand|dit\b|préfèr|propos|décid|interdit|autoris|quiere|pidi|pide|dijo|dice|prefiere|propuso|sugiri|decidi|prohíb|permit|exig|は|が|要求|想|希望|说|說|决定|建议|禁止|允许)"
)
_ADVERB = r"\b(?:as|per|according to|at|on|by|following|upon|because of|due to|laut|auf|wie|selon|según|à la demande de|a petición de)\s+(?:request of\s+|the request of\s+|Wunsch\s+)?"
_BY = r"(?:(?:asked|requested|decided|chosen|suggested|proposed|wanted|demanded|approved|required|forbidden|recommended|picked|preferred|raised|mentioned) by|(?:request|wish|decision|instruction|suggestion|proposal|idea|recommendation|choice|preference) (?:of|by|from)|comes? from|came from|(?:agreed|settled|arranged|discussed|clarified) with)\s+"
_USER_REQUESTED = r"\buser[- ](?:requested|approved|chosen|mandated|required|specified)\b"
_APPROVAL = re.compile(r"\b(?:approv|agree|accept|confirm|sign(?:ed|s) off|okay(?:ed)?|consent|gave .{0,12}(?:go|ok)|zugestimmt|bestätigt|accepté|aceptó|aprobó)|承認|同意|了承", re.I)  # fmt: skip


def _pattern(who: str) -> re.Pattern[str]:
    return re.compile(
        rf"\b{who}{_SAYS}|{_ADVERB}{who}|{_BY}{who}|(?<![a-z]){who}(?:は|が|要求|想|希望|说|說|决定|建议|禁止|允许)".replace(
            r"\bユ", "ユ"
        ),
        re.I,
    )


_PATTERNS = {"person": _pattern(_PERSON), "agent": _pattern(_AGENT)}
_USER_PATTERN = re.compile(_USER_REQUESTED, re.I)
_NAMES = re.compile(rf"(?<![a-z])(?:{_PERSON}|{_AGENT})(?![a-z])", re.I)


class Attribution(Struct, frozen=True):
    """Who is said to have said it."""

    speaker: str  # person | agent
    clause: str
    approves: bool = False


def find_attributions(text: str) -> list[Attribution]:
    """Return who a statement says it comes from, clause by clause."""
    found = []
    for clause in re.split(r";\s|\.\s|[。；]", text):
        hits = [(match.start(), who) for who, pattern in _PATTERNS.items() if (match := pattern.search(clause))]
        if match := _USER_PATTERN.search(clause):
            hits.append((match.start(), "person"))
        if hits:
            who = min(hits)[1]
            found.append(Attribution(who, _NAMES.sub(" ", clause), bool(_APPROVAL.search(clause))))
    return found


def is_yes(text: str) -> bool:
    """Whether a message begins with an agreement."""
    return bool(AGREEMENT.match(text))
