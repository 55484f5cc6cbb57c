"""Turns folded into a state: what is kept, what counts as resolved, answered, done."""

from __future__ import annotations

from functools import reduce
from typing import Any

import msgspec
import pytest

from everturn.derive.commits import Commit
from everturn.derive.decisions import DecisionMark
from everturn.derive.intent import find_revisions
from everturn.derive.offers import Offer
from everturn.derive.paths import local_path
from everturn.derive.plans import PlanChange, PlanUpdate
from everturn.derive.session_state import (
    SessionState,
    advance_state,
    unanswered_questions,
    unresolved_failures,
)
from everturn.derive.turn_facts import CallFact, Saying, Touch, TurnFacts


def turn(number: int, **facts: Any) -> TurnFacts:
    given: dict[str, Any] = {"starter": "human", "last_seq": number * 10 + 9, **facts}
    return TurnFacts(turn=number, **given)


def folded(*turns: TurnFacts, start: SessionState | None = None) -> SessionState:
    return reduce(advance_state, turns, start or SessionState("s", "/home/ann/shop"))


def failed(seq: int, *keys: str, outcome: str = "failed", **more: Any) -> CallFact:
    return CallFact(seq, "make", "shell", "error", 2, outcome, "it broke", keys, **more)


def worked(seq: int, *keys: str) -> CallFact:
    return CallFact(seq, "make", "shell", "ok", 0, keys=keys)


def test_a_state_can_be_kept_as_json_and_carried_on() -> None:
    turns = [
        turn(0, requests=(Saying("build it", 0),), deeds=(failed(3, "make"),), files=(Touch("a.py", "edited", 4),)),
        turn(1, requests=(Saying("again", 10),), deeds=(worked(13, "make"),), asked=(Saying("More?", 15),)),
        turn(
            2, requests=(Saying("no", 20),), commits=((Commit("1a2b3c4", "Build"), 22),), tokens=5, token_source="api"
        ),
    ]
    whole = folded(*turns)
    kept = msgspec.json.decode(msgspec.json.encode(folded(*turns[:2])), type=SessionState)
    assert folded(turns[2], start=kept) == whole


def test_the_goal_is_the_first_human_request_and_the_focus_the_last() -> None:
    state = folded(
        turn(0, starter="agent", requests=(Saying("a task from an agent", 0),)),
        turn(1, requests=(Saying("build a shop", 10),), focus="build a shop"),
        turn(2, requests=(Saying("paint it", 20),), focus="paint it"),
        turn(3, starter="agent", requests=(Saying("a note", 30),)),
    )
    assert state.goal and (state.goal.text, state.goal.turn, state.goal.seq) == ("build a shop", 1, 10)
    assert state.current_focus == "paint it"
    assert [one.turn for one in state.requests] == [0, 1, 2, 3]
    assert (state.turn_count, state.covers) == (4, 39)


def test_a_file_has_one_name_and_its_last_change() -> None:
    state = folded(
        turn(0, files=(Touch("/home/ann/shop/a.py", "created", 2), Touch("b.py", "read", 3))),
        turn(1, files=(Touch("./a.py", "edited", 12), Touch("a.py", "read", 13))),
    )
    assert list(state.files) == ["b.py", "a.py"]
    a = state.files["a.py"]
    assert (a.action, a.turn, a.seq, a.count, a.reads, a.first) == ("edited", 1, 12, 2, 1, 0)
    assert (state.files["b.py"].action, state.files["b.py"].count) == ("read", 0)


def test_what_a_subagent_did_is_marked_until_the_agent_does_it_too() -> None:
    first = folded(turn(0, files=(Touch("a.py", "edited", 2, "subagent"),)))
    assert first.files["a.py"].by == "subagent"
    assert folded(turn(1, files=(Touch("a.py", "edited", 12),)), start=first).files["a.py"].by == ""


def test_an_error_is_resolved_only_by_the_same_thing_later() -> None:
    state = folded(turn(0, deeds=(worked(1, "make"), failed(2, "make"), worked(3, "test"))))
    assert [(one.what, one.turn, one.seq) for one in unresolved_failures(state)] == [("make", 0, 2)]
    later = folded(turn(1, deeds=(worked(12, "make"),)), start=state)
    assert unresolved_failures(later) == []
    assert (later.errors[0].resolved_by, later.errors[0].resolved_seq) == (1, 12)


def test_a_chain_is_resolved_when_each_of_its_parts_has_worked() -> None:
    state = folded(turn(0, deeds=(failed(1, "build", "test"), worked(2, "build"))))
    assert len(unresolved_failures(state)) == 1
    assert unresolved_failures(folded(turn(1, deeds=(worked(11, "test"),)), start=state)) == []


def test_a_part_that_worked_must_work_again_after_another_failure() -> None:
    deeds = (failed(1, "build", "test"), worked(2, "build"), failed(3, "build", "test"), worked(4, "test"))
    assert len(unresolved_failures(folded(turn(0, deeds=deeds)))) == 1


def test_the_same_failure_again_is_counted() -> None:
    state = folded(turn(0, deeds=(failed(1, "make"), failed(2, "make"))), turn(1, deeds=(failed(11, "make"),)))
    (error,) = state.errors
    assert (error.times, error.turn, error.last_turn, error.last_seq) == (3, 0, 1, 11)


def test_what_fails_again_after_it_worked_is_a_new_failure() -> None:
    state = folded(turn(0, deeds=(failed(1, "make"), worked(2, "make"), failed(3, "make"))))
    assert [one.resolved_by for one in state.errors] == [0, None]


def test_the_files_changed_in_between_are_named() -> None:
    deeds = (failed(1, "make"), CallFact(2, "edit a.py", "edit", "ok", keys=("a",)), worked(3, "make"))
    state = folded(turn(0, deeds=deeds, files=(Touch("a.py", "edited", 2), Touch("b.py", "read", 2))))
    assert state.errors[0].between == ("a.py",)


@pytest.mark.parametrize("outcome", ["probe", "rejected", "interrupted", "cancelled"])
def test_what_is_no_failure_is_kept_and_told_apart(outcome: str) -> None:
    state = folded(turn(0, deeds=(failed(1, "make", outcome=outcome),)))
    assert [one.outcome for one in state.errors] == [outcome]
    assert unresolved_failures(state) == []


def test_commands_are_kept_with_their_exit_status() -> None:
    state = folded(turn(0, deeds=(failed(1, "make"), worked(2, "x"), CallFact(3, "edit a", "edit", "ok"))))
    assert [(one.exit_status, one.turn, one.seq) for one in state.commands] == [(2, 0, 1), (0, 0, 2)]


def test_a_commit_is_a_decision_too() -> None:
    state = folded(turn(0, commits=((Commit("1a2b3c4", "Add login"), 5),)))
    assert [(one.text, one.kind, one.seq) for one in state.decisions] == [("commit 1a2b3c4 Add login", "commit", 5)]
    assert state.commits[0].subject == "Add login"


def test_decisions_and_constraints_are_kept_where_they_were_first_said() -> None:
    state = folded(
        turn(
            0,
            marks=((DecisionMark("never push", "imperative", binds=True), 0), (DecisionMark("go with A", "marker"), 1)),
        ),
        turn(1, marks=((DecisionMark("Never push!", "imperative", binds=True), 10),)),
    )
    assert [(one.text, one.turn, one.seq, one.again) for one in state.constraints] == [("never push", 0, 0, (10,))]
    assert [one.text for one in state.decisions] == ["go with A"]


def test_a_rule_that_was_taken_back_and_is_said_again_holds() -> None:
    rule = DecisionMark("Use Redis for the tokens", "imperative", binds=True)
    taken_back = turn(1, revisions=tuple((one, 10) for one in find_revisions("Scrap the Redis tokens.")))
    state = folded(turn(0, marks=((rule, 0),)), taken_back)
    assert [one.status for one in state.constraints] == ["rejected"]
    state = folded(turn(0, marks=((rule, 0),)), taken_back, turn(2, marks=((rule, 20), (rule, 21))))
    assert [(one.status, one.again) for one in state.constraints] == [("active", (20, 21))]


def test_a_question_is_answered_when_a_human_speaks_again() -> None:
    state = folded(turn(0, asked=(Saying("Push?", 5),)))
    assert [one.text for one in unanswered_questions(state)] == ["Push?"]
    noted = folded(turn(1, starter="agent", requests=(Saying("a note", 10),)), start=state)
    assert len(unanswered_questions(noted)) == 1
    answered = folded(turn(2, requests=(Saying("yes", 20),)), start=noted)
    assert [(one.answered_by) for one in answered.questions] == [2]


def test_a_plan_written_anew_drops_what_is_no_longer_in_it() -> None:
    state = folded(
        turn(0, plans=((PlanUpdate((PlanChange("a", "doing"), PlanChange("b", "open"), PlanChange("c", "done"))), 3),)),
        turn(1, plans=((PlanUpdate((PlanChange("a", "done"), PlanChange("d", "open"))), 13),)),
    )
    assert {one.text: (one.status, one.turn) for one in state.plan} == {
        "a": ("done", 1), "b": ("dropped", 1), "c": ("done", 0), "d": ("open", 1),
    }  # fmt: skip


def test_items_are_added_and_changed_one_by_one() -> None:
    state = folded(
        turn(
            0,
            plans=(
                (PlanUpdate((PlanChange("a", "open", "1"),), whole=False), 1),
                (PlanUpdate((PlanChange("b", "open"),), whole=False), 2),
                (PlanUpdate((PlanChange("", "doing", "2"),), whole=False), 3),
                (PlanUpdate((PlanChange("new words", "", "1"),), whole=False), 4),
            ),
        )
    )
    assert [(one.id, one.text, one.status) for one in state.plan] == [("1", "new words", "open"), ("2", "b", "doing")]


def test_the_next_steps_are_those_named_last() -> None:
    first = turn(0, steps=(Saying("push", 5),), answer=Saying("done", 5))
    second = turn(1, steps=(Saying("rest", 15),), answer=Saying("done", 15))
    state = folded(first, second, turn(2))
    assert [(one.text, one.turn) for one in state.next_steps] == [("rest", 1)]
    assert folded(turn(3, answer=Saying("all of it is done", 35)), start=state).next_steps == ()


def test_a_request_without_an_answer_is_waiting() -> None:
    asked = turn(0, requests=(Saying("add a basket", 0),))
    assert folded(asked).waiting
    assert not folded(turn(0, requests=(Saying("add a basket", 0),), answer=Saying("added", 3))).waiting


def test_a_reply_is_joined_to_what_it_answers() -> None:
    offer = Offer(5, "Which store?", options=(("1", "Redis"), ("2", "PostgreSQL")))
    state = folded(turn(0, offer=offer, answer=Saying("Which store?", 5)), turn(1, requests=(Saying("2", 10),)))
    decision = state.decisions[0]
    assert (decision.text, decision.about, decision.about_seq, decision.seq) == ("2: PostgreSQL", "Which store?", 5, 10)
    assert state.requests[-1].about == "Which store?"


def test_a_choice_of_the_model_is_by_the_agent() -> None:
    state = folded(turn(0, marks=((DecisionMark("I'm keeping the old name", "choice"), 4),)))
    assert [(one.by, one.kind) for one in state.decisions] == [("agent", "choice")]


def test_tokens_add_up_and_say_when_some_were_estimated() -> None:
    state = folded(turn(0, tokens=10, token_source="api"), turn(1, tokens=5, token_source="estimate"), turn(2))
    assert (state.total_tokens, state.token_source) == (15, "estimate")
    assert folded(turn(0, tokens=10, token_source="api"), turn(1)).token_source == "api"


def test_a_path_outside_the_workspace_stays_whole() -> None:
    assert local_path("/home/ann/shopping/a", "/home/ann/shop") == "/home/ann/shopping/a"
    assert local_path("C:\\shop\\a.py", "C:\\shop") == "a.py"


def test_a_command_of_the_client_leaves_the_end_as_it_was() -> None:
    cut = turn(
        0,
        requests=(Saying("build it", 0),),
        deeds=(worked(3),),
        cut_off=True,
        begun=Saying("I build it", 2),
        interrupted=True,
    )
    state = folded(cut, turn(1))
    assert state.waiting and state.interrupted and state.begun and state.ending
    assert not folded(cut, turn(1, requests=(Saying("paint it", 10),), answer=Saying("Painted.", 11))).ending
