"""Screens of Codex: `› prompt`, `• answer`, `• Ran command` with `└ output`, above an input field that also begins with `›`.

The conversation scrolls above the input field. When a prompt has scrolled off, Codex repeats it in the first row of the
screen; that row is not part of the text. Every item begins with a mark in the first column, and the rows below it are
indented. Menus stand right above the input field; dialogs and the pager stand in its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from everturn.sources.terminal.codex_calls import find_printed_rows, read_calls, read_full_command, read_output
from everturn.sources.terminal.frames import PaintedRow, ScreenLayout
from everturn.sources.terminal.grid import NO_INK
from everturn.sources.terminal.rows import ItemReader, TranscriptRow, colour_at, rejoin_rows, trim_rows
from everturn.sources.terminal.transcript import DrawnCall, DrawnSaying

PROGRAM = "codex"
_MARK, _SHELL_MARK = "›", "!"
_PLACEHOLDER = "Ask Codex to do anything"
_BANNER = re.compile(r" {0,4}>_ OpenAI Codex \(v(?P<version>[^)]{1,40})\)")
_BELOW_BANNER = re.compile(r" {5}(?:[~/]\S*|loading)$|  permissions: ")
_INTERRUPTS = "esc to interrupt"
_STATUS = re.compile(rf"[^\w\s] \S.{{0,120}}\([\dhms ]{{1,20}} • {_INTERRUPTS}\)")
_FOOTER = re.compile(
    r"  (?:\S.{0,200} · (?P<folder>[~/]\S*)|\? for shortcuts|.{0,200}\b(?:to view|again to|context left)\b)"
)
_KEYS = re.compile(r".{0,120}\b(?:enter|esc) (?:to )?[a-z]")  # which keys a dialog takes, in its last row
_CHOICE = re.compile(r"› \d{1,2}\. ")
_PAGER = re.compile(r"/ (?:\S ){3,20}/ / / ")
_SCROLLED = re.compile(r" {2,}↓ Back to bottom\b")
_QUEUE = re.compile(r"• \S.{0,160}$")
_WAITING = "  ↳ "
_TIP = "  └ Tip: "
_CARD = re.compile(r"  [A-Z][\w. ]{1,30}: {2,}\S")  # a line of what `/status` shows
_LETTER = re.compile(r"\w")
_LIST = re.compile(r"  •(?: |$)")
_ITEM = re.compile(r" {2,40}(?:[•◦▪-]|\d{1,3}[.)]) ")
_FOOTER_ROWS = 2
_BANNER_ROWS = 8
_ROOM_ABOVE = 2  # blank rows between the conversation and the input field
_NEAR = 14  # rows above the input field in which the status and what waits in the queue stand


# the layout of a frame ------------------------------------------------------------------------------------------------
def find_layout(rows: Sequence[PaintedRow]) -> ScreenLayout | None:
    """Divide a frame; None for one that this program did not draw."""
    texts = [row.text for row in rows]
    if _is_covered(texts):
        return ScreenLayout(PROGRAM, state="covered")
    found = _find_input(texts)
    if found is None:
        return None
    field, end = found
    title, footer = _read_banner(texts[:field]), _read_footer(texts[end:])
    typed = _read_typed(texts[field:end], len(rows[field].cells))
    if texts[field - _ROOM_ABOVE] and not _SCROLLED.match(texts[field - _ROOM_ABOVE]):
        return ScreenLayout(PROGRAM, (), "covered", title, footer, typed)
    bottom = _find_end(texts, field)
    status = next((text for text in texts[bottom:field] if _STATUS.match(text)), "")
    footer = f"{footer}\n{status}".rstrip()
    conversation = _cut_edges(rows, bottom)
    state = "covered" if _is_half_drawn(conversation) else _find_state([row.text for row in conversation], title)
    return ScreenLayout(PROGRAM, conversation if state == "talk" else (), state, title, footer, typed)


def _find_state(texts: Sequence[str], title: str) -> str:
    """Return whether a conversation is open: below the banner, or with its letters. The home screen may show a logo."""
    if any(text[:1] not in ("", " ") or _CARD.match(text) for text in texts):
        return "talk"
    if title or (any(texts) and not any(_LETTER.search(text) for text in texts)):
        return "home"
    return "talk" if any(texts) else "covered"


def _is_covered(texts: Sequence[str]) -> bool:
    """Whether the pager or a dialog stands where the conversation or the input field was."""
    if _PAGER.match(texts[0]):
        return True
    last = next((text for text in reversed(texts) if text), "")
    mark = next((text for text in reversed(texts) if text[:1] == _MARK), "")
    return _CHOICE.match(mark) is not None and _KEYS.match(last) is not None


def _find_input(texts: Sequence[str]) -> tuple[int, int] | None:
    """Return the first row of the input field and the row of the footer: its mark is the last one, a blank row ends it."""
    marks = (_MARK, _SHELL_MARK)
    field = next((n for n in range(len(texts) - 1, _ROOM_ABOVE - 1, -1) if texts[n][:1] in marks), None)
    if field is None or texts[field - 1] or any(text[:1] not in ("", " ") for text in texts[field + 1 :]):
        return None
    last = next(n for n in range(len(texts) - 1, -1, -1) if texts[n])
    for end in range(max(field + 2, last + 1 - _FOOTER_ROWS), last + 1):  # the program may use a part of the screen
        if not texts[end - 1] and _FOOTER.match(texts[end]):
            return field, end
    return None


def _find_end(texts: Sequence[str], field: int) -> int:
    """Return the row below the conversation: where the status, the queue, or else the room above the input field begins."""
    end = field - _ROOM_ABOVE
    for number in range(max(0, field - _NEAR), end):
        waits = texts[number + 1].startswith(_WAITING) and _QUEUE.match(texts[number])
        if waits or (_INTERRUPTS in texts[number] and _STATUS.match(texts[number])):
            return number
    return end


def _cut_edges(rows: Sequence[PaintedRow], end: int) -> list[PaintedRow]:
    """Return the rows of the conversation without banner and repeated prompt at the top and the tip below an answer."""
    start = _find_start(rows, end)
    tip = next((n for n in range(max(start, end - 8), end) if _is_tip(rows, n)), None)
    if tip is None:
        return _close_lists(rows[start:end])
    below = tip + 1
    while below < end and rows[below].text.startswith("    "):
        below += 1
    return _close_lists([*rows[start:tip], *rows[below:end]])


def _close_lists(rows: Sequence[PaintedRow]) -> list[PaintedRow]:
    """Return the rows without the blank ones above items of lists: Codex adds and drops them while it draws the same list."""
    return [
        row for number, row in enumerate(rows) if row.text or number + 1 == len(rows) or not _is_item(rows[number + 1])
    ]


def _is_half_drawn(rows: Sequence[PaintedRow]) -> bool:
    """Whether a list stands right below a prompt: for a moment the first lines of the answer are missing."""
    above = ""
    for row in rows:
        if above == _MARK and _is_item(row):
            return True
        above = row.text[:1].strip() or above
    return False


def _is_item(row: PaintedRow) -> bool:
    """Whether a row begins with the mark of a list item, which has a colour in answers."""
    found = _ITEM.match(row.text)
    return found is not None and row.inks[found.end() - 2 : found.end() - 1] not in ("", NO_INK)


def _find_start(rows: Sequence[PaintedRow], end: int) -> int:
    """Return the first row below the banner, which scrolls with the conversation, or below the repeated prompt."""
    if rows[0].text[:1] == _MARK:
        return 1
    start = 0
    for number in range(min(_BANNER_ROWS, end)):
        text = rows[number].text
        if _BANNER.match(text) or _BELOW_BANNER.match(text):
            start = number + 1
        elif text:
            break
    return start


def _is_tip(rows: Sequence[PaintedRow], number: int) -> bool:
    """Whether a row is a tip: it hangs below an answer as output hangs below a command, whose mark has a colour."""
    if not rows[number].text.startswith(_TIP):
        return False
    above = rows[number - 1]
    is_command = above.text.startswith("• Exited (") or (above.text.startswith("• Ran ") and above.inks[:1] != NO_INK)
    return not is_command


def _read_banner(texts: Sequence[str]) -> str:
    return next((text.strip() for text in texts if "OpenAI" in text and _BANNER.match(text)), "")


def _read_footer(texts: Sequence[str]) -> str:
    """Return the rows below the input field; model and folder each in a line of its own."""
    lines: list[str] = []
    for text in texts:
        lines += re.split(r" · (?=[~/])", text.strip()) if _is_model_row(text) else [text.strip()]
    return "\n".join(filter(None, lines))


def _is_model_row(text: str) -> bool:
    """Whether a row names model and folder."""
    found = _FOOTER.match(text)
    return found is not None and found["folder"] is not None


def _read_typed(texts: Sequence[str], columns: int) -> str:
    lines = trim_rows([text[2:] for text in texts])
    text = rejoin_rows(lines, max(columns - 3, 20))
    return "" if text == _PLACEHOLDER else text


# the conversation -----------------------------------------------------------------------------------------------------
_WORKED = re.compile(r"(?:  |─{1,200} )Worked for (?P<span><?[\d hms.]{1,20}?)(?: • \d{1,2}:\d\d)?(?: ─{1,400})?$")
_INTERRUPTED = re.compile(r"Conversation interrupted\b")
_CHANGED = re.compile(
    r"(?:Model changed to|Permissions updated to|Conversation reverted to|Thread forked from|Already viewing) \S"
    r"|Fork created\. "
)
_OWN_COMMAND = re.compile(r"You ran (?P<command>\S.*)$")
_REFUSED = re.compile(r"✗ You (?:canceled|denied|did not approve)\b")
_COMPACTED = re.compile(r"Context compacted\b")
_ROOM_BELOW_PROMPT = 2


def looks_like_codex(rows: Sequence[TranscriptRow]) -> int:
    """Return how many rows look like those of Codex; 0 where it did not greet."""
    if not any(_BANNER.match(row.text.lstrip("│")) for row in rows):
        return 0
    return sum(row.text.startswith(("› ", "• ", "  └ ")) for row in rows)


def read_codex(rows: Sequence[TranscriptRow], columns: int) -> list[list[DrawnSaying]]:
    """Return what was said in the rows of one segment, conversation by conversation."""
    found: list[list[DrawnSaying]] = []
    reader = _CodexReader(columns, "rest")
    printed = find_printed_rows(rows)
    for number, row in enumerate(rows):
        if _BANNER.match(row.text) and not reader.reads_own_command:  # `/status` shows it too
            reader.flush()
            if any(item.role != "system" for item in reader.said):
                found.append(reader.said)
                reader = _CodexReader(columns, "rest")
            reader.what = "banner"
        reader.take(row, goes_on=number in printed)
    reader.flush()
    return [said for said in [*found, reader.said] if said]


class _CodexReader(ItemReader):
    """Reads one conversation. An item of kind `rest` is one whose beginning was never drawn."""

    worked = _WORKED

    @property
    def reads_own_command(self) -> bool:
        """Whether the item at hand is a command of Codex itself and what it shows."""
        return self.what == "notice" and bool(self.rows) and self.rows[0].text.startswith("/")

    def take(self, row: TranscriptRow, goes_on: bool = False) -> None:
        """Take in the next row. One without a mark belongs to the item above it, as does one that surely `goes_on`."""
        what = "" if goes_on else _find_mark(row.text)
        if not what and self.what == "prompt" and _LIST.match(row.text) and colour_at(row, 2) is not None:
            what = "rest"  # the list of an answer whose first line is not drawn yet; what humans type has no colour
        if (
            not what
            and self.what == "prompt"
            and self._ends_block(row.text)
            and row.line.first > self.rows[0].line.last
        ):
            what = "rest"  # an answer without its mark as yet: a prompt is drawn as a whole
        if not what and self.what in ("worked", "banner") and self._ends_block(row.text):
            what = "rest"
        if what:
            self.flush()
            self.what = what
        if self.rows or row.text.strip():  # an item begins with words
            self.rows.append(row)

    def _ends_block(self, text: str) -> bool:
        return bool(text) and bool(self.rows) and not self.rows[-1].text

    # items ------------------------------------------------------------------------------------------------------------
    def _read_banner(self, rows: list[TranscriptRow]) -> None:
        """Say nothing: version and folder are what the client shows around the conversation."""

    def _read_rest(self, rows: list[TranscriptRow]) -> None:
        """Read the end of something. Only prompts have two blank rows below; one without its beginning is no prompt."""
        text = "\n".join(_body(rows))
        if self.room >= _ROOM_BELOW_PROMPT:
            self._add(rows, role="system", kind="notice", text=text, fidelity="partial")
        else:
            self._add(rows, role="assistant", text=text, fidelity="partial")

    def _read_prompt(self, rows: list[TranscriptRow]) -> None:
        """Read a prompt; the input field looks like one, but has its placeholder in it or the footer below it."""
        text = rejoin_rows(_body(rows), max(self.columns - 3, 20))
        is_field = any(_is_model_row(row.text) and not above.text for above, row in pairwise(rows[-_FOOTER_ROWS - 1 :]))
        is_placeholder = _PLACEHOLDER.startswith(text) or text.startswith(f"{_PLACEHOLDER}\n")
        if text and not is_placeholder and not is_field:
            self._add(rows, role="user", text=text, starts_turn=True)

    def _read_command(self, rows: list[TranscriptRow]) -> None:
        """Read a command in full; without its end it may as well stand in a shell."""
        call = read_full_command(rows)
        if call is None:
            self._read_notice(rows)
        else:
            self._add(rows, role="assistant", calls=(call,))

    def _read_own_command(self, rows: list[TranscriptRow], command: str) -> None:
        """Read a command that the human ran."""
        self._add(rows[:1], role="user", kind="shell", text=command, starts_turn=True)
        if len(rows) > 1:
            self._add(rows[1:], role="system", kind="output", text="\n".join(read_output(rows[1:])))

    def _read_bullet(self, rows: list[TranscriptRow]) -> None:
        if _STATUS.match(rows[0].text):
            return
        calls = read_calls(rows)
        if calls:
            self._add(rows, role="assistant", calls=tuple(map(self._note_refusal, calls)))
            return
        text = "\n".join(_body(rows))
        own = _OWN_COMMAND.match(text.split("\n", 1)[0])
        if own is not None and len(rows) > 1 and rows[1].text.startswith("  └ "):
            self._read_own_command(rows, own["command"])
        elif _COMPACTED.match(text):
            self._add(rows, role="system", kind="compaction", text=text)
        elif _CHANGED.match(text):
            self._add(rows, role="system", kind="notice", text=text)
        else:
            self._add(rows, role="assistant", text=text)

    def _note_refusal(self, call: DrawnCall) -> DrawnCall:
        """Return the call as refused where the notice above says so."""
        last = self.said[-1] if self.said else None
        refused = last is not None and last.kind == "notice" and _REFUSED.match(last.text) is not None
        return replace(call, status="error", error_class="rejected", action="") if refused else call

    def _read_failure(self, rows: list[TranscriptRow]) -> None:
        text = "\n".join(_body(rows))
        if _INTERRUPTED.match(text):
            self._add_interrupt(rows, text, stops_notice=False)
        else:  # the request was answered with it
            self._add(rows, role="assistant", kind="notice", text=text)

    def _read_notice(self, rows: list[TranscriptRow]) -> None:
        self._add(rows, role="system", kind="notice", text="\n".join(trim_rows([row.text for row in rows])))


def _find_mark(text: str) -> str:
    """Return what the beginning of a row says about it; empty for a row that goes on."""
    if _WORKED.match(text):
        return "worked"
    first = text[:1]
    if first in ("", " "):
        return ""
    if text[1:2] in ("", " "):
        return {_MARK: "prompt", "•": "bullet", "■": "failure", "$": "command"}.get(first, "notice")
    return "notice"


def _body(rows: Sequence[TranscriptRow]) -> list[str]:
    """Return the lines of an item without its mark and the indent of the lines below."""
    return trim_rows([row.text[2:] if not row.text[:2].strip(" ›•■") else row.text for row in rows])
