"""The dialogue of a session: the goal, the task, decisions, constraints, questions, next steps, and the requests.

Each function makes the statements of one section of a document without a model. The words are those of the session; every
statement cites the messages it rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from everturn.derive.decisions import ACTIVE
from everturn.derive.intent import (
    CLIENT_COMMANDS,
    LooseEnd,
    adds_work,
    asks_for_work,
    is_routine_request,
    is_thanks,
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
from everturn.text.printable import one_line

_GOAL = 400
_GROWN = 200
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
    """Return the first request, and the latest request that asks for more."""
    goal, later = _find_goal(material.state), _find_growth(material.state)
    if goal is None:
        return
    words = goal.wants or material.proofs.excerpt(goal.seq, "prompt", _GOAL) or goal.text
    if later is None:
        yield saying_statement(material, 99, (goal.seq, words))
        return

    def text() -> str:
        grown = safe_excerpt(material, (later.seq, later.wants or later.text), _GROWN)
        return f"{safe_excerpt(material, (goal.seq, words), _GOAL)} — later: {grown}"

    yield fact_statement(material, 99, text, [(goal.seq, words), (later.seq, later.wants or later.text)])


def primary_task(material: StatementMaterial) -> Iterator[DraftStatement]:
    """The last request, the plan item in progress, and the last answer, whole if there is room."""
    state = material.state
    last = next((one for one in reversed(state.requests) if one.starter == "human"), None)
    if last is not None:
        yield saying_statement(
            material, 98, (last.seq, material.proofs.excerpt(last.seq, "prompt", _FOCUS) or last.text)
        )
    for item in state.plan:
        if item.status == "doing":
            yield saying_statement(material, 97, (item.seq, item.text), lead="in progress: ")
    if state.answer is not None and (last is None or state.answer.seq > last.seq or is_thanks(last.text)):
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
    last_request = max((one.seq for one in state.requests), default=-1)
    is_left = state.waiting or state.begun is not None
    if state.requests and is_left and not _steers_client(state.requests[-1].text):
        one = state.requests[-1]
        words = material.proofs.excerpt(one.seq, "prompt", _STEPS) if word_count(one.text) > _FEW_WORDS else one.text
        lead = "last request, not reported as done: "
        yield saying_statement(material, 90, (one.seq, words or one.text), lead, width=_STEPS)
    if state.begun is not None:
        yield saying_statement(material, 89, (state.begun.seq, state.begun.text), "started but interrupted: ")
    if state.next_steps and (state.next_steps[0].seq > last_request or state.waiting):
        begun = state.begun.text if state.begun is not None else ""
        left = dict.fromkeys(one.text for one in state.next_steps if one.text != begun)
        if left:
            yield saying_statement(material, 87, (state.next_steps[0].seq, " · ".join(left)), width=_STEPS)
    if state.recap is not None and state.recap.seq > last_request and (steps := find_summary_steps(state.recap.text)):
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
def _find_goal(state: SessionState) -> TurnRequest | None:
    """Return the first request that asks for work."""
    requests = [one for one in state.requests if one.starter == "human"] or list(state.requests)
    first = requests[0] if requests else state.goal
    long = next((one for one in requests if word_count(one.text) >= _FEW_WORDS), first)
    return next((one for one in requests if not one.about and asks_for_work(one.wants or one.text)), long)


def _find_growth(state: SessionState) -> TurnRequest | None:
    """Return the latest request that asks for more work than the goal."""
    goal = _find_goal(state)
    later = (one for one in reversed(state.requests) if one.starter == "human" and goal and one.seq > goal.seq)
    wanted = (one for one in later if not one.about and adds_work(one.wants or one.text))
    return next((one for one in wanted if goal and one.text != goal.text), None)


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
    if answer is None or not rank:  # the last answer is told elsewhere
        return saying_statement(material, weight, (one.seq, one.text), tail=about, label=label, width=width)

    def text() -> str:
        told = safe_excerpt(material, (answer.seq, answer.text), 240 if rank <= _LATE else 140)
        return f"{safe_excerpt(material, (one.seq, one.text), width)}{about} → {told}"

    return fact_statement(material, weight, text, [(one.seq, one.text), (answer.seq, answer.text)], label)
