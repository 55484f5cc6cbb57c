"""The evidence tools: lines of a log and of files with their numbers, and nothing outside of the workspace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from everturn.recall.budget import cost
from everturn.recall.evidence import (
    MAX_EVIDENCE_SEARCHES,
    RESULT_TOKENS,
    SEARCH_CONTEXT_LINES,
    SEARCH_PATTERN_MAX_LENGTH,
    EvidenceSearchTools,
    LogFile,
    session_evidence,
)
from everturn.sources.contract import all_sources
from tests.recall.archives import Archive
from tests.recall.test_tool import body

KEY = "AKIA" + "Q7XW2MZP4RTY5LNB"
LOG = "\n".join(f"line {n}" for n in range(1, 11))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.py").write_text("import os\n\ndef main():\n    return 1\n")
    (tmp_path / "outside.txt").write_text("outside walrus")
    return root


def tools(workspace: Path, **more: Any) -> EvidenceSearchTools:
    return EvidenceSearchTools(LOG, str(workspace), **more)


def test_the_limits_are_those_of_the_design() -> None:
    assert (MAX_EVIDENCE_SEARCHES, SEARCH_CONTEXT_LINES, SEARCH_PATTERN_MAX_LENGTH) == (8, 3, 200)


# the log --------------------------------------------------------------------------------------------------------------
def test_a_match_in_the_log_has_its_number_and_three_lines_around_it() -> None:
    text = EvidenceSearchTools(LOG).search_log("line 5")
    assert text.startswith("search_log: 1 match in the log.\n")
    assert body(text) == "2- line 2\n3- line 3\n4- line 4\n5: line 5\n6- line 6\n7- line 7\n8- line 8"
    assert body(EvidenceSearchTools(LOG).search_log("line 5", context_lines=0)) == "5: line 5"
    assert (
        body(EvidenceSearchTools(LOG).search_log("line [18]$", 1))
        == "1: line 1\n2- line 2\n---\n7- line 7\n8: line 8\n9- line 9"
    )


def test_a_pattern_is_a_regular_expression_and_a_wrong_one_is_answered() -> None:
    log = EvidenceSearchTools(LOG)
    assert "2 matches" in log.search_log(r"line (3|7)\b", 0)
    assert log.search_log("(").startswith("search_log: ") and "quoted" not in log.search_log("(")
    assert "give a pattern" in log.search_log("")
    assert "nothing in the log matches 'walrus'" in log.search_log("walrus")


def test_a_pattern_of_more_than_200_characters_is_answered_not_run() -> None:
    assert "1 match" in EvidenceSearchTools("a" * 300).search_log("a" * 200)
    assert "the pattern has 201 characters; at most 200" in EvidenceSearchTools("a" * 300).search_log("a" * 201)


def test_a_pattern_that_would_never_end_ends() -> None:
    text = EvidenceSearchTools("a" * 5000 + "!").search_log("(a+)+(a+)+(a+)+$")
    assert text.startswith("search_log: ")


def test_a_result_is_never_longer_than_its_room(workspace: Path) -> None:
    long = "\n".join("walrus " + "word " * 200 for _ in range(3000))
    (workspace / "long.txt").write_text(long)
    (workspace / "wide.txt").write_text("walrus" * 100_000)
    made = EvidenceSearchTools(long, str(workspace), [LogFile(f"f{n}.py", "read", n) for n in range(5000)])
    texts = [made.search_log("walrus", 20), made.search_file("long.txt", "walrus"), made.read_file("long.txt")]
    texts += [made.read_file("wide.txt"), made.search_file("wide.txt", "walrus"), made.list_artifacts()]
    for text in texts:
        assert cost(text) <= RESULT_TOKENS + 200
    assert "use a narrower pattern" in texts[0] and "Not shown: " in texts[5]


def test_a_session_is_a_log_whose_lines_know_their_turn(archive: Archive) -> None:
    middle = "\n".join(f"row {n}" if n != 5000 else "the walrus" for n in range(10_000))
    session = archive.take_in(
        archive.history.turn("first", "one"), archive.history.tool_turn("second", "make", middle),
        archive.use("Write", "t9", file_path="/home/ann/shop/src/a.py", content="x"), archive.back("t9", "done"),
    )  # fmt: skip
    made = session_evidence(archive.store, all_sources(), session)
    told = body(made.search_log("the walrus", 1))
    assert told.startswith("--- turn 2, message 4 ---\n") and ":   the walrus" in told
    assert "[Turn 1] user:" in made.search_log("first")
    assert body(made.list_artifacts()) == "src/a.py  created in turn 2"
    assert "no workspace" in made.read_file("src/a.py")


def test_secrets_and_escapes_do_not_leave_by_any_tool(workspace: Path, archive: Archive) -> None:
    hostile = f"walrus {KEY} \x1b[31mred\x1b]0;x\x07\x9b\n"
    (workspace / "env.txt").write_text(hostile)
    session = archive.take_in(archive.history.turn(hostile, hostile))
    for made in (
        EvidenceSearchTools(hostile, str(workspace), [LogFile(f"/x/{KEY}/\x1b[2J", "read", 1)]),
        session_evidence(archive.store, all_sources(), session, str(workspace)),
    ):
        texts = [made.search_log("walrus"), made.search_file("env.txt", "walrus"), made.read_file("env.txt")]
        texts += [made.list_artifacts(), made.read_file(f"{KEY}\x1b[2J"), made.search_log(KEY)]
        assert not [text for text in texts if KEY in text or set("\x1b\x07\x9b") & set(text)]
        assert all("walrus" in text for text in texts[:3])


# files ----------------------------------------------------------------------------------------------------------------
def test_a_file_is_read_with_numbers_and_in_part(workspace: Path) -> None:
    text = tools(workspace).read_file("src/main.py")
    assert text.startswith("read_file: src/main.py, lines 1 to 4 of 4.\n")
    assert body(text) == "1: import os\n2: \n3: def main():\n4:     return 1"
    assert body(tools(workspace).read_file("./src//main.py", (3, 99))) == "3: def main():\n4:     return 1"
    assert "has 4 lines; there is no line 5" in tools(workspace).read_file("src/main.py", (5, 6))


@pytest.mark.parametrize("given", [(0, 3), (3, 1), (1,), (1, 2, 3), ("1", "2"), (True, 2)])
def test_a_wrong_range_is_answered(workspace: Path, given: Any) -> None:
    assert "as in (10, 20)" in tools(workspace).read_file("src/main.py", given)


def test_a_long_file_says_how_to_go_on(workspace: Path) -> None:
    (workspace / "long.txt").write_text("\n".join(f"row {n} with some words" for n in range(1, 5001)))
    seen, text = "", tools(workspace).read_file("long.txt")
    for _ in range(60):
        seen += body(text) + "\n"
        if "Not shown" not in text:
            break
        first, last = text.rpartition("(")[2].rstrip(")]").split("-")
        text = tools(workspace).read_file("long.txt", (int(first), int(last)))
    assert all(f"{n}: row {n} with" in seen for n in range(1, 5001))


def test_a_file_is_searched(workspace: Path) -> None:
    text = tools(workspace).search_file("src/main.py", "def .*main")
    assert text.startswith("search_file: 1 match in src/main.py.") and "3: def main():" in body(text)
    assert "nothing in src/main.py matches" in tools(workspace).search_file("src/main.py", "walrus")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("../outside.txt", "may not lead upwards"), ("src/../../outside.txt", "may not lead upwards"),
        ("src\\..\\..\\outside.txt", "may not lead upwards"), ("/etc/passwd", "only paths below the workspace"),
        ("~/x", "only paths below"), ("C:\\x", "only paths below"), ("", "give the path"), ("a\0b", "give the path"),
        ("src", "folder"), (".", "folder"), ("nope.txt", "no such file"), ("src/main.py/x", "not a folder"),
        ("x" * 5000, "cannot be opened"), ("\ud800", ""),
    ],
    ids=lambda value: ascii(value)[:12],
)  # fmt: skip
def test_a_path_that_leads_elsewhere_is_answered_in_words(workspace: Path, path: str, words: str) -> None:
    for text in (tools(workspace).read_file(path), tools(workspace).search_file(path, "walrus")):
        assert words in text and "outside walrus" not in text and "quoted from" not in text


def test_an_absolute_path_inside_the_workspace_is_answered_with_the_right_one(workspace: Path) -> None:
    assert "as in src/main.py" in tools(workspace).read_file(f"{workspace}/src/main.py")


def test_no_link_is_followed(workspace: Path) -> None:
    (workspace / "file").symlink_to(workspace.parent / "outside.txt")
    (workspace / "folder").symlink_to(workspace.parent)
    (workspace / "inside").symlink_to(workspace / "src" / "main.py")
    for path in ("file", "folder/outside.txt", "inside"):
        text = tools(workspace).read_file(path)
        assert "symbolic link" in text and "outside walrus" not in text


def test_a_workspace_may_itself_be_reached_by_a_link(workspace: Path) -> None:
    (workspace.parent / "link").symlink_to(workspace)
    assert "import os" in EvidenceSearchTools("", str(workspace.parent / "link")).read_file("src/main.py")


def test_a_folder_swapped_for_a_link_while_reading_leads_nowhere(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever changes the folder between two steps: each step opens below the one before and follows no link."""
    real = os.open

    def swapping(path: Any, flags: int, *args: Any, **more: Any) -> int:
        if path == "src":
            (workspace / "src").rename(workspace / "old")
            (workspace / "src").symlink_to(workspace.parent)
        return real(path, flags, *args, **more)

    monkeypatch.setattr(os, "open", swapping)
    monkeypatch.setattr(os, "supports_dir_fd", {*os.supports_dir_fd, swapping})
    text = tools(workspace).read_file("src/outside.txt")
    assert "outside walrus" not in text and "symbolic link" in text


def test_what_is_not_an_ordinary_text_file_is_not_read(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "binary").write_bytes(b"walrus\0\1\2")
    assert "not a regular file" in tools(workspace).read_file("pipe")
    assert "not a text file (9 bytes)" in tools(workspace).read_file("binary")
    (workspace / "latin").write_bytes(b"caf\xe9 walrus")
    assert "caf� walrus" in tools(workspace).read_file("latin")
    if os.geteuid() != 0:
        (workspace / "latin").chmod(0)
        assert "may not be read" in tools(workspace).read_file("latin")


def test_a_huge_file_is_looked_at_up_to_a_size(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (workspace / "huge").open("wb") as file:
        file.write(b"walrus\n")
        file.write(b"x\n" * 4_194_304)
    text = tools(workspace).search_file("huge", "walrus")
    assert "1 match" in text and text.endswith("Only the first 8,388,608 of 8,388,615 bytes were looked at.")


def test_without_artifacts_the_list_says_so(workspace: Path) -> None:
    assert tools(workspace).list_artifacts() == "list_artifacts: no files are known."
    made = tools(
        workspace, artifacts=[LogFile(f"{workspace}/src/main.py", "read", 0), LogFile("src/main.py", "edited", 4)]
    )
    assert body(made.list_artifacts()) == "src/main.py  read in turn 1; edited in turn 5"
