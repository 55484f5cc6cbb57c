"""Decide what failed, and when it no longer does.

A failed call is *the same* as a later one when the commands are equal except for what does not affect the outcome: where
the output went, which part of it was shown, a time limit, blanks. Whether a later run proves that it works is a stricter
question: behind a pipe, `||` or `;` an exit status says nothing about the command before. `attempt_keys` names what was
tried, `proven_keys` the keys that a successful call has shown to work. Calls of other tools are compared by tool and file.

`call_outcome` separates failures from what only looks like one: a test that answered no (`grep`, `test`), a look at
something that does not exist, a call that was rejected, interrupted, or cancelled because of another.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from msgspec import Struct

from everturn.model.conversation import CallStart
from everturn.text.diffs import patched_files
from everturn.text.lazy_pattern import lazy_pattern

#: Outcomes of a call that did not succeed. Only `failed` needs a fix.
OUTCOMES = ("failed", "probe", "rejected", "interrupted", "cancelled")

_MAX_CHARS = 8_000
_NO_SUCH_COMMAND = 127
_ANYWHERE = "*"
_MISPLACED = lazy_pattern(
    r"\bcd: .{0,200}(?:No such file|not a directory)|does not contain main module|did not match any file|not a git repository|"
    r"could not (?:read|find) package\.json|ENOENT.{0,80}package\.json|Missing script|No rule to make target|no Makefile found|"
    r"could not find `?Cargo\.toml|No pyproject\.toml",
    re.IGNORECASE,
)


class ShellAttempt(Struct, frozen=True):
    """A shell command reduced to its folder and the commands that decide its exit status."""

    folder: str
    parts: tuple[str, ...]
    proven: tuple[str, ...]  # of the parts, those that an exit status of 0 proves


def call_outcome(start: CallStart, error_class: str, exit_status: int | None) -> str:
    """Return one of OUTCOMES for a call that did not succeed."""
    if error_class in ("rejected", "interrupted", "cancelled"):
        return error_class
    if start.kind in ("read", "search", "fetch"):
        return "probe"
    if start.kind == "shell" and exit_status != _NO_SUCH_COMMAND and _is_probe(start.command):
        return "probe"
    return "failed"


def attempt_keys(start: CallStart, workspace: str = "", output: str = "") -> tuple[str, ...]:
    """Return the keys of an attempt, the same for every later one: one for each command that decides the exit status.

    A command that failed because it ran in the wrong folder is the same in any other folder.
    """
    if start.kind != "shell":
        return _tool_keys(start)
    command = strip_attempt(start.command, workspace)
    folder = _ANYWHERE if _MISPLACED.search(output[:2_000]) else command.folder
    return tuple(_shell_key(folder, part) for part in command.parts)


def proven_keys(start: CallStart, workspace: str = "") -> tuple[str, ...]:
    """The keys of all that a call has shown to work by going well."""
    if start.kind != "shell":
        return _tool_keys(start)
    command = strip_attempt(start.command, workspace)
    return tuple(_shell_key(command.folder, part) for part in command.proven)


def proves_anywhere(start: CallStart) -> tuple[str, ...]:
    """The keys of what failed in a wrong folder and has been shown to work in some folder."""
    proven = strip_attempt(start.command).proven if start.kind == "shell" else ()
    return tuple(_shell_key(_ANYWHERE, part) for part in proven)


def strip_attempt(command: str, workspace: str = "") -> ShellAttempt:
    """Return a command without what does not affect its outcome."""
    text = command[:_MAX_CHARS].strip()
    commands = split_shell(text)
    chain, folder = _last_chain(commands)
    parts = tuple(part for simple, _ in chain if (part := _bare_command(simple)))
    if "<<" in text or len(command) > _MAX_CHARS or not parts or any(_KEYWORD.match(simple) for simple, _ in commands):
        return _whole_script(text)
    masked = any(operator in ("|", "||") for _, operator in chain)
    return ShellAttempt(_relative_folder(folder, workspace), parts, () if masked else parts)


def _whole_script(text: str) -> ShellAttempt:
    """Return a script that is not split: only an identical one is the same."""
    whole = "git commit" if _COMMIT.search(text.partition("<<")[0]) else " ".join(text.split())
    return ShellAttempt("", (whole,), () if "|" in text.rpartition("\n")[2] else (whole,))


# --- keys ---
def _shell_key(folder: str, part: str) -> str:
    return _short_digest(f"$ {folder}\0{part}")


def _tool_keys(start: CallStart) -> tuple[str, ...]:
    """Return the keys of a call: writing a file is the same attempt with any tool; a patch writes several."""
    given = start.input.get("input") if isinstance(start.input, dict) else start.input
    paths = [path for _, path in patched_files(start.command or (given if isinstance(given, str) else ""))]
    if paths or start.kind in ("edit", "create"):
        return tuple(_short_digest(f"write\0{path}") for path in dict.fromkeys(paths or [start.path]))
    return (_short_digest(f"{start.name}\0{start.path or start.command or repr(start.input)[:_MAX_CHARS]}"),)


def _short_digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


# --- commands ---
_SHELL_TOKEN = lazy_pattern(
    r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|(&&|\|\||\|&?|;|\n|(?<![>&])&(?![>&]))|[^'"\\&|;\n]+|.""", re.DOTALL
)
_FOLDER = lazy_pattern(r"(?:cd|pushd)\s+(\S+|\"[^\"]+\"|'[^']+')\s*$")
_IDLE = lazy_pattern(r"(?:export|set|source|\.|unset|sleep|true|git\s+add|:)(?:\s|$)|\w+=\S*$")
_PREFIX = lazy_pattern(
    r"(?:(?:timeout(?:\s+-\S+)*\s+[\d.]+[smh]?|time|nohup|nice|command|env)\s+|\w+=(?:\"[^\"]*\"|'[^']*'|[^\s$]*)\s+)+"
)
_REDIRECT = lazy_pattern(r"\s*(?:[0-9]?>&[0-9-]|(?:[0-9&])?>>?\s*(?:\"[^\"]*\"|[^\s&|;]+))")
_FILTERS = lazy_pattern(r"(?:tail|head|grep|egrep|rg|less|more|cat|wc|tee|sort|uniq|sed|awk|cut|column|nl|jq)\b")
_SHOWS = lazy_pattern(r"(?:echo|printf|tail|head|cat|date|ls|pwd)\b")
_COMMIT = lazy_pattern(r"\bgit\b(?:\s+-[cC]\s+\S+)*\s+commit\b(?!-)")
WRAPPED_COMMAND = lazy_pattern(
    r"(?:powershell|pwsh|bash|sh|zsh|cmd)(?:\.exe)?(?:\s+-\w+)*\s+(?:-Command|-l?c|/c)\s+(['\"])(.*)\1$",
    re.DOTALL | re.IGNORECASE,
)
_REBASE = lazy_pattern(r"git\s+rebase\b")
_KEYWORD = lazy_pattern(r"(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|select|function|exit)\b|[({}#!]")
_VERBOSITY = lazy_pattern(r"\s(?:-v{1,3}|-q{1,2}|--quiet|--verbose|--no-color)(?=\s|$)")
_LOOKS = lazy_pattern(
    r"(?:ls|cat|head|tail|sed\s+-n|find|grep|egrep|fgrep|rg|ag|which|type|command\s+-v|test|\[|stat|file|pgrep|diff|cmp|wc|"
    r"git\s+(?:diff|log|show|status|rev-parse|branch|ls-files|grep|config|merge-base)|xargs|tree|du|jq|Get-\w+|dir|where|echo|"
    r"printf|pwd|date|nl|gh\s+\w+\s+(?:view|list|status|checks|diff)|gh\s+api)\b|\[\s"
)


def split_shell(text: str) -> list[tuple[str, str]]:
    """Split into (command, operator after it), where the shell would split."""
    commands: list[tuple[str, str]] = []
    at = start = 0
    for found in _SHELL_TOKEN.finditer(text):
        at = found.end()
        if found[1]:
            commands.append((text[start : found.start()].strip(), found[1]))
            start = at
    commands.append((text[start:].strip(), ""))
    return [(simple, operator) for simple, operator in commands if simple]


def _last_chain(commands: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], str]:
    """Return the commands that decide the exit status, without the filters after them; and the folder they ran in."""
    folder = ""
    chain: list[tuple[str, str]] = []
    for number, (simple, operator) in enumerate(commands):
        if (entered := _FOLDER.match(simple)) and not chain:
            folder = entered[1].strip("\"'")
            continue
        before = commands[number - 1][1] if number else ""
        if before in ("|", "|&") and _FILTERS.match(simple) and chain:
            continue  # its operator stays with the command before: that exit status is lost
        if before == "||" and chain:
            continue
        if before in (";", "\n", "&"):
            if _SHOWS.match(simple) and chain:
                chain = [(one, "|") for one, _ in chain]
                continue
            chain = []
        chain.append((simple, operator if operator in ("|", "|&", "||") else "&&"))
    return [(simple, "|" if operator == "|&" else operator) for simple, operator in chain], folder


def _bare_command(simple: str) -> str:
    words = _REDIRECT.sub("", _PREFIX.sub("", simple, count=1) if _PREFIX.match(simple) else simple).strip()
    if _IDLE.match(words):
        return ""
    # A commit is retried with another message, a run with another verbosity.
    if _COMMIT.match(words):
        return "git commit"
    if _REBASE.match(words):
        return "git rebase"  # started once, then continued until it is done
    return " ".join(_VERBOSITY.sub("", words).split())


def _relative_folder(folder: str, workspace: str) -> str:
    home, folder = workspace.replace("\\", "/").rstrip("/"), folder.replace("\\", "/")
    folder = folder.rstrip("/") if folder != "/" else folder
    if folder in (".", home):
        return ""
    return folder[len(home) + 1 :] if home and folder.startswith(f"{home}/") else folder.removeprefix("./")


def _is_probe(command: str) -> bool:
    text = command[:_MAX_CHARS].strip()
    wrapped = WRAPPED_COMMAND.match(text)
    text = wrapped[2].strip() if wrapped else text
    chain, _ = _last_chain(split_shell(text))
    bare = [words for simple, _ in chain if (words := _bare_command(simple))]
    if text.count('"') % 2:  # the shell did not parse it either
        bare = bare[:1]
    return bool(bare) and all(_LOOKS.match(words) for words in bare)
