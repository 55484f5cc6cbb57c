"""Print the completion script of a shell."""

from __future__ import annotations

import click

from everturn.cli import frame

#: The command that installs the script for each shell.
INSTALL = {
    "bash": "everturn completion bash > ~/.local/share/bash-completion/completions/everturn",
    "zsh": 'everturn completion zsh > "${fpath[1]}/_everturn"',
    "fish": "everturn completion fish > ~/.config/fish/completions/everturn.fish",
}


@frame.command("everturn completion bash", 'eval "$(everturn completion zsh)"   for this shell only', json=False)
@click.argument("shell", type=click.Choice(list(INSTALL)))
def command(cx: frame.CommandContext, shell: str) -> None:
    """Print a script that lets SHELL complete commands and options of everturn.

    Its last lines say how to install it permanently.
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    assert maker is not None
    script = maker(frame.root, {}, "everturn", "_EVERTURN_COMPLETE").source().rstrip()
    # A comment, and at the end: a line on stderr would show up in every new shell that runs `eval`, and the first
    # line of a zsh script has a meaning.
    cx.out.emit(f"{script}\n\n# To install it, make the folder if it is missing and run:\n#   {INSTALL[shell]}")
