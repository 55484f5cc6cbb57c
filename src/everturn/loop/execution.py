"""Execution of tool calls: run in parallel, and recorded.

Each call runs in a thread of its own; asynchronous tools share one event loop (`coroutines`). The caller's thread starts
calls, waits, and is the only one that writes: results that arrive while it writes are written together next time, with the
intents of the calls that follow. So no call ever gets two results, and a call that ends after its timeout, or after the
human stopped the turn, finds its result already written. A thread cannot be killed: a tool learns of the stop by
`ToolContext.stop`, an asynchronous one is cancelled. When the time of the turn is over, running calls time out, and calls
that were not begun stay open for `resume`.

Large results: the whole text is kept in the archive piece by piece, and the journal holds its beginning and its end.

A result of many megabytes does not fit into any request, and a journal that held it would read it again at every start. It
becomes a file of the archive of its own, `result:SESSION/KEY`, which the shortened text names; `read_large_result` gives it
back. Search knows the shortened text. Forgetting the session erases the file too. In mode `redacted` only the shortened text
is kept, because a secret could be cut in two by the pieces.
"""

from __future__ import annotations

import codecs
import contextvars
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from everturn.capture.file_reader import FileCandidate, FilePiece, ReaderStart, empty_result, opaque_source
from everturn.capture.writer import ArchiveWriter, write_piece
from everturn.loop.journal import Journal
from everturn.loop.journal_state import AGENT
from everturn.loop.records import IntentRecord, InterruptRecord, Record
from everturn.loop.settlement import (
    COMPENSATED_RESULT,
    IN_DOUBT_RESULT,
    INTERRUPTED_RESULT,
    NOT_STARTED_RESULT,
    CallEnding,
    CallJob,
    Coroutines,
    timed_out_result,
)
from everturn.loop.tools import make_idempotency_key
from everturn.model.archive import FILE, FRAMEWORK, FrameworkData, KeptRow, Version
from everturn.sources.contract import SourceCandidate
from everturn.store.contract import Store


@dataclass(frozen=True)
class ExecutionLimits:
    """The number of parallel calls, and the seconds a stopped turn waits for its tools."""

    workers: int = 8
    grace: float = 2.0


@dataclass
class _RunningCall:
    job: CallJob
    started: float
    deadline: float | None
    cancel: Callable[[], None]


class Execution:
    """Runs one batch of calls. To stop it, set `cancelled` and put None into `inbox`."""

    def __init__(
        self,
        journal: Journal,
        limits: ExecutionLimits,
        cancelled: threading.Event,
        inbox: queue.SimpleQueue[Any],
        watch: Callable[[str, Any], None],
        coroutines: Coroutines | None = None,
        ends: float | None = None,  # of time.monotonic(): nothing runs longer
    ) -> None:
        self._journal, self._limits, self._cancelled, self._inbox, self._watch = (
            journal, limits, cancelled, inbox, watch,
        )  # fmt: skip
        self._coroutines, self._ends = coroutines or Coroutines(), ends
        self._running: dict[str, _RunningCall] = {}

    def run(self, jobs: Iterable[CallJob], finished: Iterable[CallEnding] = ()) -> None:
        """Run all jobs; `finished` are results that need no run."""
        try:
            self._run(deque(jobs), list(finished))
        except BaseException:
            for running in self._running.values():  # their results are no longer needed
                running.cancel()
            raise

    def _run(self, queued: deque[CallJob], done: list[CallEnding]) -> None:
        while (queued or self._running) and not self._cancelled.is_set():
            if self._is_late() and not self._running:
                break  # what was not begun stays open
            ready = [] if self._is_late() else self._take_ready(queued)
            self._write(done, ready)
            for job in ready:
                self._start(job)
            done = self._wait()
        if self._cancelled.is_set():
            self._stop(queued, done)
        else:
            self._write(done, [])

    def _take_ready(self, queued: deque[CallJob]) -> list[CallJob]:
        """Take the jobs that may run now. One that must run alone waits for the others, and they for it."""
        ready: list[CallJob] = []
        busy = [running.job for running in self._running.values()]
        while queued and len(busy) < self._limits.workers:
            if busy and (queued[0].tool.alone or busy[-1].tool.alone):
                break
            busy.append(queued[0])
            ready.append(queued.popleft())
        return ready

    def _start(self, job: CallJob) -> None:
        work = _CallThread(job, self._inbox, self._coroutines)
        started = time.monotonic()
        limits = [] if job.tool.timeout is None else [started + job.tool.timeout]
        limits += [] if self._ends is None else [self._ends]
        self._running[job.part.call_id] = _RunningCall(job, started, min(limits, default=None), work.cancel)
        self._watch("started", job.part)
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(work.run,), name=f"call {job.part.name}", daemon=True).start()

    def _is_late(self) -> bool:
        return self._ends is not None and time.monotonic() >= self._ends

    def _wait(self) -> list[CallEnding]:
        """Return the calls that ended or timed out: at least one, unless woken up."""
        self._journal.renew()
        endings = self._drain(self._wait_seconds())
        now = time.monotonic()
        for running in list(self._running.values()):
            if running.deadline is not None and running.deadline <= now:
                endings.append(self._give_up(running))
        return endings

    def _drain(self, patience: float) -> list[CallEnding]:
        endings = []
        try:
            item = self._inbox.get(timeout=max(patience, 0))
            while True:
                if item is not None and self._running.pop(item.part.call_id, None) is not None:
                    endings.append(item)
                item = self._inbox.get_nowait()
        except queue.Empty:
            return endings

    def _wait_seconds(self) -> float:
        """Return the seconds until the next deadline or lease renewal."""
        now = time.monotonic()
        deadlines = [one.deadline - now for one in self._running.values() if one.deadline is not None]
        return min([*deadlines, self._journal.ttl / 3000])

    def _give_up(self, running: _RunningCall) -> CallEnding:
        job = running.job
        self._running.pop(job.part.call_id)
        running.cancel()
        limit = round((running.deadline or 0) - running.started, 2)
        return CallEnding(job.part, job.of, timed_out_result(limit), True, "timeout", round(limit * 1000))

    def _stop(self, queued: Iterable[CallJob], done: list[CallEnding]) -> None:
        """Notify running tools, wait briefly for their results, and record the state of the rest."""
        for running in self._running.values():
            running.cancel()
        end = time.monotonic() + self._limits.grace
        while self._running and time.monotonic() < end:
            done += self._drain(end - time.monotonic())
        for running in self._running.values():
            done.append(CallEnding(running.job.part, running.job.of, INTERRUPTED_RESULT, True, "interrupted"))
        self._running.clear()
        done += [CallEnding(job.part, job.of, NOT_STARTED_RESULT, True, "not_started") for job in queued]
        self._write(done, [], InterruptRecord(text="the human stopped the turn"))

    def _write(self, done: list[CallEnding], ready: list[CallJob], *more: Record) -> None:
        """Write results, and the intents of the next calls, in one transaction."""
        done = [self._shorten(ending) for ending in done]
        written: list[Record] = [ending.record for ending in done]
        intended = tuple(job.intent for job in ready if not job.intended)
        if intended:
            written.append(IntentRecord(of=ready[0].of, calls=intended))
        written += more
        if written:
            self._journal.write(*written)
        for ending in done:
            self._watch("finished", ending)

    def _shorten(self, ending: CallEnding) -> CallEnding:
        if len(ending.text) <= LARGE:
            return ending
        key = make_idempotency_key(self._journal.session, ending.of, ending.part.call_id)
        return replace(ending, text=keep_large_result(self._journal, key, ending.text))


class _CallThread:
    def __init__(self, job: CallJob, inbox: queue.SimpleQueue[Any], coroutines: Coroutines) -> None:
        self._job, self._inbox, self._coroutines = job, inbox, coroutines
        self._cancel: Callable[[], None] = lambda: None

    def run(self) -> None:
        job, started_at = self._job, time.monotonic()
        ending = self._run_call()
        ms = round((time.monotonic() - started_at) * 1000)
        self._inbox.put(replace(ending, ms=ms if job.purpose == "run" else None))

    def cancel(self) -> None:
        """Tell the tool that its result is no longer needed."""
        self._job.context.stop.set()
        self._cancel()

    def _await_value(self, value: Any) -> Any:
        return self._coroutines.wait(value, self._begin)

    def _begin(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel
        if self._job.context.stop.is_set():
            cancel()

    def _run_call(self) -> CallEnding:
        import asyncio

        job = self._job
        if job.purpose == "compensate":
            return self._compensate()
        try:
            given = {job.tool.context: job.context} if job.tool.context else {}
            value = self._await_value(job.tool.fn(**job.arguments, **given))
        except asyncio.CancelledError:
            return CallEnding(job.part, job.of, INTERRUPTED_RESULT, True, "interrupted")
        except BaseException as failure:  # an exception of a tool is its result
            return CallEnding(job.part, job.of, job.note + _failure_text(failure), True, "error")
        return CallEnding(job.part, job.of, job.note + show_result(value))

    def _compensate(self) -> CallEnding:
        job = self._job
        assert job.tool.compensate is not None
        try:
            note = self._await_value(job.tool.compensate(job.context, job.arguments))
        except BaseException as failure:
            text = f"{IN_DOUBT_RESULT} Undoing it was tried and failed: {_failure_text(failure)}"
            return CallEnding(job.part, job.of, text, True, "in_doubt")
        return CallEnding(job.part, job.of, f"{COMPENSATED_RESULT} {note or ''}".strip(), True, "compensated")


def show_result(value: Any) -> str:
    """Return the result of a tool as text for the model."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if (dump := getattr(value, "model_dump_json", None)) is not None:  # a pydantic model
        return str(dump())
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _failure_text(failure: BaseException) -> str:
    return f"{type(failure).__name__}: {failure}"


# --- Large results: the whole text is kept in the archive piece by piece, and the journal holds its beginning and its end ---
#: Characters of a result that is kept by reference, of its beginning, and of its end.
LARGE, HEAD, TAIL = 1 << 20, 24_000, 8_000
_PIECE = 1 << 20  # characters

_SOURCE = opaque_source("result text", "Large results of tools")


def keep_large_result(journal: Journal, key: str, text: str) -> str:
    """Return the text for the journal: a large one is kept as a file and shortened. `key` is unique in the session."""
    if len(text) <= LARGE or getattr(journal, "store", None) is None:
        return text
    name = f"result:{journal.session}/{key}"
    if journal.is_masked:
        where = "the rest is not kept"
    else:
        _write_file(journal, name, text)
        where = f"the whole is in the archive as {name}"
    return f"{text[:HEAD]}\n[… {len(text) - HEAD - TAIL:,} of {len(text):,} characters are left out; {where} …]\n{text[-TAIL:]}"


def read_large_result(store: Store, name: str) -> Iterator[str]:
    """Yield the pieces of a large result, by the name that its shortened text gives."""
    found = store.file("", name)
    decoder, start = codecs.getincrementaldecoder("utf-8")("surrogatepass"), 0
    while found is not None and start < found[1].size:
        data = store.read_raw(found[1].id, start, min(_PIECE, found[1].size - start))
        start += len(data)
        yield decoder.decode(data, start >= found[1].size)


def _write_file(journal: Journal, name: str, text: str) -> None:
    store = journal.store
    with journal.alone, store.write():
        if (known := store.file("", name)) is not None:  # of an attempt that was killed
            store.delete_file(known[0].id)
        candidate = FileCandidate(_SOURCE, SourceCandidate(Path(name)), None, None, None)
        writer = ArchiveWriter(store, "", "", journal.clock())
        start = ReaderStart(candidate, "full", Version(number=1), "first")
        for at in range(0, len(text), _PIECE):
            data = text[at : at + _PIECE].encode("utf-8", "surrogatepass")
            before = start.version.size
            end = before + len(data)
            changes: dict[str, int | bytes] = {"offset": end, "size": end, "file_size": end, "parsed": end, "parser": 0}
            write_piece(
                writer, FilePiece(start, data, before, empty_result(), before, changes, at + _PIECE >= len(text))
            )
        value = msgspec.json.encode(FrameworkData(FILE, name)).decode()
        store.keep(KeptRow(FRAMEWORK, AGENT, journal.session, f"{FILE}/{name}", value, journal.clock()))
