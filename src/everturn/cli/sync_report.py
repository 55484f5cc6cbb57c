"""What the commands that take conversations in have in common: building the job and telling its report."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from everturn import clock
from everturn.capture.intake import Progress, SyncJob, SyncReport
from everturn.capture.policy import Policy
from everturn.cli import frame
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import Store


def folder_options(handler: Callable[..., Any]) -> Callable[..., Any]:
    """One option per source that has one, to look for its files in more folders."""
    for source in all_sources().values():
        if source.option:
            handler = click.option(
                f"--{source.option}", f"dir_{source.name}", multiple=True, metavar="DIR",
                type=click.Path(file_okay=False, path_type=Path), help=f"Look for {source.title} sessions here too.",
            )(handler)  # fmt: skip
    return handler


def places_with(cx: frame.CommandContext, options: dict[str, Any]) -> SearchPlaces:
    """The places of the settings, and those of the command line."""
    places = cx.places()
    extra = dict(places.extra)
    for name in all_sources():
        given = options.get(f"dir_{name}") or ()
        for folder in given:
            if not folder.is_dir():
                raise click.UsageError(f"there is no folder {folder}; check the path")
        extra[name] = (*extra.get(name, ()), *given)
    return replace(places, extra=extra)


def job_for(cx: frame.CommandContext, store: Store, places: SearchPlaces, progress: Progress | None = None) -> SyncJob:
    """A sync as the settings want it."""
    settings = cx.settings
    policy = Policy(
        settings.capture.mode,
        tuple((rule.path, rule.mode) for rule in settings.workspaces),
        tuple(settings.capture.exclude),
        _redact_line,
    )
    job = SyncJob(store, all_sources(), places, policy, settings.machine, settings.owner, clock.now)
    job.spool = settings.state / "spool"
    return job if progress is None else replace(job, progress=progress)


def _redact_line(line: bytes) -> bytes:
    from everturn.secrets.redaction import redact_bytes  # its rules take a while to compile; few need them here

    return redact_bytes(line)


def progress_line(cx: frame.CommandContext, label: str) -> Progress:
    """A progress line for a sync."""
    line = cx.out.progress(label)

    def draw(done: int, total: int, read: int, to_read: int, path: str) -> None:
        share = f"{read / 1e6:.0f} of {to_read / 1e6:.0f} MB  " if to_read > 1e6 else ""
        line(done, share + os.path.basename(path), total)
        if not path:
            cx.out.clear_progress()

    return draw


def print_report(cx: frame.CommandContext, report: SyncReport, **more: Any) -> int:
    """Print what a sync did, with `more` where it is JSON; the exit code is 4 when some files failed."""
    if cx.json:
        cx.out.emit_json("sync", [], report=asdict(report), **more)
    else:
        for line in report_lines(report):
            cx.out.emit(line)
    for path, why in report.skipped:
        cx.out.warn(f"left out {path}" + (f": {why}" if why else ""))
    for path, why in report.failed:
        cx.out.warn(
            f"could not take in {path}: {why}; it will be tried again later (`everturn sync --retry` does it now)"
        )
    return 4 if report.failed else 0


def report_lines(report: SyncReport) -> list[str]:
    """A report for people."""
    done = [
        (report.new, "new"),
        (report.grown, "grown"),
        (report.rewritten, "rewritten (older versions kept)"),
        (report.moved, "moved"),
        (report.gone, "gone from disk (kept here)"),
        (report.rederived, "read and indexed again by a newer version"),
        (report.waiting, "waiting to be tried again"),
        (report.off, "left out by your rules"),
        (report.forgotten, "left out because you forgot them"),
        (report.unchanged, "unchanged"),
    ]
    files = ", ".join(f"{n:,} {what}" for n, what in done if n) or "no transcripts found"
    text = [f"files: {files}"]
    if report.messages or report.bytes_stored:
        text.append(
            f"added: {report.sessions:,} sessions, {report.turns:,} turns, {report.messages:,} messages, "
            f"{report.bytes_stored / 1e6:,.1f} MB"
        )
    if report.problems:
        text.append(f"problems: {report.problems:,} records could not be read (kept as they are; `everturn doctor`)")
    return text
