"""What the hook tells a model, and that it tells nothing else: prepared files, the phrases, the status line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everturn.capture import hook_answer
from everturn.capture.hook_answer import (
    BETWEEN,
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
from everturn.store.cipher import is_available
from everturn.store.contract import open_store
from tests.recall.archives import Archive

ROOT = Path(__file__).parent.parent.parent
HOOK = (sys.executable, "-c", "from everturn.hook import main; main()")
TEXT = 'You were at "turn 7"\n\\ and ünïcode \x07'
START = {"session_id": "s1", "cwd": "/home/ann/shop", "hook_event_name": "SessionStart", "source": "startup"}
PROMPT = {"session_id": "s1", "cwd": "/home/ann/shop", "hook_event_name": "UserPromptSubmit"}


class Home:
    """The state of one user, and the hook in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.context = str(folder / "state" / "context")

    def tell(self, event: dict[str, Any], *words: str, **env: str) -> str:
        """What the hook prints; it always succeeds."""
        around = {"EVERTURN_HOME": str(self.folder), "PYTHONPATH": str(ROOT / "src"), **env}
        done = subprocess.run(
            [*HOOK, *words], input=json.dumps(event).encode(), env=around, capture_output=True, check=False, timeout=600
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


def _imported(words: list[str], event: dict[str, Any], home: Home) -> set[str]:
    """The modules that the hook has imported when it ends."""
    script = (
        "import os, sys, time; before = set(sys.modules)\n"
        "leave = lambda code: (sys.stderr.write(' '.join(sorted(set(sys.modules) - before))), sys.stderr.flush(), exit(code))\n"
        "exit, os._exit = os._exit, leave\n"
        "from everturn.hook import main; main()"
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
