"""What people asked to hold: sixty sessions read by hand, and what a document says of them.

`constraints.json` names, by session file, the line of each such sentence and a hash of it: no word of the transcripts. A
sentence was marked when it forbids something, lays down a rule, or asks for something that has to hold beyond the step at
hand; requests, decisions and what was pasted were not. A marked sentence is found when a constraint of the document stands
in the same message and shares most of its words.

The rules of `derive.decisions` were widened while looking at the first thirty sessions: what is measured there is how well
they were fitted. The other thirty are `held_out`: labelled afterwards, and nothing was changed for them. Theirs is the
figure to quote, and it is to stay so: whoever changes the rules for one of them labels new ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from benchmarks.restore.cutting import CORPUS
from benchmarks.restore.measuring import Score
from everturn.model.archive import Session
from everturn.restore.document import Document, section
from everturn.sessions.messages import read_messages
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store

LABELS = Path(__file__).with_name("constraints.json")
_WORDS = re.compile(r"[\w'’]+")
_SHARED = 0.6


def labelled(store: Store, held_out: bool) -> Iterator[tuple[Session, dict[int, list[str]]]]:
    """Each session of one set, with the marked sentences by message."""
    read = [one for one in json.loads(LABELS.read_text()) if one["held_out"] == held_out]
    wanted = {(one["file"], one["session"]): one["labels"] for one in read}
    for session, _ in store.sessions(SessionFilter(), limit=100_000)[0]:
        file, _ = store.file_by_id(store.version(session.version).source)
        labels = wanted.get((str(Path(file.path.partition("#")[0]).relative_to(CORPUS)), session.native_id))
        if labels is not None:
            yield session, _marked(store, session, {(line, mark) for line, mark in labels})


def score(document: Document, marked: dict[int, list[str]]) -> Score:
    """How many of the marked sentences the document holds, and how many of its constraints were marked."""
    made = Score()
    said = [(one.evidence[0].message, one.text) for one in section(document, "constraints").statements if one.evidence]
    for seq, sentences in marked.items():
        for sentence in sentences:
            found = any(where == seq and _shares(sentence, text) for where, text in said)
            made.add(Score(found, 1, missing=[] if found else [sentence]))
    for where, text in said:
        right = any(_shares(sentence, text) for sentence in marked.get(where, ()))
        made.add(Score(right=right, listed=1, wrong=[] if right else [text]))
    return made


def sentences(text: str) -> list[str]:
    """A message cut at line ends and behind full stops."""
    parts = (part for line in text.splitlines() for part in re.split(r"(?<=[.!?])\s+", line.strip()))
    return [" ".join(part.split()) for part in parts if part.strip()]


def hashed(sentence: str) -> str:
    """What a sentence is known by."""
    return blake2b(" ".join(_WORDS.findall(sentence.lower())).encode(), digest_size=8).hexdigest()


def prompts(store: Store, session: Session) -> Iterator[tuple[int, int, str]]:
    """Number, line and words of what people said."""
    data = store.read_raw(session.version, 0, store.version(session.version).size)
    for row, message in read_messages(store, all_sources(), session):
        if row.origin == "human" and row.kind in ("text", "queued"):
            text = "\n".join(block.text for block in message.blocks if block.field == "prompt" and block.text)
            yield row.seq, data.count(b"\n", 0, row.start) + 1, text


def _marked(store: Store, session: Session, labels: set[tuple[int, str]]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for seq, line, text in prompts(store, session):
        marked = [one for one in sentences(text) if (line, hashed(one)) in labels]
        if marked:
            found[seq] = list(dict.fromkeys(marked))
    return found


def _shares(sentence: str, text: str) -> bool:
    """Most words of the shorter one stand in the other."""
    one, other = (set(_WORDS.findall(words.lower())) for words in (sentence, text))
    return len(one & other) >= _SHARED * min(len(one), len(other)) if one and other else False
