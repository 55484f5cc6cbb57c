"""Say which turn wrote a line, and what was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from everturn.cli import frame

if TYPE_CHECKING:
    from everturn.attribution.report import WhyReport

_FEW = 40  # lines that are shown with everything that is known


@frame.command(
    "everturn why src/shell/init.go:293",
    "everturn why src/shell/init.go",
    "everturn why HEAD",
    "everturn why main..feature",
    "everturn why src/app.py:10-20 --porcelain",
    reveal=True,
)
@click.argument("target")
@click.option("--old", is_flag=True, help="For lines without an answer: also older edits with the same text.")
@click.option("--porcelain", is_flag=True, help="As git blame --porcelain, with headers of our own, for editors.")
@click.option(
    "-C", "folder", type=click.Path(path_type=Path), default=Path("."), metavar="DIR", help="As if started in DIR."
)
def command(cx: frame.CommandContext, target: str, old: bool, porcelain: bool, folder: Path) -> None:
    """Say who wrote TARGET: the session, the turn and the request behind each line, where the archive knows it.

    TARGET is a file (FILE, FILE:LINE, FILE:LINE-LINE), a commit, or a range A..B; A...B is what a pull request adds. An
    answer says how sure it is: `replayed` (the archived edits reproduce the line), `matched` (exact text and its
    neighbours), `likely` (reformatted or alone). Lines that the archive does not know have no answer.
    """
    from everturn.attribution.job import WhyOptions, open_why
    from everturn.clock import now
    from everturn.sources.contract import all_sources

    job, path, lines = open_why(cx.store(), all_sources(), now(), folder, target)
    with job.repository:
        few = lines is not None and lines[1] - lines[0] < _FEW
        options = WhyOptions(old, few)
        report = job.file(path, lines, options) if path is not None else job.commits(target, options)
        _print(cx, report, few, porcelain)


def _print(cx: frame.CommandContext, report: WhyReport, few: bool, porcelain: bool) -> None:
    from everturn.attribution.summary import (
        commit_items,
        detail_lines,
        overview_lines,
        porcelain_lines,
        report_items,
    )

    if cx.json:
        cx.out.emit_json("why", report_items(report), commits=commit_items(report), notes=list(report.notes))
        return
    if porcelain:
        lines = porcelain_lines(report, lambda text: cx.out.text(text, "\t"))
    else:
        lines = detail_lines(report, cx.out.text) if few else overview_lines(report, cx.out.text)
    for line in lines:
        cx.out.emit(line)
