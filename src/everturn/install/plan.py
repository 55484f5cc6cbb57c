"""Puts everturn into the settings of agents, and takes it out again.

Promises: nothing is written before it can be shown; what the user wrote stays, character for character; doing it twice
changes nothing; what is taken out leaves each file as it was, byte for byte where nobody touched it since, else without our
entries; what was there before is kept beside a record of what was done. A file that cannot be understood, or that holds
something else in our place, is left alone, and the plan says so.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import msgspec

from everturn.capture.process_lock import process_lock
from everturn.install.settings_file import SettingsEntry, apply_entries, undo_entries
from everturn.sources.contract import Edit, OwnFile

_RECORD, _LOCK = "record.json", "lock"


class ChangedFile(msgspec.Struct, frozen=True):
    """A file that was changed: its name, what it was before, what it became, and what of it is ours."""

    path: str
    before: str | None  # name of the copy; None: there was none
    digest: str
    entries: tuple[SettingsEntry, ...] = ()
    own: bool = False


class InstallRecord(msgspec.Struct, frozen=True):
    """What was installed."""

    name: str
    at: int
    project: str = ""
    options: tuple[str, ...] = ()
    files: tuple[ChangedFile, ...] = ()
    folders: tuple[str, ...] = ()  # that were made
    stop: tuple[tuple[str, ...], ...] = ()  # commands that end what was started


@dataclass(frozen=True)
class FileChange:
    """One file before and after; None: there is none."""

    path: Path
    before: bytes | None
    after: bytes | None
    base: bytes | None = None  # what taking it out again gives back
    kept: ChangedFile | None = None  # without it nothing of ours is left in the file


@dataclass
class InstallPlan:
    """What would be done. `refused` are (path, why) of files that are left alone, `remarks` what else to tell."""

    changes: list[FileChange] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)

    @property
    def work(self) -> list[FileChange]:
        """The files that would become others."""
        return [change for change in self.changes if change.before != change.after]


def record_name(name: str, project: Path | None) -> str:
    """The folder of a record: one for each agent, and one for each project it was installed in."""
    mark = blake2b(os.fsencode(project), digest_size=6).hexdigest() if project else ""
    return f"{name}@{mark}" if mark else name


def records(folder: Path) -> list[InstallRecord]:
    """Everything that is installed, by name."""
    found = (read_record(folder, path.parent.name) for path in sorted(folder.glob(f"*/{_RECORD}")))
    return [record for record in found if record is not None]


def read_record(folder: Path, name: str) -> InstallRecord | None:
    """What was installed under that name."""
    try:
        return msgspec.json.decode((folder / name / _RECORD).read_bytes(), type=InstallRecord)
    except (OSError, msgspec.DecodeError):
        return None


def plan_install(
    edits: Sequence[Edit], earlier: InstallRecord | None, folder: Path, within: Path | None = None
) -> InstallPlan:
    """What the edits would change. What an earlier installation wrote is replaced.

    `within` is the project they are for: a link in it that leads out of it is not followed.
    """
    plan = InstallPlan()
    known = {kept.path: kept for kept in earlier.files} if earlier else {}
    by_path: dict[Path, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    for path, wanted in by_path.items():
        before = _bytes(path, plan) if _is_within(path, within) else _refuse_link_outside(path, plan)
        if before is not _UNREADABLE:
            kept = known.pop(str(path), None)
            base = _without_our_entries(path, before, kept, earlier, folder, plan)
            plan.changes.append(_change(path, before, base, wanted, plan))
    for kept in known.values():
        _plan_undo(plan, kept, earlier, folder)
    return plan


def plan_uninstall(record: InstallRecord, folder: Path) -> InstallPlan:
    """What taking it out would change."""
    plan = InstallPlan()
    for kept in record.files:
        _plan_undo(plan, kept, record, folder)
    return plan


def carry_out(plan: InstallPlan, record: InstallRecord, folder: Path) -> None:
    """Write the record with its copies, then the files: whatever happens in between can be undone. Raises OSError.

    Until all is written the record tells of what an earlier installation wrote too, since some files still have that.
    """
    with _install_lock(folder, plan):
        _carry_out(plan, record, folder)


def _carry_out(plan: InstallPlan, record: InstallRecord, folder: Path) -> None:
    home = folder / record.name
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    keeping = [change for change in plan.changes if change.kept is not None]
    earlier = read_record(folder, record.name)
    folders = dict.fromkeys(
        (*(earlier.folders if earlier else ()), *_missing_folders(change.path for change in keeping))
    )
    files = tuple(_keep_copy(home, change) for change in keeping)
    whole = msgspec.structs.replace(record, files=files, folders=tuple(folders))
    if earlier is not None:
        _put_record(home, msgspec.structs.replace(whole, files=_join_changed_files(files, earlier.files)))
    else:
        _put_record(home, whole)
    for change in plan.work:
        _write(change)
    if earlier is not None:
        _put_record(home, whole)


def take_out(plan: InstallPlan, record: InstallRecord, folder: Path) -> None:
    """Do what `plan_uninstall` said, and forget the record. Raises OSError."""
    with _install_lock(folder, plan):
        for change in plan.work:
            _write(change)
        _remove_record(record, folder)


def _remove_record(record: InstallRecord, folder: Path) -> None:
    for made in sorted(record.folders, key=len, reverse=True):
        try:
            os.rmdir(made)
        except OSError:  # something else is in it
            pass
    for path in (folder / record.name).iterdir():
        path.unlink()
    (folder / record.name).rmdir()


def write_file(path: Path, data: bytes, mode: int | None = None) -> None:
    """Beside it and renamed, so that a crash leaves the old file or the new one; a link stays a link. Raises OSError."""
    real = Path(os.path.realpath(path))
    real.parent.mkdir(parents=True, exist_ok=True)
    beside = _part_path(real)
    try:
        mode = mode if mode is not None else os.stat(real).st_mode & 0o777
    except FileNotFoundError:
        mode = 0o644
    try:
        beside.unlink(missing_ok=True)  # of a process that was killed
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, real)
    finally:
        beside.unlink(missing_ok=True)


def _part_path(real: Path) -> Path:
    return real.with_name(f".{real.name}.everturn-part")


@contextmanager
def _install_lock(folder: Path, plan: InstallPlan) -> Iterator[None]:
    """One process at a time, and no file may be another than the one the plan was made for. Raises OSError."""
    with process_lock(folder / _LOCK) as is_ours:
        if not is_ours:
            raise OSError(errno.EBUSY, "another process is installing; run this again", str(folder / _LOCK))
        _check_unchanged(plan.work)
        for change in plan.changes:  # what a process that was killed has left
            with suppress(OSError):
                _part_path(Path(os.path.realpath(change.path))).unlink()
        yield


# planning -------------------------------------------------------------------------------------------------------------
_UNREADABLE = b"\0unreadable"


def _change(path: Path, before: bytes | None, base: bytes | None, wanted: list[Edit], plan: InstallPlan) -> FileChange:
    """The file with our edits, or as it is where they cannot be made."""
    own, entries = wanted[0], tuple[SettingsEntry, ...]()
    if isinstance(own, OwnFile):
        if base is not None and base != own.text.encode():
            plan.refused.append((str(path), "there is another file of that name; it is left as it is"))
            return FileChange(path, before, before)
        data = own.text.encode()
    else:
        try:
            text, entries, left = apply_entries((base or b"").decode(), wanted)
        except (ValueError, UnicodeDecodeError) as error:
            plan.refused.append((str(path), f"it cannot be changed safely ({error}); it is left as it is"))
            return FileChange(path, before, before)
        plan.refused += [(str(path), why) for why in left]
        data = text.encode()
        if not entries:
            return FileChange(path, before, before)
    kept = ChangedFile(str(path), None, _digest(data), entries, isinstance(own, OwnFile))
    return FileChange(path, before, data, base, kept)


def _plan_undo(plan: InstallPlan, kept: ChangedFile, record: InstallRecord | None, folder: Path) -> None:
    path = Path(kept.path)
    before = _bytes(path, plan)
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
    """The file without what is ours."""
    if kept is None or record is None or before is None:
        return before
    copy = _copy(folder / record.name, kept)
    if _digest(before) == kept.digest or kept.own:
        if _digest(before) != kept.digest:
            plan.remarks.append((str(path), "it was changed since it was installed; it goes all the same"))
        return copy
    try:
        text = undo_entries(before.decode(), kept.entries)
    except (ValueError, UnicodeDecodeError) as error:
        plan.refused.append((str(path), f"it cannot be changed safely ({error}); take everturn out by hand"))
        return before
    return None if copy is None and text.strip() in ("", "{}") else text.encode()


def _bytes(path: Path, plan: InstallPlan) -> bytes | None:
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


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


# carrying out ---------------------------------------------------------------------------------------------------------
def _copy(home: Path, kept: ChangedFile) -> bytes | None:
    if kept.before is None:
        return None
    try:
        return (home / kept.before).read_bytes()
    except OSError:
        return None


def _keep_copy(home: Path, change: FileChange) -> ChangedFile:
    assert change.kept is not None
    if change.base is None:
        return change.kept
    name = f"{blake2b(os.fsencode(change.path), digest_size=6).hexdigest()}.before"
    write_file(home / name, change.base, 0o600)
    return msgspec.structs.replace(change.kept, before=name)


def _put_record(home: Path, record: InstallRecord) -> None:
    write_file(home / _RECORD, msgspec.json.format(msgspec.json.encode(record), indent=1), 0o600)


def _join_changed_files(files: Iterable[ChangedFile], earlier: Iterable[ChangedFile]) -> tuple[ChangedFile, ...]:
    """Files of two installations; one of both may have the entries of either."""
    found = {kept.path: kept for kept in earlier}
    for kept in files:
        old = found.get(kept.path)
        entries = (*old.entries, *kept.entries) if old is not None else kept.entries
        found[kept.path] = msgspec.structs.replace(kept, entries=entries)
    return tuple(found.values())


def _check_unchanged(changes: Iterable[FileChange]) -> None:
    """The person may have thought about it for long, and the agent may have written meanwhile. Raises OSError."""
    for change in changes:
        try:
            now = change.path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            now = None
        if now != change.before:
            raise OSError(errno.EBUSY, "it was changed meanwhile; run this again", str(change.path))


def _write(change: FileChange) -> None:
    _check_unchanged([change])
    if change.after is None:
        change.path.unlink(missing_ok=True)
    else:
        write_file(change.path, change.after)


def _missing_folders(paths: Iterable[Path]) -> list[str]:
    """Folders that will be made on the way."""
    is_missing: Callable[[Path], bool] = lambda folder: not folder.exists()  # noqa: E731
    return list(dict.fromkeys(str(folder) for path in paths for folder in path.parents if is_missing(folder)))
