"""How a new session is told what came before it.

The prompt holds the summary of the session before, and only of that one (several, when several are taken up together);
what lies further back is reached by recall. It is put into the conversation as something nobody typed, and the model's
short acknowledgment is the first thing said: counted in tokens, not as a query.

The conversation as a Markdown file, written from the archive and kept current.

One file for each session, in a folder of ours outside of any repository, for its owner alone. It is written beside its
place and renamed, so that a reader finds the old one or the new one. The archive is the store; the file is for people, and
reads back as the same prompts, answers, tokens, summary and lineage. What the file format is, its `Source` knows.

Which earlier session is meant: the list of a workspace, and a number, an id or `last` out of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from everturn.chat.setup import ChatSetup, short
from everturn.chat.summaries import END, START
from everturn.errors import EverturnError, SessionNotFound, UnknownSession
from everturn.loop import leases
from everturn.loop.journal import AGENT
from everturn.model.archive import Session, SessionText
from everturn.model.conversation import Block, Link, Message, SessionFacts, SessionPart
from everturn.sessions.lineage import ancestors
from everturn.sessions.lookup import resolve_session, short_ids
from everturn.sessions.messages import Records, read_turns
from everturn.store.contract import SessionFilter, Store
from everturn.text.printable import one_line
from everturn.text.times import iso

_RESTORED_HEADING = "## Session Restored"


def path_of(setting: ChatSetup, session: Session) -> Path | None:
    """Where the conversation is saved: a name to be read, a time to be sorted by, an id that is nobody else's."""
    if setting.folder is None:
        return None
    began = session.started or setting.store.version(session.version).opened_at
    stamp = datetime.fromtimestamp(began / 1000, UTC).strftime("%Y%m%d_%H%M%S")
    name = re.sub(r"[^a-z0-9]+", "_", setting.agent.name.lower()).strip("_")[:40] or "chat"
    return setting.folder / f"{name}_{stamp}_{_file_id(session.native_id)}.md"


def save(setting: ChatSetup, session: Session, summary: str = "", target: Path | None = None) -> Path | None:
    """Write the file anew; None when conversations are not saved. Raises EverturnError when it cannot be written."""
    path = target or path_of(setting, session)
    if path is None or setting.write is None:
        return None
    write_private(path, text_of(setting, session, summary))
    return path


def text_of(setting: ChatSetup, session: Session, summary: str = "") -> str:
    """The text of the file."""
    assert setting.write is not None
    return setting.write(_session_part(setting, session, summary))


def chain_text(setting: ChatSetup, session: Session) -> str:
    """A session and all it came from, the oldest first, as one document."""
    from everturn.chat.summaries import read_kept_summary

    elders = [one.session for one in reversed(ancestors(setting.store, session)) if one.session is not None]
    found = [(one, read_kept_summary(setting, one)) for one in [*elders, session]]
    return "\n\n".join(text_of(setting, one, made.text if made is not None else "") for one, made in found)


def write_private(path: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all, readable by its owner alone."""
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside.unlink(missing_ok=True)
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise EverturnError(
            f"{path} cannot be written: {error.strerror}; the conversation is in the archive all the same"
        ) from None


def erase_saved(folder: Path, session: str) -> int:
    """Delete what was saved of a session, for those who forget it; how many files that was."""
    found = list(folder.glob(f"*_{_file_id(session)}.md")) if folder.is_dir() else []
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)


def _file_id(session: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", session)[:12]


def _session_part(setting: ChatSetup, session: Session, summary: str) -> SessionPart:
    messages = list(_messages(setting, session))
    links = [Link(link.relation, link.native_id) for link in setting.store.links(session.id)]
    facts = SessionFacts(workspace=setting.workspace, summary=summary, agent_name=setting.agent.name)
    return SessionPart(session.native_id, facts, [_header_message(setting, session, messages), *messages], links)


def _header_message(setting: ChatSetup, session: Session, messages: list[Message]) -> Message:
    """What the file says about itself; the parent is named in its own section where there is one."""
    began = session.started or setting.store.version(session.version).opened_at
    fields = {
        "Session ID": session.native_id,
        "Date": datetime.fromtimestamp(began / 1000, UTC).replace(tzinfo=None).isoformat(timespec="microseconds"),
        "Agent": setting.agent.name,
        "Agent Path": setting.agent.path,
        "Resumed From": next((one.native_id for one in ancestors(setting.store, session)), ""),
        "Previous Session": _previous_path(setting, session),
    }
    lines = [f"**{name}:** {value}" for name, value in fields.items() if value]
    text = "\n".join([f"# {setting.agent.name} Conversation", "", *lines])
    return Message("system", "system", "notice", began, "ms", blocks=(Block("text", text, "meta"),))


def _previous_path(setting: ChatSetup, session: Session) -> str:
    elder = next((one.session for one in ancestors(setting.store, session)), None)
    path = path_of(setting, elder) if elder is not None else None
    return str(path) if path is not None and path.is_file() else ""


def _messages(setting: ChatSetup, session: Session) -> Iterator[Message]:
    """What the file shows: prompts, answers with how long the turn took, and the restoration."""
    records = Records(setting.store, setting.sources, session)
    for view in read_turns(setting.store, session):
        shown = [message for row in view.rows if _is_saved_message(message := records.message(row))]
        last = max((place for place, one in enumerate(shown) if one.role == "assistant"), default=-1)
        took = (view.turn.ended or 0) - (view.turn.started or 0)
        for place, message in enumerate(shown):
            yield replace(message, reported_ms=max(0, took)) if place == last else message


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
    """A session that another goes on from."""

    session: str
    agent: str = ""  # whose session it is in the archive
    date: str = ""
    queries: int = 0
    tokens: int = 0
    came_from: str = ""
    path: str = ""  # of its saved conversation
    text: str = ""  # its summary, or a document about it
    strategy: str = "summary"  # summary | document

    @property
    def counts(self) -> str:
        """`5 queries, 2.3K tokens`."""
        return f"{self.queries} quer{'y' if self.queries == 1 else 'ies'}, {short(self.tokens)} tokens"


def tell_earlier(setting: ChatSetup, session: Session, text: str, strategy: str = "summary") -> EarlierSummary:
    """What there is to say about a session that is taken up again."""
    elders = ancestors(setting.store, session)
    path = path_of(setting, session)
    return EarlierSummary(
        session.native_id,
        session.agent,
        iso(session.ended or session.started)[:16].replace("T", " "),
        session.n_prompts,
        tokens_of(session),
        elders[0].native_id if elders else "",
        str(path) if path is not None and path.is_file() else "",
        text,
        strategy,
    )


def tokens_of(session: Session) -> int:
    """All tokens of a session."""
    return session.tokens_in + session.tokens_out + session.tokens_cache_read + session.tokens_cache_write


def restoration_prompt(sessions: Sequence[EarlierSummary]) -> str:
    """What the model is told, and asked to acknowledge."""
    dates = ", ".join(dict.fromkeys(one.date for one in sessions if one.date))
    several = "several previous conversations" if len(sessions) > 1 else "a previous conversation"
    head = f"CONTEXT RESTORATION: You are continuing {several}{f' from {dates}' if dates else ''}."
    return "\n\n".join([head, *(_summary_section(one) for one in sessions), _ACKNOWLEDGE_TASK])


def restoration_heading(sessions: Sequence[EarlierSummary], clock: str) -> str:
    """The section of a saved conversation that stands before the acknowledgment."""
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
_PAGE = 100
_PAGES = 10  # looked through for sessions of one workspace


class EarlierSession(Struct, frozen=True):
    """One earlier session of the list."""

    number: int  # from 1, the newest first
    session: Session
    text: SessionText
    short: str
    state: str  # open (somebody runs it now) | crashed (its process ended without closing it) | closed

    def line(self, width: int = 100) -> str:
        """`1. 2026-01-31 10:00  47 turns  model  first words…`."""
        row = self.session
        date = iso(row.ended or row.started)[:16].replace("T", " ")
        turns = f"{row.n_prompts} quer{'y' if row.n_prompts == 1 else 'ies'}"
        head = f"{self.number:>3}. {date}  {self.short}  {turns}  {row.model or '-'}  {self.state}  "
        return head + one_line(self.text.title or self.text.first_prompt, max(20, width - len(head)))


def list_earlier(
    store: Store, workspace: str, now: int, machine: str = "", without: str = "", most: int = MOST
) -> list[EarlierSession]:
    """The conversations held in a workspace, the newest first. Those in which nothing was said are left out."""
    found: list[tuple[Session, SessionText]] = []
    cursor = ""
    for _ in range(_PAGES):
        rows, cursor = store.sessions(SessionFilter(agent=AGENT, workspace=workspace), _PAGE, cursor)
        found += [
            (row, text)
            for row, text in rows
            if text.workspace == workspace and row.n_prompts and row.native_id != without
        ]
        if len(found) >= most or not cursor:
            break
    shorts = short_ids((row for row, _ in found[:most]), store)
    return [
        EarlierSession(number, row, text, shorts[row.id], _lease_state(store, row, now, machine))
        for number, (row, text) in enumerate(found[:most], 1)
    ]


def find_earlier(store: Store, wanted: str, listed: list[EarlierSession]) -> Session:
    """The session that a number of the list, an id, any unique beginning of one, or `last` means.

    Raises SessionNotFound, AmbiguousSession. A number that is on the list is meant as one.
    """
    wanted = wanted.strip()
    if wanted.isdigit() and 1 <= int(wanted) <= len(listed):
        return listed[int(wanted) - 1].session
    if wanted in ("last", "@last") and listed:
        return listed[0].session
    try:
        return resolve_session(store, wanted)
    except UnknownSession:
        raise SessionNotFound(wanted) from None


def _lease_state(store: Store, session: Session, now: int, machine: str) -> str:
    held = leases.current_lease(store, session.native_id)
    if not held.until:
        return "closed"
    is_gone = held.until <= now or leases.is_gone(held, leases.this_process(machine))
    return "crashed" if is_gone else "open"
