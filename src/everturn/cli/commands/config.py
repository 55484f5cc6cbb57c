"""Show and change the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from everturn.cli import frame
from everturn.secrets.redaction import redact_text
from everturn.secrets.rules import compile_own_patterns


@frame.command(
    "everturn config                                   every setting, and where it comes from",
    "everturn config set capture.mode redacted         mask secrets before anything is stored",
    "everturn config set capture.exclude '~/private'   keep nothing of that folder",
    "everturn config get db",
    make=click.group,
    invoke_without_command=True,
)
@click.pass_context
def command(ctx: click.Context, cx: frame.CommandContext) -> None:
    """Show the effective settings and where each comes from: flag, environment, config file or default.

    \b
    Keys:
      db                the archive: a path or postgresql://…      (EVERTURN_DB)
      machine, owner    recorded with every session
      capture.mode      full | redacted | structure | off
      capture.exclude   globs of workspaces to leave alone, separated by commas
      capture.unknown   mode for files whose workspace is unknown; else the strictest one of your rules
      capture.processes how many processes a large sync uses; else one per core, 1: no other process is started
      secrets.patterns  what to mask besides the built-in kinds: a regular expression (RE2 syntax), or a list of them
      retention.keep    how long sessions are kept, such as 365d, 12w or 2y; else forever
      team.push         never | masked | full: whether every sync pushes to the team's server you are logged in to
      team.limit        how much a push sends in a second, such as 500kB; else as much as it can
      encryption.key    where the key of an encrypted archive comes from (`everturn encrypt --help`; EVERTURN_KEY)
      sources.NAME      more folders to search for the files of one source
      models.default    the model that is asked where a command asks one
    Rules for single workspaces are [[workspace]] tables with path, mode and keep in the config file,
    [models.NAME] and [meaning] tables say which models there are (docs/models.md, docs/search.md).
    """
    if ctx.invoked_subcommand is not None:
        return
    items = [{"key": key, "value": value, "from": origin} for key, value, origin in _effective_settings(cx)]
    rows = [(one["key"], _value_text(one["value"]), one["from"]) for one in items]
    cx.out.emit_rows("config", items, ("key", "value", "from"), rows)


@frame.command("everturn config get capture.mode", make=command.command)
@click.argument("key")
def get(cx: frame.CommandContext, key: str) -> None:
    """Print one setting."""
    values = {name: value for name, value, _ in _effective_settings(cx)}
    if key not in values:
        from everturn.config_file import unknown_key

        raise unknown_key(key, tuple(values))
    if cx.json:
        cx.out.emit_json("config", [{"key": key, "value": values[key]}])
    else:
        cx.out.emit(cx.out.text(_value_text(values[key])))


@frame.command(
    "everturn config set capture.exclude '~/private,~/clients/*'", make=command.command, name="set", json=False
)
@click.argument("key")
@click.argument("value")
def set_(cx: frame.CommandContext, key: str, value: str) -> None:
    """Write one setting into the config file; everything else in it stays as it is."""
    from everturn.config_file import change_config, pattern_list
    from everturn.maintenance.retention import parse_span
    from everturn.store.cipher import parse_key_source

    if key == "secrets.patterns":
        compile_own_patterns(tuple(pattern_list(value)))
    if key == "retention.keep":
        parse_span(value)
    if key.startswith("encryption.") and value:
        parse_key_source(value)
    change_config(cx.settings.config, key, value)
    cx.out.say(f"{key} is set in {cx.out.text(str(cx.settings.config))}")


@frame.command('$EDITOR "$(everturn config path)"', make=command.command, json=False)
def path(cx: frame.CommandContext) -> None:
    """Print where the config file is, or would be."""
    cx.out.emit(cx.out.text(str(cx.settings.config)))


def _effective_settings(cx: frame.CommandContext) -> list[tuple[str, Any, str]]:
    settings = cx.settings
    values: dict[str, Any] = {
        "db": settings.db,
        "config": str(settings.config),
        "machine": settings.machine,
        "owner": settings.owner,
        "capture.mode": settings.capture.mode,
        "capture.exclude": list(settings.capture.exclude),
        "capture.unknown": settings.capture.unknown,
        "capture.processes": settings.capture.processes,
        "secrets.patterns": list(settings.secret_patterns),
        "retention.keep": settings.keep,
        "team.push": settings.push,
        "team.limit": settings.push_limit,
        "encryption.key": settings.encryption.key,
        "workspace": [
            f"{rule.path} = {', '.join(filter(None, (rule.mode, rule.keep)))}" for rule in settings.workspaces
        ],
    }
    rows = [(key, value, settings.origins[key]) for key, value in values.items()]
    rows.append(("prices", str(settings.prices), "config" if settings.prices.is_file() else "default"))
    rows += [(f"sources.{name}", list(folders), "config") for name, folders in settings.sources.items()]
    tables = {"models": settings.models, "meaning": settings.meaning}
    return rows + [
        (key, value, "config") for name, table in tables.items() for key, value in _flatten_table(name, table)
    ]


def _flatten_table(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a table of the config file as rows, with secrets masked."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten_table(f"{name}.{key}", inner)
    else:
        yield name, redact_text(value) if isinstance(value, str) else value


def _value_text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
