"""`everturn repair`: what it says, what it writes, with which exit code, and what it never touches."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from tests import broken
from tests.broken import Case, Harm
from tests.cli.desk import Desk


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with nothing in it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def lay(folder: Path, agent: str, *harms: Harm) -> tuple[Case, Path]:
    case = broken.whole(agent)
    for harm in harms:
        case = harm(case, Random(0))
    path = folder / case.name
    path.write_bytes(case.data)
    return case, path


def repair(desk: Desk, expected: int, *words: str) -> tuple[str, str]:
    """What it prints and what it says, having ended with this exit code."""
    code, out, err = desk.run("repair", *words)
    assert code == expected, out + err
    return out, err


@pytest.mark.parametrize(
    ("harms", "code", "word"),
    [
        ((), 0, "nothing is wrong"),
        ((broken.glued,), 1, "mendable"),
        ((broken.nul_in_line,), 4, "LOST"),
    ],
)
@pytest.mark.parametrize("agent", broken.AGENTS)
def test_a_check_only_says_what_is_wrong(
    desk: Desk, home: Path, agent: str, harms: tuple[Harm, ...], code: int, word: str
) -> None:
    _, path = lay(home, agent, *harms)
    out, err = repair(desk, code, str(path), "--check")
    assert word in out + err
    assert [one for one in home.rglob("*") if one.is_file()] == [path]


@pytest.mark.parametrize("agent", broken.AGENTS)
def test_a_file_that_is_in_no_archive_is_repaired(desk: Desk, home: Path, agent: str) -> None:
    case, path = lay(home, agent, broken.glued)
    out, _ = repair(desk, 0, str(path), "--json")
    made = Path(json.loads(out)["new"]["path"])
    assert path.read_bytes() == case.data
    assert made != path and "SAY-FOUR: seen." in made.read_text()
    _, err = repair(desk, 0, str(made), "--check")
    assert "nothing is wrong" in err


def test_a_session_is_repaired_from_what_the_archive_has(desk: Desk, home: Path) -> None:
    case, path = lay(home, "claude_code")
    desk.run("add", str(path))
    path.write_bytes(b"".join(case.lines[:3]))
    out, _ = repair(desk, 0, broken.SESSION["claude_code"][:8], "--json")
    answer = json.loads(out)
    assert answer["schema"] == "everturn/repair@1"
    assert answer["state"] == "mendable"
    assert {item["kind"] for item in answer["items"]} == {"missing"}
    made = Path(answer["new"]["path"])
    assert "SAY-FOUR: seen." in made.read_text()
    assert path.read_bytes() == b"".join(case.lines[:3])


def test_a_session_whose_file_is_gone_comes_back(desk: Desk, home: Path) -> None:
    _, path = lay(home, "codex")
    desk.run("add", str(path))
    path.unlink()
    out, _ = repair(desk, 0, broken.SESSION["codex"], "--json")
    assert "SAY-FOUR: seen." in Path(json.loads(out)["new"]["path"]).read_text()


def test_what_is_lost_gives_exit_code_4_and_a_session_all_the_same(desk: Desk, home: Path) -> None:
    _, path = lay(home, "claude_code", broken.torn_middle)
    out, err = repair(desk, 4, str(path))
    assert "LOST" in out and "bytes" in out
    assert "words are lost" in err
    assert len(list(home.rglob("*.jsonl"))) == 2


def test_a_file_of_which_nothing_can_be_made_is_refused(desk: Desk, home: Path) -> None:
    path = home / broken.whole("claude_code").name
    path.write_bytes(bytes(4096))
    _, err = repair(desk, 1, str(path), "--as", "claude_code")
    assert "cannot be repaired: there is nothing in it but empty space" in err
    repair(desk, 4, str(path), "--as", "claude_code", "--check")
    assert [one for one in home.rglob("*") if one.is_file()] == [path]


def test_the_mended_session_can_be_printed(desk: Desk, home: Path) -> None:
    _, path = lay(home, "codex", broken.glued)
    out, _ = repair(desk, 0, str(path), "--print")
    assert next(json.loads(line)["type"] for line in out.splitlines()) == "session_meta"
    assert [one for one in home.rglob("*") if one.is_file()] == [path]
