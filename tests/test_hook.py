"""`everturn-hook` as agents run it: a process that must never be noticed, and never writes down what was said."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from platformdirs.macos import MacOS

from everturn import hook, settings
from everturn.llm import program_backend

ROOT = Path(__file__).parent.parent
HOOK = (sys.executable, "-I", "-S", str(ROOT / "src" / "everturn" / "hook.py"))
RECORDED = ROOT / "tests" / "capture" / "recorded" / "events.jsonl"
CORPUS = ROOT.parent / "shared" / "corpus" / "hooks"
CANARY = "zqcanary"
EVENT = {"session_id": "s1", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "t1"}

#: What a line may hold of an event, word for word.
KEPT = {key.decode() for key in hook._NAMES | hook._PATHS | hook._SCALARS}


class Home:
    """A place for the spool of one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spool = folder / "state" / "spool" / hook.SPOOL

    def run(
        self, event: bytes = b"", env: Mapping[str, str] | None = None, words: Sequence[str] = (), **more: Any
    ) -> None:
        """Run the hook to its end: it succeeds and prints nothing, whatever was asked of it."""
        more.setdefault("input", event)
        done = subprocess.run(
            [*HOOK, *words],
            env={"EVERTURN_HOME": str(self.folder), **(env or {})},
            capture_output=True,
            check=False,
            timeout=600,
            **more,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.spool.read_bytes().splitlines() if line]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "everturn")


def said(event: Any, whole: bool = True) -> dict[str, Any]:
    """What is noted of an event."""
    line = hook.event_line(event if isinstance(event, bytes) else json.dumps(event).encode(), whole, 5, 7)
    assert line.startswith(b"\n{") and line.endswith(b"}\n") and line.count(b"\n") == 2
    return dict(json.loads(line))


# what is noted --------------------------------------------------------------------------------------------------------
def test_one_line_has_names_ids_times_and_sizes(home: Home) -> None:
    home.run(json.dumps(EVENT | {"tool_input": {"command": "ls"}, "tool_response": "a b", "duration_ms": 12}).encode())
    (line,) = home.lines()
    assert {key: line[key] for key in EVENT} == EVENT
    assert (line["tool_input_size"], line["tool_response_size"], line["duration_ms"]) == (17, 5, 12)
    assert line["at"] > 1_700_000_000_000_000_000 and line["pid"] > 0


def test_the_calls_of_a_batch_are_noted_in_their_order() -> None:
    calls = [
        {"tool_name": "Bash", "tool_input": {"a": ["}", {}]}, "tool_use_id": "t1", "tool_response": CANARY},
        {"tool_use_id": "t2", "tool_name": "Read", "tool_input": {}},
        {},
    ]
    noted = said(EVENT | {"tool_calls": calls, "duration_ms": 3})
    assert noted["tool_calls"] == [
        {"tool_name": "Bash", "tool_input_size": 16, "tool_use_id": "t1", "tool_response_size": 10},
        {"tool_use_id": "t2", "tool_name": "Read", "tool_input_size": 2},
        {},
    ]
    assert noted["duration_ms"] == 3


_KEYS = st.text(max_size=4) | st.sampled_from([*sorted(KEPT), "tool_input", "error", "prompt"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)
_EVENTS = st.dictionaries(_KEYS, _JSON, max_size=8)


@given(_EVENTS, st.booleans(), st.sampled_from([None, 1]))
def test_the_scan_finds_what_a_parser_finds_and_nothing_else(event: dict[str, Any], ascii: bool, indent: int) -> None:
    noted = said(json.dumps(event, ensure_ascii=ascii, indent=indent).encode())
    texts = {key for key in KEPT - {"duration_ms", "is_interrupt"} if isinstance(event.get(key), str)}
    assert "broken" not in noted
    for key in KEPT & noted.keys():
        assert noted[key] == event[key] and isinstance(noted[key], str | int | float)
    long = {key for key in texts if len(json.dumps(event[key])) > 250}
    assert texts - long <= noted.keys()


@given(st.binary() | st.text().map(str.encode), st.booleans())
def test_any_bytes_give_one_line(event: bytes, whole: bool) -> None:
    said(event, whole)


def test_no_word_of_an_event_gets_into_the_spool(home: Home) -> None:
    """Whatever is not a name, an id or a place is replaced by a canary, in every event of a real client."""
    paths = [RECORDED, *(CORPUS.glob("*.jsonl") if CORPUS.is_dir() else ())]
    events = [json.loads(line) for path in paths for line in path.read_bytes().splitlines() if line.strip()]
    assert len(events) >= 19
    for event in events:
        home.spool.parent.mkdir(parents=True, exist_ok=True)
        hook.append(str(home.spool.parent), hook.event_line(json.dumps(_planted(event)).encode(), True, 5, 7))
    home.run(json.dumps(_planted(events[0]) | {"prompt": CANARY, "tool_input": {"session_id": CANARY}}).encode())
    assert CANARY.encode() not in home.spool.read_bytes()
    assert len(home.lines()) == len(events) + 1


def _planted(thing: Any, key: str = "") -> Any:
    if isinstance(thing, dict):
        return {name: value if name in KEPT else _planted(value, name) for name, value in thing.items()} | {
            f"{CANARY}1": {"tool_name": CANARY, "session_id": [CANARY]},
            "message": CANARY,
        }
    if isinstance(thing, list):
        return [_planted(one) for one in thing] + ([] if key == "tool_calls" else [CANARY])
    return f'{CANARY} "quoted\\" {CANARY}'


def test_an_event_that_is_no_json_is_marked_and_nothing_of_it_is_noted() -> None:
    assert said(b'{"session_id":"s1","prompt":"zqcanary') == {"at": 5, "pid": 7, "size": 37, "session_id": "s1", "broken": True}  # fmt: skip
    assert said(b'["zqcanary"]') == {"at": 5, "pid": 7, "size": 12, "broken": True}
    assert said(b"zqcanary", whole=False) == {"at": 5, "pid": 7, "size": 8, "cut": True}


def test_a_name_that_is_too_long_is_left_out_and_said_to_be() -> None:
    noted = said(EVENT | {"tool_name": CANARY * 100, "cwd": "/x" * 500})
    assert noted["cut"] is True and "tool_name" not in noted and noted["cwd"] == "/x" * 500


def test_a_value_that_breaks_the_line_is_left_out() -> None:
    assert "session_id" not in said(b'{"session_id":"a\nb"}')


# whatever happens -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "event", [b"", b" ", b"{", b"\x00" * 5000, b"[" * 100_000, b'{"a":' * 50_000, b'"', b"{}x", b"null"]
)
def test_it_succeeds_whatever_it_is_told(home: Home, event: bytes) -> None:
    home.run(event)


def test_it_succeeds_without_a_standard_input(home: Home) -> None:
    home.run(input=None, preexec_fn=lambda: os.close(0))
    assert not home.spool.exists()


def test_it_does_not_wait_for_an_agent_that_never_stops_talking(home: Home) -> None:
    reading, writing = os.pipe()
    os.write(writing, json.dumps(EVENT).encode())
    try:
        home.run(input=None, stdin=reading)
    finally:
        os.close(writing)
        os.close(reading)
    (line,) = home.lines()
    assert line["tool_use_id"] == "t1" and "cut" not in line


def test_an_event_too_big_to_look_at_is_cut_and_said_to_be(home: Home) -> None:
    home.run(json.dumps(EVENT | {"tool_response": CANARY * 3_000_000, "duration_ms": 3}).encode())
    (line,) = home.lines()
    assert line["cut"] is True and line["size"] <= hook.MOST and "duration_ms" not in line
    assert home.spool.stat().st_size < 1000


def test_an_event_of_too_many_pieces_is_given_up() -> None:
    noted = said(EVENT | {"tool_response": ["a"] * 300_000, "duration_ms": 3})
    assert noted["cut"] is True and "duration_ms" not in noted
    assert said(EVENT | {"tool_response": [[]] * 600_000})["cut"] is True
    assert said(EVENT | {str(n): 1 for n in range(20_000)})["cut"] is True


def test_a_full_disk_is_nothing_to_the_agent(home: Home) -> None:
    home.run(json.dumps(EVENT).encode(), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert home.spool.read_bytes() == b""


@pytest.mark.parametrize("place", ["/proc/nowhere", "/dev/null/x", "\n/\x01"])
def test_a_home_that_cannot_be_written_is_nothing_to_the_agent(tmp_path: Path, place: str) -> None:
    Home(tmp_path).run(json.dumps(EVENT).encode(), {"EVERTURN_HOME": place}, cwd=tmp_path)


def test_a_fifo_or_a_link_in_place_of_the_spool_is_not_written_to(home: Home, tmp_path: Path) -> None:
    home.spool.parent.mkdir(parents=True)
    os.mkfifo(home.spool)
    home.run(json.dumps(EVENT).encode())
    reader = os.open(home.spool, os.O_RDONLY | os.O_NONBLOCK)
    home.run(json.dumps(EVENT).encode())
    assert os.read(reader, 10) == b""
    os.close(reader)
    home.spool.unlink()
    (tmp_path / "other").write_bytes(b"")
    home.spool.symlink_to(tmp_path / "other")
    home.run(json.dumps(EVENT).encode())
    assert (tmp_path / "other").read_bytes() == b""


def test_a_spool_that_nobody_empties_stops_growing(home: Home) -> None:
    home.run(json.dumps(EVENT).encode())
    os.truncate(home.spool, hook.FULL + 1)
    home.run(json.dumps(EVENT).encode())
    assert home.spool.stat().st_size == hook.FULL + 1


def test_eight_agents_at_once_do_not_write_into_each_others_lines(home: Home) -> None:
    word = "x" * 3000
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); from everturn import hook\n"
        f"for n in range(300): hook.append({str(home.spool.parent)!r}, hook.event_line(sys.argv[1].encode(), True, n, 7))"
    )
    agents = [
        subprocess.Popen([sys.executable, "-I", "-c", script, json.dumps(EVENT | {"session_id": str(n), "cwd": word})])
        for n in range(8)
    ]
    assert [agent.wait(timeout=600) for agent in agents] == [0] * 8
    lines = home.lines()
    assert all(line["cwd"] == word for line in lines)
    assert {(line["session_id"], line["at"]) for line in lines} == {(str(n), at) for n in range(8) for at in range(300)}


def test_a_line_is_written_again_when_its_file_was_taken_meanwhile(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, taken, write = home.spool.parent, home.spool.with_name("taken"), os.write

    def late(file: int, line: bytes) -> int:
        if not taken.exists():
            home.spool.rename(taken)
        return write(file, line)

    monkeypatch.setattr(os, "write", late)
    hook.append(str(folder), b"\nline\n")
    assert home.spool.read_bytes() == b"\nline\n"


def test_nobody_else_can_read_the_spool(home: Home) -> None:
    home.run(json.dumps(EVENT).encode())
    for path in (home.spool, *home.spool.parents[:3]):
        assert stat.S_IMODE(path.stat().st_mode) == (0o600 if path.is_file() else 0o700)


def test_what_everturn_itself_asks_of_an_agent_is_not_noted(home: Home) -> None:
    home.run(json.dumps(EVENT).encode(), {program_backend.MARK: "1"})
    assert hook.MARK == program_backend.MARK and not home.spool.exists()


def test_an_event_may_be_the_last_argument(home: Home) -> None:
    home.run(words=['{"type":"agent-turn-complete","thread-id":"s9","input-messages":["zqcanary"]}'])
    (line,) = home.lines()
    assert (line["type"], line["thread-id"]) == ("agent-turn-complete", "s9")
    assert CANARY.encode() not in home.spool.read_bytes()


# what it costs --------------------------------------------------------------------------------------------------------
def test_nothing_is_imported_but_sys_os_and_time() -> None:
    script = f"import sys, os, time; sys.path.insert(0, {str(ROOT / 'src')!r}); before = set(sys.modules); "
    script += "import everturn.hook; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == ["everturn", "everturn.hook"]


# where it writes ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "env",
    [
        {"EVERTURN_HOME": "/srv/ann"},
        {"EVERTURN_HOME": "here/./there"},
        {"EVERTURN_HOME": "~/there", "HOME": "/home/ann"},
        {"EVERTURN_HOME": "", "HOME": "/home/ann"},
        {"XDG_STATE_HOME": "/srv/state", "HOME": "/home/ann"},
        {"XDG_STATE_HOME": "state", "HOME": "/home/ann"},
        {"HOME": "/home/ann"},
        {"HOME": "ann"},
        {"HOME": ""},
        {},
    ],
)
def test_the_state_folder_is_that_of_the_settings(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EVERTURN_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert hook.state_folder(os.environ, "linux") == str(settings._default_folders(os.environ).state)
    if not env.get("EVERTURN_HOME"):
        assert hook.state_folder(os.environ, "darwin") == MacOS("everturn", appauthor=False).user_state_dir
