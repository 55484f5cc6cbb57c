"""How a batch of rows changes the counters of its session.

A batch brings new rows and replaces a few old ones (the last turn and step, calls that got their result). Counters
change by the difference between the two, so the work follows the batch and not the session.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from everturn.model.archive import Call, Session, SessionGrowth, Step
from everturn.store.driver import Driver, query_in_lists
from everturn.store.tables import CALLS, STEPS

TOKENS = ("tokens_in", "tokens_out", "tokens_cache_read", "tokens_cache_write")


class CounterChange(Struct):
    """What is added to each counter."""

    n_messages: int = 0
    n_inherited: int = 0
    n_turns: int = 0
    n_steps: int = 0
    n_calls: int = 0
    n_errors: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cache_read: int = 0
    tokens_cache_write: int = 0

    def after(self, before: Session) -> dict[str, Any]:
        """The counters of the session with these added."""
        return {name: getattr(before, name) + getattr(self, name) for name in self.__struct_fields__}

    def add_calls(self, calls: Iterable[Call], sign: int) -> None:
        """Count calls in or out. An orphan is a result, not a call."""
        for call in calls:
            self.n_calls += sign * (call.status != "orphan")
            self.n_errors += sign * (call.status == "error")

    def add_steps(self, steps: Iterable[Step], sign: int) -> None:
        """Count the tokens of own steps in or out."""
        for step in steps:
            if not step.inherited:
                self.tokens_in += sign * step.tokens_in
                self.tokens_out += sign * step.tokens_out
                self.tokens_cache_read += sign * step.tokens_cache_read
                self.tokens_cache_write += sign * step.tokens_cache_write


def count_changes(driver: Driver, before: Session, growth: SessionGrowth, n_inherited: int) -> CounterChange:
    """The difference a batch makes. To be asked before its rows are written; their flags are set."""
    result = CounterChange(len(growth.messages), n_inherited)
    result.n_turns = sum(row.idx >= before.n_turns for row in growth.turns)
    result.n_steps = sum(row.idx >= before.n_steps for row in growth.steps)
    result.add_calls(growth.calls, 1)
    result.add_steps(growth.steps, 1)
    result.add_calls(_calls_before(driver, before, growth.calls), -1)
    result.add_steps(_steps_before(driver, before, growth.steps), -1)
    return result


def _calls_before(driver: Driver, before: Session, calls: list[Call]) -> list[Call]:
    keys = {(call.seq, call.idx) for call in calls if call.seq < before.n_messages}
    seqs = sorted({seq for seq, _ in keys})
    rows = query_in_lists(driver.all, f'{CALLS.select} WHERE "session"=? AND "seq" IN ({{}})', seqs, (before.id,))
    return [old for old in CALLS.read(rows) if (old.seq, old.idx) in keys]


def _steps_before(driver: Driver, before: Session, steps: list[Step]) -> list[Step]:
    numbers = [step.idx for step in steps if step.idx < before.n_steps]
    return STEPS.read(
        query_in_lists(driver.all, f'{STEPS.select} WHERE "session"=? AND "idx" IN ({{}})', numbers, (before.id,))
    )
