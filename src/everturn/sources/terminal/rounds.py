"""Turn rounds: what a human asked, all the agent answered, and the files that were touched meanwhile.

`TurnParser().parse(recording)` takes the text of a screen, the bytes of a recording or the path of either. The patterns
below are published for programs that want to search transcripts the simple way; nothing here relies on them, because a
border, a name and a time are drawn around other things too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from everturn.derive.artifacts import touched_files
from everturn.model.conversation import CallEnd, CallStart
from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.transcript import (
    DrawnCall,
    DrawnSaying,
    ScreenTalk,
    TerminalTranscript,
    TranscriptLine,
    TranscriptSegment,
)

USER_MESSAGE_PATTERN = r"┃\s+(.+?)\s+┃"
USERNAME_TIMESTAMP_PATTERN = r"(\w+)\s+\(\d{1,2}:\d{2}\s+[AP]M\)"
AGENT_WORKING_PATTERN = r"[Gg]enerating"
READ_FILE_PATTERN = r"Read\s+(\S+)"
EDIT_FILE_PATTERN = r"Edit\s+(\S+)"
MAX_EVIDENCE_SEARCHES = 8
SEARCH_CONTEXT_LINES = 3
SEARCH_PATTERN_MAX_LENGTH = 200

_ESCAPE = "\x1b"
_FRAME = " \t┃│█▌▐╭╮╰╯─"
_COMMAND_CHARS = 20  # of a command's first line, to find the row it begins on
_WRAPPED_ROWS = 4
#: What stands before a whole path, and before the last part of one.
_BEFORE_PATH, _BEFORE_NAME = r"(?<![\w./\\~-])", r"(?<![\w.-])"
_AFTER = r"(?![\w/\\-]|\.\w)"
ActionType = Literal["read", "edited", "created"]
_ACTIONS: dict[str, ActionType] = {"read": "read", "edited": "edited", "created": "created"}


@dataclass(frozen=True)
class ArtifactAction:
    """A file that was touched, and the line of the clean transcript (counted from 0) that says so."""

    file_path: str
    action_type: ActionType
    line_number: int


@dataclass(frozen=True)
class TurnRound:
    """One or more messages of the human and all that followed. Lines of the clean transcript are counted from 0."""

    turn_number: int  # from 1
    user_messages: list[str]
    agent_responses: list[str]
    raw_lines: list[str]
    start_line_index: int
    end_line_index: int  # included
    artifacts: list[ArtifactAction] = field(default_factory=list)


class TurnParser:
    """Recordings → turn rounds. After `parse`, `problems` says which rounds could not be made, and why."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.lines: list[str] = []  # the clean transcript of the last recording

    def parse(self, recording: str | bytes | Path) -> list[TurnRound]:
        """All rounds of a recording, numbered through all conversations in it. One that fails does not stop the others."""
        transcript = _transcript(recording)
        self.lines = [line.text for segment in transcript.segments for line in segment.lines]
        self.problems = []
        rounds: list[TurnRound] = []
        number = 0
        for talk in read_screens(transcript):
            for items in _turns(talk):
                number += 1
                try:
                    rounds.append(self.round(number, items))
                except Exception as error:
                    self.problems.append(f"turn {number} could not be read: {type(error).__name__}: {error}")
        return rounds

    def round(self, number: int, items: list[DrawnSaying]) -> TurnRound:
        """One round of the things that were said in it."""
        first = min(item.lines[0] for item in items)
        last = max(item.lines[1] for item in items)
        return TurnRound(
            turn_number=number,
            user_messages=[item.text for item in items if item.starts_turn],
            agent_responses=[text for item in items if item.role == "assistant" and (text := _words(item))],
            raw_lines=self.lines[first : last + 1],
            start_line_index=first,
            end_line_index=last,
            artifacts=[artifact for item in items for call in item.calls for artifact in self.artifacts(call)],
        )

    def artifacts(self, call: DrawnCall) -> list[ArtifactAction]:
        """The files a call touched: those it names, and those a shell command surely read, changed or made."""
        if call.status != "ok":
            return []
        start = CallStart("", call.name, call.kind, call.path, call.command)
        found = touched_files(start, CallEnd("", action=call.action), call.output)
        return [
            ArtifactAction(path, _ACTIONS[action], self._naming_line(call, path))
            for action, path in found
            if action in _ACTIONS
        ]

    def _naming_line(self, call: DrawnCall, path: str) -> int:
        """Return the line that names a file of a call: its title, its command or its output. Else the first with words."""
        first, last = call.lines
        rows = [line.strip(_FRAME) for line in self.lines[first : last + 1]]
        begin = call.command.split("\n", 1)[0][:_COMMAND_CHARS].rstrip()
        start = next((n for n, row in enumerate(rows) if begin and begin in row), 0)  # above it is what a human is told
        name = path.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]
        found = _find_word(rows, start, path, before=_BEFORE_PATH)
        if found is None:
            found = _find_wrapped(rows, start, path)
        if found is None:
            found = _find_word(rows, start, name, before=_BEFORE_NAME)
        if found is None:
            found = next((n for n, row in enumerate(rows) if row and n >= start), 0)
        return first + found


def _transcript(recording: str | bytes | Path) -> TerminalTranscript:
    if isinstance(recording, Path):
        recording = recording.read_bytes()
    if isinstance(recording, str) and _ESCAPE not in recording:
        lines = tuple(TranscriptLine(line.rstrip()) for line in recording.split("\n"))
        columns = max((len(line.text) for line in lines), default=0)
        return TerminalTranscript((TranscriptSegment(lines),), columns, len(lines))
    from everturn.sources.terminal.views import transcribe

    data = recording.encode("utf-8", "surrogatepass") if isinstance(recording, str) else recording
    return transcribe(data)


def _whole_word(word: str, before: str) -> re.Pattern[str]:
    """A pattern for a word that is no part of a longer one."""
    return re.compile(f"{before}{re.escape(word)}{_AFTER}")


def _find_word(rows: list[str], start: int, word: str, before: str) -> int | None:
    pattern = _whole_word(word, before)
    return next((n for n in range(start, len(rows)) if word in rows[n] and pattern.search(rows[n])), None)


def _find_wrapped(rows: list[str], start: int, path: str) -> int | None:
    """Return the first row of a path that goes on in the rows below."""
    pattern = _whole_word(path, _BEFORE_PATH)
    for n in range(start, len(rows) - 1):
        if path not in "".join(rows[n : n + _WRAPPED_ROWS]):
            continue
        for end in range(n + 2, n + _WRAPPED_ROWS + 1):
            found = pattern.search("".join(rows[n:end]), max(0, len(rows[n]) - len(path) + 1))
            if found is not None and found.start() < len(rows[n]):
                return n
    return None


def _turns(talk: ScreenTalk) -> list[list[DrawnSaying]]:
    """The items from one request to the next. Requests that nothing answered belong to the one that follows."""
    turns: list[list[DrawnSaying]] = []
    answered = False
    for item in talk.said:
        if item.starts_turn and (not turns or answered):
            turns.append([])
            answered = False
        answered = answered or item.role == "assistant"
        if turns:
            turns[-1].append(item)
    return turns


def _words(item: DrawnSaying) -> str:
    """Return the drawn words of an answer."""
    parts = [item.thinking, item.text]
    for call in item.calls:
        command = f"$ {call.command}" if call.command and call.command not in call.title else ""
        parts += [call.title, command, call.output]
    return "\n".join(part for part in parts if part)
