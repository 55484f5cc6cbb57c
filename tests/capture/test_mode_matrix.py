"""Every writer under every capture mode, in a known, an unknown and an excluded workspace: what must not be kept is not there."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from everturn.capture.policy import NotCaptured, Policy
from everturn.capture.spool import drain_spool
from everturn.capture.sync import SyncJob, add_paths, sync_all, writer_for
from everturn.hook import SPOOL
from everturn.integrations.archive import Archive
from everturn.loop.conversation_store import ConversationStore
from everturn.loop.journal import Journal, JournalAbout, open_archive
from everturn.maintenance.merge import merge_archive
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import Store, open_store
from tests.secrets.secret_vectors import TOKENS

WORD = "qzwvxkjyq"
TOKEN = TOKENS["github_token"][0]
SAID = f"{WORD} the token is {TOKEN}"
MODES = ("full", "redacted", "structure", "off")


class Place:
    """A machine with one mode for everything and one excluded folder, and an archive."""

    def __init__(self, folder: Path, mode: str, workspace: str) -> None:
        self.folder, self.mode, self.home = folder, mode, folder / "ev"
        self.workspace = {"known": str(folder / "shop"), "unknown": "", "excluded": str(folder / "private" / "a")}[
            workspace
        ]
        self.home.mkdir()
        excluded = json.dumps(str(folder / "private"))
        (self.home / "config.toml").write_text(f'[capture]\nmode = "{mode}"\nexclude = [{excluded}]\n')
        self.db = str(self.home / "archive.db")
        self.policy = Policy(mode, exclude=(str(folder / "private"),))

    def job(self, store: Store) -> SyncJob:
        places = SearchPlaces(self.folder, {}, "linux")
        return SyncJob(store, all_sources(), places, self.policy, "m", "o", lambda: 1, spool=self.home)

    def everything(self) -> str:
        """Every value of every table, with chunks unpacked, and every file of ours."""
        with closing(open_store(self.db)) as store:
            driver = store.driver  # type: ignore[attr-defined]
            names = [row[0] for row in driver.all("SELECT name FROM sqlite_schema WHERE type='table'")]
            text = [repr(driver.all(f'SELECT * FROM "{name}"')) for name in names if name != "fts"]
            for (digest,) in driver.all('SELECT "digest" FROM "blob"'):
                text.append(store.read_chunk(digest).decode("utf-8", "replace"))
        return "".join(text) + repr([path.read_bytes() for path in self.home.rglob("*.jsonl")])


def claude_line(place: Place) -> str:
    record = {
        "type": "user",
        "sessionId": "s1",
        "uuid": "u1",
        "timestamp": "2026-01-01T00:00:00Z",
        "cwd": place.workspace,
    }
    return json.dumps(record | {"message": {"role": "user", "content": SAID}}) + "\n"


def sync_transcript(place: Place) -> None:
    file = place.folder / ".claude" / "projects" / "p" / "11111111-1111-4111-8111-111111111111.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(claude_line(place))
    with closing(open_store(place.db)) as store:
        sync_all(place.job(store))


def add_transcript(place: Place) -> None:
    file = place.folder / "11111111-1111-4111-8111-111111111111.jsonl"
    file.write_text(claude_line(place))
    with closing(open_store(place.db)) as store:
        report = add_paths(place.job(store), [file])
    assert bool(report.unknown) == (place.mode != "off" and not place.workspace)


def sync_gemini(place: Place) -> None:
    chats = place.folder / ".gemini" / "tmp" / "abc" / "chats"
    chats.mkdir(parents=True)
    if place.workspace:
        (chats.parent / ".project_root").write_text(place.workspace)
    message = {"id": "m1", "type": "user", "content": SAID, "timestamp": "2026-01-01T00:00:00Z"}
    document = {"sessionId": "g1", "projectHash": "h", "messages": [message]}
    (chats / "session-2026-01-01T00-00-abc.json").write_text(json.dumps(document))
    with closing(open_store(place.db)) as store:
        sync_all(place.job(store))


def drain_hooks(place: Place) -> None:
    line = {
        "at": 1,
        "pid": 1,
        "session_id": "s1",
        "hook_event_name": "x",
        "tool_name": WORD,
        "tool_use_id": "t",
        "cwd": place.workspace,
    }
    (place.home / SPOOL).write_text(json.dumps(line) + "\n")
    with closing(open_store(place.db)) as store:
        drain_spool(store, place.home, place.policy)


def write_journal(place: Place) -> None:
    store = open_archive(place.db)
    with closing(store), Journal.open(store, "", JournalAbout(workspace=place.workspace)) as journal:
        journal.setup(SAID)
        journal.accept(SAID)
        assert journal.past.count >= 3  # it works, wherever it is written


def write_conversation(place: Place) -> None:
    async def converse() -> None:
        async with ConversationStore() as store:
            await store.initialize(place.db)
            session = await store.create_session(place.workspace, "m", SAID)
            await store.append_turn(session, "user", SAID)
            await store.update_session_state(session, {"said": SAID})
            assert WORD in (await store.get_turns(session))[-1]["content"]

    asyncio.run(converse())


def write_framework_state(place: Place) -> None:
    with Archive(place.db, workspace=place.workspace) as archive:
        archive.do(lambda store: store.add_items("f", "o", [("", SAID.encode())], 1))
        assert archive.do(lambda store: len(store.items("f", "o"))) == 1
    open_store(place.db).close()


def merge_other(place: Place) -> None:
    other = Place.__new__(Place)
    other.__dict__.update(place.__dict__, policy=Policy(), db=str(place.folder / "other.db"))
    with closing(open_store(other.db)) as theirs, closing(open_store(place.db)) as mine:
        add_file = place.folder / "22222222-2222-4222-8222-222222222222.jsonl"
        add_file.write_text(claude_line(place))
        add_paths(other.job(theirs), [add_file])
        merge_archive(writer_for(place.job(mine)), theirs, all_sources(), lambda *numbers: None, place.policy)


def sync_database(place: Place) -> None:
    """A session inside a database: its bytes, and those of the database."""
    threads = place.folder / ".local" / "share" / "zed" / "threads"
    threads.mkdir(parents=True)
    with closing(sqlite3.connect(threads / "threads.db")) as database:
        database.execute(
            "CREATE TABLE threads (id TEXT, summary TEXT, updated_at TEXT, data_type TEXT, data BLOB, folder_paths TEXT)"
        )
        thread = {"version": "0.3.0", "title": "t", "messages": [{"User": {"id": "u1", "content": [{"Text": SAID}]}}]}
        row = ("th-1", "t", "2026-01-01T00:00:00Z", "json", json.dumps(thread).encode(), place.workspace)
        database.execute("INSERT INTO threads VALUES (?,?,?,?,?,?)", row)
        database.commit()
    with closing(open_store(place.db)) as store:
        sync_all(place.job(store))


def add_markdown(place: Place) -> None:
    """Lines of text, whose folder is known by the place of the file."""
    path = Path(place.workspace or place.folder / "notes") / (".specstory/history" if place.workspace else "") / "a.md"
    path.parent.mkdir(parents=True)
    head = "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n# 2026-05-01 10:00:00Z\n\n"
    session = "<!-- Claude Code Session 0c0ffee0-1111-4222-8333-444444444444 (2026-05-01 10:00:00Z) -->\n\n"
    path.write_text(f"{head}{session}_**User (2026-05-01 10:00:00Z)**_\n\n{SAID}\n\n---\n")
    with closing(open_store(place.db)) as store:
        add_paths(place.job(store), [path])


WRITERS: dict[str, Callable[[Place], None]] = {
    "database": sync_database,
    "markdown": add_markdown,
    "sync": sync_transcript,
    "add": add_transcript,
    "gemini": sync_gemini,
    "hooks": drain_hooks,
    "journal": write_journal,
    "conversation": write_conversation,
    "framework": write_framework_state,
    "merge": merge_other,
}


@pytest.mark.few(30)
@pytest.mark.parametrize("workspace", ["known", "unknown", "excluded"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_writer_leaves_in_the_archive(
    writer: str, mode: str, workspace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, mode, workspace)
    monkeypatch.setenv("EVERTURN_HOME", str(place.home))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCaptured)
        WRITERS[writer](place)
    kept = place.everything()
    if mode == "full" and workspace == "known":
        assert WORD in kept
        assert TOKEN in kept or writer == "hooks"
        return
    assert TOKEN not in kept
    if writer == "hooks" and mode != "off" and workspace == "known":
        return  # the rows of hooks have names of tools and no content
    is_masked = mode == "redacted" and workspace == "known" and writer not in ("framework", "merge")
    assert (WORD in kept) == is_masked


@pytest.mark.parametrize("workspace", ["unknown", "excluded"])
def test_a_program_is_told_that_its_session_is_not_kept(
    workspace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, "full", workspace)
    monkeypatch.setenv("EVERTURN_HOME", str(place.home))
    with pytest.warns(NotCaptured, match="unknown" if workspace == "unknown" else "is off"):
        write_journal(place)


def test_a_worktree_belongs_to_its_repository_and_a_link_to_its_target(tmp_path: Path) -> None:
    repository, worktree, link = tmp_path / "private", tmp_path / "elsewhere", tmp_path / "link"
    (repository / ".git" / "worktrees" / "w").mkdir(parents=True)
    (worktree / "src").mkdir(parents=True)
    (worktree / ".git").write_text(f"gitdir: {repository}/.git/worktrees/w\n")
    link.symlink_to(repository)
    policy = Policy(exclude=(str(repository),))
    assert policy.decide(str(worktree / "src")).mode == "off"
    assert policy.decide(str(link / "a")).mode == "off"
    assert policy.decide(str(tmp_path / "shop")).mode == "full"


def test_an_unknown_workspace_gets_the_strictest_mode_of_the_rules() -> None:
    assert Policy(rules=(("/a", "redacted"),)).decide("").mode == "redacted"
    assert Policy("off", rules=(("/a", "full"),)).decide("").mode == "off"
    assert Policy(exclude=("/a",), unknown="structure").decide("").mode == "structure"
    assert Policy(exclude=("/home/ann/private",)).decide("", "/x/home-ann-private-notes/1.jsonl").mode == "off"
    assert Policy(exclude=("/a",)).decide("", "/x/export.json", is_placeless=True).mode == "full"


@pytest.mark.parametrize("escaped", [False, True])
def test_the_context_of_gemini_names_the_workspace(escaped: bool) -> None:
    text = "This is the CLI.\n- **Workspace Directories:**\n  - /home/ann/private\n- **Directory Structure:**"
    head = json.dumps({"content": text}) if escaped else text
    assert all_sources()["gemini"].workspace(head.encode()) == "/home/ann/private"
