"""Understand a question: the time it means, who spoke, and what kind of answer it wants.

    what did I say about caching 3 days ago     user, one day; searched for: caching
    which command did you suggest last week     assistant, a week, a command
    why did the build fail in March             a month, an error

`understand` reads a text, `understand_query` a parsed query. Quoted words, excluded words, beginnings and words joined by
OR are searched for as they are. The words that only express the time or the speaker are not searched for, unless no
other words are left. Typed filters win: with `since:` or `until:` no time is understood, with `role:` or `field:` no
speaker. What is understood only changes the order of hits (`retrieval.preference`).

Times are read in the six languages of `text.time_phrases`, and so is who spoke. Kinds of answers are read in English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, tzinfo

from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import UsageError
from everturn.retrieval.query import STOP_WORDS, QueryPhrase, SearchQuery
from everturn.retrieval.scope import YES_NO, SearchFilters
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.terms import each_term
from everturn.text.time_phrases import SpokenTime, find_times, lower_case
from everturn.text.times import describe_span

Range = tuple[int, int]


class Understanding(Struct, frozen=True):
    """The time, the speaker and the kind of answer that a question means."""

    times: tuple[SpokenTime, ...] = ()
    speaker: str = ""  # user | assistant
    intent: str = ""  # answer | prohibition | command | file | error | decision | when | told
    spoken: tuple[Range, ...] = ()  # the words that only say who spoke, in the text with single spaces

    @property
    def used_ranges(self) -> tuple[Range, ...]:
        """The characters of the text, with single spaces, that only express a definite time and the speaker."""
        return _merge_ranges([(time.start, time.end) for time in self.times if time.is_definite] + list(self.spoken))

    @property
    def span(self) -> Range | None:
        """The span of all definite times together."""
        definite = [time for time in self.times if time.is_definite]
        if not definite:
            return None
        return min(time.first for time in definite), max(time.last for time in definite)

    def describe(self) -> str:
        """Say what is preferred: `what you said, 1–7 November 2026`; "" if nothing is."""
        spans = dict.fromkeys(describe_span(time.first, time.last) for time in self.times)
        kind = _INTENT_NAMES.get(self.intent, "")
        return ", ".join(filter(None, (_SPEAKER_NAMES.get(self.speaker, ""), " and ".join(spans), kind)))


NOTHING = Understanding()
_SPEAKER_NAMES = {"user": "what you said", "assistant": "what the assistant said"}
_INTENT_NAMES = {
    "prohibition": "what was ruled out", "command": "commands", "file": "work on files", "error": "errors",
    "decision": "decisions", "answer": "answers", "told": "prompts",
}  # fmt: skip


def understand(text: str, now: int | None = None, zone: tzinfo = UTC) -> Understanding:
    """Return the time, the speaker and the kind of answer that a question means. Never raises."""
    text = lower_case(" ".join(text.split()))
    tokens = set(re.findall(r"\w+", text))
    speaker, spoken = _find_speaker(text, tokens)
    intent = _find_intent(text, tokens)
    if not intent and not speaker and _asks_about_oneself(text, tokens):
        intent = "told"
    return Understanding(find_times(text, now, zone), speaker, intent, spoken)


# --- a parsed query ---


class UnderstoodQuery(Struct, frozen=True):
    """A query without the words that only express what was understood."""

    query: SearchQuery
    meant: Understanding = NOTHING
    is_listing: bool = False  # there are no other words: the messages of that time or speaker are the answer

    def note(self, fits: bool = True) -> str:
        """Say what was looked at first, or that nothing fits it, and how to search without it."""
        looked_for = self.meant if fits else replace(self.meant, intent="")  # what fits is a matter of time and speaker
        if not (preferred := looked_for.describe()):
            return ""
        found = f"looked first at {preferred}" if fits else f"found nothing in {preferred}: these are other messages"
        return f"{found}; literal:yes searches for the words as they are"


def split_literal(query: SearchQuery) -> tuple[SearchQuery, bool]:
    """Return the query without `literal:`, and whether it is `literal:yes`. Raises UsageError for another value."""
    rest = tuple(one for one in query.filters if one.name != "literal")
    literal = False
    for one in query.filters:
        if one.name == "literal":
            if one.value.lower() not in YES_NO:
                raise UsageError(f"literal:{one.value} is not valid; give literal:yes or literal:no, or leave it out")
            literal = YES_NO[one.value.lower()] is not one.negated
    return replace(query, filters=rest), literal


def understand_query(query: SearchQuery, filters: SearchFilters, now: int | None = None) -> UnderstoodQuery:
    """Understand the plain words of a query, as far as no filter says the same."""
    plain = _plain_pieces(query)
    if query.regex or not plain:
        return UnderstoodQuery(query)
    text, places = _joined_text(query, plain)
    meant = _without_filtered(understand(text, now), filters)
    if meant == NOTHING:
        return UnderstoodQuery(query)
    pieces = tuple(_cut_pieces(query.pieces, places, meant.used_ranges))
    left = [piece for piece in pieces if not piece.negated]
    if any(piece.quoted or piece.text.lower().strip("?!.,;") not in STOP_WORDS for piece in left):
        return UnderstoodQuery(replace(query, pieces=pieces), meant)
    return UnderstoodQuery(query, meant, is_listing=bool(meant.speaker or meant.span))


def _plain_pieces(query: SearchQuery) -> set[int]:
    """Return the numbers of the pieces that are plain words, alone in their group."""
    groups = [piece.group for piece in query.wanted_phrases]
    return {
        number
        for number, piece in enumerate(query.pieces)
        if not (piece.quoted or piece.prefix or piece.negated) and groups.count(piece.group) == 1
    }


def _joined_text(query: SearchQuery, plain: set[int]) -> tuple[str, dict[int, Range]]:
    """Return the plain words as one text, and where each piece is. A sign stands for every other piece."""
    parts: list[str] = []
    places: dict[int, Range] = {}
    length = 0
    for number, piece in enumerate(query.pieces):
        part = piece.text if number in plain else _OTHER
        if number in plain:
            places[number] = length, length + len(part)
        parts.append(part)
        length += len(part) + 1
    return " ".join(parts), places


_OTHER = "\0"


def _without_filtered(meant: Understanding, filters: SearchFilters) -> Understanding:
    """Leave out what a filter decides."""
    if filters.since is not None or filters.until is not None:
        meant = replace(meant, times=())
    if filters.origins or filters.fields:
        meant = replace(meant, speaker="", spoken=(), intent="")
    if filters.tools or filters.errors is not None:
        meant = replace(meant, intent="")
    return meant


def _cut_pieces(
    pieces: tuple[QueryPhrase, ...], places: dict[int, Range], used: tuple[Range, ...]
) -> Iterator[QueryPhrase]:
    """Yield the pieces without the used characters. Where words are not separated, a part of a piece may be left."""
    for number, piece in enumerate(pieces):
        first, last = places.get(number, (0, 0))
        inside = [(max(start, first), min(end, last)) for start, end in used if start < last and end > first]
        if not inside:
            yield piece
            continue
        ends = [first, *(end for pair in inside for end in pair), last]
        left = [piece.text[start - first : end - first] for start, end in zip(ends[::2], ends[1::2], strict=True)]
        rest = " ".join(part for part in left if any(True for _ in each_term(part)))
        if rest:
            yield replace(piece, text=rest)


def _merge_ranges(ranges: list[Range]) -> tuple[Range, ...]:
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return tuple(merged)


# --- who spoke ---


class _SpeakerForm(Struct, frozen=True):
    """A phrase that says who spoke. It is tried, and compiled, only for a text with one of the words or signs `hints`.

    The groups of the pattern are the words that only say who spoke; without groups it is the whole match.
    """

    speaker: str
    hints: str
    pattern: re.Pattern[str]

    def applies(self, text: str, tokens: set[str]) -> bool:
        return any(hint in tokens if hint.isascii() else hint in text for hint in self.hints.split())


def _speaker_form(speaker: str, hints: str, pattern: str) -> _SpeakerForm:
    return _SpeakerForm(speaker, hints, lazy_pattern(pattern))


_SAY = "say|ask|tell|mention|request|instruct|specify|insist|demand|complain|report|type|prompt|write|point out|answer|reply|respond"
_SAID = (
    "said|asked|told|mentioned|requested|instructed|specified|insisted|demanded|complained|reported|typed|prompted|"
    "wrote|pointed out|answered|replied|responded"
)
_REPLY = "say|answer|reply|respond|suggest|recommend|propose|advise|explain|tell|mention|claim|promise|warn|conclude|point out"
_REPLIED = (
    "said|answered|replied|responded|suggested|recommended|proposed|advised|explained|told|mentioned|claimed|promised|"
    "warned|concluded|pointed out"
)
_USER, _ASSISTANT = "i|the user|user", "you|the assistant|assistant|the agent|the model|the ai"
_ADVERBS = r"(?: (?:ever|already|just|once|previously|originally|actually|last|first|also|exactly|initially)){0,2}"
_WHOSE = "(?:last |first |original |earlier )?"

_SPEAKER_FORMS = (
    _speaker_form("user", "i user", rf"\b(?:did|have|had|do|does|has) (?:{_USER}){_ADVERBS} (?:{_SAY}|{_SAID})\b(?: (?:to )?you\b)?"),
    _speaker_form("user", "i user", rf"\b(?:{_USER})(?: have|['’]ve| had| has)?{_ADVERBS} (?:{_SAID})\b(?: (?:to )?you\b)?"),
    _speaker_form("user", "my", rf"\b(?:was|were|is|are) my {_WHOSE}(?:question|prompt|request|instruction|requirement)s?\b"),
    _speaker_form("assistant", "you assistant agent model ai",
                  rf"\b(?:did|have|had|do|does|has) (?:{_ASSISTANT}){_ADVERBS} (?:{_REPLY}|{_REPLIED})\b(?: (?:to )?me\b)?"),
    _speaker_form("assistant", "you assistant agent model ai",
                  rf"\b(?:{_ASSISTANT})(?: have|['’]ve| had| has)?{_ADVERBS} (?:{_REPLIED})\b(?: (?:to )?me\b)?"),
    _speaker_form("assistant", "your", rf"\byour {_WHOSE}(?:answer|reply|response|suggestion|recommendation|advice|proposal|explanation)s?\b"),
    _speaker_form("user", "ich", r"\b(habe? ich)\b.{0,80}?\b(gesagt|gefragt|erwähnt|geschrieben|gebeten|verlangt)\b"),
    _speaker_form("user", "ich", r"\b(?:ich (?:sagte|fragte|bat)|(?:sagte|fragte|bat) ich)\b"),
    _speaker_form("assistant", "du", r"\b(hast du)\b.{0,80}?\b(gesagt|geantwortet|vorgeschlagen|empfohlen|erklärt)\b"),
    _speaker_form("assistant", "du", r"\b(?:du (?:sagtest|meintest)|(?:sagtest|meintest) du)\b"),
    _speaker_form("user", "ai", r"(?:\bai-je|\bj['’]ai|\bje t['’]ai|\bje vous ai) (?:dit|demandé|écrit|mentionné)\b"),
    _speaker_form("assistant", "as avez", r"(?:\bas-tu|\bavez-vous|\btu as|\bvous avez|\btu m['’]as) (?:dit|répondu|suggéré|proposé|recommandé|expliqué)\b"),
    _speaker_form("user", "dije pregunté pedí mencioné", r"\b(?:te )?(?:dije|pregunté|pedí|mencioné)\b"),
    _speaker_form("assistant", "dijiste respondiste sugeriste recomendaste propusiste explicaste",
                  r"\b(?:me )?(?:dijiste|respondiste|sugeriste|recomendaste|propusiste|explicaste)\b"),
    _speaker_form("user", "私 僕 俺", r"((?:私|僕|俺)[がは]).{0,40}?(言った|言いました|聞いた|聞きました|頼んだ|頼みました|質問した|質問しました)"),
    _speaker_form("assistant", "あなた 君 アシスタント",
                  r"((?:あなた|君|アシスタント)[がは]).{0,40}?(言った|言いました|答えた|答えました|提案した|提案しました|勧めた|説明した)"),
    _speaker_form("user", "我", r"(我)[^你我]{0,12}?((?:说|问|提到|要求)[了过]?)"),
    _speaker_form("assistant", "你", r"(你)[^你我]{0,12}?((?:说|回答|建议|推荐|解释)[了过]?)"),
)  # fmt: skip


_ASKS = ("did ", "have ", "had ", "do ", "does ", "has ")
#: What comes behind says when something was said, not who said it: `what did the tool print when I asked …`.
_CIRCUMSTANCE = lazy_pattern(r"\b(?:when|while|after|before|once|because|since|as|if|where)\s+$")


def _find_speaker(text: str, tokens: set[str]) -> tuple[str, tuple[Range, ...]]:
    """Return who spoke, by the first phrase that says so, and where such words are."""
    found = [
        (match.start(), form.speaker, match)
        for form in _SPEAKER_FORMS
        if form.applies(text, tokens)
        and (match := form.pattern.search(text))
        and (match[0].startswith(_ASKS) or not _CIRCUMSTANCE.search(text, 0, match.start()))
    ]
    if not found:
        return "", ()
    numbers = [range(1, len(match.groups()) + 1) or range(1) for _, _, match in found]
    spans = {match.span(number) for (_, _, match), some in zip(found, numbers, strict=True) for number in some}
    return min(found, key=lambda one: one[:2])[1], tuple(sorted(spans))


# --- what kind of answer ---

_ASKING = r"\b(?:what|which|why|when|where|who|how|did|do|was|were|is)\b"
_NOT = "must not|mustn['’]t|should not|shouldn['’]t|never|not allowed|not to|forbidden|forbid|forbade|prohibited|prohibit|ruled out|rule out"
_ERRORS = "errors|error|exceptions|exception|traceback|fail|failed|fails|failing|failure|crash|crashed|crashes|broke"
_DECISIONS = (
    "decide|decided|decision|decisions|agree|agreed|settle on|settled on|choose|chose|want to|wanted to|go with|went with|"
    "plan to|planned to"
)
_INTENTS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("prohibition", "not never t forbidden forbid forbade prohibited prohibit ruled rule", lazy_pattern(rf"{_ASKING}.{{0,80}}\b(?:{_NOT})\b")),
    ("command", "command commands cmd", lazy_pattern(r"\b(?:what|which)(?: \w+){0,2} (?:commands?|cmd)\b")),
    ("command", "run start launch invoke", lazy_pattern(r"\bhow did (?:i|we|you) (?:run|start|launch|invoke)\b")),
    ("file", "file files module modules script scripts", lazy_pattern(r"\b(?:what|which)(?: \w+){0,2} (?:files?|modules?|scripts?)\b")),
    ("file", "put save define implement", lazy_pattern(r"\bwhere did (?:i|we|you) (?:put|save|define|implement)\b")),
    ("error", _ERRORS.replace("|", " "), lazy_pattern(rf"{_ASKING}.{{0,80}}\b(?:{_ERRORS})\b")),
    ("decision", _DECISIONS.replace("|", " "), lazy_pattern(rf"{_ASKING}.{{0,80}}\b(?:{_DECISIONS})\b")),
    ("when", "when day date week month long", lazy_pattern(r"(?:when\b|(?:on )?(?:what|which) (?:day|date|week|month)\b|how long ago\b)")),
)  # fmt: skip


#: Words of a text that is a whole prompt, unless it begins like a question.
_WHOLE_PROMPT = 20
_QUESTION = lazy_pattern(
    r"\W*(?:what|which|when|where|who|whose|whom|why|how|did|do|does|is|are|was|were|am|can|could|should|would|will|have|has|had)\b"
)


def _find_intent(text: str, tokens: set[str]) -> str:
    if len(text.split()) > _WHOLE_PROMPT and not _QUESTION.match(text):
        return "answer"  # prompts like it only ask the same
    for intent, hints, pattern in _INTENTS:
        find = pattern.match if intent == "when" else pattern.search
        if not tokens.isdisjoint(hints.split()) and find(text):
            return intent
    return ""


_ONESELF = frozenset(("i", "my", "me", "mine", "myself"))


def _asks_about_oneself(text: str, tokens: set[str]) -> bool:
    """Whether a question is about the one who asks: what they did, have or want, they told in a prompt.

    Who wants to be reminded may have heard it from the assistant.
    """
    is_question = text.endswith("?") or _QUESTION.match(text) is not None
    return is_question and not tokens.isdisjoint(_ONESELF) and "remind" not in tokens
