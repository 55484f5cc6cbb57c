"""Writes the command reference from the help of every command, for `docs/commands.md`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from everturn.cli import frame

WIDTH = 100


def reference() -> str:
    """Every command in the order of `everturn --help`, with its subcommands."""
    root = click.Context(frame.root, info_name="everturn", **frame.root.context_settings, terminal_width=WIDTH)
    parts = [_section("everturn", frame.root, root)]
    for name in frame.ordered_commands():
        command = frame.root.get_command(root, name)
        assert command is not None
        parts += _sections(command, root)
    return "\n".join(parts)


def _sections(command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(
        command, info_name=command.name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
    )
    yield _section(context.command_path, command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                yield from _sections(child, context)


def _section(path: str, command: click.Command, context: click.Context) -> str:
    return f"## {path}\n\n```\n{command.get_help(context).rstrip()}\n```\n"
