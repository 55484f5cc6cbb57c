"""Messages of the archive as compact text for a model, and the parts of an answer.

    [Turn 12] user:
      Can you add refresh tokens?

    [Turn 13] tool:read_file(path="src/auth.py")
      [245 lines — content truncated, use range action for full output]

A line that starts in the first column is ours; every line of a transcript is indented by two blanks, so that none can pass
for another message. An `AnswerEntry` is one message, or one call with its result, already without secrets and control
characters, and not more of it than could ever be shown.

`conversation_recall` has no arguments for the session and the part of a turn, so its `query` carries them: `session:3f2a9c1b`
names a session by a prefix of its id, `message:7` or `message:7-12` messages of a turn, `line:200-` lines of a message. An
answer that could not show everything ends with such calls, ready to be made (`RecallRequest.again`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.archive import Call, Session, SessionText
from everturn.model.conversation import CallStart
from everturn.sessions.messages import Passage, Sources, TurnView, argument_text, is_quiet, passages
from everturn.store.contract import Store
from everturn.text.printable import Clean, one_line, plural, printable, safe_line, safe_text, short_folder
from everturn.text.times import iso

if TYPE_CHECKING:
    from everturn.retrieval.meaning import MeaningSearch


TRUNCATED = "[{} — content truncated, use range action for full output]"
INDENT = "  "

#: Characters kept of each end of a long text: no answer has room for more.
_END = 20_000
_LINE = 2000
_SHORT = 120  # characters of an argument shown in the line of the call
_NAMES = {"prompt": "user", "answer": "assistant", "thinking": "assistant (thinking)", "interrupt": "user"}
_MARKS = {"interrupt": "[interrupted]", "compaction": "[the context was compacted here]"}


class AnswerEntry(Struct, frozen=True):
    """One message or call. `turn` and `seq` are those of the archive, counted from 0."""

    session: int
    turn: int
    seq: int
    head: str  # `user:`, `tool:read_file(path="…")`
    text: str
    lines: int  # of the whole text
    is_output: bool = False  # of a tool, or thoughts: cut first
    is_cut: bool = False
    is_match: bool = False


class TurnPart(Struct, frozen=True):
    """A range of messages of a turn and of their lines; counted from 1, both ends included."""

    first: int = 1
    last: int | None = None
    first_line: int = 1
    last_line: int | None = None

    @property
    def is_paged(self) -> bool:
        """Whether one message is read page by page: its lines are then shown from the first."""
        return self.first == self.last or self.first_line > 1 or self.last_line is not None


WHOLE = TurnPart()


def entries_of(
    store: Store, sources: Sources, session: Session, view: TurnView, clean: Clean, part: TurnPart = WHOLE, whole: bool = False,
    quiet: bool = False,
) -> Iterator[AnswerEntry]:  # fmt: skip
    """Yield the entries of a turn. `whole`: also the middle of very long texts; `quiet`: also what the client inserted."""
    rows = [row for row in view.rows if part.first <= row.seq + 1 <= (part.last or row.seq + 1)]
    selected = TurnView(view.turn, view.steps, view.calls, rows)
    seq = rows[0].seq if rows else 0
    for passage in passages(store, sources, session, selected, results=True):
        seq = passage.row.seq if passage.row else seq
        if (quiet or not is_quiet(passage)) and (entry := entry_of(session, view.turn.idx, seq, passage, clean)):
            yield entry if whole else shorten_entry(entry, part)


def entry_of(session: Session, turn: int, seq: int, passage: Passage, clean: Clean) -> AnswerEntry | None:
    """Return the entry of a passage with all of its text; None if it is empty."""
    if passage.kind in ("call", "result"):
        parts = [*_long_arguments(passage.start, clean), _failure_text(passage.call)]
        if passage.result is not None:
            parts.append(safe_text(passage.result.text, clean))
        head, text = _head_of_call(passage, clean), "\n".join(filter(None, parts))
    else:
        name = _NAMES.get(passage.kind, passage.kind)
        head, text = f"{name}:", _MARKS.get(passage.kind) or safe_text(passage.text, clean)
    if not text.strip() and passage.kind not in ("call", "result"):
        return None
    is_output = passage.kind in ("call", "result", "thinking", "output", "unknown")
    return AnswerEntry(session.id, turn, seq, head, text, text.count("\n") + 1 if text else 0, is_output)


def show_entry(entry: AnswerEntry) -> str:
    return f"[Turn {entry.turn + 1}] {entry.head}\n{indent_text(entry.text)}".rstrip()


def indent_text(text: str) -> str:
    """Indent every line by two blanks; empty ones stay empty."""
    return "\n".join(f"{INDENT}{line}" if line else "" for line in text.split("\n"))


def cut_notice(lines: int) -> str:
    """Return the line in place of text that was cut."""
    return TRUNCATED.format(plural(lines, "line"))


def session_line(session: Session, text: SessionText, short: str, clean: Clean) -> str:
    """Return the heading of a session in a quotation: its handle and its facts."""
    facts = [
        session.agent, iso(session.ended)[:10], safe_line(short_folder(text.workspace), clean, 60),
        "" if session.state == "current" else "older version",
        safe_line(text.title or text.first_prompt, clean, 80),
    ]  # fmt: skip
    return f"[Session {handle(short)}] " + " · ".join(filter(None, facts))


def handle(name: str) -> str:
    """Return a foreign id in a form that is safe in our lines and arguments."""
    return one_line(name, 200).replace('"', "").replace(" ", "")


def shorten_entry(entry: AnswerEntry, part: TurnPart = WHOLE) -> AnswerEntry:
    """Return the requested lines, and of a very long text its two ends."""
    if part.is_paged:
        return _page_lines(entry, part)
    if len(entry.text) <= 2 * _END + 200:
        return entry
    ends = (entry.text[:_END], cut_notice(entry.lines), entry.text[-_END:])
    return replace(entry, text="\n".join(ends), is_cut=True)


def _page_lines(entry: AnswerEntry, part: TurnPart) -> AnswerEntry:
    """Return lines by number. Lines are split after 2,000 characters, so that there is always a next one to name."""
    lines = [line[at : at + _LINE] for line in entry.text.split("\n") for at in range(0, max(len(line), 1), _LINE)]
    text = "\n".join(lines[part.first_line - 1 : part.last_line])
    entry = replace(entry, lines=len(lines), text=text)
    if len(text) <= 2 * _END:
        return entry
    return replace(entry, text=f"{text[: 2 * _END]}\n{cut_notice(len(lines))}", is_cut=True)


class RecallAnswer(Struct, frozen=True):
    """An answer of the tool. `status`: found, nothing (a valid request without a result) or mistake."""

    text: str
    status: str = "found"
    entries: list[AnswerEntry] = []  # the quoted parts
    hints: list[str] = []


class AnswerDraft(Struct, frozen=True):
    """The parts of an answer before it is cut to its budget."""

    lead: str  # our own text above the quotation
    entries: list[AnswerEntry] = []
    body: str = ""  # quoted text that is not made of entries
    status: str = "found"  # found | nothing | mistake
    leave_first: list[int] | None = None  # indexes of entries in the order to leave them out; None: in order
    from_start: bool = False  # cut entries keep their beginning only
    #: Makes hints from the entries that were cut and those left out.
    hints: Callable[[list[AnswerEntry], list[AnswerEntry]], list[str]] | None = None
    write: Callable[[int], RecallAnswer] | None = None  # writes the whole answer within a budget by itself


def _head_of_call(passage: Passage, clean: Clean) -> str:
    name = passage.start.name if passage.start else passage.call.name if passage.call else ""
    return f"tool:{safe_line(name, clean, 80) or 'unknown'}({', '.join(_arguments(passage.start, clean))})"


def _arguments(start: CallStart | None, clean: Clean) -> Iterator[str]:
    """Yield the arguments of a call, long ones cut."""
    if start is None or not isinstance(start.input, dict):
        if start is not None and start.input is not None:
            yield _argument_value(start.input, clean)
        return
    for number, (name, value) in enumerate(start.input.items()):
        if number == 12:
            yield "…"
            return
        yield f"{safe_line(str(name), clean, 40)}={_argument_value(value, _clean_as_named(str(name), clean))}"


def _argument_value(value: Any, clean: Clean) -> str:
    text = argument_text(value)
    is_long = len(text) > _SHORT or "\n" in text
    text = safe_line(text, clean, _SHORT // 3 if is_long else _SHORT)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else text


def _clean_as_named(name: str, clean: Clean) -> Clean:
    """Return a cleaner that sees the name of a value: some secrets are recognised only by it."""
    head = f'{name}="'

    def clean_value(text: str) -> str:
        whole = clean(f'{head}{text}"')
        is_apart = whole.startswith(head) and whole.endswith('"') and len(whole) > len(head)
        return clean(whole[len(head) : -1]) if is_apart else whole

    return clean_value


def _long_arguments(start: CallStart | None, clean: Clean) -> Iterator[str]:
    given = start.input if start and isinstance(start.input, dict) else {}
    for name, value in given.items():
        text = argument_text(value)
        if len(text) > _SHORT or "\n" in text:
            yield f"{safe_line(str(name), clean, 40)} =\n{indent_text(safe_text(text, _clean_as_named(str(name), clean)))}"


def _failure_text(call: Call | None) -> str:
    if call is None or call.status in ("ok", "orphan"):
        return ""
    if call.status == "open":
        return "[no result was recorded]"
    why = f"exit status {call.exit_status}" if call.exit_status else call.error_class.replace("_", " ") or "error"
    return f"[failed: {why}]"


# --- requests ---

Spell = Callable[[dict[str, Any]], str]

_POINTER = re.compile(r'(?<!\S)(session|message|line):("[^"]*"|[^\s"]+)(?!\S)')
_NUMBERS = re.compile(r"([1-9][0-9]{0,8})(?:(-)([1-9][0-9]{0,8})?)?")


class NextPointers(Struct, frozen=True):
    """The pointers of a query, and its remaining words."""

    words: str
    session: str = ""
    part: TurnPart = WHOLE
    mistake: str = ""


class RecallRequest(Struct, frozen=True):
    """One request with its context: archive, session, time, cleaner and budget."""

    store: Store
    sources: Sources
    clean: Clean
    now: int
    budget: int
    spell: Spell
    session: Session | None = None
    short: str = ""  # its handle
    is_own: bool = True  # the current session, which needs no name
    meaning: MeaningSearch | None = None
    turns_in_view: int | None = None  # last turns of the session that the asker sees; None: the records tell

    def again(self, action: str, part: str = "", **arguments: Any) -> str:
        """Return a follow-up request about this session, as the reader would write it."""
        named = "" if self.is_own or self.session is None else f"session:{self.short}"
        query = " ".join(filter(None, (named, part)))
        return self.spell({"action": action, **arguments, **({"query": query} if query else {})})


def pointers(query: str, parts: bool) -> NextPointers:
    """Extract the pointers of a query; `parts`: also those to messages and lines, which are words otherwise."""
    values: dict[str, str] = {}

    def take(found: re.Match[str]) -> str:
        if found[1] != "session" and not parts:
            return found[0]
        values[found[1]] = found[2].strip('"')
        return ""

    words = " ".join(_POINTER.sub(take, query).split()) if ":" in query else query.strip()
    ranges = {}
    for name in values.keys() - {"session"}:
        if (found := _NUMBERS.fullmatch(values[name])) is None:
            return NextPointers(
                words, mistake=f"{name}: takes a number or a range, as in {name}:7, {name}:7-12 or {name}:7-"
            )
        ranges[name] = (int(found[1]), int(found[3]) if found[3] else None if found[2] else int(found[1]))
    part = TurnPart(*ranges.get("message", (1, None)), *ranges.get("line", (1, None)))
    return NextPointers(words, values.get("session", ""), part)


def as_call(arguments: dict[str, Any]) -> str:
    """Format a request as a call of the tool."""
    shown = (
        f"{name}={value if isinstance(value, int) else json.dumps(printable(value), ensure_ascii=False)}"
        for name, value in arguments.items()
    )
    return f"conversation_recall({', '.join(shown)})"
