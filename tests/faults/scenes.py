"""Histories on disk, before and after something happened to them, and what an archive of them must hold.

A scene is a folder with the files as they are now and, where something was taken in before, an archive of how they were.
`contents` are all states a file was ever in: whatever an archive holds must be the beginning of one of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from everturn.capture import file_reader, intake, writer
from everturn.capture.intake import SyncJob, SyncReport
from everturn.capture.policy import Policy
from everturn.capture.sync import sync_all
from everturn.maintenance.verify import verify_archive
from everturn.model.archive import Session, SourceFile
from everturn.sources.claude_code import SOURCE
from everturn.sources.contract import SearchPlaces
from everturn.store import raw
from everturn.store.contract import IndexQuery, Store, open_store
from tests.capture.history import History, everything, ticking

#: A small history, read and stored in small pieces, has as many transactions as a big one in big pieces.
_SMALL: tuple[tuple[Any, str, int], ...] = (
    (file_reader, "BATCH", 8 << 10),
    (intake, "GROUP", 8 << 10),
    (writer, "SLICE", 8 << 10),
    (raw, "CHUNK", 4 << 10),
    (raw, "SEALED", 1 << 10),
)

BIG, SMALLER, FORK, EMPTY, GONE, MOVED, LATE = (f"{n}0000000-2222-4333-8444-555555555555" for n in range(1, 8))
WORDS = ("walrus", "zebra", "octopus", "heron", "fresh")


def shrink_pieces(put: Callable[[Any, str, int], None]) -> None:
    """Let capture and store work in small pieces; `put` is `setattr`, or that of monkeypatch."""
    for module, name, size in _SMALL:
        assert isinstance(getattr(module, name), int)
        put(module, name, size)


def job_at(store: Store, root: Path, clock: Callable[[], int] | None = None) -> SyncJob:
    """A sync of the history below `root`."""
    places = SearchPlaces(root / "no-home", {}, "linux", {SOURCE.name: (root,)})
    return SyncJob(store, {SOURCE.name: SOURCE}, places, Policy(), "box", "ann", clock or ticking())


def sync_at(archive: Path | str, root: Path) -> SyncReport:
    """Open, sync, close."""
    store = open_store(str(archive))
    try:
        return sync_all(job_at(store, root))
    finally:
        store.close()


@dataclass
class Scene:
    """A history, and the archive of its earlier state (not there when nothing was taken in yet)."""

    root: Path
    archive: Path
    contents: dict[str, list[bytes]] = field(default_factory=dict)  # by name of the file
    wanted: list[Any] = field(default_factory=list)  # the account of an archive that nothing disturbed

    @property
    def undisturbed(self) -> Path:
        """The archive that nothing disturbed."""
        return self.archive.parent / "undisturbed" / "archive.db"

    def note_contents(self) -> None:
        """Remember every file as it is now."""
        for path in self.root.rglob("*"):
            if path.is_file():
                self.contents.setdefault(path.name, []).append(path.read_bytes())

    def copy_archive(self, to: Path) -> Path:
        """The archive as it was, for one trial; its folder is empty otherwise."""
        shutil.rmtree(to.parent, ignore_errors=True)
        to.parent.mkdir(parents=True)
        if self.archive.exists():
            shutil.copy(self.archive, to)
        return to


def first(folder: Path) -> Scene:
    """Nothing was taken in yet."""
    scene = Scene(folder / "agent", folder / "archive.db")
    _write_history(History(scene.root))
    return _ready(scene)


def grown(folder: Path) -> Scene:
    """Files went on: whole lines, half a line that is whole now, a new file."""
    scene = Scene(folder / "agent", folder / "archive.db")
    history = History(scene.root)
    _write_history(history)
    scene.note_contents()
    sync_at(scene.archive, scene.root)
    history.grow(_turns(history, BIG, 24, "zebra"), BIG)
    history.file(SMALLER).write_bytes(history.file(SMALLER).read_bytes() + _REST + _turns(history, SMALLER, 4, "fresh"))
    history.grow(_turns(history, EMPTY, 2, "fresh"), EMPTY)
    history.write(_turns(history, LATE, 8, "fresh"), LATE)
    return _ready(scene)


def rewritten(folder: Path) -> Scene:
    """Files were cut and written anew, replaced, shortened, deleted, moved."""
    scene = Scene(folder / "agent", folder / "archive.db")
    history = History(scene.root)
    _write_history(history)
    scene.note_contents()
    sync_at(scene.archive, scene.root)
    big = history.file(BIG).read_bytes()
    history.write(big[: len(big) * 7 // 10] + b"\n" + _turns(history, BIG, 12, "zebra"), BIG)
    history.file(SMALLER).write_bytes(history.file(SMALLER).read_bytes()[:-2000])
    fork = history.file(FORK).read_bytes()
    history.write(fork.replace(b"octopus", b"platypu"), FORK)
    history.file(GONE).unlink()
    elsewhere = history.project.with_name("-elsewhere")
    elsewhere.mkdir()
    history.file(MOVED).rename(elsewhere / history.file(MOVED).name)
    return _ready(scene)


SCENES = {"first": first, "grown": grown, "rewritten": rewritten}


def account(store: Store) -> list[Any]:
    """All that must be equal in two archives of the same files: rows, bytes, places, what is found."""
    rows: list[Any] = list(everything(store))
    for file, _ in store.files():
        rows.append(_place(file))
        for version in store.versions(file.id):
            digest = sha256(store.read_raw(version.id, 0, version.size)).hexdigest()
            rows.append((version.number, version.reason, version.offset, version.size, version.file_size, digest))
    rows += [(word, found(store, word)) for word in WORDS]
    return rows


def found(store: Store, word: str) -> list[tuple[str, int]]:
    """Every message with a word in it."""
    hits = store.search(IndexQuery((((word,),),), limit=100_000))
    return sorted((store.session(hit.session)[0].native_id, hit.seq) for hit in hits)


def conversations(store: Store) -> dict[str, Any]:
    """As `account`, by file and without the numbers that depend on which file was taken in first."""
    by_file: dict[str, Any] = {}
    for file, version in store.files():
        digest = sha256(store.read_raw(version.id, 0, version.size)).hexdigest()
        by_file[file.path] = [
            [(one.number, one.reason) for one in store.versions(file.id)],
            (version.offset, version.size, version.parsed, version.lines, version.glued, digest, file.fail_reason),
            sorted((row.type, row.client, row.disposition, row.n) for row in store.census(version.id)),
            _neutral(store.problems(version.id)),
            [_conversation(store, row) for row in sorted(store.sessions_in(version.id), key=lambda row: row.native_id)],
        ]
    return by_file


def _conversation(store: Store, session: Session) -> list[Any]:
    n = session.id
    rows = [session, store.session(n)[1], *store.messages(n), *store.turns(n), *store.steps(n), *store.calls(n)]
    return _neutral([*rows, *store.artifacts(n), *sorted(store.links(n), key=repr)])


def _neutral(rows: Sequence[msgspec.Struct]) -> list[Any]:
    numbers = ("id", "session", "version")
    return [{key: value for key, value in msgspec.structs.asdict(row).items() if key not in numbers} for row in rows]


def assert_whole(store: Store, scene: Scene) -> None:
    """Whatever happened: the database is sound, and each cursor says exactly what is stored."""
    wrong = verify_archive(store, "box", lambda *numbers: None, live=False).wrong
    assert wrong == [], wrong
    for file, current in store.files():
        assert file.fail_reason == "", f"{file.path} is in quarantine: {file.fail_reason}"
        versions = store.versions(file.id)
        assert versions[-1].id == current.id, f"{file.path}: the newest version is not the current one"
        for version in versions:
            where = f"{file.path} version {version.number}"
            assert version.parsed <= version.size == version.offset, where
            data = store.read_raw(version.id, 0, version.size + 1)
            assert len(data) == version.size, f"{where}: {len(data)} bytes are there, {version.size} are noted"
            known = any(state.startswith(data) for state in scene.contents[Path(file.path).name])
            assert known, f"{where} holds what the file never began with"


def assert_equal(archive: Path, scene: Scene) -> None:
    """The archive holds exactly what one holds that nothing disturbed."""
    store = open_store(str(archive))
    assert_whole(store, scene)
    rows = account(store)
    store.close()
    for one, other in zip(rows, scene.wanted, strict=False):
        assert one == other, f"{one}\n  should be\n{other}"
    assert len(rows) == len(scene.wanted)


def _ready(scene: Scene) -> Scene:
    scene.note_contents()
    report = sync_at(scene.copy_archive(scene.undisturbed), scene.root)
    assert report.failed == [], report.failed
    store = open_store(str(scene.undisturbed))
    assert_whole(store, scene)
    scene.wanted = account(store)
    store.close()
    return scene


def _place(file: SourceFile) -> tuple[Any, ...]:
    return file.id, file.path, file.kind, file.native_id, file.parent, file.mode, file.state, file.version


_TORN = b'{"type":"user","sessionId":"x","message":{"role":"user","content":"a heron'
_REST = b' is back"},"uuid":"u-1","timestamp":"2026-03-01T11:00:00.000Z"}\n'


def _write_history(history: History) -> None:
    history.write(_turns(history, BIG, 36, "walrus"), BIG)
    shared = _turns(history, SMALLER, 10, "octopus")
    history.write(shared + _TORN, SMALLER)
    history.write(history.fork(shared, FORK, SMALLER) + _turns(history, FORK, 5, "walrus"), FORK)
    history.write(b"", EMPTY)
    history.write(_turns(history, GONE, 3, "walrus"), GONE)
    history.write(_turns(history, MOVED, 3, "walrus") + b"not json at all\n" + b"\0" * 100 + b"\n", MOVED)
    agents = history.project / SMALLER / "subagents"
    agents.mkdir(parents=True)
    side = history.turn("side heron", "done", SMALLER, isSidechain=True, agentId="a1")
    (agents / "agent-a1.jsonl").write_bytes(side)


def _turns(history: History, sid: str, n: int, word: str) -> bytes:
    return b"".join(
        history.tool_turn(f"{word} {k} in part_{k}.py", f"cat part_{k}.py", f"text {k} " * 30, sid)
        if k % 2
        else history.turn(f"why is {word} {k} so", f"because {k}", sid)
        for k in range(n)
    )
