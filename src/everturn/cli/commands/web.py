"""Look at the archive in a browser: sessions, search, what agents do and cost."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from everturn.cli import frame
from everturn.clock import new_id
from everturn.errors import EverturnError, NoArchive

if TYPE_CHECKING:
    from everturn.store.contract import Store
    from everturn.web.site import Site


@frame.command(
    "everturn web",
    "everturn web --open",
    "everturn web --no-sync           show the archive as it is",
    "everturn web --no-key            answer every user of this machine",
    "everturn web --port 9000",
    "everturn web --json              the address as JSON",
)
@click.option("--port", type=click.IntRange(0, 65535), help="Without it 8760, or the next that is free; 0 takes any.")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser, with a link that works once.")
@click.option("--no-sync", is_flag=True, help="Show the archive as it is: do not archive what agents write.")
@click.option("--no-key", is_flag=True, help="Answer every user of this machine, without a key.")
@click.option("--private", is_flag=True, hidden=True, help="The default.")
def command(cx: frame.CommandContext, port: int | None, opens: bool, no_sync: bool, no_key: bool, private: bool) -> int:
    """Serve pages over the archive to a browser on this machine, until Ctrl-C.

    While it runs, it archives what agents write, as `everturn sync --watch` does, and open pages follow.
    Nothing is sent anywhere and nothing is loaded from elsewhere. Secrets are masked. Only those are answered who have the
    key of this run, which is in the address that is printed: no other machine, no other user of this one, no page of
    another site. Needs starlette and uvicorn: pip install 'everturn[web]'.
    """
    _import_server()
    from everturn.web.app import serve_site

    if no_sync and cx.settings.is_missing:
        raise NoArchive(cx.settings.db)

    def ready(address: str, link: str) -> None:
        if cx.json:
            cx.out.emit_json("web", [{"address": address}])
            cx.out.stdout.flush()
        else:
            cx.out.say(f"serving {address}; Ctrl-C ends")
        if opens:
            click.launch(link)

    cx.store(create=not no_sync)  # fail before serving if it cannot be opened
    signal.signal(signal.SIGTERM, _raise_interrupt)
    try:
        serve_site(_make_site(cx, "" if no_key else new_id(), not no_sync), port, ready)
    except KeyboardInterrupt:  # the way to end it
        pass
    return 0


def _raise_interrupt(number: int, frame: Any) -> None:
    """Treat SIGTERM like Ctrl-C; the server raises it again once everything is closed."""
    raise KeyboardInterrupt


def _import_server() -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as missing:
        raise EverturnError(
            f"web needs the package {missing.name}, which is not installed; run: pip install 'everturn[web]'"
        ) from None


def _make_site(cx: frame.CommandContext, key: str, syncs: bool) -> Site:
    from everturn.cli.commands.sync import make_sync_job
    from everturn.llm.config import model_names
    from everturn.restore.job import open_asker
    from everturn.web.site import Site, WebArchive

    settings = cx.settings

    def sync(store: Store, step: Callable[[int, int], None]) -> dict[str, Any]:
        from everturn.capture.sync import sync_all

        def progress(done: int, total: int, read: int, to_read: int, path: str) -> None:
            step(done, total)

        report = sync_all(make_sync_job(cx, store, cx.places(), progress))
        return {name: value for name, value in asdict(report).items() if isinstance(value, int)}

    def watch(store: Store, stop: Event, tell: Callable[[], None]) -> None:
        from everturn.capture.sync import watch_sources

        watch_sources(make_sync_job(cx, store, cx.places()), stop, lambda report: tell())

    return Site(
        WebArchive(settings.db),
        cx.places(),
        machine=settings.machine,
        folder=None if settings.db.startswith(("postgres", "memory:")) else Path(settings.db).parent,
        models=tuple(model_names(settings.models)),
        open_model=lambda store, session, model: open_asker(store, session, cx.open_backend(model)),
        prices=settings.prices,
        warn=cx.out.warn,
        key=key,
        sync=sync if syncs else None,
        watch=watch if syncs else None,
    )
