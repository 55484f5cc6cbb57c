"""Screens of Gemini CLI: ` > prompt`, `✦ answer`, calls in boxes or in rows of their own, one below the other.

    ╭────────────────────╮        ✓  ReadFile  notes.txt
    │ ✓  Shell seq 1 5   │        ✓  Edit  notes.txt → Accepted (+1, -1)
    │                    │            2 - two
    │ 1                  │            2 + zwei
    ╰────────────────────╯

Everything is told by the mark a row begins with; what is indented below it belongs to it.

Titles of the calls of Gemini CLI: `✓  Shell seq 1 5`, `✓  Edit  notes.txt → Accepted (+1, -1)`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from everturn.sources.terminal import tools
from everturn.sources.terminal.prompts import split_talks
from everturn.sources.terminal.rows import (
    ItemReader,
    TranscriptRow,
    dedent_rows,
    indent,
    item_lines,
    rejoin_rows,
    trim_rows,
)
from everturn.sources.terminal.transcript import DrawnCall, DrawnSaying

_RULE = re.compile(r"[─━]{20,}$")
_STATUS = re.compile(r".{0,400}(?:\(esc to cancel\b|\? for shortcuts$)| Press Ctrl\+O to ")
_ASKED = re.compile(r"│ \? {1,2}\S")
_BELOW = re.compile(r" [>*!$](?: |$)|\(r:\)| (?:YOLO|Shift\+Tab|auto-accept|plan)\b| \S{1,20} (?:Ctrl\+Y|Shift\+Tab)\b")
_BELOW_ROWS = 5  # of the rule, among which the mode or the input field is
_PANEL = re.compile(r" Shortcuts\b.{0,40}/help")
_PANEL_ROWS = 20
_STATUS_ROWS = 2  # a notice and the status line, or blanks in their place

_PROMPT = re.compile(r" > (?P<words>\S.*)$")
_SHELL = re.compile(r" [!$] (?P<words>\S.*)$")
_ANSWER = re.compile(r"✦ (?P<words>.*)$")
_NOTICE = re.compile(r"(?P<mark>[ℹ✕⚠✖×]) {1,2}(?P<words>\S.*)$")
_GREETING = re.compile(r".{0,20}\bGemini CLI v\d| ?███ {1,12}█{6,}")
_TOP, _BOTTOM, _SIDE = "╭", "╰", "│"
_NOISE = re.compile(r" Press Ctrl\+O to | Todo {1,3}\d{1,3}/\d{1,3} completed\b| *[\u2800-\u28ff] ")
_CANCELLED = re.compile(r"(?:Request|User) cancelled\b", re.IGNORECASE)
_EMPTY_INPUT = "Type your message or @path/to/file"
_FIELD = re.compile(r" [>*](?: |$)")
_LAST_ROWS = 120  # of a transcript, among which the input field is


def find_live_part(texts: Sequence[str]) -> int | None:
    """Return the first row at the bottom that is no part of the conversation; None where no input field is shown.

    That is the status line, the rule and the input field below it, or a box that asks for permission.
    """
    for number in range(len(texts) - 1, -1, -1):
        text = texts[number]
        below = texts[number + 1 : number + 1 + _BELOW_ROWS]
        if text.startswith("──") and _RULE.match(text) and any(map(_BELOW.match, below)):
            return _first_status_row(texts, number)
        if text.startswith("╭─") and number + 1 < len(texts) and _ASKED.match(texts[number + 1]):
            return number
    return None


def read_typed(texts: Sequence[str]) -> str | None:
    """Return what is in the input field among the rows of the live part; None where no field for prompts is shown."""
    rule = next((number for number, text in enumerate(texts) if _RULE.match(text)), None)
    below = range(rule + 1, len(texts)) if rule is not None else range(0)
    first = next((number for number in below if _FIELD.match(texts[number])), None)
    if first is None:
        return None
    end = next((number for number in range(first, len(texts)) if not texts[number]), len(texts))
    typed = "\n".join(line.strip() for line in (texts[first][2:], *texts[first + 1 : end])).strip()
    return "" if typed == _EMPTY_INPUT else typed


def _first_status_row(texts: Sequence[str], rule: int) -> int:
    """Return the first of the rows between the conversation and the rule: notices, status, the panel of shortcuts."""
    rule = max(0, rule - _STATUS_ROWS)
    while rule and (not texts[rule - 1] or _STATUS.match(texts[rule - 1])):
        rule -= 1
    return next((n for n in range(rule - 1, max(-1, rule - _PANEL_ROWS), -1) if _PANEL.match(texts[n])), rule)


def looks_like_gemini(rows: Sequence[TranscriptRow]) -> int:
    """Return how many rows begin like parts of such a conversation; 0 without both sides of one.

    On a screen that shows only a part of an answer the empty input field stands for the other side.
    """
    asked = said = greeted = shown = 0
    for row in rows:
        text = row.text
        shown += _EMPTY_INPUT in text
        asked += _PROMPT.match(text) is not None and _EMPTY_INPUT not in text
        said += text.startswith("✦ ") or _mark(text) == "tool"
        greeted += _GREETING.match(text) is not None
    return asked + said + greeted if (asked and said + greeted) or (shown and said) else 0


def read_gemini(rows: Sequence[TranscriptRow], columns: int) -> list[list[DrawnSaying]]:
    """Return what was said in the rows of one segment, conversation by conversation."""
    reader = _GeminiReader(columns)
    for row in _drop_input(rows):
        reader.row(row)
    reader.flush()
    return [_drop_drawn_twice(_drop_leftovers(said)) for said in split_talks(reader.said, reader.starts)]


def _drop_input(rows: Sequence[TranscriptRow]) -> Sequence[TranscriptRow]:
    """Return the rows without the input field at the end; a question for permission stays."""
    first = max(0, len(rows) - _LAST_ROWS)
    live = find_live_part([row.text for row in rows[first:]])
    if live is None or rows[first + live].text.startswith(_TOP):
        return rows
    return rows[: first + live]


class _GeminiReader(ItemReader):
    fresh = re.compile(r"/(?:clear|new)\s*$")

    def row(self, row: TranscriptRow) -> None:
        """Take in the next row. One without a mark belongs to what is above it when it is empty or indented."""
        text = row.text
        if _GREETING.match(text):
            self.flush()
            self.starts.append(len(self.said))
            self.what = "greeting"
        elif _NOISE.match(text):
            return
        what = _mark(text)
        if not what and text and self.what not in ("outside", "greeting") and indent(text) < 2:
            what = "box" if self.what == "box" and text.startswith((_SIDE, _BOTTOM)) else "outside"
            if self.what == "answer" and self.rows[-1].text:  # the end of a line that the terminal itself has folded
                what = ""
        if what and not (what == self.what == "box" and not text.startswith(_TOP)):
            self.flush()
            self.what = what
        self.rows.append(row)

    # items ------------------------------------------------------------------------------------------------------------
    def _read_greeting(self, rows: list[TranscriptRow]) -> None:
        """Say nothing: it is what the client shows before the conversation."""

    def _read_prompt(self, rows: list[TranscriptRow]) -> None:
        self._add_prompt(rows, rejoin_rows(item_lines(rows, 3), max(self.columns - 4, 20)))

    def _read_shell(self, rows: list[TranscriptRow]) -> None:
        self._add(rows, role="user", kind="shell", text="\n".join(item_lines(rows, 3)), starts_turn=True)

    def _read_answer(self, rows: list[TranscriptRow]) -> None:
        self._add(rows, role="assistant", text="\n".join(item_lines(rows, 2)))

    def _read_notice(self, rows: list[TranscriptRow]) -> None:
        found = _NOTICE.match(rows[0].text)
        words = found["words"] if found else rows[0].text
        text = "\n".join(trim_rows([words, *dedent_rows([row.text for row in rows[1:]], 3)]))
        if _CANCELLED.match(words):
            self._add_interrupt(rows, text)
        else:
            self._add(rows, role="system", kind="notice", text=text)

    def _read_tool(self, rows: list[TranscriptRow]) -> None:
        call = read_call_title(rows[0].text.strip())
        if call is not None:
            output = dedent_rows([row.text for row in rows[1:]], 6)
            self._add_call(call, rows, output)

    def _read_box(self, rows: list[TranscriptRow]) -> None:
        """Read the calls of a box. A title stands at its top or below a blank row, and is followed by one."""
        lines = [row.text.strip(_SIDE).strip() if row.text.startswith(_SIDE) else "" for row in rows]
        starts = [n for n, line in enumerate(lines) if (n == 0 or not lines[n - 1]) and read_call_title(line)]
        if not starts:
            self._read_outside(rows)
            return
        for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
            blank = next((n for n in range(start, end) if not lines[n]), end)
            call = read_call_title(" ".join(lines[start:blank]))
            if call is not None:
                output = [_inside(row.text) for row in rows[blank:end] if row.text.startswith(_SIDE)]
                self._add_call(call, rows[start:end], output, any(row.text.startswith(_BOTTOM) for row in rows))

    def _add_call(self, call: DrawnCall, rows: list[TranscriptRow], output: list[str], whole: bool = False) -> None:
        """Add a call. The client draws some twice, above and below others; only a whole box is surely a call of its own."""
        call = close_call(call, "\n".join(trim_rows(output)))
        if whole or not self._is_known(call):
            call = replace(call, lines=(rows[0].index, rows[-1].index))
            self._add(rows, role="assistant", calls=(call,))

    def _is_known(self, call: DrawnCall) -> bool:
        """Return whether the same call is among those right above."""
        for item in reversed(self.said):
            if not item.calls:
                return False
            if any(replace(known, lines=call.lines) == call for known in item.calls):
                return True
        return False


def _inside(text: str) -> str:
    """Return what stands between the sides of a box."""
    return text.removeprefix(_SIDE).removesuffix(_SIDE).rstrip().removeprefix(" ")


def _mark(text: str) -> str:
    """Return what the mark at the beginning of a row says it is; empty for none."""
    first = text.lstrip(" ")[:1]
    if not first or (first.isascii() and first.isalnum() and first not in "ox"):
        return ""
    for what, pattern in _MARKS:
        if pattern.match(text):
            return what
    if text.startswith(_TOP):
        return "box"
    return "tool" if indent(text) == 2 and first in OPEN + "✓✕x-" and read_call_title(text.strip()) else ""


_MARKS = (("prompt", _PROMPT), ("answer", _ANSWER), ("notice", _NOTICE), ("shell", _SHELL))


def _drop_leftovers(said: Sequence[DrawnSaying]) -> list[DrawnSaying]:
    """Return the items without prompts that are the beginning of the next one in the row below: blank rows part prompts."""
    return [
        item
        for item, following in zip(said, [*said[1:], None], strict=True)
        if following is None
        or not (item.starts_turn and following.starts_turn)
        or item.lines[1] + 1 != following.lines[0]
        or not following.text.startswith(item.text)
    ]


def _drop_drawn_twice(said: Sequence[DrawnSaying]) -> list[DrawnSaying]:
    """Return the items without calls that were seen at work where the same call is seen done in the same turn."""
    found: list[DrawnSaying] = []
    start = 0
    for number in range(len(said) + 1):
        if number < len(said) and not said[number].starts_turn:
            continue
        turn = said[start:number]
        done = {_call_key(call) for item in turn for call in item.calls if call.status != "open"}
        found += [
            item
            for item in turn
            if not item.calls or any(call.status != "open" or _call_key(call) not in done for call in item.calls)
        ]
        start = number
    return found


def _call_key(call: DrawnCall) -> tuple[str, str, str]:
    return call.name, call.path, call.command


# --- Titles of the calls of Gemini CLI: `✓  Shell seq 1 5`, `✓  Edit  notes.txt → Accepted (+1, -1)` ---
#: Marks of a call that waits for its turn or for permission, or is at work.
OPEN = "o?⊶⊷"
_TITLE = re.compile(r"(?P<state>[o?⊶⊷✓✕x-]) {1,2}(?P<name>[A-Z][A-Za-z]{1,40}(?: Memory)?)(?: {1,2}(?P<words>\S.*))?$")
_FAILED = {"x": "other", "✕": "other", "-": "rejected"}
_NAMES = {  # as drawn → the tool's own name, its kind
    "Shell": ("run_shell_command", "shell"),
    "ReadFile": ("read_file", "read"),
    "ReadManyFiles": ("read_many_files", "read"),
    "WriteFile": ("write_file", "create"),
    "Edit": ("replace", "edit"),
    "ReadFolder": ("list_directory", "search"),
    "FindFiles": ("glob", "search"),
    "SearchText": ("search_file_content", "search"),
    "WebFetch": ("web_fetch", "fetch"),
    "GoogleSearch": ("google_web_search", "search"),
    "WriteTodos": ("write_todos", "plan"),
    "Save Memory": ("save_memory", "other"),
}
_ACTIONS = {"read": "read", "create": "created", "edit": "edited"}
_FOLDER = re.compile(r" \[(?:in|current working directory) [^\]]{0,400}\]")
_OUTCOME = re.compile(r" → (?P<outcome>.{1,80})$")


def read_call_title(title: str) -> DrawnCall | None:
    """Return the call that a title names, without its output; None for what is no title."""
    found = _TITLE.match(title)
    if found is None:
        return None
    name, kind = _NAMES.get(found["name"], (found["name"], "other"))
    words = (found["words"] or "").strip()
    status = "open" if found["state"] in OPEN else "error" if found["state"] in _FAILED else "ok"
    call = DrawnCall(
        name, kind, title[1:].strip(), status=status, error_class=_FAILED.get(found["state"], ""),
        action=_ACTIONS.get(kind, "") if status == "ok" else "",
    )  # fmt: skip
    if kind == "shell":
        return replace(call, command=_FOLDER.sub("", words))
    if kind in _ACTIONS:
        outcome = _OUTCOME.search(words)
        path = _OUTCOME.sub("", words).removeprefix("Writing to ")
        return replace(call, path=path.split(": ", 1)[0], output=outcome["outcome"] if outcome else "")
    return replace(call, pattern=words) if kind == "search" else call


def close_call(call: DrawnCall, text: str) -> DrawnCall:
    """Return the call with what is drawn below it."""
    output = "\n".join(part for part in (call.output, text) if part)
    if call.status == "error" and call.error_class == "other":
        return replace(call, output=output, error_class=tools.error_class(output))
    return replace(call, output=output)
