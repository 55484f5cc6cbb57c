"""Earlier sessions of a workspace: the list, the saved Markdown file, and the prompt that restores one.

Each session has one Markdown file, in a folder of ours outside any repository and readable by its owner alone. It is named
after the agent that began the session, and each answer is signed by the agent that gave it. The archive is the store; the
file is for people, and reads back as the same prompts, answers, tokens, summary and lineage.

The restoration prompt holds the summary of the previous session only (of several, when several are resumed together);
older ones are reached by recall. It is recorded as injected, and the model's short acknowledgment is the first answer:
its tokens are counted, but it is not a query.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from everturn.chat.identity import first_agent
from everturn.chat.setup import ChatSetup, short
from everturn.chat.summaries import END, START, read_kept_summary
from everturn.errors import EverturnError, SessionNotFound, UnknownSession
from everturn.loop import leases
from everturn.loop.journal_state import AGENT
from everturn.model.archive import Session, SessionText
from everturn.model.conversation import Block, Link, Message, SessionFacts, SessionPart
from everturn.sessions.lineage import ancestors
from everturn.sessions.lookup import best_match, iterate_sessions, resolve_session, short_ids
from everturn.sessions.messages import Records, read_turns
from everturn.store.contract import SessionFilter, Store
from everturn.text.printable import one_line
from everturn.text.times import minute
from everturn.text.tokens import estimate_tokens

_RESTORED_HEADING = "## Session Restored"


def path_of(setup: ChatSetup, session: Session) -> Path | None:
    """Return the path of the saved conversation: a readable name, a time to sort by, a unique id."""
    if setup.folder is None:
        return None
    saved = sorted(setup.folder.glob(f"*_{_file_id(session.native_id)}.md")) if setup.folder.is_dir() else []
    if saved:
        return saved[0]
    began = session.started or setup.store.version(session.version).opened_at
    stamp = datetime.fromtimestamp(began / 1000, UTC).strftime("%Y%m%d_%H%M%S")
    name = re.sub(r"[^a-z0-9]+", "_", first_agent(setup, session).name.lower()).strip("_")[:40] or "chat"
    return setup.folder / f"{name}_{stamp}_{_file_id(session.native_id)}.md"


def recorded_path(setup: ChatSetup, session: Session) -> str:
    """Return the file in which people find a session: the saved conversation, or the file of another program."""
    if session.agent == AGENT:
        path = path_of(setup, session)
    else:
        file, _ = setup.store.file_by_id(setup.store.version(session.version).source)
        path = Path(file.path)
    return str(path) if path is not None and path.is_file() else ""


def save(setup: ChatSetup, session: Session, summary: str = "", target: Path | None = None) -> Path | None:
    """Write the file anew; None if conversations are not saved. Raises EverturnError if it cannot be written."""
    path = target or path_of(setup, session)
    if path is None or setup.write is None:
        return None
    write_private(path, text_pieces(setup, session, summary))
    return path


def text_pieces(setup: ChatSetup, session: Session, summary: str = "") -> Iterable[str]:
    """Return the text of the file in pieces."""
    assert setup.write is not None
    links = [Link(link.relation, link.native_id) for link in setup.store.links(session.id)]
    text = setup.store.session(session.id)[1]
    facts = SessionFacts(workspace=text.workspace, summary=summary, agent_name=first_agent(setup, session).name)
    return setup.write(
        SessionPart(session.native_id, facts, cast(list[Message], _SavedMessages(setup, session)), links)
    )


def chain_text(setup: ChatSetup, session: Session) -> str:
    """Return a session and its ancestors, oldest first, as one document."""
    elders = [one.session for one in reversed(ancestors(setup.store, session)) if one.session is not None]
    found = [(one, read_kept_summary(setup, one)) for one in [*elders, session]]
    return "\n\n".join("".join(text_pieces(setup, one, made.text if made is not None else "")) for one, made in found)


def write_private(path: Path, pieces: Iterable[str]) -> None:
    """Write a file atomically, readable by its owner alone."""
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside.unlink(missing_ok=True)
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for piece in pieces:
                file.write(piece.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise EverturnError(
            f"{path} cannot be written: {error.strerror}; the conversation is in the archive all the same"
        ) from None


def erase_saved(folder: Path, session: str) -> int:
    """Delete the saved files of a session that is forgotten, and return their number."""
    found = list(folder.glob(f"*_{_file_id(session)}.md")) if folder.is_dir() else []
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)


def saved_files(folder: Path, store: Store) -> tuple[list[Path], list[Path]]:
    """Return the files of a folder that are conversations of the archive, and the others."""
    ours, others = list[Path](), list[Path]()
    found = sorted(path for path in folder.glob("*") if path.is_file()) if folder.is_dir() else []
    chats = iterate_sessions(store, SessionFilter(agent=AGENT), 500) if found else ()
    ids = {_file_id(session.native_id) for session in chats}
    for path in found:
        name = _SAVED_NAME.fullmatch(path.name)
        (ours if name is not None and name[1] in ids else others).append(path)
    return ours, others


def _file_id(session: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", session)[:12]


@dataclass(frozen=True)
class _SavedMessages:
    """The messages of a file, read from the archive each time they are asked for."""

    setup: ChatSetup
    session: Session

    def __iter__(self) -> Iterator[Message]:
        yield _header_message(self.setup, self.session)
        yield from _messages(self.setup, self.session)


def _header_message(setup: ChatSetup, session: Session) -> Message:
    """Return the header of the file. The parent has a section of its own if there is one."""
    began = session.started or setup.store.version(session.version).opened_at
    elder = next(iter(ancestors(setup.store, session)), None)
    agent = first_agent(setup, session)
    fields = {
        "Session ID": session.native_id,
        "Date": datetime.fromtimestamp(began / 1000, UTC).replace(tzinfo=None).isoformat(timespec="microseconds"),
        "Agent": agent.name,
        "Agent Path": agent.path or session.model,
        "Workspace": setup.store.session(session.id)[1].workspace,
        "Resumed From": elder.native_id if elder is not None else "",
        "Previous Session": recorded_path(setup, elder.session) if elder is not None and elder.session else "",
    }
    lines = [f"**{name}:** {value}" for name, value in fields.items() if value]
    text = "\n".join([f"# {agent.name} Conversation", "", *lines])
    return Message("system", "system", "notice", began, "ms", blocks=(Block("text", text, "meta"),))


def _messages(setup: ChatSetup, session: Session) -> Iterator[Message]:
    """Yield the messages of the file: prompts, answers with the duration of the turn, the restoration."""
    records = Records(setup.store, setup.sources, session)
    for view in read_turns(setup.store, session):
        shown = [message for row in view.rows if _is_saved_message(message := records.message(row))]
        last = max((number for number, one in enumerate(shown) if one.role == "assistant"), default=-1)
        took = (view.turn.ended or 0) - (view.turn.started or 0)
        for number, message in enumerate(shown):
            yield replace(message, reported_ms=max(0, took)) if number == last else message


def _is_saved_message(message: Message) -> bool:
    if message.origin in ("human", "model"):
        return message.kind == "text"
    return message.origin == "injected" and any(block.text.startswith(_RESTORED_HEADING) for block in message.blocks)


_ACKNOWLEDGE_TASK = """Task: Review the above and provide a brief acknowledgment (2-6 sentences or bullets) that includes:
1. Main topics discussed
2. Key decisions made
3. Confirmation you're ready to continue

Keep your response concise."""


class EarlierSummary(Struct, frozen=True):
    """A session that another one continues."""

    session: str
    agent: str = ""  # of the session in the archive
    date: str = ""
    queries: int = 0
    tokens: int = 0
    came_from: str = ""
    path: str = ""  # of its saved conversation
    text: str = ""  # its summary, or a document about it
    strategy: str = "summary"  # summary | document
    name: str = ""  # of the agent that held it

    @property
    def counts(self) -> str:
        """The counts, such as `5 queries, 2.3K tokens`."""
        return f"{self.queries} quer{'y' if self.queries == 1 else 'ies'}, {short(self.tokens)} tokens"


def describe_earlier(setup: ChatSetup, session: Session, text: str, strategy: str = "summary") -> EarlierSummary:
    elders = ancestors(setup.store, session)
    return EarlierSummary(
        session.native_id,
        session.agent,
        minute(session.ended or session.started),
        session.n_prompts,
        session.tokens_in + session.tokens_out + session.tokens_cache_read + session.tokens_cache_write,
        elders[0].native_id if elders else "",
        recorded_path(setup, session),
        text,
        strategy,
        first_agent(setup, session).name,
    )


def restoration_prompt(sessions: Sequence[EarlierSummary], inherited: str = "") -> str:
    """Return the prompt that restores sessions and asks for an acknowledgment; `inherited` is what is still in force."""
    dates = ", ".join(dict.fromkeys(one.date for one in sessions if one.date))
    several = "several previous conversations" if len(sessions) > 1 else "a previous conversation"
    head = f"CONTEXT RESTORATION: You are continuing {several}{f' from {dates}' if dates else ''}."
    sections = [*(_summary_section(one) for one in sessions), *([inherited] if inherited else [])]
    return "\n\n".join([head, *sections, _ACKNOWLEDGE_TASK])


def inheritance_text(lines: Sequence[str], tokens: int) -> str:
    """Return what is still in force from earlier sessions as a section of so many tokens at most; "" if nothing is."""
    shown: list[str] = []
    for line in lines:
        tokens -= estimate_tokens(line) + 2
        if tokens < 0:
            break
        shown.append(f"- {line}")
    hidden = len(lines) - len(shown)
    note = [f"- {hidden} more are in the archive; conversation_recall finds them"] if hidden else []
    return "\n".join(["Still in force from earlier sessions, as recorded:", *shown, *note]) if lines else ""


def restoration_heading(sessions: Sequence[EarlierSummary], clock: str) -> str:
    """Return the section of a saved conversation before the acknowledgment."""
    lines = [f"## Session Restored ({clock})"]
    lines += [f"**Context:** Resumed from {one.session} ({one.counts})" for one in sessions]
    lines += [f"**Previous Session:** {one.path}" for one in sessions if one.path]
    return "\n".join(lines)


def _summary_section(one: EarlierSummary) -> str:
    what = "summary" if one.strategy == "summary" else "document"
    lines = [f"Previous session {what} (Session ID: {one.session}, {one.counts}):"]
    about = [f"This session was resumed from: {one.came_from}"] if one.came_from else []
    about += [f"Previous session file: {one.path}"] if one.path else []
    block = f"{START}\n{one.text.strip()}\n{END}"
    return "\n\n".join([*lines, *(["\n".join(about)] if about else []), block])


MOST = 20
_NUMBER = re.compile(r"[0-9]{1,6}")
_SAVED_NAME = re.compile(r"[a-z0-9_]{1,60}_[0-9]{8}_[0-9]{6}_([A-Za-z0-9_-]{1,12})(?:\.md)?")
_PAGE = 100
_PAGES = 10  # read to find sessions of one workspace


class EarlierSession(Struct, frozen=True):
    number: int  # from 1, newest first
    session: Session
    text: SessionText
    short: str
    state: str  # open (running now) | crashed (its process ended without closing it) | closed

    def line(self, width: int = 100) -> str:
        """Return the line of the list, such as `1. 2026-01-31 10:00  47 turns  model  first words…`."""
        row = self.session
        date = minute(row.ended or row.started)
        turns = f"{row.n_prompts} quer{'y' if row.n_prompts == 1 else 'ies'}"
        head = f"{self.number:>3}. {date}  {self.short}  {turns}  {row.model or '-'}  {self.state}  "
        return head + one_line(self.text.title or self.text.first_prompt, max(20, width - len(head)))


def list_earlier(store: Store, workspace: str, now: int, machine: str = "", without: str = "") -> list[EarlierSession]:
    """Return the conversations in a workspace, newest first, without those that have no prompt."""
    found: list[tuple[Session, SessionText]] = []
    cursor = ""
    for _ in range(_PAGES):
        rows, cursor = store.sessions(SessionFilter(agent=AGENT, workspace=workspace), _PAGE, cursor)
        found += [
            (row, text)
            for row, text in rows
            if text.workspace == workspace and row.n_prompts and row.native_id != without
        ]
        if len(found) >= MOST or not cursor:
            break
    found = found[:MOST]
    shorts = short_ids((row for row, _ in found), store)
    return [
        EarlierSession(number, row, text, shorts[row.id], _lease_state(store, row, now, machine))
        for number, (row, text) in enumerate(found, 1)
    ]


def find_earlier(store: Store, name: str, listed: list[EarlierSession]) -> Session:
    """Return the session of a number of the list, of an id, of a saved file, or `last` of the list.

    A number is never the beginning of an id. Raises SessionNotFound, AmbiguousSession.
    """
    name = name.strip()
    if _NUMBER.fullmatch(name):
        if not 1 <= int(name) <= len(listed):
            raise SessionNotFound(name)
        return listed[int(name) - 1].session
    if name in ("last", "@last"):
        if not listed:
            raise SessionNotFound(name)
        return listed[0].session
    saved = _SAVED_NAME.fullmatch(Path(name).name)
    name = saved[1] if saved is not None else Path(name).stem if name.endswith(".md") else name
    if own := store.sessions_of(AGENT, name):  # its saved file may be in the archive too, under the same id
        return best_match(own)
    try:
        return resolve_session(store, name)
    except UnknownSession:
        raise SessionNotFound(name) from None


def _lease_state(store: Store, session: Session, now: int, machine: str) -> str:
    held = leases.current_lease(store, session.native_id)
    if not held.until:
        return "closed"
    is_gone = held.until <= now or leases.is_gone(held, leases.this_process(machine))
    return "crashed" if is_gone else "open"
