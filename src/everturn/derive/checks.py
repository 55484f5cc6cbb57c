"""Which checks a shell command runs: tests, builds, lints, type checks, commits, pushes, CI runs, programs.

`find_checks` reduces a command line to its `CheckRun`s. What does not affect the outcome is left out: the folder it
changed to, environment variables, wrappers (`npx`, `uv run`, `timeout 60`), pipes, redirections and flags. `covers` decides
whether a later success says that an earlier failure is over: the same check with the same targets, or with more.

An exit status is `hidden` from a run behind `| tail`, `|| true`, `;` or `&`: then only the output says how it ended. Pure;
one pass over the command, which is read up to a limit.

`read_output` says how a check ended: it knows the closing lines of common test runners, compilers, linters, build tools and
CI, and counts their failures. Its answer is "" where no summary is shown. `is_no_failure` knows what stops a command before it
checks anything: a wrong option, a missing program or folder, a denial, an interrupt, a time limit. Of a long output, the
beginning and the end are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from posixpath import basename, join, normpath

from msgspec import Struct

from everturn.derive.check_lines import (
    COLOUR,
    CRASH,
    FAILED_LINES,
    NAMED_FAILURE,
    NOT_RUN,
    PASSED_LINES,
    RAISED,
    RUNNING,
    STOPPED,
    TASK_NAME,
    TURBO_TASK,
)
from everturn.derive.check_programs import (
    FAMILY_VALUES,
    FLAGS_WITH_VALUE,
    HARMLESS,
    SELECTORS,
    SEPARATE_SUITES,
    CheckProgram,
    find_program,
)
from everturn.derive.failures import LOOKS, WRAPPED_COMMAND, split_shell
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line

_MAX_CHARS = 6_000
_MOST_RUNS = 12
_MOST_TARGETS = 30
_TARGET = 200
#: Kinds of one program each: a success of another program says nothing about them.
_OWN_KINDS = frozenset(("check", "commit", "push", "merge", "ci", "program"))
#: Families that scripts of a project are not about, as far as their names tell.
_OWN_FAMILIES = frozenset(("infra", "docker", "vcs", "deploy"))
#: Families whose tests compile everything first.
_COMPILED = frozenset(("go", "rust", "jvm", "net", "swift"))


class CheckRun(Struct, frozen=True, omit_defaults=True):
    """One check that a command ran. Without targets it is about everything in its folder."""

    kind: str  # test | build | lint | types | check | commit | push | merge | ci | program | editor
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
    path = target.partition("::")[0]  # a suite may be named after its file: `test:roles` runs roles.test.ts
    return f"/{wide}/" in f"/{path}/" or wide.endswith(f"/{target}") or wide == basename(path).partition(".")[0]


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
_HERE_DOCUMENT = lazy_pattern(r"(?<!<)<<-?\s*(['\"]?)(\w+)\1[^\n]*\n.*?(?:^\s*\2\s*$|\Z)", re.DOTALL | re.MULTILINE)
_WORD = lazy_pattern(r"""(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\])+""", re.DOTALL)
_REDIRECTION = lazy_pattern(r"\s*(?:[0-9&]?>>?\s*&?\s*(?:\"[^\"]*\"|'[^']*'|[^\s&|;()]+)|[0-9]?>&[0-9-]|<\s*[^\s<>(]+)")
_OPENING = lazy_pattern(r"(?:(?:if|then|else|elif|while|until|do|!|\{)\s+|[({]\s*)+")
_BLOCK = lazy_pattern(r"\s*(?:if|then|elif|else|while|until|for|do|done|fi|case)\b")
_ASSIGNMENT = lazy_pattern(r"\w+=", re.ASCII)
_GLOB = lazy_pattern(r"[*?{]")
_NUMBER = lazy_pattern(r"[\d.]+[smhdx%]?|true|false", re.ASCII)
_LEAVES = lazy_pattern(r"[({\s]*(?:exit|return|false)\b")
_STOPS = lazy_pattern(r"(?:^|[;\n&]\s*)set\s+-[a-z]*e")
_PIPEFAIL = lazy_pattern(r"set\s+-[a-z]*o\s+pipefail|set\s+-[a-z]*eo\b|pipefail")


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
            was_elsewhere = self.elsewhere
            self.elsewhere = not words[2:] or words[2] in ("push", "save") or words[2].startswith("-")
            if was_elsewhere or words[2:3] not in (["pop"], ["apply"]):
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
    if program.kind in ("commit", "push", "merge", "ci"):
        return ()
    selectors = SELECTORS.get(program.family, SELECTORS["any"])
    words = iter(program.arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name in selectors:
            scope.append(f"{selectors[name]} {value if equals else next(words, '')}".strip())
        elif name in FLAGS_WITH_VALUE or (program.family, name) in FAMILY_VALUES:
            if not equals:
                next(words, "")
        elif not word.startswith("-") and not _NUMBER.fullmatch(word) and (target := _clean_target(word)):
            scope.append(target)
    return tuple(one_line(one, _TARGET) for one in dict.fromkeys(scope[:_MOST_TARGETS]))


def _clean_target(word: str) -> str:
    word = word.replace("\\", "/").removeprefix("./").removesuffix("...")
    word = (_GLOB.split(word, maxsplit=1)[0].rpartition("/")[0] if _GLOB.search(word) else word).rstrip("/")
    return "" if word in (".", "..", "$@", "all") else word


# --- a command line as a whole ---
def shows_status(command: str) -> bool:
    """Whether an exit status of 0 says of every command in a line that it went well, besides those that cannot fail."""
    text = _HERE_DOCUMENT.sub("", _unwrap_shell(command[:_MAX_CHARS]))
    commands = split_shell(text)
    if len(commands) < 2 and len(command) <= _MAX_CHARS:
        return not any(operator == "&" for _, operator in commands)
    hidden = (simple for number, (simple, _) in enumerate(commands) if _is_hidden(commands, number, text))
    return len(command) <= _MAX_CHARS and all(_is_harmless(simple) for simple in hidden)


def _is_harmless(simple: str) -> bool:
    words = _split_words(simple)
    return not words or words[0] in HARMLESS


def only_looks(command: str) -> bool:
    """Whether a command line only shows or searches text: what it prints says nothing about it."""
    commands = split_shell(_HERE_DOCUMENT.sub("", _unwrap_shell(command[:_MAX_CHARS])))
    shown = [simple for simple, _ in commands if not _is_harmless(simple) or LOOKS.match(simple)]
    return bool(shown) and all(LOOKS.match(simple) or _SHOWS_LOG.match(simple) for simple in shown)


def tries_code(command: str) -> bool:
    """Whether a command line runs code that stands in the line itself: a try, and nothing to come back to."""
    return bool(_CODE.search(command))


_CODE = lazy_pattern(
    r"<<|\bgit[ \t]+stash\b(?![ \t]+(?:pop|apply|list|show|drop))|\b(?:python[\d.]*|node|bun|deno|ruby|perl|php|osascript)(?:\.exe)?[ \t]+(?:-[a-zA-Z]+[ \t]+){0,3}(?:-[A-Za-z]*[cer]\b|--eval\b|eval\b|-(?:[ \t]|$))"
)
_SHOWS_LOG = lazy_pattern(
    r"(?:docker(?:-compose|[ \t]+compose)?[ \t]+logs|kubectl[ \t]+(?:logs|describe|get)|journalctl|curl|wget|Invoke-WebRequest)\b|[^\n]{1,80}?[ \t]--(?:list[\w-]*|version|help)\b"
)


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


# --- How a check ended, read from its output: the summaries of test runners, compilers, linters, build tools and CI ---
_HEAD = 3_000
_TAIL = 12_000
_LINE = 200
_MOST_NAMES = 40


class CheckOutcome(Struct, frozen=True):
    """How a check ended: `failed`, `passed`, or "" if the output does not say."""

    verdict: str = ""
    count: int = 0  # failures, if counted
    line: str = ""  # the last line that says so


def shown_part(output: str) -> str:
    """Return the part of an output that is read, without colours."""
    text = output if len(output) <= _HEAD + _TAIL else f"{output[:_HEAD]}\n{output[-_TAIL:]}"
    text = COLOUR.sub("", text) if "\x1b" in text else text
    return TASK_NAME.sub("", text) if "\n[" in text or text[:1] == "[" or TURBO_TASK.search(text[:_HEAD]) else text


def read_output(kind: str, text: str) -> CheckOutcome:
    """Return how a check of this kind ended, from the shown part of its output. A build that ends well had warnings before."""
    failed, passed = _patterns(kind)
    last = None
    count = 0
    for found in failed.find_all(text):
        count = max((count, *map(int, found.groups("0"))))
        last = found if last is None or found.start() > last.start() else last
    good = (
        None if last is not None and kind != "build" else next(passed.find_all(text, last.end() if last else 0), None)
    )
    if last is not None and good is None:
        return CheckOutcome("failed", count, _line_at(text, last.start(), last.end()))
    return CheckOutcome("passed", 0, _line_at(text, good.start(), good.end())) if good else CheckOutcome()


def failing_names(text: str) -> tuple[str, ...]:
    """Return the files, tests or packages that an output names as failing."""
    names = (next(filter(None, found.groups())) for found in NAMED_FAILURE.finditer(text))
    return tuple(dict.fromkeys(name.replace("\\", "/").removeprefix("./") for name in names))[:_MOST_NAMES]


def has_crashed(text: str) -> str:
    """Return the line with which a program died: an uncaught exception, a missing module, a panic; else ""."""
    found = CRASH.search(text)
    if found is None:
        return ""
    raised = RAISED.findall(text, found.end()) if found[0].startswith(("Traceback", "  File")) else []
    return one_line(raised[-1], _LINE) if raised else _line_at(text, found.start(), found.end())


def is_no_failure(text: str) -> bool:
    """Whether nothing was checked: a wrong call, a missing program or folder, a denial, an interrupt, a time limit."""
    return bool(NOT_RUN.search(text[:3_000])) or bool(STOPPED.search(text[-600:]))


def is_running(text: str) -> bool:
    """Whether the command went on in the background when its call returned."""
    return bool(RUNNING.search(text[:400]))


def _line_at(text: str, start: int, end: int) -> str:
    """Return the line of a match; a summary of several lines on one."""
    start = text.rfind("\n", 0, start + 1 if text[start : start + 1] != "\n" else start) + 1
    stop = text.find("\n", max(end - 1, start))
    return one_line(text[start : stop if stop >= 0 else len(text)].strip(), _LINE)


class _LinePatterns:
    """Patterns that are tried at the beginning of each line, and those that are searched anywhere.

    Trying many alternatives only where a line begins is many times faster than searching for them at every character.
    """

    def __init__(self, patterns: tuple[str, ...]) -> None:
        at_start = [one for one in patterns if one.startswith("^")]
        anywhere = [one for one in patterns if not one.startswith("^")]
        self.at_start = lazy_pattern("|".join(at_start) or "(?!)", re.MULTILINE)
        self.anywhere = lazy_pattern("|".join(anywhere), re.MULTILINE) if anywhere else None

    def find_all(self, text: str, start: int = 0) -> Iterator[re.Match[str]]:
        at = text.find("\n", start) + 1 or -1 if start else 0
        match = self.at_start.match
        while at >= 0:
            if (found := match(text, at)) is not None:
                yield found
            at = text.find("\n", at) + 1 or -1
        if self.anywhere is not None:
            yield from self.anywhere.finditer(text, start)


@lru_cache(maxsize=16)
def _patterns(kind: str) -> tuple[_LinePatterns, _LinePatterns]:
    return _LinePatterns((*FAILED_LINES.get(kind, ()), *FAILED_LINES["any"])), _LinePatterns(PASSED_LINES.get(kind, ()))
