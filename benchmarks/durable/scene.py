"""A conversation with effects in the world outside, and the judge who looks at what is left of it.

The tool adds a line to a ledger and syncs it: that is the effect, and the ledger is nobody's but ours. The model is a
script. After whatever happened, `judge` resumes the session and tells everything that is wrong: an acknowledged record
that is not there, an effect that happened twice, a call without exactly one result, a result that is not true, an archive
that is not whole.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from everturn.llm import anthropic_messages, chat_completions, responses
from everturn.llm.history_rules import validate_request
from everturn.llm.protocol import ChatMessage, ChatPart, Delta, ModelRequest, Reply
from everturn.loop import records
from everturn.loop.journal import Journal, open_archive
from everturn.loop.journal_state import JournalState, journal_path
from everturn.loop.loop import Loop, Outcome
from everturn.loop.tools import NotDone, Policy, ReconciledResult, Tool, ToolContext, tool
from everturn.maintenance.verify import verify_archive
from everturn.store.contract import Store

#: The calls of each response in turn; after the last there is an answer.
PARALLEL = (("a", "b", "c"),)
LONG = (("a", "b", "c"), ("d",), ("e", "f"), ("g",))
ANSWER = "all is done"
PATIENCE = 60.0  # seconds


@dataclass
class Script:
    """A model that says what stands in its script, and remembers what it was asked."""

    steps: tuple[tuple[str, ...], ...]
    asked: list[ModelRequest] = field(default_factory=list)
    name: str = "script"
    model: str = "script"
    window: int = 0
    max_tokens: int = 0
    takes_tools: bool = True

    def stream(self, request: ModelRequest) -> Iterator[Delta]:
        """See `llm.Backend`."""
        self.asked.append(request)
        yield Delta("end", reply=self._reply(request))

    def ask(self, request: ModelRequest) -> Reply:
        """See `llm.Backend`."""
        return next(delta.reply for delta in self.stream(request) if delta.reply is not None)

    def _reply(self, request: ModelRequest) -> Reply:
        said = sum(message.role == "assistant" for message in request.messages)
        if said >= len(self.steps):
            return Reply(ChatMessage("assistant", (ChatPart("text", ANSWER),), id=f"m{said}"), "end", model="script")
        names = self.steps[said]
        calls = [ChatPart("call", call_id=f"call_{name}", name="effect", arguments={"name": name}) for name in names]
        return Reply(ChatMessage("assistant", tuple(calls), id=f"m{said}"), "calls", model="script")


@dataclass(frozen=True)
class Scene:
    """Where it happens. `dies` is the effect after which the process kills itself, as soon as the others are written."""

    url: str
    folder: Path
    steps: tuple[tuple[str, ...], ...] = LONG
    dies: str = ""
    policy: Policy = ""  # of the tool: "" asks, or fails where nobody can be asked; "reconcile" looks into the ledger
    durability: str = "power"

    @property
    def ledger(self) -> Path:
        """What happened in the world."""
        return self.folder / "ledger"

    @property
    def acks(self) -> Path:
        """Lines that the journal said are durable."""
        return self.folder / "acks"


SESSION = "the-session"


def play(scene: Scene, acked: Callable[[bytes], None] = lambda lines: None) -> Outcome:
    """The conversation from its beginning; `acked` is told every line that the journal says is durable."""
    store = open_archive(scene.url, scene.durability)
    try:
        with Journal.open(store, SESSION) as journal:
            _acknowledge(journal, scene.acks, acked)
            return Loop(Script(scene.steps), [_effect(scene)], interactive=False).run(journal, "do it all")
    finally:
        with suppress(Exception):  # SQLite tidies up when it closes; what a broken disk says to that does not matter
            store.close()


def kept(scene: Scene) -> list[str]:
    """Is the archive whole, and is everything in it that was acknowledged?"""
    store = open_archive(scene.url)
    try:
        return _whole(store) + _acknowledged(store, scene)
    finally:
        store.close()


def judge(scene: Scene) -> list[str]:
    """Resume what is left, and say what is wrong with it."""
    scene = Scene(scene.url, scene.folder, scene.steps, policy=scene.policy)
    store = open_archive(scene.url)
    try:
        wrong = _whole(store) + _acknowledged(store, scene)
        if not Journal.exists(store, SESSION):
            return wrong
        script = Script(scene.steps)
        loop = Loop(script, [_effect(scene)], interactive=False)
        with Journal.open(store, SESSION) as journal:
            if not journal.past.messages:  # the message of the human was never acknowledged
                return wrong
            outcome = loop.resume(journal)
            past = journal.past
        if outcome.state != "done":
            wrong.append(f"resuming ended {outcome.state}")
        for request in script.asked:
            wrong += invalid(request.messages) + refused_by_providers(request)
        wrong += invalid(tuple(past.messages))
        return wrong + _effects(store, scene, past) + _whole(store)
    finally:
        store.close()


def effects(scene: Scene) -> Counter[str]:
    """How often each thing happened."""
    return Counter(scene.ledger.read_text().split()) if scene.ledger.exists() else Counter()


def results(store: Store) -> dict[str, records.ResultRecord]:
    """What the model was told about each call."""
    found = {}
    for raw in _lines(store):
        record = records.parse_record(raw, SESSION)
        if isinstance(record, records.ResultRecord):
            found[record.call_id] = record
    return found


def invalid(messages: tuple[ChatMessage, ...]) -> list[str]:
    """Every call is answered by exactly one result in the next message, and nothing else is."""
    wrong = []
    for number, message in enumerate(messages):
        calls = [part.call_id for part in message.parts if part.kind == "call"]
        after = messages[number + 1].parts if number + 1 < len(messages) else ()
        told = [part.call_id for part in after if part.kind == "result"]
        if message.role == "assistant" and sorted(calls) != sorted(told):
            wrong.append(f"message {number} calls {calls} and is told about {told}")
    return wrong


def refused_by_providers(request: ModelRequest) -> list[str]:
    """What each provider would refuse in it."""
    return [
        f"{wire.WIRE} would refuse {one.where}: {one.rule}"
        for wire in (anthropic_messages, chat_completions, responses)
        for one in validate_request(wire.WIRE, wire.body(request))
    ]


# the world --------------------------------------------------------------------------------------------------------------
def _effect(scene: Scene) -> Tool:
    def found(context: ToolContext, arguments: dict[str, Any]) -> ReconciledResult | NotDone:
        return ReconciledResult(f"done {arguments['name']}") if effects(scene)[arguments["name"]] else NotDone()

    @tool(policy=scene.policy, reconcile=found if scene.policy == "reconcile" else None)
    def effect(name: str) -> str:
        """Do something that cannot be undone."""
        handle = os.open(scene.ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, f"{name}\n".encode())
        os.fsync(handle)
        os.close(handle)
        if name == scene.dies:
            _wait_for_others(scene)
            os.kill(os.getpid(), signal.SIGKILL)
        return f"done {name}"

    return effect


def _wait_for_others(scene: Scene) -> None:
    """Until the journal says that the results of the calls beside `dies` are durable."""
    beside = next(step for step in scene.steps if scene.dies in step)
    wanted, end = {f"call_{name}" for name in beside if name != scene.dies}, time.monotonic() + PATIENCE
    while not wanted <= _acknowledged_results(scene):
        if time.monotonic() > end:
            raise TimeoutError(f"{sorted(wanted - _acknowledged_results(scene))} have no result")
        time.sleep(0.01)


def _acknowledged_results(scene: Scene) -> set[str]:
    lines = scene.acks.read_bytes().split(b"\n")[:-1]  # the last may be half written
    read = [records.parse_record(line, SESSION) for line in lines]
    return {record.call_id for record in read if isinstance(record, records.ResultRecord)}


def _acknowledge(journal: Journal, path: Path, acked: Callable[[bytes], None]) -> None:
    """Note every line that the journal says is durable, as soon as it says so."""
    write, handle = journal.write, os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def noting(*many: records.Record) -> None:
        write(*many)
        lines = b"".join(map(records.record_line, many))
        os.write(handle, lines)
        acked(lines)

    journal.write = noting  # type: ignore[method-assign]


# the judge --------------------------------------------------------------------------------------------------------------
def _whole(store: Store) -> list[str]:
    return [f"not whole: {problem}" for problem in verify_archive(store, "", lambda *numbers: None).wrong]


def _acknowledged(store: Store, scene: Scene) -> list[str]:
    there = set(_lines(store))
    acked = scene.acks.read_bytes().splitlines() if scene.acks.exists() else []
    return [f"acknowledged and lost: {line[:80]!r}" for line in acked if line not in there]


def _lines(store: Store) -> list[bytes]:
    rows = [file for file in store.files() if file[0].path == journal_path(SESSION)]
    return store.read_raw(rows[0][1].id, 0, rows[0][1].size).splitlines() if rows else []


def _effects(store: Store, scene: Scene, past: JournalState) -> list[str]:
    happened, told = effects(scene), results(store)
    wrong = [f"{name} happened {n} times" for name, n in happened.items() if n > 1]
    for name in (name for step in scene.steps for name in step):
        result = told.get(f"call_{name}")
        if result is None:
            wrong.append(f"{name} has no result")
        elif result.outcome in ("ok", "settled") and not happened[name]:
            wrong.append(f"{name} was reported as done and did not happen")
        elif result.outcome not in ("ok", "settled", "in_doubt"):
            wrong.append(f"{name} ended as {result.outcome}")
    lines = [records.parse_record(raw, SESSION) for raw in _lines(store)]
    counted = Counter(record.call_id for record in lines if isinstance(record, records.ResultRecord))
    wrong += [f"{call} has {n} results" for call, n in counted.items() if n > 1]
    if [record.n for record in lines] != list(range(len(lines))):
        wrong.append("the records are not numbered one after the other")
    if past.messages[-1].parts[0].text != ANSWER:
        wrong.append("there is no answer")
    return wrong
