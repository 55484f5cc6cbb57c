"""`everturn doctor` after `everturn sync`, for the home of every agent."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from everturn import clock
from everturn.cli import main
from everturn.model.archive import HookEvent
from everturn.sources.contract import all_sources
from everturn.store.contract import open_store
from everturn.text.times import iso
from tests.fuzz.seeds import scripted_database
from tests.quick import some
from tests.sources import goldens
from tests.sources.crush import test_crush as crush
from tests.sources.cursor import test_cursor as cursor
from tests.sources.goose import test_goose as goose
from tests.sources.opencode import building as opencode

SAMPLES = Path(__file__).parents[2] / "sources"
UUID = "01999c1a-0000-7000-8000-{:012}"

#: Formats that have no folder to search: their files are added by name.
WITHOUT_FOLDER = {"journal", "messages", "atif", "otel"}


def copy_samples(
    agent: str, folder: str, name: str = "{stem}{suffix}", suffix: str = ".jsonl"
) -> Callable[[Path], Any]:
    """Return a function that copies the samples of a format below a home, named as the agent names its files."""

    def lay_out(home: Path) -> None:
        samples = sorted((SAMPLES / agent / "samples").glob(f"*{suffix}"))
        for n, sample in enumerate(one for one in samples if not one.name.endswith(".expected.json")):
            path = home / folder / name.format(stem=sample.stem, suffix=suffix, uuid=UUID.format(n), n=n)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(sample, path)

    return lay_out


def copy_tree(agent: str, folder: str) -> Callable[[Path], Any]:
    return lambda home: shutil.copytree(SAMPLES / agent / "samples", home / folder)


def in_folder(path: str, make: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Return a function that makes something at a path below a home."""

    def lay_out(home: Path) -> Any:
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        return make(home / path)

    return lay_out


#: What lays out the home of an agent. The result is held until the end: a database may still be open.
HOMES: dict[str, Callable[[Path], Any]] = {
    "aider": copy_samples("aider", "extra", "{stem}/.aider.chat.history.md", ".md"),
    "chat_markdown": copy_samples("chat_markdown", "agent-conversations", suffix=".md"),
    "chatgpt": copy_samples("chatgpt", "extra", "conversations.json", ".json"),
    "claude_ai": copy_samples("claude_ai", "extra", "conversations.json", ".json"),
    "amazon_q": in_folder(".local/share/amazon-q/data.sqlite3", lambda path: scripted_database(path, "amazon_q").close()),
    "zed": in_folder(".local/share/zed/threads/threads.db", lambda path: scripted_database(path, "zed").close()),
    "amp": copy_samples("amp", ".local/share/amp/threads", suffix=".json"),
    "copilot_chat": copy_samples(
        "copilot_chat", ".config/Code/User/workspaceStorage/1f/chatSessions", "{uuid}.json", ".json"
    ),
    "copilot_chat (journal)": copy_samples(
        "copilot_chat", ".config/Code/User/workspaceStorage/1f/chatSessions", "{uuid}.jsonl"
    ),
    "claude_code": copy_samples("claude_code", ".claude/projects/-home-ann-shop", "{uuid}.jsonl"),
    "cline": copy_tree("cline", ".cline/data/tasks"),
    "codex": copy_samples("codex", ".codex/sessions/2026/03/01", "rollout-2026-03-01T10-00-00-{uuid}.jsonl"),
    "copilot_cli": copy_samples("copilot_cli", ".copilot/session-state", "{uuid}/events.jsonl"),
    "crush": in_folder("extra/zoo", crush.build_database),
    "cursor": copy_samples("cursor", ".cursor/projects/shop/agent-transcripts", "{stem}/{stem}.jsonl"),
    "cursor (database)": in_folder(".config/Cursor/User/globalStorage/state.vscdb", cursor.database),
    "gemini": copy_samples("gemini", ".gemini/tmp/zoo/chats", "session-{n}.jsonl"),
    "gemini (document)": copy_samples("gemini", ".gemini/tmp/zoo/chats", "session-{n}.json", ".json"),
    "goose": copy_samples("goose", ".local/share/goose/sessions"),
    "goose (database)": in_folder(".local/share/goose/sessions/sessions.db", goose.database),
    "opencode (database)": in_folder(
        ".local/share/opencode/opencode.db", lambda path: opencode.database(path, opencode.SESSIONS)
    ),
    "opencode": in_folder(".local/share/opencode", opencode.storage),
    "opencode (early)": in_folder(".local/share/opencode", lambda path: opencode.storage(path, early=True)),
    "pi": copy_samples("pi", ".pi/agent/sessions/shop", "2026-03-01T10-00-00_{uuid}.jsonl"),
    "specstory": copy_samples("specstory", "extra/.specstory/history", suffix=".md"),
    "stream_json": copy_samples("stream_json", "extra"),
    "terminal": copy_samples("terminal", "extra", suffix=".txt"),
}  # fmt: skip


class Person:
    """Somebody with one agent, and no archive yet."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys

    def run(self, *words: str) -> tuple[int, str]:
        self._capsys.readouterr()
        code = main(list(words))
        said = self._capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out

    def folders(self, *words: str) -> dict[str, dict[str, str]]:
        """Return what `doctor` says about the folders of agents, by name."""
        return {name: check for name, check in self.checks(*words).items() if " in " in name}

    def checks(self, *words: str) -> dict[str, dict[str, str]]:
        """Return everything that `doctor` says, by name."""
        items = json.loads(self.run("doctor", "--json", *words)[1])["items"]
        return {check["name"]: check for check in items}


@pytest.fixture
def person(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Person:
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path / "everturn"))
    (tmp_path / "home").mkdir()
    return Person(tmp_path / "home", capsys)


def homes() -> dict[str, Callable[[Path], Any]]:
    """Return every home. A format without one above is tried with its samples in a folder that the person names."""
    listed = {name.partition(" ")[0] for name in HOMES}
    rest = sorted(set(all_sources()) - WITHOUT_FOLDER - listed)
    return HOMES | {name: copy_tree(name, "extra") for name in rest}


@pytest.mark.slow
@pytest.mark.parametrize("name", homes())
def test_after_a_sync_every_folder_is_fully_in_the_archive(name: str, person: Person) -> None:
    held = homes()[name](person.home)
    source = all_sources()[name.partition(" ")[0]]
    more = [f"--{source.option}", str(person.home / "extra")] if (person.home / "extra").exists() else []
    before = person.folders(*more)
    assert before and all(check["level"] != "ok" for check in before.values()), "add the home of this agent to HOMES"
    assert person.run("sync", *more)[0] in (0, 4)
    after = person.folders(*more)
    assert set(after) == set(before)
    assert all(check["level"] == "ok" and "all in the archive" in check["text"] for check in after.values()), after
    # The samples hold records of unknown types, doubtful readings and what is expected of them on purpose.
    others = {key: check for key, check in person.checks(*more).items() if key not in ("drift", "readings", "unread")}
    assert {check["level"] for check in others.values()} == {"ok"}, others
    with suppress(AttributeError):
        held.close()


#: Where an agent would have the real files of a format: folder beside the checkout → source, and their place in a home.
CORPUS_HOMES = {
    "aider": ("aider", "extra/{n}/.aider.chat.history.md"),
    "claude-code": ("claude_code", ".claude/projects/{where}"),
    "cline": ("cline", ".cline/data/tasks/{folder}{parent}/{name}"),
    "codex": ("codex", ".codex/sessions/2026/03/01/rollout-2026-03-01T10-00-00-{uuid}.jsonl"),
    "copilot-cli": ("copilot_cli", ".copilot/session-state/{stem}/events.jsonl"),
    "gemini": ("gemini", ".gemini/tmp/zoo/chats/session-{n}.json"),
    "goose": ("goose", ".local/share/goose/sessions/{name}"),
    "pi": ("pi", ".pi/agent/sessions/shop/2026-03-01T10-00-00_{uuid}.jsonl"),
    "specstory": ("specstory", "extra/{folder}/.specstory/history/{name}"),
}


@pytest.mark.slow
@pytest.mark.skipif(not goldens.CORPUS.is_dir(), reason="no real files beside the checkout")
def test_real_files_in_the_homes_of_their_agents_are_fully_in_the_archive_after_a_sync(person: Person) -> None:
    for folder, (_, place) in CORPUS_HOMES.items():
        top = goldens.CORPUS / folder
        for n, path in enumerate(some(sorted(one for one in top.rglob("*") if one.is_file()), 12)):
            where = path.relative_to(top)
            words = {"where": where, "parent": path.parent.name, "folder": n, "name": path.name, "stem": path.stem}
            to = person.home / place.format(**words, n=n, uuid=UUID.format(n))
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
    more = [word for name in ("aider", "specstory") for word in (f"--{name}-dir", str(person.home / "extra"))]
    before = person.folders(*more)
    assert len(before) == len(CORPUS_HOMES), before
    assert person.run("sync", *more)[0] == 0
    after = person.folders(*more)
    assert all(check["level"] == "ok" and "all in the archive" in check["text"] for check in after.values()), after
    # What a version of an agent adds to its format is told as drift; that is no fault of the archive.
    others = {key: check for key, check in person.checks(*more).items() if key not in ("drift", "readings", "unread")}
    assert {check["level"] for check in others.values()} == {"ok"}, others


def test_a_session_of_many_files_that_grew_is_behind_until_the_next_sync(person: Person) -> None:
    data = opencode.storage(person.home / ".local" / "share" / "opencode")
    person.run("sync")
    assert [check["level"] for check in person.folders().values()] == ["ok"]
    part = max((data / "storage" / "part").rglob("*.json"))
    late = part.stat().st_mtime_ns + 5_000_000_000
    os.utime(part, ns=(late, late))
    assert [check["level"] for check in person.folders().values()] == ["warn"]
    person.run("sync")
    assert [check["level"] for check in person.folders().values()] == ["ok"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser reads every folder")
def test_a_folder_that_cannot_be_listed_is_said_and_does_not_end_the_check(person: Person) -> None:
    copy_samples("codex", ".codex/sessions/2026/03/01", "rollout-2026-03-01T10-00-00-{uuid}.jsonl")(person.home)
    closed = person.home / ".codex" / "sessions" / "2026" / "04"
    closed.mkdir()
    closed.chmod(0)
    person.run("sync")
    code, out = person.run("doctor")
    closed.chmod(0o755)
    assert code == 4 and "Permission denied" in out


def test_hooks_that_are_in_place_fire_or_do_not_and_the_server_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, db = tmp_path / "home", tmp_path / "archive.db"
    (home / ".claude").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path / "ours"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)

    def checks() -> dict[str, tuple[str, str]]:
        capsys.readouterr()
        main(["doctor", "--json", "--db", str(db)])
        return {one["name"]: (one["level"], one["text"]) for one in json.loads(capsys.readouterr().out)["items"]}

    assert not any(name.startswith("hooks of") for name in checks())  # nothing is installed
    assert main(["install", "claude_code", "--yes", "--db", str(db)]) == 0
    found = checks()
    assert found["MCP server"] == ("ok", "it starts and answers")
    level, text = found["hooks of Claude Code"]
    assert level == "ok" and "has not been used since" in text

    at = clock.now() + 60 * 60_000
    record = {
        "type": "user", "uuid": UUID.format(1), "sessionId": UUID.format(0), "cwd": str(home), "version": "2.1.50",
        "timestamp": iso(at), "message": {"role": "user", "content": "hello"},
    }  # fmt: skip
    transcript = home / ".claude" / "projects" / "-home" / f"{UUID.format(0)}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text(json.dumps(record) + "\n")
    assert main(["sync", "--db", str(db)]) == 0
    level, text = checks()["hooks of Claude Code"]
    assert level == "warn" and "do not fire: there was no event" in text

    store = open_store(str(db))
    with store.write():
        store.add_hook_events([HookEvent(UUID.format(0), "@1", "Stop", "session", at=at)])
    store.close()
    level, text = checks()["hooks of Claude Code"]
    assert level == "ok" and "they fire" in text

    next((home / ".claude").rglob("hooks.json")).unlink()
    level, text = checks()["hooks of Claude Code"]
    assert level == "warn" and "hooks.json" in text
