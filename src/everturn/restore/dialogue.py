"""The dialogue of a session: the goal, the task, decisions, constraints, questions, next steps, and the requests.

Each function makes the statements of one section of a document without a model. The words are those of the session; every
statement cites the messages it rests on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from everturn.derive.decisions import ACTIVE
from everturn.derive.intent import (
    BY_COMMAND,
    CLIENT_COMMANDS,
    PASTED,
    LooseEnd,
    adds_work,
    asks_for_work,
    is_routine_request,
    names_subject,
    says_nothing_new,
    topic_words,
    word_count,
)
from everturn.derive.open_items import find_summary_steps, is_current
from everturn.derive.session_state import DecisionState, SessionState, TurnRequest, unanswered_questions
from everturn.restore.evidence import (
    DraftStatement,
    StatementMaterial,
    fact_statement,
    rank_latest,
    safe_excerpt,
    saying_statement,
    weight_by_rank,
)
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import fit_parts, fit_request, one_line, orders_work

_GOAL = 420
_GROWN, _GROWN_MANY, _MANY = 240, 180, 3  # cells of each later request: of two, and of more
_MOST_GROWN = 3
_WHOLE, _PARTS = 2_400, 900  # cells of a request with several parts: read, and shown
_SAME = 80  # characters: nobody types a longer message again and again
_FEW_TOPICS = 2  # words that say what a request is about
_MOST_WORK = 8  # of one turn
_ALIKE, _LEAST_WORK = 0.6, 0.2  # of the words of two requests, and of the work of the first
_MOST_HEADS = 100  # requests to which later ones are compared
_PICK = 3  # characters: a shorter reply is a letter, a number or a yes
_ASKED = 300
_FOCUS = 300
_REQUEST = 160
_CHOICE = 400
_RULES = 1_400
_STEPS = 1_200
_FEW_WORDS = 4  # a shorter request is not the goal
_ANSWER = 2_400  # characters of the last answer
_OPENING = 160
_STATUS_WORDS = {"rejected": "taken back"}
_ENDED = 20  # weight of what was decided and no longer holds
_LATE = 3  # requests that are shown with more of their answer


def session_name(material: StatementMaterial) -> Iterator[DraftStatement]:
    """The title the client keeps, else the beginning of the goal."""
    title = one_line(material.text.title, 120)
    goal = _find_goal(material.state)
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
    goal = _find_goal(state)
    if goal is None:
        return
    words, later = _request_words(goal), _find_growth(state)
    title = one_line(material.text.title, 120)
    named = f"{title} (title): " if title and _says_little(words) else ""

    def text() -> str:
        first = f"{named}{safe_excerpt(material, (goal.seq, words), _GOAL)}"
        width = _GROWN if len(later) < _MANY else _GROWN_MANY
        grown = (safe_excerpt(material, (one.seq, fit_request(_request_words(one), width)), width) for one in later)
        return " — later: ".join(one for one in (first, " · ".join(grown)) if one)

    refs = [(one.seq, _request_words(one).removeprefix(PASTED).removeprefix(BY_COMMAND)) for one in (goal, *later)]
    yield fact_statement(material, 99, text, refs)
    if state.recap is not None and (told := _SUMMARY_GOAL.search(state.recap.text)):
        words = fit_request(told[1], _GOAL)
        yield saying_statement(material, 79, (state.recap.seq, words), label="compaction summary", width=_GOAL)


#: Where a client's summary says what the person wants.
_SUMMARY_GOAL = lazy_pattern(r"\bPrimary Request(?: and Intent)?[:* \t]*\n?(\S[^\n]{20,2000})", re.IGNORECASE)


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
        words = parts or fit_request(_request_words(last), _FOCUS)
        yield saying_statement(
            material, 98, (last.seq, words.removeprefix(PASTED).removeprefix(BY_COMMAND)), width=_PARTS
        )
    for item in state.plan:
        if item.status == "doing":
            yield saying_statement(material, 97, (item.seq, item.text), lead="in progress: ")
    if state.answer is not None and (last is None or state.answer.seq > last.seq):
        yield from _last_answer(material, state.answer)
    if state.interrupted:
        yield fact_statement(material, 96, lambda: f"turn {state.turn_count} was interrupted", [(state.covers, "")])


def key_decisions(material: StatementMaterial) -> Iterator[DraftStatement]:
    """What was decided: one entry for an answer or a sentence of the person, one for each turn that changed files.

    Commits have a section of their own.
    """
    state = material.state
    by_turn: dict[int, list[DecisionState]] = {}
    for one in state.choices:
        by_turn.setdefault(one.turn, []).append(one)
    told = [
        one for one in state.decisions if one.kind != "commit" and not (one.kind == "choice" and one.turn in by_turn)
    ]
    entries: list[DecisionState | list[DecisionState]] = sorted(
        (*told, *by_turn.values()), key=lambda one: one[-1].seq if isinstance(one, list) else one.seq
    )
    for rank, entry in rank_latest(entries):
        weight = weight_by_rank(66, rank, 30)
        if isinstance(entry, list):
            yield _draft_choices(material, entry, weight)
        else:
            yield _draft_decision(material, entry, weight if entry.status == ACTIVE else _ENDED)


def constraints(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Instructions of a person that hold from then on; those of one message in one entry."""
    entries: dict[int, list[DecisionState]] = {}
    for number, one in enumerate(material.state.constraints):
        is_listed = one.status == ACTIVE and not one.pinned
        entries.setdefault(one.seq if is_listed else -2 - number, []).append(one)
    for rank, entry in rank_latest(list(entries.values())):
        weight = 95 if entry[0].pinned else weight_by_rank(84, rank, 55)
        if len(entry) > 1:
            text = one_line(" · ".join(one.text for one in entry), _RULES)
            yield saying_statement(material, weight, (entry[0].seq, text), width=_RULES)
        else:
            yield _draft_decision(material, entry[0], weight if entry[0].status == ACTIVE else _ENDED)


def open_questions(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Questions after which no human wrote."""
    state = material.state
    for rank, one in rank_latest(unanswered_questions(state)):
        yield saying_statement(material, weight_by_rank(86, rank, 40), (one.seq, one.text))


def next_steps(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Return the remaining work: work that was cut off, a request without an answer, steps named last, the next plan item."""
    state = material.state
    newest = max((one.seq for one in state.requests), default=-1)
    is_left = state.waiting or state.begun is not None
    one = last_request(state)
    if one and is_left and not _steers_client(one.text) and not says_nothing_new(state.requests[-1].text):
        words = material.proofs.excerpt(one.seq, "prompt", _STEPS) if word_count(one.text) > _FEW_WORDS else one.text
        lead = "last request, not reported as done: "
        yield saying_statement(material, 90, (one.seq, words or one.text), lead, width=_STEPS)
    if state.begun is not None:
        yield saying_statement(material, 89, (state.begun.seq, state.begun.text), "started but interrupted: ")
    if state.next_steps and (state.next_steps[0].seq > newest or is_left):
        begun = state.begun.text if state.begun is not None else ""
        left = dict.fromkeys(one.text for one in state.next_steps if one.text != begun)
        if left:
            yield saying_statement(material, 87, (state.next_steps[0].seq, " · ".join(left)), width=_STEPS)
    if state.recap is not None and state.recap.seq > newest and (steps := find_summary_steps(state.recap.text)):
        words = " · ".join(dict.fromkeys(steps))
        yield saying_statement(material, 80, (state.recap.seq, words), label="compaction summary", width=_STEPS)
    current = (one for one in state.plan if one.status == "open" and is_current(one, state.turn_count - 1))
    waiting = next(current, None)
    if waiting is not None:
        yield saying_statement(material, 87, (waiting.seq, waiting.text), "next in the plan: ")


def _steers_client(text: str) -> bool:
    """Whether somebody typed a command of the client into the conversation."""
    name = text.strip("` \n").partition(" ")[0]
    return name.startswith("/") and name[1:].lower() in CLIENT_COMMANDS


def left_before(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Yield what earlier answers asked, offered or put off and nobody took up; one entry for each of them."""
    last_request = max((one.seq for one in material.state.requests), default=-1)
    by_answer: dict[int, list[LooseEnd]] = {}
    for one in material.state.loose:
        if one.seq <= last_request:
            by_answer.setdefault(one.seq, []).append(one)
    for rank, (seq, ends) in rank_latest(list(by_answer.items())):
        steps = " · ".join(dict.fromkeys(one.text for one in ends))
        lead = f"mentioned in turn {ends[0].turn + 1}, before the last request: "
        yield saying_statement(material, weight_by_rank(68, rank, 30), (seq, steps), lead, width=_STEPS)


def requests(material: StatementMaterial) -> Iterator[DraftStatement]:
    """The request of each turn with the question it answers and the beginning of its answer, the latest first."""
    answers = {one.turn: one for one in material.state.answers}
    last = {one.turn: one.seq for one in material.state.requests}
    for rank, one in rank_latest([one for one in material.state.requests if one.text]):
        answer = answers.get(one.turn) if last[one.turn] == one.seq else None
        yield _draft_request(material, one, answer, rank)


# --- texts ---
def last_request(state: SessionState) -> TurnRequest | None:
    """Return the last request of a person that is more than thanks, praise, a letter or a word to go on."""
    spoken = [one for one in state.requests if one.starter == "human" and one.text]
    routine = _routine_messages(state)
    said = (
        one
        for one in reversed(spoken)
        if len(one.text) >= _PICK
        and not says_nothing_new(one.text)
        and not (len(one.text) > _SAME and _request_words(one) in routine)
    )
    return next(said, spoken[-1] if spoken else None)


def _request_words(one: TurnRequest) -> str:
    return one.wants or one.text


def _says_little(words: str) -> bool:
    """Whether the words of a request do not say what it is about without its title."""
    return word_count(words) < _FEW_WORDS or words.startswith(PASTED) or len(topic_words(words)) < _FEW_TOPICS


def _find_goal(state: SessionState) -> TurnRequest | None:
    """Return the first request that asks for work."""
    requests = [one for one in state.requests if one.starter == "human"] or list(state.requests)
    first = requests[0] if requests else state.goal
    long = next((one for one in requests if word_count(one.text) >= _FEW_WORDS), first)
    wanted = [one for one in requests if not one.about and asks_for_work(_request_words(one))]
    returning = _routine_messages(state)
    spoken = [
        one
        for one in wanted
        if not _request_words(one).startswith(BY_COMMAND) and (one is first or _request_words(one) not in returning)
    ]
    told = next(
        (one for one in spoken if names_subject(_request_words(one)) or not is_routine_request(_request_words(one))),
        None,
    )
    if told is not None and (told is spoken[0] or orders_work(_request_words(told))):
        return told
    return next(iter((*spoken, *wanted)), long)


def _find_growth(state: SessionState) -> list[TurnRequest]:
    """Return the later requests that most of the work belongs to, and the latest that adds some, in their order."""
    goal = _find_goal(state)
    added = _added_requests(state, goal) if goal is not None else []
    if goal is None or not added:
        return []
    weights = _weigh_requests(state, goal, added)
    latest = next((one for one in reversed(added) if orders_work(_request_words(one))), added[-1])
    least = _LEAST_WORK * max(weights[one.seq] for one in added)
    heavy = [one for one in added if weights[one.seq] > least]
    chosen: list[TurnRequest] = []
    for one in (latest, *sorted(heavy, key=lambda one: -weights[one.seq])):
        if len(chosen) < _MOST_GROWN and not any(_is_alike(one, other) for other in (goal, *chosen)):
            chosen.append(one)
    return sorted(chosen, key=lambda one: one.seq)


def _added_requests(state: SessionState, goal: TurnRequest) -> list[TurnRequest]:
    """Return the requests after the goal that add work."""
    routine = _routine_messages(state)
    return [
        one
        for one in state.requests
        if one.starter == "human"
        and one.seq > goal.seq
        and not one.about
        and _request_words(one) not in routine
        and adds_work(_request_words(one))
        and not is_routine_request(_request_words(one))
    ]


def _routine_messages(state: SessionState) -> set[str]:
    """Return the messages that come back after others: they belong to every turn."""
    places: dict[str, list[int]] = {}
    for at, one in enumerate(one for one in state.requests if one.starter == "human"):
        places.setdefault(_request_words(one), []).append(at)
    return {words for words, at in places.items() if at[-1] - at[0] > len(at) or len(at) > _MOST_GROWN}


def _weigh_requests(state: SessionState, goal: TurnRequest, added: list[TurnRequest]) -> Counter[int]:
    """Return how much of the work belongs to each request: to the first that was about the same, else to the one before."""
    work = Counter([*(one.turn for one in state.commands), *(one.turn for one in state.answers)])
    for one in state.files.values():
        work.update({one.first, one.turn} if one.count else ())
    weights: Counter[int] = Counter()
    heads, current, can_lead = [(goal, topic_words(_request_words(goal)))], goal, {one.seq for one in added}
    for request in state.requests:
        if request.seq <= goal.seq or request.starter != "human":
            continue
        words = _request_words(request)
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
    first, second = topic_words(_request_words(one)), topic_words(_request_words(other))
    return one.text == other.text or len(first & second) > _ALIKE * max(1, min(len(first), len(second)))


def _draft_decision(material: StatementMaterial, one: DecisionState, weight: float) -> DraftStatement:
    if one.about:
        return fact_statement(
            material,
            weight,
            _answer_text(material, one),
            [(one.seq, one.text.partition(": ")[0]), (one.about_seq, one.about)],
        )
    label = one.kind if one.kind == "pin" else ""
    return saying_statement(material, weight, (one.seq, one.text), tail=_status_tail(one), label=label)


def _draft_choices(material: StatementMaterial, choices: list[DecisionState], weight: float) -> DraftStatement:
    """Draft what a turn asked for, and what it says of how that was done."""
    turn = choices[0].turn
    asked = next((one for one in material.state.requests if one.turn == turn and one.starter == "human"), None)
    asked = None if asked is not None and is_routine_request(asked.wants or asked.text) else asked
    words = safe_excerpt(material, (asked.seq, asked.wants or asked.text), _REQUEST) if asked else ""
    told = [one for one in choices if one.text not in words]
    if not told:  # the request itself settles it
        asked, words, told = None, "", choices
    refs = {one.seq: one.text for one in reversed(told)}  # the first passage of each message
    cited = [(asked.seq, asked.wants or asked.text)] if asked else []
    cited += [(seq, refs[seq]) for seq in sorted(refs) if not asked or seq != asked.seq]

    def text() -> str:
        done = " · ".join(f"{safe_excerpt(material, (one.seq, one.text), _CHOICE)}{_status_tail(one)}" for one in told)
        return " → ".join(filter(None, (words, done)))

    return fact_statement(material, weight, text, cited)


def _status_tail(one: DecisionState) -> str:
    """Say what became of a decision."""
    return "" if one.status == ACTIVE else f" ({_STATUS_WORDS.get(one.status, one.status)} later)"


def _answer_text(material: StatementMaterial, one: DecisionState) -> Callable[[], str]:
    """Return the question of the agent with the answer of the person."""
    tail = _status_tail(one)
    return lambda: f"{safe_excerpt(material, (one.about_seq, one.about), _ASKED)} → {one_line(one.text, _ASKED)}{tail}"


def _last_answer(material: StatementMaterial, answer: TurnRequest) -> Iterator[DraftStatement]:
    """Yield the beginning of the last answer, and the whole of it apart: a small budget has room for the first only."""
    whole = material.proofs.excerpt(answer.seq, "answer", _ANSWER)
    is_short = len(whole) <= len(answer.text)
    width = len(answer.text) if is_short else _OPENING
    yield saying_statement(material, 96, (answer.seq, answer.text), lead="the agent's last answer: ", width=width)
    if not is_short:
        yield saying_statement(material, 83, (answer.seq, whole), lead="in full: ", width=_ANSWER)


def _draft_request(
    material: StatementMaterial, one: TurnRequest, answer: TurnRequest | None, rank: int
) -> DraftStatement:
    label = "" if one.starter == "human" else one.starter
    weight = weight_by_rank(82, rank, 24, 0.9)
    width = 160 if rank < 5 else 90
    about = f" (answers: {one_line(one.about, width)})" if one.about else ""
    words = one.text if one.wants == one.text or not one.wants else fit_request(one.wants, width)
    if answer is None or not rank:  # the last answer is told elsewhere
        return saying_statement(material, weight, (one.seq, words), tail=about, label=label, width=width)

    def text() -> str:
        told = safe_excerpt(material, (answer.seq, answer.text), 240 if rank <= _LATE else 140)
        return f"{safe_excerpt(material, (one.seq, words), width)}{about} → {told}"

    return fact_statement(
        material,
        weight,
        text,
        [(one.seq, words.removeprefix(PASTED).removeprefix(BY_COMMAND)), (answer.seq, answer.text)],
        label,
    )
