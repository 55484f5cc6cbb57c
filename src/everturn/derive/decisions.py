"""Find decisions and constraints by the words that state them.

No model: a sentence counts when it begins like an order (`never …`, `always …`, `do not …`, `make sure …`, `only …`,
`no …`), states a rule (`must`, `from now on`, `use X, not Y`) or has a mark (`Decision:`, `NOTE:`, `pin:`). Precision goes
before recall: questions, reports (`it never works`, `I don't know`), code, quotes and logs do not count. A line whose mark
asks to be remembered is *pinned*: no view leaves it out.

`find_decisions` is for the text of a human. `find_announcements` is for the answer of a model: lines marked `Decision:`.
`find_choices` weighs the passages of a report, the last answer of a turn that changed files: one counts when several signs of
a choice meet (how something works now, `instead of`, `per your call`, code). The weights were set
by hand on labelled sessions, guided by fits that leave out one repository at a time.

Marker lines: lines in which a person or an agent names what they say.

    DECISION: use token buckets             PROPOSAL: a cache in front of it
    CONSTRAINT: never use an ORM            RATIONALE: raw SQL is easier to profile
    OPEN QUESTION: which region?            RESEARCH: three libraries compared
    RISK: the migration locks a table       ACTION ITEM: ask the operations team

A line is an entry with its evidence and a status. Further lines change the status of earlier entries with the same words:

    RESOLVED: which region?                 REJECTED: a cache in front of it
    SUPERSEDED: never use an ORM            PROPOSAL [rejected]: a cache in front of it

A decision in the words of a proposal or an open question resolves it. Only capitals count, and nothing inside a code block.
The output of tools is not read: a file may contain such lines, and they would be nobody's words. Pure; work is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.sentences import Sentence, split_sentences
from everturn.text.stance_words import REVISION, TAKEN_BACK

#: Longest excerpt of a text kept in a state.
LONGEST = 200
_MAX_MARKS = 12  # of one message
_MAX_PASTED = 5
_MAX_WORDS = 60  # a longer sentence is a story, not a rule
_MAX_CHOICES = 4  # of one answer
_CHOICE_CHARS = 400
_CHOICE_WORDS = (6, 60)
_ENOUGH = 4
_ITEM = 300  # characters: a rule is kept with the rest of such a list item


class DecisionMark(Struct, frozen=True):
    """A decision or a constraint, in its original words."""

    text: str
    kind: str  # marker | imperative | choice | answer
    binds: bool = False  # a constraint, else a decision
    pinned: bool = False


def find_decisions(text: str) -> list[DecisionMark]:
    """Return the decisions and constraints in a message of a human, in order, each once."""
    found: dict[str, DecisionMark] = {}
    pasted = 0
    for sentence in split_sentences(text):
        if (mark := _sentence_mark(sentence)) is None or (sentence.pasted and pasted >= _MAX_PASTED):
            continue
        pasted += sentence.pasted
        found.setdefault(likeness(mark.text), mark)
        if len(found) >= _MAX_MARKS:
            break
    return list(found.values())


def find_announcements(text: str) -> list[DecisionMark]:
    """Return the decisions that a model marked as such, one per line."""
    announced = (one_line(found[1].strip(" *_"), LONGEST) for found in _ANNOUNCED.finditer(_FENCED.sub("\n", text)))
    return [DecisionMark(words, "marker") for words in announced if words][:_MAX_MARKS]


def find_choices(text: str) -> list[DecisionMark]:
    """Return the choices that a report of a model states, in order."""
    if not _SIGN_WORDS.search(text):
        return []
    found: dict[str, DecisionMark] = {}
    for sentence in split_sentences(text):
        words = sentence.passage if sentence.is_item and len(sentence.passage) <= _CHOICE_CHARS else sentence.text
        words = words.strip("_ ")
        if _NO_REPORT.search(sentence.heading) or not _CHOICE_WORDS[0] <= len(words.split()) <= _CHOICE_WORDS[1]:
            continue
        if choice_weight(words, sentence.is_item) >= _ENOUGH:
            found.setdefault(likeness(words), DecisionMark(one_line(words, _CHOICE_CHARS), "choice"))
    return list(found.values())[:_MAX_CHOICES]


def choice_weight(passage: str, is_item: bool = False) -> int:
    """Return how strongly a passage of a report states a choice."""
    if _QUESTION.search(passage):
        return 0
    signs = {name for name, (_, sign) in _SIGNS_OF_CHOICE.items() if sign.search(passage)}
    weight = sum(_SIGNS_OF_CHOICE[name][0] for name in signs)
    return weight + ("now" in signs) * (is_item + ("code" in signs))


def states_choice(text: str) -> bool:
    """Whether a short text sounds as if something were decided in it. Rougher than the others: to prefer, not to report."""
    return _CHOSEN.search(text) is not None


# --- revisions ---
class Revision(Struct, frozen=True):
    """A sentence in which a person chooses something else (`superseded`) or takes something back."""

    status: str  # superseded | rejected
    terms: frozenset[str]


def find_revisions(text: str) -> list[Revision]:
    """Return the sentences of a prompt that change what was decided before."""
    if not (REVISION.search(text) or TAKEN_BACK.search(text)):
        return []
    found = []
    for sentence in split_sentences(text):
        words = sentence.text
        if sentence.pasted or len(words.split()) > _MAX_WORDS or words.rstrip("*_ ").endswith("?"):
            continue
        if REVISION.search(words) or TAKEN_BACK.search(words):
            found.append(Revision("superseded" if REVISION.search(words) else "rejected", _terms(words)))
    return found


def revised_status(text: str, revisions: Iterable[Revision]) -> str:
    """Return what became of a decision after some later sentences, "" if none of them is about it."""
    terms = _terms(text)
    least = max(_COMMON_TERMS, _COMMON_SHARE * len(terms))
    return next((one.status for one in revisions if len(terms & one.terms) >= least), "")


def _terms(text: str) -> frozenset[str]:
    return frozenset(word.lower().removesuffix("s") for word in _TERM.findall(text)) - _EVERYDAY


def likeness(text: str) -> str:
    """Return a key that is equal for two sentences with the same words."""
    return " ".join(_WORD.findall(text.lower()))[:LONGEST]


def _sentence_mark(sentence: Sentence) -> DecisionMark | None:
    words = _POLITE.sub("", sentence.text.strip("*_ "))
    if (marker := _MARKER.match(words)) and not (sentence.pasted and marker[1].lower() in _REMARKS):
        return _marker_mark(marker[1].lower(), words[marker.end() :])
    if sentence.text.rstrip("\"'*_) ").endswith("?") or len(words.split()) > _MAX_WORDS or _ONE_CASE.match(words):
        return None
    is_short_item = sentence.is_item and len(sentence.passage) <= _ITEM
    excerpt = sentence.passage if is_short_item else one_line(sentence.text, LONGEST)
    is_rule = _STRICT.match(words) if sentence.pasted else (_RULE.search(words) or _CORRECTION.match(sentence.text))
    if is_rule:
        return DecisionMark(excerpt, "imperative", binds=True)
    if not sentence.pasted and _CHOICE.search(words):
        return DecisionMark(excerpt, "marker")
    return None


def _marker_mark(name: str, rest: str) -> DecisionMark | None:
    if not (words := one_line(rest.strip(" *_"), LONGEST)):
        return None
    return DecisionMark(words, "marker", binds=name not in (*_DECIDED, *_REMARKS), pinned=name in _PINNED)


_WORD = lazy_pattern(r"[\w'’]+")
_CHOSEN = lazy_pattern(
    r"\b(?:decision|decided|settled|agreed|chosen|chose|picked|opted|(?:go|going|goes|went)\s+with|(?:stick|stay|keep)\s+(?:to|with)|"
    r"from\s+now\s+on|instead\s+of|rather\s+than|in\s+favou?r\s+of|(?:we|i)(?:['’]ll|\s+will)?\s+(?:use|take|keep|adopt|prefer)|"
    r"let(?:['’]s|\s+us)\s+(?:use|take|keep|go|make|do)|(?:is|are)\s+now)\b|\b(?:use|take|keep|set)\b.{1,60}\b(?:not|because|for|to)\b",
    re.IGNORECASE,
)
_COMMON_TERMS, _COMMON_SHARE = 2, 0.4  # that a revision has in common with what it revises
_TERM = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff]{2}|[^\W\d_][\w./-]{2,}[^\W_]")
_EVERYDAY = frozenset(
    ("this that with from into have keep make instead actually rather should would could must please also them they then there here "
     "what when where your only just like more some same again about switch change remove drop revert undo").split()
)  # fmt: skip
_FENCED = lazy_pattern(r"^[ \t]*```.*?(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_ANNOUNCED = lazy_pattern(r"^[ \t>*_#-]{0,8}(?:Decision|Decided)(?:\*\*|__)?:(?:\*\*|__)?[ \t]*(\S.{0,2000})$", re.M)

_DECIDED = ("decision", "decided", "agreed")
_REMARKS = ("note", "nb", "n.b.", "n.b", "todo")
_PINNED = ("pin", "pinned", "constraint", "rule", "remember")
_MARKER = lazy_pattern(
    r"#?(pin|pinned|constraint|rule|remember|decision|decided|agreed|note|n\.?b\.?|todo|important)(?:\*\*|__)?\s*:(?!:)",
    re.IGNORECASE,
)

#: Polite openings before a request.
_POLITE = lazy_pattern(
    r"^(?:(?:ok(?:ay)?|yes|yeah|yep|nope|hey|hm+|also|and|but|so|then|now|well|actually|please|pls|just|again|first|finally|remember)"
    r"\b[,.!:;]?\s+|no[,.!]\s+)+",
    re.IGNORECASE,
)
_DONT = r"(?:do\s+not|don['’]?t|dont)"
#: Where an order may begin: a sentence or a clause.
_OPENS = r"(?:^|[,;:(–—-]\s+|\b(?:please|pls|and|but|also|so|then|you\s+(?:should|must|can|need\s+to)|to|just)\s+)"
#: The same without a purpose clause: `do it to make sure` is not an order.
_ASKS = r"(?:^|[,;:(–—-]\s+|\b(?:please|pls|and|but|also|so|then|you\s+(?:should|must|can)|need\s+to)\s+)"
#: Orders in form, not in meaning.
_IDLE = r"(?!\s+(?:you\s+think|worry|bother|mind|know|think\s+so|get\s+me|have|need|see|want|remember|understand|forget\s+about|like|get|seem|care|believe|recall)\b)"
_NO = (
    r"^no\s+(?!(?:it|its|it['’]s|that|this|i|i['’]m|you|we|they|need|problem|worries|one|longer|idea|thanks|thank|way|point|the|"
    r"a|an|please|don['’]?t|do|not|just|wait|still|but|and|if|because|since|there|what|why|luck|clue|go|use|keep|make|let)\b)"
    r"[a-z][\w-]*(?:\s+[\w/-]+){0,7}[.!]*$"
)
_RULE = lazy_pattern(
    "|".join(
        (
            rf"{_OPENS}{_DONT}{_IDLE}\s+(?:ever\s+)?[a-z]{{2,}}",
            rf"{_OPENS}(?:never|always)\s+(?!mind\b|forget\s+the\b|again\b|been\b|had\b|was\b|were\b|did\b|a\b|the\b)(?!\w+(?:ed|s)\b(?!\s*:))[a-z]{{2,}}",
            r"\bwe\s+(?:never|always)\s+(?!had\b|were\b|did\b|got\b|\w+ed\b)[a-z]{2,}",
            r"\b(?:must|should|may)\s+(?:never|always|only)\s+(?!happen)[a-z]{2,}",
            r"\bmust\s+(?:not\s+)?(?!have\s+(?:been|got|had|\w+ed)\b|admit|say|confess)[a-z]{2,}",
            rf"{_ASKS}(?:make\s+sure\b|(?:ensure|avoid)\s+(?!me\b)[a-z]{{2,}})",
            r"\bfrom\s+now\s+on\b|\bgoing\s+forward\b",
            r"^only\s+(?!if\b|when\b|then\b|one\b|thing\b|the\s+\w+\s+(?:is|was|has)\b|a\b|\d|issue\b|problem\b|question\b)[a-z]{2,}",
            r"\buse\s+only\b",
            rf"{_ASKS}(?:be|being)\s+sure\s+(?:to|that|you)\b",
            r"^(?:stop|quit)\s+(?:trying|\w+ing)\b",
            rf"\b(?:we|i)\s+(?:explicitly\s+|really\s+|definitely\s+)?{_DONT}\s+(?:ever\s+)?want\s+(?!to\s+(?:know|think)\b)[a-z]",
            rf"^we\s+{_DONT}\s+need\s+(?!to\b)[a-z]",
            r"\bnot\s+something\s+(?:we|i)\s+want\b|\bbetter\s+not\s+to\s+[a-z]{2,}",
            r"\b(?:i|we)(?:['’]?d|\s+would)\s+rather\s+(?!not\s+say)[a-z]{2,}",
            r"\bas\s+a\s+(?:general\s+)?rule\b",
            r"\bshould(?:\s+not|n['’]?t)\s+(?!happen|be\s+happening|it\b|we\b|this\b|that\b|have\b)[a-z]{2,}|\bshould\s+(?:remain|stay)\b",
            r"\b(?:should|must|needs?\s+to)\b[^.?!]{1,80}(?:,\s*|\bbut\s+)not\b|\bwe\s+want\b[^.?!]{1,60},\s*not\b",
            r"^(?:the\s+only\s+\w+|each|every|all|any)\b[^.?!]{1,80}\bshould\b",
            r"(?:^|[,;]\s+|\bbut\s+|\band\s+|\w\s+)(?:it|they|these(?:\s+\w+)?|everything)\s+(?:also\s+|all\s+)?needs?\s+to\s+be\b",
            r"\bwithout\s+(?:introducing|breaking|changing|touching|modifying|losing)\b",
            r"\b(?:after|before)\s+(?:each|every)\s+[a-z]|\bas\s+you\s+go\b|\bas\s+each\b|\bone\s+at\s+a\s+time\b|\bwhere(?:ver)?\s+possible\b",
            r"^keep\s+(?:all|everything|the)\s+[a-z]|^nothing\s+else[.!]*$|[a-z],\s+no\s+[a-z]{3,}(?:\s+[a-z]+){0,2}!*$",
            r"\byou\s+(?:don['’]?t|do\s+not)\s+have\s+access\b",
            r"^(?:use|using|prefer|choose|pick|take)\s+[^.?!]{1,80}?,?\s+(?:and\s+)?(?:not|instead\s+of|rather\s+than|over)\s+\S",
            _NO,
            # German, French, Spanish, Japanese, Chinese
            r"^(?:bitte\s+)?(?:nie(?:mals)?|immer|kein(?:e[nrs]?)?)\s+\w|\b(?:darf|dürfen|soll(?:en|st|te)?|muss|müssen)\b[^.?!]{0,60}\b(?:nicht|nie|immer|nur|kein\w*|bleiben)\b|\bachte darauf\b|\bstelle? sicher\b|\bab (?:jetzt|sofort)\b",
            r"^(?:ne\s|n['’])\w+[^.?!]{0,40}\b(?:pas|jamais|plus)\b|^(?:toujours|jamais|uniquement|pas de)\s+\w|\b(?:il ne faut pas|assure-toi|assurez-vous|dorénavant|désormais)\b|\bdoi(?:t|vent)\b[^.?!]{0,60}\b(?:toujours|jamais|rester|pas)\b",
            r"^(?:nunca|siempre|únicamente)\s+\w|^no\s+(?:uses|toques|cambies|modifiques|hagas|borres|elimines|agregues|añadas|crees)\b|\b(?:asegúrate|de ahora en adelante|no deben?|debe[ns]? (?:siempre|quedar))\b",
            r"しないで|しないこと|してはいけ|禁止|必ず|絶対に|常に|使わないで|触らない|変更しない",
            r"不要|不能|不许|必须|务必|一定要|只能|只用|始终|永远不|别再?(?:用|改|动|加)|请勿",
        )
    ),
    re.IGNORECASE,
)
#: What is to be done in one case is a tip, not a rule.
_ONE_CASE = lazy_pattern(r"if\b", re.IGNORECASE)
#: "No, use X": what the person corrects once holds from then on.
_CORRECTION = lazy_pattern(
    r"(?:no|nope|nah|nein|non)\b[,.!]?\s+[^?]{0,120}\b(?:just|use|only|instead|should|nur|seulement|solo)\b|(?:不|いや)[，、,]",
    re.IGNORECASE,
)
#: In a pasted document only an order at the very beginning counts, and what is written in capitals or holds by default.
_STRICT = lazy_pattern(
    rf"(?:{_DONT}{_IDLE}|never|always|must\s+(?:not|never)|you\s+must|make\s+sure)\s+[a-z]{{2,}}"
    r"|(?:[\w*'’]+\s+){1,4}(?-i:MUST)\s+[a-z]|\W{0,3}before\s+\w+ing\b[^.?!,]{1,40},\s*[a-z]|(?:for|when)\b[^.?!]{5,120},\s*use\b[^.?!]{1,60}\bby\s+default\b",
    re.IGNORECASE,
)
_CHOICE = lazy_pattern(
    "|".join(
        (
            r"\b(?:we|i)(?:\s+have|['’]ve)?\s+(?:decided|agreed|settled|opted|chose|chosen)\b(?!\s+(?:if|whether|yet))",
            r"\b(?:let['’]?s|lets|we['’]?ll|i['’]?ll|we\s+will|i\s+will|we\s+should|i\s+want\s+to|we\s+are|we['’]re|i['’]m)\s+(?:go(?:ing)?|stick(?:ing)?|stay(?:ing)?)\s+with\b",
            r"^(?:go(?:ing)?|stick|stay)\s+with\b",
            r"\b(?:let['’]?s|lets|we['’]?ll|we\s+will|we\s+should|i\s+want\s+(?:you\s+)?to)\s+(?:use|keep|switch\s+to|move\s+to|drop|skip)\b",
            r"^(?:use|switch\s+to|keep|prefer|replace|put|change|move|make|do)\b[^?]{1,100}\b(?:instead(?:\s+of)?|rather\s+than)\b",
            r"\bi(?:['’]d)?\s+(?:would\s+)?prefer\b(?!\s+not\b)",
            r"\b(?:let['’]s|lets)\s+(?:address|do\s+(?:this|it|that)\s+(?:in|with|by|as|on)|make\s+it|name|call\s+it|start\s+with|leave|limit|defer|postpone|ship)\b",
            r"^we['’]?re\s+going\s+to\s+[a-z]|^start\s+with\s+\S+,?\s+then\b|^leave\s+(?:it|that|them|this)\s+(?:alone|as)",
        )
    ),
    re.IGNORECASE,
)

# --- choices of a model ---
#: One of these occurs in every passage that states a choice; most answers have none.
_SIGN_WORDS = lazy_pattern(
    r"\bnow\b|\binstead\b|\brather than\b|\bnot\b|\bper your\b|\bas (?:you|requested|agreed)\b|\byour call\b|\byou asked\b",
    re.I,
)
_SIGNS_OF_CHOICE = {
    name: (weight, lazy_pattern(pattern, re.IGNORECASE))
    for name, weight, pattern in (
        ("now", 2, r"\bnow\b|\bno longer\b"),
        ("contrast", 2, r"\b(?:instead(?: of)?|rather than)\b|,\s+not\b|\(not\b"),
        ("person", 3, r"\bper your\b|\bas (?:you )?(?:requested|agreed|asked)\b|\byour call\b|\byou asked\b"),
        ("kept", 1, r"\b(?:stays?|kept|keeps?|keeping|left|leave|leaving|unchanged|as-is|untouched|preserv\w+)\b"),
        ("code", 1, r"`[^`]+`"),
        ("changed", 1, r"\b(?:moved?|removed?|replaced?|renamed?|switch(?:ed)?|dropped|split|merged|added|extracted|introduced|changed|converted|"
         r"refactored|pinned|set|wrapped|folded|hid(?:den)?|extended|created|updated|implemented)\b"),
        ("wish", -1, r"\b(?:should|must|needs? to)\b"),
        ("remark", -2, r"^\W*(?:(?:this|that|these|those|it)\b|i (?:verified|checked|ran)\b|now,? (?:i|let)\b)"),
    )
}  # fmt: skip
_QUESTION = lazy_pattern(r"[?？]\W*$")
#: Headings under which a report does not tell what was chosen.
_NO_REPORT = lazy_pattern(r"next|remaining|test|verif|to-?do|follow|how to|usage", re.IGNORECASE)


# --- Marker lines: lines in which a person or an agent names what they say ---
ACTIVE = "active"
STATUSES = (ACTIVE, "superseded", "resolved", "rejected")
KINDS = ("decision", "constraint", "proposal", "research", "rationale", "open question", "risk", "action item")

_LONGEST = 200
_MOST = 20  # lines of one message
_MOST_ENTRIES = 200  # of one session
_SAME = {
    "done": "resolved",
    "closed": "resolved",
    "answered": "resolved",
    "accepted": "resolved",
    "dropped": "rejected",
}
_LINE = lazy_pattern(
    r"^[ \t>*_#-]{0,8}(DECISION|CONSTRAINT|PROPOSAL|RESEARCH|RATIONALE|OPEN QUESTION|RISK|ACTION ITEM|RESOLVED|REJECTED|SUPERSEDED)"
    r"(?:[ \t]?[\[(]([A-Za-z]{4,10})[\])])?[*_]{0,2}[ \t]?:[*_]{0,2}[ \t]*(\S[^\n]{0,2000})$",
    re.MULTILINE,
)
_SUPERSEDES = lazy_pattern(r"[\[(]?\bsupersedes:?[ \t]+[\"“']?([^\"”'\])]{3,200})[\"”'\])]*\s*$", re.IGNORECASE)


class MarkerLine(Struct, frozen=True):
    """One line. Of kind `status` it is about an earlier entry."""

    kind: str  # of KINDS, or status
    text: str
    status: str = ACTIVE
    supersedes: str = ""  # the words of the entry that it replaces


class MarkedEntry(Struct, frozen=True):
    """An entry of the state with its evidence."""

    text: str
    kind: str
    turn: int
    seq: int
    by: str = "person"  # or agent
    status: str = ACTIVE
    status_turn: int | None = None  # evidence of the status
    status_seq: int | None = None
    session: str = ""  # of the evidence, if it is inherited


def find_marker_lines(text: str) -> list[MarkerLine]:
    """Return the marker lines of a message, in order."""
    found = [] if ":" not in text else list(_LINE.finditer(_FENCED.sub("\n", text) if "```" in text else text))
    return [_marker_line(*one.groups()) for one in found[:_MOST]]


def _marker_line(name: str, status: str | None, words: str) -> MarkerLine:
    words, supersedes = words.strip(" *_\t\r"), ""
    if (other := _SUPERSEDES.search(words)) is not None:
        words, supersedes = words[: other.start()].rstrip(" ,;") or words, one_line(other[1], _LONGEST)
    words = one_line(words, _LONGEST)
    if name.lower() in STATUSES:
        return MarkerLine("status", words, name.lower())
    said = _SAME.get((status or "").lower(), (status or ACTIVE).lower())
    return MarkerLine(name.lower(), words, said if said in STATUSES else ACTIVE, supersedes)


def advance_entries(
    known: tuple[MarkedEntry, ...], lines: Iterable[tuple[MarkerLine, int, str]], turn: int, new: bool = True
) -> tuple[MarkedEntry, ...]:
    """Return the entries after the lines of one more turn; without `new` only their statuses change."""
    entries = list(known)
    for line, seq, by in lines:
        for number, one in enumerate(entries):
            status = _status_after(one.text, one.kind, one.status, line)
            if status != one.status:
                entries[number] = replace(one, status=status, status_turn=turn, status_seq=seq)
        if (
            new
            and line.kind != "status"
            and not any(_same(one.text, line.text) and one.kind == line.kind for one in entries)
        ):
            entries.append(MarkedEntry(line.text, line.kind, turn, seq, by, line.status))
    return tuple(entries[-_MOST_ENTRIES:])


def changed_status(
    text: str, status: str, said_at: tuple[int, int], lines: Iterable[tuple[MarkerLine, int, str]], turn: int
) -> str:
    """Return the status of a decision or constraint after the lines of a turn that come after it."""
    for line, seq, _ in lines:
        if (turn, seq) != said_at or line.kind == "status":
            status = _status_after(text, "", status, line)
    return status


def _status_after(text: str, kind: str, status: str, line: MarkerLine) -> str:
    if line.supersedes and _same(text, line.supersedes):
        return "superseded"
    if not _same(text, line.text):
        return status
    if line.kind == "status" or (line.kind == kind and line.status != ACTIVE):
        return line.status
    if line.kind == "decision" and kind in ("proposal", "open question"):
        return "resolved"
    return ACTIVE if line.kind in (kind, "decision", "constraint") and status != ACTIVE else status


def _same(one: str, other: str) -> bool:
    """Whether two texts have the same words, or one is the beginning of the other."""
    first, second = " ".join(_WORD.findall(one.lower())), " ".join(_WORD.findall(other.lower()))
    shorter, longer = sorted((first, second), key=len)
    return first == second or (len(shorter) >= 12 and longer.startswith(f"{shorter} "))
