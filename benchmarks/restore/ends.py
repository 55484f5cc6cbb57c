"""`python -m benchmarks.restore.ends FOLDER`: documents of sessions that nothing was learnt from, against two readers.

`aside.json` holds 66 sessions of 35 repositories, drawn at random among sessions with at least three prompts. They were set aside before
they were read, and no repository of theirs is in `sentences.json`, `labels.json` or the corpus. The last 26 (`reports`) were drawn later; their
readers also marked what the person reports as failing. Two readers marked every rule of the person,
every point that is left open at the end, and every check that still fails. A sentence that both marked is firm, one that a
single reader marked or called doubtful is doubtful. An entry has the fields of `sentences.json`, with
doubtful marks by section (`open?`); `from` names the repository,
commit and path of its session. FOLDER holds them under `file`.

An entry of a document is right if it says a firm sentence; one that says doubtful ones only is not counted. Entries that cite only messages
the readers did not see are not counted either. Scores are printed without what they are made of: no rule may come from these sessions.
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
    """Yield precision and recall of each section that the readers judged."""
    entries = {(one["file"], one["id"]): one for one in json.loads(aside.read_text("utf-8"))}
    store = archive_files({folder / file for file, _ in entries}, archive)
    scores: dict[str, list[Score]] = defaultdict(list)
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
                for told, names in _NAMES.items():
                    scores[told].append(total([score_section(restored, one) for one in names]))
    finally:
        store.close()
    if entries:
        say(f"{len(entries)} sessions are not in the folder")
    yield Figure("marks whose words are no longer found", lost, "", 0, note=f"{len(scores['constraints'])} sessions")
    for told, given in scores.items():
        whole, (precise, complete) = total(given), BARS[told]
        words = told.replace("_", " ")
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
    lost = 0
    for told, is_firm, place in _marks(entry):
        if found := words.get(place):
            given = (found,) if told == "still_failing" else ()
            sections[told].append(LabelledItem((Place(place[0], found, found),), is_firm, given))
        else:
            lost += 1
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
    """Drop what nobody can judge: entries from messages that the readers did not see, and reports of a person as failures."""
    seen = {seq for seq, _, _ in entry["read"]}
    for name in ("open_questions", "next_steps"):
        restored.shown[name] = [
            one
            for one in restored.shown[name]
            if seen & {place.message for place in one.evidence} and not one.text.startswith(("[", "next in the plan"))
        ]
    if not entry.get("reports"):
        restored.shown["still_failing"] = [
            one for one in restored.shown["still_failing"] if not one.text.startswith("reported")
        ]


if __name__ == "__main__":
    raise SystemExit(main())
