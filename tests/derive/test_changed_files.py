"""One entry for each changed file: its name, its last state, and whose change it is."""

from __future__ import annotations

import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.derive.artifacts import touched_files
from everturn.derive.changed_files import TreeBefore, advance_files, advance_ran
from everturn.derive.commits import Commit
from everturn.derive.file_book import REPORT, SUBAGENT, FileBook, FileState
from everturn.derive.session_state import SessionState, advance_state
from everturn.derive.turn_facts import CallFact, Touch, TurnFacts
from everturn.model.conversation import CallEnd, CallStart


def _edit(path: str, seq: int, turn: int = 0, action: str = "edited") -> TurnFacts:
    """Return a turn in which a call edits a file that it names."""
    return TurnFacts(
        turn, seq + 1, deeds=(CallFact(seq, f"Edit {path}", "edit", "ok"),), files=(Touch(path, action, seq),)
    )


def _ran(command: str, seq: int, turn: int, *touches: tuple[str, str], commits: bool = False) -> TurnFacts:
    return TurnFacts(
        turn,
        seq + 1,
        deeds=(CallFact(seq, command, "shell", "ok", 0),),
        files=tuple(Touch(path, action, seq) for action, path in touches),
        commits=((Commit("1a2b3c4", "x"), seq),) if commits else (),
    )


def _told(path: str, seq: int, turn: int) -> TurnFacts:
    """Return a turn whose answer names the file of an edit that names none."""
    return TurnFacts(
        turn, seq + 1, deeds=(CallFact(seq - 1, "edit_file", "edit", "ok"),), files=(Touch(path, "edited", seq),)
    )


def _files(workspace: str, *turns: TurnFacts) -> dict[str, FileState]:
    state = SessionState("s", workspace)
    for facts in turns:
        state = advance_state(state, facts)
    return {path: one for path, one in state.files.items() if one.count}


def _names(workspace: str, *turns: TurnFacts) -> list[str]:
    return list(_files(workspace, *turns))


@pytest.mark.parametrize("workspace", ["", "/elsewhere/lamp"])
def test_without_a_known_workspace_a_relative_name_is_the_file_that_ends_with_it(workspace: str) -> None:
    whole = "/home/ann/lamp/src/lamp.py"
    assert _names(workspace, _edit(whole, 1), _edit("src/lamp.py", 4, 1)) == [whole]
    assert _names(workspace, _edit("src/lamp.py", 1), _edit(whole, 4, 1)) == [whole]
    assert _names(workspace, _edit(whole, 1), _told("lamp.py", 4, 1)) == [whole]
    assert _files(workspace, _edit("src/lamp.py", 1), _edit(whole, 4, 1))[whole].count == 2


def test_a_told_name_is_the_file_that_was_read() -> None:
    whole = "/home/ann/lamp/src/lamp.py"
    read, edit = _edit(whole, 1, 0, "read"), _edit(whole, 8, 2)
    assert _names("/elsewhere", read, _told("src/lamp.py", 5, 1), edit) == [whole]
    assert _names("/elsewhere", _told("src/lamp.py", 2, 0), read, edit) == [whole]
    assert len(_names("/elsewhere", read, _told("lamp.py", 5, 1))) == 1


def test_what_a_session_made_stays_made_and_what_was_there_is_edited() -> None:
    made = _files("/lamp", _edit("a.py", 1, 0, "created"), _edit("a.py", 4, 1), _edit("a.py", 7, 2, "created"))["a.py"]
    assert (made.effect, made.count) == ("created", 3)
    assert _files("/lamp", _edit("a.py", 1, 0, "read"), _edit("a.py", 4, 1, "created"))["a.py"].effect == "edited"
    assert _files("/lamp", _edit("a.py", 1), _edit("a.py", 4, 1, "created"))["a.py"].effect == "edited"
    told = _files("", _told("src/a.py", 2, 0), _edit("/home/ann/lamp/src/a.py", 5, 1, "created"))
    assert [one.effect for one in told.values()] == ["edited"]


def test_the_report_of_a_commit_makes_no_file_again() -> None:
    commit = _ran("git add -A && git commit -m x", 7, 2, ("created", "a.py"), commits=True)
    again = _files("/lamp", _edit("a.py", 1), commit)["a.py"]
    assert (again.effect, again.count, again.seq) == ("edited", 1, 1)
    gone = _ran("git rm a.py", 4, 1, ("deleted", "a.py"))
    assert _files("/lamp", _edit("a.py", 1), gone, commit)["a.py"].action == "created"


def test_a_commit_that_a_client_takes_back_takes_its_edits_with_it() -> None:
    def committed(facts: TurnFacts, number: str) -> TurnFacts:
        return replace(facts, last_seq=facts.last_seq + 2, commits=((Commit(number, "x"), facts.last_seq + 1),))

    first = committed(_edit("a.py", 1), "aaaa111")
    second = replace(
        committed(_edit("b.py", 5, 1), "bbbb222"), files=(Touch("a.py", "edited", 5), Touch("b.py", "edited", 5))
    )
    undo = TurnFacts(2, 10, commits=((Commit("bbbb222", "", undone=True), 9),))
    assert {path: one.count for path, one in _files("/lamp", first, second, undo).items()} == {"a.py": 1}
    assert _names("/lamp", first, second) == ["a.py", "b.py"]


def test_a_name_that_ends_two_files_is_its_own() -> None:
    two = _edit("/lamp/api/src/a.py", 1), _edit("/lamp/web/src/a.py", 4, 1)
    assert len(_names("", *two, _edit("src/a.py", 7, 2))) == 3


def test_a_bare_name_is_a_file_at_the_root_that_the_others_share() -> None:
    two = _edit("/home/ann/lamp/README.md", 1), _edit("/home/ann/lamp/docs/README.md", 4, 1)
    assert len(_names("", *two, _edit("README.md", 7, 2))) == 2
    below = _edit("/home/ann/lamp/docs/README.md", 1), _edit("/home/ann/lamp/src/a.py", 4, 1)
    assert len(_names("", *below, _edit("README.md", 7, 2))) == 3


def test_in_a_known_workspace_a_call_means_what_it_names() -> None:
    known = _edit("/lamp/api/src/a.py", 1)
    assert _names("/lamp", known, _edit("src/a.py", 4, 1)) == ["api/src/a.py", "src/a.py"]
    assert _names("/lamp", known, _edit("/other/api/src/a.py", 4, 1)) == ["api/src/a.py", "/other/api/src/a.py"]


def test_a_shell_names_files_from_the_folder_it_went_to() -> None:
    edit = _edit("/home/ann/lamp/app.py", 1)
    commit = _ran("git add -A && git commit -m x", 7, 2, ("created", "app.py"), commits=True)
    assert _names("/home/ann", edit, _ran("cd /home/ann/lamp && ls", 4, 1), commit) == ["lamp/app.py"]
    assert _names("/home/ann", edit, _ran("touch app.py", 4, 1, ("created", "app.py"))) == ["lamp/app.py", "app.py"]


def test_an_answer_may_write_a_name_with_another_case() -> None:
    assert _names("/lamp", _edit("/lamp/README.md", 1), _told("readme.md", 5, 1)) == ["README.md"]
    assert _names("/lamp", _told("readme.md", 2, 0), _edit("/lamp/README.md", 5, 1)) == ["README.md"]
    assert len(_names("/lamp", _edit("/lamp/Makefile", 1), _edit("/lamp/makefile", 4, 1))) == 2


def test_a_client_may_leave_out_the_folder() -> None:
    assert _names("", _edit("lamps/shade_study.ipynb", 1), _edit("shade_study.ipynb", 4, 1)) == [
        "lamps/shade_study.ipynb"
    ]
    assert len(_names("", _edit("docs/README.md", 1), _edit("README.md", 4, 1))) == 2


@given(
    st.lists(
        st.tuples(st.sampled_from(("src/a.py", "web/a.py", "b/c/lamp.ts", "d.md")), st.sampled_from("ra")),
        max_size=12,
    )
)
def test_with_a_known_workspace_every_file_has_one_entry(edits: list[tuple[str, str]]) -> None:
    turns = [
        _edit(f"/home/ann/lamp/{path}" if way == "a" else path, 3 * k, k) for k, (path, way) in enumerate(edits, 1)
    ]
    found = _files("/home/ann/lamp", *turns)
    assert set(found) == {path for path, _ in edits}
    assert sum(one.count for one in found.values()) == len(edits)


@given(
    st.lists(
        st.tuples(st.sampled_from(("src/a.py", "web/b.py", "b/c/lamp.ts")), st.sampled_from("rat")),
        max_size=12,
    )
)
def test_without_a_workspace_every_file_has_one_entry(edits: list[tuple[str, str]]) -> None:
    whole = [_edit(f"/home/ann/lamp/{path}", k, k) for k, path in enumerate(("src/a.py", "web/b.py", "b/c/lamp.ts"), 1)]
    turns = [
        _told(path, 3 * k, k)
        if way == "t"
        else _edit(f"/home/ann/lamp/{path}" if way == "a" else f"./{path}", 3 * k, k)
        for k, (path, way) in enumerate(edits, 4)
    ]
    assert set(_names("", *turns, *whole)) == {
        f"/home/ann/lamp/{path}" for path in ("src/a.py", "web/b.py", "b/c/lamp.ts")
    }
    assert set(_names("", *whole, *turns)) == set(_names("", *turns, *whole))


def test_a_bare_name_of_two_files_is_that_at_the_root() -> None:
    both = _edit("/home/ann/lamp/GUIDE.md", 1), _edit("/home/ann/lamp/docs/GUIDE.md", 4, 1)
    more = _edit("/home/ann/lamp/src/a.py", 7, 2), _edit("GUIDE.md", 10, 3)
    assert {one.path: one.count for one in _files("", *both, *more).values()} == {
        "/home/ann/lamp/GUIDE.md": 2,
        "/home/ann/lamp/docs/GUIDE.md": 1,
        "/home/ann/lamp/src/a.py": 1,
    }


# --- the last state ---
def _touched(command: str, output: str = "") -> list[tuple[str, str]]:
    return list(touched_files(CallStart("1", "Bash", "shell", command=command), CallEnd("1", exit_status=0), output))


def test_in_one_command_the_last_state_counts() -> None:
    assert _touched("rm -f a.py && cat > a.py <<'E'\nx\nE") == [("created", "a.py")]
    assert _touched("cat > a.py <<'E'\nx\nE\npython a.py; rm a.py") == []


def test_a_file_that_is_no_longer_tracked_is_there() -> None:
    assert _touched("git rm --cached .env", "rm '.env'\n") == []
    assert _touched("git rm .env", "rm '.env'\n") == [("deleted", ".env")]
    kept = _edit("/lamp/.env", 1), _ran("git rm --cached .env", 4, 1)
    found = _files("/lamp", *kept, _ran("git commit -m x", 7, 2, ("deleted", ".env"), commits=True))
    assert {path: one.action for path, one in found.items()} == {".env": "edited"}


def test_a_folder_that_is_filled_again_was_not_deleted() -> None:
    removed = _ran("rm -rf web", 1, 0, ("deleted", "web"))
    assert _names("/lamp", removed) == ["web"]
    assert _names("/lamp", removed, _edit("/lamp/web/a.ts", 4, 1, "created")) == ["web/a.ts"]


def test_files_are_gone_with_their_folder() -> None:
    found = _files("/lamp", _edit("/lamp/web/a.ts", 1), _ran("rm -rf web", 4, 1, ("deleted", "web")))
    assert {path: one.action for path, one in found.items()} == {"web/a.ts": "deleted", "web": "deleted"}


def test_a_deleted_file_that_is_shown_later_was_written_again() -> None:
    removed = _ran("rm data/lamps.json", 1, 0, ("deleted", "data/lamps.json"))
    shown = TurnFacts(
        0, 9, deeds=(*removed.deeds, CallFact(4, "ls -la data/lamps.json", "shell", "ok", 0)), files=removed.files
    )
    assert _names("/lamp", shown) == []
    asked = TurnFacts(
        0,
        9,
        deeds=(*removed.deeds, CallFact(4, "ls data/lamps.json || echo gone", "shell", "ok", 0)),
        files=removed.files,
    )
    assert _names("/lamp", asked) == ["data/lamps.json"]


def test_what_tools_write_is_not_told_of_a_command() -> None:
    assert _touched("rm -rf node_modules package-lock.json && npm install") == []
    assert _touched("touch web/next-env.d.ts") == []


def test_what_a_script_says_it_wrote_counts_behind_a_filter_too() -> None:
    said = "Read 12 lamps\nSaved scores for 12 lamps -> data/scores.json\n"
    assert ("created", "data/scores.json") in _touched("python rate.py 2>&1 | tail -5", said)
    assert _touched("cat rate.log | tail -5", said) == [("read", "rate.log")]


# --- whose change it is ---
STATUS = (Touch("next.py", "created", 7),)


@pytest.mark.parametrize(
    "task",
    ["TaskStop b7ko17lg", "TaskOutput a1b2c3", "Agent Check missing files", "Agent Code review of the lamp"],
)
def test_a_task_that_writes_nothing_leaves_nothing_behind(task: str) -> None:
    facts = TurnFacts(0, 9, deeds=(CallFact(5, task, "task", "ok"),), trees=STATUS)
    assert _names("/lamp", facts) == []


@pytest.mark.parametrize("task", ["Agent Check the types and fix them", "Agent Build the lamp"])
def test_a_task_that_writes_leaves_files_behind(task: str) -> None:
    facts = TurnFacts(0, 9, deeds=(CallFact(5, task, "task", "ok"),), trees=STATUS)
    assert {one.by for one in _files("/lamp", facts).values()} == {"subagent"}


def test_a_new_repository_shows_the_files_of_everybody() -> None:
    deeds = CallFact(5, "Agent Build the lamp", "task", "ok"), CallFact(7, "git init && git status", "shell", "ok", 0)
    assert _names("/lamp", TurnFacts(0, 9, deeds=deeds, trees=STATUS)) == []


def _busy_turns(count: int) -> list[TurnFacts]:
    """Return turns that each edit a file, remove a folder, change the files of a pattern and commit it all."""
    turns = []
    for turn in range(count):
        seq, path = 10 * turn, f"src/m{turn}.py"
        commands = (f"find web -name '*.c{turn % 7}' | xargs sed -i 's/a/b/'", f"rm -rf old{turn}", "git commit -am x")
        deeds = [CallFact(seq, f"Edit {path}", "edit", "ok")]
        deeds += [CallFact(seq + at, one, "shell", "ok", 0) for at, one in enumerate(commands, 1)]
        files = ((path, "edited", 0), (f"old{turn}", "deleted", 2), (path, "created", 3), (f"y{turn}.py", "created", 3))
        facts = TurnFacts(turn, seq + 5, deeds=tuple(deeds), files=tuple(Touch(a, b, seq + at) for a, b, at in files))
        tree = (Touch(f"web/a{turn}.c1", "edited", seq + 2),)
        turns.append(replace(facts, trees=tree, commits=((Commit(f"{turn:07x}", f"x{turn}"), seq + 3),)))
    return turns


def test_the_work_of_a_turn_does_not_grow_with_the_turns_before_it() -> None:
    def work(count: int) -> int:
        """Return how many functions and methods run while the files of the last of some turns are folded in."""
        *before, last = _busy_turns(count)
        state = SessionState("s", "/home/ann/lamp")
        for facts in before:
            state = advance_state(state, facts)
        ran = advance_ran(state.ran, [one.command for one in state.commands[state.ran.read :]], len(state.commands))
        tree = TreeBefore(state.workspace, state.before, ran=ran, named=state.named)
        advance_files(state.files, last, tree)  # what is compiled once
        calls = 0

        def count_call(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(count_call)
        advance_files(state.files, last, tree)
        advance_ran(ran, [f"rm -rf {count}"], count)
        sys.setprofile(None)
        return calls

    assert work(320) < 1.3 * work(40)


PATHS = st.sampled_from(
    ("src/a.py", "src/web/a.py", "web/a.py", "src/web", "a.py", "docs/b.md", "/tmp/x/a.py", "lamp.ts")
)


@given(
    st.lists(st.tuples(PATHS, st.sampled_from(("edited", "created", "read", "deleted")), st.booleans()), max_size=14)
)
def test_what_files_are_looked_up_by_is_that_of_their_names(steps: list[tuple[str, str, bool]]) -> None:
    state = SessionState("s", "/home/ann/lamp")
    for turn, (path, action, is_shell) in enumerate(steps):
        facts = _ran(f"make {turn}", turn, turn, (action, path)) if is_shell else _edit(path, turn, turn, action)
        state = advance_state(state, facts)
        files = state.files
        assert isinstance(files, FileBook)
        fresh = FileBook(files, state.workspace)
        assert {key: n for key, n in files.folders.items() if n} == {key: n for key, n in fresh.folders.items() if n}
        assert set(files.gone) == {path for path, one in files.items() if one.action == "deleted"} == set(fresh.gone)
        assert files.outside == fresh.outside
        assert {key: set(v) for key, v in files.tails.items() if v} == {
            key: set(v) for key, v in fresh.tails.items() if v
        }


@given(st.lists(st.tuples(PATHS, st.sampled_from(("edited", "created", "read"))), max_size=12), st.integers(0, 12))
def test_more_input_never_gives_fewer_files(steps: list[tuple[str, str]], cut: int) -> None:
    turns = [_edit(path, 3 * k, k, action) for k, (path, action) in enumerate(steps)]
    assert len(_files("/home/ann/lamp", *turns[:cut])) <= len(_files("/home/ann/lamp", *turns))


def test_an_earlier_state_stays_as_it_was() -> None:
    first = advance_state(SessionState("s", "/lamp"), _edit("a/lamp.py", 1))
    advance_state(first, _ran("rm -rf a", 4, 1, ("deleted", "a")))
    again = advance_state(first, _edit("b/lamp.py", 4, 1))
    assert [(path, one.action) for path, one in again.files.items()] == [
        ("a/lamp.py", "edited"),
        ("b/lamp.py", "edited"),
    ]


def test_a_folder_takes_the_place_of_what_was_only_deleted_in_it() -> None:
    steps = [_edit("assets/a.md", 1), _ran("rm -r assets/old", 4, 1, ("deleted", "assets/old"))]
    gone = _files("/lamp", *steps, _ran("rm -r assets", 7, 2, ("deleted", "assets")))
    assert {path: one.action for path, one in gone.items()} == {"assets": "deleted", "assets/a.md": "deleted"}


def _made(path: str, turn: int) -> TurnFacts:
    facts = _ran(f"mkdir {path}", 3 * turn, turn)
    return replace(facts, folders=(Touch(f"{path}/", "created", 3 * turn),))


def test_a_folder_that_was_made_is_named_until_a_file_is_in_it_or_it_is_removed() -> None:
    assert _names("/lamp", _made("docs/api", 1)) == ["docs/api"]
    assert _names("/lamp", _made("docs/api", 1), _edit("docs/api/a.md", 7, 2)) == ["docs/api/a.md"]
    assert _names("/lamp", _edit("docs/api/a.md", 1), _made("docs/api", 2)) == ["docs/api/a.md"]
    assert _names("/lamp", _made("docs/api", 1), _ran("rmdir docs/api", 7, 2, ("deleted", "docs/api"))) == []


def test_a_folder_that_the_session_brought_and_removed_was_never_there() -> None:
    clone, remove = _ran("git clone https://x/lamp lamps", 1, 0), _ran("rm -rf lamps", 4, 1, ("deleted", "lamps"))
    assert _names("/shop", clone, remove) == []
    assert _names("/shop", _ran("ls lamps", 1, 0), remove) == ["lamps"]


def test_what_was_temporary_and_is_removed_was_never_there() -> None:
    assert _names("/shop", _ran("rm -rf /tmp/lamps", 1, 0, ("deleted", "/tmp/lamps"))) == []


def test_the_first_commit_of_a_repository_shows_what_was_there() -> None:
    task = TurnFacts(0, 2, deeds=(CallFact(1, "Agent paint the lamps", "task", "ok"),))
    first = _ran("git add . && git commit -m x", 4, 1, ("created", "lamps/a.py"), commits=True)
    root = msgspec.structs.replace(first, commits=((Commit("1a2b3c4", "x", root=True), 4),))
    assert _names("/shop", task, first) == ["lamps/a.py"]
    assert _names("/shop", task, root) == []


def test_a_folder_that_is_removed_takes_its_files_with_it() -> None:
    found = _files("/shop", _edit("/shop/lib/a.py", 1), _ran("rm -rf lib", 3, 1, ("deleted", "lib")))
    assert {path: one.action for path, one in found.items()} == {"lib": "deleted", "lib/a.py": "deleted"}


def test_a_folder_without_files_needs_no_entry() -> None:
    found = _files(
        "/shop",
        _edit("/shop/lib/a.py", 1, action="created"),
        _ran("rm lib/a.py", 3, 1, ("deleted", "lib/a.py")),
        _ran("rmdir lib; rm build.log", 5, 2, ("deleted", "lib"), ("deleted", "build.log")),
    )
    assert {path: (one.action, one.made) for path, one in found.items()} == {"lib/a.py": ("deleted", True)}


def test_a_file_that_is_no_longer_tracked_is_a_change() -> None:
    found = _files("/shop", _ran("git rm -r -q --cached .env lib *.log node_modules && git commit -m x", 1, 0))
    assert {path: one.action for path, one in found.items()} == {".env": "untracked", "lib": "untracked"}


def test_a_review_changes_nothing_whatever_its_report_names() -> None:
    review, work = (
        CallFact(1, f"Task {words}", "task", "ok") for words in ("Code review of the lamp", "Build the lamp")
    )
    touch = Touch("src/a.py", "edited", 1, SUBAGENT)
    assert _files("/shop", TurnFacts(0, 2, deeds=(review,), files=(touch,))) == {}
    assert list(_files("/shop", TurnFacts(0, 2, deeds=(work,), files=(touch,)))) == ["src/a.py"]


def test_what_only_an_answer_says_is_labelled_and_not_counted_twice() -> None:
    told = Touch("src/b.py", "edited", 5, REPORT)
    found = _files("/shop", _edit("/shop/src/a.py", 1), TurnFacts(1, 6, files=(replace(told, path="src/a.py"), told)))
    assert {path: (one.by, one.count) for path, one in found.items()} == {"src/a.py": ("", 1), "src/b.py": (REPORT, 1)}


def test_an_edit_beside_a_commit_of_the_same_message_is_the_agents() -> None:
    calls = (CallFact(3, "git commit -m x", "shell", "ok", 0), CallFact(3, "edit_file /shop/.gitignore", "edit", "ok"))
    seen = TurnFacts(
        0, 2, deeds=(CallFact(1, "git status", "shell", "ok", 0),), trees=(Touch(".gitignore", "created", 1),)
    )
    work = TurnFacts(
        1, 4, deeds=calls, files=(Touch("/shop/.gitignore", "edited", 3),), commits=((Commit("1a2b3c4", "x"), 3),)
    )
    assert list(_files("/shop", seen, work)) == [".gitignore"]
