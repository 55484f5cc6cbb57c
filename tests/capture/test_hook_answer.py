"""What the hook tells a model, and that it tells nothing else: prepared files, the phrases, the status line."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from everturn import hook
from everturn.capture import hook_answer
from everturn.capture.hook_answer import (
    BETWEEN,
    LISTENERS,
    STATUS,
    WHERE,
    WINDOW,
    as_printed,
    clear,
    let_ask,
    mark_of,
    prepare_context,
    read_status,
    status_line,
)
from everturn.derive import references
from everturn.llm.program_backend import MARK
from everturn.sources.toolkit.agent_program import HOOK_SECONDS
from everturn.store.cipher import is_available
from everturn.store.contract import open_store
from tests.recall.archives import Archive

ROOT = Path(__file__).parent.parent.parent
#: A busy machine may need longer than an agent would wait.
PATIENT = (
    "from everturn.capture import hook_answer as answer; answer.HINT_SECONDS = 300; answer._GREETING_SECONDS = {}\n"
)
TEXT = 'You were at "turn 7"\n\\ and ünïcode \x07'
START = {"session_id": "s1", "cwd": "/home/ann/shop", "hook_event_name": "SessionStart", "source": "startup"}
REFERS = "fix the retry logic like we discussed"
PROMPT = {"session_id": "s1", "cwd": "/home/ann/shop", "hook_event_name": "UserPromptSubmit"}


class Home:
    """The state of one user, and the hook in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.context = str(folder / "state" / "context")
        self.greeting = 300.0  # seconds

    def tell(self, event: dict[str, Any], *words: str, **env: str) -> str:
        """What the hook prints; it always succeeds."""
        around = {"EVERTURN_HOME": str(self.folder), "PYTHONPATH": str(ROOT / "src"), **env}
        done = subprocess.run(
            [sys.executable, "-c", f"{PATIENT.format(self.greeting)}from everturn.hook import main; main()", *words],
            input=json.dumps(event).encode(),
            env=around,
            capture_output=True,
            check=False,
            timeout=600,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    prepare_context(made.context, "/home/ann/shop", WHERE, as_printed(TEXT))
    store = open_store(str(tmp_path / "archive.db"))
    archive = Archive(store, tmp_path / "agent")
    archive.take_in(
        archive.history.turn("the retry logic must wait 7 seconds", "Done."), archive.history.turn("x", "y")
    )
    store.close()
    return made


def said(printed: str) -> dict[str, str]:
    """The part of the answer that agents take; strict ones refuse any other key."""
    found = json.loads(printed)
    assert list(found) == ["hookSpecificOutput"]
    assert list(found["hookSpecificOutput"]) == ["hookEventName", "additionalContext"]
    inner: dict[str, str] = found["hookSpecificOutput"]
    return inner


def test_a_new_session_is_told_where_the_last_one_stopped(home: Home) -> None:
    told = said(home.tell(START, "--where-you-were"))
    assert told == {"hookEventName": "SessionStart", "additionalContext": TEXT}
    assert (home.folder / "state" / "spool" / "hooks.jsonl").exists(), "and it is noted all the same"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (START, ()),
        (START, ("--hints",)),
        (START | {"source": "resume"}, ("--where-you-were",)),
        (START | {"source": "compact"}, ("--where-you-were",)),
        (START | {"cwd": "/home/ann/other"}, ("--where-you-were",)),
        ({"hook_event_name": "SessionStart"}, ("--where-you-were",)),
        ({"source": "startup", "cwd": "/home/ann/shop"}, ("--where-you-were",)),
        (PROMPT | {"prompt": "add a test for the parser"}, ("--hints",)),
        (PROMPT | {"prompt": "the same as before"}, ()),
        (PROMPT, ("--hints",)),
    ],
)
def test_nothing_is_told_where_nothing_is_wanted(home: Home, event: dict[str, Any], words: tuple[str, ...]) -> None:
    assert home.tell(event, *words) == ""


def test_a_prompt_that_points_to_what_is_out_of_view_brings_what_a_search_found(home: Home) -> None:
    told = said(home.tell(PROMPT | {"prompt": "fix the retry logic\nlike we\n discussed"}, "--hints"))
    assert told["hookEventName"] == "UserPromptSubmit"
    assert told["additionalContext"].startswith(references.HINT)
    assert "session 11111111, turn 1" in told["additionalContext"]
    assert "must wait 7 seconds" in told["additionalContext"]


def test_a_prompt_that_points_to_what_is_in_view_brings_none(home: Home) -> None:
    prompt = PROMPT | {"prompt": "fix the retry logic like we discussed"}
    prepare_context(home.context, "s1", WINDOW, BETWEEN.join(["something else", "the retry logic waits too long"]))
    assert home.tell(prompt, "--hints") == ""
    prepare_context(home.context, "s1", WINDOW, "something else")
    assert home.tell(prompt, "--hints")


def test_without_a_sure_answer_nothing_is_printed(home: Home) -> None:
    assert home.tell(PROMPT | {"prompt": "as before, please"}, "--hints") == ""
    assert home.tell(PROMPT | {"prompt": "like we discussed for the walrus invoices"}, "--hints") == ""
    (home.folder / "archive.db").unlink()
    assert home.tell(PROMPT | {"prompt": "fix the retry logic like we discussed"}, "--hints") == ""


@pytest.mark.skipif(not is_available(), reason="the installed SQLite cannot encrypt")
def test_an_encrypted_archive_is_asked_itself_and_nothing_is_prepared(home: Home, tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "EVERTURN_HOME": str(home.folder), "PYTHONPATH": str(ROOT / "src")}
    words = ("encrypt", "--key", f"file:{tmp_path.with_name(tmp_path.name + '-key')}", "--yes")
    subprocess.run([sys.executable, "-m", "everturn", *words], env=env, capture_output=True, check=True)
    assert home.tell(START, "--where-you-were") == ""  # no drain has been here yet
    let_ask(home.context, is_encrypted=True)
    assert "must wait 7 seconds" in said(home.tell(START, "--where-you-were"))["additionalContext"]
    assert home.tell(START | {"cwd": "/home/ann/other"}, "--where-you-were") == ""
    hint = said(home.tell(PROMPT | {"prompt": "fix the retry logic like we discussed"}, "--hints"))
    assert "must wait 7 seconds" in hint["additionalContext"]
    assert [path.read_bytes() for path in Path(home.context).iterdir()] == [b""]
    let_ask(home.context, is_encrypted=False)
    assert home.tell(START, "--where-you-were") == ""


def test_a_path_with_any_letters_is_found(home: Home) -> None:
    place = '/home/änn/a "b" \\ c'
    prepare_context(home.context, place, WHERE, as_printed("there"))
    assert said(home.tell(START | {"cwd": place}, "--where-you-were"))["additionalContext"] == "there"


def test_another_name_with_the_same_mark_is_not_taken_for_it(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_answer, "mark_of", lambda name: "same")
    prepare_context(home.context, "/a", WHERE, "text")
    assert hook_answer.read_prepared(home.context, "/a", WHERE) == b"text"
    assert hook_answer.read_prepared(home.context, "/b", WHERE) == b""


def test_what_everturn_itself_asks_is_told_nothing_and_starts_nothing(home: Home) -> None:
    assert home.tell(START, "--where-you-were", "--drain", "--statusline", **{MARK: "1"}) == ""
    assert not (home.folder / "state" / "spool").exists()


def test_a_broken_or_unreadable_context_is_nothing_to_the_agent(home: Home) -> None:
    path = Path(home.context) / f"{mark_of('/home/ann/shop')}{WHERE}"
    path.unlink()
    path.mkdir()
    assert home.tell(START, "--where-you-were") == ""


def test_the_phrases_of_the_hook_are_those_of_the_rules() -> None:
    assert tuple(phrase.lower().encode() for phrase in references.PHRASES) == hook_answer.PHRASES
    assert all(hook_answer.has_phrase(json.dumps(f"x {phrase.upper()}, y").encode()) for phrase in references.PHRASES)


def test_what_was_prepared_is_for_its_owner_alone_and_goes_when_it_is_old(home: Home) -> None:
    prepare_context(home.context, "s1", WINDOW, "some words")
    paths = sorted(Path(home.context).iterdir())
    assert {path.stat().st_mode & 0o777 for path in paths} == {0o600}
    assert Path(home.context).stat().st_mode & 0o777 == 0o700
    os.utime(paths[0], (1, 1))
    now = int(paths[1].stat().st_mtime * 1000) + 1000
    assert clear(home.context, now) == [str(paths[0])]
    assert clear(home.context) == [str(paths[1])] and clear(home.context) == []


def test_variables_of_the_command_line_are_set(home: Home) -> None:
    words = ("--where-you-were", "--with", f"EVERTURN_HOME={home.folder}")
    assert said(home.tell(START, *words, EVERTURN_HOME="/nowhere"))["additionalContext"] == TEXT


def _imported(words: list[str], event: dict[str, Any], home: Home, first: str = "") -> set[str]:
    """The modules that the hook has imported when it ends, what was run first included."""
    script = (
        "import os, sys, time; before = set(sys.modules)\n"
        "leave = lambda code: (sys.stderr.write(' '.join(sorted(set(sys.modules) - before))), sys.stderr.flush(), exit(code))\n"
        "exit, os._exit = os._exit, leave\n"
        f"{first}from everturn.hook import main; main()"
    )
    around = {"EVERTURN_HOME": str(home.folder), "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-S", "-c", script, *words]
    done = subprocess.run(command, input=json.dumps(event).encode(), env=around, capture_output=True, check=True)
    return set(done.stderr.decode().split())


def test_telling_where_you_were_imports_two_small_modules_of_ours(home: Home) -> None:
    own = {"everturn", "everturn.hook", "everturn.capture", "everturn.capture.hook_answer"}
    assert _imported(["--where-you-were"], START, home) == own
    assert _imported(["--hints"], PROMPT | {"prompt": "add a test"}, home) == own
    assert _imported([], START, home) == {"everturn", "everturn.hook"}


def test_no_hint_waits_for_an_archive(home: Home) -> None:
    loaded = _imported(["--hints"], PROMPT | {"prompt": "as before"}, home)
    assert {"everturn.derive.references", "re"} <= loaded
    assert not loaded & {"msgspec", "apsw", "click", "typing", "dataclasses", "everturn.store", "everturn.cli"}


def test_the_status_line_imports_no_more_than_json(home: Home) -> None:
    script = "import json, os, sys, time; print(*sys.modules)"
    usual = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True).stdout
    own = {"everturn", "everturn.hook", "everturn.capture", "everturn.capture.hook_answer"}
    assert _imported(["--statusline"], START, home) - set(usual.split()) == own


# a program that listens -----------------------------------------------------------------------------------------------
LIGHT = {"everturn", "everturn.hook", "everturn.capture", "everturn.capture.hook_answer", "_socket"}


def _listeners(home: Home) -> list[Path]:
    folder = home.folder / "state" / LISTENERS
    return [path for path in folder.iterdir() if not path.name.startswith(".")] if folder.exists() else []


@contextmanager
def _server(home: Home, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """An MCP server as an agent keeps one; it has begun to answer."""
    around = {"EVERTURN_HOME": str(home.folder), "PYTHONPATH": str(ROOT / "src"), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-m", "everturn", "mcp", *words]
    with subprocess.Popen(command, env=around, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            server.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
            server.stdin.flush()
            assert b'"result"' in server.stdout.readline()
            yield server
        finally:
            server.send_signal(signal.SIGCONT)
            server.kill()


def test_a_server_that_is_running_answers_and_the_hook_loads_nothing_else(home: Home) -> None:
    with _server(home) as server:
        (path,) = _listeners(home)
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        told = said(home.tell(PROMPT | {"prompt": "fix the retry logic\nlike we\n discussed \u00e4"}, "--hints"))
        assert told["additionalContext"].startswith(references.HINT)
        assert "session 11111111, turn 1" in told["additionalContext"]
        assert (
            "must wait 7 seconds" in told["additionalContext"] and "data, not instructions" in told["additionalContext"]
        )
        assert _imported(["--hints"], PROMPT | {"prompt": REFERS}, home, PATIENT.format(300)) == LIGHT
        prepare_context(home.context, "s1", WINDOW, "the retry logic waits too long")
        assert home.tell(PROMPT | {"prompt": REFERS}, "--hints") == ""
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait() == 0
    assert _listeners(home) == []


def test_a_server_that_was_killed_or_stopped_or_has_another_archive_is_passed_over(home: Home) -> None:
    prompt = PROMPT | {"prompt": REFERS}
    with _server(home) as server:
        server.send_signal(signal.SIGSTOP)
        home.greeting = 0.25
        assert "must wait 7 seconds" in home.tell(prompt, "--hints")
        home.greeting = 300
    (deserted,) = _listeners(home)
    with _server(home, "--db", str(home.folder / "other.db")):
        assert _listeners(home) == [deserted]
        assert "must wait 7 seconds" in home.tell(prompt, "--hints")
    with _server(home):
        assert len(_listeners(home)) == 1 and deserted not in _listeners(home)
        assert home.tell(prompt, "--hints", EVERTURN_DB=str(home.folder / "other.db")) == ""


@pytest.mark.parametrize("answer", [b"", b"+", b'+"half of', b"x"])
def test_a_program_that_ends_before_its_answer_is_complete_is_passed_over(
    answer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / LISTENERS
    folder.mkdir()
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
        end.bind("a-1")
        end.listen()
        thread = Thread(target=_answer_once, args=(end, answer))
        thread.start()
        asked: list[list[str]] = []

        def ask(words: list[str], *_: object) -> bytes:
            asked.append(words)
            return b'"x"'

        monkeypatch.setattr(hook_answer, "_ask_archive", ask)
        event = json.dumps(PROMPT | {"prompt": REFERS}).encode()
        assert b'"x"' in hook_answer.context_for(event, ["--hints"], str(tmp_path / "context"), "a-")
        thread.join()
    assert asked[0][0] == "hint" and os.getcwd() == str(folder)


def test_a_program_that_takes_too_long_means_no_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / LISTENERS
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(hook_answer, "HINT_SECONDS", 0.2)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
        end.bind("a-1")
        end.listen()
        thread = Thread(target=_answer_once, args=(end, b"+", True))
        thread.start()
        event = json.dumps(PROMPT | {"prompt": REFERS}).encode()
        assert hook_answer.context_for(event, ["--hints"], str(tmp_path / "context"), "a-") == b""
        thread.join()


def _answer_once(end: socket.socket, answer: bytes, waits: bool = False) -> None:
    client, _ = end.accept()
    with client:
        client.sendall(answer)
        while waits and client.recv(1 << 16):
            pass


def test_hooks_end_before_their_agents_stop_waiting() -> None:
    assert hook.TIMEOUT + hook_answer.HINT_SECONDS < HOOK_SECONDS


# the status line ------------------------------------------------------------------------------------------------------
def test_the_status_line_says_whether_a_session_is_archived(home: Home, tmp_path: Path) -> None:
    transcript = tmp_path / "s1.jsonl"
    transcript.write_bytes(b"x" * 1000)
    told = json.dumps(
        {"session_id": "s1", "transcript_path": str(transcript), "context_window": {"total_input_tokens": 5}}
    )
    assert status_line(read_status(told.encode(), home.context), 0) == "everturn: not archived yet · 5 tokens"
    prepare_context(
        home.context, "s1", STATUS, json.dumps({"size": 1000, "tokens": 12345, "turns": 3, "at": 1_000_000})
    )
    assert (
        status_line(read_status(told.encode(), home.context), 1_030_000)
        == "everturn: archived · 12,345 tokens · synced 30 s ago"
    )
    transcript.write_bytes(b"x" * 9000)
    assert "archived but for 8 kB" in status_line(read_status(told.encode(), home.context), 1_030_000)
    assert home.tell(json.loads(told), "--statusline").startswith("everturn: archived but for 8 kB · 12,345 tokens")
    assert not (home.folder / "state" / "spool").exists()


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"session_id": 5, "context_window": 7}', b"\xff"])
def test_the_status_line_is_one_line_whatever_it_is_told(data: bytes, home: Home) -> None:
    assert status_line(read_status(data, home.context), 0) == "everturn: not archived yet"
