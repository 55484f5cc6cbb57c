"""Takes the events of `everturn-hook` from the spool into the archive: one row for each event of each call, exactly once.

The spool is renamed before it is read, and deleted when everything in it is committed. A hook that writes meanwhile
notices the rename and writes again. A drain that is killed leaves the renamed file for the next one. Both can repeat a
line, and a repeated line changes nothing. An unusable line is reported and saved in a file beside the spool.

Rows have no content. Sessions that the policy turns off or the user has forgotten are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec

from everturn.capture.policy import Policy
from everturn.hook import SPOOL
from everturn.model.archive import HookEvent
from everturn.store.contract import Store

#: Lines in one transaction.
GROUP = 1000
_LONGEST = 1 << 20  # bytes of a line; the hook writes far shorter ones
_TAKEN, _BROKEN = "taken-", "broken-"
_Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


@dataclass
class DrainReport:
    """The result of a drain. `paths` are named transcripts, each once; `problems` are (line, reason).

    `folders` maps native ids to working folders, which not every transcript has. `nameless` counts lines without a
    transcript path, of agents that store sessions elsewhere.
    """

    lines: int = 0
    rows: int = 0
    off: int = 0
    forgotten: int = 0
    nameless: int = 0
    paths: list[str] = field(default_factory=list)
    folders: dict[str, str] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class EnrichReport:
    """Calls reported by hooks: how many were matched now, and how many only the hook has seen."""

    found: int = 0
    left: int = 0


def drain_spool(store: Store, folder: Path, policy: Policy | None = None) -> DrainReport:
    """Take in the spool in `folder`, and what an interrupted drain has left."""
    report = DrainReport()
    _claim_spool(folder)
    buried = frozenset(row.key for row in store.tombstones() if row.kind == "session")
    for path in sorted(folder.glob(f"{_TAKEN}*")):
        _SpoolDrain(store, policy or Policy(), buried, report).take(path)
    report.paths = list(dict.fromkeys(report.paths))
    return report


def enrich_calls(store: Store, since: int = 0) -> EnrichReport:
    """Match calls that hooks reported since then with calls of transcripts, which have turns."""
    if not (before := store.unmatched_hook_calls(since)):
        return EnrichReport()
    with store.write():
        store.match_hook_events(before)
    left = sum(store.unmatched_hook_calls(since).values())
    return EnrichReport(sum(before.values()) - left, left)


def _claim_spool(folder: Path) -> None:
    """Rename the spool uniquely, so that hooks begin a new one."""
    with suppress(OSError):  # there is none, or it cannot be renamed now and the next drain tries again
        os.rename(folder / SPOOL, folder / f"{_TAKEN}{os.urandom(8).hex()}.jsonl")


@dataclass
class _SpoolDrain:
    """The drain of one renamed spool file."""

    store: Store
    policy: Policy
    buried: frozenset[str]
    report: DrainReport
    broken: list[bytes] = field(default_factory=list)

    def take(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                lines = _lines(file)
                while group := list(islice(lines, GROUP)):
                    rows = [row for number, line in group for row in self._rows(f"{path}:{number}", line)]
                    with self.store.write():
                        self.report.rows += self.store.add_hook_events(rows)
            if self.broken:
                path.with_name(path.name.replace(_TAKEN, _BROKEN, 1)).write_bytes(b"\n".join(self.broken) + b"\n")
            path.unlink(missing_ok=True)
        except FileNotFoundError:  # another drain was faster
            pass
        except OSError as failure:
            self.report.problems.append((str(path), failure.strerror or "cannot be read"))

    def _rows(self, where: str, line: bytes) -> list[HookEvent]:
        self.report.lines += 1
        try:
            record = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._problem(where, line, "not a line of the hook")
        if record.broken or not record.session:
            self._problem(where, line, "the event could not be read" if record.broken else "the event names no session")
        if not record.session or self._is_unwanted(record):
            return []
        self.report.folders |= {record.session: record.cwd} if record.cwd else {}
        self.report.nameless += not record.transcript_path
        self.report.paths += [path for path in (record.transcript_path, record.agent_transcript_path) if path]
        return _hook_events(record)

    def _problem(self, where: str, line: bytes, why: str) -> list[HookEvent]:
        self.report.problems.append((where, why))
        self.broken.append(line)
        return []

    def _is_unwanted(self, record: _SpoolRecord) -> bool:
        forgotten = record.session in self.buried
        # A session may have moved to another folder; its file stays where it began.
        modes = (
            self.policy.decide(record.cwd, record.transcript_path).mode,
            self.policy.mode_for("", record.transcript_path),
        )
        off = "off" in modes
        self.report.forgotten += forgotten
        self.report.off += off and not forgotten
        return forgotten or off


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 1
    while line := file.readline(_LONGEST):
        if line.strip():
            yield number, line.strip()
        number += line.endswith(b"\n")


# --- lines of the spool ---
class _SpoolCall(msgspec.Struct):
    tool_name: str = ""
    tool_use_id: str = ""
    tool_input_size: _Number | None = None
    tool_response_size: _Number | None = None


class _SpoolRecord(_SpoolCall, kw_only=True):
    """A line of the spool, as `everturn.hook` writes it."""

    at: _Number  # nanoseconds
    pid: _Number
    session_id: str = ""
    thread_id: str = msgspec.field(default="", name="thread-id")
    hook_event_name: str = ""
    type: str = ""
    tool_calls: list[_SpoolCall] = []
    error_size: _Number | None = None
    duration_ms: float | None = None
    is_interrupt: bool = False
    agent_id: str = ""
    transcript_path: str = ""
    agent_transcript_path: str = ""
    cwd: str = ""
    broken: bool = False

    @property
    def session(self) -> str:
        return self.session_id or self.thread_id


_decode = msgspec.json.Decoder(_SpoolRecord).decode


def _hook_events(record: _SpoolRecord) -> list[HookEvent]:
    """Return the events of a record, by its fields and not by its event name: agents use different names."""
    mark = f"@{record.at}-{record.pid}"
    if record.tool_calls:
        n = len(record.tool_calls)
        return [
            _hook_event(record, call, f"{mark}.{i}", "batch", batch=mark, batch_index=i, batch_size=n)
            for i, call in enumerate(record.tool_calls)
        ]
    return [_hook_event(record, record, mark, _call_phase(record), duration_ms=_whole_number(record.duration_ms))]


def _hook_event(record: _SpoolRecord, call: _SpoolCall, mark: str, phase: str, **more: Any) -> HookEvent:
    return HookEvent(
        record.session, call.tool_use_id or mark, record.hook_event_name or record.type, phase, call.tool_use_id,
        call.tool_name, record.agent_id, record.at // 1_000_000,
        error_class="" if phase != "failed" else "interrupted" if record.is_interrupt else "other",
        input_size=call.tool_input_size, output_size=call.tool_response_size, **more,
    )  # fmt: skip


def _call_phase(record: _SpoolRecord) -> str:
    if not (record.tool_use_id or record.tool_name):
        return "session"
    if record.error_size is not None:
        return "failed"
    return "begun" if record.tool_response_size is None else "ended"


def _whole_number(number: float | None) -> int | None:
    return round(number) if number is not None and 0 <= number < 1 << 53 else None
