"""Find, read and write saved conversations.

They are in `~/agent-conversations`, in `.chat-sessions` of the working folder and the home folder, and in folders named by
the user, and are recognised by their content. Headings give only a time of day: the reader adds the day.

`write` renders a session as a saved conversation: prompts, answers and the summary. The format cannot hold thinking, tool
results and injected context, so these are left out; a tool call becomes one line of the answer. Reading the file gives the
same prompts, answers, times, tokens, summary and links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
    guard_text,
    opens,
    parse_header,
    part_of,
    resumed_from,
    summary_text,
    unguard_text,
)
from everturn.sources.contract import SearchPlaces, SourceCandidate, existing_folders
from everturn.sources.toolkit.file_search import sniff_files
from everturn.sources.toolkit.line_reader import Passages, ReadTally, SessionTally, text_of
from everturn.sources.toolkit.values import message_digest, milliseconds, state_of
from everturn.text.times import iso

_DAY = 86_400_000
_HALF_A_DAY = _DAY // 2
_MOST_LINKS = 50
_UNPAIRED = "a session summary whose marks do not pair: taken as missing"


class ChatReaderState(Struct):
    known: ChatLineState = msgspec.field(default_factory=ChatLineState)
    native_id: str = ""
    at: int | None = None  # of the header, then of the last heading
    headed: bool = False  # a heading gave a time
    index: int = 0
    answers: int = 0
    summary: str = ""  # the latest one that may be the file's
    continues: list[str] = []  # sessions that this one continues


class ChatReader:
    def __init__(self, candidate: SourceCandidate, state: bytes) -> None:
        self._state = state_of(state, ChatReaderState)
        self._state.native_id = self._state.native_id or candidate.native_id or candidate.path.stem
        self._passages = Passages(opens, self._state.known)

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        tally, passages, state = ReadTally(), self._passages, self._state
        before = passages.state.part
        for start, raw in passages.split(data, base, last):
            text, is_utf8 = text_of(raw)
            if not is_utf8:
                tally.trouble("invalid_utf8", start, len(raw), is_record=False)
            if text.strip():
                part = "rest" if passages.continues and before == "prompt" else part_of(text)
                self._read_passage(tally, part, text, start, len(raw))
        state.known = passages.state
        if last and state.summary:
            tally.session(state.native_id).learn(summary=state.summary)
        return tally.reading(passages.consumed)

    def state(self) -> bytes:
        return msgspec.msgpack.encode(self._state)

    def _read_passage(self, tally: ReadTally, part: str, text: str, start: int, size: int) -> None:
        state = self._state
        if part == "summary":
            summary = summary_text(text)
            state.summary = unguard_text(summary) if summary else ""
            if summary is None:
                tally.problems.append(Problem("unpaired", _UNPAIRED, start, size))
        elif part == "prompt":
            state.summary = ""  # an earlier one was quoted, or is out of date
        message = self._add_context(tally, part, text)
        identity = fingerprint(f"{state.native_id}/{state.index}", message_digest(message))
        message = replace(message, start=start, size=size, fingerprint=identity)
        tally.session(state.native_id).messages.append(message)
        state.index += 1
        tally.count(part, "message")

    def _add_context(self, tally: ReadTally, part: str, text: str) -> Message:
        """Return the message with its day and response; record the previous session."""
        state, message = self._state, build(part, text)
        session = tally.session(state.native_id)
        if part == "header":
            head = parse_header(text)
            session.learn(agent_name=head.agent, workspace=head.workspace)
            state.at = message.at
            self._link_previous(session, head.resumed_from, head.previous)
        elif part == "restored":
            self._link_previous(session, *resumed_from(text))
        if part in ("prompt", "restored"):
            self._update_time(text)
            state.answers += 1
        if part == "answer":
            return replace(message, provider_id=f"{state.native_id}/{state.answers}")
        timed = state.headed and part in ("prompt", "restored")
        return replace(message, at=state.at, precision="s" if state.at is not None else "") if timed else message

    def _link_previous(self, session: SessionTally, previous: str, path: str) -> None:
        name = previous or _stem(path)
        if name and name not in self._state.continues:
            self._state.continues = [*self._state.continues[-_MOST_LINKS:], name]
            session.links.append(Link("continues", name))

    def _update_time(self, text: str) -> None:
        """Set the time to that of a heading: on the day of the previous heading, or on the next one after midnight."""
        state, first = self._state, text.lstrip().partition("\n")[0].rstrip("\r")
        heading = QUERY.fullmatch(first) or RESTORED.fullmatch(first)
        since, _ = milliseconds(f"1970-01-01 {heading[heading.re.groups]}") if heading else (None, "")
        if since is None or state.at is None:
            return
        at = state.at - state.at % _DAY + since
        slack = 0 if state.headed else _HALF_A_DAY  # the date may be that of saving
        state.at = at + _DAY if at + slack < state.at - state.at % 1000 else at
        state.headed = True


def _stem(path: str) -> str:
    if not path:
        return ""
    return (PureWindowsPath if re.match(r"[A-Za-z]:\\|.*\\", path) else PurePosixPath)(path).stem


# --- files ---
NAME = "chat_markdown"

_USUAL = "agent-conversations"
_IN_PROJECT = ".chat-sessions"  # of newer loops, in the folder that they run in
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?\s*# [^\n]{1,200} Conversation\s*\n")
_SESSION = re.compile(rb"^\*\*Session ID:\*\*[ \t]+(\S[^\r\n]{0,199}?)[ \t\r]*$", re.MULTILINE)
_OTHER = re.compile(rb"^\*\*(?:Total Queries|Agent|Agent Path):\*\*", re.MULTILINE)


def roots(places: SearchPlaces) -> list[Path]:
    named = places.extra.get(NAME, ())
    inside = [folder / _IN_PROJECT for folder in (*named, places.home, *([places.working] if places.working else []))]
    return existing_folders([*named, places.home / _USUAL, *inside])


def find(root: Path) -> Iterator[SourceCandidate]:
    return sniff_files(root, sniff, ".md")


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    start = head[:4096].partition(b"\n## ")[0]
    if (session := _SESSION.search(start)) is None or not _HEAD.match(start) or not _OTHER.search(start):
        return None
    return SourceCandidate(path, "main", session[1].decode("utf-8", "replace").replace("\0", "\ufffd"))


def workspace(head: bytes) -> str:
    """Return the folder of the agent that the header names; "" when it names none."""
    return parse_header(head.decode("utf-8", "replace")).workspace


# --- writing ---
def write(part: SessionPart) -> str:
    """Return the text of a file with the session. `Message.starts_turn` separates the turns."""
    return "".join(write_pieces(part))


def write_pieces(part: SessionPart) -> Iterator[str]:
    """Yield the text of a file. The messages are read twice and held turn by turn: they may be made while they are read."""
    before, speakers, started, queries = list[Message](), dict[str, None](), list[int](), 0
    for number, turn in enumerate(_split_turns(part.messages)):
        before, queries = (turn, 0) if not number else (before, queries + 1)
        started += [message.at for message in turn if message.at is not None and not started][:1]
        speakers |= dict.fromkeys(_agent_name(message.speaker) for message in turn if message.role == "assistant")
    head = _build_header(part, before, queries, list(speakers), next(iter(started), None))
    yield _render_header(head)
    for number, turn in enumerate(_split_turns(part.messages)):
        section = _render_query(number, head, turn) if number else _render_restored(head, turn)
        if section:
            yield f"\n\n{RULE}\n\n{section}"
    yield f"\n\n{RULE}\n"
    if part.facts.summary:
        yield f"\n{START}\n{guard_text(part.facts.summary)}\n{END}\n"


def _split_turns(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """Yield the messages before the first prompt, then each turn. Consecutive prompts are one turn."""
    turn: list[Message] = []
    answered = True
    for message in messages:
        if message.starts_turn and answered:
            yield turn
            turn, answered = [], False
        turn.append(message)
        answered = answered or message.role == "assistant"
    yield turn


def _build_header(
    part: SessionPart, before: list[Message], queries: int, speakers: list[str], started: int | None
) -> ChatHeader:
    facts = part.facts
    own = next((parse_header(block.text) for m in before for block in m.blocks if m.kind == "notice" and block.text[:2] == "# "), ChatHeader())  # fmt: skip
    is_restored = any(resumed_from(_text(message, "meta"))[0] for message in before if message.kind == "context")
    agent = _agent_name(own.agent or facts.agent_name) or "Agent"
    others = [name for name in speakers if name and name != agent]
    implied = ChatHeader(agent_path=own.agent_path).workspace
    folder = own.folder or (facts.workspace if facts.workspace != implied else "")
    links = (link.native_id for link in part.links if link.relation == "continues" and not is_restored)
    return ChatHeader(
        part.native_id, agent, own.date or iso(started).removesuffix("Z"), own.agent_path,
        own.resumed_from or next(links, ""), own.previous, str(queries), folder, ", ".join(others),
    )  # fmt: skip


def _render_header(head: ChatHeader) -> str:
    fields = (
        ("Session ID", head.session), ("Date", head.date), ("Agent", head.agent), ("Agent Path", head.agent_path),
        ("Also Answered", head.others), ("Workspace", head.folder),
        ("Total Queries", head.queries), ("Resumed From", head.resumed_from), ("Previous Session", head.previous),
    )  # fmt: skip
    lines = [f"**{name}:** {_join_lines(value)}" for name, value in fields if value]
    return "\n".join([f"# {head.agent} Conversation", "", *lines])


def _render_restored(head: ChatHeader, before: list[Message]) -> str:
    """Render the messages before the first prompt, when the agent has read the summary of the previous session."""
    context = next((text for m in before if (text := _text(m, "meta")).startswith("## Session Restored")), "")
    answer = _render_answer(head, before)
    if not context and not answer:
        return ""
    origin = f"\n**Context:** Resumed from {head.resumed_from}" if head.resumed_from else ""
    return f"{context or f'## Session Restored ({_time_of_day(before)}){origin}'}{answer}"


def _render_query(number: int, head: ChatHeader, turn: list[Message]) -> str:
    prompt = "\n\n".join(filter(None, (_text(message, "prompt") for message in turn if message.starts_turn)))
    heading = f"## Query {number} ({_time_of_day(turn)})"
    return f"{heading}\n**You:** {guard_text(prompt, *_names(head))}{_render_answer(head, turn)}"


def _render_answer(head: ChatHeader, messages: list[Message]) -> str:
    answers = [message for message in messages if message.role == "assistant"]
    if not answers:
        return ""
    text = guard_text("\n\n".join(text for message in answers for text in _answer_texts(message)), *_names(head))
    agent = next((name for message in answers if (name := _agent_name(message.speaker))), head.agent)
    return f"\n\n**{agent}:** {text}{_render_metrics(answers)}"


def _names(head: ChatHeader) -> list[str]:
    return [head.agent, *filter(None, head.others.split(", "))]


def _agent_name(name: str) -> str:
    return _join_lines(name).replace("*", "").replace(",", "")[:200].removesuffix(":")


def _answer_texts(message: Message) -> Iterator[str]:
    for block in message.blocks:
        if block.call is not None:
            subject = block.call.path or block.call.command
            yield f"[tool: {block.call.name}{' ' + subject if subject else ''}]"
        elif block.field == "answer" and block.text:
            yield block.text


def _render_metrics(messages: list[Message]) -> str:
    durations = [message.reported_ms for message in messages if message.reported_ms is not None]
    usages = [message.usage for message in messages if message.usage is not None]
    if not durations and not usages:
        return ""
    tokens_in, tokens_out = sum(usage.input for usage in usages), sum(usage.output for usage in usages)
    tokens = f" | Tokens: {tokens_in + tokens_out} (in: {tokens_in}, out: {tokens_out})" if usages else ""
    return f"\n\n*Time: {sum(durations) / 1000:g}s{tokens}*"


def _text(message: Message, field: str) -> str:
    return "\n".join(block.text for block in message.blocks if block.field == field)


def _time_of_day(messages: list[Message]) -> str:
    at = next((message.at for message in messages if message.at is not None and message.kind != "notice"), 0)
    seconds = at % _DAY // 1000
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _join_lines(text: str) -> str:
    return " ".join(text.split())
