"""A session opened in another agent, or from an earlier turn: a new session in that agent's own form.

The messages come from the archive (`read_history`), the form is the receiving source's (`Native`). Existing files are never
touched: every file made is a new one, readable by its owner alone, whole or not there. What the new session comes from is
kept in the archive. The words go over as they are: nothing is masked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from everturn.errors import NoSpace, Unreadable, UsageError
from everturn.model.archive import Session
from everturn.model.descent import Descent
from everturn.recall.origins import note_descent
from everturn.recall.reading import Sources, has_words
from everturn.resume.history import History, read_history
from everturn.sources import NewSession, SearchPlaces, Source, SourceCandidate
from everturn.store import Store

_HEAD_BYTES = 64 << 10  # bytes of a file that a source is shown


class NativePlan(Struct, frozen=True):
    """A new session, made and not yet written."""

    source: Source
    new: NewSession
    path: Path
    content: bytes
    marks: Mapping[Path, bytes]
    history: History
    relation: str
    upto: int | None = None

    @property
    def n_messages(self) -> int:
        """How many messages the agent's own reader finds in it."""
        found = self.source.sniff(self.path, self.content[:_HEAD_BYTES]) or SourceCandidate(
            self.path, "main", self.new.id
        )
        reading = self.source.reader(found, b"").feed(self.content, 0, True)
        return sum(len(part.messages) for part in reading.parts if part.native_id == self.new.id)

    @property
    def take_in(self) -> list[str]:
        """The command by which the agent takes the file in, to be run in the workspace; empty where it just lies there."""
        native = self.source.native
        return native.take_in(self.path) if native is not None and native.take_in is not None else []

    @property
    def command(self) -> list[str]:
        """The command that opens the session."""
        return self.source.resume_command(self.new.id) if self.source.resume_command is not None else []


class NativeOptions(Struct, frozen=True):
    """What a new session is to be."""

    target: Source
    places: SearchPlaces
    random: str  # 32 hexadecimal digits
    now: int
    folder: Path  # ours, for files that are only handed to a program
    workspace: str = ""  # another than that of the session
    upto: int | None = None
    is_repair: bool = False  # thoughts stay behind too: providers take them only behind exactly the words they knew


def plan_native(store: Store, sources: Sources, session: Session, wanted: NativeOptions) -> NativePlan:
    """Everything of a new session but the writing. Raises Usage where it cannot be made."""
    native = wanted.target.native
    if native is None:
        raise UsageError(
            f"{wanted.target.title} sessions cannot be written; `everturn handoff` tells another agent instead"
        )
    _check_options(session, wanted)
    is_own = session.agent == wanted.target.name
    told = read_history(store, sources, session, wanted.upto, keep_thoughts=is_own and not wanted.is_repair)
    if not told.messages:
        raise UsageError(f"session {session.native_id} has no words that another agent could be told; nothing was made")
    text = store.session(session.id)[1]
    new = NewSession(
        id=native.name(wanted.random, wanted.now),
        workspace=wanted.workspace or text.workspace,
        at=wanted.now,
        title=_native_title(sources, session, text.title or text.first_prompt, wanted),
        model=session.model,
        forked_from=session.native_id if is_own else "",
    )
    path = native.place(wanted.places, new)
    return NativePlan(
        wanted.target,
        new,
        path if path.is_absolute() else wanted.folder / path,
        native.write(wanted.places, new, told.messages),
        native.marks(wanted.places, new) if native.marks is not None else {},
        told,
        "repaired_from" if wanted.is_repair else "forked_from" if is_own else "converted_from",
        wanted.upto,
    )


def write_native(store: Store, session: Session, made: NativePlan) -> None:
    """Write the files and keep what the new session comes from."""
    for path, content in made.marks.items():
        if not path.exists():
            put_new(path, content)
    descent = Descent(made.source.name, made.new.id, made.relation, made.upto, made.n_messages)
    with store.write():  # the file last: whoever sees it and waits for us knows what it is
        note_descent(store, descent, session, made.new.at)
        put_new(made.path, made.content)


def put_new(path: Path, content: bytes) -> None:
    """A new file, whole or not there, for its owner alone. Raises Usage when there is one already."""
    beside = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(beside, path)  # unlike a rename it never replaces a file that came up meanwhile
    except FileExistsError as failure:
        raise UsageError(f"{path} is there already; nothing was written, run it again") from failure
    except OSError as failure:
        if failure.errno == 28:
            raise NoSpace(str(path)) from failure
        raise Unreadable(str(path), f"cannot be written: {failure.strerror or failure}") from failure
    finally:
        beside.unlink(missing_ok=True)


def _check_options(session: Session, wanted: NativeOptions) -> None:
    if not has_words(session):
        raise UsageError(
            f"the words of session {session.native_id} were not kept (mode {session.mode}); there is nothing to open"
        )
    if wanted.upto is not None and not 0 <= wanted.upto < session.n_turns:
        raise UsageError(
            f"session {session.native_id} has {session.n_turns} turns; --upto takes 1 to {session.n_turns}"
        )


def _native_title(sources: Sources, session: Session, title: str, wanted: NativeOptions) -> str:
    words = " ".join(title.split())[:80]
    giver = sources[session.agent].title if session.agent in sources else session.agent
    is_own = session.agent == wanted.target.name
    return f"{words} ({'repaired' if wanted.is_repair else 'fork' if is_own else f'from {giver}'})"
