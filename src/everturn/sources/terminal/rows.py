"""Rows of a screen and the little that every reader of screens asks of them: colours, widths, text put back together.

Passwords typed at a prompt are taken out here, before any reader sees them.

Clock times drawn on a screen → moments.

A screen shows `02:36 PM`, and the date only of other days; the recording's own start tells the day and, where its header
has it, the zone. Where the zone is not said it is worked out from times that must lie within the recording; where several
fit, no moment is given: the words on the screen stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.sources.terminal.transcript import (
    Colour,
    DrawnSaying,
    TerminalTranscript,
    TranscriptLine,
    TranscriptSegment,
)

#: A prompt for a secret; whatever follows it in the same row was typed and is nobody's business. Programs that draw the
#: whole screen echo what a child's prompt asked for into their own input field.
_SECRET = re.compile(
    r"(\[sudo\][^:\n]{0,80}:"
    r"|\bEnter pass(?:word|phrase)\b[^:\n]{0,120}:"
    r"|\S+@\S+'s password:"
    r"|^(?:Password|Passphrase|PIN)(?: for [^:\n]{1,80})?:)(?=.*\S).*$"
)
#: Beginnings of lines that nobody would have joined to the one before.
_OWN_LINE = re.compile(r"\s|[-*+•>|#]\s|#{2,6}\s|\d{1,3}[.)]\s|```|~~~|\$ ")


class TranscriptRow(Struct, frozen=True):
    """A line of the clean transcript and its number there."""

    index: int
    text: str
    line: TranscriptLine


def rows_of(segment: TranscriptSegment, base: int) -> list[TranscriptRow]:
    """The rows of a segment whose first line has number `base`."""
    return [TranscriptRow(base + n, without_secret(line.text), line) for n, line in enumerate(segment.lines)]


def without_secret(text: str) -> str:
    """The row without what was typed at a password prompt."""
    return _SECRET.sub(r"\1", text) if ":" in text else text


def colour_at(row: TranscriptRow, cell: int) -> Colour:
    """The colour of the character in a cell."""
    return next((run.colour for run in row.line.runs if run.start <= cell < run.end), None)


def indent(text: str) -> int:
    """How many blanks it begins with."""
    return len(text) - len(text.lstrip(" "))


def width(text: str) -> int:
    """How many cells it fills."""
    return len(text) if text.isascii() else _width(text)


@lru_cache(8192)  # rows come again frame by frame
def _width(text: str) -> int:
    return sum(map(_cells, text))


def cut(text: str, cells: int) -> tuple[str, str]:
    """Return the text in the first `cells` cells, and the rest."""
    if text.isascii() or len(text) <= cells // 2:
        return text[:cells], text[cells:]
    filled = 0
    for at, char in enumerate(text):
        filled += _cells(char)
        if filled > cells:
            return text[:at], text[at:]
    return text, ""


def _cells(char: str) -> int:
    if char < "\u0300":
        return 1
    if unicodedata.combining(char) or char in "\u200b\u200d\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def trim_rows(lines: Sequence[str]) -> list[str]:
    """Without empty lines at either end, and without blanks at the ends of lines."""
    kept = [line.rstrip() for line in lines]
    first = next((n for n, line in enumerate(kept) if line), len(kept))
    last = next((n for n in range(len(kept), first, -1) if kept[n - 1]), first)
    return kept[first:last]


def dedent_rows(lines: Sequence[str], most: int) -> list[str]:
    """Without the blanks that all lines begin with, `most` of them at most."""
    common = min((indent(line) for line in lines if line.strip()), default=0)
    return [line[min(common, most) :] for line in lines]


def rejoin_rows(lines: Sequence[str], room: int, glue: str = "") -> str:
    """Word-wrapped text with its lines put together again, where it is sure that the client broke them.

    A line was broken by the client when the next word would not have fitted into `room` cells. After one of the `glue`
    characters it cannot be told whether a blank stood there, so the break stays.
    """
    text = ""
    before = ""
    for n, line in enumerate(lines):
        word = line.split(" ", 1)[0]
        wrapped = n and before and word and width(before) <= room < width(before) + 1 + width(word)
        if wrapped and not _OWN_LINE.match(line) and before[-1] not in glue and " " in before.strip():
            text += f" {line}"
        else:
            text += f"\n{line}" if n else line
        before = line
    return text


def is_red(colour: Colour) -> bool:
    """A colour clients draw failures in."""
    if colour is None:
        return False
    red, green, blue = colour >> 16 & 255, colour >> 8 & 255, colour & 255
    return red >= 160 and red - green > 60 and red - blue > 40


def place_saying(rows: Sequence[TranscriptRow], **fields: Any) -> DrawnSaying:
    """An item with its place: the lines it stands in and the part of the recording in which they were drawn.

    An item is partial where something hid the end of a line as long as it was on the screen.
    """
    first, last = min(row.line.first for row in rows), max(row.line.last for row in rows)
    if any(row.line.covered for row in rows):
        fields["fidelity"] = "partial"
    return DrawnSaying(**fields, lines=(rows[0].index, rows[-1].index), bytes=(first, last))


def item_lines(rows: Sequence[TranscriptRow], margin: int) -> list[str]:
    """The lines of an item without its mark and the indent of the lines below."""
    rest = [row.text[margin:] if not row.text[:margin].strip() else row.text for row in rows[1:]]
    return trim_rows([*(row.text[margin:] for row in rows[:1]), *rest])


_COMMAND = re.compile(r"/[a-z][\w:-]*(?:\s|$)")


class ItemReader:
    """Reads a conversation row by row; the reader of a client has a method `_read_…` for every kind of item."""

    worked: re.Pattern[str]  # a line that says how long a turn took
    fresh: re.Pattern[str]  # a command after which another conversation begins

    def __init__(self, columns: int, what: str = "outside") -> None:
        self.columns = columns
        self.said: list[DrawnSaying] = []
        self.starts: list[int] = []  # how many items came before each start of the client
        self.rows: list[TranscriptRow] = []  # of the item being read
        self.what = what  # the kind of that item
        self.room = 0  # blank rows below it

    def flush(self) -> None:
        """Finish the item being read."""
        rows, self.rows = self.rows, []
        used = max((n for n, row in enumerate(rows, 1) if row.text.strip()), default=0)
        if used:
            self.room = len(rows) - used
            getattr(self, f"_read_{self.what}")(rows[:used])

    def _add(self, rows: Sequence[TranscriptRow], **fields: Any) -> None:
        self.said.append(place_saying(rows, **fields))

    def _read_outside(self, rows: list[TranscriptRow]) -> None:
        self._add(rows, role="system", kind="output", text="\n".join(trim_rows([row.text for row in rows])))

    def _add_prompt(self, rows: list[TranscriptRow], text: str) -> None:
        if self.fresh.match(text):
            self.starts.append(len(self.said))
        self._add(rows, role="user", kind="command" if _COMMAND.match(text) else "text", text=text, starts_turn=True)

    def _add_interrupt(self, rows: list[TranscriptRow], text: str, stops_notice: bool = True) -> None:
        """Mark the last words of the agent as cut off by the human, and say so."""
        last = self.said[-1] if self.said else None
        if last is not None and last.role == "assistant" and (stops_notice or last.kind == "text"):
            calls = tuple(
                replace(call, status="error", error_class="interrupted", action="") if call.status == "open" else call
                for call in last.calls
            )
            self.said[-1] = replace(last, interrupted=True, calls=calls)
        self._add(rows, role="user", kind="interrupt", text=text, interrupted=True)

    def _read_worked(self, rows: list[TranscriptRow]) -> None:
        """Keep how long a turn took with the last words of the agent."""
        found = self.worked.match(rows[0].text)
        span = milliseconds(found["span"]) if found else None
        last = next((n for n in range(len(self.said) - 1, -1, -1) if self.said[n].role != "system"), None)
        if last is not None and self.said[last].role == "assistant" and span is not None:
            self.said[last] = replace(self.said[last], duration_ms=span)


#: A time as drawn, to be used in other patterns.
TIME = r"(?:\d{1,2} [A-Z][a-z]{2} \d{4} )?\d{1,2}:\d{2} [AP]M"
_PARTS = re.compile(r"(?:(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) )?(\d{1,2}):(\d{2}) ([AP])M")
_MONTHS = {name: n for n, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_MINUTE, _QUARTER = 60_000, 15
_DAY = 24 * 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SPAN = re.compile(r"(?:(\d+)d ?)?(?:(\d+)h ?)?(?:(\d+)m(?!s) ?)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")


def clock(text: str) -> tuple[date | None, int] | None:
    """The date, if there is one, and the minute of the day."""
    found = _PARTS.fullmatch(text)
    if found is None:
        return None
    day, month, year, hour, minute, half = found.groups()
    minutes = int(hour) % 12 * 60 + int(minute) + (720 if half == "P" else 0)
    if int(hour) > 12 or int(minute) > 59:
        return None
    if not day:
        return None, minutes
    try:
        return date(int(year), _MONTHS.get(month, 0), int(day)), minutes
    except ValueError:
        return None


def milliseconds(text: str) -> int | None:
    """How long: `157ms`, `36.1s`, `1m 5s`, `2h 3m`."""
    found = _SPAN.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds, rest = (float(part or 0) for part in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + rest)


def date_sayings(
    said: Sequence[DrawnSaying], seen: Sequence[int | None], transcript: TerminalTranscript
) -> list[DrawnSaying]:
    """The items with their moments: as the screen says, else when they were drawn (`seen`, where that is known)."""
    zone = zone_of(said, seen, transcript)
    started = transcript.started
    day = _day(started, zone) if started is not None and zone is not None else None
    before: int | None = None
    found: list[DrawnSaying] = []
    for item, drawn in zip(said, seen, strict=True):
        shown = clock(item.time_text) if item.time_text else None
        at: int | None = drawn
        if shown is not None:
            own_day, minutes = shown
            if own_day is None:
                # Half a day back is no correction of the clock but the next day.
                day = _next_day(day) if before is not None and minutes + _DAY // 2 < before else day
                before = minutes
            at = _moment_at(own_day or day, minutes, zone)
        found.append(item if at is None else replace(item, at=at, precision="min" if shown is not None else "s"))
    return found


def zone_of(said: Sequence[DrawnSaying], seen: Sequence[int | None], transcript: TerminalTranscript) -> int | None:
    """Minutes east of UTC: as the header says, or the only zone in which the times fit the recording."""
    if transcript.zone is not None and abs(transcript.zone) < _DAY:
        return transcript.zone
    times = [
        (shown[1], drawn)
        for item, drawn in zip(said, seen, strict=True)
        if item.role == "user" and (shown := clock(item.time_text)) is not None and shown[0] is None
    ]
    for minutes, drawn in reversed(times):
        # What a human sends is drawn at once; a message of an older session may have been drawn at any later time.
        if drawn is not None and (zone := _only_zone(minutes, drawn // _MINUTE - 2, drawn // _MINUTE + 2)) is not None:
            return zone
    if not times or transcript.started is None or transcript.ended is None:
        return None
    return _only_zone(times[-1][0], transcript.started // _MINUTE - 1, transcript.ended // _MINUTE + 1)


def _only_zone(minutes: int, low: int, high: int) -> int | None:
    """The only zone in which a minute of the day comes up between two moments. Whole hours are tried first."""
    for step in (60, _QUARTER):
        fits = [zone for zone in range(-12 * 60, 14 * 60 + 1, step) if (minutes - zone - low) % _DAY <= high - low]
        # Zones a day apart are the same clock on another date: the one nearer to UTC is taken.
        fits = [zone for zone in fits if not any(abs(zone - _DAY * k) < abs(zone) for k in (-1, 1))]
        if fits:
            return fits[0] if len(fits) == 1 else None
    return None


def _day(started: int, zone: int) -> date | None:
    try:
        return (_EPOCH + timedelta(milliseconds=started, minutes=zone)).date()
    except OverflowError:
        return None


def _next_day(day: date | None) -> date | None:
    return day + timedelta(days=1) if day is not None and day < date.max else day


def _moment_at(day: date | None, minutes: int, zone: int | None) -> int | None:
    if day is None or zone is None:
        return None
    return ((day.toordinal() - _EPOCH.toordinal()) * _DAY + minutes - zone) * _MINUTE
