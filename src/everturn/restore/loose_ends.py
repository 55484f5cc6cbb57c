"""What a session leaves open: questions to the person, the remaining work, and what earlier answers left.

The words are those of the session; every statement cites the messages it rests on.
"""

from __future__ import annotations

from collections.abc import Iterator

from everturn.derive.decision_states import DecisionState
from everturn.derive.intent import says_nothing_new, steers_client, word_count
from everturn.derive.loose_ends import LooseEnd
from everturn.derive.open_items import find_summary_steps
from everturn.derive.plans import find_current, is_task
from everturn.derive.session_state import SessionState, TurnRequest, unanswered_questions
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
from everturn.restore.goal import ENDING_LEADS, last_request

_FEW_WORDS = 4  # a shorter request is quoted as it is
_STEPS = 1_200


def open_questions(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Questions after which no human wrote."""
    state = material.state
    for rank, one in rank_latest(unanswered_questions(state)):
        yield saying_statement(material, weight_by_rank(86, rank, 40), (one.seq, one.text))


def next_steps(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Return the remaining work: work that was cut off, a request without an answer, steps named last, the next plan item."""
    state = material.state
    newest = max((one.seq for one in state.requests), default=-1)
    yield from _cut_off(material)
    begun = state.begun.seq if state.begun is not None else -1
    for rank, (seq, steps) in rank_latest(sorted(_steps_by_answer(state).items())):
        if seq != begun:
            text = " · ".join(dict.fromkeys(steps))
            yield saying_statement(material, weight_by_rank(87, rank, 60), (seq, text), width=_STEPS)
    if state.recap is not None and state.recap.seq > newest and (steps := find_summary_steps(state.recap.text)):
        words = " · ".join(dict.fromkeys(steps))
        yield saying_statement(material, 80, (state.recap.seq, words), label="compaction summary", width=_STEPS)
    waiting = next((one for one in find_current(state.plan, state.turn_count - 1) if one.status == "open"), None)
    if waiting is not None and not is_task(waiting):  # those of a file are told together
        yield saying_statement(material, 87, (waiting.seq, waiting.text), "next in the plan: ")


def _steps_by_answer(state: SessionState) -> dict[int, list[str]]:
    """Return what each answer names as to do; work that was announced and cut off comes first in its answer."""
    begun, found = state.begun, dict[int, list[str]]()
    for one in (*((begun,) if begun is not None else ()), *state.next_steps):
        if one is begun or begun is None or not one.text.startswith(begun.text.removesuffix("…")):  # said once
            found.setdefault(one.seq, []).append(one.text)
    return found


def _cut_off(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Yield the request that no answer reports on, where its work stopped and what came last, as one entry."""
    begun, ending = material.state.begun, material.state.ending
    told, refs = list[str](), list[Words]()
    if (agreed := _agreed(material.state)) is not None:
        asked = [one.text for one in material.state.questions if one.seq == agreed.about_seq]
        about = list(dict.fromkeys(asked if agreed.about in " ".join(asked) else [*asked, agreed.about]))
        refs += [(agreed.about_seq, " · ".join(about)), (agreed.seq, agreed.text.partition(": ")[0])]
        told += ["agreed to, not reported as done: ", ""]
    for at, one in enumerate(_unreported(material.state)):
        whole = material.proofs.excerpt(one.seq, "prompt", _STEPS) if word_count(one.text) > _FEW_WORDS else ""
        is_begun = whole.startswith(one.text.removesuffix("…"))  # else the message holds more than the person typed
        refs.append((one.seq, whole if is_begun else one.text))
        told.append("" if at else "last request, not reported as done: ")
    if begun is not None:
        refs.append((begun.seq, " · ".join(dict.fromkeys(_steps_by_answer(material.state)[begun.seq]))))
        told.append("started but interrupted: ")
    if ending is not None and ending.kind != "calls":
        refs.append((ending.seq, ending.text))
        told.append(ENDING_LEADS[ending.kind])
    if refs:
        pairs = list(zip(told, refs, strict=True))
        text = lambda: " → ".join(f"{lead}{safe_excerpt(material, words, _STEPS)}" for lead, words in pairs)  # noqa: E731
        yield fact_statement(material, 90, text, refs)


def _unreported(state: SessionState) -> list[TurnRequest]:
    """Return the last requests on which no answer reports, the newest first: none came, or a turn ended in calls or in an announcement without work."""
    last = state.turn_count - 1
    has_worked = last in {*(one.turn for one in state.commands[-1:]), *(one.turn for one in state.files.values())}
    told = [one for one in reversed(state.unreported) if one.starter == "human" and state.waiting]
    if not told and state.begun is not None and not has_worked:
        newest = last_request(state)
        told = [newest] if newest is not None and not says_nothing_new(state.requests[-1].text) else []
    said = dict[str, TurnRequest]()
    for one in told:
        if one.text and not (says_nothing_new(one.text) or steers_client(one.text)):
            said.setdefault(one.text, one)
    return list(said.values())[:_MOST_UNREPORTED]


_MOST_UNREPORTED = 3


def _agreed(state: SessionState) -> DecisionState | None:
    """Return what the person agreed to last, or picked, if no answer reports on it."""
    newest = state.requests[-1] if state.requests else None
    if not state.waiting or newest is None or not newest.about:
        return None
    return next((one for one in reversed(state.decisions) if one.seq == newest.seq and one.about), None)


def left_before(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Yield what earlier answers asked, offered or put off and nobody took up; one entry for each of them."""
    last_request = max((one.seq for one in material.state.requests), default=-1)
    named = {one.text for one in material.state.next_steps}
    by_answer: dict[int, list[LooseEnd]] = {}
    for one in material.state.loose:
        if one.seq <= last_request and one.text not in named:
            by_answer.setdefault(one.seq, []).append(one)
    for rank, (seq, ends) in rank_latest(list(by_answer.items())):
        steps = " · ".join(dict.fromkeys(one.text for one in ends))
        lead = f"mentioned in turn {ends[0].turn + 1}, before the last request: "
        yield saying_statement(material, weight_by_rank(68, rank, 30), (seq, steps), lead, width=_STEPS)
