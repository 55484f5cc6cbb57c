"""How well `why` does on a planted repository: every answered line is compared with the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from everturn.attribution.job import WhyJob, WhyOptions
from everturn.attribution.repository import Repository
from everturn.clock import now
from everturn.sources.contract import all_sources
from everturn.store.contract import Store
from tests.planted_repository import Line, PlantedRepository


@dataclass
class Score:
    """Counts of lines that are not blank. `wrong`: answered with another session than the writer's."""

    archived: int = 0  # written by an archived edit
    others: int = 0
    right: int = 0
    wrong: int = 0
    right_turn: int = 0
    levels: Counter[str] = field(default_factory=Counter)
    wrong_lines: list[str] = field(default_factory=list)
    missed_lines: list[str] = field(default_factory=list)

    @property
    def answered(self) -> int:
        return self.right + self.wrong

    def add(self, other: Score) -> None:
        for name in ("archived", "others", "right", "wrong", "right_turn"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.levels += other.levels
        self.wrong_lines += other.wrong_lines
        self.missed_lines += other.missed_lines


def score_story(story: PlantedRepository, store: Store, hidden: Iterable[str] = ()) -> Score:
    """Ask for every line of every file of the main tree. Answers with sessions other than the true one are wrong."""
    total, gone = Score(), set(hidden)
    with Repository(story.root) as repository:
        job = WhyJob(repository, store, all_sources(), now())
        for path, lines in sorted(story.truth().items()):
            if not lines:
                continue
            report = job.file(story.root / path, None, WhyOptions())
            for answer, line in zip(report.files[0].lines, lines, strict=True):
                if line.text.strip():
                    session = answer.writer.session.rpartition("agent-")[2] if answer.writer is not None else ""
                    _count(
                        total, line, session, answer.writer.turn if answer.writer else -1, gone, f"{path}:{answer.line}"
                    )
                    total.levels[f"{answer.level} {answer.rule.partition(' by ')[0]}"] += bool(answer.level)
    return total


def _count(total: Score, line: Line, session: str, turn: int, gone: set[str], place: str) -> None:
    truth, at = line.writer if line.writer is not None else ("", -1)
    total.archived += bool(truth) and truth not in gone
    total.others += not truth or truth in gone
    if not session:
        if truth and truth not in gone:
            total.missed_lines.append(f"{place} {line.text!r} by {truth[:8]}")
    elif session == truth:
        total.right += 1
        total.right_turn += turn == at
    else:
        total.wrong += 1
        total.wrong_lines.append(f"{place} {line.text!r}: {session[:8]}, not {truth[:8] or 'anybody'}")
