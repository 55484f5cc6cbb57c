"""Installs everturn into the settings of agents, and uninstalls it again.

Nothing is written before it can be shown. What the user wrote stays, character for character. Uninstalling restores each
file byte for byte if nobody has touched it since, and otherwise removes our entries. A file of our own that somebody has
edited is kept beside, under a name that no agent reads. A file that cannot be parsed, that has something else in place of
our entry, or that a link has led elsewhere since, is left alone, and the plan says so.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, count
from pathlib import Path

import msgspec

from everturn.capture.process_lock import process_lock
from everturn.install.settings_file import SettingsEntry, apply_entries, undo_entries
from everturn.model.conversation import prepared
from everturn.sources.contract import Edit, OwnFile

_RECORD, _LOCK = "record.json", "lock"


class ChangedFile(msgspec.Struct, frozen=True):
    """A file that was changed: its copy from before, its digest after, and our entries in it."""

    path: str
    before: str | None  # name of the copy; None: the file is new
    digest: str
    entries: tuple[SettingsEntry, ...] = ()
    own: bool = False
    real: str = ""  # the path without links


class InstallRecord(msgspec.Struct, frozen=True):
    name: str
    at: int
    project: str = ""
    options: tuple[str, ...] = ()
    files: tuple[ChangedFile, ...] = ()
    folders: tuple[str, ...] = ()  # created for it
    stop: tuple[tuple[str, ...], ...] = ()  # commands that stop its service


@dataclass(frozen=True)
class FileChange:
    """One file before and after the change; None: no file."""

    path: Path
    before: bytes | None
    after: bytes | None
    base: bytes | None = None  # the content without our entries
    kept: ChangedFile | None = None  # for the record; None if nothing of ours is in the file


@dataclass
class InstallPlan:
    """The changes to make. `refused` are (path, reason) of files that are left alone, `remarks` further notes."""

    changes: list[FileChange] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)

    @property
    def work(self) -> list[FileChange]:
        """The changes that alter a file."""
        return [change for change in self.changes if change.before != change.after]


def record_name(name: str, project: Path | None) -> str:
    """Return the folder name of a record: one per agent and per project."""
    mark = blake2b(os.fsencode(project), digest_size=6).hexdigest() if project else ""
    return f"{name}@{mark}" if mark else name


def records(folder: Path) -> list[InstallRecord]:
    """Return all installations, by name."""
    loaded = (read_record(folder, path.parent.name) for path in sorted(folder.glob(f"*/{_RECORD}")))
    return [record for record in loaded if record is not None]


def read_record(folder: Path, name: str) -> InstallRecord | None:
    """Return the record of a name, or None."""
    try:
        return msgspec.json.decode((folder / name / _RECORD).read_bytes(), type=prepared(InstallRecord))
    except (OSError, msgspec.DecodeError):
        return None


def changed_files(record: InstallRecord) -> Iterator[str]:
    """Yield the files of an installation that are gone, or that no longer hold what was written."""
    for kept in record.files:
        try:
            data = Path(kept.path).read_bytes()
        except OSError:
            yield kept.path
            continue
        if _digest(data) != kept.digest and (kept.own or not _has_entries(data, kept)):
            yield kept.path


def plan_install(
    edits: Sequence[Edit], earlier: InstallRecord | None, folder: Path, within: Path | None = None
) -> InstallPlan:
    """Plan the edits, in place of an earlier installation. A link that leads out of `within` is not followed."""
    plan = InstallPlan()
    known = {kept.path: kept for kept in earlier.files} if earlier else {}
    by_path: dict[Path, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    for path, path_edits in by_path.items():
        before = _read_bytes(path, plan) if _is_within(path, within) else _refuse_link_outside(path, plan)
        if before is not _UNREADABLE:
            kept = known.pop(str(path), None)
            base = _without_our_entries(path, before, kept, earlier, folder, plan)
            plan.changes.append(_plan_change(path, before, base, path_edits, plan))
    for kept in known.values():
        _plan_undo(plan, kept, earlier, folder)
    return plan


def plan_uninstall(record: InstallRecord, folder: Path) -> InstallPlan:
    plan = InstallPlan()
    for kept in record.files:
        _plan_undo(plan, kept, record, folder)
    return plan


def carry_out(plan: InstallPlan, record: InstallRecord, folder: Path) -> None:
    """Write the record with its copies, then the files, so that an interruption can be undone. Raises OSError.

    Until everything is written, the record includes the entries of an earlier installation, since files may have them.
    A file that cannot be written is added to `plan.refused` and does not stop the others.
    """
    with _install_lock(folder, plan):
        home = folder / record.name
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        keeping = [change for change in plan.changes if change.kept is not None]
        earlier = read_record(folder, record.name)
        missing = (str(parent) for change in keeping for parent in change.path.parents if not parent.exists())
        folders = dict.fromkeys((*(earlier.folders if earlier else ()), *missing))
        files = tuple(_save_copy(home, change) for change in keeping)
        whole = msgspec.structs.replace(record, files=files, folders=tuple(folders))
        joined = _join_changed_files(files, earlier.files) if earlier is not None else files
        _write_record(home, msgspec.structs.replace(whole, files=joined))
        failed = _write_changes(plan)
        if failed:
            before = {kept.path: kept for kept in earlier.files} if earlier is not None else {}
            still = tuple(kept for path, kept in before.items() if path in failed)
            files = (*(kept for kept in files if kept.path not in failed), *still)
            whole = msgspec.structs.replace(whole, files=files)
        if failed and not files:
            _delete_record(home)
        elif failed or earlier is not None:
            _write_record(home, whole)


def _write_changes(plan: InstallPlan) -> set[str]:
    """Write every file that can be written; return the paths of the others, which the plan lists as refused."""
    failed = set()
    for change in plan.work:
        try:
            _write_change(change)
        except OSError as failure:
            plan.refused.append((str(change.path), f"cannot be written: {failure.strerror or failure}"))
            failed.add(str(change.path))
    return failed


def _delete_record(home: Path) -> None:
    for path in home.iterdir():
        path.unlink()
    home.rmdir()


def take_out(plan: InstallPlan, record: InstallRecord, folder: Path) -> None:
    """Carry out a plan of `plan_uninstall` and delete the record. Raises OSError."""
    with _install_lock(folder, plan):
        for change in plan.work:
            _write_change(change)
        for made in sorted(record.folders, key=len, reverse=True):
            with suppress(OSError):  # not empty
                os.rmdir(made)
        _delete_record(folder / record.name)


def write_file(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file atomically: a crash leaves the old one or the new one, and a link stays a link. Raises OSError."""
    real = Path(os.path.realpath(path))
    real.parent.mkdir(parents=True, exist_ok=True)
    part = _part_path(real)
    try:
        mode = mode if mode is not None else os.stat(real).st_mode & 0o777
    except FileNotFoundError:
        mode = 0o644
    try:
        part.unlink(missing_ok=True)  # of a killed process
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, real)
    finally:
        part.unlink(missing_ok=True)


def _part_path(real: Path) -> Path:
    return real.with_name(f".{real.name}.everturn-part")


@contextmanager
def _install_lock(folder: Path, plan: InstallPlan) -> Iterator[None]:
    """Allow one process at a time, and only if no file has changed since the plan. Raises OSError."""
    with process_lock(folder / _LOCK) as is_ours:
        if not is_ours:
            raise OSError(errno.EBUSY, "another process is installing; run this again", str(folder / _LOCK))
        _check_unchanged(plan.work)
        for change in plan.changes:  # leftovers of a killed process
            with suppress(OSError):
                _part_path(Path(os.path.realpath(change.path))).unlink()
        yield


# --- planning ---

_UNREADABLE = b"\0unreadable"


def _plan_change(
    path: Path, before: bytes | None, base: bytes | None, edits: list[Edit], plan: InstallPlan
) -> FileChange:
    """Return the change with our edits, or no change where they cannot be made."""
    own, entries = edits[0], tuple[SettingsEntry, ...]()
    if isinstance(own, OwnFile):
        if base is not None and base != own.text.encode():
            plan.refused.append((str(path), "there is another file of that name; it is left as it is"))
            return FileChange(path, before, before)
        data = own.text.encode()
    else:
        try:
            text, entries, left = apply_entries((base or b"").decode(), edits)
        except (ValueError, UnicodeDecodeError) as error:
            plan.refused.append((str(path), f"it cannot be changed safely ({error}); it is left as it is"))
            return FileChange(path, before, before)
        plan.refused += [(str(path), why) for why in left]
        data = text.encode()
        if not entries:
            return FileChange(path, before, before)
    kept = ChangedFile(str(path), None, _digest(data), entries, isinstance(own, OwnFile), os.path.realpath(path))
    return FileChange(path, before, data, base, kept)


def _plan_undo(plan: InstallPlan, kept: ChangedFile, record: InstallRecord | None, folder: Path) -> None:
    path = Path(kept.path)
    if not _is_same_place(kept, record):
        plan.refused.append((str(path), "a link leads elsewhere since it was installed; it is left as it is"))
        return
    before = _read_bytes(path, plan)
    if before is not _UNREADABLE:
        plan.changes.append(FileChange(path, before, _without_our_entries(path, before, kept, record, folder, plan)))


def _without_our_entries(
    path: Path,
    before: bytes | None,
    kept: ChangedFile | None,
    record: InstallRecord | None,
    folder: Path,
    plan: InstallPlan,
) -> bytes | None:
    if kept is None or record is None or before is None:
        return before
    copy = _read_copy(folder / record.name, kept)
    if _digest(before) == kept.digest or kept.own:
        if _digest(before) != kept.digest:
            beside = _free_name(path)
            plan.changes.append(FileChange(beside, None, before))
            plan.remarks.append((str(path), f"it was changed since it was installed; it is kept as {beside}"))
        return copy
    try:
        text = undo_entries(before.decode(), kept.entries)
    except (ValueError, UnicodeDecodeError) as error:
        plan.refused.append((str(path), f"it cannot be changed safely ({error}); remove everturn by hand"))
        return before
    return None if copy is None and text.strip() in ("", "{}") else text.encode()


def _read_bytes(path: Path, plan: InstallPlan) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as failure:
        plan.refused.append((str(path), failure.strerror or "cannot be read"))
        return _UNREADABLE


def _is_within(path: Path, folder: Path | None) -> bool:
    return folder is None or Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _refuse_link_outside(path: Path, plan: InstallPlan) -> bytes:
    plan.refused.append((str(path), "a link leads out of the project; it is left as it is"))
    return _UNREADABLE


def _is_same_place(kept: ChangedFile, record: InstallRecord | None) -> bool:
    """Whether a path still leads to the file that was installed."""
    if kept.real:
        return os.path.realpath(kept.path) == kept.real
    return record is None or not record.project or _is_within(Path(kept.path), Path(record.project))


def _free_name(path: Path) -> Path:
    """Return a name beside a file that does not exist yet."""
    numbers = chain([""], (f"-{n}" for n in count(2)))
    return next(name for n in numbers if not os.path.lexists(name := path.with_name(f"{path.name}.kept{n}")))


def _has_entries(data: bytes, kept: ChangedFile) -> bool:
    """Whether each of our entries is still in a file."""
    try:
        text = data.decode()
        return all(undo_entries(text, [entry]) != text for entry in kept.entries)
    except ValueError:
        return False


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


# --- writing ---


def _read_copy(home: Path, kept: ChangedFile) -> bytes | None:
    if kept.before is None:
        return None
    try:
        return (home / kept.before).read_bytes()
    except OSError:
        return None


def _save_copy(home: Path, change: FileChange) -> ChangedFile:
    assert change.kept is not None
    if change.base is None:
        return change.kept
    name = f"{blake2b(os.fsencode(change.path), digest_size=6).hexdigest()}.before"
    write_file(home / name, change.base, 0o600)
    return msgspec.structs.replace(change.kept, before=name)


def _write_record(home: Path, record: InstallRecord) -> None:
    write_file(home / _RECORD, msgspec.json.format(msgspec.json.encode(record), indent=1), 0o600)


def _join_changed_files(files: Iterable[ChangedFile], earlier: Iterable[ChangedFile]) -> tuple[ChangedFile, ...]:
    """Join the files of two installations; a file of both may have the entries of either."""
    by_path = {kept.path: kept for kept in earlier}
    for kept in files:
        old = by_path.get(kept.path)
        entries = (*old.entries, *kept.entries) if old is not None else kept.entries
        by_path[kept.path] = msgspec.structs.replace(kept, entries=entries)
    return tuple(by_path.values())


def _check_unchanged(changes: Iterable[FileChange]) -> None:
    """Raise OSError if a file has changed since the plan: the agent may have written while the user decided."""
    for change in changes:
        try:
            now = change.path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            now = None
        if now != change.before:
            raise OSError(errno.EBUSY, "it was changed meanwhile; run this again", str(change.path))


def _write_change(change: FileChange) -> None:
    _check_unchanged([change])
    if change.after is None:
        change.path.unlink(missing_ok=True)
    else:
        write_file(change.path, change.after)
