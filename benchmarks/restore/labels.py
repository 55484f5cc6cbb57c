"""What readers found in 141 real sessions: read from `labels.json`, which holds places and no words.

`unseen` reads its own sets, `unseen.json`, `opened.json` and `whole.json`, with the same code. Of 99 sessions, two readers worked independently from the same guide. Each wrote down, for an agent that has to continue the session, the goal,
decisions, constraints, open questions, next steps, what still fails, edited files, commits and key phrases. An item is a
list of places `[message, start, size, mark]`: the seq of a message, a byte range of its text (`message_text`, UTF-8) and a hash
of the words there. `readers` says who named it. An item named by both is firm. One named by a single reader, and a decision
that no longer stands, is doubtful, as is one of which both were unsure (`AB?`): a statement that matches it is neither right nor wrong, and nobody misses it.

Of these sessions 38 are `open`, 39 `held`. Rules were fitted to the open half first, while the held half was only
measured. After those figures were published, both were opened for development. The other 22, `blind`, were labelled after that
and are only measured: no rule may come from them.

Another 42 sessions have one reader (`readers` is `N`), who did not list files and commits. All of its items are firm, so precision
is stricter than with two readers. They are split by repository into `fresh` and `fresh-check`: rules are made
on `open` and `fresh` and checked on the other two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from benchmarks.restore.cutting import CORPUS
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.model.archive import Session
from everturn.model.conversation import Block, Message
from everturn.sessions.messages import read_messages
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, Store, open_store

LABELS = Path(__file__).with_name("labels.json")
HALVES = ("open", "held", "fresh", "fresh-check", "blind")
#: Those whose misses may be read. A part that is only measured is not among them.
READABLE = ("open", "held", "fresh", "fresh-check")
#: The parts that `unseen.json`, `opened.json` and `whole.json` are.
UNSEEN_HALF, OPENED_HALF, WHOLE_HALF = "unseen", "opened", "whole"
#: Those that are only measured: bars are for them.
MEASURED = ("blind", UNSEEN_HALF)
#: Those whose readers also listed files and commits.
TWICE_READ = ("open", "held", OPENED_HALF, WHOLE_HALF, *MEASURED)
#: Sections whose items are sentences.
SPOKEN = ("decisions", "constraints", "open_questions", "next_steps", "still_failing")
#: Sections whose items are names.
NAMED = ("files", "commits", "key_phrases")
_DEEPEST = 12
_FEW_WORDS = 4
_KEY = b"everturn restore labels"
_AROUND = 400  # characters on either side of a place in which its sentence ends


@dataclass(frozen=True)
class Place:
    """A piece of a message, with its words."""

    message: int  # seq
    quote: str
    sentence: str  # the quote and the rest of its sentence or line


@dataclass(frozen=True)
class LabelledItem:
    """One point that one or both readers wrote down."""

    places: tuple[Place, ...]
    firm: bool
    commands: tuple[str, ...] = ()  # of a failure: as given or as run at its places
    taken_back: bool = False  # a decision that no longer stands

    @property
    def words(self) -> str:
        """The words of its first place."""
        return self.places[0].quote if self.places else ""


@dataclass
class LabelledSession:
    """A session of the corpus and what the readers found in it."""

    session: Session
    half: str
    goal: tuple[Place, ...]
    evolved: tuple[Place, ...]
    sections: dict[str, list[LabelledItem]]
    lost: int = 0  # places whose words are no longer there
    commands: dict[int, tuple[str, ...]] = field(default_factory=dict)  # by seq of the call and of its result
    pairs: dict[int, set[int]] = field(default_factory=dict)  # seq of a call to that of its result, and back


def mark(words: str) -> str:
    """Return a hash of some words, white space aside."""
    return blake2b("".join(words.split()).encode(), digest_size=4, key=_KEY).hexdigest()


def message_text(message: Message) -> str:
    """Return all text of a message, as it was captured: each text of a block on lines of its own."""
    return "\n".join(text for block in message.blocks for text in _block_texts(block) if text)


def _block_texts(block: Block) -> Iterator[str]:
    yield block.text
    if block.call is not None:
        given = list(_strings(block.call.input, _DEEPEST))
        yield from (one for one in (*given, block.call.path, block.call.command) if one != block.text)
    if block.result is not None:
        yield from (block.result.path, *(path for _, path in block.result.others))
    if block.call is None and not block.text:
        yield from _strings(block.data, _DEEPEST)


def _strings(value: Any, deep: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list) and deep:
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one, deep - 1)


def archive_labelled(
    folder: Path, halves: tuple[str, ...] = HALVES, labels: Path = LABELS, corpus: Path = CORPUS
) -> Store:
    """Take the files of the labelled sessions of some parts into an archive."""
    folder.mkdir(parents=True, exist_ok=True)
    store = open_store(str(folder / "labelled.db"))
    job = SyncJob(
        store, all_sources(), SearchPlaces(folder, {}, "linux"), Policy(), "here", "me", lambda: 1_700_000_000_000
    )
    add_paths(job, sorted({corpus / one["file"] for one in json.loads(labels.read_text()) if one["half"] in halves}))
    return store


def labelled_sessions(
    store: Store, halves: tuple[str, ...] = HALVES, labels: Path = LABELS, corpus: Path = CORPUS
) -> Iterator[LabelledSession]:
    """Yield each labelled session of some parts that the archive holds, with the words of its labels."""
    wanted = {(one["file"], one["id"]): one for one in json.loads(labels.read_text()) if one["half"] in halves}
    for session, _ in store.sessions(SessionFilter(), limit=100_000)[0]:
        file, _ = store.file_by_id(store.version(session.version).source)
        name = str(Path(file.path.partition("#")[0]).relative_to(corpus))
        one = wanted.get((name, session.native_id))
        if one is not None:
            yield _LabelReader(store, session).read(one)


class _LabelReader:
    """Looks up the places of one session."""

    def __init__(self, store: Store, session: Session) -> None:
        self._session = session
        self._texts: dict[int, str] = {}
        commands, origins = {}, []
        for row, message in read_messages(store, all_sources(), session):
            self._texts[row.seq] = message_text(message)
            origins.append((row.seq, row.origin))
            for block in message.blocks:
                if block.call is not None and block.call.command:
                    commands[row.seq, block.call.call_id] = block.call.command
        self._commands: dict[int, tuple[str, ...]] = {}
        self._pairs: dict[int, set[int]] = {}
        for call in store.calls(session.id):
            seqs = {call.seq, call.seq if call.result_seq is None else call.result_seq}
            for seq in seqs:
                self._pairs.setdefault(seq, set()).update(seqs)
                if (call.seq, call.call_id) in commands:
                    self._commands[seq] = (*self._commands.get(seq, ()), commands[call.seq, call.call_id])
        self._opening = next((seq for seq, origin in origins if origin == "human"), -1)
        self._lost = 0

    def read(self, labels: dict[str, Any]) -> LabelledSession:
        """Return the labels of the session with their words."""
        goal = tuple(self._places(labels["goal"]["places"]))
        goal = tuple(one for one in goal if not self._is_short_opening(one)) or goal
        evolved = tuple(self._places(labels["goal"]["evolved"]))
        sections = {key: [self._item(one) for one in labels["sections"][key]] for key in (*SPOKEN, *NAMED)}
        return LabelledSession(
            self._session, labels["half"], goal, evolved, sections, self._lost, self._commands, self._pairs
        )

    def _is_short_opening(self, place: Place) -> bool:
        """Whether a place is no more than a first prompt of a few words, such as "continue"."""
        return place.message == self._opening and len(self._texts[place.message].split()) <= _FEW_WORDS

    def _item(self, entry: dict[str, Any]) -> LabelledItem:
        places = tuple(self._places(entry["places"]))
        given = tuple(one.quote for one in self._places(entry.get("commands", [])))
        run = tuple(command for one in places for command in self._commands.get(one.message, ()))
        taken_back = bool(entry.get("taken_back"))
        return LabelledItem(places, entry["readers"] in ("AB", "N") and not taken_back, (*given, *run), taken_back)

    def _places(self, entries: list[list[Any]]) -> Iterator[Place]:
        for seq, start, size, wanted in entries:
            data = self._texts.get(seq, "").encode()
            at = find_marked(data, start, size, wanted)
            if at is None:
                self._lost += 1
                continue
            quote = data[at : at + size].decode("utf-8", "replace")
            yield Place(seq, quote, sentence_around(data, at, size))


def find_marked(data: bytes, start: int, size: int, wanted: str) -> int | None:
    """Return where the words of a place begin: at `start`, or elsewhere in the message if the text has changed."""
    if mark(data[start : start + size].decode("utf-8", "replace")) == wanted:
        return start
    for at in range(len(data) - size + 1):
        if mark(data[at : at + size].decode("utf-8", "replace")) == wanted:
            return at
    return None


def sentence_around(data: bytes, start: int, size: int) -> str:
    """Return a piece of a text with the rest of its sentence."""
    before = data[:start].decode("utf-8", "replace")[-_AROUND:]
    after = data[start + size :].decode("utf-8", "replace")[:_AROUND]
    first = max(before.rfind(end) + len(end) for end in ("\n", ". ", "! ", "? ") if end in before or end == "\n")
    ends = [at for end in ("\n", ". ", "! ", "? ") if (at := after.find(end)) >= 0]
    return (
        before[first:] + data[start : start + size].decode("utf-8", "replace") + after[: min(ends, default=len(after))]
    )
