"""Hold a statement against what was said: by whom, whether it was affirmed or denied, and whether it was taken back later.

A rule turned round ("always push" for "never push"), a suggestion of the agent told as a wish of the person, and a decision that
the person changed later are found here. Only messages of people and of the model count; a tool wants nothing.

Who a statement says it comes from: a person, or the agent. The words must then be theirs.

"The user wants Redis" must rest on a message of a person that speaks of Redis, "the agent suggested Redis" on one of the model.
An approval ("the user agreed to Redis") may also rest on a "yes" to a message of the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from everturn.model.archive import MessageRow
from everturn.restore.claim_acts import ClaimedAct, find_acts
from everturn.restore.claim_conflicts import find_open_item, find_state, has_other_state
from everturn.restore.claim_language import find_language, spoken_languages
from everturn.restore.claim_polarity import (
    Phrase,
    find_denied_choice,
    find_opposite,
    find_opposite_words,
    find_swapped,
    find_turned_code,
    hide_stance,
    read_phrases,
    split_sentences,
)
from everturn.restore.claim_relations import find_exchanged, find_other_restriction
from everturn.restore.evidence import has_quote, quote_short
from everturn.restore.grounds import Ground, all_stems, stems
from everturn.text.stance_words import AGREEMENT, REVISION
from everturn.text.statement_words import LANGUAGE_NAMES

_LEAST_OWN = 0.5  # share of the words that must be the speaker's
_MOST_FOREIGN = 0.34  # share of the words that only the other one used
_LEAST_TURNED, _LEAST_FOREIGN = (
    0.5,
    0.67,
)  # share of the words of a phrase that what turns it round must have, in the same language or not
_LEAST_SIGNS = 0.7  # the same of Chinese and Japanese characters
_LEAST_COMMON = 0.4  # share of the words that a revision has in common with what it revises
_MAX_CHARS = 20_000
_DECIDED = ("key_decisions", "constraints", "primary_task", "high_level_goal", "artifacts")
_HISTORY = re.compile(r"\b(?:first|initially|originally|at first|earlier|previously|zuerst|zunächst|anfangs|d['’]abord|primero|al principio)\b|最初|当初|起初", re.I)  # fmt: skip
_UNREAD = ("ru",)  # languages of which only single negations are known, so that two may be one
SPEECH_WORDS = stems(
    "wants wanted wishes asked asks said says tells told requests requested decided decides decision chose chosen chooses prefers "
    "preferred suggested suggests suggestion proposed proposes proposal recommended recommends insists insisted requires required demands "
    "demanded forbids forbade forbidden prohibits prohibited allows allowed permits permitted expects expected needs approved approves "
    "agreed agrees accepted accepts confirmed confirms rejected rejects refused states stated mentioned mentions explained reported reports "
    "instructed instructs ordered specified planned plans announced offered offer offers picked opted settled instead never always must "
    "strictly explicitly initially originally finally should would later user's according request instruction nobody anyone answered "
    "answer reply replied replies open unanswered response still reason "
    "demande demandé veut voulait souhaite dit préfère propose proposé décidé choisi refusé accepté quiere pidió pide dijo prefiere propuso sugirió decidió eligió "
    "rechazó aceptó pediu pede quer disse prefere propôs sugeriu decidiu escolheu rejeitou aceitou möchte wollte sagte sagt bittet verlangt entschied wählte lehnte "
    "schlug primeiro zuerst explizit"
) | {"decid", "chos", "choos"}  # fmt: skip
_NAME = re.compile(r"(?<=[a-z,;:)] )[\"'`(]?([A-Z][A-Za-z0-9+#]{2,})\b")
_FIRST_NAME = re.compile(r"^([A-Z][a-z]+[A-Z]\w*|[A-Z][a-z]{3,}(?= [A-Z][A-Za-z]))")
_FENCED = re.compile(r"'''[^\n]{0,80}\n.{0,20000}?(?:'''|$)", re.S)
_GERMAN = re.compile(r"\b(?:der|die|das|und|nicht|wurde|ist|auf|ein|eine)\b")


def find_speech_faults(
    ground: Ground, text: str, key: str, turns: list[int], cited: list[MessageRow], foreign: bool = False
) -> Iterator[str]:
    """Yield why nobody said so, or somebody said otherwise."""
    for told in find_attributions(text):
        if not _is_doubtful(ground, told, cited):
            yield from _attribution_faults(ground, told, turns, cited)
    bare = FRAME.sub("", _SAYS_WHO.sub(" ", text))
    said = [
        one for one in read_phrases(bare) if not any(one.denied or _is_on_record(act) for act in find_acts(one.text))
    ]
    if not said:
        return
    rows = _speech_rows(ground, turns, cited)
    words = frozenset[str]().union(*(one.words for one in said))
    sentences = [
        one for row in rows for one in _sentences_about(words, _prose(ground, row)) if _states(ground, row, one)
    ]
    printed = [one for row in cited for one in _sentences_about(words, ground.printed(row))]
    recorded = [phrase for one in (*sentences, *printed) for phrase in read_phrases(one)]
    turned = find_opposite(said, recorded, _LEAST_FOREIGN if foreign else _LEAST_TURNED) if recorded else None
    if turned is not None and find_language(text) not in _UNREAD and not _last_word_agrees(ground, rows, said, words):
        yield f"the record says the opposite of {quote_short(turned.text or text)}"
    if foreign:
        rules = [one for row in rows if ground.is_person(row) for one in read_phrases(ground.speech(row))]
        if code := find_turned_code(said, text, rules):
            yield f"the record says the opposite of {quote_short(code)}"
    yield from _word_faults(text, sentences, "\n".join(ground.speech(row) for row in rows), key, foreign)
    if key in _DECIDED and not _HISTORY.search(text) and find_language(text) not in _UNREAD:
        yield from _revision_faults(ground, said, turns, cited)


def find_speech_doubts(ground: Ground, text: str, turns: list[int], cited: list[MessageRow]) -> Iterator[str]:
    """Yield why it cannot be known whether they said so: they wrote what is cited, in other words, or are said to do, not to say."""
    for told in find_attributions(text):
        if _is_doubtful(ground, told, cited):
            yield from _attribution_faults(ground, told, turns, cited)


def _is_doubtful(ground: Ground, told: Attribution, cited: list[MessageRow]) -> bool:
    """Whether words that are not found are no proof that somebody else said so."""
    if told.speaker == "person" and any(ground.answers.get(row.seq) == "refusal" for row in cited):
        return False
    own = told.speaker == "person" and not told.approves and any(map(ground.is_person, cited))
    return told.acts or own


def _is_on_record(act: ClaimedAct) -> bool:
    """Whether the record of calls decides about an act. A change of what is no file is only spoken of."""
    return act.kind not in ("edit", "create", "verify") or bool(act.things.files)


def _word_faults(text: str, sentences: Sequence[str], spoken: str, key: str, foreign: bool) -> Iterator[str]:
    """Yield the sentences of the record whose words rule a statement out, and the values it takes for new that were replaced."""
    against = find_opposite_words(text, sentences, foreign) if key != "next_steps" else ""
    if (
        not against and find_state(text) and not any(act.is_check for act in find_acts(text))
    ):  # how checks ended is known from their runs
        against = next((one for one in sentences if has_other_state(text, one)), "")
    if not against and find_state(text) == "done":
        against = find_open_item(text, spoken)
    if against:
        yield f"the record says otherwise: {quote_short(against)}"
    if against := find_exchanged(text, sentences) or find_other_restriction(text, sentences):
        yield f"the record has it the other way round: {quote_short(against)}"
    if swapped := find_swapped(text, spoken):
        yield f"{quote_short(swapped)} is what was replaced in the record"


def _last_word_agrees(ground: Ground, rows: list[MessageRow], said: list[Phrase], words: frozenset[str]) -> bool:
    """Whether several messages are cited and the last one of the person that speaks of it agrees: it revised the others."""
    about = [(row, phrases) for row in rows if (phrases := _phrases_about(ground, row, words))]
    if len(about) < 2 or about[-1][0].origin != "human":
        return False
    last = about[-1][1]
    denies = any(one.denied for one in said) and any(one.denied for one in last)
    return denies and find_opposite(said, last) is None


def _phrases_about(ground: Ground, row: MessageRow, words: frozenset[str]) -> list[Phrase]:
    return [phrase for one in _sentences_about(words, ground.speech(row)) for phrase in read_phrases(one)]


def _speech_rows(ground: Ground, turns: list[int], cited: list[MessageRow]) -> list[MessageRow]:
    """Return the messages of people and the model among the cited ones; those of the turn where whole turns are cited."""
    by_message = {row.turn for row in cited}
    rows = [*cited, *(row for turn in turns if turn not in by_message for row in ground.rows(turn))]
    return [row for row in rows if row.origin in ("human", "model") or ground.is_person(row)]


def _prose(ground: Ground, row: MessageRow) -> str:
    """Return what somebody says in a message. The code blocks of the model are no speech; a person may put a wish into one."""
    text = ground.speech(row)[:_MAX_CHARS]
    return text if ground.is_person(row) else _FENCED.sub(" ", text)


def _states(ground: Ground, row: MessageRow, sentence: str) -> bool:
    """Whether a sentence says how something is. A question of the model names what may be; one of a person may be a request."""
    return ground.is_person(row) or not sentence.rstrip("*_ ").endswith(("?", "？"))


def _sentences_about(words: frozenset[str], text: str) -> list[str]:
    """Return the sentences that have one of the words."""
    found = split_sentences(text[:_MAX_CHARS])
    return [one for one in found if not words.isdisjoint(_sentence_words(one))]


@lru_cache(4_096)
def _sentence_words(sentence: str) -> frozenset[str]:
    return all_stems(sentence)


# --- who said it ---
def _attribution_faults(ground: Ground, told: Attribution, turns: list[int], cited: list[MessageRow]) -> Iterator[str]:
    by_person = [row for row in cited if ground.is_person(row)]
    by_model = [row for row in cited if row.origin == "model" and not ground.is_person(row)]
    if told.speaker == "agent" and by_person and len(by_person) == len(cited):
        yield f"message {by_person[0].seq + 1} is from a person, not from the agent"
        return
    if told.speaker == "person" and any(ground.answers.get(row.seq) == "refusal" for row in by_person):
        if told.approves:
            yield f"the person refused in message {by_person[0].seq + 1}"
        if told.approves or told.refuses:
            return
    is_open = told.acts and (told.speaker == "agent" or not by_model)
    if (by_person and (told.on_request or told.acts)) or is_open:
        return
    yield from _word_attribution_faults(ground, told, turns, cited)


def _word_attribution_faults(
    ground: Ground, told: Attribution, turns: list[int], cited: list[MessageRow]
) -> Iterator[str]:
    """Yield why the words of a clause are not those of whom it names."""
    words = stems(SAYS_CJK.sub(" ", hide_stance(told.clause))) - SPEECH_WORDS
    by_person = [row for row in cited if ground.is_person(row)]
    if not words:
        return
    if told.approves and told.speaker == "person":
        if not _is_approved(ground, words, turns, cited):
            yield "no message from a person agrees to it"
    elif _is_foreign(ground, told, by_person or cited):
        if told.speaker == "person" and not by_person and any(row.origin == "model" for row in cited):
            yield "only the agent says so in the cited messages"
    elif not _has_said(ground, told, words, turns):
        who = "a person" if told.speaker == "person" else "the agent"
        yield f"no message from {who} in turn {', '.join(str(turn + 1) for turn in turns[:5])} says so"


def _has_said(ground: Ground, told: Attribution, words: frozenset[str], turns: list[int]) -> bool:
    """Whether most of the words are the speaker's, and few of them only the other one's."""
    rows = [row for turn in turns for row in ground.rows(turn) if row.origin == "model"]
    by_model = frozenset[str]().union(*(stems(ground.text(row)) for row in rows))
    near = {*turns, *(turn - 1 for turn in turns)}  # "leave them" speaks of what was said before
    people = [text for row, text in ground.spoken if row.turn in near] or [text for _, text in ground.spoken]
    by_people = frozenset[str]().union(*map(stems, people))
    own, other = (by_people, by_model) if told.speaker == "person" else (by_model, by_people)
    weights = {one: ground.weight(one) for one in words & (own | other)}  # the rest is the model's way to put it
    total = sum(weights.values())
    foreign = sum(weights[one] for one in words & other - own)
    return (
        bool(words & own)
        and sum(weights[one] for one in words & own) >= _LEAST_OWN * total
        and foreign <= _MOST_FOREIGN * total
    )


def _is_foreign(ground: Ground, told: Attribution, rows: list[MessageRow]) -> bool:
    """Whether what is said to be said is in another language than the messages."""
    own = find_language(told.clause)
    spoken = frozenset[str]().union(*(spoken_languages(ground.speech(row)) for row in rows))
    return bool(own and spoken) and own not in spoken


def _is_approved(ground: Ground, words: frozenset[str], turns: list[int], cited: list[MessageRow]) -> bool:
    """Whether a person speaks of it, or says yes to it."""
    first = min((row.seq for row in cited), default=0)
    for row, text in ground.spoken:
        near = row.turn in turns or row.turn - 1 in turns
        if near and row.seq >= first and is_yes(text):
            return True
        if row.turn in turns and len(words & stems(text)) >= _LEAST_OWN * len(words):
            return True
    return False


# --- what was taken back ---
def _revision_faults(ground: Ground, said: list[Phrase], turns: list[int], cited: list[MessageRow]) -> Iterator[str]:
    last = max((row.seq for row in cited), default=-1)
    words = frozenset[str]().union(*(one.words for one in said))
    repeated = "\n".join(map(ground.text, cited))  # who repeats what is cited does not revise it
    for row, text in ground.spoken:
        if row.turn < min(turns):
            continue
        for sentence in _sentences_about(words, ground.speech(row) or text):
            if row not in cited and has_quote(sentence, repeated):
                continue
            recorded = read_phrases(sentence)
            later = row.seq > last and row.turn >= max(turns)
            denied = find_denied_choice(said, recorded)
            if denied or (
                later and (_is_turned(said, recorded) or _is_revised(said, sentence)) and _is_alike(words, sentence)
            ):
                yield f"message {row.seq + 1} from the person says otherwise: {quote_short(sentence)}"
                return


def _is_alike(words: frozenset[str], sentence: str) -> bool:
    """Whether a sentence shares more than a few characters with some words, where each character counts as a word."""
    signs = {one for one in words if not one.isascii() and len(one) == 1}
    return len(signs) * 2 < len(words) or len(words & _sentence_words(sentence)) >= _LEAST_SIGNS * len(words)


def _is_turned(said: list[Phrase], recorded: Sequence[Phrase]) -> bool:
    turned = find_opposite(said, recorded)
    return turned is not None and len(turned.words) > 1 and any(turned.words <= one.words for one in recorded)


def _is_revised(said: list[Phrase], sentence: str) -> bool:
    """Whether a later sentence chooses something else for the same thing."""
    if not REVISION.search(sentence):
        return False
    words, new = frozenset[str]().union(*(one.names for one in said)), stems(sentence)
    common = words & new
    return bool(words - new and new - words) and len(common) >= _LEAST_COMMON * len(words)


def unknown_names(ground: Ground, text: str) -> list[str]:
    """Return the proper names in a sentence that the session does not have. German capitalises all nouns."""
    if _GERMAN.search(text) or find_language(text) == "de":
        return []
    names = [*_NAME.findall(text), *(_FIRST_NAME.findall(text) if find_language(text) == "en" else ())]
    return [
        name
        for name in names
        if name not in LANGUAGE_NAMES and (words := stems(name)) and not any(map(ground.knows, words))
    ]


# --- Who a statement says it comes from: a person, or the agent. The words must then be theirs ---
_PERSON = r"(?:(?:the\s+)?(?:user|human|person|customer|client|owner|developer)(?:['’]s)?|(?:der|die|vom|des)\s+(?:Nutzer|Benutzer|Anwender)(?:s|in)?|(?:Nutzer|Benutzer|Anwender)(?:in)?|l['’]utilisat(?:eur|rice)|(?:el|la|del|al)\s+usuari[oa]|(?:[oa]|d[oa]|pel[oa]|ao?)\s+usuári[oa]|ユーザー?|用户|用戶|사용자|пользовател(?:ь|я|ем|ю))"  # fmt: skip
_AGENT = r"(?:(?:the\s+)?(?:agent|assistant|model|AI|bot)(?:['’]s)?|(?:der|die)\s+(?:Agent|Assistent|KI)|l['’](?:agent|assistant)|(?:el|o)\s+(?:agente|as+istente)|에이전트|エージェント|アシスタント|助手|代理|агент(?:а|ом|у)?|ассистент(?:а|ом|у)?)"  # fmt: skip
_SAYS = (
    r"(?:\s+(?:has|have|had|also|then|first|later|now|explicitly|initially|originally|finally|clearly|hat|a|ha|does|did|do|never|not|n['’]t|would|once|again|still|just)){0,3}"
    r"\s*(?:want|wish|ask|sa(?:id|ys?)\b|told|tell|request|decid|ch[oó]o?se|prefer|suggest|propos|recommend|insist|require|demand|forb[ia]d|prohibit|allow|permit|expect|need|approv|agree|accept|confirm|reject"
    r"|refus|state|mention|explain|report|instruct|order|specif|stipulat|plan|announc|offer|promis|pick|opt|settl|choice|decision|request|instruction|wish|idea|suggestion|proposal|preference"
    r"|came up with|come up with|b(?:rought|rings?) up|rais(?:es?|ed)\b|introduc|initiat|devis|point(?:s|ed) out|thought of|will\b|wollte|möchte|sagt|bat\b|bittet|verlangt|entschied|bevorzugt|schlug|empfiehlt|empfahl|gesagt|gebeten|verbietet|verbot|erlaubt"
    r"|veut|voulait|demand|dit\b|préfèr|propos|décid|interdit|autoris|quiere|pidi|pide|dijo|dice|prefiere|propuso|sugiri|decidi|prohíb|permit|exig|pedi[ru]|quer\b|queria|disse|sugeri|propôs|decidiu|escolheu|genehmigt|abgelehnt|lehnt|gewünscht|gewählt|souhait|refus|rejet|rechaz|aprob|aprov|recus|は|が|要求|想|希望|说|說|决定|建议|禁止|允许)"
)
_ADVERB = r"\b(?:as|per|according to|at|on|by|following|upon|because of|due to|laut|auf|wie|selon|según|à la demande de|a petición de)\s+(?:request of\s+|the request of\s+|Wunsch\s+)?"
_BY = r"(?:(?:asked|requested|decided|chosen|suggested|proposed|wanted|demanded|approved|required|forbidden|recommended|picked|preferred|raised|mentioned) by|(?:request|wish|decision|instruction|suggestion|proposal|idea|recommendation|choice|preference) (?:of|by|from)|comes? from|came from|(?:agreed|settled|arranged|discussed|clarified) with)\s+"
_USER_REQUESTED = r"\buser[- ](?:requested|approved|chosen|mandated|required|specified)\b"
#: "… was added after the user said yes": what the person did is told in the last part.
_LATER_PART = re.compile(
    rf"(?:\b(?:after|once|when|because|since|as soon as|nachdem|weil|après que|parce que|después de que|porque|depois que)|,\s(?:and|but|so|und|aber|et|mais|y|pero|e|mas))\s+(?={_PERSON}\b)",
    re.I,
)
#: "The reviewer considers", "the agent found that": what follows is what was said.
FRAME = re.compile(
    r"^(?:(?:the|a)\s+)?(?:(?:code\s+)?review(?:er)?|agent|assistant|model|report|analysis)\s+(?:considers?|thinks?|believes?|finds?|found|conclud(?:es|ed)|says?|said|states?|stated|reports?|reported|notes?|noted)\s+(?:that\s+)?",
    re.I,
)
#: "According to the user" says nothing of what was said.
_SAYS_WHO = re.compile(
    rf"\b(?:according to|laut|selon|d['’]après|según|segundo|de acordo com|seg[uú]n)\s+(?:dem\s+|de\s+)?{_PERSON}|\b(?:according to|laut|selon|según|segundo)\s+{_AGENT}",
    re.I,
)
SAYS_CJK = re.compile(
    r"要求|希望|想要|请求|請求|指示|提出|提议|建议|決定|决定|选择|選択|询问|表示|提到|指出|说明|说|問|问|求め\w?|依頼|質問|指摘|提案|要望|確認|确认|요청|제안|지시|질문|결정"
)
_IF_PERSON = re.compile(
    rf"\b(?:unless|if|until|before|wenn|falls|sofern|bis|sauf si|si|à moins que|a menos que|salvo que|hasta que|se)\s+(?={_PERSON}\b)|除非|如果用户",
    re.I,
)
_REQUEST = re.compile(
    rf"\bat (?:the )?{_PERSON}['’]?s? request|\b(?:as|per) (?:the )?{_PERSON}|\bauf Wunsch|à la demande|a petición|a pedido|(?:按照?|根据|应)(?:用户|用戶)|ユーザーの(?:要望|依頼|指示)",
    re.I,
)
_REFUSAL = re.compile(
    r"\b(?:reject|refus|declin|denied|abgelehnt|lehnt|rejet|rechaz|recus|rejeit)|拒绝|拒否|却下|거부", re.I
)
_NO_DOING = r"(?:has|have|had|needs?|must|should|shall|can|could|may|might|will|would|is|are|was|were|gets?|sees?|receives?|muss|soll|kann|wird|doit|peut|debe|puede|tiene|deve|pode|tem)\b"
#: A person or the agent as the subject of a clause, who does something and is not told what to do or has something done to them.
_SUBJECTS = {
    who: re.compile(
        rf"^(?:\W|(?:and|but|then|also|later|first|finally|und|et|y|e)\b)*{name}(?:\s+(?:then|also|later|first|finally|himself|herself|itself|themselves))?"
        rf"(?:(?<=[a-zéà])\s+(?!{_NO_DOING})[^\W\d_]{{3}}|(?<=[^\x00-\x7f])(?!需要|必须|应|可以|能|将|会|の))",
        re.I,
    )
    for who, name in (("person", _PERSON), ("agent", r"(?:the\s+)?(?:agent|assistant)"))
}
_APPROVAL = re.compile(r"\b(?:approv|genehmig|gebilligt|approuv|aprueb|aprob|aprov|agree|accept|confirm|sign(?:ed|s) off|okay(?:ed)?|consent|gave .{0,12}(?:go|ok)|zugestimmt|bestätigt|accepté|aceptó|aprobó)|批准|승인|承認|同意|了承", re.I)  # fmt: skip


def _pattern(who: str) -> re.Pattern[str]:
    return re.compile(
        rf"\b{who}{_SAYS}|{_ADVERB}{who}|{_BY}{who}|(?<![a-z]){who}\s?(?:は|が|要求|想|希望|说|說|决定|建议|禁止|允许|提出|提议|主动|同意|拒绝|选择)".replace(
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
    refuses: bool = False
    on_request: bool = False  # something was done because the person asked for it
    acts: bool = False  # is said to do something that need not be speech: "the user found", "the user pasted"


def find_attributions(text: str) -> list[Attribution]:
    """Return who a statement says it comes from, clause by clause."""
    found = []
    for clause in re.split(r";\s|\.\s|[。；]", text):
        hits = [(match.start(), who) for who, pattern in _PATTERNS.items() if (match := pattern.search(clause))]
        if match := _USER_PATTERN.search(clause):
            hits.append((match.start(), "person"))
        subject = next((who for who, pattern in _SUBJECTS.items() if pattern.search(clause)), "")
        who = min(hits)[1] if hits else subject
        if who:
            if _IF_PERSON.search(clause):  # "unless the user says so"
                continue
            clause = _LATER_PART.split(clause)[-1] if _LATER_PART.search(clause) else clause
            bare, approves = _NAMES.sub(" ", clause), bool(_APPROVAL.search(clause))
            found.append(
                Attribution(who, bare, approves, bool(_REFUSAL.search(clause)), bool(_REQUEST.search(clause)), not hits)
            )
    return found


def is_hearsay(text: str) -> bool:
    """Whether a statement only says what somebody said: "according to the agent"."""
    return bool(_SAYS_WHO.search(text))


def is_yes(text: str) -> bool:
    """Whether a message begins with an agreement."""
    return bool(AGREEMENT.match(text))
