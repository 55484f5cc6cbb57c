"""Screens made of boxes (OpenCode 0.x): `┃ … ┃` around prompts and tool calls, answers between them without a border.

A prompt and a tool call are drawn with the same border. What tells them apart is its colour and that a prompt ends with
`author (02:36 PM)`; the colours of a theme are learnt from the boxes themselves. An answer ends with `Build model (time)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from everturn.sources.terminal import tools
from everturn.sources.terminal.frames import BAR, PaintedRow, ScreenLayout, cut_row, shows_logo, uncover
from everturn.sources.terminal.rows import (
    TIME,
    TranscriptRow,
    colour_at,
    dedent_rows,
    indent,
    is_red,
    place_saying,
    rejoin_rows,
    trim_rows,
    width,
)
from everturn.sources.terminal.transcript import Colour, DrawnCall, DrawnSaying, TranscriptSegment

_FOOTER = re.compile(rf"(\S.*?) \(({TIME})\)$")
_MODEL = re.compile(r"(?:(?P<mode>[A-Z][\w-]*(?: [\w-]+){0,2}) )?(?P<model>[\w@][\w.:/@+-]*)")
_MODES = ("Build", "Plan", "General")
_REVERTED = re.compile(r"\d+ messages? reverted")
_TOKENS = re.compile(r"[\d.]+[KM]?/\d+%")
_BADGE = re.compile(r"(?:txt|img|pdf) {1,3}(\S.*)")
_INPUT = re.compile(r" {0,4}┃ {1,2}>(?: |$)")
_STATUS = re.compile(
    r" {0,4}(?:enter send|working\.|esc interrupt|ctrl\+c again|press .{1,20} again)| {0,4}opencode v?\d+\."
)
_ABORTED = "Request was aborted"
_QUEUED = "QUEUED"
_PERMISSION = "Permission required to run this tool:"
_ERROR = re.compile(r"\w*Error: ")
_FAILED = re.compile(r"Error: |The user rejected|Tool execution aborted|\w+Error: ")

#: The default theme. Other themes, and terminals with fewer colours, are learnt.
_THEME = {0x5C9CF5: "user", 0x9D7CD8: "queued", 0x141414: "tool", 0xE06C75: "error", 0xF5A742: "tool"}

Palette = dict[Colour, str]

_PROGRAM = re.compile(r" {0,4}opencode v?\d|^ {0,4}opencode dev\b")
_EARLY = "Context: "  # in the status line of releases with other screens
_FIELD = re.compile(r" *┃ {1,2}[>!](?: |$)")
_HIGHEST_FIELD = 12  # rows of the input field that are looked through
_HOME = 8  # blanks in front of the input field of the home screen


class ScreenBox(Struct, frozen=True):
    """Rows with a border, and what stands in it."""

    rows: list[TranscriptRow]
    lines: list[str]  # without the border, blanks kept
    colour: Colour
    room: int  # cells for text

    def words(self) -> list[str]:
        """Its lines from the first to the last that is not empty, without the padding."""
        return dedent_rows(trim_rows(self.lines), 2)


class OpenBox(Struct, frozen=True):
    """Rows without a border."""

    rows: list[TranscriptRow]


def looks_boxed(rows: Sequence[TranscriptRow]) -> int:
    """How many rows have a border on both sides."""
    return sum(row.text.lstrip(" ").startswith(BAR) and row.text.endswith(BAR) and len(row.text) > 4 for row in rows)


def palette_of(rows: Sequence[TranscriptRow]) -> Palette:
    """Return the meaning of each border colour: that of prompts, of tools, or of both."""
    votes: dict[Colour, list[int]] = {}
    waiting: set[Colour] = set()  # only messages that wait are marked as such; the mark may be all that is left of one
    for block in blocks_of(rows):
        if isinstance(block, ScreenBox) and (words := block.words()) and not _is_chrome(words):
            if words[0].strip() == _QUEUED:
                waiting.add(block.colour)
            vote = votes.setdefault(block.colour, [0, 0])
            vote[0] += _footer(words) is not None and not _looks_like_tool(words)
            vote[1] += 1
    learnt: Palette = {}
    for colour, (prompts, all_boxes) in votes.items():
        if colour is not None:
            share = prompts / all_boxes
            seen = "queued" if colour in waiting else "user" if share > 0.8 else "tool" if share < 0.2 else ""
            learnt[colour] = _THEME.get(colour) or seen
    return learnt


def without_frame(rows: Sequence[TranscriptRow]) -> tuple[list[TranscriptRow], str, str]:
    """The rows without what is left of the client's frame; its header and its last lines.

    What never moves is taken off before; a session that never filled the screen shows no difference.
    """
    kept: list[TranscriptRow] = []
    header: list[str] = []
    for block in blocks_of(rows):
        words = block.words() if isinstance(block, ScreenBox) else []
        if words and _is_header(words) and not any(row.text.strip() for row in kept):
            header += words
            kept = []
        else:
            kept += block.rows
    end = _bottom(kept)
    return kept[:end], "\n".join(header), "\n".join(row.text.strip() for row in kept[end:])


def read_boxes(rows: Sequence[TranscriptRow], segment: TranscriptSegment, palette: Palette) -> list[DrawnSaying]:
    """Read the messages in the rows of one segment."""
    said: list[DrawnSaying] = []
    blocks = blocks_of(rows, bool(segment.program))
    for n, block in enumerate(blocks):
        first, last = n == 0 and segment.cut_top, n == len(blocks) - 1
        if isinstance(block, ScreenBox):
            item = _read_announced(block) if last and segment.program and not segment.gone else None
            item = item or _read_box(block, palette, first, last)
            said += [item] if item is not None else []
        else:
            strays = [row for row in block.rows if segment.program and is_overwritten(row.text)]
            said += _read_open([row for row in block.rows if row not in strays], first)
            said += map(_stray, strays)
    return said


def blocks_of(rows: Sequence[TranscriptRow], whole: bool = False) -> list[ScreenBox | OpenBox]:
    """The rows cut where a border begins, ends or changes its colour; of `whole` screens, where nothing else is at the left edge."""
    blocks: list[ScreenBox | OpenBox] = []
    pending: list[TranscriptRow] = []
    mark: tuple[bool, Colour] = (False, None)
    for n, row in enumerate(rows):
        own = _mark(row)
        if whole and is_overwritten(row.text):
            own = mark if mark[0] else _mark_below(rows[n + 1 :])
        if own != mark and pending:
            blocks.append(_block(pending, mark))
            pending = []
        mark = own
        pending.append(row)
    if pending:
        blocks.append(_block(pending, mark))
    return blocks


def _mark(row: TranscriptRow) -> tuple[bool, Colour]:
    """Return whether a row has a border, and its colour."""
    bordered = row.text.lstrip(" ").startswith(BAR) and indent(row.text) <= 8
    return bordered, colour_at(row, indent(row.text)) if bordered else None


def is_overwritten(text: str) -> bool:
    """Return whether a row of a whole screen begins at its left edge, where the client leaves a margin."""
    return text[:1].strip(f" {BAR}") != ""


def _stray(row: TranscriptRow) -> DrawnSaying:
    """Return a row of a box of which nothing else is there."""
    return place_saying([row], role="system", kind="unknown", text=row.text, fidelity="partial")


def _mark_below(rows: Sequence[TranscriptRow]) -> tuple[bool, Colour]:
    """Return the mark of the box whose first rows were written over."""
    below = next((row for row in rows if not is_overwritten(row.text)), None)
    return _mark(below) if below is not None else (False, None)


def _block(rows: list[TranscriptRow], mark: tuple[bool, Colour]) -> ScreenBox | OpenBox:
    if not mark[0]:
        return OpenBox(rows)
    inner = [row.text.lstrip(" ")[1:] if _mark(row)[0] else f"  {row.text}" for row in rows]
    closed = [line for line in inner if line.endswith(BAR)]
    lines = [line.removesuffix(BAR).rstrip() for line in inner]
    padding = min((indent(line) for line in lines if line), default=2)
    room = max(map(width, closed), default=10_000) - 1 - 2 * min(padding, 2)
    return ScreenBox(rows, lines, mark[1], room)


# the screen -----------------------------------------------------------------------------------------------------------
def find_layout(rows: Sequence[PaintedRow]) -> ScreenLayout | None:
    """Divide a frame of OpenCode 0.2 and later; None for a frame that it did not draw."""
    status = next((row.text for row in reversed(rows) if row.text), "")
    if _PROGRAM.match(status) is None or _EARLY in status:
        return None
    field = _find_field(rows)
    if field is None:
        return ScreenLayout("boxes", state="covered", footer=status.strip())
    first, end = field
    lines = [row.text.strip().strip(BAR).strip() for row in rows[first:end]]
    typed = "\n".join(lines).lstrip(">!").strip()
    footer = "\n".join(row.text.strip() for row in rows[end:] if row.text)
    header = _header_end(rows)
    if indent(rows[first].text) > _HOME or (not header and shows_logo(rows[:first])):
        return ScreenLayout("boxes", (), "home", "", footer, typed)
    if not header:
        return ScreenLayout("boxes", (), "covered", "", footer, typed)
    title = "\n".join(row.text.strip().strip(BAR).strip() for row in rows[:header] if row.text)
    bottom = first - 1
    if typed.startswith("/") or "@" in typed:  # a list of commands or files stands above the field
        while bottom > header and rows[bottom - 1].text.lstrip(" ").startswith(BAR):
            bottom -= 1
    content = uncover([_cut_overwritten(row) for row in rows[header:bottom]], 1, width(rows[first].text))
    below = bool(content) and not content[0].text  # an empty row follows the header
    return ScreenLayout("boxes", content[below:], "talk", title, footer, typed, header + below)


def _cut_overwritten(row: PaintedRow) -> PaintedRow:
    """Return a row of a box that was written over from the left edge without what is left of the box.

    Lines of a pasted prompt end with carriage returns, which the client draws as they are.
    """
    bar = row.text.find(BAR) if is_overwritten(row.text) else -1
    return cut_row(row, width(row.text[:bar])) if bar > 0 else row


def is_end_of_prompt(text: str) -> bool:
    """Return whether a row names the author of a prompt and the time."""
    words = text.strip().strip(BAR).strip()
    return text.lstrip(" ").startswith(BAR) and _FOOTER.fullmatch(words) is not None


def is_fixed(text: str) -> bool:
    """Return whether the program never takes a row back: the end of a prompt, or the title of a call with its object."""
    return is_end_of_prompt(text) or _is_title(text)


def _is_title(text: str) -> bool:
    words = text.strip().strip(BAR).strip()
    return text.lstrip(" ").startswith(BAR) and text.endswith(BAR) and " " in words and tools.is_titled(words)


def _find_field(rows: Sequence[PaintedRow]) -> tuple[int, int] | None:
    """Return the first row of the input field's text and the row after the field."""
    for first in range(len(rows) - 1, -1, -1):
        if _FIELD.match(rows[first].text) and rows[first].text.endswith(BAR):
            end = first + 1
            while end < min(len(rows), first + _HIGHEST_FIELD) and rows[end].text.lstrip(" ").startswith(BAR):
                end += 1
            return first, end
    return None


def _header_end(rows: Sequence[PaintedRow]) -> int:
    """Return the row after the header; 0 without one."""
    first = next((n for n in range(min(3, len(rows))) if rows[n].text.lstrip(" ").startswith(f"{BAR}  # ")), None)
    if first is None:
        return 0
    end = first + 1
    while end < len(rows) and rows[end].text.lstrip(" ").startswith(BAR) and indent(rows[end].text) <= _HOME:
        end += 1
    return end


# boxes ----------------------------------------------------------------------------------------------------------------
def _read_box(box: ScreenBox, palette: Palette, first: bool, last: bool) -> DrawnSaying | None:
    words = box.words()
    if not words or _is_chrome(words) or (len(words) == 1 and words[0].strip() in {*tools.PENDING, _QUEUED}):
        return None
    role = _role(box, words, palette)
    titled = tools.is_known(words[0]) and not "".join(words[1:2]).strip()
    if first and role in ("tool", "error") and not titled and not words[0].startswith("$ "):
        # The end of a call that began before what was seen.
        call = DrawnCall("unknown", output="\n".join(words), lines=(box.rows[0].index, box.rows[-1].index))
        return place_saying(box.rows, role="assistant", calls=(call,), fidelity="partial")
    torn = (first and bool(box.lines[0])) or (last and role == "user" and _footer(words) is None)
    said = _build_saying(role, box, words)
    return replace(said, fidelity="partial") if torn or (said.calls and first) else said


def _read_announced(box: ScreenBox) -> DrawnSaying | None:
    """Return the call that a screen ends with before it is drawn: the next screen may show only the end of its output."""
    words = box.words()
    call = tools.read_announced(words[0].strip()) if len(words) == 1 else None
    if call is None:
        return None
    call = replace(call, lines=(box.rows[0].index, box.rows[-1].index))
    return place_saying(box.rows, role="assistant", calls=(call,), fidelity="partial")


def _role(box: ScreenBox, words: list[str], palette: Palette) -> str:
    if words[0] == "Thinking...":
        return "thinking"
    if words == [_ABORTED]:
        return "error"
    role = palette.get(box.colour, "")
    if role in ("", "user", "queued") and _footer(words) is not None and (role or not _looks_like_tool(words)):
        return "user"
    if role in ("user", "queued"):
        return "user"
    if _ERROR.match(words[0]) and not tools.is_known(words[0]):
        return "error"
    if role:
        return role
    return "tool" if tools.is_known(words[0]) or _looks_like_tool(words) else "error"


def _build_saying(role: str, box: ScreenBox, words: list[str]) -> DrawnSaying:
    if role == "user":
        return _prompt(box, words)
    if role == "thinking":
        return _thinking(box, words)
    if role == "tool" and not _REVERTED.match(words[0]) and (call := _call(box, words)) is not None:
        return place_saying(box.rows, role="assistant", calls=(call,))
    if _REVERTED.match(words[0]):
        return place_saying(box.rows, role="system", kind="notice", text="\n".join(words))
    aborted = words[0] == _ABORTED
    # The client draws the failure of an answer in its place: the request was answered with it.
    kind = "interrupt" if aborted else "notice"
    return place_saying(box.rows, role="assistant", kind=kind, text="\n".join(words), aborted=aborted)


def _prompt(box: ScreenBox, words: list[str]) -> DrawnSaying:
    footer = _footer(words)
    author, time_text = footer or ("", "")
    lines = trim_rows(words[:-1] if footer else words)
    queued = bool(lines) and lines[0].strip() == _QUEUED
    lines = trim_rows(lines[1:] if queued else lines)
    attached: list[str] = []
    while lines and (badge := _BADGE.fullmatch(lines[-1].strip())):
        attached.insert(0, badge[1].strip())
        lines = trim_rows(lines[:-1])
    return place_saying(
        box.rows, role="user", kind="queued" if queued else "text", text=rejoin_rows(lines, box.room), author=author,
        time_text=time_text, queued=queued, starts_turn=True, attached=tuple(attached),
        fidelity="rendered" if footer and lines and all(_mark(row)[0] for row in box.rows) else "partial",
    )  # fmt: skip


def _thinking(box: ScreenBox, words: list[str]) -> DrawnSaying:
    found = _model_line(words[-1])
    lines = trim_rows(words[1:-1] if found else words[1:])
    mode, model, time_text = found or ("", "", "")
    return place_saying(
        box.rows, role="assistant", thinking="\n".join(lines), mode=mode, model=model, time_text=time_text
    )


def _call(box: ScreenBox, words: list[str]) -> DrawnCall | None:
    title = words[0].strip()
    shell = title.startswith("$ ")  # the rows above it were not seen
    call = tools.shell(title[2:]) if shell else tools.read_box_title(title)
    if call is None:
        return None
    body = dedent_rows(trim_rows(words if shell else words[1:]), 2)
    waiting = _PERMISSION in body
    body = trim_rows(body[: body.index(_PERMISSION)]) if waiting else body
    if call.kind == "shell" and body and body[0].startswith("$"):
        command, body = tools.command_of(body)
        call = replace(call, command=command)
    if call.kind == "task":
        steps = tuple(line.strip()[1:].strip() for line in body if line.strip().startswith("∟"))
        body = [line for line in body if not line.strip().startswith("∟") and "navigate child sessions" not in line]
        call = replace(call, steps=steps)
    output = "\n".join(trim_rows(body))
    title_row = next((row for row in box.rows if title in row.text), box.rows[0])
    red = is_red(colour_at(title_row, indent_after_bar(title_row)))
    failed = red or _FAILED.match(output) is not None
    return replace(
        call, output=output, status="open" if waiting else "error" if failed else "ok",
        error_class=tools.error_class(output) if failed else "", action="" if failed or waiting else call.action,
        diagnostics=tools.diagnostics_of(body) if call.kind in ("edit", "create") else (),
        lines=(box.rows[0].index, box.rows[-1].index),
    )  # fmt: skip


def _footer(words: Sequence[str]) -> tuple[str, str] | None:
    """Author and time in the last line of a prompt."""
    found = _FOOTER.fullmatch(words[-1].strip()) if words else None
    return (found[1], found[2]) if found else None


def _looks_like_tool(words: Sequence[str]) -> bool:
    """A title, an empty line, and something below: prompts have their author there, not two lines further down."""
    if len(words) < 3 or words[1].strip() or not tools.is_known(words[0]):
        return False
    return not words[0].startswith("Shell") or words[2].startswith("$")


def _is_chrome(words: Sequence[str]) -> bool:
    """The header and the input field, which are parts of the client's own frame."""
    return _is_header(words) or (words[0].startswith(">") and _footer(words) is None)


def _is_header(words: Sequence[str]) -> bool:
    if not words[0].startswith("# ") or len(words) > 3:
        return False
    return any("/share" in line or "/unshare" in line or _TOKENS.search(line) for line in words)


def _bottom(rows: Sequence[TranscriptRow]) -> int:
    """Where the input field, or else the status, begins at the end of a screen."""
    end = len(rows)
    while end and _is_footer(rows[end - 1].text):
        end -= 1
    for n in range(end, len(rows)):
        if _INPUT.match(rows[n].text):
            return n - 1 if n > end and rows[n - 1].text.strip() else n  # the empty row of its border
        if _STATUS.match(rows[n].text):
            return n
    return len(rows)


def _is_footer(text: str) -> bool:
    words = text.strip().strip(BAR).strip()
    return not words or _INPUT.match(text) is not None or _STATUS.match(text) is not None


def indent_after_bar(row: TranscriptRow) -> int:
    """The cell in which the text of a bordered row begins."""
    bar = row.text.find(BAR)
    return bar + 1 + indent(row.text[bar + 1 :])


# between boxes --------------------------------------------------------------------------------------------------------
def _read_open(rows: Sequence[TranscriptRow], first: bool) -> list[DrawnSaying]:
    said: list[DrawnSaying] = []
    pending: list[TranscriptRow] = []
    for n, row in enumerate(rows):
        found = _model_line(row.text.strip())
        if found is not None and (n + 1 == len(rows) or not rows[n + 1].text.strip()):
            said += _answer(pending, row, found, first and not said)
            pending = []
        else:
            pending.append(row)
    return said + _answer(pending, None, ("", "", ""), first and not said)


def _answer(
    rows: Sequence[TranscriptRow], end: TranscriptRow | None, model: tuple[str, str, str], first: bool
) -> list[DrawnSaying]:
    """A stretch of an answer, cut where a call without a box stands in it."""
    said: list[DrawnSaying] = []
    text: list[TranscriptRow] = []
    for row in rows:
        call = tools.read_bare_title(row.text.strip())
        if call is None:
            text.append(row)
            continue
        said += _text(text)
        text = []
        said.append(place_saying([row], role="assistant", calls=(replace(call, lines=(row.index, row.index)),)))
    said += _text([*text, end] if end is not None else text, ending=end is not None)
    if said and first:
        said[0] = replace(said[0], fidelity="partial")
    mode, name, time_text = model
    return [replace(item, mode=mode, model=name, time_text=time_text) for item in said]


def _text(rows: Sequence[TranscriptRow], ending: bool = False) -> Iterable[DrawnSaying]:
    used = [row for row in rows if row.text.strip() and row.text.strip() not in tools.PENDING]
    words = rows[:-1] if ending else rows
    steps = {row.index: row for row in words if row.text.strip().startswith("∟ ")}
    calls = tuple(
        replace(call, lines=(row.index, row.index))
        for row in steps.values()
        if (call := tools.read_box_title(row.text.strip()[2:].strip())) is not None
    )
    lines = [row.text for row in words if row.text.strip() not in tools.PENDING and row.index not in steps]
    text = "\n".join(dedent_rows(trim_rows(lines), 5))
    if text or calls:
        yield place_saying(used, role="assistant", text=text, calls=calls)


def _model_line(line: str) -> tuple[str, str, str] | None:
    """Agent, model and time in `Plan glm-4.6 (02:36 PM)`: the last line of an answer."""
    footer = _FOOTER.fullmatch(line)
    found = _MODEL.fullmatch(footer[1]) if footer else None
    if footer is None or found is None:
        return None
    mode, model = found["mode"] or "", found["model"]
    if mode not in _MODES and not re.search(r"[\d/-]", model):
        return None
    return mode, model, footer[2]
