"""Reads a session piece by piece: lines, a JSON document, or a rendered transcript, recognized by the first bytes.

Lines and documents give the same messages. A rendered transcript has no ids and no times, so its messages are identified by
their position. `view` shows one record by itself.

`unpack` converts databases and folders of small files: each session becomes lines (see `message`), the same each time for
the same content. Those of a database grow at the end when a session continues: columns of the session's row that change all
the time are left out (the copy of the database has them), and finished messages do not change. The files of a folder are all
kept exactly; those that change all the time come last.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from everturn.model.archive import RECENT_STEPS
from everturn.model.conversation import Link, Message, ReadResult
from everturn.sources.contract import Member, SourceCandidate
from everturn.sources.opencode.files import UNTITLED, is_early, shape_of
from everturn.sources.opencode.message import (
    OpencodeMessage,
    error_in,
    failure,
    info_of,
    message_mark,
    message_of,
    session_of,
    unknown,
)
from everturn.sources.opencode.parts import child_of
from everturn.sources.toolkit.json_document import Damage, DocumentItem, DocumentWalk, decode_item, follow_keys, settle
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    ReadTally,
    Rec,
    RecordPlace,
    SessionTally,
    add,
    mapping,
    prompt_hint,
    single_record,
)
from everturn.sources.toolkit.values import plain, word

if TYPE_CHECKING:
    from everturn.sources.toolkit.sqlite_file import DatabaseSnapshot


class OpencodeReaderState(Struct, array_like=True):
    shape: str = ""
    open_line: bool = False
    stage: str = ""  # of the walk through a document
    native_id: str = ""
    parent: str = ""
    client: str = ""
    placed: bool = False  # the working folder is known
    linked: bool = False  # to its parent session
    n: int = 0  # messages of a rendered transcript so far
    ids: list[str] = []  # of the last responses


class OpencodeReader(LineReader[OpencodeReaderState]):
    """Reads one session in any of its shapes."""

    kind = OpencodeReaderState
    _data, _base = b"", 0  # the piece that is read

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        super().__init__(found, state)
        if not self._state.shape:  # a new one
            self._state.parent = self._state.parent or found.parent

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        self._data, self._base = data, base
        shape = self._state.shape = self._state.shape or shape_of(data)
        if shape == "lines":
            return super().feed(data, base, last)
        self._gathering = ReadTally()
        if shape == "document":
            return self._feed_document(data, base, last)
        if shape == "text" and last:
            return self._feed_text(data, base)
        return self._gathering.defer_read(data, base, last)

    # --- the three shapes ---
    def _feed_document(self, data: bytes, base: int, last: bool) -> ReadResult:
        walk, tally = DocumentWalk("messages", self._state.stage), self._gathering
        for item in walk.split(data, base, last):
            tally.count(*self._take_item(item))
        settle(walk, tally)
        self._state.stage = walk.stage
        return tally.reading(walk.consumed)

    def _take_item(self, item: DocumentItem) -> Counted:
        value, trouble = decode_item(item.raw)
        if trouble:
            self._gathering.trouble(trouble, item.start, len(item.raw), is_record=False)
        place = RecordPlace(item.start, len(item.raw))
        if item.key == "info" and isinstance(value, dict):
            return self._learn(value)
        if not item.key and isinstance(value, dict):
            return self._take(value, place)
        if trouble and value is None:
            return f"({trouble})", "problem", ""
        self._add(unknown(value), place)
        return "?", "unknown", self._state.client

    def _feed_text(self, data: bytes, base: int) -> ReadResult:
        from everturn.sources.opencode.rendered import read_text

        self._set_session("")
        session = self._gathering.session(self._state.native_id, self._candidate.kind, self._candidate.parent)
        self._state.n = read_text(self._gathering, session, data, base, self._state.n)
        return self._gathering.reading(len(data))

    # --- records ---
    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        if about := session_of(record):
            return self._learn(about)
        if (built := message_of(record)) is None:
            return "file" if "file" in record else "switch", "known", self._state.client
        self._add_record(built, record, place)
        return plain(built.type), "message" if built.known else "unknown", self._state.client

    def _add_record(self, built: OpencodeMessage, record: Rec, place: RecordPlace) -> None:
        info = info_of(record)
        self._set_session(word(info.get("sessionID")))
        message, state = built.message, self._state
        if (folder := word(mapping(info.get("path")).get("cwd"))) and not state.placed:
            self._session().learn(workspace=folder)
            state.placed = True
        if state.parent and not state.linked:
            self._session().learn(agent_name=word(info.get("agent")))
        self._add(self._helper_message(message, info), place)
        if isinstance(info.get("error"), dict) and "info" in record and "parts" in record:
            self._add_failure(info, place)

    def _add_failure(self, info: Rec, place: RecordPlace) -> None:
        """Add the error of a message; an export has it inside the message."""
        start = place.start - self._base
        try:
            found = follow_keys(self._data[start : start + place.size], 0, "info", "error")
        except Damage:
            return
        if found is not None:
            message = self._helper_message(failure(info["error"], info), info)
            self._add(message, RecordPlace(place.start + found.start, found.size))

    def _helper_message(self, message: Message, info: Rec) -> Message:
        """Adapt a message of a subagent's session: an agent speaks, and several may ask the same at once."""
        if not self._state.parent or not message.native_id:
            return message
        origin = "agent" if message.origin == "human" else message.origin
        return replace(message, origin=origin, fingerprint=message_mark(message.native_id, info, message.blocks))

    def _add(self, message: Message, place: RecordPlace) -> None:
        session, state = self._session(), self._state
        message = replace(message, start=place.start, size=place.size, provider_id=self._response_id(message))
        add(self._gathering, session, message)
        if state.parent and not state.linked:
            state.linked = True
            prompt = next((block.text for block in message.blocks if block.field == "prompt"), "")
            session.link_parent(state.parent, prompt if message.starts_turn else "")
        session.links += _spawn_links(message)

    def _response_id(self, message: Message) -> str:
        """Return the id of a response. A message is a whole response: one with an id seen before is another response."""
        name, ids = message.provider_id, self._state.ids
        if not name:
            return ""
        number = ids.count(name)
        self._state.ids = [*ids, name][-RECENT_STEPS:]
        return f"{name}#{number + 1}" if number else name

    # --- the session ---
    def _learn(self, about: Rec) -> Counted:
        state = self._state
        self._set_session(word(about.get("id")))
        state.parent = word(about.get("parentID")) or word(about.get("parent_id")) or state.parent
        state.client = plain(about["version"]) if about.get("version") else state.client
        title, folder = word(about.get("title")), word(about.get("directory"))
        state.placed = state.placed or bool(folder)
        session = self._session()
        session.learn(client=state.client, workspace=folder)
        if title and not title.startswith(UNTITLED):
            session.learn(title=title, title_rank=1)
        return "session", "known", state.client

    def _set_session(self, native_id: str) -> None:
        """Set the session of the file: what the file says itself counts most."""
        self._state.native_id = self._state.native_id or native_id or self._name

    def _session(self) -> SessionTally:
        self._set_session("")
        parent, kind = self._state.parent, self._candidate.kind
        kind = "subagent" if parent else kind if kind not in ("container", "bundle") else "main"
        session = self._gathering.session(self._state.native_id, kind, parent)
        session.kind, session.parent = kind, parent  # learnt after opening, if the file begins in the middle
        return session


def _spawn_links(message: Message) -> list[Link]:
    """Return links to the sessions that calls in this message started: by id, or by their prompt."""
    found = []
    for block in message.blocks:
        if block.call is not None and block.call.kind == "task":
            child, prompt = child_of(mapping(block.data)), block.call.prompt
            if child or prompt:
                found.append(Link("spawned", child, block.call.call_id, 0 if child else prompt_hint(prompt)))
    return found


def view(record: bytes) -> Message | None:
    """Return the message of a line, of an element of an export, or of a range of a rendered transcript."""
    value = None
    if record.lstrip()[:1] in (b"{", b"[", b'"'):
        value = decode_item(record)[0]
        value = single_record(record) if value is None else value
    if value is None:
        from everturn.sources.opencode.rendered import view_text

        return view_text(record)
    built = (error_in(value) or message_of(value)) if isinstance(value, dict) else None
    if built is None:
        return None if isinstance(value, dict) else unknown(value)
    return built.message


#: Columns and keys of a session that change while it continues.
_CHANGING = frozenset(
    "time_updated time_compacting time_archived cost tokens_input tokens_output tokens_reasoning tokens_cache_read "
    "tokens_cache_write summary_additions summary_deletions summary_files summary_diffs revert permission agent model "
    "share_url metadata time summary share".split()
)
_TABLES = frozenset(("session", "message", "part", "session_message"))
_encode = msgspec.json.Encoder().encode


def unpack(found: SourceCandidate, path: Path) -> Iterator[Member]:
    """Yield the sessions in a database, or the one in a folder."""
    if found.kind == "bundle":
        yield _bundle_member(found, path)
    else:
        yield from _database_members(path)


# --- databases ---
def _database_members(path: Path) -> Iterator[Member]:
    from everturn.sources.toolkit.sqlite_file import unpacked_snapshot

    with unpacked_snapshot(path) as database:
        orders = {table: _order_clause(set(database.columns(table))) for table in sorted(database.tables() & _TABLES)}
        if "session" not in orders:
            return
        for session in list(database.rows(f"SELECT * FROM session {orders['session']}")):
            native_id, parent = word(session.get("id")), word(session.get("parent_id"))
            if native_id:
                lines = _database_lines(database, orders, session)
                yield Member(native_id, lines, "subagent" if parent else "main", native_id, parent)


def _order_clause(columns: set[str]) -> str:
    """Return the order of a table's rows. Ids of messages and parts sort by time, those of sessions backwards."""
    keys = ["seq"] if "seq" in columns else ["time_created", "id"] if "directory" in columns else ["id"]
    known = [name for name in keys if name in columns]
    return f"ORDER BY {', '.join(known)}" if known else ""


def _database_lines(database: DatabaseSnapshot, orders: dict[str, str], session: Rec) -> Iterator[bytes]:
    def select_rows(table: str, key: str, value: Any) -> list[Rec]:
        query = f"SELECT * FROM {table} WHERE {key}=? {orders.get(table)}"
        return list(database.rows(query, value)) if table in orders else []

    native_id, seen = session["id"], set()
    yield _line(session={key: value for key, value in session.items() if key not in _CHANGING})
    for row in select_rows("message", "session_id", native_id):
        parts = select_rows("part", "message_id", row.get("id"))
        seen.add(row.get("id"))
        yield _line(message=_verbatim_row(row), parts=[_verbatim_row(part) for part in parts])
        yield from _error_record(row.get("data"), row.get("id"))
    for row in select_rows("session_message", "session_id", native_id):
        if row.get("id") not in seen:  # recorded in the form of both generations
            yield _line(session_message=_verbatim_row(row))
            yield from _error_record(row.get("data"), row.get("id"))


def _verbatim_row(row: Rec) -> Rec:
    """Return a row with its JSON embedded as it is, if that is valid JSON on one line."""
    data = row.get("data")
    if not isinstance(data, str) or "\n" in data or "\r" in data:
        return row
    raw = data.encode("utf-8", "surrogatepass")
    try:
        msgspec.json.decode(raw, type=Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return row
    return {**row, "data": Raw(raw)}


# --- folders ---
def _bundle_member(found: SourceCandidate, path: Path) -> Member:
    about = mapping(decode_item(path.read_bytes())[0])
    parent = word(about.get("parentID"))
    lines = _bundle_lines(found.native_id, path, about)
    return Member(found.native_id, lines, "subagent" if parent else "main", found.native_id, parent)


def _bundle_lines(session: str, path: Path, about: Rec) -> Iterator[bytes]:
    early = is_early(path)
    top = path.parent.parent if early else path.parent.parent.parent
    root = top.parent if early else top
    constant = {key: value for key, value in about.items() if key not in _CHANGING}
    yield _line(session={"id": session, **constant})
    for message in _json_files(top / "message" / session):
        folder = top / "part" / session / message.stem if early else top / "part" / message.stem
        file = _file_row(message, root)
        yield _line(message=file, parts=[_file_row(part, root) for part in _json_files(folder)])
        yield from _error_record(file.get("text"), message.stem)
    for other in (top / "todo" / path.name, top / "session_diff" / path.name, path):
        if other.is_file():
            yield _line(**_file_row(other, root))


def _json_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.json") if path.is_file()) if folder.is_dir() else []


def _file_row(path: Path, root: Path) -> Rec:
    raw = path.read_bytes()
    name = path.relative_to(root).as_posix()
    try:
        return {"file": name, "text": raw.decode()}
    except UnicodeDecodeError:
        return {"file": name, "base64": base64.b64encode(raw).decode()}


# --- both ---
def _error_record(data: Any, native_id: Any) -> Iterator[bytes]:
    """Yield how a message failed, as a record of its own, because the client states it."""
    if not isinstance(data, str) or '"error"' not in data:
        return
    found = mapping(decode_item(data.encode("utf-8", "replace"))[0])
    if isinstance(found.get("error"), dict):
        yield _line(error=found["error"], info={"id": native_id, "time": found.get("time")})


def _line(**record: Any) -> bytes:
    return _encode(record) + b"\n"
