"""Say which turn wrote a line, and what was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from everturn.cli import frame
from everturn.clock import now
from everturn.text.printable import plural, to_json

if TYPE_CHECKING:
    from everturn.attribution.job import WhyJob
    from everturn.attribution.report import WhyReport

_FEW = 40  # lines that are shown with everything that is known


@frame.command(
    "everturn why src/shell/init.go:293",
    "everturn why src/shell/init.go",
    "everturn why HEAD",
    "everturn why main..feature",
    "everturn why src/app.py:10-20 --porcelain",
    "everturn why main..feature --export notes",
    reveal=True,
)
@click.argument("target")
@click.option("--old", is_flag=True, help="For lines without an answer: also older edits with the same text.")
@click.option("--porcelain", is_flag=True, help="As git blame --porcelain, with headers of our own, for editors.")
@click.option(
    "--export",
    "form",
    type=click.Choice(("notes", "trace")),
    help="Write git notes to commits that have none, or print Agent Trace records.",
)
@click.option("--likely", is_flag=True, help="With --export: also lines that are only likely.")
@click.option("--with-requests", is_flag=True, help="With --export: also the texts of requests, masked.")
@click.option("--yes", is_flag=True, help="With --export notes: write without asking.")
@click.option(
    "-C", "folder", type=click.Path(path_type=Path), default=Path("."), metavar="DIR", help="As if started in DIR."
)
def command(
    cx: frame.CommandContext, target: str, old: bool, porcelain: bool, folder: Path, form: str | None, **export: bool
) -> None:
    """Say who wrote TARGET: the session, the turn and the request behind each line, where the archive knows it.

    TARGET is a file (FILE, FILE:LINE, FILE:LINE-LINE), a commit, or a range A..B; A...B is what a pull request adds. An
    answer says how sure it is: `replayed` (the archived edits reproduce the line), `matched` (exact text and its
    neighbours), `likely` (reformatted or alone). Lines that the archive does not know have no answer.
    """
    from everturn.attribution.job import WhyOptions, open_why

    if form is None and any(export.values()):
        flag = next(name for name, is_set in export.items() if is_set).replace("_", "-")
        raise click.UsageError(f"--{flag} goes with --export", click.get_current_context())
    job, path, lines = open_why(cx.store(), cx.sources, now(), folder, target)
    with job.repository:
        few = lines is not None and lines[1] - lines[0] < _FEW
        options = WhyOptions(old, few)
        report = job.file(path, lines, options) if path is not None else job.commits(target, options)
        if form is not None:
            _export(cx, job, report, form, **export)
        else:
            _print(cx, report, few, porcelain)


def _export(
    cx: frame.CommandContext, job: WhyJob, report: WhyReport, form: str, likely: bool, with_requests: bool, yes: bool
) -> None:
    """Print records, or show the notes and write them when the person agrees."""
    from everturn.attribution.exports import SURE, note_drafts, requests_of, trace_records, write_notes

    levels = (*SURE, "likely") if likely else SURE
    requests = requests_of(report, cx.out.text) if with_requests else None
    if form == "trace":
        for record in trace_records(report, now(), levels, requests):
            cx.out.emit(to_json(record))
        return
    drafts = list(note_drafts(report, job.repository, levels, requests))
    for one in drafts if with_requests or not yes else ():
        cx.out.emit(f"refs/notes/{one.ref}  {one.commit}\n{one.text}")
    if drafts and not yes:
        click.confirm(f"write {plural(len(drafts), 'note')} to this repository?", abort=True, err=True)
    if not drafts:
        cx.out.say("no notes to write: no line has an answer of these levels, or every commit has a note already")
        return
    write_notes(job.repository, drafts, cx.store(), now())
    cx.out.say(f"wrote {plural(len(drafts), 'note')}; `git push origin refs/notes/*` shares them")


def _print(cx: frame.CommandContext, report: WhyReport, few: bool, porcelain: bool) -> None:
    from everturn.attribution import summary

    if cx.json:
        cx.out.emit_json(
            "why", summary.report_items(report), commits=summary.commit_items(report), notes=list(report.notes)
        )
        return
    if porcelain:
        lines = summary.porcelain_lines(report, lambda text: cx.out.text(text, "\t"))
    else:
        lines = summary.detail_lines(report, cx.out.text) if few else summary.overview_lines(report, cx.out.text)
    for line in lines:
        cx.out.emit(line)
