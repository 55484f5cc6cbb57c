"""List every string that a person may read: messages, helps, templates, scripts of the pages. For review, one per line.

    python scripts/words.py [FOLDER]

`RETIRED` are words and phrases that were replaced; `tests/test_words.py` keeps them out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "everturn"

#: Packages whose strings reach a person: the surfaces, and what they raise or report.
SPOKEN = (
    "cli",
    "web",
    "tui",
    "mcp",
    "maintenance",
    "resume",
    "restore",
    "retrieval",
    "llm",
    "install",
    "capture",
    "export",
)
_MARKUP = re.compile(r"\{[%#].*?[%#]\}|<[^>]*>", re.DOTALL)
_WORDS = re.compile(r"[A-Za-z]{2,}\s+[A-Za-z]{2,}")
_PATTERN = re.compile(r"\\b|\(\?[:P]|\\s[+*]|\\w")  # regular expressions are not read by people
_QUOTED = re.compile(r"\"([^\"\n]*)\"|`([^`\n]*)`")

#: What was said once, as patterns, and what is said now.
RETIRED = {
    r"known are\b": "use one of / known keys are",
    r"by the agent itself": "Claude Code may delete",
    r"in the middle, .* for 95 of 100": "median, p95",
    r"[Ww]here it stands": "Found in",
    r"no name of a tool": "an unknown tool name",
    r"hangs? together": "related",
    r"take away a filter|[Ll]eave out a filter": "remove a filter",
    r"session fits\b": "session matches",
    r"means nothing": "is not valid",
    r"are the most\b": "the limit",
    r"How far it is": "Progress",
    r"deserves a look": "needs attention",
    r"this should not happen": "internal error",
    r"nothing like it": "no match",
    r"[Tt]aken up again": "resumed",
    r"half within": "median",
    r"\b[Gg]o(es)? on\b(?! the)": "continue",
    r"\btak(e|es|en|ing) (it |them )?away\b": "remove",
    r"\b[Mm]end(s|ed)?\b": "repair, fix",
    r"\bfor good\b": "permanently",
    r"\bany more\b": "no longer",
    r"\banew\b": "again",
    r"put in by itself": "context that the client added",
    r"unique beginning": "unique prefix",
    r"\bolder edition": "older version",
}


class Saying(NamedTuple):
    """A string and where it is."""

    path: Path
    line: int
    text: str


def sayings(package: Path = PACKAGE) -> Iterator[Saying]:
    """Yield the strings of at least two words that a person may read."""
    files = [package / "errors.py", *(one for name in SPOKEN for one in sorted((package / name).rglob("*.py")))]
    for path in files:
        yield from _python_strings(path)
    for path in sorted((package / "web").rglob("*.html")):
        for number, line in enumerate(_MARKUP.sub(" ", path.read_text("utf-8")).splitlines(), 1):
            if _WORDS.search(line):
                yield Saying(path, number, " ".join(line.split()))
    for path in sorted((package / "web").rglob("*.js")):
        yield from _script_strings(path)


def _script_strings(path: Path) -> Iterator[Saying]:
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        for found in _QUOTED.finditer(line) if not line.lstrip().startswith("//") else ():
            text = found[1] or found[2] or ""
            if _WORDS.search(text):
                yield Saying(path, number, text)


def _python_strings(path: Path) -> Iterator[Saying]:
    tree = ast.parse(path.read_text("utf-8"))
    silent = _docstrings(tree) if "commands" not in path.parts else set[int]()  # those of commands are their help
    formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    silent |= {id(part) for node in formatted for part in ast.walk(node) if part is not node}
    for node in ast.walk(tree):
        text = _text_of(node) if id(node) not in silent else ""
        if _WORDS.search(text) and not _PATTERN.search(text):
            yield Saying(path, getattr(node, "lineno", 0), " ".join(text.split()))


def _text_of(node: ast.AST) -> str:
    """Return the text of a literal; `…` stands for what is put into it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text_of(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _docstrings(tree: ast.AST) -> set[int]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, kinds)]
    first = [body[0] for body in bodies if body]
    return {id(one.value) for one in first if isinstance(one, ast.Expr)}


def retired(said: Saying) -> list[str]:
    """Return what should be said instead of the retired words in a string."""
    return [instead for pattern, instead in RETIRED.items() if re.search(pattern, said.text)]


if __name__ == "__main__":
    for one in sayings(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE):
        print(f"{one.path.relative_to(ROOT)}:{one.line}: {one.text}")
