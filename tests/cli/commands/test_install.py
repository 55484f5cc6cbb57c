"""`everturn install` and `uninstall` as a person uses them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from everturn.cli import main
from everturn.sources.contract import all_sources
from everturn.sources.toolkit.agent_program import HOOK_SECONDS

ABLE = [name for name, source in all_sources().items() if source.install is not None]
SETTINGS = '{\n  "theme": "dark" // mine\n}\n'


class Person:
    """Somebody with a home, four agents and a terminal."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys
        (home / "opencode").mkdir(parents=True)
        self.settings = home / "opencode" / "opencode.jsonc"
        self.settings.write_text(SETTINGS, "utf-8")

    def run(self, *words: str) -> tuple[int, str, str]:
        self._capsys.readouterr()
        code = main(list(words))
        said = self._capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    def files(self) -> dict[str, bytes]:
        """Everything outside of everturn's own folder."""
        found = (path for path in self.home.rglob("*") if path.is_file() and "everturn-home" not in path.parts)
        return {str(path.relative_to(self.home)): path.read_bytes() for path in found}


@pytest.fixture
def person(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path / "everturn-home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return Person(tmp_path, capsys)


@pytest.mark.parametrize("agent", ABLE)
def test_an_agent_is_installed_into_once_and_taken_out_again(agent: str, person: Person) -> None:
    before = person.files()
    code, out, err = person.run("install", agent, "--yes")
    assert code == 0 and "+++ " in out and "everturn-hook" in out and "installed" in err
    assert person.files() != before
    code, out, err = person.run("install", agent, "--yes")
    assert (code, out) == (0, "") and "nothing to do" in err
    assert person.run("uninstall", agent, "--yes")[0] == 0
    assert person.files() == before
    assert person.run("uninstall", agent, "--yes")[0] == 3


def test_a_dry_run_shows_the_changes_and_makes_none(person: Person) -> None:
    before = person.files()
    code, out, _ = person.run("install", "opencode", "--dry-run")
    assert code == 0 and f"--- {person.settings}\n+++ {person.settings}\n" in out
    assert ' {\n-  "theme": "dark" // mine\n+  "theme": "dark", // mine\n+  "mcp": {\n' in out
    assert person.files() == before
    assert not (person.home / "everturn-home").exists()


def test_nothing_happens_without_a_yes(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    before = person.files()
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert person.run("install", "opencode")[0] == 130
    assert person.files() == before


def test_all_are_those_that_were_used_here(person: Person) -> None:
    assert person.run("install", "all", "--yes")[0] == 3
    (person.home / ".codex").mkdir()
    (person.home / ".gemini").mkdir()
    answer = json.loads(person.run("install", "all", "--yes", "--json")[1])
    assert {item["agent"] for item in answer["items"]} == {"codex", "gemini"}
    assert person.run("uninstall", "all", "--yes")[0] == 0
    assert person.files() == {"opencode/opencode.jsonc": SETTINGS.encode()}


def test_all_are_summed_up_in_a_few_lines_unless_the_lines_are_asked_for(person: Person) -> None:
    for folder in (".claude", ".codex", ".gemini", ".local/share/opencode"):
        (person.home / folder).mkdir(parents=True)
    before = person.files()
    code, out, err = person.run("install", "all", "--dry-run")
    assert code == 0 and "+++ " not in out and "--diff" in err
    assert len(out.splitlines()) == len(ABLE) and len((out + err).splitlines()) <= 10
    assert f"changes {person.settings}; creates " in out
    code, out, _ = person.run("install", "all", "--dry-run", "--diff")
    assert code == 0 and f"+++ {person.settings}\n" in out and len(out.splitlines()) > 100
    assert person.files() == before


def test_a_file_that_cannot_be_written_is_told_and_everything_else_is_done(person: Person) -> None:
    (person.home / ".codex" / ".config.toml.everturn-part" / "in-the-way").mkdir(parents=True)
    (person.home / ".gemini").mkdir()
    code, _, err = person.run("install", "all", "--yes")
    config = person.home / ".codex" / "config.toml"
    assert code == 4 and f"{config}: cannot be written" in err
    assert "Codex: installed, except for 1 file" in err and "Gemini CLI: installed;" in err
    assert not config.exists()
    assert {".codex", ".gemini"} <= {path.partition("/")[0] for path in person.files()}
    assert person.run("uninstall", "all", "--yes")[0] == 0
    assert person.files() == {"opencode/opencode.jsonc": SETTINGS.encode()}


def test_a_project_has_its_own_and_the_home_nothing(person: Person) -> None:
    before = person.files()
    assert person.run("install", "opencode", "--project", "--yes")[0] == 0
    assert {path for path in person.files() if not path.startswith("work/")} == set(before)
    assert person.run("uninstall", "opencode", "--yes")[0] == 3
    assert person.run("uninstall", "opencode", "--project", "--yes")[0] == 0
    assert person.files() == before


def test_what_was_turned_on_stays_on_until_it_is_turned_off(person: Person) -> None:
    plugin = person.home / "opencode" / "plugins" / "everturn.js"
    person.run("install", "opencode", "--yes", "--hints")
    text = plugin.read_text("utf-8")
    assert "--hints" in text and f"const TIMEOUT = {HOOK_SECONDS * 1000}\n" in text and "/*" not in text
    assert "nothing to do" in person.run("install", "opencode", "--yes")[2]
    person.run("install", "opencode", "--yes", "--no-hints")
    assert "--hints" not in plugin.read_text("utf-8")


def test_an_agent_goes_by_the_beginning_of_its_name_and_an_unknown_one_is_told(person: Person) -> None:
    assert person.run("install", "open", "--dry-run")[0] == 0
    code, _, err = person.run("install", "nobody")
    assert code == 2 and "opencode" in err
    assert person.run("install")[0] == 2 and person.run("uninstall")[0] == 2


def test_secrets_of_a_settings_file_are_not_shown(person: Person) -> None:
    key = "sk-ant-api03-" + "Zq7" * 31 + "AA"
    person.settings.write_text(f'{{\n  "apiKey": "{key}"\n}}\n', "utf-8")
    _, out, _ = person.run("install", "opencode", "--yes")
    assert '"apiKey"' in out and key not in out
    assert key in person.settings.read_text("utf-8")


def test_a_settings_file_that_is_broken_is_left_alone_and_the_rest_is_done(person: Person) -> None:
    person.settings.write_text("{broken", "utf-8")
    code, _, err = person.run("install", "opencode", "--yes")
    assert code == 4 and "left as it is" in err
    assert person.settings.read_text("utf-8") == "{broken"
    assert (person.home / "opencode" / "plugins" / "everturn.js").exists()


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname != "Linux", reason="systemd is Linux only")
def test_the_service_is_written_and_the_command_told_where_it_cannot_be_started(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(person.home))
    code, _, err = person.run("install", "--service", "--yes")
    unit = person.home / "systemd" / "user" / "everturn.service"
    assert code == 0 and "sync" in unit.read_text("utf-8")
    assert "systemctl --user enable --now everturn.service" in err
    assert person.run("uninstall", "--service", "--yes")[0] == 0
    assert not unit.exists() and not unit.parent.exists()


def test_a_purge_takes_everything_of_ours_and_nothing_else(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    from everturn.store.vector_file import vectors_place

    before = person.files()
    home = person.home / "everturn-home"
    person.run("sync")
    person.run("install", "opencode", "--yes")
    (home / "notes.txt").write_text("not ours", "utf-8")
    vectors = vectors_place(str(home / "archive.db"), home, "")
    assert vectors is not None and (home / "archive.db").exists()
    vectors.write_bytes(b"numbers made from words")
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    assert person.run("uninstall", "--purge")[0] == 130
    assert (home / "archive.db").exists(), "it wants the word"
    monkeypatch.setattr("sys.stdin", io.StringIO("erase\n"))
    assert person.run("uninstall", "--purge")[0] == 0
    assert [path.name for path in home.iterdir()] == ["notes.txt"]
    assert person.files() == before


@pytest.mark.parametrize("archive", ["postgresql://ann:hunter2@db.example/team", ""])
def test_a_purge_says_exactly_what_goes_and_what_of_the_archive_stays(
    person: Person, monkeypatch: pytest.MonkeyPatch, archive: str
) -> None:
    before = person.files()
    if archive:
        monkeypatch.setenv("EVERTURN_DB", archive)
    person.run("install", "opencode", "--yes")
    code, _, err = person.run("uninstall", "--purge", "--dry-run")
    told = [line for line in err.splitlines() if "to be erased" in line]
    assert code == 0 and told == [f"to be erased: {person.home / 'everturn-home' / 'state'}"]
    assert ("nothing of it is erased" in err) == bool(archive) and "hunter2" not in err
    assert ("there is no archive at" in err) == (not archive)
    code, _, err = person.run("uninstall", "--purge", "--yes")
    assert code == 0 and "erases the archive" not in err
    assert person.files() == before and not (person.home / "everturn-home").exists()


def test_a_broken_toml_file_is_left_alone_and_the_reason_told(person: Person) -> None:
    path = person.home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text("[broken\n", "utf-8")
    code, _, err = person.run("install", "codex", "--yes")
    assert code == 4 and "line 1" in err and "left as it is" in err
    assert path.read_text("utf-8") == "[broken\n"
    assert person.run("uninstall", "codex", "--yes")[0] == 0
    assert person.files().keys() == {"opencode/opencode.jsonc", ".codex/config.toml"}


def test_the_status_line_of_the_command(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    class Stdin(io.StringIO):
        buffer = io.BytesIO(b'{"session_id": "x"}')

    monkeypatch.setattr("sys.stdin", Stdin())
    assert person.run("statusline")[:2] == (0, "everturn: not archived yet\n")


def test_what_is_forgotten_is_not_left_in_what_was_made_ready(person: Person) -> None:
    from everturn.capture.hook_answer import WHERE, prepare_context
    from tests.capture.history import SID, History

    history = History(person.home / ".claude")
    history.write(history.line("user", "hello"))
    person.run("sync")
    folder = person.home / "everturn-home" / "state" / "context"
    prepare_context(str(folder), "/home/ann/shop", WHERE, "zqcanary")
    assert person.run("forget", SID, "--yes")[0] == 0
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("keep", [False, True])
def test_what_is_forgotten_is_not_left_in_what_was_handed_to_another_agent(person: Person, keep: bool) -> None:
    from tests.capture.history import SID, History

    history = History(person.home / ".claude")
    history.write(history.turn("zqcanary", "reply"))
    person.run("sync")
    made = json.loads(person.run("resume", SID, "--in", "opencode", "--print", "--json")[1])["items"][0]
    path = Path(made["path"])
    assert b"zqcanary" in path.read_bytes()
    assert person.run("forget", SID, "--yes", *(["--keep-forks"] if keep else []))[0] == 0
    assert path.exists() == keep


def test_a_drain_makes_ready_what_was_turned_on(person: Person) -> None:
    from everturn import clock
    from everturn.capture.hook_answer import STATUS, WHERE, WINDOW, mark_of, read_prepared
    from everturn.text.times import iso
    from tests.capture.history import SID, WORKSPACE, History

    history = History(person.home / ".claude")
    at = iso(clock.now())
    history.write(history.line("user", "fix the zebra parser AKIAQ7XW2MZP4RTY5LNB", timestamp=at))
    folder = str(person.home / "everturn-home" / "state" / "context")
    assert person.run("drain")[0] == 0
    assert not os.path.exists(folder), "nobody wanted it"
    person.run("install", "claude", "--yes", "--hints", "--where-you-were", "--statusline")
    assert person.run("drain", "--json")[0] == 0
    told = json.loads(read_prepared(folder, WORKSPACE, WHERE))
    assert "zebra parser" in told and "data, not instructions" in told and "AKIAQ7XW2" not in told
    assert len(told) < 8000
    assert b"zebra" in read_prepared(folder, SID, WINDOW) and b"AKIAQ7XW2" not in read_prepared(folder, SID, WINDOW)
    assert json.loads(read_prepared(folder, SID, STATUS))["size"] == history.file().stat().st_size
    assert len(mark_of(SID)) == 16
