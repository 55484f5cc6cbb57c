"""Tool use made up from nothing, with habits planted in it: the same seed gives the same history.

A history is sessions of turns of batches of calls. `fill` puts it into an archive as rows, without a transcript, so that a
million calls are there in a minute. No test framework is needed here: benchmarks use it too.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from everturn.model.archive import Call, MessageRow, Session, SessionGrowth, SourceFile, Step, Turn, Version
from everturn.store.contract import Store

START = 1_767_600_000_000  # 2026-01-05T08:00:00Z
TOOLS = (*"Read Edit Bash Grep Glob Write Task Fetch Search Plan Ask List Move".split(), "mcp__shop__price")
PLANTED = (("Grep", "Read", "Edit", "Bash"), ("Glob", "Move"), ("Fetch", "Search", "Write"))


@dataclass(frozen=True)
class Made:
    """One call."""

    tool: str
    error: str = ""
    ms: int = 20


@dataclass(frozen=True)
class MadeSession:
    """Turns of batches of calls."""

    native_id: str
    turns: list[list[list[Made]]]
    kind: str = "main"
    parent: str = ""
    agent: str = "maker"
    model: str = "model-1"
    started: int = START


def chain(*tools: str | Made) -> list[list[Made]]:
    """A turn of calls one after the other; `Edit!stale` failed."""
    return [[one if isinstance(one, Made) else Made(one.partition("!")[0], one.partition("!")[2])] for one in tools]


def session(name: str, *turns: list[list[Made]], kind: str = "main", parent: str = "") -> MadeSession:
    """A session of these turns."""
    return MadeSession(name, list(turns), kind, parent)


def history(
    seed: int, sessions: int = 300, planted: Sequence[Sequence[str]] = PLANTED, rate: float = 0.1, turns: int = 8,
    length: int = 14,
) -> Iterator[MadeSession]:  # fmt: skip
    """Random use of tools, each session with its own likings, and the planted sequences in between."""
    dice = random.Random(seed)
    for number in range(sessions):
        likings = [dice.random() ** 2 for _ in TOOLS]
        made = [_turn(dice, likings, planted, rate, dice.randint(1, length)) for _ in range(dice.randint(1, 2 * turns))]
        started = START + number * 3_600_000
        yield MadeSession(f"{seed:04d}-{number:06d}", made, model=f"model-{number % 3}", started=started)


def _turn(
    dice: random.Random, likings: list[float], planted: Sequence[Sequence[str]], rate: float, length: int
) -> list[list[Made]]:
    tools: list[str] = []
    while len(tools) < length:
        if planted and dice.random() < rate:
            tools += dice.choice(planted)
        elif tools and dice.random() < 0.3:
            tools.append(tools[-1])
        else:
            tools += dice.choices(TOOLS, likings)
    batches: list[list[Made]] = []
    for tool in tools:
        one = Made(tool, "exit_status" if dice.random() < 0.06 else "", dice.randint(1, 5000))
        if batches and dice.random() < 0.15:
            batches[-1].append(one)
        else:
            batches.append([one])
    return batches


def shuffled(sessions: Iterable[MadeSession], seed: int) -> Iterator[MadeSession]:
    """The same calls in each session, in any order; turns and batches stay as long as they are."""
    dice = random.Random(seed)
    for session in sessions:
        calls = [call for turn in session.turns for batch in turn for call in batch]
        dice.shuffle(calls)
        left = iter(calls)
        turns = [[[next(left) for _ in batch] for batch in turn] for turn in session.turns]
        yield replace(session, turns=turns)


def fill(store: Store, sessions: Iterable[MadeSession], at_once: int = 200) -> int:
    """Put them into the archive; how many calls that were."""
    calls, waiting = 0, []
    for session in sessions:
        waiting.append(session)
        if len(waiting) == at_once:
            calls += _put(store, waiting)
            waiting = []
    return calls + _put(store, waiting)


def _put(store: Store, sessions: Sequence[MadeSession]) -> int:
    calls = 0
    with store.write():
        for made in sessions:
            source = SourceFile(format=made.agent, machine="box", path=f"/made/{made.native_id}", kind=made.kind)
            version = store.add_version(Version(source=store.add_file(source)))
            row = Session(
                agent=made.agent, native_id=made.native_id, version=version, kind=made.kind, parent=made.parent
            )
            session = store.open_session(row)
            growth = growth_of(session.id, made)
            store.append(session.id, growth)
            calls += len(growth.calls)
    return calls


def growth_of(session: int, made: MadeSession) -> SessionGrowth:
    """The rows of a session: one message for each response."""
    growth = SessionGrowth([], [], [], [], [], [], [], [], model=made.model, started=made.started)
    at, seq, step = made.started, 0, 0
    for number, batches in enumerate(made.turns):
        turn = Turn(session, number, seq, seq, "human", at, at, n_messages=1, answered=1)
        growth.messages.append(MessageRow(session, seq, number, -1, "user", "human", "text", at, "ms"))
        seq += 1
        for position, batch in enumerate(batches):
            growth.messages.append(MessageRow(session, seq, number, step, "assistant", "model", "text", at, "ms"))
            growth.steps.append(
                Step(
                    session, step, number, seq, f"r{step}", made.model, at, at + 500, len(batch), 0, 1000, 200, 5000, 10
                )
            )
            for index, one in enumerate(batch):
                growth.calls.append(_call(session, seq, index, number, step, position, one, at))
            turn.n_calls += len(batch)
            turn.n_errors += sum(bool(one.error) for one in batch)
            at += max(one.ms for one in batch) + 1000
            seq, step = seq + 1, step + 1
        turn.n_batches = turn.n_steps = len(batches)
        turn.last_seq, turn.ended, turn.n_messages = seq - 1, at, len(batches) + 1
        growth.turns.append(turn)
        at += 60_000
    growth.ended, growth.n_prompts = at, len(made.turns)
    return growth


def _call(session: int, seq: int, index: int, turn: int, step: int, position: int, one: Made, at: int) -> Call:
    return Call(
        session, seq, index, f"c{seq}.{index}", turn, step, index, position, one.tool, "other",
        "error" if one.error else "ok", one.error, None, at, at + one.ms, one.ms, 10, 10, seq, 0,
    )  # fmt: skip
