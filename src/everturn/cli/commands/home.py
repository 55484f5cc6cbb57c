"""`everturn` without a command: archive what is new, then print an overview."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path
from typing import Any

import click

from everturn import clock
from everturn.cli import frame
from everturn.cli.commands.forget import apply_retention
from everturn.cli.commands.sync import make_sync_job, print_sync_report, sync_progress
from everturn.cli.output import print_session_rows
from everturn.errors import NoArchive
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, open_store
from everturn.text.printable import plural

_NEXT = (
    ("everturn search WORDS", "find anything that was said or done"),
    ("everturn show @last", "read the newest session, turn by turn"),
    ("everturn resume @last --dry-run", "how it would continue in its agent"),
    ("everturn export @last --as html -o a.html", "a page to share, secrets masked"),
    ("everturn doctor", "is everything safe?"),
)


@frame.command()
def command(cx: frame.CommandContext) -> int:
    """Archive what is new on this machine and say how things stand."""
    places = cx.places()
    if not _has_history(places) and _is_empty(cx):
        return _show_sample(cx)
    if cx.settings.is_missing:
        out = cx.out
        out.say("This is the first run. everturn reads these folders and changes nothing in them:")
        for source in cx.sources.values():
            for root in source.roots(places):
                out.say(
                    f"  {out.text(str(root))}  ({source.title}, {plural(sum(1 for _ in source.find(root)), 'file')})"
                )
        out.say(f"Everything goes into {cx.settings.db}, readable by you alone; nothing is sent anywhere.")
        out.say("To leave workspaces out:  everturn config set capture.exclude '[\"~/private/*\"]'")
        if out.lively and not cx.json and not click.confirm("Continue?", default=True, err=True):
            raise click.Abort
    return _sync_and_status(cx, cx.store(create=True), places)


def _has_history(places: SearchPlaces) -> bool:
    """Whether an agent has left a file here. A folder that cannot be listed counts: the sync reports it."""
    try:
        return any(
            True for source in all_sources().values() for root in source.roots(places) for _ in source.find(root)
        )
    except OSError:
        return True


def _is_empty(cx: frame.CommandContext) -> bool:
    """Nothing was ever added by hand either."""
    try:
        return not cx.store().count_sessions(SessionFilter(kinds=()))
    except NoArchive:
        return True


def _sync_and_status(cx: frame.CommandContext, store: Any, places: Any, db: str = "") -> int:
    from everturn.capture.sync import sync_all

    report = sync_all(make_sync_job(cx, store, places, sync_progress(cx, "sync")))
    erased = apply_retention(cx, store) if not db else []
    cx.update_counts(store, wait=False)
    if cx.json:
        print_sync_report(cx, report, erased=erased)
        return 4 if report.failed else 0
    code = print_sync_report(cx, report)
    _print_status(cx, store)
    cx.out.say()
    if db:
        cx.out.say("The sample has an archive of its own. To use it in this shell:")
        cx.out.say(f"  export EVERTURN_DB={shlex.quote(db)}")
        cx.out.say()
    cx.out.say("Try next:")
    for command, purpose in _NEXT:
        cx.out.say(f"  {command:<41}  {purpose}")
    return code


def _print_status(cx: frame.CommandContext, store: Any) -> None:
    from everturn.sessions.lookup import list_sessions

    out = cx.out
    total = store.count_sessions(SessionFilter())
    newest = list_sessions(store, SessionFilter(), 5).items
    sizes = store.sizes()
    out.emit(
        f"in the archive: {plural(total, 'session')}, {sizes.get('total', 0) / 1e6:,.1f} MB  ({out.text(store.url)})"
    )
    if newest:
        out.emit()
        print_session_rows(out, newest, clock.now())


def _show_sample(cx: frame.CommandContext) -> int:
    """Show a bundled sample in its own archive, when there is no history."""
    cx.out.say("No agent history was found on this machine; here is a bundled sample instead.")
    cx.settings.make_folders()
    path = cx.settings.data / "sample.db"
    with resources.as_file(resources.files("everturn") / "sample") as folder:
        extra = {name: (folder / name,) for name in cx.sources if (folder / name).is_dir()}
        nowhere = SearchPlaces(Path(folder) / "nowhere", {}, "linux", extra)
        store = open_store(str(path))
        try:
            return _sync_and_status(cx, store, nowhere, str(path))
        finally:
            store.close()
