"""Take in what laptops push into the team's archive: pieces of source files, in order, each durable before it is acknowledged.

A piece names the file by machine and path, and the place in the pusher's own archive it was read from (`offset`). A piece
that does not continue what is there changes nothing: the answer says where to go on, so that a push can be repeated and
resumed after any interruption. Machines of different people never meet: the stored name of a machine begins with the person.

The bytes are committed first. Then rows and index are derived by the same code as everywhere; if that is interrupted, the
next start or the next piece of the file completes it.
"""

from __future__ import annotations

from hashlib import sha256

from msgspec import Struct

from everturn.capture.file_reader import UNFINISHED
from everturn.capture.writer import ArchiveWriter, derive_pending
from everturn.errors import UsageError
from everturn.model.archive import SourceFile, Version
from everturn.sources.contract import all_sources
from everturn.store.contract import Store
from everturn.store.people import Caller, People
from everturn.team.limits import check_quota

LONGEST = 8 << 20  # bytes of a piece
_ALLOWED = ("full", "redacted")
#: Before every stored path: no reader may open a file of the server because a pusher names it.
_PUSHED = "pushed:"


class FileName(Struct, frozen=True):
    """A source file of a machine, and one of its versions."""

    machine: str
    path: str
    number: int = 1


class Place(Struct, frozen=True):
    """How far a version has been pushed."""

    path: str
    number: int
    offset: int  # in the archive of the pusher
    erased: int  # bytes that had been blanked there


class Piece(Struct, frozen=True):
    """Bytes of a version from `offset` up to `until`, masked already if the mode says so."""

    file: FileName
    format: str
    kind: str
    native_id: str
    parent: str
    mode: str
    head: bytes  # hash of the first line: a growing file keeps it
    erased: int
    project: str  # identity of the repository; "" for none
    offset: int
    until: int
    digest: bytes  # SHA-256 of `data`
    data: bytes


class SessionKey(Struct, frozen=True):
    """A session that its owner has forgotten."""

    agent: str
    native_id: str


def pushed_places(store: Store, caller: Caller, machine: str) -> list[Place]:
    """Return how far each version of a machine has been pushed."""
    found = []
    for file, _ in store.files(_stored_machine(caller, machine)):
        found += [
            Place(file.path.removeprefix(_PUSHED), one.number, one.offset, one.erased)
            for one in store.versions(file.id)
        ]
    return found


def take_piece(store: Store, caller: Caller, piece: Piece, now: int) -> Place:
    """Store a piece if it continues what is there; return the place reached. Raises UsageError for an invalid piece."""
    _check_piece(piece)
    check_quota(store, caller, len(piece.data))
    people = People(store)
    with store.write():
        version = _open_version(store, people, caller, piece, now)
        if version.offset == piece.offset and piece.data:
            store.move_cursor(
                version.id, piece.offset, offset=piece.until, size=version.size + len(piece.data), parser=UNFINISHED,
                erased=piece.erased, changed_at=now,
            )  # fmt: skip
            store.append_raw(version.id, version.size, piece.data)
            people.note(caller, "push", piece.native_id or piece.file.path, now)
    derive_file(store, caller, piece.file, now)
    reached = store.version(version.id)
    return Place(piece.file.path, reached.number, reached.offset, reached.erased)


def derive_file(store: Store, caller: Caller, name: FileName, now: int) -> None:
    """Bring rows and index of a pushed file up to date."""
    found = store.file(_stored_machine(caller, name.machine), _PUSHED + name.path)
    if found is not None:
        writer = ArchiveWriter(store, found[0].machine, caller.name, now)
        source = all_sources().get(found[0].format)
        for version in store.versions(found[0].id) if source is not None else ():
            assert source is not None
            derive_pending(writer, source, found[0], version)


def derive_unfinished(store: Store, now: int) -> int:
    """Complete what an interrupted server has left; return the number of versions."""
    done = 0
    for file, _ in store.files():
        source = all_sources().get(file.format)
        for version in store.versions(file.id) if source is not None else ():
            if version.parser == UNFINISHED and source is not None:
                done += derive_pending(ArchiveWriter(store, file.machine, file.owner, now), source, file, version)
    return done


def drop_file(store: Store, caller: Caller, name: FileName, now: int) -> None:
    """Delete a file that its owner will push again, because words in it were forgotten."""
    with store.write():
        found = store.file(_stored_machine(caller, name.machine), _PUSHED + name.path)
        if found is not None:
            People(store).share_file(found[0].id, None)
            store.delete_file(found[0].id)
            People(store).note(caller, "drop", name.path, now)


def forget_sessions(store: Store, caller: Caller, keys: list[SessionKey], now: int) -> int:
    """Erase the caller's own files with these sessions; return how many. Their bytes cannot be pushed again."""
    wanted = {(key.agent, key.native_id) for key in keys}
    erased = 0
    for file, _ in store.files():
        if file.owner != caller.name:
            continue
        held = {(row.agent, row.native_id) for one in store.versions(file.id) for row in store.sessions_in(one.id)}
        if (held | {(file.format, file.native_id)}) & wanted:
            with store.write():
                People(store).share_file(file.id, None)
                store.delete_file(file.id)
                People(store).note(caller, "erase", file.native_id or file.path, now)
            erased += 1
    if erased and store.server_time() is None:
        store.scrub()  # a server would lock its tables for that; its own VACUUM removes the bytes
    return erased


def _check_piece(piece: Piece) -> None:
    if piece.format not in all_sources():
        raise UsageError(f"this server does not read the format {piece.format!r}; upgrade the server")
    if piece.mode not in _ALLOWED:
        raise UsageError(f"a piece is of mode {' or '.join(_ALLOWED)}, not {piece.mode!r}")
    if len(piece.data) > LONGEST or piece.until < piece.offset or min(piece.offset, piece.file.number - 1) < 0:
        raise UsageError("the piece is too long, or its ends do not fit together")
    if sha256(piece.data).digest() != piece.digest:
        raise UsageError("the piece does not match its SHA-256; send it again")


def _open_version(store: Store, people: People, caller: Caller, piece: Piece, now: int) -> Version:
    machine = _stored_machine(caller, piece.file.machine)
    found = store.file(machine, _PUSHED + piece.file.path)
    if found is None:
        row = SourceFile(
            0,
            piece.format,
            machine,
            caller.name,
            _PUSHED + piece.file.path,
            piece.kind,
            piece.native_id,
            piece.parent,
            piece.mode,
        )
        source = store.add_file(row)
        if piece.project:
            store.set_project_of(source, piece.project)
        if (project := people.membership(caller, piece.project)) is not None and project[1]:
            people.share_file(source, project[0])
    else:
        source = found[0].id
    for version in store.versions(source):
        if version.number == piece.file.number:
            if (version.mode, version.head) != (piece.mode, piece.head):
                raise UsageError(
                    f"{piece.file.path} was pushed in another form before (mode {version.mode}, not {piece.mode}, or another "
                    "file); run `everturn push --again`"
                )
            return version
    made = Version(
        0, source, piece.file.number, "first" if piece.file.number == 1 else "rewritten", piece.mode, head=piece.head,
        parser=UNFINISHED, opened_at=now, changed_at=now, erased=piece.erased,
    )  # fmt: skip
    made.id = store.add_version(made)
    return made


def _stored_machine(caller: Caller, machine: str) -> str:
    return f"{caller.name}/{machine}"
