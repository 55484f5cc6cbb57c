"""Print the completion script of a shell.

The scripts are those of click with two changes. bash breaks words at colons, so its script passes the whole line and removes
what bash has before the last colon from the completions. After a filter (`agent:`) no space is added.
"""

from __future__ import annotations

import os

import click
from click import shell_completion

from everturn.cli import frame

#: The command that installs the script for each shell.
INSTALL = {
    "bash": "everturn completion bash > ~/.local/share/bash-completion/completions/everturn",
    "zsh": 'everturn completion zsh > "${fpath[1]}/_everturn"',
    "fish": "everturn completion fish > ~/.config/fish/completions/everturn.fish",
}
_BASH = """\
%(complete_func)s() {
    local line="${COMP_LINE:0:COMP_POINT}" known="" response kind value
    local word="${line##*[[:space:]]}"
    [[ $COMP_WORDBREAKS == *:* ]] && known="${word%%%%"${word##*:}"}"
    response=$(env COMP_LINE="$line" %(complete_var)s=bash_complete "$1")
    COMPREPLY=()
    while IFS=',' read -r kind value; do
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                [[ $value == *: ]] && compopt -o nospace
                printf -v value %%q "${value#"$known"}"
                COMPREPLY+=("$value")
                ;;
        esac
    done <<< "$response"
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_ZSH_ADD = "compadd -U -V unsorted -a completions"
_ZSH_ADD_FILTERS = (
    "compadd -U -V unsorted -S '' -- ${(M)completions:#*:}\n        compadd -U -V unsorted -- ${completions:#*:}"
)


class BashScript(shell_completion.BashComplete):
    """Completion for bash, with words that contain colons."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the one that it is in. A script of an earlier version passes words."""
        line = os.environ.get("COMP_LINE")
        if line is None:
            return super().get_completion_args()
        words = shell_completion.split_arg_string(line)
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        return words[1:], incomplete


class ZshScript(shell_completion.ZshComplete):
    """Completion for zsh, without a space after a filter."""

    source_template = shell_completion.ZshComplete.source_template.replace(_ZSH_ADD, _ZSH_ADD_FILTERS)


shell_completion.add_completion_class(BashScript)
shell_completion.add_completion_class(ZshScript)


@frame.command("everturn completion bash", 'eval "$(everturn completion zsh)"   for this shell only', json=False)
@click.argument("shell", type=click.Choice(list(INSTALL)))
def command(cx: frame.CommandContext, shell: str) -> None:
    """Print a script that lets SHELL complete commands, options, sessions, agents, tools, workspaces and filters.

    Its last lines say how to install it permanently.
    """
    maker = shell_completion.get_completion_class(shell)
    assert maker is not None
    script = maker(frame.root, {}, "everturn", "_EVERTURN_COMPLETE").source().rstrip()
    # A comment, and at the end: a line on stderr would show up in every new shell that runs `eval`, and the first
    # line of a zsh script has a meaning.
    cx.out.emit(f"{script}\n\n# To install it, make the folder if it is missing and run:\n#   {INSTALL[shell]}")
