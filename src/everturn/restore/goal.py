"""What a person asked for: the name and the goal of a session as it grew, the current task, and the request of each turn.

Each function makes the statements of one section of a document without a model. The words are those of the session; every
statement cites the messages it rests on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from everturn.derive.failures import hear_report
from everturn.derive.intent import (
    BY_COMMAND,
    PASTED,
    adds_work,
    asks_for_work,
    asks_question,
    is_bare_command,
    is_routine_request,
    join_meaning,
    names_subject,
    says_nothing_new,
    steers_client,
    topic_words,
    word_count,
)
from everturn.derive.pointers import lacks_object
from everturn.derive.session_state import SessionState, TurnRequest
from everturn.restore.evidence import (
    DraftStatement,
    StatementMaterial,
    Words,
    fact_statement,
    rank_latest,
    safe_excerpt,
    saying_statement,
    weight_by_rank,
)
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import cut_words, fit_parts, fit_request, one_line, orders_work
from everturn.text.stance_words import SMALL_TALK
from everturn.text.trouble_words import DEMANDS, ONLY_LOOKS

_GOAL = 420
_GROWN, _GROWN_MANY, _MANY = 240, 180, 3  # cells of each later request: of two, and of more
_MOST_GROWN = 3
_FEW_TOPICS = 2  # words that say what a request is about
_MOST_WORK = 8  # of one turn
_ALIKE, _LEAST_WORK = 0.6, 0.2  # of the words of two requests, and of the work of the first
_FEW_SIGNS = 4  # of a text that was typed
_MACHINE = lazy_pattern(r"[{}\[\]<>|=;]|://|\w{3}Error\b|:\d+\b")
_MOST_HEADS = 100  # requests to which later ones are compared
_FEW_WORDS = 4  # a shorter request is not the goal
_ASKED = 120  # cells of the question with which a session began
_MANY_WORDS = 12  # a longer request says something of its own
_WHOLE, _PARTS = 2_400, 900  # cells of a request with several parts: read, and shown
_SAME = 80  # characters: nobody types a longer message again and again
_PICK = 3  # characters: a shorter reply is a letter, a number or a yes
_FOCUS = 300
_ANSWER = 2_400  # characters of the last answer
_OPENING = 160
_WIDEST, _ALL = 300, 3_000  # cells of a request or an answer, and of all of them
_AGAIN = 48  # cells of a request that stands elsewhere
_MEANT = 80  # cells of what a request refers to
_LATE = 3  # requests that are shown with more of their answer
#: What is said before the last call of a session, or before the words of the service that stopped it, by `Ending.kind`.
ENDING_LEADS = {
    "service": "stopped by the service: ",
    "refused": "the person refused the last call: ",
    "no result": "last call, without a result: ",
    "calls": "last call, no answer after it: ",
}


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
        words = join_meaning(goal.text, goal.meant.text if goal.meant is not None else "")
        yield fact_statement(
            material, 100, lambda: safe_excerpt(material, (goal.seq, words), 80), request_refs(goal, goal.text)
        )


def high_level_goal(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Return the first request that asks for work, and later ones that most of the work belongs to or that add some."""
    state = material.state
    goal = find_goal(state)
    if goal is None:
        return
    opening, goal = goal, find_requirement(state, goal) or goal
    words, later = told_words(goal), [one for one in _find_growth(state) if one is not goal]
    title = one_line(material.text.title, 120)
    named = f"{title} (title): " if title and _says_little(words) else ""

    def text() -> str:
        first = f"{named}{safe_excerpt(material, (goal.seq, words), _GOAL)}"
        width = _GROWN if len(later) < _MANY else _GROWN_MANY
        grown = (safe_excerpt(material, (one.seq, fit_request(told_words(one), width)), width) for one in later)
        asked = f" — asked first: {cut_words(told_words(opening), _ASKED)}" if opening is not goal else ""
        return f"{' — later: '.join(one for one in (first, ' · '.join(grown)) if one)}{asked}"

    cited = (goal, *later, opening) if opening is not goal else (goal, *later)
    yield fact_statement(material, 99, text, [ref for one in cited for ref in request_refs(one)])
    if state.recap is not None and (told := _SUMMARY_GOAL.search(state.recap.text)):
        words = fit_request(told[1], _GOAL)
        yield saying_statement(material, 79, (state.recap.seq, words), label="compaction summary", width=_GOAL)


#: Where a client's summary says what the person wants.
_SUMMARY_GOAL = lazy_pattern(r"\bPrimary Request(?: and Intent)?[:* \t]*\n?(\S[^\n]{20,2000})", re.IGNORECASE)


def request_words(one: TurnRequest) -> str:
    return one.wants or one.text


def told_words(one: TurnRequest) -> str:
    """Return the words of a request with what they refer to."""
    return join_meaning(request_words(one), one.meant.text if one.meant is not None else "")


def request_refs(one: TurnRequest, words: str = "") -> list[Words]:
    """Return the messages that `told_words` rests on, with the words of each."""
    said = (words or request_words(one)).removeprefix(PASTED).removeprefix(BY_COMMAND)
    return [(one.seq, said), *([(one.meant.seq, one.meant.text)] if one.meant is not None else [])]


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


def find_requirement(state: SessionState, goal: TurnRequest) -> TurnRequest | None:
    """Return the request that says what is wanted after an opening that only looked at the matter; None if there is none."""
    begun = min((one.turn if one.reads else one.first for one in state.files.values() if one.count), default=-1)
    words = request_words(goal)
    if (
        begun <= goal.turn
        or not (asks_question(words) or ONLY_LOOKS.match(words))
        or word_count(words) > _MANY_WORDS * 2
    ):
        return None
    subject = topic_words(words)
    later = [one for one in _added_requests(state, goal) if one.turn <= begun][:_MOST_GROWN]
    about = [one for one in later if len(topic_words(request_words(one)) & subject) >= _FEW_TOPICS]
    richest = max(about, key=lambda one: len(topic_words(request_words(one))), default=None)
    return richest if richest is not None and len(topic_words(request_words(richest))) > len(subject) else None


def _opens_work(one: TurnRequest, answered: set[int]) -> bool:
    """Whether a request asks for work, be it by a command without arguments that an answer followed."""
    words = request_words(one)
    return asks_for_work(words) or (one.turn in answered and is_bare_command(words))


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
    added = [one for one in _added_requests(state, goal) if _says_what(request_words(one))] if goal is not None else []
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


def _says_what(words: str) -> bool:
    """Whether a later request says what is to be done, and is no output, no report, and no demand without an object."""
    if lacks_object(words):
        return False
    if orders_work(words) or DEMANDS.search(words):
        return True
    complaint, confirms = hear_report(words)
    return complaint is None and not confirms and len(_MACHINE.findall(words)) < _FEW_SIGNS


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


# --- the current task, and the requests ---
def primary_task(material: StatementMaterial) -> Iterator[DraftStatement]:
    """The last request with all its parts, the plan item in progress, and the last answer, whole if there is room."""
    state = material.state
    last = last_request(state)
    newest = state.requests[-1] if state.requests else None
    if newest is not None and newest is not last and newest.about:
        about = f" (answers: {one_line(newest.about, _FOCUS)})"
        yield saying_statement(material, 97, (newest.seq, newest.text), tail=about)
    if last is not None:
        whole = material.proofs.excerpt(last.seq, "prompt", _WHOLE)
        parts = "" if whole.endswith("…") or last.wants.startswith(PASTED) else fit_parts(whole, _PARTS)
        words = (parts or fit_request(told_words(last), _FOCUS)).removeprefix(PASTED).removeprefix(BY_COMMAND)
        refs = request_refs(last, words if last.meant is None else "")
        yield fact_statement(material, 98, lambda: safe_excerpt(material, (last.seq, words), _PARTS), refs)
    for item in state.plan:
        if item.status == "doing":
            yield saying_statement(material, 97, (item.seq, item.text), lead="in progress: ")
    if state.answer is not None and (last is None or state.answer.seq > last.seq):
        yield from _last_answer(material, state.answer)
    if state.ending is not None:
        tail = f" → {one_line(state.ending.result, _FOCUS)}" if state.ending.result else ""
        yield saying_statement(
            material, 96, (state.ending.seq, state.ending.text), ENDING_LEADS[state.ending.kind], tail, width=_FOCUS
        )
    if state.interrupted:
        yield fact_statement(material, 96, lambda: f"turn {state.turn_count} was interrupted", [(state.covers, "")])


def requests(material: StatementMaterial) -> Iterator[DraftStatement]:
    """The request of each turn with the question it answers and the beginning of its answer, the latest first.

    Of what the goal and the task say already, the first words are enough.
    """
    answers = {one.turn: one for one in material.state.answers}
    last = {one.turn: one.seq for one in material.state.requests}
    told = {one.seq for one in (find_goal(material.state), last_request(material.state)) if one is not None}
    for rank, one in rank_latest([one for one in material.state.requests if one.text]):
        answer = answers.get(one.turn) if last[one.turn] == one.seq else None
        yield _draft_request(material, one, answer, rank, one.seq in told)


# --- texts ---
def last_request(state: SessionState) -> TurnRequest | None:
    """Return the last request of a person that is more than thanks, praise, a letter, a word to go on or a command of the client."""
    spoken = [one for one in state.requests if one.starter == "human" and one.text]
    routine = routine_messages(state)
    said = (
        one
        for one in reversed(spoken)
        if len(one.text) >= _PICK
        and not (says_nothing_new(one.text) or steers_client(one.text))
        and not (len(one.text) > _SAME and request_words(one) in routine)
    )
    return next(said, spoken[-1] if spoken else None)


def _last_answer(material: StatementMaterial, answer: TurnRequest) -> Iterator[DraftStatement]:
    """Yield the beginning of the last answer, and all of it apart: a small budget has room for the first only.

    A long answer is shown without its middle: what is left to do, and what was found, often stands at its end.
    """
    whole, end = material.proofs.ends(answer.seq, "answer", _ANSWER)
    is_short = len(whole) <= len(answer.text)
    width = len(answer.text) if is_short else _OPENING
    lead = "the agent's last answer, before its last calls: " if material.state.ending else "the agent's last answer: "
    yield saying_statement(material, 96, (answer.seq, answer.text), lead=lead, width=width)
    if end:
        said = f"{lead[:-2]}, beginning and end: {whole} [… the middle is left out …] {end}"
        yield fact_statement(material, 83, lambda: said, [(answer.seq, whole)])
    elif not is_short:
        yield saying_statement(material, 83, (answer.seq, whole), lead=f"{lead[:-2]}, in full: ", width=_ANSWER)


def _draft_request(
    material: StatementMaterial, one: TurnRequest, answer: TurnRequest | None, rank: int, is_told: bool
) -> DraftStatement:
    label = "" if one.starter == "human" else one.starter
    weight = weight_by_rank(82, rank, 24, 0.9)
    share = min(_WIDEST, _ALL // max(1, len(material.state.requests)))  # few requests have room for more of their words
    width = _AGAIN if is_told else max(share, 160 if rank < 5 else 90)
    about = f" (answers: {one_line(one.about, width)})" if one.about else ""
    words = one.text if one.wants == one.text or not one.wants else fit_request(one.wants, width)
    about = f"{_meaning_tail(material, one)}{about}"
    if answer is None or not rank:  # the last answer is told elsewhere
        return saying_statement(material, weight, (one.seq, words), tail=about, label=label, width=width)

    def text() -> str:
        told = safe_excerpt(material, (answer.seq, answer.text), max(share, 240 if rank <= _LATE else 140))
        return f"{safe_excerpt(material, (one.seq, words), width)}{about} → {told}"

    return fact_statement(
        material,
        weight,
        text,
        [(one.seq, words.removeprefix(PASTED).removeprefix(BY_COMMAND)), (answer.seq, answer.text)],
        label,
    )


def _meaning_tail(material: StatementMaterial, one: TurnRequest) -> str:
    """Say what a request refers to, unless the answer behind it does."""
    if one.meant is None or one.meant.kind == "answer":
        return ""
    words = safe_excerpt(material, (one.meant.seq, one.meant.text), _MEANT)
    return f": {words}" if one.meant.kind == "option" else f" ({words})"
