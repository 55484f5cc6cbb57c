"""Serve the archive to agents over the Model Context Protocol."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from everturn.cli import frame
from everturn.cli.meaning_options import for_searches
from everturn.clock import new_id

if TYPE_CHECKING:
    from everturn.mcp.archive import McpArchive

_PORT = 8765


@frame.command(
    "everturn mcp",
    "everturn mcp --workspace ~/projects/shop",
    "everturn mcp --session 3f2a9c",
    "everturn mcp --http --port 8765",
    "everturn mcp --restore-model local --restore-files ~/projects/shop",
    json=False,
)
@click.option("--session", default="", metavar="SESSION", help="What `this session` is: an id or its prefix, @last.")
@click.option("--workspace", default="", metavar="DIR", help="What `this workspace` is; without it the current folder.")
@click.option(
    "--restore-model", "model", default="", metavar="NAME",
    help="Allow restore_session to ask this model of the config, which sees the words of sessions.",
)  # fmt: skip
@click.option(
    "--restore-files", "files", type=click.Path(exists=True, file_okay=False, resolve_path=True), metavar="DIR",
    help="Allow that model to search and read the files in DIR. Without this it reads none.",
)  # fmt: skip
@click.option("--http", is_flag=True, help="Streamable HTTP on this machine only, instead of stdin and stdout.")
@click.option(
    "--port", default=_PORT, show_default=True, type=click.IntRange(0, 65535), help="For --http; 0 uses any free port."
)
@click.option("--no-key", is_flag=True, help="For --http: answer every user of this machine, without a key.")
def command(
    cx: frame.CommandContext, session: str, workspace: str, http: bool, port: int, no_key: bool, **restore: Any
) -> None:
    """Serve the archive to agents over the Model Context Protocol, on stdin and stdout.

    Tools: conversation_recall searches and reads what was said and done, list_sessions and open_session find and read
    whole sessions, restore_session tells how one stands, so that it can be continued. Everything is read only, masked, quoted as data and at most 8,000 tokens long.

    To register it, add a server named `everturn` to the list of MCP servers in your agent's settings, of type stdio, with
    the command `everturn` and the one argument `mcp`; most agents also have a command of their own that adds one, which
    takes the words after a `--`. Many settings files take this:

    \b
      {"mcpServers": {"everturn": {"command": "everturn", "args": ["mcp"]}}}

    Give the full path of `everturn` where the agent does not know your PATH, and EVERTURN_DB in its environment (or --db
    in the arguments) for another archive. With --http a client must send the key of the file
    that is named, as `Authorization: Bearer KEY`; it stays the same from run to run. The archive need not exist yet; run `everturn sync` to fill it.
    """
    from everturn.mcp.archive import McpArchive
    from everturn.mcp.stdio import ServerStopped

    folder = os.path.abspath(os.path.expanduser(workspace)) if workspace else ""
    archive = McpArchive(cx.settings.db, session, folder, folder or str(cx.places().working or ""))
    archive.meaning = for_searches(cx)
    _allow_model(cx, archive, restore["model"], restore["files"] or "")
    signal.signal(signal.SIGTERM, _stop_server)
    with suppress(ServerStopped), answer_hooks(cx):
        if http:
            from everturn.mcp.http import serve

            path = cx.settings.state / "mcp-key"
            key = "" if no_key else _http_key(path)
            if key:
                cx.out.say(f"clients must send the key in {path}, as `Authorization: Bearer KEY`")
            serve(archive, port, cx.out.say, key)
        else:
            _serve_pipes(cx, archive)


def _allow_model(cx: frame.CommandContext, archive: McpArchive, model: str, files: str) -> None:
    """Let `restore_session` ask a model, if the user named one, and let that read a folder, if the user named one."""
    if files and not model:
        raise click.UsageError("--restore-files is for a model: add --restore-model NAME", click.get_current_context())
    if not model:
        return
    from everturn.restore.job import open_asker

    cx.open_backend(model)  # a mistake in the config is said at once
    archive.open_model = lambda store, session: open_asker(store, session, cx.open_backend(model))
    archive.evidence_folder = files


@contextmanager
def answer_hooks(cx: frame.CommandContext) -> Iterator[None]:
    """Answer the hooks of this user's agents meanwhile; not for an archive that only a flag names, as hooks have none."""
    settings = cx.settings
    if "flag" in (settings.origins["db"], settings.origins["config"]):
        yield
        return
    from everturn.capture.hook_answer import HookListener, listener_prefix
    from everturn.mcp.archive import McpArchive

    # With a connection of its own, opened by the first prompt that refers to something.
    archive = McpArchive(settings.db)
    prefix = listener_prefix(os.environ.get("EVERTURN_DB", ""), os.environ.get("EVERTURN_CONFIG", ""))
    hint = partial(_hint, archive, str(settings.state / "context"))
    with HookListener(str(settings.state), prefix, hint, archive.close):
        yield


def _hint(archive: McpArchive, folder: str, session: str, workspace: str, prompt: str) -> str:
    from everturn.capture.hook_answer import refers_out_of_view

    if not refers_out_of_view(folder, session, prompt):
        return ""
    from everturn.recall.hint import HintPrompt, hint_for_hook

    return archive.read(lambda store: hint_for_hook(store, HintPrompt(prompt, session, workspace), archive.clock))


def _http_key(path: Path) -> str:
    """Return the key of this user's server: made once, so that the settings of agents stay right."""
    try:
        if key := path.read_text("ascii").strip():
            return key
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(f"{new_id()}\n")
    return path.read_text("ascii").strip()


def _serve_pipes(cx: frame.CommandContext, archive: McpArchive) -> None:
    from everturn.mcp.server import McpServer
    from everturn.mcp.stdio import Server

    if sys.stdin.isatty():
        cx.out.say("waiting for an agent on stdin; `everturn mcp --help` says how to register it; Ctrl-D ends")
    with _protocol_only() as out:
        Server(McpServer(archive), sys.stdin.buffer, out, cx.out.warn).serve()


@contextmanager
def _protocol_only() -> Iterator[BinaryIO]:
    """Reserve stdout for the protocol: anything else that is printed goes to stderr."""
    sys.stdout.flush()
    out = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no stderr
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        with os.fdopen(os.dup(out), "wb") as stream:
            try:
                yield stream
            finally:
                _discard_unwritten(stream)
    finally:
        with suppress(OSError):
            sys.stdout.flush()  # what a library printed belongs where fd 1 leads now, not into the protocol
        os.dup2(out, 1)
        os.close(out)


def _discard_unwritten(stream: BinaryIO) -> None:
    """Flush the stream; if the reader is gone, discard the rest so that closing does not fail again."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _stop_server(number: int, frame: Any) -> None:
    from everturn.mcp.stdio import ServerStopped

    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt the shutdown
    raise ServerStopped
