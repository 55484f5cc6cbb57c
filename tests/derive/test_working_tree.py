"""What the working tree and the reports of subagents say about changed files."""

from __future__ import annotations

import pytest

from everturn.derive.artifacts import named_files, stated_changes, told_files
from everturn.derive.commits import Commit
from everturn.derive.session_state import SessionState, advance_state
from everturn.derive.turn_facts import CallFact, FileNamed, Touch, TurnFacts
from everturn.derive.version_control import tree_changes

STATUS = " M src/a.py\n D old.py\n?? new.py\nR  x.py -> y.py\n?? folder/\n M node_modules/z.js\n"


def test_a_status_names_what_differs() -> None:
    wanted = [("edited", "src/a.py"), ("deleted", "old.py"), ("created", "new.py"), ("edited", "y.py")]
    assert tree_changes("git status --short", STATUS) == wanted
    assert tree_changes("git status -s", ' M "l\\303\\244mp.py"\n?? "a b.md"\n') == [
        ("edited", "lämp.py"),
        ("created", "a b.md"),
    ]
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


COMMIT = ((Commit("1a2b3c4", "x"), 8),)


def _listed(*turns: TurnFacts) -> list[str]:
    state = SessionState("s", "/shop")
    for facts in turns:
        state = advance_state(state, facts)
    return [path for path, one in state.files.items() if one.count]


def _committed(*deeds: CallFact, files: tuple[Touch, ...] = (), trees: tuple[Touch, ...] = ()) -> list[str]:
    """Return what is listed after a turn with some calls that ends with a commit of made.py."""
    commit = CallFact(8, "git add -A && git commit -m x", "shell", "ok", 0)
    report = Touch("made.py", "created", 8)
    return _listed(TurnFacts(0, 9, deeds=(*deeds, commit), files=(*files, report), commits=COMMIT, trees=trees))


def test_a_commit_alone_is_no_evidence_for_the_files_in_it() -> None:
    assert _committed() == []
    assert _committed(CallFact(2, "git status", "shell", "ok", 0), CallFact(3, "cat made.py", "shell", "ok", 0)) == []
    assert _committed(CallFact(2, "pytest -q", "shell", "ok", 0)) == []
    assert _committed(CallFact(2, "python scripts/make.py", "shell", "ok", 0)) == []
    assert _committed(CallFact(2, "Edit a.py", "edit", "ok"), files=(Touch("a.py", "edited", 2),)) == ["a.py"]


@pytest.mark.parametrize(
    "deed",
    [
        CallFact(2, "draw lamp.svg made.py", "shell", "ok", 0),
        CallFact(2, "Task build the lamp", "task", "ok"),
        CallFact(2, "edit_file", "edit", "ok"),
        CallFact(2, "sed -i s/a/b/ *.py", "shell", "ok", 0),
    ],
    ids=lambda one: one.what,
)
def test_a_file_of_a_commit_counts_if_something_can_have_made_it(deed: CallFact) -> None:
    assert "made.py" in _committed(deed)
    if deed.kind == "shell" and "made.py" not in deed.what:
        assert _committed(deed, trees=(Touch("made.py", "created", 1),)) == []


def test_a_pattern_covers_what_was_listed_before() -> None:
    listed = TurnFacts(
        0, 3, mentions=(FileNamed("src/a.go", 1, 2), FileNamed("src/b.go", 1, 2), FileNamed("c.go", 1, 2))
    )
    call = CallFact(5, "sed -i 's/old/new/' src/*.go", "shell", "ok", 0)
    assert _listed(listed, TurnFacts(1, 6, deeds=(call,))) == ["src/a.go", "src/b.go"]
    found = CallFact(5, "grep -rl old src --include='*.go' | xargs sed -i 's/old/new/'", "shell", "ok", 0)
    assert _listed(listed, TurnFacts(1, 6, deeds=(found,))) == []


def test_one_file_has_one_name() -> None:
    edit = TurnFacts(
        0, 2, deeds=(CallFact(1, "Edit", "edit", "ok"),), files=(Touch("/shop/api/src/a.py", "edited", 1),)
    )
    for path in ("src/a.py", "api/src/a.py", "/shop/api/src/a.py"):
        shell = TurnFacts(1, 5, deeds=(CallFact(4, "gofmt", "shell", "ok", 0),), files=(Touch(path, "edited", 4),))
        assert _listed(edit, shell) == ["api/src/a.py"]
    bare = TurnFacts(1, 5, deeds=(CallFact(4, "gofmt", "shell", "ok", 0),), files=(Touch("a.py", "edited", 4),))
    assert _listed(edit, bare) == ["api/src/a.py", "a.py"]


def test_a_name_that_an_answer_tells_is_the_file_of_that_name() -> None:
    edit = TurnFacts(0, 2, deeds=(CallFact(1, "Edit", "edit", "ok"),), files=(Touch("/shop/api/a.py", "edited", 1),))
    told = TurnFacts(1, 5, deeds=(CallFact(4, "edit_file", "edit", "ok"),), files=(Touch("a.py", "edited", 5),))
    assert _listed(edit, told) == ["api/a.py"]
    own = TurnFacts(1, 5, deeds=(CallFact(4, "Write a.py", "create", "ok"),), files=(Touch("a.py", "created", 4),))
    assert _listed(edit, own) == ["api/a.py", "a.py"]
    assert named_files("1. `Vite.js` was added\n2. `vite.config.js` was added") == ["vite.config.js"]


def test_edits_without_a_name_are_counted_unless_the_turn_names_files() -> None:
    edits = (CallFact(2, "edit_file", "edit", "ok"), CallFact(3, "edit_file", "edit", "ok"))
    state = advance_state(SessionState("s", "/shop"), TurnFacts(0, 5, deeds=edits))
    assert state.unnamed == 2
    told = TurnFacts(1, 9, deeds=(CallFact(7, "edit_file", "edit", "ok"),), files=(Touch("a.py", "edited", 8),))
    assert advance_state(state, told).unnamed == 2


def test_a_task_that_commits_changes_no_files() -> None:
    task = CallFact(5, "task Create meaningful commits", "task", "ok")
    assert _listed(TurnFacts(0, 9, deeds=(task,), trees=(Touch("a.py", "edited", 7),))) == []


def test_a_status_of_another_folder_and_cut_names() -> None:
    assert tree_changes("git -C /shop/api status --short", " M src/a.py\n") == [("edited", "/shop/api/src/a.py")]
    stat = " .../components/lamp.tsx | 3 +-\n .specstory/history/x.md | 9 +\n .moon/cache/y.json | 1 +\n"
    assert tree_changes("git diff --stat", stat) == [("edited", "components/lamp.tsx")]


def test_a_report_on_edits_without_names_names_files() -> None:
    report = "### 1. **Created the table** (`tables.exs`)\n- Updated `lamp.ex` to shine\n2. **`shade.ex`**: new\nNot `dark.ex`."
    assert named_files(report) == ["shade.ex", "tables.exs", "lamp.ex"]
    near = [("file:///shop/lib/lamp.ex", 3), ("/shop/other.ex", 4)]
    assert told_files(near, (report, 9), {}, False, []) == {
        "shade.ex": 9,
        "tables.exs": 9,
        "file:///shop/lib/lamp.ex": 3,
    }
