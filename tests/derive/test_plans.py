"""Plans in the shapes that agents write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.derive.plans import (
    PlanChange,
    PlanItem,
    PlanUpdate,
    advance_plan,
    find_plan,
    find_task_items,
    find_ticked,
    fold_plan,
    task_number,
    tick_made_tasks,
    writes_ticks,
)
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


# --- task files ---
LISTED = "- [ ] T001 Create the shed in `src/shed.py`\n- [ ] T002 Paint the door\n- [ ] T003 Oil the hinge\n"


def _plan_after(*updates: PlanUpdate) -> dict[str, str]:
    items: tuple[PlanItem, ...] = ()
    for turn, update in enumerate(updates):
        items = advance_plan(items, [(update, 10 * turn)], turn)
    return {one.text: one.status for one in items}


def _listed(text: str = LISTED) -> PlanUpdate:
    return PlanUpdate(find_task_items(text), whole=False)


def _ticks(start: CallStart) -> PlanUpdate:
    return PlanUpdate(find_ticked(start), whole=False, known=True)


def test_an_edit_of_a_later_turn_ticks_the_tasks_of_a_file() -> None:
    patch = "*** Update File: tasks.md\n@@\n-- [ ] T002 Paint the door\n+- [X] T002 Paint the door\n"
    made = _plan_after(_listed(), _ticks(CallStart("c", "apply_patch", "edit", "tasks.md", input=patch)))
    assert made == {
        "T001 Create the shed in `src/shed.py`": "open",
        "T002 Paint the door": "done",
        "T003 Oil the hinge": "open",
    }


@pytest.mark.parametrize(
    "command",
    [
        r"sed -i 's/- \[ \] T003/- [x] T003/' specs/tasks.md",
        r"sed -i -E 's/\[ \] (T003)/[X] T003/' tasks.md",
        "python - <<'PY'\np = Path('tasks.md')\np.write_text(p.read_text().replace('- [ ] T003', '- [x] T003'))\nPY",
    ],
)
def test_a_command_ticks_a_task_by_its_number(command: str) -> None:
    start = CallStart("c", "shell", "shell", command=command, input={"command": command})
    assert writes_ticks(command)
    assert _plan_after(_listed(), _ticks(start))["T003 Oil the hinge"] == "done"


def test_a_tick_of_an_unknown_task_adds_none() -> None:
    start = CallStart(
        "c", "edit", "edit", "notes.md", input={"new_string": "- [x] Buy paint\n- [x] T002 Paint the door"}
    )
    assert "Buy paint" not in _plan_after(_listed(), _ticks(start))


def test_a_list_that_was_numbered_or_worded_anew_takes_the_place_of_the_old_one() -> None:
    new = "- [x] T001 Create the shed in `lib/shed.py`\n- [ ] T002 Order the paint\n- [ ] T003 Paint the door\n- [ ] T004 Oil the hinge\n"
    assert list(_plan_after(_listed(), _listed(new))) == [one.text for one in find_task_items(new)]


@given(st.permutations(["T001", "T002", "T003"]), st.integers(0, 3))
def test_what_is_ticked_is_done_and_the_rest_is_open(numbers: list[str], ticked: int) -> None:
    ticks = [
        _ticks(CallStart("c", "shell", "shell", command=f"sed -i 's/.*{one}/- [x] {one}/' tasks.md"))
        for one in numbers[:ticked]
    ]
    made = _plan_after(_listed(), *ticks)
    assert {task_number(text) for text, status in made.items() if status == "done"} == set(numbers[:ticked])
    assert len(made) == 3


def _made(*changed: tuple[str, int], listed: str = LISTED) -> list[str]:
    items = fold_plan((), [(_listed(listed), 10)], 0, (), dict(changed))
    return [task_number(one.text) for one in items if one.status == "done"]


def test_a_task_whose_own_files_were_made_after_it_was_listed_is_done() -> None:
    assert _made(("/work/src/shed.py", 20)) == ["T001"]
    assert _made(("src/shed.py", 20)) == ["T001"]
    assert _made(("/work/src/shed.py", 5)) == []  # before it was listed
    assert _made(("/work/lib/shed.py", 20)) == []


def test_a_file_that_many_tasks_name_says_nothing_unless_a_later_task_is_done() -> None:
    listed = "".join(f"- [ ] T00{at} Change `page.html`, part {at}\n" for at in range(1, 5))
    assert _made(("page.html", 20), listed=listed) == []
    assert _made(("page.html", 20), listed=f"{listed}- [x] T005 Clean up\n") == ["T001", "T002", "T003", "T004", "T005"]


@given(st.dictionaries(st.text(max_size=12), st.integers(0, 30), max_size=5))
def test_changed_files_open_no_task_and_add_none(changed: dict[str, int]) -> None:
    items = fold_plan((), [(_listed(), 10)], 0, (), {})
    after = tick_made_tasks(items, changed)
    assert [one.text for one in after] == [one.text for one in items]
    assert all(new.status in (old.status, "done") for old, new in zip(items, after, strict=True))
