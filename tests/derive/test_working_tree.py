"""What the working tree and the reports of subagents say about changed files."""

from __future__ import annotations

import pytest

from everturn.derive.artifacts import Commit, tree_changes
from everturn.derive.file_commands import stated_changes
from everturn.derive.session_state import SessionState, advance_state
from everturn.derive.turn_facts import CallFact, Touch, TurnFacts

STATUS = " M src/a.py\n D old.py\n?? new.py\nR  x.py -> y.py\n?? folder/\n M node_modules/z.js\n"


def test_a_status_names_what_differs() -> None:
    wanted = [("edited", "src/a.py"), ("deleted", "old.py"), ("created", "new.py"), ("edited", "y.py")]
    assert tree_changes("git status --short", STATUS) == wanted
    long = "Changes not staged:\n\tmodified:   src/a.py\n\tmodified:   sub (new commits, modified content)\n"
    assert tree_changes("git status", long) == [("edited", "src/a.py")]
    assert tree_changes("git diff --stat", " src/a.py | 3 +-\n b.png | Bin 0 -> 5 bytes\n 2 files changed") == [
        ("edited", "src/a.py"),
        ("edited", "b.png"),
    ]


def test_a_status_names_files_from_where_it_runs() -> None:
    shown = " M colour.py\n M ../docs/colours.md\n"
    assert tree_changes("cd src && git status --short", shown) == [
        ("edited", "src/colour.py"),
        ("edited", "docs/colours.md"),
    ]


@pytest.mark.parametrize(
    "command", ["git diff --stat main..topic", "git diff HEAD~1 --stat", "git log --stat", "ls", ""]
)
def test_another_comparison_says_nothing_about_the_tree(command: str) -> None:
    assert tree_changes(command, " src/a.py | 3 +-\n" + STATUS) == []


def test_a_report_states_changes() -> None:
    report = "Added a section to `docs/a.md`.\n- **`src/b.py`**: added a check\nI did not change `src/c.py`.\nSee `src/d.py`."
    assert stated_changes(report) == [("edited", "docs/a.md"), ("edited", "src/b.py")]


def test_what_a_subagent_leaves_behind_counts_and_what_was_there_before_does_not() -> None:
    before = TurnFacts(0, 3, trees=(Touch("mine.py", "edited", 1),))
    task = CallFact(5, "Task", "task", "ok")
    after = TurnFacts(1, 9, deeds=(task,), trees=(Touch("mine.py", "edited", 7), Touch("made.py", "created", 7)))
    commit = TurnFacts(
        2,
        12,
        files=(Touch("mine.py", "created", 11), Touch("too.py", "created", 11)),
        commits=((Commit("1a2b3c4", "x"), 11),),
    )
    state = SessionState("s", "/shop")
    for facts in (before, after, commit):
        state = advance_state(state, facts)
    assert {path: one.by for path, one in state.files.items()} == {"made.py": "subagent", "too.py": ""}


def test_a_subagent_that_only_looks_leaves_nothing_behind() -> None:
    looks = TurnFacts(
        0, 9, deeds=(CallFact(5, "Agent Explore the repository", "task", "ok"),), trees=(Touch("a.py", "edited", 7),)
    )
    assert advance_state(SessionState("s", "/shop"), looks).files == {}
