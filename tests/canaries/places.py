"""A home in which every place that may hold words of a session has a word of its own, and the eye that finds them again.

Used by the test of erasure and by `python -m benchmarks erasure`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from everturn.capture.hook_answer import WHERE, WINDOW, prepare_context
from everturn.capture.policy import Policy
from everturn.hook import append, event_line
from everturn.loop.journal import Journal, JournalAbout
from everturn.loop.journal_state import AGENT
from everturn.model.archive import HookEvent, KeptRow
from everturn.store.checkpoints import Channel, GraphCheckpoint, PendingWrite
from everturn.store.contract import Store, open_store
from tests.capture.history import FORMAT, OTHER, SID, run
from tests.recall.archives import Archive

#: The sessions to forget: one of an agent, one of a program.
TARGETS = (SID, "elder")
CHILD_QUESTION = "an own question of the child"


class Canaries:
    """One word per place. The words share no beginning, as an index keeps beginnings only once."""

    def __init__(self, seed: int = 1) -> None:
        self._dice = random.Random(seed)
        self.words: dict[str, str] = {}

    def __call__(self, place: str) -> str:
        return self.words.setdefault(place, "".join(self._dice.choices("bcdfghjkmnpqrstvwxz", k=14)))

    def find(self, data: bytes) -> set[str]:
        return {place for place, word in self.words.items() if word.encode() in data}


def plant_home(home: Path) -> Canaries:
    """Make an archive and everything beside it below a folder."""
    word = Canaries()
    home.mkdir(parents=True)
    with closing(open_store(str(home / "archive.db"))) as store:
        _plant_transcript(Archive(store, home / "agent"), word)
        _plant_journals(store, word)
        _plant_rows(store, word)
        store.backup(str(home / "archive.db.before-0003"))
    _plant_files(home, word)
    return word


def _plant_transcript(archive: Archive, word: Canaries) -> None:
    history = archive.history
    archive.take_in(history.turn(f"first version {word('an older version of the file')}", "reply"))
    archive.subagent(
        "helper",
        archive.helper("helper", "user", f"look {word('the prompt of a subagent')}"),
        archive.helper("helper", "assistant", [{"type": "text", "text": f"found {word('the answer of a subagent')}"}]),
    )
    thinking = {"type": "thinking", "thinking": f"hmm {word('thinking')}", "signature": word("a signature")}
    path = f"/home/ann/{word('the path of an artifact')}/a.py"
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": word("a picture")}}
    pieces = [
        history.line("user", f"ask {word('a prompt')}", gitBranch=word("a branch")),
        history.line("user", [{"type": "text", "text": "see"}, image]),
        history.line("assistant", [thinking, {"type": "text", "text": f"reply {word('an answer')}"}]),
        archive.use("Bash", "b1", command=f"make {word('a tool input')}"),
        archive.back("b1", f"ok {word('a tool output')}", stdout=word("the details of a result")),
        archive.use("Edit", "e1", file_path=path, old_string=word("an edit, before"), new_string=word("an edit, after")),
        archive.back("e1", f"Error: {word('an error')}", failed=True),
        archive.use(word("the name of a tool"), "u1", given="x"),
        archive.back("u1", "fine"),
        archive.use("TodoWrite", "p1", todos=[{"content": word("a plan"), "status": "pending"}]),
        archive.back("p1", "noted"),
        history.line("user", f"<system-reminder>{word('injected context')}</system-reminder>", isMeta=True),
        b'{"type":"summary","summary":"%s","leafUuid":"x"}\n' % word("a summary of the agent").encode(),
        b'{"type":"custom-title","customTitle":"%s","sessionId":"%s"}\n' % (word("a title").encode(), SID.encode()),
        b'{"type":"%s","sessionId":"%s"}\n' % (word("an unknown type").encode(), SID.encode()),
        b'{"broken %s\n' % word("a broken line").encode(),
    ]  # fmt: skip
    data = b"".join(pieces)
    archive.take_in(data)
    copy = history.fork(data, OTHER) + history.turn("go on elsewhere", "yes", OTHER)
    copy = copy.replace(
        b'"sessionId": "' + OTHER.encode(),
        b'"forkedFrom": {"sessionId": "%s"}, "sessionId": "%s' % (SID.encode(), OTHER.encode()),
    )
    archive.take_in(copy, sid=OTHER)
    run(archive.store, history)


def _plant_journals(store: Store, word: Canaries) -> None:
    about = JournalAbout(workspace="/w", title=word("the title of a journal"))
    with Journal.open(store, "elder", about, policy=Policy()) as journal:
        journal.setup(f"system {word('a system prompt')}")
        journal.accept(f"prompt {word('the prompt of a journal')}")
        journal.state("anything", {"said": word("the state of a program")})
        journal.step("work", lambda: word("the value of a step"))
        journal.inject(f"hint {word('an injected hint')}", "hint")
        journal.note(f"note {word('the note of a program')}", data={"more": word("the data of a note")})
    for name, parent in (("child", "elder"), ("grandchild", "child")):
        made = JournalAbout(workspace="/w", parent=parent, relation="continues")
        with Journal.open(store, name, made, policy=Policy()) as journal:
            journal.inject(f"CONTEXT RESTORATION {word(f'the restoration of a {name}')}", "restoration")
            journal.state("restored", {"summary": word(f"the restored state of a {name}")})
            journal.accept(CHILD_QUESTION)
            journal.inject(f"state {word(f'the injected state of a {name}')}", "state")


def _plant_rows(store: Store, word: Canaries) -> None:
    engine: Any = store
    with store.write():
        for kind in ("summary", "turn_summary", "synthesis", "chat", "inherited", "pin", "mark", "session_state"):
            store.keep(KeptRow(kind, AGENT, "elder", "k", f'{{"text":"{word(f"a kept {kind}")}"}}', 1))
            if kind not in ("pin", "mark", "session_state"):
                store.keep(KeptRow(kind, AGENT, "child", "k", f'{{"text":"{word(f"a {kind} kept of a child")}"}}', 1))
        store.keep(KeptRow("summary", FORMAT, SID, "k", f'{{"text":"{word("the summary of a transcript")}"}}', 1))
        store.keep(KeptRow("pin", AGENT, "child", "1", f'{{"text":"{word("a pin in a child")}","session":"elder"}}', 1))
        engine.add_items("f", "elder", [("", word("the item of a list").encode())], 1)
        body, meta = word("a checkpoint").encode(), word("the facts of a checkpoint").encode()
        row = GraphCheckpoint("elder", "", "c1", "", "", "k", body, "k", meta, 1)
        engine.put_checkpoint(row, [Channel("messages", "1", ("k", word("the channel of a checkpoint").encode()))])
        write = PendingWrite("elder", "", "c1", "t", 0, "", "messages", "k", word("a pending write").encode())
        engine.put_checkpoint_writes([write])
        store.add_hook_events([HookEvent(SID, "r1", "PreToolUse", "begun", tool=word("a hook event"), at=1)])


def _plant_files(home: Path, word: Canaries) -> None:
    context = str(home / "state" / "context")
    prepare_context(context, "/home/ann/shop", WHERE, word("a prepared answer"))
    prepare_context(context, SID, WINDOW, word("texts in view"))
    (home / "handed-over").mkdir()
    (home / "handed-over" / f"{SID}.json").write_text(word("a file handed to an agent"))
    (home / "chats").mkdir()
    (home / "chats" / "chat_20260301_100000_elder.md").write_text(word("a saved chat"))
    event = b'{"session_id":"%s","hook_event_name":"Stop","cwd":"/w/%s"}' % (SID.encode(), word("the spool").encode())
    append(str(home / "state" / "spool"), event_line(event, True, 1, 1))
    (home / "archive.db.before-0003.part").write_text(word("a half copy"))


def places_held(home: Path, word: Canaries) -> set[str]:
    """The places whose word is in the bytes of a file, in a row, in an unpacked chunk or in the index."""
    found = set[str]()
    for path in home.rglob("*"):
        if path.is_file() and "agent" not in path.relative_to(home).parts:
            found |= word.find(path.read_bytes())
    with closing(open_store(str(home / "archive.db"))) as store:
        for text in _decoded(store):
            found |= word.find(text)
    return found


def _decoded(store: Store) -> Iterator[bytes]:
    driver: Any = store.driver  # type: ignore[attr-defined]
    for (name,) in driver.all("SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite%'"):
        yield repr(driver.all(f'SELECT * FROM "{name}"')).encode()
    driver.run("CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', 'fts', 'row')")
    yield repr(driver.all("SELECT term FROM temp.words")).encode()
    for (digest,) in driver.all('SELECT "digest" FROM "blob"'):
        yield store.read_chunk(digest)
