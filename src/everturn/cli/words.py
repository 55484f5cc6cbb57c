"""A command that takes words, of which some may begin with a minus: `everturn search parser -yaml`.

Only `-h` and what begins with two minuses are options of it. All else is a word, in the order typed; after `--`
everything is one.
"""

from __future__ import annotations

from itertools import islice

import click


class WordsCommand(click.Command):
    """Reads `-yaml` as a word, where click would look for an option `-y`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options first, then the words behind a `--`."""
        if ctx.resilient_parsing:  # the shell asks what may come next
            return super().parse_args(ctx, args)
        with_value = {
            name for one in self.params if isinstance(one, click.Option) and not one.is_flag for name in one.opts
        }
        options: list[str] = []
        words: list[str] = []
        rest = iter(args)
        for arg in rest:
            if arg == "--":
                words += rest
            elif arg == "-h" or arg.startswith("--"):
                options += [arg, *islice(rest, 1 if arg in with_value else 0)]
            else:
                words.append(arg)
        return super().parse_args(ctx, [*options, "--", *words])
