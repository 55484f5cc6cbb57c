"""Write a session out: the identical file, one JSON document, or a readable page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everturn import clock
from everturn.cli import frame
from everturn.errors import EverturnError, Usage

if TYPE_CHECKING:
    from everturn.model.archive import Session
    from everturn.store import Store


@click.command(
    epilog=frame.examples(
        "everturn export @last --as markdown",
        "everturn export 3f2a9c --as raw --out copy.jsonl",
        "everturn export 3f2a9c --as raw --version 1 --out before.jsonl",
        "everturn export 3f2a9c --as json --reveal --out session.json",
    )
)
@click.argument("session")
@click.option("--as", "form", type=click.Choice(("raw", "json", "markdown")), required=True, help="In which form.")
@click.option("--version", "number", type=click.IntRange(1), metavar="N", help="From this version of its file.")
@click.option("--out", "target", default="", metavar="FILE", help="Where to write; - is stdout, and so is nothing.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("--thinking", is_flag=True, help="markdown: also what the model thought.")
@click.option("--context", is_flag=True, help="markdown: also what the client put in by itself.")
@frame.common(json=False, reveal=True)
def command(
    cx: frame.Context,
    session: str,
    form: str,
    number: int | None,
    target: str,
    force: bool,
    thinking: bool,
    context: bool,
) -> None:
    """Write SESSION out of the archive, also when the agent's own file is gone.

    raw is the file byte for byte, secrets and all; json and markdown have secrets masked unless --reveal is given.
    """
    from everturn.recall.sessions import edition, resolve

    if form == "raw" and not target and cx.out.stdout.isatty():
        raise Usage("raw bytes are not for a terminal; write them to a file with --out FILE, or to `--out -`")
    store = cx.store()
    row = resolve(store, session)
    if number is not None and form != "raw":
        row = edition(store, row, number)
    if form == "raw":
        pieces = _raw(cx, store, row, number)
    elif form == "json":
        pieces = _json(cx, store, row)
    else:
        pieces = _markdown(cx, store, row, thinking, context)
    if target in ("", "-"):
        for piece in pieces:
            cx.out.emit_bytes(piece)
        return
    size = write_file(Path(target), pieces, force)
    cx.out.say(f"wrote {size:,} bytes to {target}")


def write_file(target: Path, pieces: Iterable[bytes], force: bool = False) -> int:
    """Write a file that is either there as a whole or not at all, readable by its owner alone."""
    if not target.parent.is_dir():
        raise Usage(f"{target} cannot be written: there is no folder {target.parent}; make it first")
    if target.is_dir() or (os.path.lexists(target) and not force):
        raise _there_already(target)
    beside = target.with_name(f".{target.name[:200]}.{clock.new_id()[:8]}")
    try:
        size = _write_new(beside, pieces)
        _put(beside, target, force)
    except OSError as error:
        raise EverturnError(f"{target} cannot be written: {error.strerror}; nothing was left there") from None
    finally:
        beside.unlink(missing_ok=True)
    return size


def _put(beside: Path, target: Path, force: bool) -> None:
    if not force:
        try:
            os.link(beside, target)  # unlike a rename it never replaces a file that came up meanwhile
            return
        except FileExistsError:
            raise _there_already(target) from None
        except OSError:  # a file system without links
            if os.path.lexists(target):
                raise _there_already(target) from None
    os.replace(beside, target)


def _there_already(target: Path) -> Usage:
    if target.is_dir():
        return Usage(f"{target} is a folder; name a file in it")
    return Usage(f"{target} is there already; name another file, or replace it with --force")


def _write_new(path: Path, pieces: Iterable[bytes]) -> int:
    size = 0
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        for piece in pieces:
            size += file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return size


def _raw(cx: frame.Context, store: Store, session: Session, number: int | None) -> Iterator[bytes]:
    from everturn.export.verbatim import original, raw

    found = original(store, session, number)
    cx.out.say("verbatim: nothing is masked, secrets included")
    for note in found.notes:
        cx.out.say(note)
    return raw(store, found.version.id)


def _json(cx: frame.Context, store: Store, session: Session) -> Iterator[bytes]:
    from everturn.export.document import as_json
    from everturn.sources import all_sources

    pieces = as_json(store, all_sources(), session, cx.out.clean_line)
    return (piece.encode() for piece in pieces)


def _markdown(cx: frame.Context, store: Store, session: Session, thinking: bool, context: bool) -> Iterator[bytes]:
    from everturn.export.markdown import as_markdown
    from everturn.sources import all_sources

    pieces = as_markdown(store, all_sources(), session, cx.out.clean, thinking, context)
    return (piece.encode("utf-8", "replace") for piece in pieces)
