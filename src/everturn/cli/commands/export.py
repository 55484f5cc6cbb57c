"""Write a session out: the identical file, one JSON document, or a page to read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from everturn import clock
from everturn.cli import frame
from everturn.errors import EverturnError, UsageError
from everturn.text.printable import plural

if TYPE_CHECKING:
    from everturn.model.archive import Session
    from everturn.sources.contract import WireForm
    from everturn.store.contract import Store


_FORMS, _TABLES = ("raw", "native", "json", "markdown", "html", "bundle"), ("csv", "parquet")
_SEVERAL = ("html", "bundle")  # forms that hold several sessions


@frame.command(
    "everturn export @last --as markdown",
    "everturn export @last --as html --out session.html",
    "everturn export 3f2a9c --as raw --out copy.jsonl",
    "everturn export 3f2a9c --as native --redacted --out ~/shared/   the agent's own format, secrets masked",
    "everturn export 3f2a9c --as raw --version 1 --out before.jsonl",
    "everturn export 3f2a9c --as json --reveal --out session.json",
    "everturn export @last --as bundle --out session.zip",
    "everturn export @last --as FORM --to http://127.0.0.1:4318     spans, to a collector that runs there",
    "everturn export --analytics --as parquet --out numbers",
    json=False,
    reveal=True,
)
@click.argument("sessions", metavar="SESSION...", nargs=-1)
@click.option(
    "--as", "form", default="", metavar="FORM",
    help="raw, native, json, markdown, html, bundle, csv, parquet, or a format that `everturn sources` says can be written.",
)  # fmt: skip
@click.option("--version", "number", type=click.IntRange(1), metavar="N", help="From this version of its file.")
@click.option("-o", "--out", "target", default="", metavar="FILE", help="The output file. Default: stdout (-).")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--redacted", is_flag=True, help="native: mask secrets, which is the default without --reveal.")
@click.option("--analytics", is_flag=True, help="csv, parquet: the numbers of all sessions; --out is a folder.")
@click.option("--binary", is_flag=True, help="The binary form of a format that has one: protobuf for spans.")
@click.option("--to", metavar="URL", default="", help="Send it to this endpoint, in the binary form of its format.")
@click.option("--header", "headers", multiple=True, metavar="NAME:VALUE", help="--to: a header, such as a key.")
@click.option("--thinking", is_flag=True, help="markdown: also what the model thought; html has it folded.")
@click.option("--context", is_flag=True, help="markdown, html: include context that the client added.")
@click.option("--pictures", is_flag=True, help="html: also pictures, as they are: nothing in them can be masked.")
def command(
    cx: frame.CommandContext,
    sessions: tuple[str, ...],
    form: str,
    number: int | None,
    target: str,
    force: bool,
    analytics: bool,
    **shown: Any,
) -> None:
    """Write SESSION out of the archive, also when the agent's own file is gone.

    raw is the file byte for byte, secrets and all; the other forms have secrets masked unless --reveal is given. native is
    the file with nothing changed but secrets, for the agent to open: put it where the agent keeps its sessions. A session that
    the agent keeps in a database is written again. html is one file to open anywhere, with the subagents in it; pictures
    are left out of it unless --pictures or --reveal is given. bundle is a zip file with all versions of the file and of what
    belongs to it, secrets and all. html and bundle take several sessions. Formats that other programs read can be written,
    too: `everturn sources` lists them. Some have a binary form (--binary), and can be sent to a collector (--to), sessions in any
    number; ids do not change, so that sending one again adds nothing.

    With --analytics it is not a session but the numbers of all: turns, tool calls, tokens and counts, one file per table in a
    folder, without a word of what was said.
    """
    from everturn.sessions.lookup import session_edition

    _check_form(form)
    if analytics or form in _TABLES:
        _analytics(cx, sessions, form, target, force)
        return
    _check_request(cx, sessions, form, number, target, shown)
    if shown["redacted"] and (cx.reveal or form == "raw"):
        raise UsageError("--redacted masks secrets; leave out --reveal, and use --as native for the agent's own format")
    store = cx.store()
    rows = [cx.session(session) for session in sessions]
    if shown["to"]:
        _send(cx, store, rows, form, shown)
        return
    if number is not None and form not in ("raw", "native", "bundle"):
        rows[0] = session_edition(store, rows[0], number)
    pieces, name = _pieces(cx, store, rows, form, number, shown)
    if name and target not in ("", "-") and Path(target).is_dir():
        target = str(Path(target) / name)
    if target in ("", "-"):
        for piece in pieces:
            cx.out.emit_bytes(piece)
        return
    size = write_file(Path(target), pieces, force)
    cx.out.say(f"wrote {size:,} bytes to {target}")


def _pieces(
    cx: frame.CommandContext, store: Store, rows: list[Session], form: str, number: int | None, shown: dict[str, Any]
) -> tuple[Iterable[bytes], str]:
    """Return the content, and the name of the file in a folder if it has one of its own."""
    if form == "native":
        return _native(cx, store, rows[0], number)
    if form == "raw":
        return _raw_chunks(cx, store, rows[0], number), ""
    if form == "bundle":
        from everturn.export.bundle import as_bundle

        cx.out.say("verbatim: nothing is masked, secrets included")
        return as_bundle(store, rows), ""
    if form not in _FORMS:
        from everturn.export.interchange import as_binary

        lines = _standard(cx, store, rows[0], form)
        return as_binary(_wire(form), lines) if shown["binary"] else lines, ""
    return (piece.encode("utf-8", "replace") for piece in _texts(cx, store, rows, form, shown)), ""


def _texts(
    cx: frame.CommandContext, store: Store, rows: list[Session], form: str, shown: dict[str, Any]
) -> Iterator[str]:
    if form == "json":
        from everturn.export.json_document import as_json

        return as_json(store, cx.sources, rows[0], cx.out.clean_line)
    if form == "markdown":
        from everturn.export.markdown import as_markdown

        return as_markdown(store, cx.sources, rows[0], cx.out.clean, shown["thinking"], shown["context"])
    from everturn.export.page.standalone import as_html

    clean, pictures = (None, True) if cx.out.reveal else (cx.out.clean, shown["pictures"])
    if pictures:
        cx.out.say("pictures are shown as they were: look at them before you pass the file on")
    return as_html(store, cx.sources, rows, clean, shown["context"], pictures)


def _check_form(form: str) -> None:
    from everturn.sources.contract import all_sources

    if form in (*_FORMS, *_TABLES):
        return
    source = all_sources().get(form)
    if source is None or source.write is None:
        known = (*_FORMS, *_TABLES, *(name for name, one in sorted(all_sources().items()) if one.write is not None))
        problem = f"a session cannot be written as {form!r}" if form else "missing option '--as'"
        raise UsageError(f"{problem}; choose from: {', '.join(known)}")


def _check_request(
    cx: frame.CommandContext,
    sessions: tuple[str, ...],
    form: str,
    number: int | None,
    target: str,
    shown: dict[str, Any],
) -> None:
    is_sent = bool(shown["to"])
    if is_sent and (target or number is not None):
        raise UsageError("--to sends a session as it is now; leave out --out and --version")
    if (form in ("raw", "bundle") or (shown["binary"] and not is_sent)) and not target and cx.out.stdout.isatty():
        raise UsageError("raw bytes are not for a terminal; write them to a file with --out FILE, or to `--out -`")
    if not sessions:
        raise UsageError("say which session to write out; `everturn sessions` lists them")
    if len(sessions) > 1 and not is_sent and (form not in _SEVERAL or number is not None):
        raise UsageError("several sessions go into one file with --as html or bundle only, and without --version")


def _analytics(cx: frame.CommandContext, sessions: tuple[str, ...], form: str, target: str, force: bool) -> None:
    from everturn.export.analytics_tables import as_csv, as_parquet
    from everturn.model.analytics import PLANE

    if sessions or form not in _TABLES or target in ("", "-"):
        raise UsageError(
            "numbers are written by `everturn export --analytics --as csv --out FOLDER` (or parquet), of all sessions"
        )
    store, folder = cx.store(), Path(target)
    write = as_csv if form == "csv" else as_parquet
    files = {folder / f"{table.name}.{form}": write(store, table) for table in PLANE}
    if os.path.lexists(folder) and not folder.is_dir():
        raise UsageError(f"{folder} is a file; the tables are written into a folder: name another one")
    if folder.parent.is_dir():
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise EverturnError(f"{folder} cannot be made: {error.strerror}") from None
    for path in files if not force else ():  # all of them or none
        if os.path.lexists(path):
            raise _exists_error(path)
    cx.update_counts(store)
    size = sum(write_file(path, pieces, force) for path, pieces in files.items())
    cx.out.say(f"wrote {len(PLANE)} tables, {size:,} bytes, to {target}")


def write_file(target: Path, pieces: Iterable[bytes], force: bool = False) -> int:
    """Write a file completely or not at all, readable by its owner only, and return its size."""
    if not target.parent.is_dir():
        raise UsageError(f"{target} cannot be written: there is no folder {target.parent}; make it first")
    if target.is_dir() or (os.path.lexists(target) and not force):
        raise _exists_error(target)
    beside = target.with_name(f".{target.name[:200]}.{clock.new_id()[:8]}")
    try:
        size = _write_new(beside, pieces)
        _put_in_place(beside, target, force)
    except OSError as error:
        raise EverturnError(f"{target} cannot be written: {error.strerror}; nothing was left there") from None
    finally:
        beside.unlink(missing_ok=True)
    return size


def _put_in_place(beside: Path, target: Path, force: bool) -> None:
    if not force:
        try:
            os.link(beside, target)  # unlike a rename, it never replaces a file created meanwhile
            return
        except FileExistsError:
            raise _exists_error(target) from None
        except OSError:  # a file system without links
            if os.path.lexists(target):
                raise _exists_error(target) from None
    os.replace(beside, target)


def _exists_error(target: Path) -> UsageError:
    if target.is_dir():
        return UsageError(f"{target} is a folder; name a file in it")
    return UsageError(f"{target} already exists; name another file, or replace it with --force")


def _write_new(path: Path, pieces: Iterable[bytes]) -> int:
    size = 0
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        for piece in pieces:
            size += file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return size


def _raw_chunks(cx: frame.CommandContext, store: Store, session: Session, number: int | None) -> Iterator[bytes]:
    from everturn.export.original import raw_bytes, read_original

    found = read_original(store, session, number)
    cx.out.say("verbatim: nothing is masked, secrets included")
    for note in found.notes:
        cx.out.say(note)
    return raw_bytes(store, found.version.id)


def _native(
    cx: frame.CommandContext, store: Store, session: Session, number: int | None
) -> tuple[Iterable[bytes], str]:
    """Return the session in its agent's own format, and the name of its file there."""
    from everturn.export.original import masked_copy, raw_bytes, read_original

    found = read_original(store, session, number)
    for note in found.notes:
        cx.out.say(note)
    if found.file.container:
        return _written_anew(cx, store, session)
    pieces = raw_bytes(store, found.version.id)
    cx.out.say(
        "nothing is masked, secrets included" if cx.reveal else "secrets are masked; every other byte is as it was"
    )
    return pieces if cx.reveal else masked_copy(pieces, cx.out.cleaner), os.path.basename(found.file.path)


def _written_anew(cx: frame.CommandContext, store: Store, session: Session) -> tuple[Iterable[bytes], str]:
    """Write a session that its agent keeps in a database as a file that the agent opens or imports."""
    from everturn.cli.commands.handoff import native_options
    from everturn.export.original import masked_copy
    from everturn.resume.handoff import plan_native

    plan = plan_native(store, cx.sources, session, native_options(cx, session, "", None, None))
    cx.out.say(f"its agent keeps it in a database; written as a new session {plan.new.id} in the agent's own format")
    if plan.take_in:
        cx.out.say(f"the agent imports it with: {cx.out.text(' '.join(plan.take_in[:-1]))} FILE")
    return [plan.content] if cx.reveal else masked_copy([plan.content], cx.out.cleaner), plan.path.name


def _standard(cx: frame.CommandContext, store: Store, session: Session, form: str) -> Iterator[bytes]:
    from everturn.export.interchange import as_standard

    return as_standard(store, cx.sources, session, form, cx.out.clean_line)


def _wire(form: str) -> WireForm:
    from everturn.sources.contract import all_sources

    source = all_sources().get(form)
    if source is None or source.wire is None:
        known = ", ".join(name for name, one in sorted(all_sources().items()) if one.wire is not None)
        raise UsageError(f"{form} has no binary form and cannot be sent; choose --as {known}")
    return source.wire


def _send(cx: frame.CommandContext, store: Store, sessions: list[Session], form: str, shown: dict[str, Any]) -> None:
    from everturn.export.interchange import send

    wire, headers = _wire(form), {}
    for header in shown["headers"]:
        name, colon, value = header.partition(":")
        if not colon or not name.strip() or not header.isprintable():
            raise UsageError("a header is NAME:VALUE, such as --header 'Authorization: Bearer KEY'")
        headers[name.strip()] = value.strip()
    requests = sum(send(wire, shown["to"], headers, _standard(cx, store, one, form)) for one in sessions)
    masked = "secrets included" if cx.reveal else "secrets masked"
    cx.out.say(f"sent {plural(len(sessions), 'session')} in {plural(requests, 'request')} to {shown['to']}, {masked}")
