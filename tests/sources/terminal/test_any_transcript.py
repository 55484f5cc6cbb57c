"""Any transcript is read: whatever stands on the screens, nothing raises and everything points to lines that exist."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.model import vocabulary
from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.rounds import TurnParser
from everturn.sources.terminal.transcript import Run, TerminalTranscript, TranscriptLine, TranscriptSegment
from tests.sources.terminal.reading import whole
from tests.sources.terminal.screens import Boxes, Panels

PIECES = (
    "┃ ; ┃;┃;  ┃  ;▣  Build · m · 3s;▣ ; · interrupted;● ;⏺ ;❯ ;> ;! ;⎿  ;✻ Baked for 3s;∴ Thinking…;∟ Read a.py;QUEUED;Thinking...;"
    "Generating...;Shell x;$ ls;$ cat <<'E';$ echo 'x;Read a.py;Edit b.py (;Write c.py;Grep x (pattern=a, path=(b);Task[x] y;"
    "→ Read a;← Edit b;# Wrote c;# Todos;# Moved a → b;│ X Task — y;└ z;↳ z;~ Writing;+ Thought: 1s;△ Permission required;"
    "bob (02:36 PM);bob (99:99 PM);Plan glm-4.6 (31 Feb 2020 13:61 AM);(02 Jan 2006 03:04 PM);Request was aborted;\ud800;\0;会话;e\u0301;"
    "Permission required to run this tool:;Error [1:2] x;─────────────────────────;╭──╮;│ > │;╹▀▀▀▀;█▀▀█ █▀▀█;— ;   ;\t;"
    "Bash(ls;Read(a.py);x - y (MCP)(z: \"1\");Update Todos;3 messages reverted;txt  a.py;[sudo] password for x: y;opencode -s ses_1"
).split(";")  # fmt: skip

texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=4).map("".join)
colours = st.none() | st.sampled_from([0x5C9CF5, 0x9D7CD8, 0x141414, 0xE06C75, 0x0A0A0A, 0x808080, -1, 1 << 40])
runs = st.lists(st.builds(Run, st.integers(-2, 9), st.integers(-2, 99), colours), max_size=2).map(tuple)
moments = st.none() | st.integers(-(2**63), 2**63)
lines = st.builds(TranscriptLine, texts, runs, st.integers(0, 99), st.integers(0, 99), moments)
segments = st.builds(
    TranscriptSegment,
    st.lists(lines, max_size=14).map(tuple),
    st.booleans(),
    st.booleans(),
    texts.map(lambda text: f"# {text}"),
    texts,
)
transcripts = st.builds(
    TerminalTranscript, st.lists(segments, max_size=4).map(tuple), st.sampled_from([-1, 0, 1, 7, 80, 121, 140, 219]),
    st.integers(0, 60), moments, moments, st.just(""), st.none(), st.none() | st.integers(-5000, 5000),
)  # fmt: skip


@given(transcripts)
@settings(max_examples=120)
def test_any_transcript_is_read(transcript: TerminalTranscript) -> None:
    assert_sound(transcript)


@pytest.mark.slow
@given(transcripts)
@settings(max_examples=1000)
def test_any_of_many_transcripts_is_read(transcript: TerminalTranscript) -> None:
    assert_sound(transcript)


@given(st.data())
@settings(max_examples=150)
def test_a_drawn_session_with_rows_torn_out_is_read(data: st.DataObject) -> None:
    client = data.draw(st.sampled_from([DRAWN_BOXES, DRAWN_PANELS]))
    segment = client.segments[0]
    keep = data.draw(st.lists(st.sampled_from(range(len(segment.lines))), max_size=len(segment.lines)))
    rows = tuple(segment.lines[n] for n in (keep if data.draw(st.booleans()) else sorted(set(keep))))
    assert_sound(
        TerminalTranscript((TranscriptSegment(rows, True, data.draw(st.booleans())),), client.columns, client.rows)
    )


@given(st.text(max_size=300) | st.lists(texts).map("\n".join))
@settings(max_examples=150)
def test_any_text_has_rounds(text: str) -> None:
    plain = text.replace("\x1b", "")
    parser = TurnParser()
    for found in parser.parse(plain):
        assert found.raw_lines == parser.lines[found.start_line_index : found.end_line_index + 1]
    assert not parser.problems


def assert_sound(transcript: TerminalTranscript) -> None:
    """Only words of the archive, only lines that are there."""
    n_lines = sum(len(segment.lines) for segment in transcript.segments)
    for talk in read_screens(transcript):
        for item in talk.said:
            assert item.role in vocabulary.ROLES
            assert item.kind in vocabulary.MESSAGE_KINDS
            assert item.fidelity in vocabulary.FIDELITIES
            assert item.precision in vocabulary.PRECISIONS
            assert 0 <= item.lines[0] <= item.lines[1] < n_lines
            assert item.starts_turn <= (item.role == "user")
            for call in item.calls:
                assert call.kind in vocabulary.CALL_KINDS
                assert call.status in vocabulary.CALL_STATUSES
                assert call.error_class in vocabulary.ERROR_CLASSES
                assert call.action in ("", *vocabulary.ACTIONS)
                assert 0 <= call.lines[0] <= call.lines[1] < n_lines


def _drawn_boxes() -> TerminalTranscript:
    client = Boxes(80, 24)
    client.ask("please fix\n\nthe parser")
    client.think("Hm.")
    client.answer("I will. " * 30)
    client.call("Shell Run", ["$ ls", "a.py"])
    client.call("Task[general] look", ["∟ Read a.py"])
    client.queue("and more")
    client.abort()
    return whole(client)


def _drawn_panels() -> TerminalTranscript:
    client = Panels(80, 24)
    client.ask("please fix\n\nthe parser")
    client.think("Hm.")
    client.block(["$ ls", "", "a.py"])
    client.inline("→ Read a.py")
    client.answer("I did. " * 30)
    client.end()
    client.queue("and more")
    return whole(client)


DRAWN_BOXES, DRAWN_PANELS = _drawn_boxes(), _drawn_panels()
