"""A transcript → its conversations: which client drew a segment, and which segments belong to one session.

Nobody needs to say what was recorded: the screens show it. A recording may hold several sessions (`/new`, another one
opened from a list, several programs one after the other) and one session may come in several segments, because a menu or
a jump lay between them. What a shell printed before and after stays with the session it led to. Never raises.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from everturn.sources.terminal import boxes, codex_screen, early_boxes, gemini_screen, panels, prompts
from everturn.sources.terminal.rows import TranscriptRow, place_saying, rows_of, trim_rows
from everturn.sources.terminal.talks import TalkBuilder, finish_talk
from everturn.sources.terminal.transcript import DrawnSaying, ScreenTalk, TerminalTranscript, TranscriptSegment

_LOGO = re.compile(r"[█▀▄░]{2,}[█▀▄░ ]*[█▀▄░]{2,}")
_BEFORE, _ROWS_OF_LOGO = 12, 3
_FULL_SCREEN = ("boxes", "early_boxes", "panels", "codex")
_MAIN_SCREEN = ("prompts", "gemini")

SegmentSayings = tuple[list[DrawnSaying], TranscriptSegment]  # what was said, and the frame around it


def read_screens(transcript: TerminalTranscript) -> list[ScreenTalk]:
    """The conversations of a recording, in the order in which they began."""
    pieces = _read_segments(transcript)
    if not any(piece.dialect in _READERS for piece in pieces):
        return _plain_talks(pieces, transcript)
    return finish_talk(_build_talks(pieces, transcript), transcript)


class _DrawnSegment:
    """A segment, its rows and who drew it."""

    def __init__(self, segment: TranscriptSegment, rows: list[TranscriptRow], before: _DrawnSegment | None) -> None:
        self.segment = segment
        self.rows = rows
        self.dialect = _dialect(rows, segment, before)


def _read_segments(transcript: TerminalTranscript) -> list[_DrawnSegment]:
    pieces: list[_DrawnSegment] = []
    base = 0
    for segment in transcript.segments:
        pieces.append(_DrawnSegment(segment, rows_of(segment, base), pieces[-1] if pieces else None))
        base += len(segment.lines)
    return pieces


def _dialect(rows: Sequence[TranscriptRow], segment: TranscriptSegment, before: _DrawnSegment | None) -> str:
    if segment.program:
        return segment.program
    if segment.alternate and _is_home(rows):
        return "home"
    scores = {
        "boxes": boxes.looks_boxed(rows),
        "panels": panels.looks_panelled(rows),
        "prompts": prompts.looks_prompted(rows),
        "codex": codex_screen.looks_like_codex(rows),
        "gemini": gemini_screen.looks_like_gemini(rows),
    }
    best = max(scores, key=lambda name: scores[name])
    if scores[best]:
        return best
    # A screen of nothing but answer, in the middle of a full-screen session.
    goes_on = before is not None and segment.alternate and before.segment.alternate
    return before.dialect if goes_on and before is not None and before.dialect in _FULL_SCREEN else "plain"


def _is_home(rows: Sequence[TranscriptRow]) -> bool:
    """The first view of a client, with its name in big letters and no conversation."""
    logo = sum(_LOGO.search(row.text) is not None for row in rows)
    return logo >= _ROWS_OF_LOGO and not any("▣ " in row.text for row in rows)


def _build_talks(pieces: Sequence[_DrawnSegment], transcript: TerminalTranscript) -> list[TalkBuilder]:
    builder = _Builder(pieces, transcript.columns)
    for piece in pieces:
        builder.add(piece)
    return builder.close()


class _Builder:
    def __init__(self, pieces: Sequence[_DrawnSegment], columns: int) -> None:
        of = {name: [row for piece in pieces if piece.dialect == name for row in piece.rows] for name in _READERS}
        self.columns = columns
        self.boxes = boxes.palette_of(of["boxes"])
        self.panels = panels.palette_of(of["panels"])
        self.talks: list[TalkBuilder] = []
        self.outside: list[DrawnSaying] = []  # not yet given to a talk
        self.fresh = False  # a home screen was seen since the last item
        self.gone: list[_DrawnSegment] = []

    def add(self, piece: _DrawnSegment) -> None:
        """Take in the next segment."""
        if piece.segment.gone:
            self.gone.append(piece)
        elif piece.dialect == "home":
            self.fresh = True
        elif piece.dialect == "plain":
            self._plain(piece)
        else:
            self._conversation(piece)

    def close(self) -> list[TalkBuilder]:
        """All talks; what was printed last goes to the last one."""
        if self.talks:
            self.talks[-1].said += self.outside
            self._recover()
        return self.talks

    def _recover(self) -> None:
        """Give the items of lines that vanished to the talk of their time."""
        found: dict[int, list[DrawnSaying]] = {}
        for piece in self.gone:
            for said, _ in _READERS[piece.dialect](self, piece) if piece.dialect in _READERS else ():
                for item in said:
                    began = (n for n in range(len(self.talks) - 1, 0, -1) if self.talks[n].begins() <= item.bytes[0])
                    found.setdefault(next(began, 0), []).append(item)
        for number, items in found.items():
            self.talks[number].recover(items)

    def _plain(self, piece: _DrawnSegment) -> None:
        text = "\n".join(trim_rows([row.text for row in piece.rows]))
        if not text:
            return
        used = [row for row in piece.rows if row.text.strip()]
        item = place_saying(used, role="system", kind="output", text=text)
        # What a client prints when it ends belongs to the talk that ended.
        if self.talks and self.talks[-1].take_name(text):
            self.talks[-1].said.append(item)
        else:
            self.outside.append(item)
        if not piece.segment.alternate:
            self.fresh = True

    def _conversation(self, piece: _DrawnSegment) -> None:
        if piece.segment.program and not piece.segment.follows:
            self.fresh = True
        for said, segment in _READERS[piece.dialect](self, piece):
            talk = self._talk_for(piece.dialect, said, segment)
            if self.outside:
                talk.said += self.outside
                self.outside = []
            talk.take(said, segment, self.fresh)
            self.fresh = piece.dialect in _MAIN_SCREEN or (self.fresh and not said)

    def _talk_for(self, dialect: str, said: list[DrawnSaying], segment: TranscriptSegment) -> TalkBuilder:
        separate = self.fresh and dialect in _MAIN_SCREEN  # what is there comes once
        known = [] if separate else [talk for talk in self.talks if talk.dialect == dialect]
        talk = next((talk for talk in reversed(known) if talk.continues(said, segment, self.fresh)), None)
        if talk is None:
            talk = TalkBuilder(dialect, segment.cut_top)
            self.talks.append(talk)
        return talk

    def read_boxes(self, piece: _DrawnSegment) -> list[SegmentSayings]:
        """A segment of boxes, and with it what the client's frame says."""
        if piece.segment.program:
            return [(boxes.read_boxes(piece.rows, piece.segment, self.boxes), piece.segment)]
        rows, title, footer = boxes.without_frame(piece.rows)
        segment = _add_frame(piece.segment, title, footer)
        return [(boxes.read_boxes(rows, segment, self.boxes), segment)]

    def read_early_boxes(self, piece: _DrawnSegment) -> list[SegmentSayings]:
        """A segment of OpenCode 0.1."""
        return [(early_boxes.read_early_boxes(piece.rows, piece.segment), piece.segment)]

    def read_panels(self, piece: _DrawnSegment) -> list[SegmentSayings]:
        """A segment of panels, and with it what stands below and beside it."""
        if piece.segment.program:
            return [(panels.read_panels(piece.rows, piece.segment, self.panels, self.columns), piece.segment)]
        rows, beside = panels.without_sidebar(piece.rows, self.columns)
        rows, footer = panels.without_composer(rows)
        segment = _add_frame(piece.segment, "\n".join(filter(None, beside)), footer)
        return [(panels.read_panels(rows, segment, self.panels, self.columns), segment)]

    def read_prompts(self, piece: _DrawnSegment) -> list[SegmentSayings]:
        """A segment of the main screen; each start of the client is a conversation of its own."""
        greeting = "\n".join(row.text for row in piece.rows[:_BEFORE])
        segment = _add_frame(piece.segment, greeting, "")
        return [(said, segment) for said in prompts.read_prompts(piece.rows, self.columns)]

    def read_codex(self, piece: _DrawnSegment) -> list[SegmentSayings]:
        """A segment of Codex."""
        return [(said, piece.segment) for said in codex_screen.read_codex(piece.rows, self.columns)]

    def read_gemini(self, piece: _DrawnSegment) -> list[SegmentSayings]:
        """A segment of Gemini CLI; each start of the client is a conversation of its own."""
        return [(said, piece.segment) for said in gemini_screen.read_gemini(piece.rows, self.columns)]


def _add_frame(segment: TranscriptSegment, title: str, footer: str) -> TranscriptSegment:
    """The segment, with parts of the frame that were found among its rows."""
    return replace(
        segment, title=f"{segment.title}\n{title}".strip("\n"), footer=f"{segment.footer}\n{footer}".strip("\n")
    )


_READERS = {
    "boxes": _Builder.read_boxes,
    "early_boxes": _Builder.read_early_boxes,
    "panels": _Builder.read_panels,
    "prompts": _Builder.read_prompts,
    "codex": _Builder.read_codex,
    "gemini": _Builder.read_gemini,
}


def _plain_talks(pieces: Sequence[_DrawnSegment], transcript: TerminalTranscript) -> list[ScreenTalk]:
    """Nothing we know: the text of each segment, as it is."""
    talk = TalkBuilder("plain", False)
    for piece in pieces:
        if used := [row for row in piece.rows if row.text.strip()]:
            text = "\n".join(trim_rows([row.text for row in piece.rows]))
            talk.said.append(place_saying(used, role="system", kind="unknown", text=text))
    return finish_talk([talk], transcript) if talk.said else []
