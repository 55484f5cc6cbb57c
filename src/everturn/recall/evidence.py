"""Search tools over one log and its workspace, for a model that gathers evidence.

The log is any text, or a session of the archive rendered as a transcript whose lines know their turn and message. Each
tool answers with text: the results with line numbers, quoted, without secrets, at most `RESULT_TOKENS` long, ending with
what was cut. A mistake is a sentence, never an exception. Files are read below the workspace only (`recall.workspace`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from everturn.errors import UsageError
from everturn.model.archive import Session
from everturn.recall.answer import entries_of, show_entry
from everturn.recall.budget import cost
from everturn.recall.workspace import FileRefused, FileText, read_inside, workspace_path
from everturn.secrets.redaction import redact_text
from everturn.sessions.messages import Sources, read_turns
from everturn.store.contract import Store
from everturn.text.printable import Clean, plain_text, plural, quote_for_model, safe_line
from everturn.text.regex import EFFORT, Effort, LinearPattern, compile_pattern

#: Rounds a model may use. One round may contain several requests.
MAX_EVIDENCE_SEARCHES = 8

#: Lines shown before and after a match.
SEARCH_CONTEXT_LINES = 3

#: A longer pattern is answered with a sentence.
SEARCH_PATTERN_MAX_LENGTH = 200

#: The longest answer of one tool.
RESULT_TOKENS = 2000

_MAX_MATCHES = 50
_MAX_CONTEXT = 20
_LONG_LINE = 400  # characters shown of a line
_MAX_LOG = 64 * 1024 * 1024  # characters of a log in memory


class LogFile(Struct, frozen=True):
    """A file that the log is about. `turn` counts from 0; -1 without turns."""

    path: str
    action: str
    turn: int = -1


class SessionLog(Struct, frozen=True):
    """The searched text, safe to show. `places`: first line (counted from 1) and label of each message."""

    text: str
    places: tuple[tuple[int, str], ...] = ()

    def place(self, line: int) -> str:
        """Return the label of the message of a line, "" if unknown."""
        at = bisect_right(self.places, line, key=lambda one: one[0]) - 1
        return self.places[at][1] if at >= 0 else ""


class EvidenceSearchTools:
    """The tools over one log. Secrets are masked in everything they show."""

    def __init__(
        self,
        log_text: str | SessionLog,
        workspace: str = "",
        artifacts: Sequence[LogFile] = (),
        clean: Clean = redact_text,
        max_searches: int = MAX_EVIDENCE_SEARCHES,
    ) -> None:
        """`workspace` is the folder whose files may be read, "" for none."""
        self._clean = clean
        self._log = SessionLog(self._clean_for_model(log_text)) if isinstance(log_text, str) else log_text
        self._workspace = workspace
        self._artifacts = list(artifacts)
        self.max_searches = max_searches
        self.rounds = 0
        self.is_complete = False

    # --- the tools ---

    def search_log(self, pattern: str, context_lines: int = SEARCH_CONTEXT_LINES) -> str:
        """Return the lines of the log that match a regular expression, with the lines around them."""
        return self._search("search_log", self._log, pattern, context_lines, "the log")

    def search_file(self, file_path: str, pattern: str) -> str:
        """Return the lines of one file that match, with the lines around them."""
        try:
            file = read_inside(self._workspace, file_path)
        except FileRefused as refused:
            return self._refusal_text("search_file", refused)
        name = safe_line(file_path, self._clean, 200)
        log = SessionLog(self._clean_for_model(file.text))
        return self._search("search_file", log, pattern, SEARCH_CONTEXT_LINES, name) + _unread_note(file)

    def read_file(self, file_path: str, line_range: tuple[int, int] | None = None) -> str:
        """Return a file, or a range of its lines, both ends included, counted from 1."""
        if line_range is not None and (wrong := _wrong_range(line_range)):
            return f"read_file: {wrong}."
        try:
            file = read_inside(self._workspace, file_path)
        except FileRefused as refused:
            return self._refusal_text("read_file", refused)
        lines = self._clean_for_model(file.text).split("\n")
        first, last = line_range or (1, len(lines))
        name = safe_line(file_path, self._clean, 200)
        if first > len(lines):
            return f"read_file: {name} has {plural(len(lines), 'line')}; there is no line {first:,}."
        return _numbered_lines(name, lines, first, min(last, len(lines))) + _unread_note(file)

    def list_artifacts(self) -> str:
        """List the files the log is about, with the actions on them."""
        actions: dict[str, dict[str, list[int]]] = {}
        for one in self._artifacts:
            path = safe_line(workspace_path(self._workspace, one.path), self._clean, 300)
            actions.setdefault(path, {}).setdefault(one.action, []).append(one.turn)
        if not actions:
            return "list_artifacts: no files are known."
        lines = [f"{path}  {'; '.join(_action_text(*done) for done in by.items())}" for path, by in actions.items()]
        body, shown_lines = _fit_lines(lines)
        left = len(lines) - shown_lines
        more = f"\nNot shown: {left:,} more files." if left else ""
        return f"list_artifacts: {len(lines):,} file{'' if len(lines) == 1 else 's'}.\n{quote_for_model(body)}{more}"

    def should_continue_search(self) -> bool:
        """Whether another round is allowed."""
        return not self.is_complete and self.rounds < self.max_searches

    def _search(self, tool: str, log: SessionLog, pattern: str, context: int, where: str) -> str:
        prepared = _prepare_pattern(pattern)
        if isinstance(prepared, str):
            return f"{tool}: {prepared}"
        effort = Effort(EFFORT)
        found = [line.number for line in islice(prepared.search_lines(log.text, effort), _MAX_MATCHES + 1)]
        spent = " The search was stopped: it took too much work; use a literal word." if effort.is_spent else ""
        if not found:
            return f"{tool}: nothing in {where} matches {safe_line(pattern, self._clean, 200)!r}.{spent}"
        return f"{tool}: {_matches_text(log, found, max(0, min(context, _MAX_CONTEXT)), where)}{spent}"

    def _clean_for_model(self, text: str) -> str:
        """Clean a text line by line."""
        return self._clean(plain_text(text)).removesuffix("\n")

    def _refusal_text(self, tool: str, refused: FileRefused) -> str:
        return f"{tool}: {safe_line(str(refused), self._clean, 400)}."


def session_evidence(
    store: Store, sources: Sources, session: Session, workspace: str = "", clean: Clean = redact_text,
    max_searches: int = MAX_EVIDENCE_SEARCHES,
) -> EvidenceSearchTools:  # fmt: skip
    """Return the tools over a session of the archive. Only `workspace` is read from disk."""
    root = workspace or store.session(session.id)[1].workspace
    touched = [LogFile(workspace_path(root, one.path), one.action, one.turn) for one in store.artifacts(session.id)]
    return EvidenceSearchTools(session_log(store, sources, session, clean), workspace, touched, clean, max_searches)


def session_log(store: Store, sources: Sources, session: Session, clean: Clean = redact_text) -> SessionLog:
    """Render a session so that every line can be traced to its turn and message."""
    parts: list[str] = []
    places: list[tuple[int, str]] = []
    line, size = 1, 0
    for view in read_turns(store, session):
        for entry in entries_of(store, sources, session, view, clean, whole=True):
            if size > _MAX_LOG:
                places.append((line, "not read"))
                parts.append("[the rest of the session was not read]")
                return SessionLog("\n".join(parts), tuple(places))
            part = show_entry(entry) + "\n"
            parts.append(part)
            places.append((line, f"turn {entry.turn + 1}, message {entry.seq + 1}"))
            line, size = line + part.count("\n") + 1, size + len(part)
    return SessionLog("\n".join(parts), tuple(places))


def _prepare_pattern(pattern: str) -> LinearPattern | str:
    """Return the compiled pattern, or what is wrong with it."""
    if not pattern:
        return "give a pattern to look for."
    if len(pattern) > SEARCH_PATTERN_MAX_LENGTH:
        return f"the pattern has {len(pattern):,} characters; at most {SEARCH_PATTERN_MAX_LENGTH} are allowed."
    try:
        return compile_pattern(pattern)
    except UsageError as wrong:
        return f"{wrong}."


def _matches_text(log: SessionLog, found: list[int], around: int, where: str) -> str:
    """Return the matches with the lines around them, as many as fit."""
    lines = log.text.split("\n")
    matching = set(found)
    shown: list[str] = []
    n, room, before = 0, RESULT_TOKENS - 100, -1
    while (
        around and cost("\n".join(map(_shorten_line, lines[max(0, found[0] - around) : found[0] + around + 1]))) > room
    ):
        around //= 2
    for match in found[:_MAX_MATCHES]:
        numbers = range(max(match - around, before + 1), min(match + around + 1, len(lines)))
        part = list(_numbered_matches(log, lines, matching, numbers, before))
        room -= cost("\n".join(part)) + 1
        if room < 0 and n:
            break
        shown, n, before = shown + part, n + 1, numbers[-1] if numbers else before
    total = "1 match" if len(found) == 1 else f"{len(found)} matches"
    total = total if len(found) <= _MAX_MATCHES else f"more than {_MAX_MATCHES} matches"
    left = f"\nNot shown: matches after the first {n}; use a narrower pattern." if n < len(found) else ""
    return f"{total} in {where}.\n{quote_for_model(chr(10).join(shown))}{left}"


def _numbered_matches(
    log: SessionLog, lines: list[str], matching: set[int], numbers: range, before: int
) -> Iterator[str]:
    """Yield numbered lines, matches with `:`; a separator where lines are left out or the message changes."""
    for number in numbers:
        place = log.place(number + 1)
        is_gap = before >= 0 and number > before + 1
        if is_gap or (place and (before < 0 or place != log.place(before + 1))):
            yield f"--- {place} ---" if place else "---"
        yield f"{number + 1}{':' if number in matching else '-'} {_shorten_line(lines[number])}"
        before = number


def _shorten_line(line: str) -> str:
    return line if len(line) <= _LONG_LINE else f"{line[:_LONG_LINE]}… [{len(line):,} characters]"


def _numbered_lines(name: str, lines: list[str], first: int, last: int) -> str:
    numbered = [f"{number}: {_shorten_line(lines[number - 1])}" for number in range(first, last + 1)]
    body, shown_lines = _fit_lines(numbered)
    end = first + shown_lines - 1
    head = f"read_file: {name}, lines {first:,} to {end:,} of {len(lines):,}."
    more = (
        "" if end == last else f'\nNot shown: lines {end + 1:,} to {last:,}: [READ_FILE: "{name}" ({end + 1}-{last})]'
    )
    return f"{head}\n{quote_for_model(body)}{more}"


def _fit_lines(lines: list[str]) -> tuple[str, int]:
    """Return as many lines as fit, at least one, and their number."""
    low, high = 1, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        text = "\n".join(lines[:middle]) if middle <= 4 * RESULT_TOKENS else ""
        low, high = (middle, high) if text and cost(text) <= RESULT_TOKENS - 100 else (low, middle - 1)
    return "\n".join(lines[:low]), low


def _wrong_range(given: Sequence[object]) -> str:
    numbers = [one for one in given if isinstance(one, int) and not isinstance(one, bool)]
    if len(given) != 2 or len(numbers) != 2:
        return "a range is two line numbers, as in (10, 20)"
    if numbers[0] < 1 or numbers[1] < numbers[0]:
        return "lines are counted from 1 and the first comes first, as in (10, 20)"
    return ""


def _action_text(action: str, turns: list[int]) -> str:
    numbers = sorted({turn + 1 for turn in turns if turn >= 0})
    if not numbers:
        return action
    named = ", ".join(map(str, numbers[:6])) + (", …" if len(numbers) > 6 else "")
    return f"{action} in turn{'' if len(numbers) == 1 else 's'} {named}"


def _unread_note(file: FileText) -> str:
    return f"\nOnly the first {file.read:,} of {file.size:,} bytes were looked at." if file.read < file.size else ""
