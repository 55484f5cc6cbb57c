"""Options and setup of a chat, shared by `chat` and `resume`: model or agent, archive, terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from everturn import clock
from everturn.cli import frame

if TYPE_CHECKING:
    from everturn.chat.screen import ChatScreen
    from everturn.chat.setup import ChatSetup
    from everturn.llm.asker import AskBudget, Asker
    from everturn.llm.protocol import Backend
    from everturn.store.contract import Store

ChatOptions = dict[str, Any]  # by name

chat_options = frame.with_options((
    click.option(
        "-w", "--workspace", type=click.Path(exists=True, file_okay=False), metavar="DIR",
        help="The folder to work in. Default: the current one.",
    ),
    click.option("--model", default="", metavar="NAME", help="The model of the config, as NAME or NAME/MODEL."),
    click.option(
        "--system", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="A system prompt of your own."
    ),
    click.option("--agent", default="", metavar="FILE", help="Talk to the Python agent in this file. It is run."),
    click.option(
        "--tools", type=click.Choice(("none", "read", "all")), default="all", show_default=True,
        help="What the model may use; writing and running ask first.",
    ),
    click.option("--no-summary", is_flag=True, help="Ask no model for summaries; they are made from the records."),
    click.option(
        "--summary-timeout", type=click.FloatRange(0.1), default=60.0, show_default=True, metavar="SECONDS",
        help="How long a summary may take; it is tried twice.",
    ),
    click.option(
        "--summary-prompt", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
        help="A form of your own for summaries.",
    ),
    click.option("--save-dir", default="", metavar="DIR", help="Where conversations are saved as Markdown."),
    click.option("--no-save", is_flag=True, help="Save no Markdown; the archive has everything."),
    click.option("--budget", type=click.IntRange(1), metavar="TOKENS", help="The most this chat may cost."),
    click.option("--force", is_flag=True, help="Continue even if agent, system prompt or workspace differ."),
))  # fmt: skip


def chat_setup(cx: frame.CommandContext, options: ChatOptions) -> ChatSetup:
    """Return the setup of a chat. Raises BadConfig when no model is configured."""
    from everturn.capture.policy import Policy, policy_of
    from everturn.chat.file_tools import built_in_tools
    from everturn.chat.setup import SYSTEM, Agent, ChatSetup
    from everturn.llm.asker import AskBudget, Asker
    from everturn.secrets.redaction import redact_bytes, redact_text
    from everturn.sessions.secrets import archive_cleaner

    sources = cx.sources
    backend, agent = _open_backend(cx, options)
    workspace = os.path.realpath(options["workspace"] or os.getcwd())
    policy = policy_of(cx.settings)
    mode = policy.decide(workspace).mode
    store = _open_archive(cx, mode)
    if mode == "redacted":
        store.mask = lambda text: redact_bytes(text.encode("utf-8", "replace")).decode()
    budget = AskBudget(tokens=options["budget"])
    asker = Asker(backend, budget, lambda text: text, clock.now)
    write = next((source.write_pieces for source in sources.values() if source.saves_chats), None)
    return ChatSetup(
        store=store,
        sources=sources,
        asker=asker,
        clock=clock.now,
        summariser=None if options["no_summary"] else _open_summariser(cx, options, asker, budget),
        workspace=workspace,
        machine=cx.settings.machine,
        owner=cx.settings.owner,
        agent=agent or Agent(),
        system=Path(options["system"]).read_text("utf-8") if options["system"] else "" if agent else SYSTEM,
        tools=built_in_tools(workspace, options["tools"], os.environ),
        clean=archive_cleaner(store),
        folder=_save_folder(cx, options) if mode in ("full", "redacted") else None,
        write=(lambda part: map(redact_text, write(part))) if write and mode == "redacted" else write,
        summary_seconds=options["summary_timeout"],
        policy=policy if mode in ("full", "redacted") else Policy(),
        summary_form=Path(options["summary_prompt"]).read_text("utf-8") if options["summary_prompt"] else "",
    )


def chat_screen(cx: frame.CommandContext, env: Mapping[str, str] = os.environ) -> ChatScreen:
    """Return the screen on the terminal or the pipes; with --json it writes to stderr only."""
    from everturn.chat.screen import ChatScreen

    is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and env.get("TERM") != "dumb"
    read = input if is_terminal else _read_piped
    if is_terminal:
        _edit_lines()
    out = sys.stderr if cx.json else sys.stdout
    size = partial(_terminal_size, cx.out.width, is_terminal)
    return ChatScreen(out, sys.stderr, read, is_terminal, is_terminal and not env.get("NO_COLOR"), size)


def _terminal_size(width: int, is_terminal: bool) -> tuple[int, int]:
    """Return the current size of the terminal, whatever the environment says; some report zero."""
    columns, rows = os.get_terminal_size(sys.stdout.fileno()) if is_terminal else (0, 0)
    return columns or width, rows or 24


def _open_backend(cx: frame.CommandContext, options: ChatOptions) -> tuple[Backend, Any]:
    from everturn.chat.setup import Agent

    if options["agent"]:
        from everturn.chat.python_agent import load_agent

        loaded = load_agent(options["agent"])
        return loaded, Agent(loaded.name, loaded.path)
    return cx.open_backend(options["model"]), None


def _open_summariser(cx: frame.CommandContext, options: ChatOptions, asker: Asker, budget: AskBudget) -> Asker:
    """Return the model for summaries: the chat's model; for an agent, --model or a second instance of the agent."""
    if not options["agent"]:
        return asker
    from everturn.chat.python_agent import AgentBackend
    from everturn.llm.asker import Asker

    assert isinstance(asker.backend, AgentBackend)
    other = cx.open_backend(options["model"]) if options["model"] else asker.backend.another()
    return Asker(other, budget, lambda text: text, clock.now)


def _open_archive(cx: frame.CommandContext, mode: str) -> Store:
    """Open the archive so that acknowledged writes survive a power failure; in memory, if nothing may be kept."""
    from everturn.capture.policy import MEMORY
    from everturn.loop.journal import open_archive
    from everturn.sessions.secrets import make_key

    cx.settings.make_folders()
    if mode not in ("full", "redacted"):
        cx.out.warn(f"nothing of this chat is kept: the capture mode of this workspace is {mode}")
    store = open_archive(cx.settings.db if mode in ("full", "redacted") else MEMORY)
    click.get_current_context().call_on_close(store.close)
    cx.out.archive = store
    make_key(store)
    return store


def _save_folder(cx: frame.CommandContext, options: ChatOptions) -> Path | None:
    if options["no_save"]:
        return None
    if not options["save_dir"] and cx.is_encrypted:
        return None  # a copy in plain text must be asked for
    return Path(options["save_dir"]).absolute() if options["save_dir"] else cx.settings.data / "chats"


def _read_piped(label: str) -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.removesuffix("\n")


def _edit_lines() -> None:
    """Enable line editing, history and bracketed paste, where readline is available."""
    try:
        import readline
    except ImportError:
        return
    readline.parse_and_bind("set enable-bracketed-paste on")


def remember_lines(lines: list[str]) -> None:
    """Add earlier prompts to the history of the arrow keys. They come from the archive; there is no history file."""
    try:
        import readline
    except ImportError:
        return
    for line in lines:
        readline.add_history(line)
