"""everturn installed into the real programs: they tell it what they do, ask it what was said, and get their settings back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from everturn.derive.references import HINT
from everturn.errors import NothingFound
from everturn.sessions.lookup import best_match
from everturn.sessions.messages import read_messages
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store, open_store
from tests.agents.clients import CLIENTS, Run
from tests.agents.heard import Heard, heard, tools
from tests.agents.talk import PROMPTS, script
from tests.model_server import Answer, Asked, ModelServer, Step
from tests.model_wires import Call, Rendered, Says, rendered
from tests.waiting import wait_until

pytestmark = pytest.mark.agents

NAMES = tuple(CLIENTS)
EVERTURN = Path(sys.executable).with_name("everturn")
POINTS = "PROMPT-POINTS: it's about the zebra. Do it like we discussed for PROMPT-ONE, two things"
KILLED = "STOP-HERE: something that takes long"
ASKS = "RECALL-NOW: what did SAY-ONE say?"
DELEGATES = "DELEGATE-NOW: let somebody else look"
#: Tools that start a subagent, and what they want to be told.
SUBAGENTS = {
    "Agent": {"description": "look", "prompt": "SUB-WORK: look around", "subagent_type": "general-purpose"},
    "Task": {"description": "look", "prompt": "SUB-WORK: look around", "subagent_type": "general-purpose"},
    "task": {"description": "look", "prompt": "SUB-WORK: look around", "subagent_type": "general"},
}


class Installed:
    """A program with everturn in it, in a home of its own."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def everturn(self, *words: str) -> str:
        """One of our own commands in that home."""
        done = subprocess.run(
            [str(EVERTURN), *words], env=self.run.env, cwd=self.run.work, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout

    def says(self, prompt: str, session: str = "") -> None:
        """Hold one turn."""
        self.run.run(self.command(prompt, session))

    def command(self, prompt: str, session: str = "") -> list[str]:
        """The command that holds one turn."""
        client = self.run.client
        resume = all_sources()[client.name].resume_command
        assert resume is not None
        command = client.again(resume(session), prompt) if session else client.new(prompt)
        if client.name == "codex":  # a user is asked once, in its terminal
            command.insert(2, "--dangerously-bypass-hook-trust")
        return command

    def is_killed_in_a_call(self, prompt: str) -> None:
        """Hold a turn until a tool is at work, and kill the program there."""
        begun = self.run.work / "begun"
        program = subprocess.Popen(
            self.command(prompt), cwd=self.run.work, env=self.run.env, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + 170
        while not (begun.exists() and begun.read_text()) and time.monotonic() < until:
            time.sleep(0.02)
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        with suppress(ProcessLookupError):
            os.kill(int(begun.read_text()), signal.SIGKILL)  # the tool may have a group of its own

    @property
    def archive(self) -> Path:
        return self.run.home / ".local" / "share" / "everturn" / "archive.db"

    @contextmanager
    def store(self) -> Iterator[Store]:
        store = open_store(str(self.archive), create=False)
        try:
            yield store
        finally:
            store.close()


@pytest.fixture(params=NAMES)
def installed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installed]:
    client = CLIENTS[request.param]
    home = (
        tmp_path / client.name
    )  # the drain of a test that has ended stays for a second, and must not find this one's spool
    with ModelServer(_script(client.name)) as server:
        run = Run(client, home, server).settle()
        _as_after_a_first_start(home)
        yield Installed(run)


def _as_after_a_first_start(home: Path) -> None:
    """Two of them change their settings themselves, once."""
    opencode, gemini = home / ".config" / "opencode" / "opencode.json", home / ".gemini" / "settings.json"
    if opencode.exists():
        said = {"$schema": "https://opencode.ai/config.json", **json.loads(opencode.read_bytes())}
        opencode.write_text(json.dumps(said), "utf-8")
    if gemini.exists():
        said = json.loads(gemini.read_bytes()) | {"general": {"enableAutoUpdate": False}}
        gemini.write_text(json.dumps(said, indent=2), "utf-8")


def _script(name: str) -> Callable[[Asked], Step]:
    usual = script(CLIENTS[name])

    def says(asked: Asked) -> Step:
        told = heard(asked)
        last = max((n for n, one in enumerate(told) if one.kind == "user" and _is_prompt(one)), default=0)
        answered = any(one.kind == "result" for one in told[last:])
        prompt = told[last].text if told else ""
        if "STOP-HERE" in prompt:
            tool, given = CLIENTS[name].shell
            return Says("SAY-LONG: this takes a while.", (Call(tool, given("echo $$ > begun; exec sleep 30")),))
        if "SUB-WORK" in prompt:
            return Says("SUB-DONE: looked around.")
        if "RECALL-NOW" in prompt and (search := _searching(asked)) is not None:
            return Says("RECALL-DONE.") if answered else search
        starter = next((tool for tool in tools(asked) if tool in SUBAGENTS), None)
        if "DELEGATE-NOW" in prompt and starter is not None:
            return Says("DELEGATED.") if answered else Says(calls=(Call(starter, SUBAGENTS[starter]),))
        return usual(asked)

    return says


def _searching(asked: Asked) -> Step | None:
    """A call of the recall tool, as the model of that program would make it; None where it is not offered."""
    given = {"action": "search", "query": "out-of"}
    for name in tools(asked):
        if name.endswith("conversation_recall"):
            return Says(calls=(Call(name, given),))
    for space in asked.body.get("tools", ()):
        if space.get("type") == "namespace" and any(tool["name"] == "conversation_recall" for tool in space["tools"]):
            return _within(
                space["name"], rendered(asked.wire, Says(calls=(Call("conversation_recall", given),)), "m", 7)
            )
    return None


def _within(space: str, answer: Rendered) -> Answer:
    """The same answer with the call in a namespace, which this wire has beside the name."""
    for item in [*answer.whole["output"], *(event["item"] for _, event in answer.events if "item" in event)]:
        item["namespace"] = space
    lines = "".join(f"event: {name}\ndata: {json.dumps(event)}\n\n" for name, event in answer.events)
    return Answer(body=lines.encode(), content_type="text/event-stream")


def _is_prompt(one: Heard) -> bool:
    return any(mark in one.text for mark in ("PROMPT-", "RECALL-NOW", "DELEGATE-NOW", "SUB-WORK", "STOP-HERE"))


def _settings(home: Path) -> dict[str, bytes]:
    """Files in which a program keeps what its user wants, not what it notes for itself."""
    names = {
        *("settings.json", "config.toml", "hooks.json", "opencode.json", "opencode.jsonc", ".mcp.json", "plugin.json"),
        *("gemini-extension.json", "everturn.js", "SKILL.md", "recall.md", "recall.toml"),
    }
    found = (path for path in sorted(home.rglob("*")) if path.name in names and path.is_file())
    ignored = (".system", "node_modules", "everturn/installed", "cache")
    return {str(path): path.read_bytes() for path in found if not any(part in str(path) for part in ignored)}


def _captured(installed: Installed, turns: int, seconds: float = 20) -> float:
    """Seconds until the archive has the session with so many turns, and the very bytes of its file."""
    begun = time.monotonic()
    why = "there is no archive"
    while time.monotonic() < begun + seconds:
        why = _missing(installed, turns)
        if not why:
            return time.monotonic() - begun
        time.sleep(0.02)
    raise AssertionError(why)


def _missing(installed: Installed, turns: int) -> str:
    try:
        return _missing_in(installed, turns)
    except NothingFound as error:
        return str(error)


def _missing_in(installed: Installed, turns: int) -> str:
    with installed.store() as store:
        rows, _ = store.sessions(SessionFilter(agent=installed.run.client.name))
        if not rows or rows[0][0].n_turns < turns:
            return f"{rows[0][0].n_turns if rows else 'no'} turns"
        version = store.version(best_match(store.sessions_of(rows[0][0].agent, rows[0][0].native_id)).version)
        source, _ = store.file_by_id(version.source)
        if "#" in source.path:
            return ""  # a conversation within a database: its lines are made, not found
        kept = store.read_raw(version.id, 0, version.size)
        there = Path(source.path).read_bytes()
        return "" if kept == there else f"{len(kept)} of {len(there)} bytes"


def _session(installed: Installed) -> str:
    with installed.store() as store:
        return store.sessions(SessionFilter(agent=installed.run.client.name))[0][0][0].native_id


def test_a_session_is_captured_as_it_ends_and_recalled_from_inside_and_the_settings_come_back(
    installed: Installed, record_property: Callable[[str, object], None]
) -> None:
    name = installed.run.client.name
    before = _settings(installed.run.home)
    installed.everturn("install", name, "--yes")
    assert _settings(installed.run.home) != before
    installed.says(PROMPTS[0])
    took = [_captured(installed, 1)]
    session = _session(installed)
    installed.says(ASKS, session)
    took.append(_captured(installed, 2))
    told = [one for asked in installed.run.server.asked for one in heard(asked) if one.kind == "result"]
    assert any("out-of-42" in one.text and "quoted from the archive" in one.text for one in told), told
    if name in ("claude_code", "opencode"):
        installed.says(DELEGATES, session)
        took.append(_captured(installed, 3))
        with installed.store() as store:
            below, _ = store.sessions(SessionFilter(agent=name, kinds=("subagent", "sidechain")))
            assert len(below) == 1, below
    record_property("seconds", took)
    print(f"{name}: in the archive {', '.join(f'{one:.2f}' for one in took)} s after the end")
    with installed.store() as store:
        # Transcripts are taken in first, then what hooks told.
        wait_until(lambda: {"Stop", "AfterAgent"} & {row.event for row in store.hook_events(session)})
        heard_of = store.hook_events(session)
        assert {"Stop", "AfterAgent"} & {row.event for row in heard_of}, heard_of
        assert any(row.own is not None for row in heard_of if row.call_id) or name == "gemini"
    installed.everturn("uninstall", name, "--yes")
    assert _settings(installed.run.home) == before
    assert max(took) < _limit(1), took


def _limit(seconds: float) -> float:
    """The bar on a machine with nothing else to do; where more processes want to run than there are cores, all wait longer."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _words_in(installed: Installed) -> list[str]:
    """Prompts, answers and calls that the archive has, and the calls that hooks told of."""
    with installed.store() as store:
        rows, _ = store.sessions(SessionFilter(agent=installed.run.client.name))
        if not rows:
            return []
        session = rows[0][0]
        told = [row.tool for row in store.hook_events(session.native_id) if row.phase == "begun"]
        read = (message for _, message in read_messages(store, all_sources(), session))
        blocks = [block for message in read for block in message.blocks]
        return told + [str(block.call.input) if block.call else block.text for block in blocks]


def test_a_program_killed_in_a_call_has_the_call_and_all_before_it_in_the_archive(
    installed: Installed, record_property: Callable[[str, object], None]
) -> None:
    name = installed.run.client.name
    installed.everturn("install", name, "--yes")
    installed.is_killed_in_a_call(KILLED)
    ended = time.monotonic()
    # Gemini CLI writes a call when it has ended. What it was given is nowhere before, and hooks note no content.
    call = CLIENTS[name].shell[0] if name == "gemini" else "exec sleep 30"
    wanted, there = ("STOP-HERE", "SAY-LONG", call), [""]
    while not all(any(words in one for one in there) for words in wanted):
        assert time.monotonic() < ended + 20, there
        time.sleep(0.02)
        with suppress(NothingFound):
            there = _words_in(installed)
    took = time.monotonic() - ended
    record_property("seconds", took)
    print(f"{name}: in the archive {took:.2f} s after it was killed")
    assert took < _limit(2)


def test_a_new_session_is_told_where_the_last_one_stopped_and_when_a_prompt_points_out_of_view(
    installed: Installed,
) -> None:
    installed.everturn("install", installed.run.client.name, "--yes", "--hints", "--where-you-were")
    installed.says(PROMPTS[0])
    _captured(installed, 1)
    folder = installed.run.home / ".local" / "state" / "everturn" / "context"
    until = time.monotonic() + 20
    while not list(folder.glob("*.where")) and time.monotonic() < until:
        time.sleep(0.05)
    first = len(installed.run.server.asked)
    installed.says(POINTS)
    asked = [one.text for one in installed.run.server.asked[first:] if tools(one)]
    assert "the last session in this folder" in asked[0] and "PROMPT-ONE" in asked[0]
    assert HINT in asked[0]
    assert "data, not instructions" in asked[0]


def test_in_a_project_it_captures_what_is_said_there_and_the_home_stays_as_it_was(installed: Installed) -> None:
    run = installed.run
    before, there = _settings(run.home), sorted(run.work.rglob("*"))
    installed.everturn("install", run.client.name, "--project", "--yes")
    changed = {path for path, data in _settings(run.home).items() if before.get(path) != data}
    assert changed and all(path.startswith(str(run.work)) for path in changed)
    installed.says(PROMPTS[0])
    _captured(installed, 1)
    with installed.store() as store:
        wait_until(lambda: store.hook_events(_session(installed)))  # it was its hooks that told
    installed.everturn("uninstall", run.client.name, "--project", "--yes")
    assert _settings(run.home) == before
    assert [path for path in sorted(run.work.rglob("*")) if "everturn" in path.name] == []
    assert set(there) <= set(run.work.rglob("*"))


@pytest.mark.parametrize("installed", ["claude_code"], indirect=True)
def test_the_plugin_is_one_by_its_own_programs_judgement(installed: Installed) -> None:
    installed.everturn("install", "claude_code", "--yes")
    folder = installed.run.home / ".claude" / "skills" / "everturn"
    assert "passed" in installed.run.run(["claude", "plugin", "validate", str(folder)]).lower()
