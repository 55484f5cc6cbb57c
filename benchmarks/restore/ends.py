"""`python -m benchmarks.restore.ends FOLDER`: documents of sessions that nothing was learnt from, against two readers.

`aside.json` holds 133 sessions of 66 repositories. They were set aside before they were read, and no repository of theirs is in
`sentences.json`, `reports.json`, `labels.json` or the corpus. Two readers marked every rule of the person, every point that is left open
at the end, and what still fails: checks, and reports of the person. A sentence that both marked is firm, one that a single reader marked or called
doubtful is doubtful. An entry has the fields of `sentences.json`, with doubtful marks by section (`open?`); `from` names the repository,
commit and path of its session. FOLDER holds them under `file`.

They form two sets, which are printed apart. The first 66 sessions were marked without a written guide (of them 26 with `reports`). The readers
of the other 67 (`guide`) had `GUIDE.md` beside this file. Their `commands` names the messages whose commands they saw. `third` holds what a
third reader with the guide marked in 57 of the first sessions: how near somebody comes to two readers who understood the task in their own way.

An entry of a document is right if it says a firm sentence; one that says doubtful ones only is not counted. What is marked as failing in one
message is one point, and so is a request that is left to do. Entries that cite only messages the readers did not see are not counted either. Scores are printed without what they are
made of: no rule may come from these sessions.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, say, show
from benchmarks.restore.labels import LabelledItem, LabelledSession, Place, mark
from benchmarks.restore.learn import archive_files
from benchmarks.restore.match import cited_messages
from benchmarks.restore.measuring import Score, total
from benchmarks.restore.sections import BARS, POOLED, Restored, interval, restore_labelled, score_section
from everturn.derive.intent import command_words
from everturn.model.archive import Session
from everturn.sessions.messages import read_messages
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store
from everturn.text.sentences import split_sentences

ASIDE = Path(__file__).with_name("aside.json")
_SECTIONS = {"constraints": "constraints", "open": "next_steps", "failing": "still_failing"}
_COMMAND = 300  # characters of a command that make its mark
_NAMES = {
    "constraints": ("constraints",),
    POOLED: ("open_questions", "next_steps"),
    "still_failing": ("still_failing",),
}


def main(arguments: list[str] | None = None) -> int:
    """Print the figures of the sessions that were set aside."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore.ends", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder that holds the sessions")
    folder = parser.parse_args(arguments).folder.resolve()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="everturn-ends-") as archive:
        for figure in aside_figures(folder, Path(archive)):
            show(figure, as_json=False)
            missed += figure.verdict == "FAIL"
    say(f"{missed or 'no'} bars missed")
    return 1 if missed else 0


def aside_figures(folder: Path, archive: Path, aside: Path = ASIDE) -> Iterator[Figure]:
    """Yield precision and recall of each section that the readers judged, for both sets."""
    entries = {(one["file"], one["id"]): one for one in json.loads(aside.read_text("utf-8"))}
    store = archive_files({folder / file for file, _ in entries}, archive)
    sets: dict[str, dict[str, list[Score]]] = defaultdict(lambda: defaultdict(list))
    lost = 0
    try:
        for session, _ in store.sessions(SessionFilter(), limit=100_000)[0]:
            file, _ = store.file_by_id(store.version(session.version).source)
            name = str(Path(file.path.partition("#")[0]).relative_to(folder))
            if entry := entries.pop((name, session.native_id), None):
                labelled = _labelled(store, session, entry)
                lost += labelled.lost
                restored = restore_labelled(store, labelled)
                _drop_unread(restored, entry)
                scores = sets["guide: " if "guide" in entry else "no guide: "]
                for told, names in _NAMES.items():
                    scores[told].append(total([score_section(restored, one) for one in names]))
                for told, score in _score_third(entry) if "third" in entry else ():
                    sets[_READER][told].append(score)
    finally:
        store.close()
    if entries:
        say(f"{len(entries)} sessions are not in the folder")
    yield Figure("marks whose words are no longer found", lost, "", 0)
    for name, scores in sorted(sets.items()):
        yield Figure(f"{name}sessions", len(scores["constraints"]), "")
        yield from _set_figures(name, scores)


def _score_third(entry: dict[str, Any]) -> Iterator[tuple[str, Score]]:
    """Yield what a third reader found: rules and failures of one message are one entry, other marks one each."""
    for told, name in _SECTIONS.items():
        marks, firm, doubtful = (
            {(seq, words) for seq, words in given} for given in (entry["third"][told], entry[told], entry[f"{told}?"])
        )
        parts = (
            [{one} for one in marks]
            if told == "open"
            else [{one for one in marks if one[0] == seq} for seq in {seq for seq, _ in marks}]
        )
        judged = [one for one in parts if one & firm or not one & doubtful]
        right = sum(bool(one & firm) for one in judged)
        points = {seq: seq for seq, _ in firm} if told == "failing" else {one: one for one in firm}
        found = {seq for seq, _ in marks & firm} if told == "failing" else marks & firm
        yield _THIRD[name], Score(len(found), len(points), right, len(judged))


_READER = "third reader: "
_THIRD = {"constraints": "constraints", "next_steps": POOLED, "still_failing": "still_failing"}


def _set_figures(name: str, scores: dict[str, list[Score]]) -> Iterator[Figure]:
    for told, given in scores.items():
        whole, (precise, complete) = total(given), BARS[told] if name != _READER else (None, None)
        words = name + told.replace("_", " ")
        note = f"{whole.right:.0f} of {whole.listed:.0f}; {interval(given, lambda one: one.precision)}"
        yield Figure(f"{words}, precision", whole.precision, "", precise, True, note)
        note = f"{whole.found:.0f} of {whole.all:.0f}; {interval(given, lambda one: one.recall)}"
        yield Figure(f"{words}, recall", whole.recall, "", complete, True, note)


def _labelled(store: Store, session: Session, entry: dict[str, Any]) -> LabelledSession:
    """Return a session with the words of its marks."""
    words = {(seq, mark(text)): text for seq, text in _texts(store, session)}
    pairs: dict[int, set[int]] = defaultdict(set)
    for call in store.calls(session.id):
        seqs = {call.seq, call.seq if call.result_seq is None else call.result_seq}
        for seq in seqs:
            pairs[seq] |= seqs
    sections: dict[str, list[LabelledItem]] = {name: [] for names in _NAMES.values() for name in names}
    asked = {row.seq for row in store.messages(session.id) if row.origin == "human"}
    # What fails and requests that are left, by message.
    points: dict[tuple[str, int, bool], list[str]] = defaultdict(list)
    lost = 0
    for told, is_firm, place in _marks(entry):
        found = words.get(place)
        lost += not found
        if found and (told == "still_failing" or (told == "next_steps" and place[0] in asked)):
            points[told, place[0], is_firm].append(found)
        elif found:
            sections[told].append(LabelledItem((Place(place[0], found, found),), is_firm))
    for (told, seq, is_firm), said in points.items():
        places = tuple(Place(seq, one, one) for one in said)
        sections[told].append(LabelledItem(places, is_firm, tuple(said) if told == "still_failing" else ()))
    return LabelledSession(session, "aside", (), (), sections, lost, {}, pairs)


def _texts(store: Store, session: Session) -> Iterator[tuple[int, str]]:
    """Yield every sentence and command of a session as the readers saw it, with the seq of its message."""
    for row, message in read_messages(store, all_sources(), session):
        for name in ("prompt", "answer"):
            text = "\n".join(one.text for one in message.blocks if one.field == name and one.text.strip())
            text = command_words(text) if row.kind == "command" else text
            yield from ((row.seq, one.text) for one in split_sentences(text))
        yield from ((row.seq, one.call.command[:_COMMAND]) for one in message.blocks if one.call and one.call.command)


def _marks(entry: dict[str, Any]) -> Iterator[tuple[str, bool, tuple[int, str]]]:
    for told, name in _SECTIONS.items():
        yield from ((name, True, (seq, words)) for seq, words in entry[told])
        yield from ((name, False, (seq, words)) for seq, words in entry[f"{told}?"])


def _drop_unread(restored: Restored, entry: dict[str, Any]) -> None:
    """Drop what nobody can judge: entries from messages that the readers did not see, and reports where they marked none."""
    seen = {seq for seq, _, _ in entry["read"]}
    for name in ("open_questions", "next_steps"):
        restored.shown[name] = [
            one
            for one in restored.shown[name]
            if seen & {place.message for place in one.evidence} and not one.text.startswith(("[", "next in the plan"))
        ]
    if "commands" in entry:
        ran = set(entry["commands"])
        restored.shown["still_failing"] = [
            one
            for one in restored.shown["still_failing"]
            if one.text.startswith("reported") or ran & cited_messages(one, restored.labelled)
        ]
    elif not entry.get("reports"):
        restored.shown["still_failing"] = [
            one for one in restored.shown["still_failing"] if not one.text.startswith("reported")
        ]


if __name__ == "__main__":
    raise SystemExit(main())
