"""Bring the archive up to date with every agent's history."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from everturn import clock
from everturn.capture.intake import Progress, SyncJob, SyncReport
from everturn.capture.policy import UNKNOWN, policy_of
from everturn.cli import frame
from everturn.cli.commands.forget import apply_retention
from everturn.cli.commands.mcp import answer_hooks
from everturn.cli.meaning_options import embedder_of, make_new_vectors, open_vectors
from everturn.errors import ModelError
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import Store
from everturn.text.printable import plural

if TYPE_CHECKING:
    from everturn.llm.embedder import Embedder

_EXIT_FAILED = 1
#: Counting reads a whole session, so a live one is not counted after each of its lines.
_COUNT_EVERY_MS = 600_000


def folder_options(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Add one option per source, to look for its files in more folders."""
    for source in all_sources().values():
        if source.option:
            handler = click.option(
                f"--{source.option}", f"dir_{source.name}", multiple=True, metavar="DIR",
                type=click.Path(file_okay=False, path_type=Path), help=f"Look for {source.title} sessions here too.",
            )(handler)  # fmt: skip
    return handler


#: Of the commands that may take in much at once.
processes_option = click.option(
    "--processes", type=click.IntRange(min=1), metavar="N",
    help="How many processes take in many new files: one per core by default, 1 for this one alone.",
)  # fmt: skip


@frame.command(
    "everturn sync",
    "everturn sync --watch              keep going, follow sessions as they are written",
    "everturn sync --retry              try files in quarantine again now",
    "everturn sync --meaning            then make all vectors that are missing, for searches by meaning",
)
@click.option("--watch", is_flag=True, help="Run until Ctrl-C and archive what agents write as they write it.")
@click.option("--retry", is_flag=True, help="Also retry files that failed before.")
@click.option(
    "--meaning", is_flag=True, help="Then make all missing vectors, by the model of [meaning] or on this machine."
)
@processes_option
@folder_options
def command(
    cx: frame.CommandContext, watch: bool, retry: bool, meaning: bool, processes: int | None, **folders: Any
) -> int:
    """Find every agent's sessions on this machine and archive what is new.

    Only new bytes are read. It can be stopped and started at any time, and run beside another one. A first sync of much
    history is read by several processes and written by one; the archive is the same. With `everturn config set team.push
    masked`, what is new is pushed to your team's server afterwards (`everturn push --help`).

    With `everturn[meaning]` installed, vectors of new prompts and answers are made on this machine at the end, for a tenth
    of the time of the run; the next runs make the rest, --meaning makes all of them now. Where the section [meaning] of the
    config names another model, --meaning gives it the prompts and answers that have no vector yet, with secrets taken out.
    Without the flag nothing is sent anywhere. What is made is kept at once: Ctrl-C and a second run lose nothing.
    """
    from everturn.capture.sync import sync_all

    if watch and meaning:
        raise click.UsageError("--watch runs until it is stopped; run `everturn sync --meaning` separately")
    embedder = embedder_of(cx) if meaning else None
    store = cx.store(create=True)
    job = make_sync_job(cx, store, search_places(cx, folders), sync_progress(cx, "sync"), processes)
    if watch:
        return _watch(cx, store, job)
    report = sync_all(job, retry=retry, unread=True)
    erased = _apply_retention(cx, store)
    cx.update_counts(store, wait=False)
    if embedder is None:
        code = print_sync_report(cx, report, erased=erased)
        cx.out.stdout.flush()
        _push(cx, store)
        make_new_vectors(cx, store)
        return code
    code = 0 if cx.json else print_sync_report(cx, report)
    cx.out.stdout.flush()
    _push(cx, store)
    made = _make_vectors(cx, store, embedder)
    if cx.json:
        code = print_sync_report(cx, report, meaning=made, erased=erased)
    return _EXIT_FAILED if made["error"] else code


def _make_vectors(cx: frame.CommandContext, store: Store, embedder: Embedder) -> dict[str, Any]:
    """Make vectors and report how many, and what was sent where, even when interrupted or failed."""
    from everturn.retrieval.meaning import make_all_vectors
    from everturn.sessions.secrets import archive_cleaner

    goes = f"are sent to {embedder.where}, without secrets" if embedder.where else "stay on this machine"
    cx.out.say(f"making vectors by {embedder.name}: prompts and answers {goes}")
    made, sessions, error = 0, set(), None
    try:
        with cx.out.progress("vectors") as step:
            for portion in make_all_vectors(
                store, all_sources(), embedder, open_vectors(cx, store), archive_cleaner(store)
            ):
                made += portion.vectors
                sessions.add(portion.session.id)
                step(made, portion.session.native_id)
    except ModelError as failure:
        error = str(failure)
        cx.out.warn(error)
    finally:
        sent = (
            f"{plural(embedder.sent, 'text')} were sent to {embedder.where}" if embedder.where else "nothing was sent"
        )
        cx.out.say(f"vectors: {made:,} made, in {plural(len(sessions), 'session')}; {sent}")
    facts = {"model": embedder.name, "vectors": made, "sessions": len(sessions), "sent": embedder.sent}
    return {**facts, "where": embedder.where or None, "error": error}


def _watch(cx: frame.CommandContext, store: Store, job: Any) -> int:
    from everturn.capture.sync import watch_sources

    counted = -_COUNT_EVERY_MS

    def report_round(report: Any) -> None:
        nonlocal counted
        print_sync_report(cx, report, erased=_apply_retention(cx, store))
        cx.out.stdout.flush()
        _push(cx, store)
        make_new_vectors(cx, store)
        if clock.now() - counted >= _COUNT_EVERY_MS:
            cx.update_counts(store, wait=False)
            counted = clock.now()

    cx.out.say("watching; Ctrl-C ends it")
    try:
        with answer_hooks(cx):
            watch_sources(job, Event(), report_round)
    except KeyboardInterrupt:
        cx.out.say("stopped; everything seen so far is in the archive")
    return 0


# --- shared with the other commands that take files in ---


def search_places(cx: frame.CommandContext, options: dict[str, Any]) -> SearchPlaces:
    """Return the folders of the settings and of the command line. Raises click.UsageError."""
    places = cx.places()
    extra = dict(places.extra)
    for name in all_sources():
        given = options.get(f"dir_{name}") or ()
        for folder in given:
            if not folder.is_dir():
                raise click.UsageError(f"there is no folder {folder}; check the path")
        extra[name] = (*extra.get(name, ()), *given)
    return structs.replace(places, extra=extra)


def _push(cx: frame.CommandContext, store: Store) -> None:
    if cx.settings.push != "never":
        from everturn.cli.commands.push import push_after_sync

        push_after_sync(cx, store)


def _apply_retention(cx: frame.CommandContext, store: Store) -> list[str]:
    if not cx.settings.keep and not any(rule.keep for rule in cx.settings.workspaces):
        return []

    return apply_retention(cx, store)


def make_sync_job(
    cx: frame.CommandContext,
    store: Store,
    places: SearchPlaces,
    progress: Progress | None = None,
    processes: int | None = None,
) -> SyncJob:
    """Return a sync job with the policy of the settings."""
    settings = cx.settings
    job = SyncJob(store, all_sources(), places, policy_of(settings), settings.machine, settings.owner, clock.now)
    job.spool, job.processes = settings.state / "spool", processes or settings.capture.processes
    return job if progress is None else replace(job, progress=progress)


def sync_progress(cx: frame.CommandContext, label: str) -> Progress:
    line = cx.out.progress(label)

    def draw(done: int, total: int, read: int, to_read: int, path: str) -> None:
        to_read = max(to_read, read) if path else read  # files grow meanwhile; at the end everything was read
        share = f"{read / 1e6:.0f} of {to_read / 1e6:.0f} MB  " if to_read > 1e6 else ""
        line(done, share + os.path.basename(path), total)
        if not path:
            cx.out.clear_progress()

    return draw


def print_sync_report(cx: frame.CommandContext, report: SyncReport, **more: Any) -> int:
    """Print a report, with `more` in its JSON, and return the exit code: 4 if some files failed."""
    if cx.json:
        cx.out.emit_json("sync", [], report=asdict(report), **more)
    else:
        for line in _report_lines(report):
            cx.out.emit(line)
    for path, why in report.skipped:
        cx.out.warn(f"left out {path}" + (f": {why}" if why else ""))
    if report.unknown:
        shown = f"{report.unknown[0]}" + (f" and {len(report.unknown) - 1:,} more" if len(report.unknown) > 1 else "")
        cx.out.warn(f"left out {shown}: {UNKNOWN}; `everturn config set capture.unknown full` keeps files like this")
    for path, why in report.doubts:
        cx.out.warn(f"{path}: {why}")
    for path, why in report.failed:
        cx.out.warn(f"could not archive {path}: {why}; everturn will retry (`everturn sync --retry` retries now)")
    return 4 if report.failed else 0


def _report_lines(report: SyncReport) -> list[str]:
    done = [
        (report.new, "new"),
        (report.grown, "grown"),
        (report.rewritten, "rewritten (older versions kept)"),
        (report.moved, "moved"),
        (report.gone, "gone from disk (kept here)"),
        (report.rederived, "read and indexed again by a newer version"),
        (report.waiting, "waiting for a retry"),
        (report.off, "left out by your rules"),
        (report.forgotten, "left out because you forgot them"),
        (report.unchanged, "unchanged"),
    ]
    files = ", ".join(f"{n:,} {what}" for n, what in done if n) or "no transcripts found"
    text = [f"files: {files}"]
    if report.other:
        text.append(
            f"other: {plural(len(report.other), 'file')} not read, because nothing in them looks like a transcript"
        )
    if report.messages or report.bytes_stored:
        subagents = f"{plural(report.subagents, 'subagent')}, " if report.subagents else ""
        text.append(
            f"added: {plural(report.sessions, 'session')}, {subagents}{plural(report.turns, 'turn')}, {plural(report.messages, 'message')}, "
            f"{report.bytes_stored / 1e6:,.1f} MB"
        )
    if report.problems:
        text.append(
            f"problems: {plural(report.problems, 'record')} could not be read (kept as they are; `everturn doctor`)"
        )
    return text
