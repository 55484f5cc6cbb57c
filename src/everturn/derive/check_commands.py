"""Which checks a shell command runs: tests, builds, lints, type checks, commits, pushes, CI runs, programs.

`find_checks` reduces a command line to its `CheckRun`s. What does not affect the outcome is left out: the folder it
changed to, environment variables, wrappers (`npx`, `uv run`, `timeout 60`), pipes, redirections and flags. `covers` decides
whether a later success says that an earlier failure is over: the same check with the same targets, or with more.

An exit status is `hidden` from a run behind `| tail`, `|| true`, `;` or `&`: then only the output says how it ended. Pure;
one pass over the command, which is read up to a limit.
"""

from __future__ import annotations

import re
from posixpath import basename, join, normpath

from msgspec import Struct

from everturn.derive.check_programs import (
    FLAGS_WITH_VALUE,
    HARMLESS,
    SELECTORS,
    SEPARATE_SUITES,
    CheckProgram,
    find_program,
)
from everturn.derive.failures import WRAPPED_COMMAND, split_shell
from everturn.text.printable import one_line

_MAX_CHARS = 6_000
_MOST_RUNS = 12
_MOST_TARGETS = 30
_TARGET = 200
#: Kinds of one program each: a success of another program says nothing about them.
_OWN_KINDS = frozenset(("check", "commit", "push", "ci", "program"))
#: Families that scripts of a project are not about, as far as their names tell.
_OWN_FAMILIES = frozenset(("infra", "docker", "vcs"))
#: Families whose tests compile everything first.
_COMPILED = frozenset(("go", "rust", "jvm", "net", "swift"))


class CheckRun(Struct, frozen=True, omit_defaults=True):
    """One check that a command ran. Without targets it is about everything in its folder."""

    kind: str  # test | build | lint | types | check | commit | push | ci | program
    family: str  # language or ecosystem, "any" if the command does not tell
    tool: str = ""  # the program and its subcommand; "" for a script of the project, which may run any
    scope: tuple[str, ...] = ()  # targets and selections
    folder: str = ""
    hidden: bool = False  # the exit status of the whole command says nothing about it
    alone: bool = True  # nothing else in the command can have caused an exit status other than 0


def find_checks(command: str, workspace: str = "", folder: str = "") -> tuple[CheckRun, ...]:
    """Return the checks of a command, in order. `folder` is where it ran, if the call says so."""
    text = _HERE_DOCUMENT.sub("", _unwrap_shell(command[:_MAX_CHARS]))
    commands = split_shell(text)
    reader = _CommandReader(workspace, _local_folder(folder, workspace))
    for number, (simple, _) in enumerate(commands):
        reader.add(simple, _is_hidden(commands, number, text))
    alone = reader.others == 0
    return tuple(CheckRun(*run, alone=alone) for run in reader.runs[:_MOST_RUNS])


def covers(later: CheckRun, earlier: CheckRun) -> bool:
    """Whether a success of `later` shows that `earlier` no longer fails."""
    return is_related(later, earlier) and _covers_folder(later.folder, earlier.folder) and _covers_scope(later, earlier)


def is_related(one: CheckRun, other: CheckRun) -> bool:
    """Whether two runs are the same check, whatever their targets."""
    families = {one.family, other.family}
    if len(families) > 1 and ("any" not in families or families & _OWN_FAMILIES):
        return False
    if one.kind != other.kind:
        return (one.kind, other.kind) == ("test", "build") and one.family == other.family and one.family in _COMPILED
    if one.tool == other.tool:
        return True
    return one.kind not in _OWN_KINDS and "" in (one.tool, other.tool)


def holds_target(wide: str, target: str) -> bool:
    """Whether a target lies within another: a file in a folder, a test in a file."""
    if wide in ("", "."):
        return not target.startswith("suite ")
    if wide == target or target.startswith((f"{wide}/", f"{wide}::", f"{wide}:")):
        return True
    if wide.startswith(("-", "suite ")) or target.startswith(("-", "suite ")):
        return False
    return f"/{wide}/" in f"/{target.partition('::')[0]}/" or wide.endswith(f"/{target}")


def _covers_scope(later: CheckRun, earlier: CheckRun) -> bool:
    """Whether one scope includes another: no selection that the other lacks, and all of its targets."""
    selected = {one for one in later.scope if one.startswith("-")}
    if not selected <= set(earlier.scope):
        return False
    wide = [one for one in later.scope if not one.startswith("-")]
    targets = [one for one in earlier.scope if not one.startswith("-")]
    if not targets:
        return not wide
    return all(any(holds_target(one, target) for one in wide or ("",)) for target in targets)


def _covers_folder(later: str, earlier: str) -> bool:
    if not later or not earlier or later == earlier or earlier.startswith(f"{later}/"):
        return True
    return later.endswith(f"/{earlier}") or earlier.endswith(f"/{later}")


# --- the command line ---
_HERE_DOCUMENT = re.compile(r"(?<!<)<<-?\s*(['\"]?)(\w+)\1[^\n]*\n.*?(?:^\s*\2\s*$|\Z)", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"""(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\])+""", re.DOTALL)
_REDIRECTION = re.compile(r"\s*(?:[0-9&]?>>?\s*&?\s*(?:\"[^\"]*\"|'[^']*'|[^\s&|;()]+)|[0-9]?>&[0-9-]|<\s*[^\s<>(]+)")
_OPENING = re.compile(r"(?:(?:if|then|else|elif|while|until|do|!|\{)\s+|[({]\s*)+")
_BLOCK = re.compile(r"\s*(?:if|then|elif|else|while|until|for|do|done|fi|case)\b")
_ASSIGNMENT = re.compile(r"\w+=", re.ASCII)
_GLOB = re.compile(r"[*?{]")
_NUMBER = re.compile(r"[\d.]+[smhdx%]?|true|false", re.ASCII)
_LEAVES = re.compile(r"[({\s]*(?:exit|return|false)\b")
_STOPS = re.compile(r"(?:^|[;\n&]\s*)set\s+-[a-z]*e")
_PIPEFAIL = re.compile(r"set\s+-[a-z]*o\s+pipefail|set\s+-[a-z]*eo\b|pipefail")


def _unwrap_shell(text: str) -> str:
    text = text.strip()
    wrapped = WRAPPED_COMMAND.match(text)
    return wrapped[2].replace("\\$", "$").strip() if wrapped else text


def _is_hidden(commands: list[tuple[str, str]], number: int, text: str) -> bool:
    """Whether the exit status of the whole says nothing about this command."""
    if _BLOCK.match(commands[number][0]):
        return True
    operators = [operator for _, operator in commands[number:]]
    if number and commands[number - 1][1] == "||":
        return True
    stops = bool(_STOPS.search(text))
    for offset, operator in enumerate(operators):
        following = commands[number + offset + 1][0] if number + offset + 1 < len(commands) else ""
        if not following:
            return operator == "&"
        if operator in ("|", "|&") and not _PIPEFAIL.search(text):
            # Only this pipeline loses the status: a pipe after a later && concerns a later command.
            if offset == 0 or all(one in ("|", "|&") for one in operators[:offset]):
                return True
        elif (
            (operator == "||" and not _LEAVES.match(following))
            or operator == "&"
            or (operator in (";", "\n") and not stops)
        ):
            return True
    return False


class _CommandReader:
    """Collects the runs of the simple commands of one command line, in order."""

    def __init__(self, workspace: str, folder: str) -> None:
        self.workspace, self.folder = workspace, folder
        self.runs: list[tuple[str, str, str, tuple[str, ...], str, bool]] = []
        self.elsewhere = False
        self.others = 0  # commands that may have failed and are no checks

    def add(self, simple: str, hidden: bool) -> None:
        words = _split_words(simple)
        if not words:
            return
        if words[0] in ("cd", "pushd", "Set-Location"):
            self._enter(words)
            return
        if words[:2] == ["git", "stash"]:
            # What runs while changes are put away says nothing about them.
            self.elsewhere = not words[2:] or words[2] in ("push", "save") or words[2].startswith("-")
            return
        program = find_program(words)
        if self.elsewhere:
            return
        if program is None:
            self.others += not hidden and words[0] not in HARMLESS and words[:2] != ["git", "add"]
            return
        folder = _join_folder(self.folder, program.folder, self.workspace) if program.folder else self.folder
        scope = _find_scope(program)
        self.runs.append((program.kind, program.family, program.tool, scope, folder, hidden))

    def _enter(self, words: list[str]) -> None:
        target = next((word for word in words[1:] if not word.startswith("-") or word == "-"), "")
        if target and target != "-":
            self.folder = _join_folder(self.folder, target, self.workspace)


def _split_words(simple: str) -> list[str]:
    simple = _OPENING.sub("", simple, count=1) if _OPENING.match(simple) else simple
    words = [_unquote(one) for one in _WORD.findall(_REDIRECTION.sub(" ", simple))]
    if words and words[-1].endswith(")") and "(" not in words[-1]:
        words[-1] = words[-1].rstrip(")")
    while words and _ASSIGNMENT.match(words[0]):
        words.pop(0)
    return [word for word in words if word]


def _unquote(word: str) -> str:
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    quoted = word[0] in "'\"" and word[0] == word[-1] and len(word) > 1
    return word[1:-1] if quoted else word.replace("'", "").replace('"', "")


def _find_scope(program: CheckProgram) -> tuple[str, ...]:
    """Return the targets and the selections among the arguments of a program."""
    scope = [f"suite {program.suite}"] if program.suite in SEPARATE_SUITES else [program.suite] if program.suite else []
    if program.kind in ("commit", "push", "ci"):
        return ()
    selectors = SELECTORS.get(program.family, SELECTORS["any"])
    words = iter(program.arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name in selectors:
            scope.append(f"{selectors[name]} {value if equals else next(words, '')}".strip())
        elif name in FLAGS_WITH_VALUE:
            if not equals:
                next(words, "")
        elif not word.startswith("-") and not _NUMBER.fullmatch(word) and (target := _clean_target(word)):
            scope.append(target)
    return tuple(one_line(one, _TARGET) for one in dict.fromkeys(scope[:_MOST_TARGETS]))


def _clean_target(word: str) -> str:
    word = word.replace("\\", "/").removeprefix("./").removesuffix("...")
    word = (_GLOB.split(word, maxsplit=1)[0].rpartition("/")[0] if _GLOB.search(word) else word).rstrip("/")
    return "" if word in (".", "..", "$@", "all") else word


# --- folders ---
def _join_folder(folder: str, target: str, workspace: str) -> str:
    target = target.replace("\\", "/")
    whole = target if target.startswith(("/", "~", "$")) or target[1:2] == ":" else normpath(join(folder, target))
    return _local_folder(whole, workspace)


def _local_folder(folder: str, workspace: str) -> str:
    folder, home = folder.replace("\\", "/").rstrip("/"), workspace.replace("\\", "/").rstrip("/")
    if folder in ("", ".", home):
        return ""
    return folder[len(home) + 1 :] if home and folder.startswith(f"{home}/") else folder


def command_words(command: str) -> tuple[str, ...]:
    """Return the commands of a line as a person would name them: `entire explain` for `cd a && /tmp/entire explain -v`."""
    named = []
    for simple, _ in split_shell(_HERE_DOCUMENT.sub("", _unwrap_shell(command[:_MAX_CHARS]))):
        words = _split_words(simple)
        if words and words[0] not in HARMLESS and words[0] != "cd":
            named.append(" ".join((basename(words[0]), *words[1:]))[:_TARGET])
    return tuple(named[:_MOST_RUNS])
