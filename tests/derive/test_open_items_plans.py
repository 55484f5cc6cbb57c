"""Plans in the shapes that agents write them."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.derive.open_items import PlanChange, PlanUpdate, find_plan
from everturn.model.conversation import CallStart


def plan(given: Any, output: str = "", kind: str = "plan") -> PlanUpdate | None:
    return find_plan(CallStart("c", "some_tool", kind, input=given), output)


@pytest.mark.parametrize(
    "given",
    [
        {"todos": [{"content": "read", "status": "completed"}, {"content": "write", "status": "in_progress"}]},
        {
            "plan": [{"step": "read", "status": "completed"}, {"step": "write", "status": "in_progress"}],
            "explanation": "x",
        },
        {"todos": [{"description": "read", "status": "completed"}, {"description": "write", "status": "in-progress"}]},
        {"asked": "**Tasks:**\n- [X] read\n- [⚡] write"},
        {"content": "- [x] read\n- [~] write"},
        [{"title": "read", "done": True}, {"title": "write", "status": "doing"}],
    ],
)
def test_a_whole_plan_in_any_shape(given: Any) -> None:
    assert plan(given) == PlanUpdate((PlanChange("read", "done"), PlanChange("write", "doing")))


def test_one_item_is_added_with_the_number_it_got() -> None:
    added = plan({"subject": "write tests", "description": "all of them"}, "Task #4 created: write tests")
    assert added == PlanUpdate((PlanChange("write tests", "open", "4"),), whole=False)


def test_one_item_is_changed_by_its_number() -> None:
    assert plan({"taskId": "4", "status": "completed"}) == PlanUpdate((PlanChange("", "done", "4"),), whole=False)
    assert plan({"taskId": 4, "status": "deleted"}) == PlanUpdate((PlanChange("", "dropped", "4"),), whole=False)


def test_progress_told_in_another_call_counts() -> None:
    found = plan({"path": "a.py", "task_progress": "- [x] read\n- [ ] write"}, kind="edit")
    assert found == PlanUpdate((PlanChange("read", "done"), PlanChange("write", "open")))


@pytest.mark.parametrize("given", [None, {}, {"plan": "a long text"}, {"taskId": "4"}, "words", 7, {"todos": "x"}])
def test_what_says_nothing_of_items_is_no_plan(given: Any) -> None:
    assert plan(given) is None


def test_odd_items_are_passed_over() -> None:
    assert plan({"todos": [None, 7, "plain", {"content": 3}, {"content": "x", "status": 9}]}) == PlanUpdate(
        (PlanChange("plain", "open"), PlanChange("x", "open"))
    )
