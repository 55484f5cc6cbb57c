"""Every command that our texts tell a person or an agent to run is a valid command line.

The texts are the string literals of the package (messages, prompts, slash commands, skills, tool descriptions, examples),
its templates and plugins, and the documentation. A text names a command in backticks, in `<code>`, or on a line of its own.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

import everturn
from everturn.cli.frame import root
from tests.capture.history import SID
from tests.cli.desk import Desk

PACKAGE = Path(everturn.__file__).parent
PROJECT = Path(__file__).parents[2]

#: Parts of a command after which a shell, not everturn, reads on; and remarks beside an example.
_END = re.compile(r"\s+[<>|#&]\s?.*|\s{2,}.*|\).*|\s?…$")
_QUOTED = re.compile(r"`everturn( [^`]+)?`|<code>everturn( [^<]+)?</code>")
_ON_A_LINE = re.compile(r"(?:^|\n|\s{2,}|: )(?:\$ )?everturn( [a-z-][^\n`]*)")
_PLACEHOLDER = re.compile(r"\{\{.*?\}\}|\{[^{}]*\}|<[a-z]+>|\b[A-Z][A-Z_|]*\b…?|…")
#: Names that begin like a command.
_NAMES = ("contributors", "journal")
#: What stands for a placeholder. Every other one is a word.
_EXAMPLES = {"FOLDER": ".", "FILE": "pyproject.toml", "PATH": ".", "AGENT": "codex", "N": "3", "TURN": "3"}


def commands_in(text: str, on_lines: bool) -> Iterator[str]:
    """Yield the words after `everturn` of every command in a text."""
    for found in _QUOTED.finditer(text):
        yield (found[1] or found[2] or "").strip()
    for found in _ON_A_LINE.finditer(text) if on_lines else ():
        yield found[1].strip()


def literals(path: Path) -> Iterator[str]:
    """Yield the string literals of a module; what an f-string fills in is a placeholder."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def texts() -> Iterator[tuple[str, str, bool]]:
    """Yield where a text is, the text, and whether a line of it may be a command without a mark."""
    for path in sorted(PACKAGE.rglob("*")):
        where = str(path.relative_to(PACKAGE))
        if path.suffix == ".py":
            yield from ((where, text, _is_example(text)) for text in literals(path))
        elif path.suffix in (".html", ".js", ".md") and "sample" not in path.parts:
            yield where, path.read_text("utf-8"), False
    for path in (PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").glob("*.md"))):
        prose = path.read_text("utf-8")
        yield path.name, re.sub(r"^```.*?^```", "", prose, flags=re.M | re.S), False
        for block in re.findall(r"^```(?:console|sh|bash)?\n(.*?)^```", prose, re.M | re.S):
            yield path.name, "\n".join(line for line in block.splitlines() if re.match(r"(\$ )?everturn ", line)), True


def _is_example(text: str) -> bool:
    """Whether a literal is a command itself, with at most a word before it: `more    everturn show …`."""
    return bool(re.match(r"\s*(?:\w+\s{2,})?everturn [a-z]", text)) or "\n      everturn " in text


@cache  # not at import: every worker imports this file, and one of them needs it
def taught_commands() -> list[tuple[str, str]]:
    """Return every command that a text names, with the place of the text."""
    return sorted(
        {
            (where, words)
            for where, text, on_lines in texts()
            for words in commands_in(text, on_lines)
            if words not in ("", "{}", *_NAMES)
        }
    )


def fill_in(command: str) -> list[str]:
    """Return the words of a command, with something in place of every placeholder."""
    command = _PLACEHOLDER.sub(lambda found: _EXAMPLES.get(found[0], "3"), _END.sub("", command))
    return shlex.split(command)


def parse(words: list[str]) -> None:
    """Parse a command line as `everturn` does, without running it. Raises click.UsageError."""
    context = root.make_context("everturn", list(words))
    group: click.Command = root
    while isinstance(group, click.Group) and (rest := [*context._protected_args, *context.args]):
        name, found, rest = group.resolve_command(context, rest)
        assert found is not None
        group, context = found, found.make_context(name, rest, parent=context)


def is_name_only(command: str, error: click.UsageError) -> bool:
    """Whether a text only names a command or an option of it, such as `everturn resume --in`, without its arguments."""
    is_short = isinstance(error, click.MissingParameter | click.exceptions.NoArgsIsHelpError)
    is_short = is_short or "requires an argument" in error.format_message()
    return is_short and not _PLACEHOLDER.search(command.removesuffix(" …"))


def test_commands_are_found_in_every_kind_of_text() -> None:
    found = {where.partition("/")[0] for where, _ in taught_commands()}
    assert {"resume", "restore", "cli", "sources", "web", "errors.py", "README.md", "search.md"} <= found
    assert len(taught_commands()) > 200


@pytest.mark.parametrize(
    "text", ["`everturn recall --session {session} WORDS`", "`everturn shw @last`", "`everturn show --turns 3`"]
)
def test_an_invalid_command_is_noticed(text: str) -> None:
    (words,) = commands_in(text, False)
    with pytest.raises(click.UsageError) as caught:
        parse(fill_in(words))
    assert not is_name_only(words, caught.value)


def test_every_command_that_a_text_names_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for where, command in taught_commands():
        try:
            parse(fill_in(command))
        except click.exceptions.Exit:
            pass  # --help
        except click.UsageError as error:
            if not is_name_only(command, error) and "does not exist" not in error.format_message():
                wrong.append(f"{where}: everturn {command}: {error.format_message()}")
    assert not wrong, "\n".join(wrong)


def test_the_commands_of_a_handoff_and_of_a_restored_document_run(desk: Desk) -> None:
    desk.take_in(*(desk.archive.history.turn(f"paint the fence {n}", f"answer {n}") for n in range(4)))
    _, prompt, _ = desk.run("handoff", SID[:6], "--in", "codex", "--print")
    _, document, _ = desk.run("restore", SID[:6])
    taught = [one.replace("WORDS", "fence") for text in (prompt, document) for one in commands_in(text, False)]
    assert any(one.startswith("recall ") for one in taught) and any(one.startswith("show ") for one in taught)
    for command in taught:
        code, out, err = desk.run(*fill_in(command))
        assert code == 0 and "fence" in out, (command, out, err)
