"""What failed, and when it can be said that it no longer does.

A failed call is *the same* as a later one when the command is the same but for what does not matter to its outcome:
where its output went, which part of it was looked at, a time limit, blanks. Whether a later run proves that it works
is a stricter question: behind a pipe, `||` or `;` an exit status says nothing about what came before. `attempt_keys` names what
was tried, `proven_keys` says which keys a call that went well has shown to work. Calls of other tools go by tool and file.

`call_outcome` tells failures from what only looks like one: a question answered with no (`grep`, `test`), a look at what is not
there, a call that was rejected, interrupted, or cancelled because of another.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from msgspec import Struct

from everturn.model.conversation import CallStart
from everturn.text.diffs import patched_files

#: How a call that did not go well ended. Only `failed` is something to be fixed.
OUTCOMES = ("failed", "probe", "rejected", "interrupted", "cancelled")

_LONGEST = 8_000
_NO_SUCH_COMMAND = 127
_ANYWHERE = "*"
_MISPLACED = re.compile(
    r"\bcd: .{0,200}(?:No such file|not a directory)|does not contain main module|did not match any file|not a git repository|"
    r"could not (?:read|find) package\.json|ENOENT.{0,80}package\.json|Missing script|No rule to make target|no Makefile found|"
    r"could not find `?Cargo\.toml|No pyproject\.toml",
    re.IGNORECASE,
)


class ShellAttempt(Struct, frozen=True):
    """What a shell command comes down to: the folder it names and the commands whose success decides."""

    folder: str
    parts: tuple[str, ...]
    proven: tuple[str, ...]  # of the parts, those that an exit status of 0 proves


def call_outcome(start: CallStart, error_class: str, exit_status: int | None) -> str:
    """Of OUTCOMES, for a call that did not go well."""
    if error_class in ("rejected", "interrupted", "cancelled"):
        return error_class
    if start.kind in ("read", "search", "fetch"):
        return "probe"
    if start.kind == "shell" and exit_status != _NO_SUCH_COMMAND and _is_only_looking(start.command):
        return "probe"
    return "failed"


def attempt_keys(start: CallStart, workspace: str = "", output: str = "") -> tuple[str, ...]:
    """Keys of what was tried, the same for every later attempt: one for each command whose success decides.

    What failed because it ran in the wrong folder is the same as what is tried in any other.
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
    """A command without what does not matter to its outcome."""
    text = command[:_LONGEST].strip()
    pieces = _split_shell(text)
    chain, folder = _last_chain(pieces)
    parts = tuple(part for piece, _ in chain if (part := _bare_command(piece)))
    if "<<" in text or len(command) > _LONGEST or not parts or any(_KEYWORD.match(piece) for piece, _ in pieces):
        return _whole_script(text)
    masked = any(joint in ("|", "||") for _, joint in chain)
    return ShellAttempt(_relative_folder(folder, workspace), parts, () if masked else parts)


def _whole_script(text: str) -> ShellAttempt:
    """A script that is not taken apart: only the very same one is the same."""
    whole = "git commit" if _COMMIT.search(text.partition("<<")[0]) else " ".join(text.split())
    return ShellAttempt("", (whole,), () if "|" in text.rpartition("\n")[2] else (whole,))


# keys -----------------------------------------------------------------------------------------------------------------
def _shell_key(folder: str, part: str) -> str:
    return _short_digest(f"$ {folder}\0{part}")


def _tool_keys(start: CallStart) -> tuple[str, ...]:
    """Writing a file is one thing, with whichever tool; a patch writes several."""
    given = start.input.get("input") if isinstance(start.input, dict) else start.input
    paths = [path for _, path in patched_files(start.command or (given if isinstance(given, str) else ""))]
    if paths or start.kind in ("edit", "create"):
        return tuple(_short_digest(f"write\0{path}") for path in dict.fromkeys(paths or [start.path]))
    return (_short_digest(f"{start.name}\0{start.path or start.command or repr(start.input)[:_LONGEST]}"),)


def _short_digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


# commands -------------------------------------------------------------------------------------------------------------
_PIECE = re.compile(
    r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|(&&|\|\||\|&?|;|\n|(?<![>&])&(?![>&]))|[^'"\\&|;\n]+|.""", re.DOTALL
)
_FOLDER = re.compile(r"(?:cd|pushd)\s+(\S+|\"[^\"]+\"|'[^']+')\s*$")
_IDLE = re.compile(r"(?:export|set|source|\.|unset|sleep|true|git\s+add|:)(?:\s|$)|\w+=\S*$")
_IN_FRONT = re.compile(
    r"(?:(?:timeout(?:\s+-\S+)*\s+[\d.]+[smh]?|time|nohup|nice|command|env)\s+|\w+=(?:\"[^\"]*\"|'[^']*'|[^\s$]*)\s+)+"
)
_REDIRECT = re.compile(r"\s*(?:[0-9]?>&[0-9-]|(?:[0-9&])?>>?\s*(?:\"[^\"]*\"|[^\s&|;]+))")
_FILTERS = re.compile(r"(?:tail|head|grep|egrep|rg|less|more|cat|wc|tee|sort|uniq|sed|awk|cut|column|nl|jq)\b")
_SHOWS = re.compile(r"(?:echo|printf|tail|head|cat|date|ls|pwd)\b")
_COMMIT = re.compile(r"\bgit\b(?:\s+-[cC]\s+\S+)*\s+commit\b(?!-)")
_WRAPPED = re.compile(
    r"(?:powershell|pwsh|bash|sh|zsh|cmd)(?:\.exe)?(?:\s+-\w+)*\s+(?:-Command|-l?c|/c)\s+(['\"])(.*)\1$",
    re.DOTALL | re.IGNORECASE,
)
_REBASE = re.compile(r"git\s+rebase\b")
_KEYWORD = re.compile(r"(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|select|function|exit)\b|[({}#!]")
_LOUDNESS = re.compile(r"\s(?:-v{1,3}|-q{1,2}|--quiet|--verbose|--no-color)(?=\s|$)")
_LOOKS = re.compile(
    r"(?:ls|cat|head|tail|sed\s+-n|find|grep|egrep|fgrep|rg|ag|which|type|command\s+-v|test|\[|stat|file|pgrep|diff|cmp|wc|"
    r"git\s+(?:diff|log|show|status|rev-parse|branch|ls-files|grep|config|merge-base)|xargs|tree|du|jq|Get-\w+|dir|where|echo|"
    r"printf|pwd|date|nl|gh\s+\w+\s+(?:view|list|status|checks|diff)|gh\s+api)\b|\[\s"
)


def _split_shell(text: str) -> list[tuple[str, str]]:
    """(command, sign behind it), split where the shell would split."""
    pieces: list[tuple[str, str]] = []
    at = start = 0
    for found in _PIECE.finditer(text):
        at = found.end()
        if found[1]:
            pieces.append((text[start : found.start()].strip(), found[1]))
            start = at
    pieces.append((text[start:].strip(), ""))
    return [(piece, joint) for piece, joint in pieces if piece]


def _last_chain(pieces: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], str]:
    """The commands whose outcome the exit status tells, without the filters behind them; and the folder they ran in."""
    folder = ""
    chain: list[tuple[str, str]] = []
    for number, (piece, joint) in enumerate(pieces):
        entered = _FOLDER.match(piece)
        if entered and not chain:
            folder = entered[1].strip("\"'")
            continue
        before = pieces[number - 1][1] if number else ""
        if before in ("|", "|&") and _FILTERS.match(piece) and chain:
            continue  # its sign stays with the command in front: what that one said about itself is lost
        if before == "||" and chain:
            continue
        if before in (";", "\n", "&"):
            if _SHOWS.match(piece) and chain:
                chain = [(one, "|") for one, _ in chain]
                continue
            chain = []
        chain.append((piece, joint if joint in ("|", "|&", "||") else "&&"))
    return [(piece, "|" if joint == "|&" else joint) for piece, joint in chain], folder


def _bare_command(piece: str) -> str:
    words = _REDIRECT.sub("", _IN_FRONT.sub("", piece, count=1) if _IN_FRONT.match(piece) else piece).strip()
    if _IDLE.match(words):
        return ""
    # A commit is tried again with other words, a run with more or less to say.
    if _COMMIT.match(words):
        return "git commit"
    if _REBASE.match(words):
        return "git rebase"  # begun once, then continued until it is through
    return " ".join(_LOUDNESS.sub("", words).split())


def _relative_folder(folder: str, workspace: str) -> str:
    home, folder = workspace.replace("\\", "/").rstrip("/"), folder.replace("\\", "/")
    folder = folder.rstrip("/") if folder != "/" else folder
    if folder in (".", home):
        return ""
    return folder[len(home) + 1 :] if home and folder.startswith(f"{home}/") else folder.removeprefix("./")


def _is_only_looking(command: str) -> bool:
    text = command[:_LONGEST].strip()
    wrapped = _WRAPPED.match(text)
    text = wrapped[2].strip() if wrapped else text
    chain, _ = _last_chain(_split_shell(text))
    bare = [words for piece, _ in chain if (words := _bare_command(piece))]
    if text.count('"') % 2:  # the shell did not understand it either
        bare = bare[:1]
    return bool(bare) and all(_LOOKS.match(words) for words in bare)
