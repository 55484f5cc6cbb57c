"""Answers `why`: the path from a question about a file, a commit or a range to a report, for all surfaces.

Blame leads from a line to a commit and to its place there; the window of that commit selects edits of the archive; the
matcher decides. A line that a later commit only reformatted is followed to the commit before, at most a few times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from everturn.attribution.alignment import equal_pairs, loose_form, reflowed_pairs
from everturn.attribution.ambiguity import drop_ambiguous, lines_around
from everturn.attribution.checkouts import Checkouts
from everturn.attribution.committers import CommitterFinder
from everturn.attribution.edit_texts import EditTexts
from everturn.attribution.matcher import CommittedChange, LineMatch, LineMatcher, PlacedEdit
from everturn.attribution.reason import ReasonFinder
from everturn.attribution.report import (
    BEFORE_ARCHIVE,
    CUT_OFF,
    NO_SESSION,
    NOT_THIS_LINE,
    CommitNote,
    FileAnswer,
    LineAnswer,
    TurnNote,
    WhyReport,
    Writer,
    line_ranges,
)
from everturn.attribution.repository import NO_COMMIT, BlamedLine, CommitFacts, Repository, split_file
from everturn.attribution.window import CommitHistory, EditWindow, PathHistories, WholeHistory, window_of
from everturn.errors import MissingPath, NothingFound, Unreadable, UsageError
from everturn.sessions.messages import Sources
from everturn.store.contract import FoundEdit, Store
from everturn.text.printable import plural

_DEEPEST = 3  # commits that only reformatted a line
_LOOSE_CHARS = 6
_FORMATTED = 0.8  # of the changed lines of a file: then the commit is that of a formatter
_MANY_PATHS = 40  # above this the whole history is read at once
_MANY_RANGES = 40
_FEW_COMMITS = 2  # of the lines asked about: then the history is read from each of them, not from HEAD
_ALTERNATIVES = 3
_MOST_COMMITTERS = 12  # commits of a file whose sessions are looked up
_TARGET = re.compile(r"(?P<file>.+?):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")


class WhyOptions(Struct, frozen=True):
    """The choices of a caller: older equal text too; all about each turn, or only its request."""

    old: bool = False
    full: bool = False


class _Question(Struct, frozen=True):
    """The values that all lines of a question share."""

    history: CommitHistory
    options: WhyOptions
    known: dict[tuple[str, str], list[str]] = {}  # files of the working tree


class _Place(Struct, frozen=True):
    """Where a line was added: a file of a commit, compared with the commit before."""

    commit: str
    path: str
    base: str
    base_path: str


def split_target(target: str, folder: Path) -> tuple[str, tuple[int, int] | None]:
    """Split FILE:LINE-LINE; a file whose own name ends so is not split."""
    found = _TARGET.fullmatch(target)
    if found is None or (folder / target).exists():
        return target, None
    first = int(found["first"])
    last = int(found["last"] or first)
    if not 1 <= first <= last:
        raise UsageError(f"{target}: lines count from 1, and the first comes before the last")
    return found["file"], (first, last)


def open_why(
    store: Store, sources: Sources, now: int, folder: Path, target: str
) -> tuple[WhyJob, Path | None, tuple[int, int] | None]:
    """Return the job for a question asked in a folder, and the file and its lines if it is about a file."""
    name, lines = split_target(target, _existing(folder))
    path = folder / name
    is_there = path.exists() or path.is_symlink()
    repository = Repository(path.parent if is_there and path.parent.is_dir() else folder)
    if repository.root is None:
        if lines is not None or not repository.is_commit(name):
            raise UsageError("this repository has no working tree: name a commit or a range, not a file")
        return WhyJob(repository, store, sources, now), None, None
    if is_there or lines is not None:
        if not path.exists():
            raise MissingPath(name)
        return WhyJob(repository, store, sources, now), path, lines
    if not repository.is_commit(name):
        raise UsageError(f"{name!r} is neither a file nor a commit nor a range of commits of this repository")
    return WhyJob(repository, store, sources, now), None, None


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise MissingPath(str(folder))
    return folder


class WhyJob:
    """Questions about one repository and one archive. `now` is for lines that are not committed."""

    def __init__(self, repository: Repository, store: Store, sources: Sources, now: int) -> None:
        self.repository, self._store, self._now = repository, store, now
        self._texts = EditTexts(store, sources)
        self._matcher = LineMatcher(store, self._texts)
        self._checkouts = Checkouts(repository, store)
        self._committers = CommitterFinder(store, sources)
        self._reasons = ReasonFinder(store, sources)
        self._edits: dict[frozenset[str], list[PlacedEdit]] = {}
        self._facts: dict[str, CommitFacts] = {}
        self._span = store.edit_span()

    # --- questions ---
    def file(self, path: Path, lines: tuple[int, int] | None, options: WhyOptions) -> WhyReport:
        """Answer for lines of a file of the working tree, or for all of them."""
        name = self._tracked_name(path)
        working = _read_lines(path)
        first, last = lines or (1, len(working))
        if lines and first > len(working):
            raise UsageError(f"{name} has {plural(len(working), 'line')}; there is no line {first}")
        shown = range(first - 1, min(last, len(working)))
        asked = lines_around(working, shown)
        head = self.repository.head()
        committed = self.repository.files([(head, name)])[head, name] if head else None
        old = committed or []
        pairs = {new: old_line for old_line, new in equal_pairs(old, working)}
        blamed = self._blame(
            head, name, {pairs[line]: line for line in asked if line in pairs}, len(asked) == len(working)
        )
        places = {line: _Place(one.commit, one.path, one.base, one.base_path) for line, one in blamed.items()}
        there = {line: one.line_there - 1 for line, one in blamed.items()}
        for line in asked:
            if line not in places:
                places[line] = _Place(
                    "", name, head if committed is not None else "", name if committed is not None else ""
                )
                there[line] = line
        is_short = len({place.commit for place in places.values()}) <= _FEW_COMMITS
        histories = PathHistories(self.repository, "" if is_short else head)
        question = _Question(histories, options, {("", name): working})
        answers = self._answer(places, there, question)
        made = drop_ambiguous([replace(answers[line], line=line + 1, text=working[line]) for line in asked])
        made = made[shown.start - asked.start : shown.stop - asked.start]
        return self._report([FileAnswer(name, tuple(made))], options, ())

    def commits(self, name: str, options: WhyOptions) -> WhyReport:
        """Answer for the added lines of a commit, or of the commits of a range A..B."""
        first, dots, last = name.partition("..")
        if dots:
            last = last.removeprefix(".") or "HEAD"
            base = self.repository.commit_id(first) if first else ""
            tip = self.repository.commit_id(last)
            if name.count("...") and base:
                base = self.repository.text("merge-base", base, tip).strip()
            chosen = self.repository.range_commits(base, tip)
        else:
            tip = self.repository.commit_id(name)
            chosen = list(self.repository.commits([tip]).values())
            if len(chosen[0].parents) > 1:
                chosen = self.repository.range_commits(chosen[0].parents[0], tip)
        if not chosen:
            raise NothingFound(f"{name} has no commits of its own")
        return self.all_of(chosen, tip, options)

    def all_of(self, chosen: Sequence[CommitFacts], tip: str, options: WhyOptions) -> WhyReport:
        """Answer for the added lines of these commits."""
        self._facts |= {one.sha: one for one in chosen}
        changes = list(self.repository.added_lines([one.sha for one in chosen]))
        parents = {one.sha: one.parents[0] if one.parents else "" for one in chosen}
        n_paths = len({file.path for _, files in changes for file in files})
        history: CommitHistory = (
            WholeHistory(self.repository, tip) if n_paths > _MANY_PATHS else PathHistories(self.repository, tip)
        )
        made = []
        for sha, files in changes:
            for file in files:
                place = _Place(sha, file.path, parents[sha] if file.base_path else "", file.base_path)
                texts = dict(file.lines)
                keys = {number: number - 1 for number in texts}
                answers = self._answer(dict.fromkeys(keys, place), keys, _Question(history, options))
                lines = tuple(replace(answers[number], text=text) for number, text in texts.items())
                made.append(FileAnswer(file.path, lines))
        lost = self.repository.unreadable
        notes = [f"{plural(len(lost), 'commit')} left out: objects are missing in this clone"] if lost else []
        if not made and not lost:
            notes.append("no line of text was added")
        return self._report(made, options, notes)

    # --- files ---
    def _tracked_name(self, path: Path) -> str:
        """Return the path in the repository. Raises with one sentence for a file that cannot be asked about."""
        root = self.repository.root
        if root is None:
            raise UsageError("this repository has no working tree: name a commit or a range, not a file")
        if path.is_dir():
            raise UsageError(f"{path} is a folder; name a file, a commit or a range")
        try:
            name = path.resolve().relative_to(root.resolve()).as_posix()
        except ValueError:
            raise UsageError(f"{path} is not a file of the repository {root}") from None
        if not path.exists():
            raise MissingPath(str(path))
        if not self.repository.run("ls-files", "-z", "--full-name", "--", str(path.resolve())):
            raise UsageError(f"{name} is not tracked by git; `git add` it first")
        return name

    def _blame(self, head: str, name: str, wanted: dict[int, int], whole: bool) -> dict[int, BlamedLine]:
        """Blame lines of HEAD (from 0); return the result by the line of the working tree."""
        if not wanted:
            return {}
        ranges = line_ranges(wanted)
        if whole or len(ranges) > _MANY_RANGES:
            ranges = []
        found = self.repository.blame(head, name, [(first + 1, last + 1) for first, last in ranges])
        return {wanted[one.line - 1]: one for one in found if one.line - 1 in wanted}

    # --- answers ---
    def _answer(
        self, places: dict[int, _Place], there: dict[int, int], question: _Question, depth: int = 0
    ) -> dict[int, LineAnswer]:
        """Answer for lines by the place where each was added; `there` is the number of the line in that place, from 0."""
        groups: dict[_Place, list[int]] = {}
        for key, place in places.items():
            groups.setdefault(place, []).append(key)
        self._load_facts(place.commit for place in groups)
        found: dict[int, LineAnswer] = {}
        for place, keys in groups.items():
            edits = self._read_edits(frozenset(path for path in (place.path, place.base_path) if path))
            change = self._change(place, sorted({there[key] for key in keys}), question, edits)
            matches = self._matcher.match(change, edits) if change is not None else {}
            others = (
                self._matcher.also_wrote(change, edits, matches, question.options.full) if change and matches else {}
            )
            for key in keys:
                line = there[key]
                found[key] = self._line_answer(place, line, change, matches.get(line), edits, question)
                if others.get(line):
                    also = tuple(map(self._writer, others[line][-_ALTERNATIVES:]))
                    found[key] = replace(found[key], alternatives=also)
            if change is not None and depth < _DEEPEST and place.base_path:
                earlier = _find_reformatted(change, {key: there[key] for key in keys if not found[key].level})
                self._follow(place, earlier, found, question, depth)
        return found

    def _follow(
        self, place: _Place, earlier: dict[int, int], found: dict[int, LineAnswer], question: _Question, depth: int
    ) -> None:
        """Ask again for lines that the commit only reformatted, at the commit before; `earlier` are their numbers there."""
        if not earlier:
            return
        ranges = line_ranges(earlier.values())
        limits = [] if len(ranges) > _MANY_RANGES else [(first + 1, last + 1) for first, last in ranges]
        blamed = {one.line - 1: one for one in self.repository.blame(place.base, place.base_path, limits)}
        older = {key: blamed[line] for key, line in earlier.items() if line in blamed}
        places = {key: _Place(one.commit, one.path, one.base, one.base_path) for key, one in older.items()}
        lines = {key: one.line_there - 1 for key, one in older.items()}
        by = place.commit[:9] or "a later edit"
        for key, answer in self._answer(places, lines, question, depth + 1).items():
            if answer.level:
                found[key] = replace(
                    found[key], level="likely", rule=f"reformatted by {by}", writer=answer.writer, silence=""
                )

    def _load_facts(self, commits: Iterable[str]) -> None:
        missing = [one for one in commits if one and one not in self._facts]
        self._facts |= self.repository.commits(missing)

    def _change(
        self, place: _Place, wanted: list[int], question: _Question, edits: list[PlacedEdit]
    ) -> CommittedChange | None:
        """Return the change of a place; None if no edit of the archive can have made it or an earlier form of it."""
        if place.commit in self.repository.cut_off:
            return None
        window = self._window(place, question.history)
        if not any(edit.began <= window.amended for edit in edits):
            return None
        key, base = (place.commit, place.path), (place.base, place.base_path)
        files = self.repository.files([one for one in (key, base) if one[0] and one not in question.known])
        after, before = question.known.get(key, files.get(key)), files.get(base) if base[0] else []
        if after is None or before is None:
            return None
        lines = tuple(line for line in wanted if line < len(after))
        return CommittedChange(before, after, lines, window, self._amending(place, window, edits))

    def _window(self, place: _Place, history: CommitHistory) -> EditWindow:
        if not place.commit:
            earlier = (
                history.before(CommitFacts("", self._now, self._now), place.base, place.path, "") if place.base else []
            )
            newest = max((one.authored for one in earlier), default=0)
            return EditWindow(newest, self._now, self._now, False)
        facts = self._facts[place.commit]
        return window_of(facts, history.before(facts, place.base, place.path, place.base_path))

    def _amending(self, place: _Place, window: EditWindow, edits: list[PlacedEdit]) -> frozenset[int]:
        """Return the sessions with edits between author and committer time that show that they amended the commit."""
        late = {edit.found.row.session for edit in edits if window.until < edit.began <= window.amended}
        if not late or not place.commit:
            return frozenset()
        amending = {one.session.id for one in self._committers.find(place.commit) if one.amends}
        return frozenset(late & amending)

    def _read_edits(self, paths: frozenset[str]) -> list[PlacedEdit]:
        """Return the edits of these paths of the repository, each call once."""
        if paths not in self._edits:
            names = sorted({path.rpartition("/")[2] for path in paths})
            placed = []
            for one in self._owners(self._store.edits_of_file(names)):
                if (place := self._checkouts.place(one, paths)) is not None:
                    placed.append(PlacedEdit(one, *place))
            self._edits[paths] = placed
        return self._edits[paths]

    def _owners(self, edits: Iterable[FoundEdit]) -> list[FoundEdit]:
        """Return each call once: forks, resumed sessions and older versions of a file repeat it."""
        chosen: dict[tuple[object, ...], FoundEdit] = {}
        for one in edits:
            row = one.row
            key = (one.agent, one.call_id, row.path, row.n) if one.call_id else (row.at, row.path, row.lines, row.n)
            other = chosen.get(key)
            if other is None or self._rank(one) < self._rank(other):
                chosen[key] = one
        return list(chosen.values())

    def _rank(self, edit: FoundEdit) -> tuple[bool, int, int]:
        """Sort the current version first, then the session that ended first: a copy goes on after its original."""
        ended = self._store.times([edit.row.session])[edit.row.session][1]
        return not edit.current, ended or 0, edit.row.session

    def _line_answer(
        self,
        place: _Place,
        line: int,
        change: CommittedChange | None,
        match: LineMatch | None,
        edits: list[PlacedEdit],
        question: _Question,
    ) -> LineAnswer:
        text = change.after[line] if change is not None and line < len(change.after) else ""
        answer = LineAnswer(line + 1, text, place.commit, place.path, line + 1)
        options = question.options
        if match is None:
            older = self._matcher.same_text(change, edits, line) if options.old and change is not None else []
            same = tuple(map(self._writer, older[:_ALTERNATIVES]))
            return replace(answer, silence=self._silence(place, edits), same_text=same)
        return replace(answer, level=match.level, rule=match.rule, writer=self._writer(match.edit))

    def _silence(self, place: _Place, edits: list[PlacedEdit]) -> str:
        if place.commit in self.repository.cut_off:
            return CUT_OFF
        authored = self._facts[place.commit].authored if place.commit else self._now
        if self._span is None or authored < self._span[0]:
            return BEFORE_ARCHIVE
        return NOT_THIS_LINE if edits else NO_SESSION

    def _writer(self, edit: PlacedEdit) -> Writer:
        found = edit.found
        session = self._store.session(found.row.session)[0]
        return Writer(
            found.agent, session.native_id, found.row.turn, found.row.seq, found.call_id, found.tool, edit.end,
            self._texts.place(found),
        )  # fmt: skip

    # --- the report ---
    def _report(self, files: list[FileAnswer], options: WhyOptions, notes: Iterable[str]) -> WhyReport:
        if self.repository.cut_off:
            notes = (*notes, "this is a shallow clone: lines from before its first commit have no answer")
        writers = [line.writer for file in files for line in file.lines if line.writer is not None]
        firsts: dict[tuple[str, str, int], Writer] = {}
        for one in writers:
            firsts.setdefault(one.turn_key, one)
        commits = {line.commit for file in files for line in file.lines if line.commit and line.commit != NO_COMMIT}
        self._load_facts(commits)
        looked_up = len(commits) <= _MOST_COMMITTERS
        made = {sha: self._commit_note(self._facts[sha], looked_up) for sha in sorted(commits) if sha in self._facts}
        return WhyReport(
            tuple(files), made, tuple(self._turn_note(one, options) for one in firsts.values()), tuple(notes)
        )

    def _commit_note(self, facts: CommitFacts, looked_up: bool) -> CommitNote:
        sessions = [one.session.native_id for one in self._committers.find(facts.sha)] if looked_up else []
        return CommitNote(**asdict(facts), sessions=tuple(dict.fromkeys(sessions)))

    def _turn_note(self, writer: Writer, options: WhyOptions) -> TurnNote:
        session = next(
            (one for one in self._store.sessions_of(writer.agent, writer.session) if one.version == writer.evidence[0]),
            None,
        )
        assert session is not None
        text = self._store.session(session.id)[1]
        find = (
            self._reasons.full(session, writer.turn, writer.seq)
            if options.full
            else self._reasons.find_request(session, writer.turn)
        )
        title = text.title or text.first_prompt
        return TurnNote(writer.agent, writer.session, writer.turn, title, session.kind, find)


def _read_lines(path: Path) -> list[str]:
    try:
        lines = split_file(path.read_bytes())
    except OSError as failure:
        raise Unreadable(str(path), failure.strerror or "it cannot be opened") from None
    if lines is None:
        raise UsageError(f"{path} is binary or very large; only text files have lines to ask about")
    return lines


def _find_reformatted(change: CommittedChange, silent: dict[int, int]) -> dict[int, int]:
    """Return which of the lines without an answer the file before had in another format, and their numbers there."""
    if not any(len(loose_form(change.after[line])) >= _LOOSE_CHARS for line in silent.values()):
        return {}
    same = {new for _, new in equal_pairs(change.before, change.after)}
    changed = [line for line, text in enumerate(change.after) if line not in same and text.strip()]
    earlier = {new: old for old, new in reflowed_pairs(change.before, change.after) if new not in same}
    if sum(line in earlier for line in changed) < _FORMATTED * len(changed):
        return {}  # the commit did more than that
    return {key: earlier[line] for key, line in silent.items() if line in earlier and change.after[line].strip()}
