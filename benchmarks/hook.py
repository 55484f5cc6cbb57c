"""What an agent pays for `everturn-hook`: CPU beside a bare Python, big events, hints, many agents at once; and the drain."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure, exact
from benchmarks.processes import EVERTURN, MB, ROOT, Cost, Failed, Place, cpu_of, everturn, median_cpu, run
from everturn import hook
from everturn.capture import hook_answer, spool
from everturn.store.contract import open_store
from tests.transcripts import write_history

RUNS = 15
AGENTS, EACH = 8, 12
DRAINED = 10_000
SESSIONS, TURNS = 80, 26  # of the archive that is searched for a hint
_PLANTED = "00000000-0000-4000-8000-000000000007"
_CWD = "/home/ann/shop"

_FILE = (sys.executable, "-I", "-S", str(ROOT / "src" / "everturn" / "hook.py"))
_SCRIPT = (sys.executable, "-c", "import sys; from everturn.hook import main; sys.exit(main())")
_BARE = (sys.executable, "-c", "pass")


def figures(corpora: Corpora) -> Iterator[Figure]:
    """All of it."""
    place = Place(corpora.folder / "hook")
    place.folder.mkdir()
    yield from _costs(place)
    yield from _hints(Place(corpora.folder / "hints"))
    yield _at_once(place)
    yield from _drain(place)


def _costs(place: Place) -> Iterator[Figure]:
    usual, big = (_event(place, size) for size in (3_000, 2 * MB))
    bare = _cpu(place, _BARE, usual)
    script = _cpu(place, _SCRIPT, usual)
    yield Figure("everturn-hook, CPU", script * 1000, "ms", 25, note=f"median of {RUNS}, an event of 3 kB")
    yield Figure("everturn-hook beside `python -c pass`", script / bare, "times", 1.6, note=f"{bare * 1000:.1f} ms")
    yield Figure("the same run as a file without site", _cpu(place, _FILE, usual) * 1000, "ms", 25)
    yield Figure("an event of 2 MB, CPU", _cpu(place, _FILE, big) * 1000, "ms", 60)
    yield from _contexts(place, bare)


def _contexts(place: Place, bare: float) -> Iterator[Figure]:
    """What is told to a model, from files that a drain has prepared; a search only where a prompt has one of the phrases."""
    folder = str(place.archive / "state" / "context")
    text = hook_answer.as_printed("Where you were. " * 300)
    hook_answer.prepare_context(folder, _CWD, hook_answer.WHERE, text)
    hook_answer.prepare_context(
        folder, "s1", hook_answer.WINDOW, hook_answer.BETWEEN.join(["some words of a session " * 40] * 100)
    )
    about = {"session_id": "s1", "cwd": _CWD}
    start = _written(place, "start", about | {"hook_event_name": "SessionStart", "source": "startup"})
    prompt = about | {"hook_event_name": "UserPromptSubmit"}
    plain = _written(place, "plain", prompt | {"prompt": "add a test for the parser " * 50})
    note = f"python -c pass {bare * 1000:.1f} ms"
    where = (*_SCRIPT, "--where-you-were")
    yield Figure("where you were, CPU", _cpu(place, where, start) * 1000, "ms", 25, note=note)
    yield Figure("a prompt with --hints, CPU", _cpu(place, (*_SCRIPT, "--hints"), plain) * 1000, "ms", 25, note=note)
    yield Figure("status line, CPU", _cpu(place, (*_SCRIPT, "--statusline"), start) * 1000, "ms", 60, note=note)
    lock = place.archive / "state" / "spool" / hook.LOCK
    with lock.open("ab") as file:  # held by us, so that no drain takes the lines of the next figure away
        fcntl.flock(file, fcntl.LOCK_EX)
        cost = _cpu(place, (*_SCRIPT, "--drain"), plain)
        yield Figure("with --drain, CPU", cost * 1000, "ms", 25, note="what it starts has a process of its own")


def _hints(place: Place) -> Iterator[Figure]:
    """A prompt that is searched for: what the hook costs, and what the program that searches costs beside it."""
    write_history(place.claude, seed=7, sessions=SESSIONS, turns=TURNS)
    planted = place.claude / "projects" / "-home-ann-shop" / f"{_PLANTED}.jsonl"
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text("".join(f"{json.dumps(line)}\n" for line in _planted_turn()), "utf-8")
    everturn(place, "sync")
    about = {"session_id": "s2", "cwd": _CWD, "hook_event_name": "UserPromptSubmit"}
    event = _written(place, "refers", about | {"prompt": "do it like we discussed for the zebra invoices"})
    alone = _runs(place, (*_SCRIPT, "--hints"), event)
    note = f"{SESSIONS + 1} sessions, {SESSIONS * TURNS + 1:,} turns"
    with _server(place) as pid:
        cpu = [cpu_of(pid)]
        served = []
        for _ in range(RUNS + 1):
            served += _runs(place, (*_SCRIPT, "--hints"), event, 1)
            cpu.append(cpu_of(pid))
    spent = [after - before for before, after in pairwise(cpu)]
    yield Figure("a hint from a running server: the hook, CPU", median_cpu(served) * 1000, "ms", 25, note=note)
    yield Figure("the same: the server, CPU for a prompt", median(spent[1:]) * 1000, "ms", note="after the first one")
    yield Figure("the same: the server, CPU for its first prompt", spent[0] * 1000, "ms")
    yield Figure("the same: the agent waits", median(one.wall for one in served) * 1000, "ms")
    yield Figure("a hint without a server: hook and search, CPU", median_cpu(alone) * 1000, "ms", 600, note=note)
    wrong = [f"run {number}: {one.out!r}" for number, one in enumerate(alone + served) if b"7 seconds" not in one.out]
    yield exact("hints that lack what was said", wrong, f"{len(alone + served)} prompts")


@contextmanager
def _server(place: Place) -> Iterator[int]:
    """An MCP server as an agent keeps one."""
    folder = place.archive / "state" / hook_answer.LISTENERS
    with subprocess.Popen(
        [*EVERTURN, "mcp"], env=place.env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as server:
        try:
            until = time.monotonic() + 60
            while not (folder.exists() and any(not path.name.startswith(".") for path in folder.iterdir())):
                if time.monotonic() > until:
                    raise Failed("the server does not listen")
                time.sleep(0.05)
            yield server.pid
        finally:
            server.kill()


def _planted_turn() -> list[dict[str, Any]]:
    about = {
        "sessionId": _PLANTED,
        "cwd": _CWD,
        "version": "2.1.0",
        "isSidechain": False,
        "timestamp": "2026-03-01T10:00:00Z",
    }
    said = {"role": "user", "content": "the zebra invoices must wait 7 seconds"}
    done = {"role": "assistant", "id": "m1", "content": [{"type": "text", "text": "Done."}]}
    return [
        about | {"type": "user", "uuid": "u1", "parentUuid": None, "message": said},
        about | {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "message": done},
    ]


def _cpu(place: Place, command: tuple[str, ...], event: Path) -> float:
    return median_cpu(_runs(place, command, event))


def _runs(place: Place, command: tuple[str, ...], event: Path, times: int = RUNS) -> list[Cost]:
    """The shell only opens the file; it is part of every figure here."""
    words = ("/bin/sh", "-c", 'exec "$@" < "$0"', str(event), *command)
    return [run(words, place.env) for _ in range(times)]


def _at_once(place: Place) -> Figure:
    """Real processes, as many as there are agents, one after another each."""
    event = _event(place, 3_000)
    spooled = place.archive / "state" / "spool" / hook.SPOOL
    spooled.unlink()
    words = ["/bin/sh", "-c", f'for n in $(seq {EACH}); do "$@" < "$0" || echo failed; done', str(event), *_FILE]
    agents = [subprocess.Popen(words, env=place.env, stdout=subprocess.PIPE) for _ in range(AGENTS)]
    said = [agent.communicate()[0] for agent in agents]
    lines = [line for line in spooled.read_bytes().splitlines() if line]
    wrong = [f"an agent heard {words!r}" for words in said if words]
    wrong += [] if len(lines) == AGENTS * EACH else [f"{len(lines)} lines of {AGENTS * EACH}"]
    wrong += [f"line {number}" for number, line in enumerate(lines) if json.loads(line)["session_id"] != "s1"]
    return exact(f"{AGENTS} agents at once: lines lost or torn", wrong, f"{AGENTS * EACH} events")


def _drain(place: Place) -> Iterator[Figure]:
    folder = place.folder / "spool"
    for number in range(DRAINED):
        said = json.dumps(_said(f"t{number}")).encode()
        hook.append(str(folder), hook.event_line(said, True, number + 1, 7))
    store = open_store(str(place.folder / "drained.db"))
    begun = time.process_time()
    drained = spool.drain_spool(store, folder)
    spent = time.process_time() - begun
    store.close()
    wrong = [] if drained.rows == DRAINED else [f"{drained.rows} rows"]
    yield Figure("drain, CPU for 1,000 events", spent * 1e6 / DRAINED, "ms", 100, note=f"{DRAINED:,} events")
    yield exact("drain: events without their row", wrong, f"{DRAINED:,} events")


def _event(place: Place, size: int) -> Path:
    return _written(place, f"event-{size}", _said("t1") | {"tool_response": {"stdout": 'a "b" \\ ' * (size // 12)}})


def _written(place: Place, name: str, event: dict[str, Any]) -> Path:
    path = place.folder / f"{name}.json"
    path.write_text(json.dumps(event), "utf-8")
    return path


def _said(call: str) -> dict[str, Any]:
    return {
        "session_id": "s1",
        "transcript_path": "/home/ann/projects/shop/s1.jsonl",
        "cwd": _CWD,
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "make all", "description": "build"},
        "tool_response": "done",
        "tool_use_id": call,
        "duration_ms": 120,
    }
