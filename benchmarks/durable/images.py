"""What a disk may hold after the power failed: everything synced, and of the rest any part, in any order.

Between two syncs of a file the system may write its pages when it likes. So at each moment a file is what it was at its
last sync, plus some of the writes since: none, all, every other, a random choice, or all with the last one torn.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.durable.shim import Op

SECTOR = 512


@dataclass
class _File:
    synced: bytearray = field(default_factory=bytearray)
    since: list[Op] = field(default_factory=list)


@dataclass(frozen=True)
class Image:
    moment: int
    choice: str
    acked: bytes  # the lines that had been acknowledged by then
    files: dict[str, bytes]

    def put(self, folder: Path) -> None:
        """Write it out, with what had been acknowledged."""
        (folder / "acks").write_bytes(self.acked)
        for path, data in self.files.items():
            (folder / Path(path).name).write_bytes(data)


def images(ops: Sequence[Op], before: dict[str, bytes], moments: Sequence[int], seed: int = 1) -> Iterator[Image]:
    """For each moment (a number of ops) several images; `before` are the files as they were."""
    dice = random.Random(seed)
    files = {path: _File(bytearray(data)) for path, data in before.items()}
    wanted, acked = set(moments), b""
    for number, op in enumerate(ops, 1):
        if op.kind == "acked":
            acked += op.data
        else:
            _apply(files.setdefault(op.file, _File()), op)
        if number in wanted:
            for choice in ("none", "all", "torn", "some", "some"):
                chosen = {path: _left(file, choice, dice) for path, file in files.items()}
                yield Image(number, choice, acked, chosen)


def _apply(file: _File, op: Op) -> None:
    if op.kind == "sync":
        for earlier in file.since:
            _write(file.synced, earlier)
        file.since.clear()
    else:
        file.since.append(op)


def _left(file: _File, choice: str, dice: random.Random) -> bytes:
    data, since = bytearray(file.synced), file.since
    if choice == "some":
        since = [op for op in since if dice.random() < 0.5]
        dice.shuffle(since)
    elif choice == "none":
        since = []
    for op in since[:-1] if choice == "torn" else since:
        _write(data, op)
    if choice == "torn" and since:
        last = since[-1]
        _write(data, Op(last.kind, last.file, last.at, last.data[: len(last.data) // 2 // SECTOR * SECTOR]))
    return bytes(data)


def _write(data: bytearray, op: Op) -> None:
    if op.kind == "cut":
        del data[op.at :]
        return
    if len(data) < op.at:
        data.extend(bytes(op.at - len(data)))
    data[op.at : op.at + len(op.data)] = op.data
