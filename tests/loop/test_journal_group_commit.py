"""What several threads hand in is written together, in order, and everybody learns what became of their own."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from everturn.errors import Conflict, EverturnError
from everturn.loop.journal import GroupCommit, Journal
from everturn.loop.records import IntendedCall
from everturn.store.contract import Store
from tests.loop.scripted_model import calls


class Slow:
    """Writes once it is let; notes what was written together."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.entered, self.go = threading.Semaphore(0), threading.Semaphore(0)

    def commit(self, items: Sequence[str]) -> list[Exception | None]:
        self.entered.release()
        self.go.acquire()
        self.batches.append(list(items))
        if "poison" in items:
            raise EverturnError("nothing was written")
        return [Conflict(item) if item == "refused" else None for item in items]


def _submit(group: GroupCommit[str], item: str, said: dict[str, str]) -> threading.Thread:
    def work() -> None:
        try:
            group.submit(item)
            said[item] = "written"
        except EverturnError as failure:
            said[item] = type(failure).__name__

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def _play(*items: str) -> tuple[list[list[str]], dict[str, str]]:
    """The first is being written while all the others come."""
    slow, said = Slow(), dict[str, str]()
    group: GroupCommit[str] = GroupCommit(slow.commit)
    threads = [_submit(group, items[0], said)]
    slow.entered.acquire()
    threads += [_submit(group, item, said) for item in items[1:]]
    while len(group._waiting) < len(items) - 1:
        pass
    for _ in range(2):
        slow.go.release()
    for thread in threads:
        thread.join(60)
    return slow.batches, said


def test_what_waits_while_another_writes_is_written_together() -> None:
    batches, said = _play("a", "b", "c", "d")
    assert batches[0] == ["a"]
    assert sorted(batches[1]) == ["b", "c", "d"]
    assert set(said.values()) == {"written"}


def test_one_that_is_refused_does_not_cost_the_others() -> None:
    _, said = _play("a", "b", "refused", "d")
    assert said == {"a": "written", "b": "written", "refused": "Conflict", "d": "written"}


def test_when_nothing_was_written_everybody_is_told() -> None:
    _, said = _play("a", "b", "poison")
    assert said == {"a": "written", "b": "EverturnError", "poison": "EverturnError"}


def test_results_from_many_threads_share_transactions(store: Store) -> None:
    journal = Journal.open(store, "s1")
    journal.accept("go")
    wanted = [f"c{n}" for n in range(40)]
    journal.response(calls(*((one, "x") for one in wanted)), [IntendedCall(one, "x") for one in wanted])
    before, ready = journal.commits, threading.Barrier(len(wanted))

    def work(call: str) -> None:
        ready.wait(60)
        journal.result(call, f"result of {call}")

    threads = [threading.Thread(target=work, args=(call,)) for call in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert journal.commits - before < len(wanted)
    assert [part.text for part in journal.past.messages[-1].parts] == [f"result of {call}" for call in wanted]
    journal.close()
    assert Journal.open(store, "s1").past.messages == journal.past.messages


def test_two_threads_with_a_result_for_one_call_do_not_both_win(store: Store) -> None:
    journal = Journal.open(store, "s1")
    journal.accept("go")
    journal.response(calls(("a", "x"), ("b", "x")))
    said: list[str] = []

    def work() -> None:
        try:
            journal.result("a", "mine")
            said.append("won")
        except Conflict:
            said.append("lost")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(said) == ["lost"] * 7 + ["won"]
    with pytest.raises(Conflict):
        journal.result("a", "later")
