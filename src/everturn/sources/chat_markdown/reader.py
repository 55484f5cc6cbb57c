"""Reads a saved conversation: passages together, with the day that headings only give the time of.

Finds saved conversations (`~/agent-conversations` unless the user names other folders), and knows them by content.

A session written out as a saved conversation: what was asked and answered, and the summary.

What the format has no place for is left out (thinking, what tools printed, what a client put in); a tool call is one line of
the answer. Read again, the file gives the same prompts, answers, times, tokens, summary and links.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, Problem, ReadResult, SessionPart, fingerprint
from everturn.sources.chat_markdown.message import (
    END,
    QUERY,
    RESTORED,
    RULE,
    START,
    ChatHeader,
    ChatLineState,
    build,
    guard_words,
    header,
    opens,
    part_of,
    resumed_from,
    summary_text,
    unguard_words,
)
from everturn.sources.contract import SearchPlaces, SourceCandidate, existing_folders, read_beginning
from everturn.sources.toolkit.line_reader import Passages, ReadTally, text_of
from everturn.sources.toolkit.values import digest, milliseconds, state_of
from everturn.text.times import iso

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


NAME = "chat_markdown"

_USUAL = "agent-conversations"
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?\s*# [^\n]{1,200} Conversation\s*\n")
_SESSION = re.compile(rb"^\*\*Session ID:\*\*[ \t]+(\S[^\r\n]{0,199}?)[ \t\r]*$", re.MULTILINE)
_OTHER = re.compile(rb"^\*\*(?:Total Queries|Agent|Agent Path):\*\*", re.MULTILINE)


def roots(places: SearchPlaces) -> list[Path]:
    """Existing folders: named by the user, and the usual one; each once."""
    return existing_folders([*places.extra.get(NAME, ()), places.home / _USUAL])


def find(root: Path) -> Iterator[SourceCandidate]:
    """All conversations in a folder and its folders."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".md"):
                path = Path(folder, name)
                found = sniff(path, read_beginning(path))
                if found is not None:
                    yield found


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    start = head[:4096].partition(b"\n## ")[0]
    session = _SESSION.search(start)
    if session is None or not _HEAD.match(start) or not _OTHER.search(start):
        return None
    return SourceCandidate(path, "main", session[1].decode("utf-8", "replace").replace("\0", "\ufffd"))


_DAY_MILLISECONDS = 86_400_000


def write(part: SessionPart) -> str:
    """The text of a file. Turns are told by `Message.starts_turn`."""
    before, turns = _turns(part.messages)
    head = _header(part, before, len(turns))
    sections = [_head_text(head)]
    restored = _restored_section(head, before)
    sections += [restored] if restored else []
    sections += [_query(number, head.agent, turn) for number, turn in enumerate(turns, 1)]
    text = f"\n\n{RULE}\n\n".join(sections) + f"\n\n{RULE}\n"
    if part.facts.summary:
        text += f"\n{START}\n{guard_words(part.facts.summary)}\n{END}\n"
    return text


def _turns(messages: list[Message]) -> tuple[list[Message], list[list[Message]]]:
    """What stands before the first prompt, and the turns: prompts in a row are one."""
    before: list[Message] = []
    turns: list[list[Message]] = []
    answered = True
    for message in messages:
        if message.starts_turn and answered:
            turns.append([])
            answered = False
        (turns[-1] if turns else before).append(message)
        answered = answered or message.role == "assistant"
    return before, turns


def _header(part: SessionPart, before: list[Message], queries: int) -> ChatHeader:
    facts = part.facts
    own = next((header(block.text) for m in before for block in m.blocks if m.kind == "notice" and block.text[:2] == "# "), ChatHeader())  # fmt: skip
    started = next((message.at for message in part.messages if message.at is not None), None)
    said = any(resumed_from(_text(message, "meta"))[0] for message in before if message.kind == "context")
    continued = "" if said else next((link.native_id for link in part.links if link.relation == "continues"), "")
    return ChatHeader(
        part.native_id,
        _line(own.agent or facts.agent_name).replace("*", "") or "Agent",
        own.date or iso(started).removesuffix("Z"),
        own.agent_path or (facts.workspace.rstrip("/\\") + "/" if facts.workspace else ""),
        own.resumed_from or continued,
        own.previous,
        str(queries),
    )


def _head_text(head: ChatHeader) -> str:
    fields = (
        ("Session ID", head.session),
        ("Date", head.date),
        ("Agent", head.agent),
        ("Agent Path", head.agent_path),
        ("Total Queries", head.queries),
        ("Resumed From", head.resumed_from),
        ("Previous Session", head.previous),
    )
    lines = [f"**{name}:** {_line(value)}" for name, value in fields if value]
    return "\n".join([f"# {head.agent} Conversation", "", *lines])


def _restored_section(head: ChatHeader, before: list[Message]) -> str:
    """What was said before the first prompt: the agent has read the summary of the session before."""
    context = next((text for m in before if (text := _text(m, "meta")).startswith("## Session Restored")), "")
    answer = _answer(head.agent, before)
    if not context and not answer:
        return ""
    resumed_from = f"\n**Context:** Resumed from {head.resumed_from}" if head.resumed_from else ""
    return f"{context or f'## Session Restored ({_clock(before)}){resumed_from}'}{answer}"


def _query(number: int, agent: str, turn: list[Message]) -> str:
    asked = "\n\n".join(filter(None, (_text(message, "prompt") for message in turn if message.starts_turn)))
    return f"## Query {number} ({_clock(turn)})\n**You:** {guard_words(asked, agent)}{_answer(agent, turn)}"


def _answer(agent: str, messages: list[Message]) -> str:
    answers = [message for message in messages if message.role == "assistant"]
    if not answers:
        return ""
    words = guard_words("\n\n".join(text for message in answers for text in _answer_texts(message)), agent)
    return f"\n\n**{agent}:** {words}{_metrics(answers)}"


def _answer_texts(message: Message) -> Iterator[str]:
    for block in message.blocks:
        if block.call is not None:
            about = block.call.path or block.call.command
            yield f"[tool: {block.call.name}{' ' + about if about else ''}]"
        elif block.field == "answer" and block.text:
            yield block.text


def _metrics(messages: list[Message]) -> str:
    took = sum(message.reported_ms or 0 for message in messages)
    used = [message.usage for message in messages if message.usage is not None]
    if not took and not used and not any(message.reported_ms is not None for message in messages):
        return ""
    given, said = sum(usage.input for usage in used), sum(usage.output for usage in used)
    tokens = f" | Tokens: {given + said} (in: {given}, out: {said})" if used else ""
    return f"\n\n*Time: {took / 1000:g}s{tokens}*"


def _text(message: Message, field: str) -> str:
    return "\n".join(block.text for block in message.blocks if block.field == field)


def _clock(messages: list[Message]) -> str:
    at = next((message.at for message in messages if message.at is not None and message.kind != "notice"), 0)
    seconds = at % _DAY_MILLISECONDS // 1000
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _line(text: str) -> str:
    return " ".join(text.split())
