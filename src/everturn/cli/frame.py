"""The frame of the command line: how commands are found, the options they share, and what they are given.

A command is a file `cli/commands/NAME.py` that defines `command`; the first line of its docstring is its one-line help. There
is no list of commands: the folder is the list, and its files are read, not imported, until a command runs. That keeps
`everturn --help` below 80 ms (`tests/cli/test_frame.py` holds it).

    @frame.command("everturn sessions --since 2d")
    @click.argument("words", nargs=-1)
    def command(cx: frame.CommandContext, words: tuple[str, ...]) -> int | None: ...

A command returns None (exit 0) or an exit code, and raises an `EverturnError` for anything a person should read. `main`
prints errors.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from everturn import __version__
from everturn.errors import Busy, EverturnError, NoArchive, OlderArchive

if TYPE_CHECKING:
    from pathlib import Path

    from everturn.cli.output import Output
    from everturn.llm.protocol import Backend
    from everturn.model.archive import Session
    from everturn.settings import Settings
    from everturn.sources.contract import SearchPlaces, Source
    from everturn.store.cipher import KeySources
    from everturn.store.contract import SessionFilter, Store


Handler = Callable[..., Any]

#: Aliases of commands.
ALIASES = {"ingest": "add"}

#: The command to run when none is given; not listed.
HOME = "home"

#: The groups of `--help`; a command that is in none is listed last.
SECTIONS = {
    "Keep": ("sync", "add", "receive", "sources"),
    "Find": ("sessions", "show", "browse", "web", "search", "recall", "why", "mark", "export"),
    "Bring back": ("restore", "resume", "handoff", "repair", "chat"),
    "Understand": ("stats", "turns", "paths", "inspect", "suggest", "struggles", "replay"),
    "For agents": ("install", "uninstall", "mcp", "acp", "drain", "enrich", "statusline"),
    "Team": ("push", "team", "serve", "admin"),
    "Look after": ("doctor", "verify", "rebuild", "backup", "merge", "secrets", "forget"),
    "Encrypt": ("encrypt", "decrypt", "rekey"),
    "Set up": ("config", "completion"),
}

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "commands")


class CommandContext:
    """The settings, the archive and the output of a command, each made on first use."""

    def __init__(self, click_context: click.Context) -> None:
        self._click = click_context
        self._opened: Store | None = None
        self.flags: dict[str, Any] = click_context.find_root().meta.setdefault("everturn.flags", {})

    @property
    def json(self) -> bool:
        return bool(self.flags.get("json"))

    @property
    def reveal(self) -> bool:
        return bool(self.flags.get("reveal"))

    @functools.cached_property
    def out(self) -> Output:
        from everturn.cli.output import Output

        return Output(json=self.json, reveal=self.reveal)

    @functools.cached_property
    def settings(self) -> Settings:
        """The settings: flag over environment over config file."""
        from everturn.settings import load
        from everturn.store.cipher import use_key_sources

        settings = load({key: self.flags[key] for key in ("db", "config") if self.flags.get(key)})
        if settings.secret_patterns or "everturn.secrets.rules" in sys.modules:  # not loaded: none are in use
            from everturn.secrets.rules import use_own_patterns

            use_own_patterns(settings.secret_patterns)
        use_key_sources(lambda: self._key_sources(settings))
        return settings

    @property
    def is_encrypted(self) -> bool:
        """Whether the archive is an encrypted file: then nothing of it is written beside it in plain text."""
        from everturn.store.cipher import is_encrypted

        return is_encrypted(self.settings.db)

    def _key_sources(self, settings: Settings) -> KeySources:
        from everturn.store.cipher import KeySources

        made = settings.encryption
        return KeySources(made.key, made.previous, lambda: made.passphrase or self.ask_passphrase())

    def ask_passphrase(self, what: str = "Passphrase of the archive", confirm: bool = False) -> str:
        """Ask for a passphrase on the terminal. Raises EverturnError where there is none."""
        if not sys.stdin.isatty():
            from everturn.store.cipher import nobody

            return nobody()
        return str(click.prompt(what, hide_input=True, confirmation_prompt=confirm, err=True))

    def store(self, create: bool = False) -> Store:
        """Return the archive, opened once and closed after the command. Without `create` it must exist."""
        if self._opened is None:
            from everturn.store.contract import open_store

            if create:
                self.settings.make_folders()
            elif self.settings.is_missing:
                raise NoArchive(self.settings.db)
            try:
                self._opened = open_store(self.settings.db, create=create, upgrade=False)
            except (OlderArchive, NoArchive) as refused:  # a file that was only begun counts as none
                if isinstance(refused, OlderArchive):
                    on_server = self.settings.db.startswith(("postgresql:", "postgres:"))
                    copied = "" if on_server else "; a copy is put beside it first"
                    self.out.say(f"bringing the archive to this version's schema{copied}…")
                self._opened = open_store(self.settings.db, create=create)
            self._click.call_on_close(self._opened.close)
            self.out.archive = self._opened
            if create:
                self._make_key()
            self._complete_erasures()
        return self._opened

    def close_store(self) -> None:
        """Close the archive before the command ends; `store` opens it again."""
        if self._opened is not None:
            self._opened.close()
            self._opened = self.out.archive = None

    def _complete_erasures(self) -> None:
        """Complete what an interrupted `forget` has left; skip it while another process is reading or writing."""
        if self._opened is None or not self._opened.kept("erasure"):
            return
        from everturn.cli.commands.forget import complete_erasures

        try:
            complete_erasures(self, self._opened)
        except EverturnError as failure:
            self.out.warn(f"an erasure is not complete yet: {failure}")

    def _make_key(self) -> None:
        """Create the key by which equal secrets are recognized; skip it when another process is writing."""
        from everturn.sessions.secrets import make_key

        try:
            make_key(self.store())
        except EverturnError:
            pass

    def update_counts(self, store: Store, wait: bool = True) -> None:
        """Bring the counts of tool use up to date. Without `wait`, not while another process is writing."""
        from everturn.analytics.counts import catch_up

        try:
            with self.out.progress("counting tool use, sessions") as step:
                catch_up(store, lambda done, total: step(done, "", total))
        except Busy:
            if wait:
                raise

    @property
    def sources(self) -> Mapping[str, Source]:
        """Every source, by name. Importing them takes time."""
        from everturn.sources.contract import all_sources

        return all_sources()

    def session(self, name: str) -> Session:
        """Return the session that `name` means. Raises AmbiguousSession, UnknownSession."""
        from everturn.sessions.lookup import resolve_session

        return resolve_session(self.store(), name)

    def filter(self, everything: bool = False, /, **given: str) -> SessionFilter:
        """Return the filter of the options of a command (`typed_filter`). Raises UsageError."""
        from everturn import clock
        from everturn.sessions.lookup import typed_filter

        return typed_filter(given, clock.now(), everything, home=os.path.expanduser("~"))

    def places(self) -> SearchPlaces:
        """Return the folders in which sources look for their files."""
        from pathlib import Path

        from everturn.sources.contract import SearchPlaces

        extra = {name: tuple(map(Path, folders)) for name, folders in self.settings.sources.items()}
        return SearchPlaces(
            home=Path.home(), env=dict(os.environ), platform=sys.platform, extra=extra, working=_working_folder()
        )

    def open_backend(self, name: str) -> Backend:
        """Return the backend of a configured model. Raises `BadConfig`."""
        from everturn.llm.config import Surroundings, open_backend, read_model_config

        models = self.settings.models
        is_program = read_model_config(models, name).kind == "program"
        sources = self.sources if is_program else {}
        programs = {name: source.ask for name, source in sources.items() if source.ask is not None}
        return open_backend(models, name, Surroundings(dict(os.environ), programs))


def command(
    *examples: str, json: bool = True, reveal: bool = False, make: Handler = click.command, **attributes: Any
) -> Callable[[Handler], Any]:
    """Make a command with examples in its help, the shared options and the `CommandContext` as its first argument.

    `json=False` is for a command that prints no data, `reveal=True` for one that shows text of the archive.
    """
    epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples) if examples else None

    def decorate(handler: Handler) -> Any:
        @functools.wraps(handler)
        def with_context(*args: Any, **values: Any) -> Any:
            return handler(CommandContext(click.get_current_context()), *args, **values)

        made = make(epilog=epilog, **attributes)(with_context)
        for param in made.params:
            _know_names(param)
        made.params += [_DB, _CONFIG] + [_JSON] * json + [_REVEAL] * reveal
        return made

    return decorate


def with_options(options: Sequence[Handler]) -> Callable[[Handler], Handler]:
    """Add the options that several commands share, in their order."""
    return lambda handler: functools.reduce(lambda made, option: option(made), reversed(options), handler)


def _know_names(param: click.Parameter) -> None:
    """Let a parameter that names a session, an agent or a tool be completed, and an agent be named as people do."""
    if param.name in ("session", "sessions") and param.type is click.STRING:
        param._custom_shell_complete = complete_sessions
    elif param.name in ("agent", "target") and param.metavar in ("NAME", "AGENT"):
        param._custom_shell_complete = complete_agents
        if param.metavar == "NAME":
            param.callback = _resolve_agent
    elif param.name == "tool" and param.type is click.STRING:
        param._custom_shell_complete = complete_tools
    elif param.name == "workspace" and param.metavar == "FOLDER":
        param._custom_shell_complete = complete_workspaces
    elif param.name == "words":
        param._custom_shell_complete = complete_filters


def _resolve_agent(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Return the name of the agent that was meant. Raises UsageError with the closest one."""
    if not value:
        return value
    from everturn.sources.agent_names import find_agent
    from everturn.sources.contract import all_sources

    return find_agent(all_sources().values(), value).name


_MOST_COMPLETED = 50

#: Yields the values that begin so, each with a few words about it.
Find = Callable[["CommandContext", str], Iterable[tuple[str, str | None]]]


def _completes(find: Find) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """Make the completion of a parameter."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        try:
            found = islice(find(CommandContext(ctx), incomplete), _MOST_COMPLETED)
            return [CompletionItem(value, help=about) for value, about in found]
        except (
            EverturnError,
            OSError,
        ):  # no archive, or a wrong key: a shell that completes has no place for a message
            return []

    return complete


@_completes
def complete_agents(cx: CommandContext, incomplete: str) -> Iterator[tuple[str, str | None]]:
    """Yield the agents whose name begins so."""
    yield from ((one.name, one.title) for one in cx.sources.values() if one.name.startswith(incomplete))


@_completes
def complete_sessions(cx: CommandContext, incomplete: str) -> Iterator[tuple[str, str | None]]:
    """Yield the newest sessions whose id begins so, with their titles."""
    from everturn.cli.output import in_one_line
    from everturn.sessions.lookup import list_sessions
    from everturn.store.contract import SessionFilter

    for one in list_sessions(cx.store(), SessionFilter(), 1000).items:
        if one.short.startswith(incomplete):
            yield one.short, in_one_line(cx.out, one.text.title or one.text.first_prompt, 60)


@_completes
def complete_tools(cx: CommandContext, incomplete: str) -> Iterator[tuple[str, str | None]]:
    """Yield the tools that were called most and whose name begins so."""
    from everturn.analytics.counts import read_counts
    from everturn.store.contract import EVERYTHING

    rows = read_counts(cx.store(), EVERYTHING, ("tool_total",)).tools()
    yield from ((row.tool, None) for row in rows if row.tool.startswith(incomplete))


@_completes
def complete_workspaces(cx: CommandContext, incomplete: str) -> Iterator[tuple[str, str | None]]:
    """Yield the folders of the newest sessions whose path or name begins so."""
    from everturn.store.contract import SessionFilter

    rows = cx.store().sessions(SessionFilter(), 1000)[0]
    folders = dict.fromkeys(text.workspace for _, text in rows if text.workspace)
    names = dict.fromkeys(one.replace("\\", "/").rstrip("/").rpartition("/")[2] for one in folders)
    yield from ((one, None) for one in (*(folders if incomplete else ()), *names) if one.startswith(incomplete))


_COMPLETED_FILTERS = {
    "agent": complete_agents, "session": complete_sessions, "tool": complete_tools, "workspace": complete_workspaces,
}  # fmt: skip


def complete_filters(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Return the filters that begin so; after a colon, their values."""
    from click.shell_completion import CompletionItem

    from everturn.retrieval.query import FILTERS

    name, colon, value = incomplete.partition(":")
    if not colon:
        return [CompletionItem(f"{one}:") for one in FILTERS if name and one.startswith(name)]
    complete = _COMPLETED_FILTERS.get(name)
    return [CompletionItem(f"{name}:{one.value}") for one in complete(ctx, param, value)] if complete else []


class CommandGroup(click.Group):
    """The commands of the folder, each imported when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(ordered_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in one_line_helps():
            return None
        _import_msgspec_without_its_extra()
        command = importlib.import_module(f"everturn.cli.commands.{name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        command.name = name
        if not command.short_help:
            command.short_help = one_line_helps()[name]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Raises click.UsageError with the closest name."""
        found = self.get_command(ctx, args[0])
        if found is None and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], [*self.list_commands(ctx), *ALIASES], 1, 0.6)
            hint = f"did you mean `everturn {near[0]}`?" if near else "`everturn --help` lists the commands"
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in sections, with their one-line helps."""
        helps = one_line_helps()
        for title, names in _sections().items():
            with formatter.section(title):
                formatter.write_dl([(name, helps[name]) for name in names])


def _working_folder() -> Path | None:
    """Return the working folder; None if it was deleted."""
    from pathlib import Path

    try:
        return Path.cwd()
    except OSError:
        return None


def ordered_commands() -> list[str]:
    """Return every listed command in the order of `everturn --help`."""
    return [name for names in _sections().values() for name in names]


def _sections() -> dict[str, list[str]]:
    there = set(one_line_helps()) - {HOME}
    sections = {title: [name for name in names if name in there] for title, names in SECTIONS.items()}
    sections["More"] = sorted(there.difference(*SECTIONS.values()))
    return {title: names for title, names in sections.items() if names}


@functools.cache
def one_line_helps() -> dict[str, str]:
    """Return every command with the first line of its file's docstring; the files are read, not imported."""
    found = {}
    for entry in sorted(os.listdir(_FOLDER)):
        stem, ending = os.path.splitext(entry)
        if ending != ".py" or stem.startswith("_"):
            continue
        with open(os.path.join(_FOLDER, entry), encoding="utf-8") as file:
            source = file.read()
        if "\ndef command(" in source or "\ncommand = " in source:
            _, _, rest = source.partition('"""')
            found[stem.replace("_", "-")] = rest.split("\n", 1)[0].partition('"""')[0].strip()
    return found


def _import_msgspec_without_its_extra() -> None:
    """Keep msgspec from importing `typing_extensions`: it needs nothing of it, and that is a quarter of the start-up."""
    extra = "typing_extensions"
    if "msgspec" in sys.modules or extra in sys.modules:
        return
    sys.modules[extra] = None  # type: ignore[assignment]  # the documented way to mark a module as missing
    try:
        importlib.import_module("msgspec")
    finally:
        del sys.modules[extra]


def _remember_flag(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Store a shared option, given before or after the command's name; the later one wins."""
    flags = ctx.find_root().meta.setdefault("everturn.flags", {})
    if value:
        flags[param.name] = value


def _shared_option(name: str, **attributes: Any) -> click.Option:
    return click.Option([name], expose_value=False, callback=_remember_flag, **attributes)


_DB = _shared_option("--db", metavar="URL", help="The archive to use: a path, or postgresql://…")
_CONFIG = _shared_option("--config", metavar="FILE", help="The config file to use.")
_JSON = _shared_option("--json", is_flag=True, help="Print the answer as JSON.")
_REVEAL = _shared_option("--reveal", is_flag=True, help="Show secrets as they are instead of masking them.")


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    params=[_DB, _CONFIG, _JSON],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="everturn", message="%(prog)s %(version)s")
@click.pass_context
def root(ctx: click.Context) -> Any:
    """The memory of AI agents: every session kept byte for byte, searchable, provable.

    Without a command: archive what is new on this machine and say how things stand.

    \b
    Examples:
      everturn                        archive what is new, then a short status
      everturn search parse error     find a message by its words
      everturn show @last             read the newest session
    """
    if ctx.invoked_subcommand is None:
        home = ctx.command.get_command(ctx, HOME) if isinstance(ctx.command, click.Group) else None
        return ctx.invoke(home) if home else click.echo(ctx.get_help())
    return None
