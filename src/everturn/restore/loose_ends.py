"""What a session leaves open: questions to the person, the remaining work, and what earlier answers left.

The words are those of the session; every statement cites the messages it rests on.
"""

from __future__ import annotations

from collections.abc import Iterator

from everturn.derive.intent import CLIENT_COMMANDS, says_nothing_new, word_count
from everturn.derive.loose_ends import LooseEnd
from everturn.derive.open_items import find_summary_steps
from everturn.derive.plans import is_current, is_task
from everturn.derive.session_state import unanswered_questions
from everturn.restore.dialogue import last_request
from everturn.restore.evidence import (
    DraftStatement,
    StatementMaterial,
    rank_latest,
    saying_statement,
    weight_by_rank,
)

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
    is_left = state.waiting or state.begun is not None
    one = last_request(state)
    if one and is_left and not _steers_client(one.text) and not says_nothing_new(state.requests[-1].text):
        words = material.proofs.excerpt(one.seq, "prompt", _STEPS) if word_count(one.text) > _FEW_WORDS else one.text
        lead = "last request, not reported as done: "
        yield saying_statement(material, 90, (one.seq, words or one.text), lead, width=_STEPS)
    yield from _named_steps(material)
    if state.recap is not None and state.recap.seq > newest and (steps := find_summary_steps(state.recap.text)):
        words = " · ".join(dict.fromkeys(steps))
        yield saying_statement(material, 80, (state.recap.seq, words), label="compaction summary", width=_STEPS)
    current = (one for one in state.plan if one.status == "open" and is_current(one, state.turn_count - 1))
    waiting = next(current, None)
    if waiting is not None and not is_task(waiting):  # those of a file are told together
        yield saying_statement(material, 87, (waiting.seq, waiting.text), "next in the plan: ")


def _named_steps(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Yield what answers name as to do, one entry for each; work that was announced and cut off comes first."""
    begun, by_answer = material.state.begun, dict[int, list[str]]()
    for one in (*((begun,) if begun is not None else ()), *material.state.next_steps):
        by_answer.setdefault(one.seq, []).append(one.text)
    for rank, (seq, steps) in rank_latest(sorted(by_answer.items())):
        is_begun = begun is not None and seq == begun.seq
        lead = "started but interrupted: " if is_begun else ""
        weight = 89 if is_begun else weight_by_rank(87, rank, 60)
        yield saying_statement(material, weight, (seq, " · ".join(dict.fromkeys(steps))), lead, width=_STEPS)


def _steers_client(text: str) -> bool:
    """Whether somebody typed a command of the client into the conversation."""
    name = text.strip("` \n").partition(" ")[0]
    return name.startswith("/") and name[1:].lower() in CLIENT_COMMANDS


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
