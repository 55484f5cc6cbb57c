"""Read the messages and turns of a session, record by record from the raw layer.

Reading never raises on content. A record that its source can no longer read becomes a message of kind `unknown` with the
text of its bytes. One whose bytes were erased or never kept (mode `structure`) becomes a message without blocks and of
fidelity `partial`. Everything is streamed: memory holds one range of raw bytes and the rows of one turn.

A turn as people read it: passages in order, each call together with its result; and the pace of a replay.

A result is shown with its call, wherever it is in the file; a result without a call is shown alone. A problem of the file
is shown where its unreadable bytes are. A replay never waits for a time before the one shown last, and never longer than
`longest`: times of a transcript are not always in order, and there may be days between two turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.commits import Commit, find_commits
from everturn.model.archive import Call, MessageRow, ProblemRow, Session, Step, Turn, Version, is_live
from everturn.model.conversation import Block, CallStart, Message
from everturn.sources.contract import Source
from everturn.store.contract import Store

Sources = Mapping[str, Source]

#: Raw bytes read ahead when records are read in sequence: a few chunks.
_AHEAD = 512 * 1024
_PIECE = 1 << 20  # bytes of a file read at a time


class TurnView(Struct, frozen=True):
    """One turn and its rows, without text."""

    turn: Turn
    steps: list[Step]
    calls: list[Call]
    rows: list[MessageRow]


def has_words(session: Session) -> bool:
    """Whether the text of a session was archived, not only its structure."""
    return session.mode not in ("structure", "off")


def read_messages(
    store: Store, sources: Sources, session: Session, first_seq: int = 0, last_seq: int | None = None
) -> Iterator[tuple[MessageRow, Message]]:
    """Yield messages by seq, both ends included."""
    records = Records(store, sources, session, until=None if last_seq is None or last_seq > first_seq else 0)
    for row in store.messages(session.id, first_seq, last_seq):
        yield row, records.message(row)


def read_turns(store: Store, session: Session, first: int = 0, last: int | None = None) -> Iterator[TurnView]:
    """Yield turns by number, both ends included."""
    for turn in store.turns(session.id, first, last):
        rows = list(store.messages(session.id, turn.first_seq, turn.last_seq))
        yield TurnView(turn, store.steps(session.id, turn.idx), store.calls(session.id, turn.idx), rows)


def live_part(view: TurnView, last: int | None = None) -> TurnView | None:
    """Return a turn without what was taken back, or had been when `last` was the last message; None if nothing is left."""
    rows = [row for row in view.rows if is_live(row, last)]
    if len(rows) == len(view.rows):
        return view
    if not any(row.origin in ("human", "agent", "model") for row in rows):
        return None
    seqs = {row.seq for row in rows}
    steps = [step for step in view.steps if step.first_seq in seqs]
    return TurnView(view.turn, steps, [call for call in view.calls if call.seq in seqs], rows)


def records_end(rows: list[MessageRow]) -> int:
    """Return the offset where the last of these records ends."""
    return max((row.start + row.size for row in rows), default=0)


def result_block(message: Message, call: Call) -> Block | None:
    for block in message.blocks:
        if block.result is not None and block.result.call_id == call.call_id:
            return block
    return None


def stored_lines(store: Store, version: Version) -> Iterator[bytes]:
    """Yield the lines of a source file from the beginning, without their line ends. Memory holds one piece of it."""
    rest, start = b"", 0
    while start < version.size and (piece := store.read_raw(version.id, start, min(_PIECE, version.size - start))):
        start += len(piece)
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    if rest:
        yield rest


class Records:
    """Reads the records of one session, with read-ahead so that neighbours are fetched together."""

    def __init__(self, store: Store, sources: Sources, session: Session, until: int | None = None) -> None:
        """`until` is the end of the last record needed, if known: nothing beyond it is read ahead."""
        self._store = store
        self._source = sources.get(session.agent)
        self._session = session
        self._wanted = until
        self._start = 0
        self._bytes = b""

    @cached_property
    def _end(self) -> int:
        return self._store.version(self._session.version).size if has_words(self._session) else 0

    @cached_property
    def _until(self) -> int:
        return self._end if self._wanted is None else min(self._wanted, self._end)

    def message(self, row: MessageRow) -> Message:
        """Return the message of a row, with its text."""
        return self.view(row, self.record(row))

    def view(self, row: MessageRow, record: bytes) -> Message:
        """Return the message of a row from its record."""
        if not record.strip(b"\0 \r\n"):
            return Message(row.role, row.origin, row.kind, row.at, row.precision, fidelity="partial")
        message = self._source.view(record) if self._source else None
        if message is None:
            text = record.decode("utf-8", "replace")
            block = Block("unknown", text, "meta", data=text)
            return Message(
                row.role, row.origin, "unknown", row.at, row.precision, blocks=(block,), start=row.start, size=row.size
            )
        # The reader knew the records around this one, so the values of the row win.
        return replace(
            message, role=row.role, origin=row.origin, kind=row.kind, at=row.at, precision=row.precision,
            start=row.start, size=row.size, fidelity=row.fidelity,
        )  # fmt: skip

    def start(self, call: Call) -> CallStart | None:
        """Return a call as the model wrote it; None if its text was not archived."""
        for row in self._store.messages(self._session.id, call.seq, call.seq):
            for block in self.message(row).blocks[call.idx : call.idx + 1]:
                return block.call
        return None

    def result(self, call: Call) -> Block | None:
        """Return the result of a call; None if there is none, or its text was not archived."""
        if call.result_seq is None:
            return None
        for row in self._store.messages(self._session.id, call.result_seq, call.result_seq):
            return result_block(self.message(row), call)
        return None

    def with_status(self, call: Call) -> Call:
        """Return a command with the exit status 0 if its client marks those that fail, and did not mark it."""
        is_told = call.kind == "shell" and call.status == "ok" and call.exit_status is None
        return replace(call, exit_status=0) if is_told and self._source and self._source.marks_failures else call

    def record(self, row: MessageRow) -> bytes:
        """Return the bytes of one record as captured, as far as they are stored."""
        size = max(0, min(row.size, self._end - row.start))
        at = row.start - self._start
        if at >= 0 and at + size <= len(self._bytes):
            return self._bytes[at : at + size]
        self._start, self._bytes = row.start, b""  # never two ranges at once
        length = max(size, min(_AHEAD, self._until - row.start))
        if not size or length > _AHEAD:  # a record of that length is not cached
            return self._store.read_raw(self._session.version, row.start, size) if size else b""
        self._bytes = self._store.read_raw(self._session.version, row.start, length)
        return self._bytes[:size]


# --- A turn as people read it: passages in order, each call together with its result; and the pace of a replay ---
#: Kinds of a passage: prompt answer thinking call result output context notice notification compaction interrupt summary unknown problem
_BY_KIND = {"command": "prompt", "shell": "prompt", "queued": "prompt", "result": "context"}
_BY_ORIGIN = {"human": "prompt", "agent": "prompt", "model": "answer", "injected": "context", "system": "notice"}


class Passage(Struct, frozen=True):
    """A part of a turn and its kind."""

    kind: str
    text: str = ""
    row: MessageRow | None = None
    block: Block | None = None
    call: Call | None = None  # of a call, and of a result without a call block
    start: CallStart | None = None
    result: Block | None = None  # of a call, if requested and present
    batch: int = 0  # calls of the same step; more than one ran in parallel
    commits: tuple[Commit, ...] = ()  # that a call made, as its output shows


def passages(
    store: Store, sources: Sources, session: Session, view: TurnView, results: bool = False
) -> Iterator[Passage]:
    """Yield the passages of a turn; `results` also reads the result of each call."""
    reader = _PassageReader(store, sources, session, view, results)
    for row in view.rows:
        yield from reader.problems_before(row.start)
        yield from reader.message(row)
    yield from reader.problems_before(reader.end)


def is_quiet(passage: Passage) -> bool:
    """Whether the client inserted it by itself. Hidden by default."""
    if passage.kind == "notice":
        return passage.row is None or passage.row.role != "assistant"  # an error in place of the model's answer
    return passage.kind in ("context", "summary")


def is_shown(passage: Passage, thinking: bool, context: bool) -> bool:
    """Whether a reader sees a passage, who chose to see thinking and what the client inserted, or not."""
    return thinking if passage.kind == "thinking" else context or not is_quiet(passage)


def input_text(start: CallStart) -> str:
    """Return the arguments of a call, one per line; longer ones as they are."""
    if not isinstance(start.input, dict):
        return "" if start.input is None else argument_text(start.input)
    return "\n".join(f"{name}: {argument_text(value)}" for name, value in start.input.items())


def argument_text(value: Any) -> str:
    """Return a value as text: itself, or as JSON."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, RecursionError, TypeError):  # half a surrogate pair; nested deeper than can be walked
        return "…"


class _PassageReader:
    def __init__(self, store: Store, sources: Sources, session: Session, view: TurnView, results: bool) -> None:
        until = records_end(view.rows)
        self._records = Records(store, sources, session, until)
        self._results, self._has_results = Records(store, sources, session, until), results
        self._calls = {(call.seq, call.idx): call for call in view.calls}
        self._batches = {step.idx: step.n_calls for step in view.steps}
        following = next(store.messages(session.id, view.turn.last_seq + 1, view.turn.last_seq + 1), None)
        self.end = following.start if following else 1 << 62
        self._problems = _problems(store, session, view, self.end)

    def message(self, row: MessageRow) -> Iterator[Passage]:
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
        """Yield the problems before the record at `start` that were not shown yet."""
        while self._problems and self._problems[0].start < start:
            problem = self._problems.pop(0)
            yield Passage("problem", f"{problem.reason} ({problem.size} bytes at {problem.start})")

    def _call(self, row: MessageRow, block: Block, call: Call | None, start: CallStart) -> Passage:
        if call is None:
            return Passage("call", block.text, row, block, call, start)
        is_git = start.kind == "shell" and "git" in start.command
        result = self._results.result(call) if self._has_results or is_git else None
        commits = tuple(find_commits(start, result.text, call.status == "ok")) if is_git and result is not None else ()
        batch = self._batches.get(call.step, 0)
        return Passage(
            "call", block.text, row, block, call, start, result if self._has_results else None, batch, commits
        )


def _passage_kind(message: Message, block: Block) -> str:
    if block.kind == "thinking":
        return "thinking"
    if message.kind == "text":
        kind = _BY_ORIGIN.get(message.origin, "output")
    else:
        kind = _BY_KIND.get(message.kind, message.kind)
    # Text that a program put around the words of a human or a model is part of their message, but not theirs.
    is_wrapper = kind == "prompt" or (kind == "answer" and block.kind != "unknown")
    return "context" if is_wrapper and block.field == "meta" else kind


def _wordless_label(block: Block) -> str:
    return f"[{block.kind}]" if block.kind in ("image", "document") else ""


def _problems(store: Store, session: Session, view: TurnView, end: int) -> list[ProblemRow]:
    """Return the problems of the file within a turn. Of several sessions in a file, only the main one shows them."""
    if session.kind != "main" or not view.rows:
        return []
    first = 0 if view.rows[0].seq == 0 else view.rows[0].start
    problems = [problem for problem in store.problems(session.version) if first <= problem.start < end]
    return sorted(problems, key=lambda problem: problem.start)


class Pace:
    """Waits between the times of a session. `sleep` takes seconds; a speed of 0 never waits."""

    def __init__(self, speed: float, longest: float, sleep: Callable[[float], None]) -> None:
        self._speed, self._longest, self._sleep = speed, longest, sleep
        self._shown: int | None = None

    def wait_for(self, at: int | None) -> float:
        """Wait from the last time to this one (milliseconds); return the seconds waited."""
        wait = self.until(at)
        if wait > 0:
            self._sleep(wait)
        return wait

    def until(self, at: int | None) -> float:
        """Return the seconds to wait for this time, and make it the last one."""
        before, self._shown = self._shown, at if self._shown is None else max(self._shown, at or self._shown)
        if at is None or before is None or at <= before or self._speed <= 0:
            return 0.0
        return min((at - before) / 1000 / self._speed, self._longest)
