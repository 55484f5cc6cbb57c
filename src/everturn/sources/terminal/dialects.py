"""A transcript → its conversations: which client drew a segment, and which segments belong to one session.

Nobody needs to say what was recorded: the screens show it. A recording may hold several sessions (`/new`, another one
opened from a list, several programs one after the other) and one session may come in several segments, because a menu or
a jump lay between them. What a shell printed before and after stays with the session it led to. Never raises.

Conversations put together from segments: what belongs to which, what is the same seen twice, what the frame says.

A message that waited in the queue is drawn twice, as waiting and as sent; it counts once. Two equal messages that were
really sent are drawn both at once, and stay two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from everturn.sources.terminal import boxes, codex_screen, gemini_screen, panels, prompts
from everturn.sources.terminal.rows import TranscriptRow, date_sayings, place_saying, rows_of, trim_rows
from everturn.sources.terminal.transcript import DrawnSaying, ScreenTalk, TerminalTranscript, TranscriptSegment

_TITLE = re.compile(r"# (?P<title>[^\n]+?)(?: *┃?\s*\n|\s{2,}|\s*┃|\s*/(?:un)?share\b|$)")
_UNTITLED = re.compile(r"New session|Child session|Untitled", re.IGNORECASE)
_TOKENS = re.compile(r"(?P<number>[\d.,]+)(?P<unit>[KM]?)(?:/| \(| {1,3})(?P<percent>\d{1,3})%")
_SIDE_TOKENS = re.compile(r"([\d,]+) tokens")
_SIDE_PERCENT = re.compile(r"(\d{1,3})% used")
_VERSION = re.compile(r"(?i)\b(?:opencode|claude code) v?(\d+\.\d+[\w.-]*)")
_FOLDER = re.compile(r"(?i)\bopencode v?\S+\s+([~/]\S*?)(?::[^\s:]+)?(?:\s|$)")
_GREETED = re.compile(r"^\s*[▘▝ ]+\s+([~/]\S.*)$|cwd: ([~/]\S.*?)\s*│?$", re.MULTILINE)
_BELOW = re.compile(r"^([~/]\S*)(?:\s{2,}|$)", re.MULTILINE)
_WORKING = re.compile(r"\besc\b[^\n]{0,20}\binterrupt|\bworking\.\.|\besc\b again")
_NATIVE = re.compile(r"\bopencode (?:-s|--session) (ses_\w+)|\bclaude (?:-r|--resume) ([0-9a-f-]{36})")
_EPILOGUE = re.compile(r"^ *Session {2,}(\S.*)$", re.MULTILINE)
_FACTOR = {"": 1, "K": 1_000, "M": 1_000_000}

Key = tuple[str, str, str, str, str]


class TalkBuilder:
    """A talk being put together."""

    def __init__(self, dialect: str, cut_top: bool) -> None:
        self.dialect = dialect
        self.cut_top = cut_top
        self.said: list[DrawnSaying] = []
        self._places: list[int] = []  # in `said`, of what is no output of a shell
        self._keys: list[Key] = []  # of the same
        self.titles: list[str] = []
        self.native_id = self.client = self.workspace = ""
        self.tokens: int | None = None
        self.percent: int | None = None
        self.working = False

    def continues(self, said: Sequence[DrawnSaying], segment: TranscriptSegment, fresh: bool) -> bool:
        """Whether a segment belongs to this talk."""
        title = title_of(segment.title)
        if title and not _UNTITLED.match(title) and title in self.titles:
            return True
        if self._overlap([item for item in said if item.kind != "output"])[1]:
            return True
        if fresh or (not segment.cut_top and _is_beginning(said)):
            return False
        renamed = bool(title and self.titles) and not _UNTITLED.match(self.titles[-1]) and title != self.titles[-1]
        return not renamed

    def take(self, said: Sequence[DrawnSaying], segment: TranscriptSegment) -> None:
        """Add what a segment holds beyond what is here already."""
        spoken = [item for item in said if item.kind != "output"]
        at, n, skipped = self._overlap(spoken)
        for number, item in enumerate(spoken[skipped : skipped + n], at):
            place = self._places[number]
            old = self.said[place]
            # Seen whole now, or it went on, or its end says who answered.
            better = number == len(self._keys) - 1 or (item.model and not old.model)
            if old.fidelity == "partial" or (better and item.fidelity != "partial"):
                self.said[place], self._keys[number] = item, _key(item)
        for item in [*(item for item in said if item.kind == "output"), *spoken[skipped + n :]] if n else said:
            if item.kind != "output":
                self._places.append(len(self.said))
                self._keys.append(_key(item))
            self.said.append(item)
        for item in said:
            if item.kind == "output":
                self.named(item.text)
        self._frame(segment)

    def named(self, text: str) -> bool:
        """Whether a text is what the client printed at its end; its name of the session is taken from it."""
        found = _NATIVE.search(text)
        if found is None:
            return False
        self.native_id = found[1] or found[2]
        if title := _EPILOGUE.search(text):
            self._title(title[1].strip())
        return True

    def _overlap(self, said: Sequence[DrawnSaying]) -> tuple[int, int, int]:
        """Where the first of `said` stands here already, how many of them do, and how many in front are left out.

        One equal item alone may be the same words sent again; several in a row, or one with its time, are the same ones.
        What was cut off at the top of a screen is a part of something known.
        """
        keys = [_key(item) for item in said]
        for skipped in range(1 + (len(keys) > 1 and said[0].fidelity == "partial")):
            new = keys[skipped:]
            for at, key in enumerate(self._keys):
                n = min(len(self._keys) - at, len(new))
                if not n or not _is_same(key, new[0], n == 1) or not _is_all_same(self._keys[at : at + n], new[:n]):
                    continue
                if n > 1 or len(new) > 1 or said[skipped].time_text:
                    return at, n, skipped
        end = len(self._keys) - 1
        if end >= 0 and keys and said[0].fidelity == "partial" and _is_end_of(keys[0], self._keys[end]):
            return end, 1, 0
        return 0, 0, 0

    def _frame(self, segment: TranscriptSegment) -> None:
        """What the client shows around the conversation."""
        frame = f"{segment.title}\n{segment.footer}"
        self._title(title_of(segment.title) or (_side_title(segment.title) if self.dialect == "panels" else ""))
        if found := _TOKENS.search(frame):
            self.tokens = _number(found["number"], found["unit"])
            self.percent = int(found["percent"])
        elif counted := _SIDE_TOKENS.search(frame):
            self.tokens = _number(counted[1], "")
            share = _SIDE_PERCENT.search(frame)
            self.percent = int(share[1]) if share else self.percent
        if version := _VERSION.search(frame):
            self.client = version[1]
        folder = _FOLDER.search(frame) or _GREETED.search(segment.title) or _BELOW.search(segment.footer)
        if folder:
            self.workspace = next(part for part in folder.groups() if part).strip()
        self.working = _WORKING.search(segment.footer) is not None

    def _title(self, title: str) -> None:
        if title and (not self.titles or self.titles[-1] != title):
            self.titles.append(title)


def title_of(frame: str) -> str:
    """The session's title in the rows above the conversation."""
    found = _TITLE.search(frame)
    return found["title"].strip(" ┃") if found else ""


def finish_talk(talks: Sequence[TalkBuilder], transcript: TerminalTranscript) -> list[ScreenTalk]:
    """The talks with everything that is known only at their end: queue, steps, times."""
    lines = [line for segment in transcript.segments for line in segment.lines]
    done: list[ScreenTalk] = []
    for talk in talks:
        said = _number_steps(_drop_queued(talk.said))
        said = date_sayings(said, [lines[item.lines[0]].at for item in said], transcript)
        if talk.working:
            said = _mark_interrupted(said)
        done.append(
            ScreenTalk(
                talk.dialect, tuple(said), tuple(talk.titles), talk.native_id, talk.client, talk.workspace,
                talk.tokens, talk.percent, talk.working, talk.cut_top,
            )
        )  # fmt: skip
    return done


def _key(item: DrawnSaying) -> Key:
    titles = "\n".join(f"{call.title}\0{call.command}" for call in item.calls)
    return item.role, item.kind, item.text or item.thinking, titles, item.time_text


def _is_same(old: Key, new: Key, last: bool) -> bool:
    """Equal; the last one known may have gone on since."""
    return old == new or (
        last and old[0] == "assistant" and old[2] != "" and old[:2] == new[:2] and new[2].startswith(old[2])
    )


def _is_end_of(cut: Key, known: Key) -> bool:
    """The last lines of something, below the upper edge of a screen."""
    return cut[0] == known[0] and cut[3:] == known[3:] and known[2] != "" and known[2].endswith(cut[2])


def _is_all_same(old: Sequence[Key], new: Sequence[Key]) -> bool:
    return old[:-1] == new[:-1] and _is_same(old[-1], new[-1], True)


def _is_beginning(said: Sequence[DrawnSaying]) -> bool:
    return next((item.role == "user" for item in said), False)


def _drop_queued(said: Sequence[DrawnSaying]) -> list[DrawnSaying]:
    """A waiting message is dropped where it is drawn again later on, as sent or still waiting; one that is not stays."""
    kept: list[DrawnSaying] = []
    told: set[tuple[str, str, str]] = set()  # told again further down
    below: set[tuple[str, str, str]] = set()  # waiting, in the same row of messages: two of them are two
    queued: set[tuple[str, str, str]] = set()
    for item in reversed(said):
        same = (item.text, item.author, item.time_text)
        if item.role != "user":
            told |= below
            below = set()
        elif not item.queued:
            told.add(same)
        elif same in told:
            queued.add(same)
            continue
        else:
            below.add(same)
        kept.append(item)
    return [
        replace(item, queued=True)
        if item.role == "user" and (item.text, item.author, item.time_text) in queued
        else item
        for item in reversed(kept)
    ]


def _number_steps(said: Sequence[DrawnSaying]) -> list[DrawnSaying]:
    """Numbers the responses of the model: words or thoughts after a call begin a new one."""
    found: list[DrawnSaying] = []
    step, called, open_step = -1, False, False
    for item in said:
        if item.role == "user":
            open_step = False
        elif item.role == "assistant" and item.kind == "text":
            if not open_step or (called and (item.text or item.thinking)):
                step, called, open_step = step + 1, False, True
            called = called or bool(item.calls)
            item = replace(item, step=step)
        found.append(item)
    return found


def _mark_interrupted(said: list[DrawnSaying]) -> list[DrawnSaying]:
    """The last words of an agent that was still at work."""
    last = next((n for n in range(len(said) - 1, -1, -1) if said[n].role != "system"), None)
    if last is not None and said[last].role == "assistant":
        said[last] = replace(said[last], interrupted=True)
    return said


def _side_title(frame: str) -> str:
    """The first lines of the sidebar, above the one that says how full the context is."""
    head, context, _ = f"{frame}\n".partition("\nContext\n")
    return " ".join(head.split()) if context else ""


def _number(text: str, unit: str) -> int | None:
    try:
        return round(float(text.replace(",", "")) * _FACTOR[unit])
    except (ValueError, OverflowError):
        return None


_LOGO = re.compile(r"[█▀▄░]{2,}[█▀▄░ ]*[█▀▄░]{2,}")
_BEFORE, _ROWS_OF_LOGO = 12, 3
_FULL_SCREEN = ("boxes", "panels", "codex")

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

    def add(self, piece: _DrawnSegment) -> None:
        """Take in the next segment."""
        if piece.dialect == "home":
            self.fresh = True
        elif piece.dialect == "plain":
            self._plain(piece)
        else:
            self._conversation(piece)

    def close(self) -> list[TalkBuilder]:
        """All talks; what was printed last goes to the last one."""
        if self.talks:
            self.talks[-1].said += self.outside
        return self.talks

    def _plain(self, piece: _DrawnSegment) -> None:
        text = "\n".join(trim_rows([row.text for row in piece.rows]))
        if not text:
            return
        used = [row for row in piece.rows if row.text.strip()]
        item = place_saying(used, role="system", kind="output", text=text)
        # What a client prints when it ends belongs to the talk that ended.
        if self.talks and self.talks[-1].named(text):
            self.talks[-1].said.append(item)
        else:
            self.outside.append(item)
        if not piece.segment.alternate:
            self.fresh = True

    def _conversation(self, piece: _DrawnSegment) -> None:
        for said, segment in _READERS[piece.dialect](self, piece):
            talk = self._talk_for(piece.dialect, said, segment)
            if self.outside:
                talk.said += self.outside
                self.outside = []
            talk.take(said, segment)
            self.fresh = piece.dialect == "prompts" or (self.fresh and not said)

    def _talk_for(self, dialect: str, said: list[DrawnSaying], segment: TranscriptSegment) -> TalkBuilder:
        known = [talk for talk in self.talks if talk.dialect == dialect]
        talk = next((talk for talk in reversed(known) if talk.continues(said, segment, self.fresh)), None)
        if talk is None:
            talk = TalkBuilder(dialect, segment.cut_top)
            self.talks.append(talk)
        return talk

    def read_boxes(self, piece: _DrawnSegment) -> list[SegmentSayings]:
        """A segment of boxes, and with it what the client's frame says."""
        rows, title, footer = boxes.without_frame(piece.rows)
        segment = _add_frame(piece.segment, title, footer)
        return [(boxes.read_boxes(rows, segment, self.boxes), segment)]

    def read_panels(self, piece: _DrawnSegment) -> list[SegmentSayings]:
        """A segment of panels, and with it what stands below and beside it."""
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
