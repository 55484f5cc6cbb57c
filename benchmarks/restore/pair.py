"""`python -m benchmarks.restore.pair FOLDER SHEETS READERS`: make labels of the lists of two readers.

SHEETS holds a folder for each session with `meta.json` (`file`, `id`, `from`), READERS the folders `A` and `B` with what each reader listed
(`UNITS.md`, *Whole sessions*) under the name of the sheet. The sessions lie in FOLDER. The labels are printed in the form of `unseen.json`.

Points of two readers are one if they quote the same message, or its neighbour, and either holds half of the words of the other, or if they share
most of their words wherever they stand. Each point is paired once, the likest first. Open points stand under `next_steps`; those that end
with a question mark under `open_questions`. What cannot be found in the session is left out and counted.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import say
from benchmarks.restore.labels import SPOKEN, UNSEEN_HALF, mark, message_text
from benchmarks.restore.learn import archive_files
from benchmarks.restore.match import content_words, same_hash, same_path
from everturn.model.archive import Session
from everturn.sessions.messages import read_messages
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store

Item = dict[str, Any]
Place = list[Any]
_NEAR = 1  # messages between two quotes of one point
_SHARE, _SAME = 0.5, 0.6  # of the shorter quote, in one message; of both, anywhere
#: What the readers called a section, and what it is in the labels.
_SECTIONS = {"decisions": "decisions", "constraints": "constraints", "open": "next_steps", "failing": "still_failing"}


class _SessionText:
    """Finds quotes in a session."""

    def __init__(self, store: Store, session: Session) -> None:
        rows = list(read_messages(store, all_sources(), session))
        self.texts = {row.seq: message_text(message) for row, message in rows}
        self.lost = 0

    def place(self, quote: str, seq: int | None = None) -> Place | None:
        """Return the place of a quote: in its message, in one beside it, or anywhere if it names no message."""
        around = self.texts if seq is None else (seq, seq - 1, seq + 1, seq - 2, seq + 2)
        pattern = re.compile(r"\s+".join(map(re.escape, quote.split())))
        for one in around:
            if quote.strip() and (found := pattern.search(self.texts.get(one, ""))):
                text = self.texts[one]
                start, size = len(text[: found.start()].encode()), len(found[0].encode())
                return [one, start, size, mark(found[0])]
        self.lost += 1
        return None


def _likeness(one: Item, other: Item) -> float:
    """Return how much two points are one, 0 if they are not."""
    words, others = content_words(one["quote"]), content_words(other["quote"])
    shared = len(words & others)
    near = abs(one["seq"] - other["seq"]) <= _NEAR and shared >= _SHARE * min(len(words), len(others))
    same = shared >= _SAME * len(words | others)
    return shared / len(words | others) + near if near or same else 0.0


def pair_items(
    first: Sequence[Item], second: Sequence[Item], likeness: Callable[[Item, Item], float] = _likeness
) -> Iterator[tuple[Item | None, Item | None]]:
    """Yield the points of two readers: those that are one together, the likest first, then the others."""
    alike = [(likeness(one, other), a, b) for a, one in enumerate(first) for b, other in enumerate(second)]
    left, right = set(range(len(first))), set(range(len(second)))
    for value, a, b in sorted(alike, key=lambda entry: -entry[0]):
        if value > 0 and a in left and b in right:
            left.remove(a)
            right.remove(b)
            yield first[a], second[b]
    yield from ((first[a], None) for a in sorted(left))
    yield from ((None, second[b]) for b in sorted(right))


def _label(text: _SessionText, pair: tuple[Item | None, Item | None], is_name: bool = False) -> Item | None:
    given = [one for one in pair if one is not None]
    places = [place for one in given if (place := text.place(one["quote"], None if is_name else one["seq"]))]
    if not places:
        return None
    both = pair[0] is not None and pair[1] is not None
    sure = any(one.get("sure", True) for one in given)
    readers = ("AB" if sure else "AB?") if both else "A" if pair[0] is not None else "B"
    return {"readers": readers, "places": places}


def _names(values: Sequence[Any]) -> list[Item]:
    return [{"quote": one["quote"], "seq": one["seq"]} if isinstance(one, dict) else {"quote": one, "seq": -1} for one in values]  # fmt: skip


def label_session(text: _SessionText, meta: Item, first: Item, second: Item) -> Item:
    """Return the labels of a session by what two readers listed."""
    sections: dict[str, list[Item]] = {name: [] for name in SPOKEN}
    for theirs, ours in _SECTIONS.items():
        for pair in pair_items(first[theirs], second[theirs]):
            if (made := _label(text, pair)) is not None:
                asks = theirs == "open" and (pair[0] or pair[1] or {})["quote"].rstrip("*_\"') ").endswith(("?", "？"))
                sections["open_questions" if asks else ours].append(made)
    alike: dict[str, Callable[[Item, Item], float]] = {
        "files": lambda one, other: float(same_path(one["quote"], other["quote"])),
        "commits": lambda one, other: float(
            same_hash(one["quote"], other["quote"]) or one["seq"] == other["seq"] or one["quote"] == other["quote"]
        ),
        "phrases": lambda one, other: float(one["quote"].lower() == other["quote"].lower()),
    }
    for theirs, same in alike.items():
        pairs = pair_items(_names(first[theirs]), _names(second[theirs]), same)
        found = [made for pair in pairs if (made := _label(text, pair, is_name=theirs != "commits")) is not None]
        sections["key_phrases" if theirs == "phrases" else theirs] = found
    seqs = sorted(set(first["goal_seqs"]) | set(second["goal_seqs"]))
    begun = min((*first["goal_seqs"], *second["goal_seqs"]), default=0)
    whole = [[seq, 0, len(said), mark(text.texts[seq])] for seq in seqs if (said := text.texts.get(seq, "").encode())]
    goal = {"places": [one for one in whole if one[0] == begun], "evolved": [one for one in whole if one[0] != begun]}
    return {**meta, "half": UNSEEN_HALF, "goal": goal, "sections": sections}


def main(arguments: list[str] | None = None) -> int:
    """Print the labels."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore.pair", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    for name in ("folder", "sheets", "readers"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args(arguments)
    sheets = {one.parent.name: json.loads(one.read_text("utf-8")) for one in sorted(options.sheets.glob("*/meta.json"))}
    folder, made, lost = options.folder.resolve(), [], 0
    with tempfile.TemporaryDirectory(prefix="everturn-pair-") as archive:
        store = archive_files({folder / one["file"] for one in sheets.values()}, Path(archive))
        sessions = {session.native_id: session for session, _ in store.sessions(SessionFilter(), limit=100_000)[0]}
        for name, meta in sheets.items():
            lists = [options.readers / reader / f"{name}.json" for reader in "AB"]
            if meta["id"] in sessions and all(one.exists() for one in lists):
                text = _SessionText(store, sessions[meta["id"]])
                made.append(label_session(text, meta, *(json.loads(one.read_text("utf-8")) for one in lists)))
                lost += text.lost
        store.close()
    say(f"{len(made)} sessions; {lost} quotes are not in theirs")
    print("[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in made) + "\n]")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
