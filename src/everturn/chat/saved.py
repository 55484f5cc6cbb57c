"""The conversation as a Markdown file, written from the archive and kept current.

One file for each session, in a folder of ours outside of any repository, for its owner alone. It is written beside its
place and renamed, so that a reader finds the old one or the new one. The archive is the store; the file is for people, and
reads back as the same prompts, answers, tokens, summary and lineage. What the file format is, its `Source` knows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from everturn.chat.setting import ChatSetup
from everturn.errors import EverturnError
from everturn.model.archive import Session
from everturn.model.conversation import Block, Link, Message, SessionFacts, SessionPart
from everturn.recall.lineage import ancestors
from everturn.recall.reading import Records, read_turns

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
