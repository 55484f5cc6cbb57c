"""What a typed line is: words for the model, or a command.

`/word` and `#word` are commands with whatever follows. A bare word is one only when the line is nothing but a command word
(`exit quit compact resume sessions help`, and `resume N`): anything longer is text, so that people can begin a sentence
with any word.
"""

from __future__ import annotations

import re

from msgspec import Struct

#: Every command with its argument and what it does, as /help shows them.
COMMANDS = {
    "help": ("", "this list"),
    "sessions": ("", "earlier sessions of this workspace"),
    "resume": ("[N|ID]", "go on from another session; without a name: the list"),
    "compact": ("", "summarise this session and go on in a new one"),
    "recall": ("WORDS", "look something up in the archive yourself"),
    "pin": ("TEXT", "keep a sentence in the session state for good"),
    "state": ("", "the session state, as the model gets it"),
    "tokens": ("", "tokens used so far: restoration, session, combined"),
    "context": ("", "how full the context window is"),
    "retry": ("", "ask again where an answer is missing or broke off"),
    "save": ("[FILE]", "write the conversation as Markdown; `/save chain FILE`: with the sessions before it"),
    "copy": ("", "copy the last answer to the clipboard of the terminal"),
    "exit": ("", "leave (so do quit and Ctrl-D)"),
}
_OTHER_NAMES = {"quit": "exit", "q": "exit", "?": "help"}
_BARE_COMMAND = re.compile(r"(exit|quit|compact|sessions|help|resume)|resume +(\d{1,6})", re.IGNORECASE)
_MARKED_COMMAND = re.compile(r"[/#](\w+|\?)(?:[ \t]+(\S.*))?", re.DOTALL)


class ChatCommand(Struct, frozen=True):
    """A command and what was written behind it. A name that is not in `COMMANDS` is a mistake to be told."""

    name: str
    rest: str = ""

    @property
    def is_known(self) -> bool:
        """Whether there is such a command."""
        return self.name in COMMANDS


def parse(line: str) -> ChatCommand | None:
    """The command of a line; None for words to the model.

    A marked word counts when it is a command or stands alone: `/etc/hosts is wrong` and `# Notes` are words.
    """
    text = line.strip()
    bare = _BARE_COMMAND.fullmatch(text)
    if bare is not None:
        return ChatCommand("resume", bare[2]) if bare[2] else ChatCommand(_command_name(bare[1]))
    marked = _MARKED_COMMAND.fullmatch(text)
    if marked is None:
        return None
    found = ChatCommand(_command_name(marked[1]), (marked[2] or "").strip())
    return found if found.is_known or (text[0] == "/" and not found.rest) else None


def help_text() -> str:
    """All commands, one on each line."""
    named = {f"/{name} {argument}".strip(): what for name, (argument, what) in COMMANDS.items()}
    width = max(map(len, named))
    lines = [f"  {name:<{width}}  {what}" for name, what in named.items()]
    return "\n".join(
        [
            "Commands (also with #; exit, quit, compact, resume, resume N, sessions and help alone on a line, too):",
            *lines,
            "A \\ at the end of a line goes on in the next one; pasted blocks stay together.",
            "Ctrl-C stops an answer and keeps what came; Ctrl-D leaves.",
        ]
    )


def _command_name(word: str) -> str:
    return _OTHER_NAMES.get(word.lower(), word.lower())
