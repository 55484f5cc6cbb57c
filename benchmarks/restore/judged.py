"""`python -m benchmarks.restore.judged FOLDER`: documents that readers judged entry by entry, with the transcript beside them.

Labels say where a point stands, and an entry is right if it cites that place and has its words. A reader is milder and
stricter: an entry in other words can be right, and one with the right words can mislead. Here readers wrote down their points from
the transcript alone, then judged every entry of five sections and looked up every point (`JUDGES.md`).

    python -m benchmarks.restore.judged FOLDER --sheets DIR    # write what a reader needs for each session of judged.json
    python -m benchmarks.restore.judged FOLDER --take DIR      # take the verdicts that readers wrote there into judged.json
    python -m benchmarks.restore.judged FOLDER                 # print the figures

`judged.json` holds hashes of entries with their verdicts, and points as places; no words. An entry whose words have changed since is not judged:
it is counted apart. The recall of a section is that of the sessions whose entries in it are the judged ones. `from` names repository, blob and path; FOLDER holds the
session under `file`. The `set` says what the session was used for: documents of `unseen` were seen by nobody but their judges.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, say, show
from benchmarks.restore.labels import find_marked, mark, message_text
from benchmarks.restore.learn import archive_files
from benchmarks.restore.sections import BARS, GOAL_BAR, KEYS, POOLED, shown_statements
from everturn.model.archive import Session
from everturn.model.conversation import Block
from everturn.restore.document import BUDGET
from everturn.restore.job import RestoreTarget, restore_session
from everturn.restore.markdown import document_markdown
from everturn.sessions.messages import read_messages
from everturn.sessions.secrets import archive_cleaner
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store

JUDGED = Path(__file__).with_name("judged.json")
GOAL = "goal"
#: Sections of a sheet, and the sections of the document that they hold.
SHEET = {
    GOAL: ("high_level_goal",),
    "decisions": KEYS["decisions"],
    "constraints": KEYS["constraints"],
    "open": (*KEYS["open_questions"], *KEYS["next_steps"]),
    "failing": KEYS["still_failing"],
    "loose_ends": ("loose_ends",),
}
_BARS = {
    "decisions": BARS["decisions"],
    "constraints": BARS["constraints"],
    "open": BARS[POOLED],
    "failing": BARS["still_failing"],
}
VERDICTS = ("right", "wrong", "doubtful")
FOUND = ("section", "elsewhere", "missing")
_LONG, _OUTPUT, _GIVEN = 6_000, 700, 500  # characters of a message, of a result, and of what a call was given
_UNSEEN = "unseen"


@dataclass
class JudgedSection:
    """The entries and points of one section in one session."""

    verdicts: list[str] = field(default_factory=list)  # of the entries that were judged
    changed: int = 0  # entries that nobody judged
    gone: int = 0  # judged entries that are not shown any more
    points: list[str] = field(default_factory=list)  # where each was found


def main(arguments: list[str] | None = None) -> int:
    """Print the figures, write the sheets or take the verdicts; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.restore.judged",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="the folder that holds the sessions")
    parser.add_argument("--sheets", type=Path, metavar="DIR", help="write the sheets of the sessions into this folder")
    parser.add_argument("--take", type=Path, metavar="DIR", help="take the verdicts from the sheets in this folder")
    parser.add_argument("--set", default=_UNSEEN, help="which sessions; `unseen` if not given")
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    options = parser.parse_args(arguments)
    entries = [one for one in json.loads(JUDGED.read_text("utf-8")) if one["set"] == options.set]
    folder, missed = options.folder.resolve(), 0
    with tempfile.TemporaryDirectory(prefix="everturn-judged-") as archive:
        store = archive_files({folder / one["file"] for one in entries}, Path(archive))
        try:
            sessions = list(_found_sessions(store, entries, folder))
            if options.sheets:
                for entry, session in sessions:
                    write_sheet(store, session, options.sheets / sheet_name(entry))
                say(f"{len(sessions)} sheets in {options.sheets}")
            elif options.take:
                _take_verdicts(store, sessions, options.take)
            else:
                for figure in judged_figures(store, sessions, options.set):
                    show(figure, options.json)
                    missed += figure.verdict == "FAIL"
                say(f"{missed or 'no'} bars missed")
        finally:
            store.close()
    return 1 if missed else 0


def sheet_name(entry: dict[str, Any]) -> str:
    """Return the name of the folder in which the sheet of a session lies."""
    return mark(f"{entry['file']} {entry['id']}")


def _found_sessions(
    store: Store, entries: list[dict[str, Any]], folder: Path
) -> Iterator[tuple[dict[str, Any], Session]]:
    wanted = {(one["file"], one["id"]): one for one in entries}
    for session, _ in store.sessions(SessionFilter(), limit=100_000)[0]:
        file, _ = store.file_by_id(store.version(session.version).source)
        name = str(Path(file.path.partition("#")[0]).relative_to(folder))
        if (one := wanted.pop((name, session.native_id), None)) is not None:
            yield one, session
    if wanted:
        say(f"{len(wanted)} sessions are not in the folder")


# --- sheets ---
def write_sheet(store: Store, session: Session, folder: Path) -> None:
    """Write the transcript of a session, its document, and the entries that are judged."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "transcript.txt").write_text("\n".join(_transcript_lines(store, session)), "utf-8")
    text, entries = _document_entries(store, session)
    (folder / "document.md").write_text(text, "utf-8")
    (folder / "entries.json").write_text(json.dumps(entries, indent=1, ensure_ascii=False), "utf-8")


def _document_entries(store: Store, session: Session) -> tuple[str, dict[str, list[str]]]:
    """Return the document of a session, and the entries of each section for which it has room."""
    document, clean = restore_session(RestoreTarget(store, session), all_sources()), archive_cleaner(store)
    text = document_markdown(document, clean, BUDGET)
    return text, {
        name: list(dict.fromkeys(one.text for key in keys for one in shown_statements(document, text, key, clean)))
        for name, keys in SHEET.items()
    }


def _transcript_lines(store: Store, session: Session) -> Iterator[str]:
    for row, message in read_messages(store, all_sources(), session):
        who = {"human": "PERSON", "model": "AGENT"}.get(row.origin, row.origin.upper())
        for block in message.blocks:
            if block.kind != "thinking" and (words := _block_line(block, who)):
                yield f"[{row.seq}] {words}"


def _block_line(block: Block, who: str) -> str:
    if block.call is not None:
        about = block.call.command or block.call.path
        return f"CALL {block.call.name} {_shorten(about, _GIVEN)} {_shorten(str(block.call.input or ''), _GIVEN)}"
    if block.result is not None:
        return f"RESULT{' ERROR' if block.result.is_error else ''} {_shorten(block.text, _OUTPUT)}"
    return f"{who} {_shorten(block.text, _LONG if who in ('PERSON', 'AGENT') else _OUTPUT)}" if block.text else ""


def _shorten(text: str, most: int) -> str:
    text = text.strip()
    if len(text) <= most:
        return text
    return f"{text[: most * 2 // 3]} …[{len(text) - most} characters left out]… {text[-most // 3 :]}"


# --- verdicts ---
def _take_verdicts(store: Store, sessions: Iterable[tuple[dict[str, Any], Session]], folder: Path) -> None:
    """Take what readers wrote into `verdicts.json` beside their sheets. See `JUDGES.md` for its form."""
    known = json.loads(JUDGED.read_text("utf-8"))
    by_place = {(one["file"], one["id"]): one for one in known}
    taken = lost = 0
    for entry, session in sessions:
        sheet = folder / sheet_name(entry)
        if not (sheet / "verdicts.json").exists():
            continue
        verdicts = json.loads((sheet / "verdicts.json").read_text("utf-8"))
        shown = json.loads((sheet / "entries.json").read_text("utf-8"))
        texts = {row.seq: message_text(message) for row, message in read_messages(store, all_sources(), session)}
        judged = by_place[entry["file"], entry["id"]]
        judged["entries"] = {name: _marked_verdicts(shown[name], verdicts["entries"][name], sheet) for name in SHEET}
        judged["points"] = {}
        for name, points in verdicts["points"].items():
            places = [(_find_place(one, texts), one["found"]) for one in points]
            lost += sum(place is None for place, _ in places)
            judged["points"][name] = [[*(place or (one["seq"], 0, 0, "")), found] for (place, found), one in zip(places, points, strict=True)]  # fmt: skip
        taken += 1
    JUDGED.write_text(_one_line_each(known), "utf-8")
    say(f"{taken} sessions taken; {lost} points whose words are not in their message")


def _marked_verdicts(shown: list[str], verdicts: list[str], sheet: Path) -> dict[str, str]:
    """Return the verdicts by the hash of their entry; every entry needs one."""
    if len(shown) != len(verdicts) or not set(verdicts) <= set(VERDICTS):
        raise SystemExit(
            f"{sheet}/verdicts.json: {len(shown)} entries need as many of {', '.join(VERDICTS)}: {verdicts}"
        )
    return {mark(text): verdict for text, verdict in zip(shown, verdicts, strict=True)}


def _find_place(point: dict[str, Any], texts: dict[int, str]) -> tuple[int, int, int, str] | None:
    """Return where the words of a point stand, as seq, start and size in bytes, and a hash; None if they do not."""
    for seq in (point["seq"], point["seq"] - 1, point["seq"] + 1):
        data, words = texts.get(seq, "").encode(), point["quote"].strip().encode()
        at = data.find(words)
        if words and at >= 0:
            return seq, at, len(words), mark(point["quote"])
    return None


def _one_line_each(entries: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in entries) + "\n]\n"


# --- figures ---
def judged_figures(store: Store, sessions: Iterable[tuple[dict[str, Any], Session]], name: str) -> Iterator[Figure]:
    """Yield precision and recall of each section as its judges saw it."""
    found: dict[str, list[JudgedSection]] = {section: [] for section in SHEET}
    judged = 0
    for entry, session in sessions:
        if "entries" in entry:
            judged += 1
            for section, one in _judged_sections(store, entry, session).items():
                found[section].append(one)
    yield Figure(f"{name}: sessions that were judged", judged)
    for section, sections in found.items():
        yield from _section_figures(name, section, sections)


def _judged_sections(store: Store, entry: dict[str, Any], session: Session) -> dict[str, JudgedSection]:
    texts = {row.seq: message_text(message).encode() for row, message in read_messages(store, all_sources(), session)}
    made = {}
    for section, shown in _document_entries(store, session)[1].items():
        verdicts = [entry["entries"][section].get(mark(text)) for text in shown]
        points = entry["points"].get(section, [])
        there = [found for seq, at, size, words, found in points if _still_there(texts, seq, at, size, words)]
        gone = len(entry["entries"][section].keys() - set(map(mark, shown)))
        made[section] = JudgedSection(
            [one for one in verdicts if one], sum(one is None for one in verdicts), gone, there
        )
    return made


def _still_there(texts: dict[int, bytes], seq: int, start: int, size: int, words: str) -> bool:
    """Whether a point stands where it was found; one that only its reader's words describe counts too."""
    return not words or find_marked(texts.get(seq, b""), start, size, words) is not None


def _section_figures(name: str, section: str, sections: list[JudgedSection]) -> Iterator[Figure]:
    verdicts = Counter(one for each in sections for one in each.verdicts)
    changed, listed = sum(one.changed for one in sections), verdicts.total()
    least = (GOAL_BAR, None) if section == GOAL else _BARS.get(section, (None, None))
    note = f"{verdicts['right']} of {listed}, {verdicts['doubtful']} doubtful; {changed} not judged"
    if name != _UNSEEN:
        least = (None, None)
    yield Figure(f"{name}, judged: {section}, right", verdicts["right"] / listed if listed else None, "", least[0], True, note)  # fmt: skip
    whole = [one for one in sections if not one.changed and not one.gone]
    points = Counter(one for each in whole for one in each.points)
    if section not in (GOAL, "loose_ends"):
        everything = points.total()
        note = f"{points['section']} of {everything} in {len(whole)} sessions; elsewhere in the document {points['elsewhere']}"
        share = points["section"] / everything if everything else None
        yield Figure(f"{name}, judged: {section}, found", share, "", least[1], True, note)


if __name__ == "__main__":
    sys.exit(main())
