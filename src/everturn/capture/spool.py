"""Takes into the archive what `everturn-hook` has noted: one row for each event of each call, each exactly once.

The spool is renamed before it is read, and deleted when everything in it is committed. A hook that writes meanwhile sees
that its file was taken and writes again; a drain that is killed leaves the renamed file for the next one; both can bring a
line twice, and the second time changes nothing. A line that cannot be used is a problem: it is told, and kept in a file
beside the spool.

Rows hold no content. What the policy turns off, or the user has forgotten, is not taken in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
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
    """What a drain did. `paths` are transcripts that were named, each once; `problems` are (where, why).

    `folders` are the folders that sessions, by their native id, said they work in: not every transcript has that.
    `nameless` are lines of agents that name no transcript: they keep their sessions elsewhere.
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
    """Calls that hooks have heard of: how many were found in the archive now, how many only the hook has seen."""

    found: int = 0
    left: int = 0


def drain_spool(store: Store, folder: Path, policy: Policy | None = None) -> DrainReport:
    """Take in everything the spool in `folder` holds, and what an earlier drain has left."""
    done = DrainReport()
    _claim_spool(folder)
    buried = frozenset(row.key for row in store.tombstones() if row.kind == "session")
    for path in sorted(folder.glob(f"{_TAKEN}*")):
        _SpoolDrain(store, policy or Policy(), buried, done).take(path)
    done.paths = list(dict.fromkeys(done.paths))
    return done


def enrich_calls(store: Store, since: int = 0) -> EnrichReport:
    """Match calls that hooks have heard of since then with those of transcripts, which know the turn they belong to."""
    before = store.hooked_alone(since)
    if not before:
        return EnrichReport()
    with store.write():
        store.find_hooked(before)
    left = sum(store.hooked_alone(since).values())
    return EnrichReport(sum(before.values()) - left, left)


def batches(store: Store, session: str) -> list[list[str]]:
    """The parallel calls of a session as its agent has told them: call ids in their order, batches by time."""
    found: dict[str, list[str]] = {}
    for row in store.hooked(session):
        if row.phase == "batch":
            found.setdefault(row.batch, []).append(row.call_id)
    return list(found.values())


def _claim_spool(folder: Path) -> None:
    """Give the spool a name that no other drain uses, so that hooks begin a new one."""
    try:
        os.rename(folder / SPOOL, folder / f"{_TAKEN}{os.urandom(8).hex()}.jsonl")
    except OSError:  # there is none; or it cannot be moved now, and the next drain tries again
        pass


@dataclass
class _SpoolDrain:
    """One file on its way into the archive."""

    store: Store
    policy: Policy
    buried: frozenset[str]
    done: DrainReport
    broken: list[bytes] = field(default_factory=list)

    def take(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                lines = _lines(file)
                while group := list(islice(lines, GROUP)):
                    rows = [row for number, line in group for row in self._rows(f"{path}:{number}", line)]
                    with self.store.write():
                        self.done.rows += self.store.add_hooked(rows)
            if self.broken:
                path.with_name(path.name.replace(_TAKEN, _BROKEN, 1)).write_bytes(b"\n".join(self.broken) + b"\n")
            path.unlink(missing_ok=True)
        except FileNotFoundError:  # another drain was faster
            pass
        except OSError as failure:
            self.done.problems.append((str(path), failure.strerror or "cannot be read"))

    def _rows(self, where: str, line: bytes) -> list[HookEvent]:
        self.done.lines += 1
        try:
            heard = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._problem(where, line, "not a line of the hook")
        if heard.broken or not heard.session:
            self._problem(where, line, "the event could not be read" if heard.broken else "the event names no session")
        if not heard.session or self._is_unwanted(heard):
            return []
        self.done.folders |= {heard.session: heard.cwd} if heard.cwd else {}
        self.done.nameless += not heard.transcript_path
        self.done.paths += [path for path in (heard.transcript_path, heard.agent_transcript_path) if path]
        return _hook_events(heard)

    def _problem(self, where: str, line: bytes, why: str) -> list[HookEvent]:
        self.done.problems.append((where, why))
        self.broken.append(line)
        return []

    def _is_unwanted(self, heard: _SpoolRecord) -> bool:
        forgotten = heard.session in self.buried
        # A session may have gone to another folder since; its file still lies where it began.
        off = "off" in {self.policy.mode_for(place, heard.transcript_path) for place in {heard.cwd, ""}}
        self.done.forgotten += forgotten
        self.done.off += off and not forgotten
        return forgotten or off


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 1
    while line := file.readline(_LONGEST):
        if line.strip():
            yield number, line.strip()
        number += line.endswith(b"\n")


# lines ----------------------------------------------------------------------------------------------------------------
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
        """The native id of the session."""
        return self.session_id or self.thread_id


_decode = msgspec.json.Decoder(_SpoolRecord).decode


def _hook_events(heard: _SpoolRecord) -> list[HookEvent]:
    """What happened follows from what was said, not from the event's name: agents name theirs differently."""
    mark = f"@{heard.at}-{heard.pid}"
    if heard.tool_calls:
        n = len(heard.tool_calls)
        places = [{"batch": mark, "batch_index": i, "batch_size": n} for i in range(n)]
        return [
            _hook_event(heard, call, f"{mark}.{i}", "batch", **places[i]) for i, call in enumerate(heard.tool_calls)
        ]
    return [_hook_event(heard, heard, mark, _call_phase(heard), duration_ms=_whole_number(heard.duration_ms))]


def _hook_event(heard: _SpoolRecord, call: _SpoolCall, mark: str, phase: str, **more: Any) -> HookEvent:
    return HookEvent(
        heard.session,
        call.tool_use_id or mark,
        heard.hook_event_name or heard.type,
        phase,
        call.tool_use_id,
        call.tool_name,
        heard.agent_id,
        heard.at // 1_000_000,
        error_class="" if phase != "failed" else "interrupted" if heard.is_interrupt else "other",
        input_size=call.tool_input_size,
        output_size=call.tool_response_size,
        **more,
    )


def _call_phase(heard: _SpoolRecord) -> str:
    if not (heard.tool_use_id or heard.tool_name):
        return "session"
    if heard.error_size is not None:
        return "failed"
    return "begun" if heard.tool_response_size is None else "ended"


def _whole_number(number: float | None) -> int | None:
    return round(number) if number is not None and 0 <= number < 1 << 53 else None
