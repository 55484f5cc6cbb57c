"""A file as it was when a turn began.

The evidence, best first: the copy that the agent made at the prompt, before it changed the file (`Source.backups`); the
text that a later edit found; and the earlier edits, replayed from the first text that is known. A file that was changed
outside of the session shows in the first two only.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from everturn.attribution.edit_texts import EditTexts
from everturn.attribution.replay import FileReplay
from everturn.errors import NothingFound, UsageError
from everturn.model.archive import Session
from everturn.model.vocabulary import BACKUP
from everturn.sessions.messages import Records, Sources, has_words, stored_lines
from everturn.store.contract import FoundEdit, Store

_LISTED = 5


class PastFile(Struct, frozen=True):
    """A file at the beginning of a turn."""

    path: str
    turn: int  # counted from 0; the number of turns means the end of the session
    text: str | None  # None: there was no such file
    evidence: str  # where the text is from, in words


def file_at_turn(store: Store, sources: Sources, session: Session, path: str, turn: int) -> PastFile:
    """Return a file that a session changed, as it was when a turn began. Raises NothingFound, UsageError."""
    workspace = store.session(session.id)[1].workspace
    backups = _backups_by_turn(store, sources, session, workspace)
    edits = [one for one in store.edits_of_session(session.id) if one.row.path]
    known = {name for named in backups.values() for name in named} | {_full(one.row.path, workspace) for one in edits}
    wanted = _choose_path(path, sorted(known))
    edits = [one for one in edits if _full(one.row.path, workspace) == wanted]
    found = (
        _from_backup(store, session, backups, wanted, turn)
        or _from_later_edit(EditTexts(store, sources), edits, wanted, turn)
        or _from_replay(EditTexts(store, sources), edits, wanted, turn)
    )
    if found is None:
        raise NothingFound(f"the archive cannot tell what {wanted} was when turn {turn + 1} began: no copy was made")
    return found


# --- copies ---
def _backups_by_turn(store: Store, sources: Sources, session: Session, workspace: str) -> dict[int, dict[str, str]]:
    """Return the names of copies by turn and path."""
    source = sources.get(session.agent)
    if source is None or source.backups is None or not has_words(session):
        return {}
    stated = [one for line in stored_lines(store, store.version(session.version)) for one in source.backups(line)]
    turns = _turns_by_message(store, sources, session) if stated else {}
    found: dict[int, dict[str, str]] = {}
    turn = 0
    for one in stated:
        turn = turns.get(one.message, turn)
        found.setdefault(turn, {})[_full(one.path, workspace)] = one.name
    return found


def _turns_by_message(store: Store, sources: Sources, session: Session) -> dict[str, int]:
    records = Records(store, sources, session)
    asked = (row for row in store.messages(session.id) if row.role == "user" and row.origin != "tool")
    return {name: row.turn for row in asked if (name := records.message(row).native_id)}


def _from_backup(
    store: Store, session: Session, backups: dict[int, dict[str, str]], path: str, turn: int
) -> PastFile | None:
    """Read the copy of this turn or, if the file was not changed before, the first one after it."""
    made = next((one for one in sorted(backups) if one >= turn and path in backups[one]), None)
    if made is None:
        return None
    name = backups[made][path]
    if not name:
        return PastFile(path, turn, None, f"the agent found no such file in turn {made + 1}")
    for file, version in store.files_of(session.agent, session.native_id, BACKUP):
        if file.native_id.rpartition("/")[2] == name and version.size:
            text = store.read_raw(version.id, 0, version.size).decode("utf-8", "replace")
            return PastFile(path, turn, text, f"the copy {name} that the agent made in turn {made + 1}")
    return None


# --- edits ---
def _from_later_edit(texts: EditTexts, edits: Sequence[FoundEdit], path: str, turn: int) -> PastFile | None:
    later = next((one for one in edits if one.row.turn >= turn), None)
    text = texts.original(later) if later is not None else None
    if later is None or text is None:
        return None
    return PastFile(path, turn, text, f"the text that the edit in turn {later.row.turn + 1} found")


def _from_replay(texts: EditTexts, edits: Sequence[FoundEdit], path: str, turn: int) -> PastFile | None:
    replay, is_known, last = FileReplay([]), False, 0
    for number, one in enumerate(edit for edit in edits if edit.row.turn < turn):
        if (found := texts.original(one)) is not None:
            replay.take_over(found)
            is_known = True
        edit = texts.edit(one)
        is_known = edit is not None and (is_known or edit.kind == "write") and replay.apply(number, edit)
        last = one.row.turn
    if not is_known:
        return None
    text = "".join(f"{line}\n" for line in replay.lines)
    return PastFile(path, turn, text, f"the edits up to turn {last + 1}, replayed")


# --- paths ---
def _full(path: str, workspace: str) -> str:
    """Return a path with slashes, below the workspace if it is relative."""
    plain = path.replace("\\", "/")
    is_absolute = plain.startswith("/") or plain[1:2] == ":"
    return plain if is_absolute or not workspace else f"{workspace.replace(chr(92), '/').rstrip('/')}/{plain}"


def _choose_path(path: str, known: Sequence[str]) -> str:
    """Return the only known path that is, or ends with, the given one."""
    plain = path.replace("\\", "/").removeprefix("./")
    found = [name for name in known if name == plain] or [name for name in known if name.endswith(f"/{plain}")]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(found[:_LISTED])
        raise UsageError(f"{path} is one of several files: {listed}; name more of its folders")
    raise NothingFound(f"the session changed no file {path}; `everturn show ID` shows what it changed")
