"""What durability costs: syncs counted, time beside a bare append and fdatasync, flat however long the session is."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import beside
from benchmarks.corpora import Corpora
from benchmarks.durable.peer import LANGGRAPH, PROGRAMS, PeerPython, Unobtainable
from benchmarks.durable.scene import Script
from benchmarks.durable.shim import Disk, Shim
from benchmarks.figures import Figure
from everturn.llm import chat_completions
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, Reply
from everturn.loop import records
from everturn.loop.journal import Journal, JournalAbout, open_archive
from everturn.loop.journal_state import JournalState
from everturn.loop.loop import Loop
from everturn.loop.model_request import RequestView, prepare_request
from everturn.loop.tools import tool
from everturn.store.contract import Store

#: Messages in a long session, and how many are measured at a time.
LONG, MEASURED = 10_000, 300
_SIZE = 630  # of a message, in bytes
_REQUESTS = 40  # the last requests of a session, which are measured


def figures(corpora: Corpora) -> Iterator[Figure]:
    """All of it, without the peer."""
    with tempfile.TemporaryDirectory(prefix="everturn-journal-") as folder:
        yield from _syncs(Path(folder))
        yield from _costs(Path(folder))
        yield from _large_result()
        yield from _requests()


# large results and requests -------------------------------------------------------------------------------------------
_BIG = """
import resource, sys, tempfile
from benchmarks.durable.scene import Script
from everturn import Journal, Loop, tool

@tool
def effect(name: str) -> str:
    "Return a lot."
    return ("A line of a very long log, with words and numbers 12345.\\n" * 900_000)[:50_000_000]

with tempfile.TemporaryDirectory() as folder:
    with Journal.open(f"{folder}/archive.db") as journal:
        assert Loop(Script((("a",),)), [effect]).run(journal, "go").state == "done"
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_maxrss / 1024, used.ru_utime + used.ru_stime)
"""


def _large_result() -> Iterator[Figure]:
    """A tool that returns 50 MB, in a process of its own."""
    here = Path(__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here / "src"), str(here)])}
    done = subprocess.run([sys.executable, "-c", _BIG], env=env, capture_output=True, text=True, check=True)
    memory, cpu = map(float, done.stdout.split())
    yield Figure("a result of 50 MB, peak memory", memory, "MB", bar=200, note=f"{cpu:.1f} CPU-s with the start")


class _Backend(Script):
    wire = chat_completions.WIRE
    adds_bodies = True

    def body(self, request: ModelRequest) -> dict[str, Any]:
        return chat_completions.body(request, True)


def _requests() -> Iterator[Figure]:
    """The next request of sessions that grow. They are measured in turns, so that they share the moods of the machine."""
    lengths = (100, 1_000, LONG)
    sessions = [_prepared(length, in_one_turn) for in_one_turn in (False, True) for length in lengths]
    took = list(zip(*list(zip(*sessions, strict=True))[1:], strict=True))  # the first requests take a session up
    note = ", ".join(f"{median(some):.2f} ms at {length:,}" for length, some in zip(lengths, took, strict=False))
    means = ", ".join(f"{_mean(some):.2f}" for some in took[:3])
    for place, short in enumerate(lengths[:2]):
        ratio = median(took[2]) / median(took[place])
        more = f"; mean {means}" if not place else ""
        yield Figure("preparing a request at 10,000 messages", ratio, f"× that at {short:,}", bar=1.5, note=note + more)
    ratio = _mean(took[2]) / _mean(took[0])
    yield Figure("the same, mean of requests", ratio, "× that at 100", note="with those that move the view")
    first, last = took[3], took[5]
    note = f"{median(first):.2f} ms at 100, {median(last):.2f} ms; mean {_mean(last):.2f} with those that move the view"
    ratio = median(last) / median(first)
    yield Figure("the same in one turn of 10,000 messages", ratio, "× that at 100", bar=1.5, note=note)


def _prepared(length: int, in_one_turn: bool = False) -> Iterator[float]:
    """Milliseconds for each of the last requests: selection, repair, wire form and hashes; not the JSON that is sent."""
    past, backend, dice = JournalState("s"), _Backend(()), random.Random(3)
    for n in range(length // 2):
        if not in_one_turn or not n:
            past.take(records.UserRecord(n=past.count, parts=(ChatPart("text", _text(dice)),)))
        sent = None
        if n >= length // 2 - _REQUESTS:
            begun = time.process_time()
            sent = prepare_request(past, backend, RequestView(), 4096).sent
            yield 1000 * (time.process_time() - begun)
        answer: dict[str, Any] = {"role": "assistant", "content": _text(dice)}
        if in_one_turn:
            asked = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
            answer = {"role": "assistant", "content": None, "tool_calls": [asked]}
        reply = Reply(chat_completions.message(answer), "calls" if in_one_turn else "end")
        past.take(records.ResponseRecord(n=past.count, reply=reply, sent=sent))
        if in_one_turn:
            result = records.ResultRecord(
                n=past.count, of=past.response, call_id=f"c{n}", name="read", text=_text(dice)
            )
            past.take(result)


# syncs ------------------------------------------------------------------------------------------------------------------
def _syncs(folder: Path) -> Iterator[Figure]:
    """Counted where SQLite asks for them."""
    for calls, name in (
        (0, "a response without calls"),
        (1, "a response with one call"),
        (8, "one with 8 parallel calls"),
    ):
        responses = 40
        steps = tuple(tuple(f"{n}.{call}" for call in range(calls)) for n in range(responses))
        disk = Disk()
        shim = Shim(disk)
        try:
            store = open_archive(str(folder / f"syncs{calls}.db"))
            with Journal.open(store) as journal:
                before = disk.syncs
                if calls:
                    Loop(Script(steps), [_nothing]).run(journal, "go")
                else:
                    for n in range(responses):
                        journal.response(_reply("x", n))
                each = (disk.syncs - before) / responses
            store.close()
        finally:
            shim.close()
        # One for the response, two for each call at most; one call shares one of its own with the response.
        yield Figure(f"syncs of {name}", each, "syncs", bar=max(1 + 2 * calls - 0.5, 1.1), note=_asked(calls))


def _asked(calls: int) -> str:
    return (
        f"{1 + 2 * calls} would be one for the response and two for each call" if calls else "one is the least there is"
    )


@tool(name="effect")
def _nothing(name: str) -> str:
    """Do nothing."""
    return f"done {name}"


# time -------------------------------------------------------------------------------------------------------------------
@dataclass
class _Session:
    """One that is measured."""

    journal: Journal
    took: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def say(self, text: str) -> None:
        """One more message, measured."""
        cpu, begun = time.process_time(), time.perf_counter()
        if len(self.took) % 2:
            self.journal.response(_reply(text, self.journal.past.count))
        else:
            self.journal.accept(text)
        self.took.append(time.perf_counter() - begun)
        self.cpu.append(time.process_time() - cpu)


def _costs(folder: Path) -> Iterator[Figure]:
    """A short session, a long one and a bare file, in turns, so that they share the moods of the machine."""
    lengths = {"short": 10, "long": LONG}
    for name, wanted in lengths.items():
        store = open_archive(str(folder / f"{name}.db"), "process")
        with Journal.open(store, name, JournalAbout(workspace="/w", model="m")) as journal:
            _grow(journal, wanted)
        if name == "long":
            yield _resumed(store)
        store.close()
    for durability in ("power", "process"):
        stores = {name: open_archive(str(folder / f"{name}.db"), durability) for name in lengths}
        both = {name: _Session(Journal.open(store, name)) for name, store in stores.items()}
        floor = _in_turns(both, folder / "bare")
        yield from _compared(durability, both, floor)
        for name, store in stores.items():
            both[name].journal.close()
            store.close()


def _in_turns(both: dict[str, _Session], bare: Path) -> list[float]:
    dice, floor = random.Random(7), []
    handle = os.open(bare, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for _ in range(MEASURED):
        begun = time.perf_counter()
        os.write(handle, b"x" * _SIZE)
        os.fdatasync(handle)
        floor.append(time.perf_counter() - begun)
        for session in both.values():
            session.say(_text(dice))
    os.close(handle)
    return floor


def _compared(durability: str, both: dict[str, _Session], floor: list[float]) -> Iterator[Figure]:
    short, long = both["short"], both["long"]
    name = f"a message, durability {durability}"
    if durability == "power":
        bare = median(floor)
        yield Figure("append + fdatasync of a bare file", 1000 * bare, "ms", note=f"p50 of {MEASURED}, in turns")
        yield Figure(name, 1000 * median(long.took), "ms", note=f"p50, after {LONG:,} messages")
        note = "bytes, rows, index text and cursor: one sync, and the same CPU on a fast disk as on a slow one"
        yield Figure(f"{name} : bare file", median(long.took) / bare, "×", note=note)
    else:
        yield Figure(name, 1000 * median(long.took), "ms", note=f"p50, after {LONG:,} messages; no sync at all")
    cpus = f"CPU p50 {1000 * median(short.cpu):.2f} → {1000 * median(long.cpu):.2f} ms"
    note = f"{cpus}, mean {1000 * _mean(short.cpu):.2f} → {1000 * _mean(long.cpu):.2f}"
    bar = 1.2 if durability == "power" else None
    yield Figure(f"{name}: after {LONG:,} : after 10", median(long.took) / median(short.took), "×", bar, note=note)


def _resumed(store: Store) -> Figure:
    spent = []
    for _ in range(5):
        cpu = time.process_time()
        with Journal.open(store, "long") as journal:
            spent.append(time.process_time() - cpu)
            messages = len(journal.past.messages)
    return Figure(
        "taking up a long session", 1000 * median(spent), "ms CPU", bar=100, note=f"{messages:,} messages, median of 5"
    )


def _grow(journal: Journal, wanted: int) -> None:
    """Until there are so many messages; many at a time, because this is not what is measured."""
    from everturn.loop import records

    dice = random.Random(wanted)
    while (there := len(journal.past.messages)) < wanted:
        many: list[records.Record] = []
        for n in range(there, min(there + 500, wanted)):
            text = _text(dice)
            many.append(
                records.UserRecord(parts=(ChatPart("text", text),))
                if n % 2 == 0
                else records.ResponseRecord(reply=_reply(text, n))
            )
        journal.write(*many)


def _reply(text: str, n: int) -> Reply:
    return Reply(ChatMessage("assistant", (ChatPart("text", text),), id=f"msg_{n}"), model="m")


def _text(dice: random.Random) -> str:
    words: list[str] = []
    while sum(map(len, words)) + len(words) < _SIZE - 150:
        words.append("".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9))))
    return " ".join(words)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


# beside it --------------------------------------------------------------------------------------------------------------
def peers(folder: Path) -> Iterator[Figure]:
    """LangGraph's checkpoint of the same conversation."""
    try:
        python = PeerPython(folder / "peer")
        version = python.install(*LANGGRAPH)
    except Unobtainable as failure:
        yield Figure("LangGraph SqliteSaver.put", None, note=str(failure))
        return
    for many in (10, 1000, LONG):
        done = python.run(PROGRAMS / "langgraph_agent.py", "put", str(many), str(folder / f"put{many}.db"))
        said = json.loads(done.stdout)
        note = f"{said['cpu'] / 1000:.2f} ms of it CPU"
        yield Figure(f"LangGraph {version} SqliteSaver.put at {many:,} messages", said["time"] / 1000, "ms", note=note)


if __name__ == "__main__":
    sys.exit(beside.run("journal", __doc__, figures, peers))
