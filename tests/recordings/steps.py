"""The parts a scenario is made of: what a person does at the terminal, and what the model replies.

    prompt("Count to five", say(calls=(shell("seq 1 5"),)), say("It counts."))
    resize(80, 24)
    new_session()

Nothing here knows a program. A tool is named by what it does (`shell`, `write`, `edit`, `read`, `todo`); each program
spells it in its own words (`tests.recordings.programs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

WORDS = (
    "cache index reader writer lock clock test build branch merge patch socket thread queue buffer cursor page schema "
    "token parser lexer frame packet header footer margin column window signal handler timer worker shard replica "
    "is was holds waits fails jumps returns blocks drains grows shrinks wraps splits joins moves stays "
    "warm cold stale fresh slow quick narrow broad early late first second empty full"
).split()

WIDE = (
    "日本語の文章",
    "全角文字",
    "漢字とかな",
    "한국어 문장",
    "中文字符宽度",
    "🚀 launch",
    "✅ done",
    "naïve café",
    "Ünïcödé",
)


@dataclass(frozen=True)
class Tool:
    """A tool the model calls, in neutral words. `key` is what identifies the call on a screen."""

    kind: str  # shell | write | edit | read | todo
    key: str  # the command, or the name of the file
    given: tuple[tuple[str, Any], ...] = ()

    @property
    def arguments(self) -> dict[str, Any]:
        """The neutral arguments by name."""
        return dict(self.given)


@dataclass(frozen=True)
class Reply:
    """One response of the model: text, then calls; or an HTTP failure."""

    text: str = ""
    calls: tuple[Tool, ...] = ()
    fails: int = 0  # HTTP status
    lasts: float = 0.0  # seconds to stream the text; 0: as long as the text suggests


@dataclass(frozen=True)
class Step:
    """One action at the terminal. What `value` means depends on `do`."""

    do: str  # prompt | new | resize | scroll | interrupt | agent | toast
    value: str = ""
    replies: tuple[Reply, ...] = ()
    is_pasted: bool = False
    decisions: tuple[str, ...] = ()  # how each permission dialog is answered: once | always | reject
    waits: bool = True  # until the program is idle again; False: only until the answer has begun


# actions --------------------------------------------------------------------------------------------------------------
def prompt(
    text: str, *replies: Reply, pasted: bool = False, decisions: tuple[str, ...] = (), waits: bool = True
) -> Step:
    """Submit a prompt. Without replies the model says one plain sentence."""
    return Step("prompt", text, replies or (Reply(f"Understood: {len(text)} characters were read."),), pasted, decisions, waits)  # fmt: skip


def new_session() -> Step:
    """Begin another session in the same program."""
    return Step("new")


def resize(width: int, height: int) -> Step:
    """Give the terminal another size."""
    return Step("resize", f"{width}x{height}")


def scroll(*directions: str) -> list[Step]:
    """Page through the transcript: `up`, `down`."""
    return [Step("scroll", direction) for direction in directions]


def interrupt() -> Step:
    """Stop the answer that is being streamed."""
    return Step("interrupt")


def switch_agent() -> Step:
    """Go to the next agent or mode of the program."""
    return Step("agent")


def raise_toast() -> Step:
    """Do something that the program confirms with a passing notice."""
    return Step("toast")


# replies --------------------------------------------------------------------------------------------------------------
def say(text: str = "", calls: tuple[Tool, ...] = (), lasts: float = 0.0) -> Reply:
    """A response."""
    return Reply(text, calls, lasts=lasts)


def fail(status: int = 400) -> Reply:
    """A request the provider refuses."""
    return Reply(fails=status)


def shell(command: str) -> Tool:
    """Run a command."""
    return Tool("shell", command, (("command", command),))


def write(path: str, content: str) -> Tool:
    """Write a whole file."""
    return Tool("write", path, (("path", path), ("content", content)))


def edit(path: str, old: str, new: str) -> Tool:
    """Replace a passage of a file."""
    return Tool("edit", path, (("path", path), ("old", old), ("new", new)))


def read(path: str) -> Tool:
    """Read a file."""
    return Tool("read", path, (("path", path),))


def todo(*items: tuple[str, str]) -> Tool:
    """Write the todo list: pairs of text and state (pending, in_progress, completed)."""
    return Tool("todo", items[0][0] if items else "", (("items", items),))


# text -----------------------------------------------------------------------------------------------------------------
def sentence(chance: Random, least: int = 6, most: int = 18, wide: bool = False) -> str:
    """Random words, long enough not to occur twice by chance."""
    words = chance.choices(WORDS, k=chance.randint(least, most))
    if wide:
        words[chance.randrange(len(words))] = chance.choice(WIDE)
        words.append(chance.choice(WIDE))
    return " ".join(words)


def bullets(chance: Random, count: int, wide: bool = False) -> str:
    """An answer of so many list items after one opening sentence."""
    items = (f"- {sentence(chance, wide=wide)}" for _ in range(count))
    return "\n".join([f"{sentence(chance).capitalize()}:", "", *items])


def prose(chance: Random, paragraphs: int) -> str:
    """Paragraphs that wrap on any screen."""
    return "\n\n".join(f"{sentence(chance, 25, 60).capitalize()}." for _ in range(paragraphs))


def code(chance: Random, lines: int) -> str:
    """A fenced block of Python, between two sentences."""
    body = [f"    {chance.choice(WORDS)}_{n} = {chance.choice(WORDS)}({n}, {chance.randint(2, 99)})" for n in range(lines)]  # fmt: skip
    name = "_".join(chance.choices(WORDS, k=2))
    return "\n".join([sentence(chance) + ":", "", "```python", f"def {name}():", *body, "```", "", sentence(chance) + "."])  # fmt: skip


def table(chance: Random, rows: int) -> str:
    """A Markdown table."""
    cells = [f"| {chance.choice(WORDS)} {n} | {chance.choice(WORDS)} {chance.choice(WORDS)} |" for n in range(rows)]
    return "\n".join(["| name | meaning |", "|---|---|", *cells])


def numbered_file(name: str, lines: int) -> str:
    """The content of a file whose lines say where they are from."""
    return "".join(f"{name.partition('.')[0]} entry {n} holds {n * n}\n" for n in range(1, lines + 1))
