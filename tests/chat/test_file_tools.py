"""The built-in tools: what they do, and that nothing outside of the workspace is touched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from everturn.chat.file_tools import CommandFailed, built_in_tools
from everturn.loop.tools import NotDone, ReconciledResult, Tool, ToolContext
from everturn.recall.workspace import FileRefused, write_inside


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("one\ntwo\nthree\n")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "x.js").write_text("three")
    (tmp_path / "outside.txt").write_text("secret three")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "up").symlink_to(tmp_path)
    return folder


def tools(work: Path, level: str = "all") -> dict[str, Tool]:
    return {one.name: one for one in built_in_tools(str(work), level, dict(os.environ))}


def use(work: Path, name: str, **given: Any) -> str:
    one = tools(work)[name]
    context = {one.context: ToolContext("c1")} if one.context else {}
    return str(one.fn(**one.validate_arguments(given), **context))


def test_files_are_read_with_line_numbers_as_a_quotation(work: Path) -> None:
    text = use(work, "read_file", path="src/a.py", first_line=2, last_line=3)
    assert text.startswith("src/a.py, lines 2 to 3 of 4.\n-----") and "\n2: two\n3: three\n" in text
    assert "quoted from the workspace" in text
    with pytest.raises(FileRefused, match="there are none from 9"):
        use(work, "read_file", path="src/a.py", first_line=9)


def test_a_long_file_is_read_piece_by_piece(work: Path) -> None:
    (work / "long.txt").write_text("".join(f"line {n} {'x' * 90}\n" for n in range(2000)))
    text = use(work, "read_file", path="long.txt")
    assert "Not shown: lines" in text and "ask with first_line=" in text and len(text) < 80_000


def test_folders_are_listed_without_what_nobody_wrote(work: Path) -> None:
    assert use(work, "list").splitlines() == ["src/", "up/", "link.txt", "src/a.py"]
    assert use(work, "list", path="src") == "src/a.py"


def test_searching_finds_lines_inside_only(work: Path) -> None:
    assert use(work, "search", pattern="thr.e") == "src/a.py:3: three"
    assert use(work, "search", pattern="nothing at all") == "nothing matches 'nothing at all'"


def test_writing_makes_folders_and_keeps_the_mode(work: Path) -> None:
    assert use(work, "write_file", path="new/deep/b.txt", content="hi") == "new/deep/b.txt: created, 2 bytes"
    (work / "run.sh").write_text("x")
    (work / "run.sh").chmod(0o755)
    assert "replaced" in use(work, "write_file", path="./run.sh", content="y")
    assert (work / "run.sh").stat().st_mode & 0o777 == 0o755 and (work / "new" / "deep" / "b.txt").read_text() == "hi"
    assert [path.name for path in work.iterdir() if path.name.endswith(".new")] == []


def test_editing_needs_a_text_that_stands_there_once(work: Path) -> None:
    assert use(work, "edit_file", path="src/a.py", old="two", new="2") == "src/a.py: edited"
    assert (work / "src" / "a.py").read_text() == "one\n2\nthree\n"
    for old in ("nowhere", "e", ""):
        with pytest.raises(FileRefused, match="exactly once"):
            use(work, "edit_file", path="src/a.py", old=old, new="x")
    (work / "latin.txt").write_bytes(b"caf\xe9 two")
    with pytest.raises(FileRefused, match="not UTF-8"):
        use(work, "edit_file", path="latin.txt", old="two", new="2")


@pytest.mark.parametrize(
    "path", ["../outside.txt", "/etc/passwd", "up/outside.txt", "link.txt", "src/../../x", "~/x", "", "a\0b"]
)
@pytest.mark.parametrize("name", ["write_file", "edit_file", "read_file"])
def test_no_path_leads_out_of_the_workspace(work: Path, name: str, path: str) -> None:
    given = {"write_file": {"content": "x"}, "edit_file": {"old": "three", "new": "x"}, "read_file": {}}[name]
    with pytest.raises(FileRefused):
        use(work, name, path=path, **given)
    assert (work.parent / "outside.txt").read_text() == "secret three"
    assert sorted(path.name for path in work.parent.iterdir()) == ["outside.txt", "work"]


def test_a_folder_that_becomes_a_link_is_not_followed(work: Path) -> None:
    (work / "later").symlink_to(work.parent)
    with pytest.raises(FileRefused, match="symbolic link"):
        write_inside(str(work), "later/new.txt", "x")


def test_a_path_that_begins_with_the_workspace_is_inside(work: Path) -> None:
    assert "created" in use(work, "write_file", path=f"{work}/c.txt", content="x")


def test_the_shell_runs_in_the_workspace_and_tells_its_status(work: Path) -> None:
    assert use(work, "shell", command="cat src/a.py | head -1") == "one\n"
    with pytest.raises(CommandFailed, match="exit status 3\nbad"):
        use(work, "shell", command="echo bad; exit 3")
    assert "bytes are not shown" in use(work, "shell", command="yes | head -c 200000")


def test_what_changes_something_asks_and_what_reads_does_not(work: Path) -> None:
    asks = {name: one.needs_approval({}) for name, one in tools(work).items()}
    assert asks == {
        "read_file": False, "list": False, "search": False, "write_file": True, "edit_file": True, "shell": True,
    }  # fmt: skip
    assert list(tools(work, "read")) == ["read_file", "list", "search"] and tools(work, "none") == {}


def test_a_write_that_was_cut_short_is_found_out(work: Path) -> None:
    write, edit = tools(work)["write_file"], tools(work)["edit_file"]
    assert write.reconcile is not None and edit.reconcile is not None
    context = ToolContext("c1")
    done = {"path": "src/a.py", "content": "one\ntwo\nthree\n"}
    assert isinstance(write.reconcile(context, done), ReconciledResult)
    assert isinstance(write.reconcile(context, {**done, "content": "other"}), NotDone)
    assert isinstance(edit.reconcile(context, {"path": "src/a.py", "old": "two", "new": "2"}), NotDone)
    assert isinstance(edit.reconcile(context, {"path": "src/a.py", "old": "zwei", "new": "two"}), ReconciledResult)
    assert edit.reconcile(context, {"path": "src/a.py", "old": "zwei", "new": "deux"}) is None
