"""The real programs, each with the same face: where it is installed, how its home is set up, which keys do what.

A `Program` without a key for something cannot do it, and scenarios that need it are left out for that program. Versions and
folders are those that `scripts/recordings` installs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.recordings import homes
from tests.recordings.homes import Home
from tests.recordings.spelling import SPELLINGS, Spell

#: The folder the programs are installed in; `.agents` in the checkout unless this names another.
WHERE = "EVERTURN_TEST_AGENTS"

Keys = tuple[str, ...]  # names of keys, or words to type when they begin with a slash


@dataclass(frozen=True)
class Dialog:
    """The question before a tool is run."""

    sign: str  # a regular expression of words that only the dialog has
    answers: Mapping[str, Keys]  # once | always | reject


@dataclass(frozen=True)
class Program:
    """One program in one version."""

    name: str
    version: str
    binary: str  # below the folder of the programs
    settle: Callable[[Home], Mapping[str, str]]  # write its settings; its environment
    spell: Spell
    ready: str  # a regular expression: the screen when it takes a prompt
    busy: str  # a regular expression: the screen while it works
    arguments: Callable[[Home], list[str]] = lambda home: []
    new: Keys = ()
    agent: Keys = ()
    toast: Keys = ()
    scroll: Mapping[str, Keys] = field(default_factory=dict)
    interrupt: Keys = ("Escape",)
    dialog: Dialog | None = None
    spell_asking: Spell | None = None  # where a call must say that it needs a permission
    has_todo: bool = True

    @property
    def can(self) -> frozenset[str]:
        """The abilities a scenario may ask for."""
        abilities = {
            "new": self.new,
            "agent": self.agent,
            "toast": self.toast,
            "scroll": self.scroll,
            "permissions": self.dialog,
            "todo": self.has_todo,
        }
        return frozenset(name for name, given in abilities.items() if given)

    @property
    def path(self) -> Path:
        """Its executable."""
        return installed_in() / self.binary


def installed_in() -> Path:
    """The folder of the programs."""
    named = os.environ.get(WHERE, "")
    return Path(named) if named not in ("", "0", "1") else Path(__file__).parents[2] / ".agents"


_PAGES: Mapping[str, Keys] = {"up": ("PageUp",), "down": ("PageDown",)}

PROGRAMS = {
    program.name: program
    for program in (
        Program(
            "opencode-0.1",
            "0.1.174",
            "opencode-0.1/node_modules/opencode-linux-x64/bin/opencode",
            settle=homes.settle_opencode_0_1,
            spell=SPELLINGS["opencode"],
            ready=r"enter send|┃\s*>",
            busy=r"esc interrupt|working\.",
            new=("/new", "Enter"),
            scroll=_PAGES,
            interrupt=("Escape", "Escape"),
        ),
        Program(
            "opencode-0.5",
            "0.5.29",
            "opencode-0.5/node_modules/opencode-linux-x64/bin/opencode",
            settle=homes.settle_opencode_0,
            spell=SPELLINGS["opencode"],
            ready=r"enter send|┃\s*>",
            busy=r"esc interrupt|working\.",
            new=("/new", "Enter"),
            agent=("Tab",),
            scroll=_PAGES,
            toast=("C-x", "y"),
            interrupt=("Escape", "Escape"),
            dialog=Dialog(r"Permission required", {"once": ("Enter",), "always": ("a",), "reject": ("Escape",)}),
        ),
        Program(
            "opencode-1.18",
            "1.18.33",
            "node_modules/.bin/opencode",
            settle=homes.settle_opencode_1,
            spell=SPELLINGS["opencode"],
            ready=r"Ask anything|ctrl\+p commands",
            busy=r"esc interrupt|esc again",
            new=("/new", "Enter"),
            agent=("Tab",),
            scroll=_PAGES,
            toast=("C-x", "y"),
            interrupt=("Escape", "Escape"),
            dialog=Dialog(
                r"Permission required",
                {"once": ("Enter",), "always": ("Right", "Enter", "Enter"), "reject": ("Escape",)},
            ),
        ),
        Program(
            "claude-code-2.1",
            "2.1.197",
            "node_modules/.bin/claude",
            settle=homes.settle_claude,
            spell=SPELLINGS["claude"],
            ready=r"\? for shortcuts|❯",
            busy=r"esc to interrupt",
            new=("/clear", "Enter"),
            agent=("BTab",),
            toast=("C-c",),
            dialog=Dialog(r"Do you want to", {"once": ("1",), "always": ("2",), "reject": ("Escape",)}),
        ),
        Program(
            "codex-0.166",
            "0.166.0",
            "node_modules/.bin/codex",
            settle=homes.settle_codex,
            spell=SPELLINGS["codex"],
            ready=r"›",
            busy=r"esc to interrupt",
            new=("/new", "Enter"),
            agent=("BTab",),
            dialog=Dialog(r"Would you like to", {"once": ("y",), "always": ("p",), "reject": ("Escape",)}),
            spell_asking=SPELLINGS["codex-asking"],
            has_todo=False,  # it offers its plan to models it knows only
        ),
        Program(
            "gemini-0.61",
            "0.61.0",
            "node_modules/.bin/gemini",
            settle=homes.settle_gemini,
            spell=SPELLINGS["gemini"],
            ready=r"Type your message",
            busy=r"esc to cancel",
            arguments=lambda home: [] if home.asks else ["--approval-mode", "yolo"],
            new=("/clear", "Enter"),
            toast=("C-c",),
            dialog=Dialog(r"Allow|Apply this change", {"once": ("1",), "always": ("2",), "reject": ("Escape",)}),
        ),
    )
}
