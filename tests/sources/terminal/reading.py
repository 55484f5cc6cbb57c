"""Transcripts for tests: written by hand, or taken from a drawn session as if every row of it had been seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import unified_diff

from everturn.sources.terminal.transcript import (
    DrawnCall,
    DrawnSaying,
    Run,
    ScreenTalk,
    TerminalTranscript,
    TranscriptLine,
    TranscriptSegment,
)
from tests.sources.terminal.drawing import Client, Expected, Row, plain

#: 2025-12-22 14:19:12-06:00, and 25 hours later.
STARTED, ENDED, ZONE = 1_766_434_752_000, 1_766_524_752_000, -360


def line_of(row: Row, number: int = 0) -> TranscriptLine:
    """A drawn row as a line of a transcript."""
    runs: list[Run] = []
    cell = 0
    for text, colour in row:
        if colour is not None:
            runs.append(Run(cell, cell + len(text), colour))
        cell += len(text)
    return TranscriptLine(plain(row).rstrip(), tuple(runs), number * 100, number * 100 + 99)


def segment_of(rows: Iterable[Row], **fields: object) -> TranscriptSegment:
    """Rows that follow each other."""
    return TranscriptSegment(tuple(line_of(row, n) for n, row in enumerate(rows)), **fields)  # type: ignore[arg-type]


def whole(client: Client, **fields: object) -> TerminalTranscript:
    """The conversation a client stands at, as if all of it had been seen."""
    rows = [row for block in client.blocks for row in [*block.visible(), []]]
    title = "\n".join(plain(row).strip() for row in client.header())
    footer = "\n".join(plain(row).strip() for row in client.footer())
    segment = segment_of(rows, title=title, footer=footer, **fields)
    return TerminalTranscript((segment,), client.columns, client.height, STARTED, ENDED, zone=ZONE)


def written(text: str, columns: int = 80, alternate: bool = True, **fields: object) -> TerminalTranscript:
    """A transcript without colours."""
    lines = tuple(TranscriptLine(line.rstrip()) for line in text.split("\n"))
    return TerminalTranscript((TranscriptSegment(lines, alternate, **fields),), columns, 24)  # type: ignore[arg-type]


def spoken(talk: ScreenTalk) -> list[DrawnSaying]:
    """Without what a shell printed."""
    return [item for item in talk.said if item.kind != "output"]


def assert_found(talks: Sequence[ScreenTalk], truth: Sequence[Sequence[Expected]]) -> None:
    """Exactly what was drawn was read."""
    found = [[_shape(item) for item in spoken(talk)] for talk in talks]
    wanted = [
        [(one.role, one.kind, one.text or one.thinking or str(one.call.get("title", ""))) for one in session]
        for session in truth
    ]
    assert found == wanted, _difference(found, wanted)
    for talk, session in zip(talks, truth, strict=True):
        for item, one in zip(spoken(talk), session, strict=True):
            assert_item(item, one)


def assert_item(item: DrawnSaying, one: Expected) -> None:
    """One item, field by field."""
    fields = ("role", "kind", "text", "thinking", "author", "time_text", "mode", "model", "aborted", "duration_ms")
    for name in fields:
        assert getattr(item, name) == getattr(one, name), f"{name} of {item}"
    assert item.starts_turn == (one.role == "user")
    assert item.fidelity == "rendered", f"fidelity of {item}"
    if one.call:
        (call,) = item.calls
        for name, value in one.call.items():
            assert getattr(call, name) == value, f"{name} of {call}"
    else:
        assert not item.calls


def artifacts(talks: Sequence[ScreenTalk]) -> list[tuple[str, str]]:
    """What was done to which files, in order."""
    return [(call.action, call.path) for call in calls(talks) if call.action]


def calls(talks: Sequence[ScreenTalk]) -> list[DrawnCall]:
    """All calls, in order."""
    return [call for talk in talks for item in talk.said for call in item.calls]


def _shape(item: DrawnSaying) -> tuple[str, str, str]:
    title = item.calls[0].title if item.calls else ""
    return item.role, item.kind, item.text or item.thinking or title


def _difference(found: list[list[tuple[str, str, str]]], wanted: list[list[tuple[str, str, str]]]) -> str:
    read, drawn = (
        [" ".join(item) for session in side for item in [*session, ("end of session",)]] for side in (found, wanted)
    )
    return "\n".join(
        ["what was read differs from what was drawn:", *unified_diff(drawn, read, "drawn", "read", lineterm="")]
    )
