"""The name and the goal of a session, as it grew.

The words are those of the session; every statement cites the messages it rests on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from everturn.derive.intent import (
    BY_COMMAND,
    CLIENT_COMMANDS,
    PASTED,
    adds_work,
    asks_for_work,
    is_routine_request,
    names_subject,
    says_nothing_new,
    topic_words,
    word_count,
)
from everturn.derive.session_state import SessionState, TurnRequest
from everturn.restore.evidence import (
    DraftStatement,
    StatementMaterial,
    fact_statement,
    safe_excerpt,
    saying_statement,
)
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import fit_request, one_line, orders_work
from everturn.text.stance_words import SMALL_TALK

_GOAL = 420
_GROWN, _GROWN_MANY, _MANY = 240, 180, 3  # cells of each later request: of two, and of more
_MOST_GROWN = 3
_FEW_TOPICS = 2  # words that say what a request is about
_MOST_WORK = 8  # of one turn
_ALIKE, _LEAST_WORK = 0.6, 0.2  # of the words of two requests, and of the work of the first
_MOST_HEADS = 100  # requests to which later ones are compared
_FEW_WORDS = 4  # a shorter request is not the goal
_MANY_WORDS = 12  # a longer request says something of its own


def session_name(material: StatementMaterial) -> Iterator[DraftStatement]:
    """The title the client keeps, else the beginning of the goal."""
    title = one_line(material.text.title, 120)
    goal = find_goal(material.state)
    if title:
        proof = material.proofs.evidence(goal.seq, title) if goal is not None else None
        is_quoted = proof is not None and proof.quote == title
        quotes = [(goal.seq, title)] if goal and is_quoted else []
        yield fact_statement(material, 100, lambda: title, quotes, "" if is_quoted else "title")
    elif goal is not None:
        yield saying_statement(material, 100, (goal.seq, goal.text), width=80)


def high_level_goal(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Return the first request that asks for work, and later ones that most of the work belongs to or that add some."""
    state = material.state
    goal = find_goal(state)
    if goal is None:
        return
    words, later = request_words(goal), _find_growth(state)
    title = one_line(material.text.title, 120)
    named = f"{title} (title): " if title and _says_little(words) else ""

    def text() -> str:
        first = f"{named}{safe_excerpt(material, (goal.seq, words), _GOAL)}"
        width = _GROWN if len(later) < _MANY else _GROWN_MANY
        grown = (safe_excerpt(material, (one.seq, fit_request(request_words(one), width)), width) for one in later)
        return " — later: ".join(one for one in (first, " · ".join(grown)) if one)

    refs = [(one.seq, request_words(one).removeprefix(PASTED).removeprefix(BY_COMMAND)) for one in (goal, *later)]
    yield fact_statement(material, 99, text, refs)
    if state.recap is not None and (told := _SUMMARY_GOAL.search(state.recap.text)):
        words = fit_request(told[1], _GOAL)
        yield saying_statement(material, 79, (state.recap.seq, words), label="compaction summary", width=_GOAL)


#: Where a client's summary says what the person wants.
_SUMMARY_GOAL = lazy_pattern(r"\bPrimary Request(?: and Intent)?[:* \t]*\n?(\S[^\n]{20,2000})", re.IGNORECASE)


def request_words(one: TurnRequest) -> str:
    return one.wants or one.text


def _says_little(words: str) -> bool:
    """Whether the words of a request do not say what it is about without its title."""
    return word_count(words) < _FEW_WORDS or words.startswith(PASTED) or len(topic_words(words)) < _FEW_TOPICS


def find_goal(state: SessionState) -> TurnRequest | None:
    """Return the first request that asks for work."""
    requests = [one for one in state.requests if one.starter == "human"] or list(state.requests)
    first = requests[0] if requests else state.goal
    said = next((one for one in requests if _says_something(one)), first)
    long = next((one for one in requests if word_count(one.text) >= _FEW_WORDS), None)
    long = long or max(requests, key=lambda one: len(one.text), default=first)
    answered = {one.turn for one in state.answers}
    wanted = [one for one in requests if not one.about and _opens_work(one, answered)]
    returning = routine_messages(state)
    spoken = [
        one
        for one in wanted
        if not request_words(one).startswith(BY_COMMAND) and (one is first or request_words(one) not in returning)
    ]
    told = next(
        (one for one in spoken if names_subject(request_words(one)) or not is_routine_request(request_words(one))),
        None,
    )
    if told is not None and (told is spoken[0] or orders_work(request_words(told))):
        begun = min(wanted[0], said or wanted[0], key=lambda one: one.seq)
        return begun if _only_asks_after(told, begun) else told
    return next(iter((*spoken, *wanted)), long)


def _opens_work(one: TurnRequest, answered: set[int]) -> bool:
    """Whether a request asks for work, be it by a command without arguments that an answer followed."""
    words = request_words(one).strip()
    name = words.removeprefix("/").replace(":", "").replace("-", "") if words.startswith("/") else ""
    return asks_for_work(words) or (name.isalnum() and one.turn in answered and words[1:] not in CLIENT_COMMANDS)


def _says_something(one: TurnRequest) -> bool:
    """Whether a request is more than a greeting, an agreement or a command of the client."""
    words = request_words(one).strip()
    return word_count(words) >= _FEW_WORDS and not (
        words.startswith("/") or SMALL_TALK.match(words) or says_nothing_new(words)
    )


def _only_asks_after(told: TurnRequest, begun: TurnRequest) -> bool:
    """Whether a request neither orders anything nor says much: what came before it is what the session is for."""
    words = request_words(told)
    return told.seq > begun.seq and word_count(words) <= _MANY_WORDS and not orders_work(words)


def _find_growth(state: SessionState) -> list[TurnRequest]:
    """Return the later requests that most of the work belongs to, and the latest that adds some, in their order."""
    goal = find_goal(state)
    added = _added_requests(state, goal) if goal is not None else []
    if goal is None or not added:
        return []
    weights = _weigh_requests(state, goal, added)
    latest = next((one for one in reversed(added) if orders_work(request_words(one))), added[-1])
    least = _LEAST_WORK * max(weights[one.seq] for one in added)
    heavy = [one for one in added if weights[one.seq] > least]
    chosen: list[TurnRequest] = []
    for one in (latest, *sorted(heavy, key=lambda one: -weights[one.seq])):
        if len(chosen) < _MOST_GROWN and not any(_is_alike(one, other) for other in (goal, *chosen)):
            chosen.append(one)
    return sorted(chosen, key=lambda one: one.seq)


def _added_requests(state: SessionState, goal: TurnRequest) -> list[TurnRequest]:
    """Return the requests after the goal that add work."""
    routine = routine_messages(state)
    return [
        one
        for one in state.requests
        if one.starter == "human"
        and one.seq > goal.seq
        and not one.about
        and request_words(one) not in routine
        and adds_work(request_words(one))
        and not is_routine_request(request_words(one))
    ]


def routine_messages(state: SessionState) -> set[str]:
    """Return the messages that come back after others: they belong to every turn."""
    places: dict[str, list[int]] = {}
    for at, one in enumerate(one for one in state.requests if one.starter == "human"):
        places.setdefault(request_words(one), []).append(at)
    return {words for words, at in places.items() if at[-1] - at[0] > len(at) or len(at) > _MOST_GROWN}


def _weigh_requests(state: SessionState, goal: TurnRequest, added: list[TurnRequest]) -> Counter[int]:
    """Return how much of the work belongs to each request: to the first that was about the same, else to the one before."""
    work = Counter([*(one.turn for one in state.commands), *(one.turn for one in state.answers)])
    for one in state.files.values():
        work.update({one.first, one.turn} if one.count else ())
    weights: Counter[int] = Counter()
    heads, current, can_lead = [(goal, topic_words(request_words(goal)))], goal, {one.seq for one in added}
    for request in state.requests:
        if request.seq <= goal.seq or request.starter != "human":
            continue
        words = request_words(request)
        subject = topic_words(words)
        known = next((one for one, topic in heads if len(topic & subject) >= _FEW_TOPICS), None)
        if known is None and request.seq in can_lead and orders_work(words):
            known = request
            heads += [(request, subject)] if len(heads) < _MOST_HEADS else []
        current = known or current
        done = 1 + min(work[request.turn], _MOST_WORK)
        weights[current.seq] += done
        weights[request.seq] += 1 + min(len(subject), _MOST_WORK) // 3 + (done if current is not request else 0)
    return weights


def _is_alike(one: TurnRequest, other: TurnRequest) -> bool:
    """Whether two requests say much the same."""
    first, second = topic_words(request_words(one)), topic_words(request_words(other))
    return one.text == other.text or len(first & second) > _ALIKE * max(1, min(len(first), len(second)))
