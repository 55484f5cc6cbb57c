"""Conversations on the main screen (Claude Code): `❯ prompt`, `● answer`, `⎿ output`, one below the other as they scroll by.

Everything is told by the mark a row begins with; what is indented below it belongs to it. The input field at the bottom,
the line that turns while the model works, menus and hints are no part of the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec.structs import replace

from everturn.sources.terminal import tools
from everturn.sources.terminal.rows import (
    ItemReader,
    TranscriptRow,
    colour_at,
    dedent_rows,
    indent,
    is_red,
    item_lines,
    place_saying,
    rejoin_rows,
    trim_rows,
)
from everturn.sources.terminal.transcript import DrawnCall, DrawnSaying

_SPINNER = "·✢✳✶✻✽∗*✺"
_PROMPT = re.compile(r"[>❯] (?!\d{1,2}\. )(?P<words>\S.*)$")
_FRESH = re.compile(r"/(?:clear|new|reset)\s*$")
_SHELL = re.compile(r"! (?P<words>\S.*)$")
_ANSWER = re.compile(r"[●⏺] ?(?P<words>.*)$")
_OUTPUT = re.compile(r" {1,4}⎿[ \xa0]{1,3}(?P<words>.*)$")
_THINKING = re.compile(rf"[∴{_SPINNER}] (?:Thinking…|Thought for (?P<span>[\d hms.]+?))(?: \(.*\))?$")
_WORKED = re.compile(rf"[{_SPINNER}] [A-Z]\w+ for (?P<span>[\d hms.]+?)(?: [·•(].*)?$")
_WORKING = re.compile(rf"[{_SPINNER}] .*…(?: ?\(.*\)?)?$")
_COMPACTED = re.compile(
    rf"(?:[{_SPINNER}] |[═─]{{2,}} ?)(?:Previous )?[Cc]onversation [Cc]ompacted\b|[═─]{{2,}} Compacted"
)
_SUMMARY = re.compile(r" {2}[A-Z].*\(ctrl\+[or] to expand\)$")
_RULE = re.compile(r"[─━]{20,}(?: \S.* [─━]+)?$")
_FRAME = re.compile(r" ?[╭╰│╮╯]")
_HINT = re.compile(r"  (?:\? for shortcuts|⏵⏵|⏸|← |esc to |ctrl\+|\S.*\(shift\+tab to cycle\))| *\S.*esc to interrupt")
_BANNER = re.compile(r" {0,4}[▐▝▘▛▜█▌]{1,9} ")
_GREETING = re.compile(r"[▐▛█▜▌✻│] .*(?:Claude Code v\d|Welcome to Claude Code)")
_INTERRUPTED = re.compile(r"(?:\[?Request )?[Ii]nterrupted\b")
_RUNNING = re.compile(r"(?:Running|Waiting|Initializing|Fetching|Searching|Reading)(?:…|\.\.\.)")
_FAILED = re.compile(r"Error\b|Exit code [1-9]|User rejected|No \(tell|Interrupted|.*\bnot found\b|<tool_use_error>")
_DONE = (
    ("created", re.compile(r"Wrote \d+ lines? to |Created ")),
    ("edited", re.compile(r"Updated |Added \d+ lines?|Removed \d+ lines?")),
)


_CHOICE = re.compile(r" {0,3}❯ \d{1,2}\. ")
_DIALOG = re.compile(r" {0,3}❯ \d{1,2}\. |.{0,80}\bEsc to (?:cancel|exit|go back)\b")
_INPUT = re.compile(r"[❯>!#&](?:[\s\xa0]|$)")
_FIELD = re.compile(r"[❯>](?:[\s\xa0]|$)")
_SUGGESTION = 'Try "'  # in an empty input field
_MOST_BELOW = 60  # rows between the line that turns and the input field


def find_live_part(texts: Sequence[str]) -> int | None:
    """Return the first row at the bottom that is no part of the conversation; None where no input field is shown.

    That is the input field between two rules, or a dialog below one, and above it the line that turns while the model works
    with all that hangs below it: tips, tasks, prompts that wait.
    """
    top = next((n for n in range(len(texts) - 1, -1, -1) if _begins_live_part(texts, n)), None)
    if top is None:  # a dialog may be taller than the screen
        return 0 if any(map(_CHOICE.match, texts)) and any(map(_DIALOG.match, texts[-3:])) else None
    for number in range(top - 1, max(-1, top - _MOST_BELOW), -1):
        text = texts[number]
        if _WORKING.match(text):
            return number
        if text and not text.startswith("  ") and not _PROMPT.match(text):
            break
    return top


def read_typed(texts: Sequence[str]) -> str | None:
    """Return what is in the input field among the rows of the live part; None where no field for prompts is shown."""
    for number, text in enumerate(texts):
        if number and _FIELD.match(text) and _RULE.match(texts[number - 1]):
            end = next((n for n in range(number + 1, len(texts)) if _RULE.match(texts[n])), len(texts))
            typed = "\n".join(line.strip() for line in (text[1:], *texts[number + 1 : end]))
            return "" if typed.startswith(_SUGGESTION) else typed.strip()
    return None


def _begins_live_part(texts: Sequence[str], number: int) -> bool:
    """Return whether a row is the rule above an input field or a dialog."""
    if not _RULE.match(texts[number]) or number + 1 == len(texts):
        return False
    if _INPUT.match(texts[number + 1]):
        return True
    below = texts[number + 1 :]
    return bool(below[0][:1] == " " and below[0][1:2].strip()) and any(map(_DIALOG.match, below))


def looks_prompted(rows: Sequence[TranscriptRow]) -> int:
    """Return how many rows begin like parts of such a conversation; 0 without both sides of one.

    On a screen that shows only a part of an answer the input field stands for the other side.
    """
    asked = said = greeted = 0
    for row in rows:
        asked += _PROMPT.match(row.text) is not None
        said += row.text.startswith(("● ", "⏺ ")) or _OUTPUT.match(row.text) is not None
        greeted += "Claude Code" in row.text
    if said and not asked and any(_RULE.match(row.text) for row in rows[-_MOST_BELOW:]):
        asked = int(find_live_part([row.text for row in rows]) is not None)
    return asked + said + greeted if asked and said + greeted else 0


def read_prompts(rows: Sequence[TranscriptRow], columns: int) -> list[list[DrawnSaying]]:
    """Return what was said in the rows of one segment, conversation by conversation, with what a shell printed between.

    The client greets when it starts, after `/clear`, and again when it draws all that was said once more: that is no other
    conversation.
    """
    reader = _PromptReader(columns)
    reader.what = "cut" if _is_cut(rows) else "outside"
    for row in _drop_input(rows):
        reader.row(row)
    reader.flush()
    return split_talks(reader.said, reader.starts)


def _is_cut(rows: Sequence[TranscriptRow]) -> bool:
    """Return whether a capture begins in the middle of something: all rows above the first mark are indented."""
    for row in rows:
        if _GREETING.search(row.text) or _mark(row.text) or _RULE.match(row.text):
            break
        if row.text and indent(row.text) < 2:
            return False
    return bool(rows) and any(row.text for row in rows[:1]) and indent(rows[0].text) >= 2


def split_talks(said: Sequence[DrawnSaying], starts: Iterable[int]) -> list[list[DrawnSaying]]:
    """Return the items conversation by conversation; `starts` says how many items came before each start of the client.

    Items that a start draws all over again come once.
    """
    items = _assign_commands(said)
    places = [*sorted(set(starts)), len(items)]
    found = [items[: places[0]]]
    for start, end in pairwise(places):
        more = items[start:end]
        if _is_redrawn(found[-1], more):
            found[-1] = [item for item in found[-1] if item.kind == "output" and item.role == "system"]
        if any(item.role == "assistant" for item in found[-1]):
            found.append(more)
        else:
            found[-1] = found[-1] + more
    return [one for one in found if one]


def _assign_commands(said: Sequence[DrawnSaying]) -> list[DrawnSaying]:
    """Return the items with commands that the client itself answered given to it; those the model answered are prompts."""
    found: list[DrawnSaying] = []
    answered = False
    for item in reversed(said):
        if item.kind == "command" and (not answered or _FRESH.match(item.text)):
            item = replace(item, role="system", starts_turn=False)
        if item.role != "system":
            answered = item.role == "assistant"
        elif item.kind == "command":
            answered = False
        found.append(item)
    return found[::-1]


def _is_redrawn(before: Sequence[DrawnSaying], after: Sequence[DrawnSaying]) -> bool:
    """Return whether one begins with all of the other, whose last words may have been cut off."""
    old, new = ([_key(item) for item in side if item.kind != "output"] for side in (before, after))
    if not old or len(new) < len(old):
        return False
    return old[:-1] == new[: len(old) - 1] and new[len(old) - 1][1].startswith(old[-1][1])


def _key(item: DrawnSaying) -> tuple[str, str]:
    return item.role, item.text or item.thinking or "\n".join(call.title for call in item.calls)


def _drop_input(rows: Sequence[TranscriptRow]) -> list[TranscriptRow]:
    """Return the rows without frames and without the input field.

    That is a prompt right below a rule, all up to the next rule, and the hints and the menu under it.
    """
    kept: list[TranscriptRow] = []
    inside = False
    for n, row in enumerate(rows):
        if _RULE.match(row.text):
            after = rows[n + 1].text if n + 1 < len(rows) else ""
            inside = not inside and after[:1] in "❯>!#" if after else False
            kept.append(replace(row, text="\0"))
        elif (inside and not _is_answer(row.text)) or _FRAME.match(row.text):
            continue
        else:
            inside = False
            kept.append(row)
    return _drop_menus(kept)


def _drop_menus(rows: Sequence[TranscriptRow]) -> list[TranscriptRow]:
    """Return the rows without what stands below a rule up to the next empty row: hints, menus, the status line."""
    kept: list[TranscriptRow] = []
    below = False
    for row in rows:
        if row.text == "\0":
            below = True
        elif below and not row.text.strip():
            below = False
        elif not below or _is_marked(row.text):
            below = False
            kept.append(row)
    return kept


def _is_answer(text: str) -> bool:
    """Return whether a row is nothing that a human types: an input field without its lower rule ends there at the latest."""
    return _ANSWER.match(text) is not None or _OUTPUT.match(text) is not None


def _is_marked(text: str) -> bool:
    return any(mark.match(text) for mark in (_PROMPT, _ANSWER, _OUTPUT, _WORKED, _COMPACTED))


class _PromptReader(ItemReader):
    fold: CallFold | None = None  # folded calls being read
    worked, fresh = _WORKED, _FRESH

    def row(self, row: TranscriptRow) -> None:
        """Take in the next row. One without a mark belongs to what is above it when it is empty or indented."""
        text = row.text
        if _GREETING.search(text):
            self.flush()
            self.what = "outside"
            self.starts.append(len(self.said))
        if _is_noise(text) or self._take_fold(row):
            return
        what = _mark(text) or ("answer" if self._is_unmarked_call(text) else "")
        if not what and text and indent(text) < 2 and self.what != "outside":
            what = "outside"
        if what:
            self.flush()
            self.what = what
        self.rows.append(row)

    def _is_unmarked_call(self, text: str) -> bool:
        """Return whether a row is the title of a call whose mark is just not shown: it blinks while the call runs."""
        blank = bool(self.rows) and not self.rows[-1].text.strip()
        return blank and text[:2] == "  " and text[2:3].isupper() and tools.read_prompt_title(text[2:]) is not None

    def _take_fold(self, row: TranscriptRow) -> bool:
        """Take in a row of folded calls; anything else but a blank ends them."""
        fold = self.fold or CallFold()
        if fold.add_title(row):
            if self.fold is None:
                self.flush()
                self.fold, self.what = fold, "answer"
            return True
        if self.fold is None:
            return False
        named = _OUTPUT.match(row.text)
        if (named and fold.add_hint(row, named["words"].strip())) or not row.text.strip():
            return True
        self.flush()
        return False

    def flush(self) -> None:
        """Finish the item being read."""
        if self.fold is not None:
            self._add(self.fold.rows, role="assistant", calls=self.fold.calls())
            self.fold = None
        super().flush()

    # items ------------------------------------------------------------------------------------------------------------
    def _read_cut(self, rows: list[TranscriptRow]) -> None:
        """Read the end of something that began above the first row: most likely of an answer."""
        text = "\n".join(trim_rows([row.text[2:] for row in rows]))
        self._add(rows, role="assistant", text=text, fidelity="partial")

    def _read_prompt(self, rows: list[TranscriptRow]) -> None:
        self._add_prompt(rows, rejoin_rows(item_lines(rows, 2), max(self.columns - 2, 20)))

    def _read_shell(self, rows: list[TranscriptRow]) -> None:
        self._add(rows, role="user", kind="shell", text="\n".join(item_lines(rows, 2)), starts_turn=True)

    def _read_answer(self, rows: list[TranscriptRow]) -> None:
        lines = item_lines(rows, 2)
        # The arguments of a call go on in rows indented further.
        title = "\n".join([lines[0], *dedent_rows(lines[1:], 4)]) if lines else ""
        goes_on = bool(lines) and all(line.startswith("    ") for line in lines[1:])
        call = tools.read_prompt_title(title) if goes_on else None
        if call is None:
            self._add(rows, role="assistant", text="\n".join(lines))
            return
        red = is_red(colour_at(rows[0], 0))
        span = (rows[0].index, rows[-1].index)
        call = replace(call, lines=span, status="error" if red else "open", action="" if red else call.action)
        self._add(rows, role="assistant", calls=(call,))

    def _read_summary(self, rows: list[TranscriptRow]) -> None:
        """Add a line into which the client folded something other than calls."""
        text = "\n".join(trim_rows([row.text.strip() for row in rows]))
        self._add(rows, role="assistant", kind="notice", text=text, fidelity="partial")

    def _read_thinking(self, rows: list[TranscriptRow]) -> None:
        if text := "\n".join(item_lines(rows[1:], 2)):
            self._add(rows, role="assistant", thinking=text)

    def _read_compacted(self, rows: list[TranscriptRow]) -> None:
        self._add(rows, role="system", kind="compaction", text=rows[0].text.strip(" ═─✻·*"))

    def _read_output(self, rows: list[TranscriptRow]) -> None:
        first = _OUTPUT.match(rows[0].text)
        head = first["words"] if first else rows[0].text
        lines = trim_rows([head, *dedent_rows([row.text for row in rows[1:]], 5)])
        text = "\n".join(lines)
        last = self.said[-1] if self.said else None
        if _INTERRUPTED.match(head):
            self._add_interrupt(rows, text)
        elif last is not None and last.calls:
            self._add_result(last, rows, text)
        else:
            # What a command of the client answered.
            self._add(rows, role="system", kind="output", text=text)

    def _add_result(self, last: DrawnSaying, rows: list[TranscriptRow], text: str) -> None:
        call = _close_call(last.calls[-1], text)
        call = replace(call, lines=(call.lines[0], rows[-1].index))
        where = place_saying(rows, role="assistant")
        self.said[-1] = replace(
            last, calls=(*last.calls[:-1], call), lines=call.lines,
            bytes=(min(last.bytes[0], where.bytes[0]), max(last.bytes[1], where.bytes[1])),
        )  # fmt: skip


def _mark(text: str) -> str:
    """Return what the mark at the beginning of a row says it is; empty for none."""
    first = text.lstrip(" ")[:1]
    if not first or (first.isascii() and first not in ">!*("):
        return "summary" if _SUMMARY.match(text) else ""
    for what, pattern in _MARKS:
        if pattern.match(text):
            return what
    return "summary" if _SUMMARY.match(text) else ""


_MARKS = (
    ("prompt", _PROMPT),
    ("shell", _SHELL),
    ("answer", _ANSWER),
    ("output", _OUTPUT),
    ("compacted", _COMPACTED),
    ("thinking", _THINKING),
    ("worked", _WORKED),
)


def _is_noise(text: str) -> bool:
    if _THINKING.match(text):
        return False
    noise = (_WORKING, _HINT, _BANNER)
    return text.strip() in ("❯", ">") or any(pattern.match(text) for pattern in noise)


def _close_call(call: DrawnCall, text: str) -> DrawnCall:
    """Return the call with its result."""
    output = f"{call.output}\n{text}".strip()
    if _RUNNING.match(text):
        return replace(call, output="", status="open")
    if call.status == "error" or _FAILED.match(text):
        return replace(call, output=output, status="error", error_class=tools.error_class(text), action="")
    action = next((done for done, words in _DONE if words.match(text)), call.action) if call.path else call.action
    return replace(call, output=output, status="ok", action=action)


# --- folded calls: `Reading 3 files… (ctrl+o to expand)`, later `Read 3 files (ctrl+o to expand)` ---
#: While calls run, the one at work is named below the line (`⎿  src/cli.py`, `⎿  $ ls`); afterwards only their number is left.
#: Lines of one fold follow each other without anything between them, because the client folds all it can.
_FOLD = re.compile(r"(?:[●⏺] |  )(?P<words>[A-Z][^()]{1,200}?)(?P<open>…)? \(ctrl\+[or] to expand\)$")
_PART = re.compile(r"(?P<verb>[A-Za-z]{2,20})(?: for)? (?P<number>\d{1,4}) (?P<thing>[a-z][\w -]{0,40})$")
_VERBS = {  # the beginning of a verb → name and kind of the call
    "read": ("Read", "read"),
    "search": ("Grep", "search"),
    "list": ("LS", "search"),
    "ran": ("Bash", "shell"),
    "run": ("Bash", "shell"),
    "edit": ("Edit", "edit"),
    "wr": ("Write", "create"),
    "fetch": ("WebFetch", "fetch"),
}
_MOST_CALLS = 200  # of one fold


class CallFold:
    """The lines of one fold, as far as they were drawn."""

    def __init__(self) -> None:
        self.rows: list[TranscriptRow] = []
        self._title = ""
        self._numbers: dict[tuple[str, str], int] = {}  # name and kind → how many calls
        self._hints: list[str] = []
        self._done = False

    def add_title(self, row: TranscriptRow) -> bool:
        """Take in a row that says how many calls there are; False for any other row."""
        found = _FOLD.match(row.text)
        parts = [_PART.match(part.strip()) for part in found["words"].split(", ")] if found else []
        if found is None or not all(parts):
            return False
        for part in parts:
            if part is not None:
                call = _folded_name(part["verb"])
                self._numbers[call] = max(self._numbers.get(call, 0), int(part["number"]))
        self._title, self._done = found["words"], not found["open"]
        self.rows.append(row)
        return True

    def add_hint(self, row: TranscriptRow, words: str) -> bool:
        """Take in a row that names a call at work; False once all are done."""
        if self._done:
            return False
        if words and words not in self._hints:
            self._hints.append(words)
        self.rows.append(row)
        return True

    def calls(self) -> tuple[DrawnCall, ...]:
        """Return as many calls as the fold counts, and what is known of them."""
        title = "\n".join([self._title, *self._hints])
        status = "ok" if self._done else "open"
        hints = list(self._hints)
        found: list[DrawnCall] = []
        for (name, kind), number in self._numbers.items():
            for _ in range(min(number, _MOST_CALLS)):
                hint = next((one for one in hints if _fits(one, kind)), "")
                if hint:
                    hints.remove(hint)
                found.append(_folded_call(name, kind, title, hint, status))
        return tuple(found[:_MOST_CALLS])


def _folded_name(verb: str) -> tuple[str, str]:
    word = verb.lower()
    return next((call for start, call in _VERBS.items() if word.startswith(start)), (verb, "other"))


def _fits(hint: str, kind: str) -> bool:
    """Return whether a call may be the one that is named. What is read or listed may be so by a command."""
    return hint.startswith("$ ") or kind not in ("search", "shell") or (kind == "search") == hint.startswith('"')


def _folded_call(name: str, kind: str, title: str, hint: str, status: str) -> DrawnCall:
    if hint.startswith("$ "):
        return DrawnCall("Bash", "shell", title, command=hint[2:], status=status)
    if kind == "search":
        return DrawnCall(name, kind, title, pattern=hint.strip('"'), status=status)
    path = hint if kind in ("read", "edit", "create") else ""
    action = {"read": "read", "edit": "edited", "create": "created"}.get(kind, "") if path else ""
    return DrawnCall(name, kind, title, path=path, status=status, action=action if status == "ok" else "")
