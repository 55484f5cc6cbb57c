"""The requests of a session: the current task, and what was asked in each turn.

Each function makes the statements of one section of a document without a model. The words are those of the session; every
statement cites the messages it rests on.
"""

from __future__ import annotations

from collections.abc import Iterator

from everturn.derive.intent import (
    BY_COMMAND,
    PASTED,
    says_nothing_new,
)
from everturn.derive.session_state import SessionState, TurnRequest
from everturn.restore.evidence import (
    DraftStatement,
    StatementMaterial,
    fact_statement,
    rank_latest,
    safe_excerpt,
    saying_statement,
    weight_by_rank,
)
from everturn.restore.goal import find_goal, request_words, routine_messages
from everturn.text.printable import fit_parts, fit_request, one_line

_WHOLE, _PARTS = 2_400, 900  # cells of a request with several parts: read, and shown
_SAME = 80  # characters: nobody types a longer message again and again
_PICK = 3  # characters: a shorter reply is a letter, a number or a yes
_FOCUS = 300
_ANSWER = 2_400  # characters of the last answer
_OPENING = 160
_WIDEST, _ALL = 300, 3_000  # cells of a request or an answer, and of all of them
_AGAIN = 48  # cells of a request that stands elsewhere
_LATE = 3  # requests that are shown with more of their answer
#: What is said before the last call of a session, or before the words of the service that stopped it, by `Ending.kind`.
ENDING_LEADS = {
    "service": "stopped by the service: ",
    "refused": "the person refused the last call: ",
    "no result": "last call, without a result: ",
    "calls": "last call, no answer after it: ",
}


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
        words = parts or fit_request(request_words(last), _FOCUS)
        yield saying_statement(
            material, 98, (last.seq, words.removeprefix(PASTED).removeprefix(BY_COMMAND)), width=_PARTS
        )
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
    """Return the last request of a person that is more than thanks, praise, a letter or a word to go on."""
    spoken = [one for one in state.requests if one.starter == "human" and one.text]
    routine = routine_messages(state)
    said = (
        one
        for one in reversed(spoken)
        if len(one.text) >= _PICK
        and not says_nothing_new(one.text)
        and not (len(one.text) > _SAME and request_words(one) in routine)
    )
    return next(said, spoken[-1] if spoken else None)


def _last_answer(material: StatementMaterial, answer: TurnRequest) -> Iterator[DraftStatement]:
    """Yield the beginning of the last answer, and the whole of it apart: a small budget has room for the first only."""
    whole = material.proofs.excerpt(answer.seq, "answer", _ANSWER)
    is_short = len(whole) <= len(answer.text)
    width = len(answer.text) if is_short else _OPENING
    lead = "the agent's last answer, before its last calls: " if material.state.ending else "the agent's last answer: "
    yield saying_statement(material, 96, (answer.seq, answer.text), lead=lead, width=width)
    if not is_short:
        yield saying_statement(material, 83, (answer.seq, whole), lead="in full: ", width=_ANSWER)


def _draft_request(
    material: StatementMaterial, one: TurnRequest, answer: TurnRequest | None, rank: int, is_told: bool
) -> DraftStatement:
    label = "" if one.starter == "human" else one.starter
    weight = weight_by_rank(82, rank, 24, 0.9)
    share = min(_WIDEST, _ALL // max(1, len(material.state.requests)))  # few requests have room for more of their words
    width = _AGAIN if is_told else max(share, 160 if rank < 5 else 90)
    about = f" (answers: {one_line(one.about, width)})" if one.about else ""
    words = one.text if one.wants == one.text or not one.wants else fit_request(one.wants, width)
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
