"""Helpers of this source's tests: read a file in any pieces, combine the results, and show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from everturn.model.conversation import Link, Message, Problem, ReadResult, SessionFacts
from everturn.sources.claude_code import SOURCE
from everturn.sources.contract import SourceCandidate

SAMPLES = Path(__file__).parent / "samples"
CORPUS = Path(__file__).parents[4] / "shared" / "corpus"


def samples() -> list[Path]:
    """Every sample transcript."""
    return sorted(SAMPLES.glob("*.jsonl"))


def corpus() -> list[Path]:
    """Every real transcript at hand."""
    folders = (CORPUS / "claude-code", CORPUS / "claude-code-fixture")
    return sorted(path for folder in folders for path in folder.rglob("*.jsonl"))


def found_for(path: Path, data: bytes) -> SourceCandidate:
    """Return the candidate for a file, even if its head is damaged."""
    return SOURCE.sniff(path, data[:65536]) or SourceCandidate(path, "main", path.stem)


class Whole(msgspec.Struct):
    """Several reads of one file combined the way an archive does."""

    facts: dict[str, dict[str, Any]] = {}
    messages: dict[str, list[Message]] = {}
    links: dict[str, list[Link]] = {}
    problems: list[Problem] = []
    tail: list[Problem] = []
    census: Counter[tuple[str, str, str]] = msgspec.field(default_factory=Counter)
    lines: int = 0
    glued: int = 0
    consumed: int = 0

    def add(self, reading: ReadResult) -> None:
        """Add the next read."""
        for part in reading.parts:
            self.facts.setdefault(part.native_id, {}).update(_said(part.facts))
            self.messages.setdefault(part.native_id, []).extend(part.messages)
            self.links.setdefault(part.native_id, []).extend(part.links)
        self.problems += [problem for problem in reading.problems if not problem.provisional]
        self.tail = [problem for problem in reading.problems if problem.provisional]
        self.census.update({(row.type, row.client, row.disposition): row.n for row in reading.census})
        self.lines += reading.lines
        self.glued += reading.glued
        self.consumed += reading.consumed


def read(found: SourceCandidate, data: bytes, cuts: Iterable[int] = (), stops: Sequence[bool] = ()) -> Whole:
    """Read a file in pieces that end at `cuts`; where `stops` says so, by a new reader after an end of file."""
    whole, state = Whole(), b""
    reader = SOURCE.reader(found, state)
    ends = sorted({*cuts, len(data)})
    for number, end in enumerate(ends):
        last = end == len(data) or (number < len(stops) and stops[number])
        whole.add(reader.feed(data[whole.consumed : end], whole.consumed, last))
        if last:
            reader = SOURCE.reader(found, reader.state())
    return whole


def shown(whole: Whole) -> dict[str, Any]:
    """Return a read as plain data to compare, without empty fields and without the original blocks."""
    return {
        "sessions": [
            {
                "native_id": native_id,
                "facts": whole.facts[native_id],
                "links": [_pruned(msgspec.to_builtins(link)) for link in whole.links[native_id]],
                "messages": [_message(message) for message in whole.messages[native_id]],
            }
            for native_id in whole.messages
        ],
        "problems": [_pruned(msgspec.to_builtins(problem)) for problem in whole.problems + whole.tail],
        "census": [[*key, n] for key, n in sorted(whole.census.items())],
        "lines": whole.lines,
        "glued": whole.glued,
        "consumed": whole.consumed,
    }


def _message(message: Message) -> Any:
    plain = msgspec.to_builtins(message)
    for block in plain["blocks"]:
        block.pop("data", None)
        (block["call"] or {}).pop("input", None)
    return _pruned(plain)


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item not in (None, "", False, [], ())}
    return [_pruned(item) for item in value] if isinstance(value, (list, tuple)) else value


def _said(facts: SessionFacts) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(facts).items() if value}
