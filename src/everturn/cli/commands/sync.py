"""Bring the archive up to date with every agent's history."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Any

import click

from everturn import clock
from everturn.cli import analytics_options, frame, sync_report
from everturn.errors import ModelError

if TYPE_CHECKING:
    from everturn.llm.embedder import Embedder
    from everturn.store.contract import Store

_EXIT_FAILED = 1
#: A session is counted as a whole, so one that is being written is not counted at each of its lines.
_COUNT_EVERY_MS = 600_000


@click.command(
    epilog=frame.examples(
        "everturn sync",
        "everturn sync --watch              keep going, follow sessions as they are written",
        "everturn sync --retry              try files in quarantine again now",
        "everturn sync --meaning            then make vectors, by the model of [meaning] in the config",
    )
)
@click.option("--watch", is_flag=True, help="Go on until Ctrl-C, taking in what is written as it is written.")
@click.option("--retry", is_flag=True, help="Also try files again that failed before and are waiting.")
@click.option("--meaning", is_flag=True, help="Then send what was said, without secrets, to the model of [meaning].")
@sync_report.folder_options
@frame.common
def command(cx: frame.CommandContext, watch: bool, retry: bool, meaning: bool, **folders: Any) -> int:
    """Find every agent's sessions on this machine and take in what is new.

    Only new bytes are read. It can be stopped and started at any time, and run beside another one.

    With --meaning the prompts and answers that have no vector yet are then given to the model that the section [meaning] of
    the config names, with secrets taken out; searches follow their meaning from then on. Without the flag or without the
    section nothing is sent anywhere. What is made is kept at once: Ctrl-C and a second run lose nothing.
    """
    from everturn.capture.sync import sync_all

    if watch and meaning:
        raise click.UsageError("--watch goes on until it is stopped; run `everturn sync --meaning` by itself")
    embedder = _embedder(cx) if meaning else None
    store = cx.store(create=True)
    job = sync_report.job_for(cx, store, sync_report.places_with(cx, folders), sync_report.progress_line(cx, "sync"))
    if watch:
        return _watch(cx, store, job)
    report = sync_all(job, retry=retry)
    analytics_options.count_new(cx, store)
    if embedder is None:
        return sync_report.print_report(cx, report)
    code = 0 if cx.json else sync_report.print_report(cx, report)
    cx.out.stdout.flush()
    made = _make_vectors(cx, store, embedder)
    if cx.json:
        code = sync_report.print_report(cx, report, meaning=made)
    return _EXIT_FAILED if made["error"] else code


def _embedder(cx: frame.CommandContext) -> Embedder:
    from everturn.cli.meaning_options import embedder_of

    return embedder_of(cx)


def _make_vectors(cx: frame.CommandContext, store: Store, embedder: Embedder) -> dict[str, Any]:
    """Make them and tell how many, and what was sent where: also when it is interrupted or fails half way."""
    from everturn.cli.meaning_options import open_vectors
    from everturn.retrieval.meaning import make_all_vectors
    from everturn.sessions.secrets import archive_cleaner
    from everturn.sources.contract import all_sources

    goes = f"are sent to {embedder.where}" if embedder.where else "stay on this machine"
    cx.out.say(f"making vectors by {embedder.name}: prompts and answers {goes}, without secrets")
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
        sent = f"{embedder.sent:,} texts were sent to {embedder.where}" if embedder.where else "nothing was sent"
        cx.out.say(f"vectors: {made:,} made, in {len(sessions):,} sessions; {sent}")
    told = {"model": embedder.name, "vectors": made, "sessions": len(sessions), "sent": embedder.sent}
    return {**told, "where": embedder.where or None, "error": error}


def _tell(cx: frame.CommandContext, report: Any) -> None:
    sync_report.print_report(cx, report)
    cx.out.stdout.flush()


def _watch(cx: frame.CommandContext, store: Store, job: Any) -> int:
    from everturn.capture.sync import watch_sources

    counted = -_COUNT_EVERY_MS

    def tell(report: Any) -> None:
        nonlocal counted
        _tell(cx, report)
        if clock.now() - counted >= _COUNT_EVERY_MS:
            analytics_options.count_new(cx, store)
            counted = clock.now()

    cx.out.say("watching; Ctrl-C ends it")
    try:
        watch_sources(job, Event(), tell)
    except KeyboardInterrupt:
        cx.out.say("stopped; everything seen so far is in the archive")
    return 0
