"""Browse the archive full screen."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everturn.cli import frame
from everturn.errors import EverturnError, NoArchive, UsageError

if TYPE_CHECKING:
    from everturn.store.contract import Store
    from everturn.tui.actions import StartCommand


@frame.command(
    "everturn browse",
    "everturn browse --filter 'workspace:shop since:7d'",
    "everturn browse @last",
    "everturn browse 3f2a9c --reveal",
    json=False,
    reveal=True,
)
@click.argument("session", default="")
@click.option("--filter", "typed", default="", metavar="TEXT", help="Start with this text in the filter.")
def command(cx: frame.CommandContext, session: str, typed: str) -> None:
    """Browse the archive: sessions, their turns with tools folded, search, and the actions on a session.

    With SESSION (an id, any unique prefix, @last) it opens at that one. The archive is only read; secrets are
    masked. Press ? for the keys. Needs a terminal, and textual: pip install 'everturn[browse]'.
    """
    if not sys.stdin.isatty() or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("browse needs a terminal; `everturn sessions`, `show` and `search` work without one")
    _import_textual()
    from everturn.tui.app import run
    from everturn.tui.archive import ScreenArchive

    if cx.settings.is_missing:
        raise NoArchive(cx.settings.db)
    archive = ScreenArchive(cx.settings.db, cx.reveal)
    archive.open()
    try:
        number = archive.read(lambda store: _session_number(store, session)) if session else None
        command = run(archive, _write_new_file, typed, number)
    finally:
        archive.close()
    if command is not None and not sys.stdout.isatty():
        cx.out.emit(command.line)
    elif command is not None:
        _start(command)


def _start(command: StartCommand) -> None:
    """Become the command, in its folder. Raises EverturnError with the line to type if it cannot be started."""
    first, *rest = command.words
    words = [sys.executable, "-m", "everturn", *rest] if first == "everturn" else [first, *rest]
    sys.stderr.write(f"$ {command.line}\n")
    sys.stderr.flush()
    try:
        if os.path.isdir(command.folder):
            os.chdir(command.folder)
        os.execvp(words[0], words)  # noqa: S606 -- the command that was shown and chosen
    except OSError as failure:
        raise EverturnError(f"{first} cannot be started: {failure.strerror}; the command is: {command.line}") from None


def _import_textual() -> None:
    """Import textual with garbage collection off: it makes very many objects, none of them garbage. Raises EverturnError."""
    gc.disable()
    try:
        import everturn.tui.app  # noqa: F401
    except ModuleNotFoundError as missing:
        if missing.name is None or not missing.name.startswith(("textual", "rich")):
            raise
        raise EverturnError(
            "browse needs the package textual, which is not installed; run: pip install 'everturn[browse]'"
        ) from None
    finally:
        gc.enable()
    gc.freeze()


def _session_number(store: Store, session: str) -> int:
    from everturn.sessions.lookup import resolve_session

    return resolve_session(store, session).id


def _write_new_file(target: str, pieces: Iterable[bytes]) -> int:
    from everturn.cli.commands.export import write_file

    path = Path(target).expanduser()
    if os.path.lexists(path):
        raise UsageError(f"{target} already exists; name another file")
    return write_file(path, pieces)
