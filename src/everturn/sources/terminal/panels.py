"""Screens made of panels (OpenCode 1.x): a bar on the left of prompts and of tool output, answers indented below.

Only the bar's colour tells a prompt from a tool panel: prompts have the colour of the agent they were sent to, the same as
the `▣` at the end of its answers. `▣  Build · model · 36.1s` ends a turn; without a time the answer was stopped or is
still being written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from everturn.sources.terminal import tools
from everturn.sources.terminal.frames import BAR, PaintedRow, ScreenLayout, shows_logo, uncover_all
from everturn.sources.terminal.rows import (
    TranscriptRow,
    colour_at,
    cut,
    dedent_rows,
    indent,
    is_red,
    milliseconds,
    place_saying,
    rejoin_rows,
    trim_rows,
    width,
)
from everturn.sources.terminal.transcript import Colour, DrawnCall, DrawnSaying, TranscriptSegment

SIDEBAR = 42  # cells; drawn from 121 columns on
_MARGIN = 2  # cells between a toast and the right edge
_END = re.compile(
    r" {2,}(?:▣ +(?=\S)|(?=[A-Z]\w* · [^·]+ · [\d.hms ]+$))"  # newer releases draw no square
    r"(?P<mode>[^·]*?)(?: · (?P<model>[^·]+?))?(?: · (?P<time>[\d.hms ]+))?(?P<stop> · interrupted)?$"
)
_COMPOSER = re.compile(r" {1,4}[╹┗▀]▀{3,}")
_RULE = "▀" * 8
_EDGE = re.compile(rf" *[╹┗]{_RULE}")
_AGENT = re.compile(r"[A-Z]\w*(?: · |$)")  # who would answer, in the last row of the input field
_QUESTION = re.compile(r" {1,4}┃ {1,3}△ ")
_SPINS = re.compile(r"[⠁-⣿] \S")  # a command that runs
_PLACEHOLDER = "Ask anything"
_COMPACTION = re.compile(r" *─{3,} Compaction ─{3,}$")
_THOUGHT = re.compile(r"[+▸▹▶-] Thought(?:: .*)?$")
_BADGE = re.compile(r"(?:txt|img|pdf|dir) {1,3}(\S+)")
_TIMES = re.compile(r"\d{1,2}:\d{2}(?: [AP]M)?(?: · .*\d{4}.*)?$")
_TOOL_SHAPE = re.compile(r"\$ |# |[←→✱%◈◇⚙] ")
_DROPPED = tools.PENDING | {"✱ Explored", "✱ Exploring"}
_MORE = ("Click to expand", "Click to collapse")
_GLUE = "-/\\.,;:!?)]}"  # the client may break a line behind these without a blank


class Palette(Struct, frozen=True):
    """The meaning of the colours of one recording."""

    agents: frozenset[int]  # of prompts and of the mark that ends a turn
    muted: frozenset[int]  # of what is less important, such as the calls of tools


def looks_panelled(rows: Sequence[TranscriptRow]) -> int:
    """How many rows have a bar on the left only, or end a turn."""
    return sum((_is_panel(row.text) and not row.text.endswith(BAR)) or _END.match(row.text) is not None for row in rows)


def palette_of(rows: Sequence[TranscriptRow]) -> Palette:
    """The colours of agents and of muted text, learnt from the ends of turns."""
    agents: set[int] = set()
    muted: set[int] = set()
    for row in rows:
        if _END.match(row.text) is None:
            continue
        mark, dot = colour_at(row, indent(row.text)), colour_at(row, row.text.find(" · ") + 1)
        muted |= {dot} if dot is not None and " · " in row.text else set()
        agents |= {mark} if mark is not None and mark != dot else set()
    return Palette(frozenset(agents), frozenset(muted))


def find_layout(rows: Sequence[PaintedRow]) -> ScreenLayout | None:
    """Divide a frame of OpenCode 1.x; None for a frame that it did not draw."""
    edge = next((n for n in range(len(rows) - 1, -1, -1) if _RULE in rows[n].text and _EDGE.match(rows[n].text)), None)
    if edge is None:
        return _divide_at_question(rows)
    field = edge
    while field and _is_field(rows[field - 1].text):
        field -= 1
    inner = [row.text.strip().strip(BAR).strip() for row in rows[field:edge]]
    if not inner or not any(_AGENT.match(line) for line in inner[-2:]):
        return None
    typed = "\n".join(inner[:-1]).strip()
    footer = "\n".join(row.text.strip() for row in (rows[edge - 1], *rows[edge + 1 :]) if row.text)
    if _COMPOSER.match(rows[edge].text) is None or _is_home(rows[:field]):
        return ScreenLayout("panels", (), "home", "", footer, "" if typed.startswith(_PLACEHOLDER) else typed)
    while field and rows[field - 1].text.endswith(BAR) and _is_panel(rows[field - 1].text):
        field -= 1  # a list of commands or files
    content, title = _divide_columns(rows[:field])
    return ScreenLayout("panels", content, "talk", title, footer, typed)


def _is_home(rows: Sequence[PaintedRow]) -> bool:
    return shows_logo(rows) and not any(_is_panel(row.text) or _END.match(row.text) for row in rows)


def is_end_of_turn(text: str) -> bool:
    """Return whether a row ends a turn and says how long it took."""
    found = _END.match(text)
    return found is not None and bool(found["time"])


def _is_field(text: str) -> bool:
    return (text.lstrip(" ").startswith(BAR) and not text.endswith(BAR)) or text.strip() == BAR


def _divide_at_question(rows: Sequence[PaintedRow]) -> ScreenLayout | None:
    """Divide a frame in which a question of the client stands in the place of the input field."""
    start = next(
        (n for n in range(len(rows) - 1, -1, -1) if "△" in rows[n].text and _QUESTION.match(rows[n].text)), None
    )
    if start is None:
        return None
    content, title = _divide_columns(rows[: max(0, start - 1)])
    return ScreenLayout("panels", content, "talk", title)


def _divide_columns(rows: Sequence[PaintedRow]) -> tuple[list[PaintedRow], str]:
    """Return the rows without the column on the right and without toasts, and the title of the session in that column."""
    columns = len(rows[0].cells) if rows else 0
    edge = columns - SIDEBAR
    beside = [cut(row.text, edge)[1].strip(" █") for row in rows] if columns > 120 else []
    if "Context" not in beside or any(row.cells[edge - 2 : edge].strip() for row in rows):
        return uncover_all(rows, columns - _MARGIN), ""
    title = " ".join(filter(None, beside[: beside.index("Context")]))
    left = [PaintedRow(cut(row.text, edge)[0].rstrip(), row.cells[:edge], row.inks[:edge]) for row in rows]
    return uncover_all(left, edge - _MARGIN), f"# {title}" if title else ""


def without_sidebar(rows: Sequence[TranscriptRow], columns: int) -> tuple[list[TranscriptRow], list[str]]:
    """The rows without the column on the right, and that column; as they are where there is none."""
    if columns <= 120:
        return list(rows), []
    edge = columns - SIDEBAR
    halves = [cut(row.text, edge - 2) for row in rows]
    beside = [cut(right, 2) for _, right in halves]
    if any(gap.strip() for gap, _ in beside) or not any(side.strip() for _, side in beside):
        return list(rows), []
    kept = [replace(row, text=left.rstrip()) for row, (left, _) in zip(rows, halves, strict=True)]
    return kept, [side.strip() for _, side in beside]


def without_composer(rows: Sequence[TranscriptRow]) -> tuple[list[TranscriptRow], str]:
    """The rows without the input field, which ends with a rounded edge, and the client's last lines below it."""
    edge = next((n for n in range(len(rows) - 1, -1, -1) if _COMPOSER.match(rows[n].text)), None)
    if edge is None:
        return list(rows), ""
    top = edge
    while top and _is_panel(rows[top - 1].text):
        top -= 1
    below = edge + 1
    while below < len(rows) and rows[below].text.strip() and not _is_panel(rows[below].text):
        below += 1
    footer = "\n".join(row.text.strip() for row in rows[edge + 1 : below])
    return [*rows[:top], *rows[below:]], footer


def read_panels(
    rows: Sequence[TranscriptRow], segment: TranscriptSegment, palette: Palette, columns: int
) -> list[DrawnSaying]:
    """Read the messages in the rows of one segment."""
    # Prompts are wrapped where the conversation ends, with a sidebar further left.
    narrow = columns > 120 and all(width(row.text) <= columns - SIDEBAR for row in rows)
    reader = _PanelReader(palette, columns - SIDEBAR if narrow else columns)
    for run in _runs(rows):
        if _is_panel(run[0].text):
            reader.panel(run)
        else:
            reader.open(run)
    reader.settle()
    # A panel begins with an empty row beside its bar.
    if reader.said and segment.cut_top and rows[0].text.strip(f" {BAR}"):
        reader.said[0] = replace(reader.said[0], fidelity="partial")
    return reader.said


def _is_panel(text: str) -> bool:
    return indent(text) <= 4 and text.lstrip(" ").startswith(BAR)


def _runs(rows: Sequence[TranscriptRow]) -> list[list[TranscriptRow]]:
    """The rows cut where a bar begins, ends or changes its colour."""
    runs: list[list[TranscriptRow]] = []
    mark: tuple[bool, Colour] | None = None
    for row in rows:
        panel = _is_panel(row.text)
        own = (panel, colour_at(row, indent(row.text)) if panel else None)
        if own != mark:
            runs.append([])
        mark = own
        runs[-1].append(row)
    return runs


class _PanelReader:
    def __init__(self, palette: Palette, columns: int) -> None:
        self.palette = palette
        self.columns = columns
        self.said: list[DrawnSaying] = []
        self.turn = 0  # where the items of the running turn begin
        self.stopped: TranscriptRow | None = None  # a turn's end without a time

    # panels -----------------------------------------------------------------------------------------------------------
    def panel(self, rows: list[TranscriptRow]) -> None:
        """A prompt, the output of a tool, thoughts, a failure or a question of the client."""
        words = trim_rows([row.text.lstrip(" ")[1:] for row in rows])
        words = dedent_rows(words, 2)
        if not words:
            return
        head = words[0].strip()
        if head.startswith("△"):
            self.question(rows, words)
        elif head.startswith(("Thinking:", "_Thinking:_")):
            text = "\n".join(words).strip().removeprefix("_Thinking:_").removeprefix("Thinking:").strip()
            self.said.append(place_saying(rows, role="assistant", thinking=text))
        elif self._is_prompt(rows[0], head):
            self.prompt(rows, words)
        elif (call := _block_call(rows, words)) is not None:
            self.said.append(place_saying(rows, role="assistant", calls=(call,)))
        elif head not in tools.PENDING:
            kind = ("system", "notice") if "reverted" in head else ("assistant", "notice")
            self.said.append(place_saying(rows, role=kind[0], kind=kind[1], text="\n".join(words)))

    def question(self, rows: list[TranscriptRow], words: list[str]) -> None:
        """The client asks whether it may do something: until then it is not done."""
        about = words[1].strip().lstrip("→← #$") if len(words) > 1 else ""
        for n in range(len(self.said) - 1, self.turn - 1, -1):
            calls = self.said[n].calls
            if calls and about and calls[0].title.endswith(about):
                self.said[n] = replace(self.said[n], calls=(replace(calls[0], status="open", action=""),))
                break
        text = "\n".join(line.strip() for line in words[:2])
        self.said.append(place_saying(rows, role="system", kind="notice", text=text))

    def _is_prompt(self, row: TranscriptRow, head: str) -> bool:
        colour = colour_at(row, indent(row.text))
        if colour is None:
            return _TOOL_SHAPE.match(head) is None
        if self.palette.agents:
            return colour in self.palette.agents or (_is_vivid(colour) and not is_red(colour))
        return _is_vivid(colour) and not is_red(colour)

    def prompt(self, rows: list[TranscriptRow], words: list[str]) -> None:
        """Return the text that the human sent."""
        self.settle()
        queued = words[-1].strip() == "QUEUED"
        lines = trim_rows(words[:-1] if queued else words)
        time_text = ""
        if len(lines) > 1 and _TIMES.fullmatch(lines[-1].strip()):
            time_text, lines = lines[-1].strip(), trim_rows(lines[:-1])
        attached: list[str] = []
        if len(lines) > 2 and not lines[-2].strip() and _BADGE.match(lines[-1].strip()):
            attached, lines = _BADGE.findall(lines[-1]), trim_rows(lines[:-2])
        if not lines:
            return
        room = max(self.columns - 7 if self.columns > 20 else 10_000, *map(width, lines))
        self.said.append(
            place_saying(
                rows, role="user", kind="queued" if queued else "text", text=rejoin_rows(lines, room, _GLUE),
                queued=queued, starts_turn=True, time_text=time_text, attached=tuple(attached),
            )
        )  # fmt: skip
        self.turn = len(self.said)

    # answers ----------------------------------------------------------------------------------------------------------
    def open(self, rows: list[TranscriptRow]) -> None:
        """Rows without a bar: answers, calls in one line, and the ends of turns."""
        text: list[TranscriptRow] = []
        for row in rows:
            words = row.text.strip()
            end = _END.match(row.text)
            item = None if end is not None else self._item(row, words)
            dropped = words.startswith("~ ") or words in _DROPPED
            if end is None and self._belongs_to_call(row, words, text):
                continue
            if end is None and item is None and not dropped:
                text.append(row)
                continue
            self.text(text)
            text = []
            if end is not None:
                self.end(row, end)
            elif item is not None:
                self.said.append(item)
        self.text(text)

    def _item(self, row: TranscriptRow, words: str) -> DrawnSaying | None:
        """Return the kind of item that a row is by itself; None for a part of a text."""
        if _COMPACTION.match(row.text):
            return place_saying([row], role="system", kind="compaction", text="Compaction")
        if _THOUGHT.match(words):
            # What was thought is not drawn, only that it was.
            return place_saying([row], role="assistant", kind="notice", text=words, fidelity="partial")
        call = self._inline_call(row, words)
        return None if call is None else place_saying([row], role="assistant", calls=(call,))

    def _inline_call(self, row: TranscriptRow, words: str) -> DrawnCall | None:
        call = tools.read_panel_title(words) if not words.startswith("# ") else None
        colour = colour_at(row, indent(row.text))
        red = is_red(colour)
        if words[:2] in ("$", "$ ") and (red or colour in self.palette.muted):
            call = tools.shell(words[2:].strip())
        if call is None:
            return None
        # A file that was really written to has a panel with what changed; a line alone was asked for, refused or failed.
        undone = call.kind in ("edit", "create", "delete")
        status = "error" if red else "open" if undone else "ok"
        return replace(call, status=status, action="" if red or undone else call.action, lines=(row.index, row.index))

    def _belongs_to_call(self, row: TranscriptRow, words: str, text: list[TranscriptRow]) -> bool:
        """Lines drawn below a call in one line: how far a subagent is, what was loaded, why it failed."""
        last = self.said[-1] if self.said else None
        if text or not words or last is None or not last.calls or last.lines[1] != row.index - 1:
            return False
        call = last.calls[0]
        if words[0] == "↳" or (call.kind == "task" and words[0] in "└│"):
            call = replace(call, steps=(*call.steps, words.lstrip("↳└│ ")))
        elif is_red(colour_at(row, indent(row.text))):
            output = f"{call.output}\n{words}".strip()
            call = replace(call, status="error", error_class=tools.error_class(output), action="", output=output)
        else:
            return False
        call = replace(call, lines=(call.lines[0], row.index))
        self.said[-1] = replace(last, calls=(call,), lines=call.lines)
        return True

    def text(self, rows: list[TranscriptRow]) -> None:
        """A stretch of an answer."""
        used = [row for row in rows if row.text.strip()]
        if used:
            text = "\n".join(dedent_rows(trim_rows([row.text for row in rows]), 5))
            self.said.append(place_saying(used, role="assistant", text=text))

    # ends of turns ----------------------------------------------------------------------------------------------------
    def end(self, row: TranscriptRow, found: re.Match[str]) -> None:
        """The mark at the end of an answer: it says who answered and how long that took."""
        mode, model = found["mode"].strip(), (found["model"] or "").strip()
        span = milliseconds(found["time"]) if found["time"] else None
        for n in range(self.turn, len(self.said)):
            if self.said[n].role == "assistant" and not self.said[n].model:
                self.said[n] = replace(self.said[n], mode=mode, model=model)
        if found["stop"]:
            fields = {"kind": "interrupt", "text": "interrupted", "interrupted": True, "aborted": True}
            self.said.append(place_saying([row], role="assistant", mode=mode, model=model, **fields))
        elif span is None:
            self.stopped = row
            return
        elif len(self.said) > self.turn and self.said[-1].role == "assistant":
            last = self.said[-1]
            self.said[-1] = replace(last, duration_ms=span, lines=(last.lines[0], row.index))
        self.stopped = None

    def settle(self) -> None:
        """A new request, or the end: an answer whose end had no time was stopped, or is not finished."""
        row, self.stopped = self.stopped, None
        if row is None:
            return
        last = next((n for n in range(len(self.said) - 1, self.turn - 1, -1) if self.said[n].role == "assistant"), None)
        if last is not None:
            self.said[last] = replace(self.said[last], interrupted=True)
        else:
            self.said.insert(self.turn, place_saying([row], role="assistant", kind="interrupt", interrupted=True))


def _block_call(rows: list[TranscriptRow], words: list[str]) -> DrawnCall | None:
    head, body = words[0].strip(), dedent_rows(trim_rows(words[1:]), 2)
    if body and body[-1].strip() in _MORE:
        body = trim_rows(body[:-1])
    call = tools.read_panel_title(head)
    if call is None and _SPINS.match(head):
        call = replace(tools.shell(head[2:].strip()), status="open")
        return replace(call, lines=(rows[0].index, rows[-1].index))
    if call is None and (head.startswith("$ ") or (body and body[0].startswith("$ "))):
        title, lines = ("", [head, *body]) if head.startswith("$ ") else (head, body)
        command, body = tools.command_of(lines)
        call = tools.shell(command, title)
    elif call is None and head.startswith("# "):
        call = tools.read_panel_title(f"⚙ {head[2:]}")
        call = replace(call, title=head) if call is not None else None
    if call is None:
        return None
    output = "\n".join(trim_rows(body))
    failed = any(is_red(colour_at(row, indent(row.text.replace(BAR, " ", 1)))) for row in rows) and not call.action
    return replace(
        call, output=output, status="error" if failed else "ok", error_class=tools.error_class(output) if failed else "",
        diagnostics=tools.diagnostics_of(body) if call.kind in ("edit", "create") else (),
        lines=(rows[0].index, rows[-1].index),
    )  # fmt: skip


def _is_vivid(colour: int) -> bool:
    """Neither a shade of grey nor the dark ground of a theme."""
    parts = colour >> 16 & 255, colour >> 8 & 255, colour & 255
    return max(parts) >= 110 and max(parts) - min(parts) > 40
