"""Find conversations with speaker headings and read them section by section.

They are searched below the folders that the user names, and recognised by their content elsewhere. Everything before the first
speaker is one notice, which gives the session its title, its time, its folder and its id; without a date there, that of the
file name counts. Headings seldom have a time: the first prompt has the day of the session then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, Message, ReadResult, fingerprint
from everturn.sources.contract import HEAD, SourceCandidate
from everturn.sources.headed_markdown.header import ConversationHeader, parse_header, read_time
from everturn.sources.headed_markdown.layout import (
    CLOCK,
    HeadedLineState,
    SpeakerHeading,
    find_form,
    is_conversation,
    opens,
)
from everturn.sources.headed_markdown.message import CONTEXT, EXPANDED, build, split_section
from everturn.sources.toolkit.file_search import sniff_files
from everturn.sources.toolkit.line_reader import Passages, ReadTally, text_of
from everturn.sources.toolkit.values import message_digest, remember, state_of

#: A person's name as a heading, which every conversation has: nearly all other files are told by its absence.
_PERSON = re.compile(rb"^(?:#{1,6}[ \t]|\*\*)[^\w\n]{0,16}(?:user|human|you|me|prompt)\b", re.MULTILINE | re.IGNORECASE)
_NO_FORM = "none"
_MOST_OPEN = 200
_SECONDS = {"h": 3600, "m": 60, "s": 1}


def find(root: Path) -> Iterator[SourceCandidate]:
    return sniff_files(root, sniff, ".md", ".markdown", ".txt")


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    if not _PERSON.search(head) or b"\0" in head or not is_conversation(lines := _lines(head)):
        return None
    return SourceCandidate(path, "main", _read_header(lines).session.replace("\0", "\ufffd") or path.stem)


def workspace(head: bytes) -> str:
    return _read_header(_lines(head)).workspace


def _lines(head: bytes) -> list[str]:
    return [line.rstrip("\r") for line in head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").split("\n")]


def _read_header(lines: list[str]) -> ConversationHeader:
    known = HeadedLineState(form=find_form(lines))
    first = next((number for number, line in enumerate(lines) if opens(known, line)), len(lines)) if known.form else 0
    return parse_header("\n".join(lines[:first]))


class HeadedReaderState(Struct):
    known: HeadedLineState = msgspec.field(default_factory=HeadedLineState)
    role: str = ""  # of the last section
    at: int | None = None  # when the session began
    precision: str = ""
    model: str = ""
    index: int = 0
    answers: int = 0
    has_calls: bool = False  # the response called tools: the next answer is another response
    has_command: bool = False  # the last section is a slash command whose text follows
    is_dated: bool = False  # a message has the day of the session
    waiting: dict[str, list[str]] = {}  # tool → calls without a result


class HeadedReader:
    def __init__(self, candidate: SourceCandidate, state: bytes) -> None:
        self._state = state_of(state, HeadedReaderState)
        self._native_id = candidate.native_id or candidate.path.stem
        self._file_time = read_time(candidate.path.stem)
        self._passages = Passages(opens, self._state.known)

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        tally, passages, state = ReadTally(), self._passages, self._state
        if not passages.state.form and not self._choose_form(data, last):
            return tally.undecided(data, base, last)
        for start, raw in passages.split(data, base, last):
            self._read_section(tally, start, raw)
        state.known = passages.state
        return tally.reading(passages.consumed)

    def state(self) -> bytes:
        return msgspec.msgpack.encode(self._state)

    def _choose_form(self, data: bytes, last: bool) -> bool:
        """Set the form of the file as soon as its beginning shows it; a beginning without one is one long notice."""
        is_whole = last and len(data) <= HEAD
        form = find_form(_lines(data[:HEAD] if is_whole else data[:HEAD].rpartition(b"\n")[0]))
        self._passages.state.form = form or (_NO_FORM if len(data) >= HEAD else "")
        return bool(self._passages.state.form)

    def _read_section(self, tally: ReadTally, start: int, raw: bytes) -> None:
        state, session = self._state, tally.session(self._native_id)
        text, is_utf8 = text_of(raw)
        if not is_utf8:
            tally.trouble("invalid_utf8", start, len(raw), is_record=False)
        if not text.strip("\ufeff \t\r\n"):
            return
        heading, body = split_section(text)
        message = build(heading, body, state.role if self._passages.continues else "")
        if not state.index:
            header = parse_header(text) if heading is None else ConversationHeader()
            state.at, state.precision = (header.at, header.precision) if header.at is not None else self._file_time
            state.model = header.model
            session.learn(title=header.title, title_rank=2 if header.title else 0, workspace=header.workspace)
        message = self._add_context(heading, self._add_time(message, text))
        identity = fingerprint(f"{self._native_id}/{state.index}", message_digest(message))
        session.messages.append(replace(message, start=start, size=len(raw), fingerprint=identity))
        state.index += 1
        tally.count(heading.role if heading is not None else "text", "message")

    def _add_time(self, message: Message, text: str) -> Message:
        """Return the message with the time of the session, or with the time that its section counts from there."""
        state = self._state
        if not state.index and message.kind == "notice":
            return replace(message, at=state.at, precision=state.precision)
        clock = CLOCK.fullmatch(text.lstrip().partition("\n")[0].rstrip())
        if clock is not None and state.at is not None and state.precision in ("s", "ms"):
            message = replace(message, at=state.at + 1000 * _read_clock(clock[1]), precision="s")
        is_first = not state.is_dated and (message.starts_turn or not state.index)
        state.is_dated = state.is_dated or is_first or message.at is not None
        if message.at is not None or state.at is None or not is_first:
            return message
        return replace(message, at=state.at, precision="day")

    def _add_context(self, heading: SpeakerHeading | None, message: Message) -> Message:
        """Return the message with its response and model, and its results with the calls they answer.

        The text that a slash command stands for becomes context.
        """
        state = self._state
        if message.origin == "model":
            if state.role == "person" or state.has_calls or not state.answers:
                state.answers += 1
            state.has_calls = False
            message = replace(
                message, provider_id=f"{self._native_id}/{state.answers}", model=message.model or state.model,
            )  # fmt: skip
        if state.has_command and message.origin == "human" and message.kind == "text":
            blocks = tuple(replace(block, field=CONTEXT.field) for block in message.blocks)
            message = replace(message, origin=CONTEXT.origin, kind=CONTEXT.kind, starts_turn=False, blocks=blocks)
        state.has_command = any(
            block.text.startswith(EXPANDED) for block in message.blocks if message.kind == "command"
        )
        message = replace(message, blocks=tuple(map(self._match_call, message.blocks)))
        self._note_calls(message)
        if heading is not None and heading.role != "system":
            state.role = heading.role
        return message

    def _note_calls(self, message: Message) -> None:
        answered = {block.result.call_id for block in message.blocks if block.result is not None}
        for call in (block.call for block in message.blocks if block.call is not None):
            self._state.has_calls = True
            if call.call_id not in answered:
                waiting = self._state.waiting
                remember(waiting, call.name, [*waiting.get(call.name, ())[-_MOST_OPEN:], call.call_id], _MOST_OPEN)

    def _match_call(self, block: Block) -> Block:
        """Make the id of a call unique, and give a result that names its tool the id of the first call that waits for one."""
        if block.call is not None:
            return replace(block, call=replace(block.call, call_id=f"{block.call.call_id}/{self._state.index}"))
        if block.result is None:
            return block
        waiting = self._state.waiting.get(block.data) if isinstance(block.data, str) else None
        call_id = waiting.pop(0) if waiting else f"{block.result.call_id}/{self._state.index}"
        return replace(block, result=replace(block.result, call_id=call_id), data=None)


def _read_clock(text: str) -> int:
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d{1,3})([hms])", text))
