"""What was offered or put off is kept until somebody takes it up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.derive.loose_ends import LooseEnd, advance_loose_ends, find_ending, leaves_steps
from everturn.derive.turn_facts import CallFact, Saying, TurnFacts

LEFT = LooseEnd("If you want, I can draft the migration guide.", 2, 7)
ASKED = LooseEnd("Want me to draft the migration guide?", 2, 7)


@pytest.mark.parametrize("end", [LEFT, ASKED])
def test_an_offer_stays_until_somebody_takes_it_up(end: LooseEnd) -> None:
    def left(reply: str, *words: str) -> bool:
        return bool(advance_loose_ends([end], 3, reply, [reply, *words], frozenset()))

    assert left("how do I install it?")
    assert not left("yes please")
    assert not left("what is in it?", "I drafted the migration guide.")


def test_what_was_put_off_is_not_forgotten_and_an_offer_is() -> None:
    later = LooseEnd("The CSV importer is a follow-up.", 1, 3)
    assert advance_loose_ends([LEFT, later], 20, "what time is it?", [], frozenset()) == (later,)


@pytest.mark.parametrize(("deed", "left"), [("push", 0), ("commit", 1)])
def test_a_push_ends_what_was_not_pushed(deed: str, left: int) -> None:
    end = LooseEnd("Branch not pushed — say the word.", 1, 3)
    assert len(advance_loose_ends([end], 2, "where is it?", [], frozenset({deed}))) == left


# --- steps that stay ---
@pytest.mark.parametrize(
    ("reply", "is_cut", "has_worked", "complains", "stay"),
    [
        ("add the ferry page", True, True, False, True),  # cut off: nothing was reported
        ("add the ferry page", False, True, False, False),
        ("where is the file?", False, False, False, True),
        ("wo liegt die Datei?", False, False, False, True),
        ("文件在哪里？", False, False, False, True),
        ("where is the file?", False, True, False, False),
        ("thanks!", False, False, False, True),
        ("yes please", True, True, False, True),  # agreed to, and not reported as done
        ("はい", True, True, False, True),
        ("2", True, False, False, True),
        ("yes please", False, True, False, False),
        ("/mcp list", False, False, False, True),  # a command of the client
        ("the page is empty", True, False, True, False),
    ],
)
def test_a_turn_that_reports_nothing_leaves_the_steps_before_it(
    reply: str, is_cut: bool, has_worked: bool, complains: bool, stay: bool
) -> None:
    assert leaves_steps(reply, is_cut, has_worked, complains) is stay


@given(st.text(max_size=80), st.booleans())
def test_work_that_was_reported_takes_the_place_of_earlier_steps(reply: str, complains: bool) -> None:
    assert not leaves_steps(reply, False, True, complains)


# --- the end of a turn ---
def call(seq: int, status: str = "ok", outcome: str = "") -> CallFact:
    return CallFact(seq, "make ferry", "shell", status, outcome=outcome)


def ended(*deeds: CallFact, answer: int = -1, stopped: int = -1) -> TurnFacts:
    return TurnFacts(
        turn=0, last_seq=9, starter="human", requests=(Saying("build the ferry", 0),), deeds=deeds,
        answer=Saying("I look first.", answer) if answer >= 0 else None,
        stopped=Saying("You've hit your limit", stopped) if stopped >= 0 else None,
        cut_off=any(one.seq > answer for one in deeds),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (ended(call(2), call(4, "error", "rejected"), answer=3), "refused"),
        (ended(call(4, "open"), answer=3), "no result"),
        (ended(call(4), answer=3), "calls"),
        (ended(call(4), answer=3, stopped=6), "service"),
        (ended(stopped=2), "service"),
        (ended(call(4), answer=5), ""),
        (ended(call(2, "error", "rejected"), answer=3, stopped=2), ""),
        (ended(), ""),
    ],
)
def test_what_came_after_the_last_answer_is_the_end(facts: TurnFacts, kind: str) -> None:
    found = find_ending(facts)
    assert (found.kind if found else "") == kind


def test_an_end_says_how_its_call_ended_only_if_that_is_known() -> None:
    silent, failed = call(4), replace(call(4), exit_status=0, ended="exit 0, but it printed: Error: no quay")
    assert [find_ending(ended(one, answer=3)).result for one in (silent, failed)] == ["", failed.ended]  # type: ignore[union-attr]


@given(st.lists(st.sampled_from([call(2), call(4, "open"), call(6, "error", "rejected")])), st.integers(-1, 8))
def test_an_end_is_later_than_the_answer(deeds: list[CallFact], answer: int) -> None:
    found = find_ending(ended(*sorted(deeds, key=lambda one: one.seq), answer=answer))
    assert found is None or found.seq > answer
    assert (found is not None) == any(one.seq > answer for one in deeds)
