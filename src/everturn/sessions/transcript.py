"""A turn as people read it: passages in order, each call together with what it gave back.

What `show`, the Markdown export and the web page have in common. A result stands with its call, wherever in the file it
came; a result without a call stands alone. Problems of the file stand where the bytes are that could not be read.

Replay: when to show what, so that a session runs before the eyes as it ran then, faster.

Times of a transcript are not always in order, and between two turns there may be days: nobody waits for what came earlier
than what is on the screen, and no longer than `longest` for anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from everturn.model.archive import Call, MessageRow, ProblemRow, Session
from everturn.model.conversation import Block, CallStart, Message
from everturn.sessions.messages import Records, Sources, TurnView, records_end
from everturn.store.contract import Store

#: prompt answer thinking call result output context notice notification compaction interrupt summary unknown problem
_BY_KIND = {
    "command": "prompt",
    "shell": "prompt",
    "queued": "prompt",
    "result": "context",
}
_BY_ORIGIN = {"human": "prompt", "agent": "prompt", "model": "answer", "injected": "context", "system": "notice"}


class Passage(Struct, frozen=True):
    """Some words of a turn and what they are."""

    kind: str
    text: str = ""
    row: MessageRow | None = None
    block: Block | None = None
    call: Call | None = None  # for call, and for result: one whose call was never seen
    start: CallStart | None = None
    result: Block | None = None  # of a call, when it was asked for and is there
    batch: int = 0  # calls of the same step: more than one ran in parallel


def passages(
    store: Store, sources: Sources, session: Session, view: TurnView, results: bool = False
) -> Iterator[Passage]:
    """The passages of a turn, streamed; `results` also reads what each call gave back."""
    telling = _PassageTeller(store, sources, session, view, results)
    for row in view.rows:
        yield from telling.problems_before(row.start)
        yield from telling.message(row)
    yield from telling.problems_before(telling.end)


def is_quiet(passage: Passage) -> bool:
    """Whether the client put it in by itself: what a reader leaves out unless asked for."""
    if passage.kind == "notice":
        return passage.row is None or passage.row.role != "assistant"  # in the model's place an error speaks
    return passage.kind in ("context", "summary")


def input_text(start: CallStart) -> str:
    """What a tool was given, one line per argument; longer ones as they are."""
    if not isinstance(start.input, dict):
        return "" if start.input is None else _argument_text(start.input)
    return "\n".join(f"{name}: {_argument_text(value)}" for name, value in start.input.items())


def _argument_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, RecursionError):  # half a surrogate pair; nested deeper than can be walked
        return "…"


class _PassageTeller:
    def __init__(self, store: Store, sources: Sources, session: Session, view: TurnView, results: bool) -> None:
        until = records_end(view.rows)
        self._records = Records(store, sources, session, until)
        self._results = Records(store, sources, session, until) if results else None
        self._calls = {(call.seq, call.idx): call for call in view.calls}
        self._batches = {step.idx: step.n_calls for step in view.steps}
        following = next(store.messages(session.id, view.turn.last_seq + 1, view.turn.last_seq + 1), None)
        self.end = following.start if following else 1 << 62
        self._problems = _problems(store, session, view, self.end)

    def message(self, row: MessageRow) -> Iterator[Passage]:
        """The passages of one message."""
        message = self._records.message(row)
        for idx, block in enumerate(message.blocks):
            call = self._calls.get((row.seq, idx))
            if block.call is not None:
                yield self._call(row, block, call, block.call)
            elif block.result is None:
                yield Passage(_passage_kind(message, block), block.text or _wordless_label(block), row, block)
            elif call is not None:
                yield Passage("result", block.text, row, block, call, result=block)
        if not message.blocks and message.kind in ("interrupt", "compaction"):
            yield Passage(message.kind, "", row)

    def problems_before(self, start: int) -> Iterator[Passage]:
        """The problems whose bytes lie before the record at `start` and have not been told."""
        while self._problems and self._problems[0].start < start:
            problem = self._problems.pop(0)
            yield Passage("problem", f"{problem.reason} ({problem.size} bytes at {problem.start})")

    def _call(self, row: MessageRow, block: Block, call: Call | None, start: CallStart) -> Passage:
        result = self._results.result(call) if self._results and call else None
        batch = self._batches.get(call.step, 0) if call else 0
        return Passage("call", block.text, row, block, call, start, result, batch)


def _passage_kind(message: Message, block: Block) -> str:
    if block.kind == "thinking":
        return "thinking"
    if message.kind == "text":
        kind = _BY_ORIGIN.get(message.origin, "output")
    else:
        kind = _BY_KIND.get(message.kind, message.kind)
    # What a program put around the words of a human or of a model is part of their message, but not theirs.
    is_beside = kind == "prompt" or (kind == "answer" and block.kind != "unknown")
    return "context" if is_beside and block.field == "meta" else kind


def _wordless_label(block: Block) -> str:
    return f"[{block.kind}]" if block.kind in ("image", "document") else ""


def _problems(store: Store, session: Session, view: TurnView, end: int) -> list[ProblemRow]:
    """The problems of the file that lie within a turn. Told by the main session only, where a file holds several."""
    if session.kind != "main" or not view.rows:
        return []
    first = 0 if view.turn.idx == 0 else view.rows[0].start
    found = [problem for problem in store.problems(session.version) if first <= problem.start < end]
    return sorted(found, key=lambda problem: problem.start)


class Pace:
    """Waits between the moments of a session. `sleep` takes seconds; a speed of 0 does not wait at all."""

    def __init__(self, speed: float, longest: float, sleep: Callable[[float], None]) -> None:
        self._speed, self._longest, self._sleep = speed, longest, sleep
        self._shown: int | None = None

    def wait_for(self, at: int | None) -> float:
        """Wait until this moment (milliseconds) would come after the last one; how long that was."""
        wait = self.until(at)
        if wait > 0:
            self._sleep(wait)
        return wait

    def until(self, at: int | None) -> float:
        """The seconds to wait for this moment, which is then the last one."""
        before, self._shown = self._shown, at if self._shown is None else max(self._shown, at or self._shown)
        if at is None or before is None or at <= before or self._speed <= 0:
            return 0.0
        return min((at - before) / 1000 / self._speed, self._longest)
