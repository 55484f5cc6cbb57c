"""Prefer the hits that fit what a question means: its time, who spoke, and the kind of answer.

Nothing is lost: the scores of hits that fit are multiplied, so that they come first and the others follow. A second
query within the time and by the speaker (`narrow_filters`) finds the messages that are too far behind for the first one.
The factors are at least 1.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.archive import Call, MessageRow
from everturn.retrieval.question import Understanding
from everturn.retrieval.scope import SearchFilters
from everturn.store.contract import IndexHit, Store
from everturn.text.time_phrases import SpokenTime
from everturn.text.times import EARLIEST, LATEST


class Factors(Struct, frozen=True):
    """How much more a hit counts that fits."""

    within: float = 4.0  # the time
    near: float = 2.0  # a little before or after it
    dated: float = 2.0  # a day, month or year by its name: what happened then is often told later
    near_date: float = 1.4
    soft: float = 1.3  # a time that is not exact
    speaker: float = 1.3  # the words of the one who spoke
    same_role: float = 1.1  # another message of the same role: a call, a thought, a prompt of another agent
    intent: float = 1.02  # more of it moved right answers down
    answer: float = 1.2  # an answer, if the text is a whole prompt
    told: float = 1.2  # a prompt, if somebody asks about themselves


FACTORS = Factors()
#: Hits whose messages are looked up.
LOOKED_AT = 200

#: Fields and origins of the words of a speaker.
_FIELDS = {"user": ("prompt",), "assistant": ("answer",)}
_ORIGINS = {"user": ("human", "agent"), "assistant": ("model",)}
_KINDS = {"command": ("shell",), "file": ("edit", "create", "delete", "read")}
_SAID_BY = {"decision": ("human", "model"), "prohibition": ("human",), "error": ("human",)}

Key = tuple[int, int]  # session and seq


def narrow_filters(filters: SearchFilters, meant: Understanding, slack: bool = True) -> SearchFilters | None:
    """Return the filters with the understood time, with its slack by default, and speaker; None if there is neither."""
    span = meant.span
    if span is None and not meant.speaker:
        return None
    changes: dict[str, object] = {}
    if span is not None:
        around = max(time.slack for time in meant.times if time.is_definite) if slack else 0
        changes["since"] = None if span[0] <= EARLIEST else span[0] - around
        changes["until"] = None if span[1] >= LATEST else span[1] + around
    if meant.speaker:
        changes["fields"] = _FIELDS[meant.speaker]
    return replace(filters, **changes)


def prefer_hits(store: Store, meant: Understanding, wide: list[IndexHit], narrow: list[IndexHit]) -> list[IndexHit]:
    """Return the hits of both queries, those that fit first."""
    spoken = {(hit.session, hit.seq) for hit in narrow} if meant.speaker else set[Key]()
    scores: dict[Key, float] = {}
    for hit in (*wide, *narrow):
        key = hit.session, hit.seq
        scores[key] = max(hit.score, scores.get(key, 0.0))
    looked_at = dict.fromkeys((hit.session, hit.seq) for hit in (*narrow[:LOOKED_AT], *wide[:LOOKED_AT]))
    facts = _MessageFacts(store, looked_at, bool(meant.times))
    for key in looked_at:
        scores[key] *= facts.factor(key, meant, key in spoken)
    order = sorted((-score, -session, seq) for (session, seq), score in scores.items())
    return [IndexHit(-session, seq, -score) for score, session, seq in order]


def time_factor(times: Iterable[SpokenTime], at: int | None, until: int | None) -> float:
    """Return the factor of a message or session that lasted from `at` to `until`: the best of all times."""
    best = 1.0
    if at is None or until is None:
        return best
    for time in times:
        if at < max(time.last, time.first + 1) and until >= time.first:
            within = FACTORS.dated if time.is_dated else FACTORS.within
            best = max(best, within if time.is_definite else FACTORS.soft)
        elif time.is_definite and at < time.last + time.slack and until >= time.first - time.slack:
            best = max(best, FACTORS.near_date if time.is_dated else FACTORS.near)
    return best


def speaker_factor(speaker: str, origin: str, is_spoken: bool) -> float:
    """Return the factor of a message by its author; `is_spoken` if the words are in what the speaker said."""
    if not speaker or origin not in _ORIGINS[speaker]:
        return 1.0
    return FACTORS.speaker if origin == "human" or (origin == "model" and is_spoken) else FACTORS.same_role


def intent_factor(intent: str, row: MessageRow, calls: list[Call]) -> float:
    """Return the factor of a message for a kind of answer; `calls` are those it makes or holds the result of."""
    if intent == "answer":
        return FACTORS.answer if row.origin == "model" and row.kind == "text" else 1.0
    if intent == "told":
        return FACTORS.told if row.origin == "human" else 1.0
    fits = row.origin in _SAID_BY.get(intent, ())
    if intent == "error":
        fits = fits or row.origin == "tool" or any(call.status == "error" for call in calls)
    kinds = _KINDS.get(intent, ())
    return FACTORS.intent if fits or any(call.kind in kinds for call in calls) else 1.0


class _MessageFacts:
    """The rows of hits, read with few queries."""

    def __init__(self, store: Store, keys: Iterable[Key], with_times: bool) -> None:
        self._store = store
        self._rows: dict[Key, MessageRow] = {}
        self._calls: dict[Key, list[Call]] = {}  # by session and turn
        wanted = list(keys)
        self._times = store.times(list(dict.fromkeys(session for session, _ in wanted))) if with_times else {}
        for row in store.messages_at([key for key in wanted if key[1] >= 0]):
            self._rows[row.session, row.seq] = row

    def factor(self, key: Key, meant: Understanding, is_spoken: bool) -> float:
        row = self._rows.get(key)
        if row is None or row.at is None:
            by_time = time_factor(meant.times, *self._times.get(key[0], (None, None)))
        else:
            by_time = time_factor(meant.times, row.at, row.at)
        if row is None:
            return by_time
        by_intent = intent_factor(meant.intent, row, self._calls_of(row, meant.intent))
        return by_time * by_intent * speaker_factor(meant.speaker, row.origin, is_spoken)

    def _calls_of(self, row: MessageRow, intent: str) -> list[Call]:
        if intent not in ("command", "file", "error") or row.origin not in ("model", "tool"):
            return []
        key = row.session, row.turn
        if key not in self._calls:
            self._calls[key] = list(self._store.calls(*key))
        return [call for call in self._calls[key] if row.seq in (call.seq, call.result_seq)]
