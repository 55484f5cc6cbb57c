"""Reads a saved conversation: passages together, with the day that headings only give the time of."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath, PureWindowsPath

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, Problem, ReadResult, fingerprint
from everturn.sources import SourceCandidate
from everturn.sources.chat_markdown.layout import QUERY, RESTORED, ChatLineState, opens, unguard_words
from everturn.sources.chat_markdown.message import build, header, part_of, resumed_from, summary_text
from everturn.sources.foreign import digest, milliseconds, state_of
from everturn.sources.passages import Passages, text_of
from everturn.sources.tally import ReadTally

_DAY = 86_400_000
_HALF_A_DAY = _DAY // 2
_MOST_LINKS = 50
_UNPAIRED = "a session summary whose marks do not pair: taken as missing"


class ChatReaderState(Struct):
    """What a later reader needs to go on."""

    known: ChatLineState = msgspec.field(default_factory=ChatLineState)
    native_id: str = ""
    at: int | None = None  # of the header, then of the last heading
    headed: bool = False  # a heading gave a time
    index: int = 0
    answers: int = 0
    summary: str = ""  # the last one so far that may be the file's
    continues: list[str] = []  # sessions it was said to go on from


class ChatReader:
    """One file."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        self._state = state_of(state, ChatReaderState)
        self._state.native_id = self._state.native_id or found.native_id or found.path.stem
        self._passages = Passages(opens, self._state.known)

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        gathering, passages, state = ReadTally(), self._passages, self._state
        before = passages.state.part
        for start, raw in passages.split(data, base, last):
            text, is_fine = text_of(raw)
            if not is_fine:
                gathering.trouble("invalid_utf8", start, len(raw), is_record=False)
            if not text.strip():
                continue
            part = "rest" if passages.continues and before == "prompt" else part_of(text)
            if part == "summary":
                found = summary_text(text)
                state.summary = unguard_words(found) if found else ""
                if found is None:
                    gathering.problems.append(Problem("unpaired", _UNPAIRED, start, len(raw)))
            elif part == "prompt":
                state.summary = ""  # what stood before it was quoted, or is out of date
            message = self._placed(gathering, part, text)
            prints = fingerprint(f"{state.native_id}/{state.index}", _digest(message))
            talk = gathering.session(state.native_id)
            talk.messages.append(replace(message, start=start, size=len(raw), fingerprint=prints))
            state.index += 1
            gathering.count(part, "message")
        state.known = passages.state
        if last and state.summary:
            gathering.session(state.native_id).learn(summary=state.summary)
        return gathering.reading(passages.consumed)

    def state(self) -> bytes:
        """See `sources.Reader`."""
        return msgspec.msgpack.encode(self._state)

    def _placed(self, gathering: ReadTally, part: str, text: str) -> Message:
        """The message with what only its place tells: the day, the response, the session before."""
        state, message = self._state, build(part, text)
        talk = gathering.session(state.native_id)
        if part == "header":
            found = header(text)
            talk.learn(agent_name=found.agent, workspace=found.workspace)
            state.at = message.at
            self._link_previous(gathering, found.resumed_from, found.previous)
        elif part == "restored":
            self._link_previous(gathering, *resumed_from(text))
        if part in ("prompt", "restored"):
            self._tell_time(text)
            state.answers += 1
        if part == "answer":
            return replace(message, provider_id=f"{state.native_id}/{state.answers}")
        timed = state.headed and part in ("prompt", "restored")
        return replace(message, at=state.at, precision="s" if state.at is not None else "") if timed else message

    def _link_previous(self, gathering: ReadTally, session: str, path: str) -> None:
        name = session or _stem(path)
        if name and name not in self._state.continues:
            self._state.continues = [*self._state.continues[-_MOST_LINKS:], name]
            gathering.session(self._state.native_id).links.append(Link("continues", name))

    def _tell_time(self, text: str) -> None:
        """The moment of a heading: of the same day as the one before, or of the next one after midnight."""
        state, first = self._state, text.lstrip().partition("\n")[0].rstrip("\r")
        found = QUERY.fullmatch(first) or RESTORED.fullmatch(first)
        since, _ = milliseconds(f"1970-01-01 {found[found.re.groups]}") if found else (None, "")
        if since is None or state.at is None:
            return
        at = state.at - state.at % _DAY + since
        slack = 0 if state.headed else _HALF_A_DAY  # the date may be that of saving
        state.at = at + _DAY if at + slack < state.at - state.at % 1000 else at
        state.headed = True


def summary_of(text: str) -> str | None:
    """The summary a saved conversation ends with: the last one that is well-formed; None when there is none."""
    parts = (
        ChatReader(SourceCandidate(Path("x"), native_id="x"), b"").feed(text.encode("utf-8", "replace"), 0, True).parts
    )
    return next((part.facts.summary for part in parts if part.facts.summary), None)


def _stem(path: str) -> str:
    if not path:
        return ""
    return (PureWindowsPath if re.match(r"[A-Za-z]:\\|.*\\", path) else PurePosixPath)(path).stem


def _digest(message: Message) -> str:
    return digest(message.role, *(block.text for block in message.blocks))
