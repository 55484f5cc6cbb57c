"""`python -m benchmarks.restore.ceilings FOLDER`: how much of what readers list can be told from where it stands.

Two questions about the sessions of `opened.json` and `whole.json` that lie in FOLDER:

- *Constraints.* Readers of `units.json` saw single messages, others whole sessions. Of the messages that both saw: how often is a message that the first
  marked (`R` or `r`) one whose constraint the second listed, and how many of these are marked? That is what somebody who understands a message, but does
  not know its session, reaches.
- *Open points.* In which part of a session do the points stand that readers call open at its end, and how many of each part does the document name? What stands
  before the last turn can only be found by who knows whether it is over.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, show
from benchmarks.restore.labels import LEARNT_SETS, SETS, LabelledSession, labelled_sessions, mark
from benchmarks.restore.learn import UNITS, archive_files, session_prompts
from benchmarks.restore.match import says_item, says_place
from benchmarks.restore.sections import restore_labelled
from everturn.sessions.messages import read_messages
from everturn.sources.contract import all_sources
from everturn.store.contract import Store
from everturn.text.sentences import split_sentences

_OPEN = ("open_questions", "next_steps")
_PARTS = ("the last turn", "the turn before", "earlier turns")
Units = Mapping[tuple[str, str], list[dict[str, Any]]]


def read_units() -> Units:
    """Return the entries of `units.json` by the file and the id of their session."""
    found = defaultdict(list)
    for one in json.loads(UNITS.read_text("utf-8")):
        found[one["file"], one["id"]].append(one)
    return found


def message_verdicts(store: Store, one: LabelledSession, entries: list[dict[str, Any]]) -> Iterator[tuple[bool, str]]:
    """Yield for each message that both kinds of readers saw whether it was marked, and what the session's readers say of it."""
    prompts, seen = session_prompts(store, one.session), set[int]()
    for seq, shown, rules, maybe, *_ in (prompt for entry in entries for prompt in entry.get("prompts", ())):
        if seq in seen or seq not in prompts:
            continue
        seen.add(seq)
        read = list(split_sentences(prompts[seq]))[:shown]
        marked = [sentence.text for sentence in read if mark(sentence.text) in (*rules, *maybe)]
        items = [item for item in one.sections["constraints"] if any(place.message == seq for place in item.places)]
        fitting = [
            item
            for item in items
            if any(place.message == seq and says_place(text, place) for text in marked for place in item.places)
        ]
        firm = any(item.firm for item in (fitting if marked else items))
        yield bool(marked), "firm" if firm else "doubtful" if (fitting if marked else items) else "none"


def open_places(store: Store, one: LabelledSession) -> Iterator[tuple[str, bool]]:
    """Yield for each firm open point the part of the session in which it stands last, and whether the document names it."""
    turns = {row.seq: row.turn for row, _ in read_messages(store, all_sources(), one.session)}
    last, shown = max(turns.values(), default=0), restore_labelled(store, one).shown
    told = [statement for name in _OPEN for statement in shown[name]]
    for item in (item for name in _OPEN for item in one.sections[name] if item.firm and item.places):
        back = last - max(turns[place.message] for place in item.places)
        yield _PARTS[min(back, 2)], any(says_item(statement, item, one) for statement in told)


def main(arguments: list[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore.ceilings", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("folder", type=Path, help="the folder that holds the sessions")
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    options = parser.parse_args(arguments)
    folder, units = options.folder.resolve(), read_units()
    messages, places = Counter[tuple[bool, str]](), Counter[tuple[str, bool]]()
    with tempfile.TemporaryDirectory(prefix="everturn-ceilings-") as archive:
        for half in LEARNT_SETS:
            files = {folder / one["file"] for one in json.loads(SETS[half].read_text("utf-8"))}
            store = archive_files(files, Path(archive) / half)
            for one in labelled_sessions(store, (half,), SETS[half], folder):
                file, _ = store.file_by_id(store.version(one.session.version).source)
                name = str(Path(file.path.partition("#")[0]).relative_to(folder))
                messages.update(message_verdicts(store, one, units.get((name, one.session.native_id), [])))
                places.update(open_places(store, one))
            store.close()
    for figure in ceiling_figures(messages, places):
        show(figure, options.json)
    return 0


def ceiling_figures(messages: Counter[tuple[bool, str]], places: Counter[tuple[str, bool]]) -> Iterator[Figure]:
    """Yield what a reader of single messages reaches, and where open points stand."""
    right, wrong, missed = messages[True, "firm"], messages[True, "none"], messages[False, "firm"]
    note = f"{right} of {right + wrong}; {messages[True, 'doubtful']} doubtful"
    yield Figure("constraints, a reader of single messages: precision", right / max(1, right + wrong), note=note)
    yield Figure("constraints, a reader of single messages: messages found", right / max(1, right + missed), note=f"{right} of {right + missed}")  # fmt: skip
    there = places.total()
    for part in _PARTS:
        named, all_ = places[part, True], places[part, True] + places[part, False]
        yield Figure(f"open points in {part}", all_ / max(1, there), note=f"{all_} of {there}; the document names {named}")  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
