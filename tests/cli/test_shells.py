"""Completion in real shells, by a person who presses Tab: sessions, agents, tools, workspaces, filters and their values."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import everturn
from tests.capture.history import SID
from tests.cli.desk import Desk
from tests.tmux import Pane

pytestmark = [pytest.mark.slow, pytest.mark.needs("tmux")]

#: How each shell starts without anything of the person's, and what makes it know the script.
SHELLS = {
    "bash": (("bash", "--norc", "--noprofile", "-i"), 'eval "$(everturn completion bash)"'),
    "zsh": (("zsh", "-f", "-i"), 'autoload -U compinit; compinit -u -D; eval "$(everturn completion zsh)"'),
    "fish": (("fish", "--no-config", "-i"), "everturn completion fish | source"),
}

#: What is typed before each Tab, and the line that is there then.
TYPED = (
    (("everturn sess",), "everturn sessions"),
    (("everturn sessions --agent cod",), "--agent codex"),
    ((f"everturn show {SID[:3]}",), f"show {SID[:8]}"),
    (("everturn inspect Re",), "inspect Read"),
    (("everturn stats --workspace /home/ann/s",), "--workspace /home/ann/shop"),
    (("everturn search parser ag", "cod"), "parser agent:codex"),
    (("everturn search tool:Re",), "tool:Read"),
)


@pytest.mark.parametrize("shell", [pytest.param(shell, marks=pytest.mark.needs(shell)) for shell in SHELLS])
def test_a_shell_completes_what_is_typed(shell: str, desk: Desk, tmp_path: Path) -> None:
    archive = desk.archive
    desk.take_in(archive.history.line("user", "go"), archive.use("Read", "a", file_path="/x"), archive.back("a", "x"))
    desk.run("stats")  # counts the calls
    program = tmp_path / "bin" / "everturn"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m everturn "$@"\n')
    program.chmod(0o755)
    env = {
        **os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path), "EVERTURN_DB": str(desk.db),
        "PYTHONPATH": str(Path(everturn.__file__).parent.parent), "PS1": "> ",
    }  # fmt: skip
    words, script = SHELLS[shell]
    with Pane(tmp_path, words, env, size=(100, 60)) as pane:
        pane.type(f"{script}; echo is-$((1 + 1))-ready" if shell != "fish" else f"{script}; echo is-(math 1 + 1)-ready")
        pane.press("Enter")
        pane.wait("is-2-ready")
        for pieces, line in TYPED:
            for number, piece in enumerate(pieces):
                pane.type(piece)
                pane.press("Tab")
                if number < len(pieces) - 1:
                    pane.wait("agent:")
            pane.wait(line)
            pane.press("C-u")
