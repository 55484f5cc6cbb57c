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

from everturn.derive.check_programs import (
    FLAGS_WITH_VALUE,
    HARMLESS,
    SELECTORS,
    SEPARATE_SUITES,
    CheckProgram,
    find_program,
)
from everturn.derive.failures import WRAPPED_COMMAND, split_shell
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
    if program.kind in ("commit", "push", "merge", "ci"):
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
    text = _COLOUR.sub("", text) if "\x1b" in text else text
    return _TASK.sub("", text) if "\n[" in text or text[:1] == "[" or _TURBO.search(text[:_HEAD]) else text


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
    names = (next(filter(None, found.groups())) for found in _NAMED.finditer(text))
    return tuple(dict.fromkeys(name.replace("\\", "/").removeprefix("./") for name in names))[:_MOST_NAMES]


def has_crashed(text: str) -> str:
    """Return the line with which a program died: an uncaught exception, a missing module, a panic; else ""."""
    found = _CRASH.search(text)
    return _line_at(text, found.start(), found.end()) if found else ""


def is_no_failure(text: str) -> bool:
    """Whether nothing was checked: a wrong call, a missing program or folder, a denial, an interrupt, a time limit."""
    return bool(_NOT_RUN.search(text[:3_000])) or bool(_STOPPED.search(text[-600:]))


def is_running(text: str) -> bool:
    """Whether the command went on in the background when its call returned."""
    return bool(_RUNNING.search(text[:400]))


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
    return _LinePatterns((*_FAILED.get(kind, ()), *_FAILED["any"])), _LinePatterns(_PASSED.get(kind, ()))


_COLOUR = lazy_pattern(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
#: The name of a task before each of its lines.
_TASK = lazy_pattern(r"^(?:\[[a-z][\w:.-]{0,40}\] (?!ERROR)|[@\w/.-]{1,80}:[a-z][\w:-]{1,30}: )", re.MULTILINE)
_TURBO = lazy_pattern(r"^[@\w/.-]{1,80}:(?:lint|test|build|type-?check|check)[\w:-]{0,20}: ", re.MULTILINE)
_N = r"([1-9]\d{0,6})"
_TESTS_FAILED = (
    rf"^(?:=+ )?(?:\d+ \w+, )*{_N} (?:failed|errors?)\b[^\n]* in [\d.]+s",  # pytest
    r"^(?:FAILED|ERROR) [\w./\\-]+\.py(?:::\S+)?",
    r"^FAILED \((?:failures|errors)=(\d+)",  # unittest
    rf"^(?:Tests|Test Suites):\s+{_N} failed",  # jest
    rf"^[ \t]*(?:Tests|Test Files)\s+{_N} failed",  # vitest
    rf"^[ \t]*{_N} failing\b",  # mocha
    rf"^[ \t]*{_N} fail$",  # bun
    rf"^(?:# |ℹ )fail {_N}",  # node --test
    r"^[ \t]*--- FAIL: ", r"^FAIL(?:[ \t]+\S.*)?\s*$", r"^FAIL\s+[\w./-]+ \[",  # go
    rf"^test result: FAILED\. \d+ passed; {_N} failed", r"^error: (?:\d+ )?test(?:s|\(s\))? failed", r"^error: could not compile",
    rf"^[ \t]*Summary .*\b{_N} failed", # nextest
    rf"^\d+ (?:examples?|runs?|tests?|scenarios?)[^\n]*?, {_N} (?:failures?|errors?)",  # rspec, minitest
    r"^(?:FAILURES|ERRORS)!$", rf"^Tests: \d+, [^\n]*?(?:Failures|Errors): {_N}",  # phpunit
    rf"tests passed, {_N} tests? failed out of",  # ctest
    rf"Executed \d+ tests?, with {_N} failures?", r"^\*\* TEST FAILED \*\*", r"^✘ Test run with .*failed",  # swift
    rf"^\d\d:\d\d \+\d+(?: ~\d+)? -{_N}: Some tests failed", r"^Some tests failed\.",  # flutter
    rf"^\d+ tests? completed, {_N} failed", rf"Tests run: \d+, Failures: {_N}", rf"Tests run: \d+, Failures: \d+, Errors: {_N}",
    r"^(?:\[ERROR\] )?BUILD FAIL(?:ED|URE)", r"^\[INFO\] BUILD FAILURE",
    rf"^[ \t]*Failed!\s+- Failed:\s+{_N}", r"^Test Run Failed\.", rf"^[ \t]+Failed: {_N}$",  # dotnet
    rf"^[ \t]+{_N} failed$", rf"^{_N} tests? failed\.", rf"^(?:ERROR|FAILED) \| .*\b{_N} failed",  # playwright, deno
    r"^not ok \d+", rf"^[ \t]*{_N} tests?, {_N} failures?",  # tap, bats, mix
    r"^npm ERR! Test failed", r"^error: script \"[^\"]*test[^\"]*\" exited with code", r"^\[test[\w:.-]*\] ERROR ",
)  # fmt: skip
_TESTS_PASSED = (
    r"\b\d+ passed\b[^\n]* in [\d.]+s", r"^OK(?: \(|\s*$)", r"^Tests:\s+(?:\d+ \w+, )*\d+ passed", r"^[ \t]*Tests\s+(?:\d+ \w+ \| )*\d+ passed",
    r"^[ \t]*\d+ passing\b", r"^[ \t]*0 fail$", r"^(?:# |ℹ )fail 0", r"^ok\s+\S+\s", r"^PASS$", r"^test result: ok", r"^\d+ \w+[^\n]*?, 0 failures",
    r"100% tests passed", r"with 0 failures", r"All tests passed", r"BUILD SUCCESS", r"^[ \t]*Passed!", r"^Test Run Successful", r"^ok \| ",
    r"^[ \t]+\d+ passed", r"^✔ Test run with .*passed", r"\*\* TEST SUCCEEDED", r"^[ \t]*Summary .*\bpassed", r"^# all \d+ tests? passed",
)  # fmt: skip
_LINT_FAILED = (
    rf"^[✖×] {_N} problems? \((?!0 errors)", rf"^[ \t]*[✖×] {_N} (?:errors?|problems?)$", rf"^Found {_N} errors?\b(?!.*\b0 remaining)",
    rf"^{_N} issues?[:.]", rf"^Summary: {_N} (?:issues?|errors?)", r"^[^\n]*error MD\d{3}/", rf", {_N} offenses? detected", r"^would reformat ",
    r"^Code style issues ", r"\.{3,}Failed$", rf"^Found \d+ warnings? and {_N} errors?", r"^In \S+ line \d+:", r"^[^\s:]+\.py:\d+:\d+: [A-Z]+\d+ ",
    r"^(?:Some )?(?:\w+ )?lint(?:ing|er)?(?: checks?)? failed", r"^Files with errors: ([1-9]\d*)", r"^error: script \"[^\"]*(?:lint|format)[^\"]*\" exited with code",
    r"^error: could not compile", r"^error(?:\[\w+\])?: (?!script|unexpected|unrecogni)[^\n]*\n\s*-->", r"^\[(?:lint|fmt)[\w:.-]*\] ERROR ", r"^Errors? found in ",
    r"^\S+\.go:\d+:\d+: ", rf"^{_N} issues? found\.", r"^[ \t]+error • ", r"^\S*:\d+:\d+\s+error\s", r"^[^\n]{1,200}:\d+:\d+: error: ",
)  # fmt: skip
_LINT_PASSED = (
    r"^All checks passed", r"^0 issues", r"No issues found", r"no issues found", r"^Checked \d+ files?[^\n]*(?:No fixes|Fixed)", r"All matched files use",
    r"no offenses detected", r"\b0 problems", r"\(0 errors", r"^Summary: 0 ", r"\b0 errors?\b", r"0 remaining", r"^[ \t]*Finished `?\w", r"No ESLint warnings or errors",
    r"\d+ files? (?:already formatted|would be left unchanged|left unchanged)", r"\.{3,}Passed$", r"^Your code has been rated at 10",
)  # fmt: skip
_TYPES_FAILED = (
    r"error TS\d+:", rf"^Found {_N} errors?\b", rf"^[ \t]*{_N} errors?, \d+ warnings?", r"^[^\s:]+\.pyi?:\d+(?::\d+)?: error:", rf"found {_N} errors?",
    r"^error: script \"[^\"]*type[^\"]*\" exited with code", rf"\[ERROR\] Found {_N} errors",
)  # fmt: skip
_TYPES_PASSED = (r"^Success: no issues", r"\b0 errors?\b", r"No errors", r"All checks passed")
_BUILD_FAILED = (
    r"error TS\d+:", r"^Failed to compile", r"^(?i:\W*(?:the )?build (?:has )?failed)", r"^(?:\[ERROR\] )?BUILD FAIL(?:ED|URE)", r"^\[INFO\] BUILD FAILURE",
    r"^\*\* BUILD FAILED", r"^error(?:\[E\d+\])?: (?!script|unrecogni|unexpected arg|unknown)", r"^(?:ld|clang|collect2|gcc): (?:fatal )?error:",
    r"^[^\n:]{1,200}:\d+:(?:\d+:)? (?:fatal )?error[: ]", r"^(?:\./)?[\w./-]+\.go:\d+:\d+: ", r"^ninja: build stopped", r"^ERROR: failed to (?:solve|build)",
    r"^ERROR: process \"", r": error (?:CS|MSB|C|LNK)\d+", r"^Build FAILED\.", r"error during build:", r"compiled with ([1-9]\d*) errors?", r"^│ Error: ", r"^\[?Error(?: \[\w+\])?: ", r"^> Build error occurred", r"^FATAL ERROR: ",
    r"^✘ \[ERROR\] ", r"Command \"[^\"\n]{1,200}\" exited with [1-9]", r"^error: script \"[^\"]*(?:build|compile)[^\"]*\" exited with code", r"^Module not found:",
    r"^> Build failed because of webpack errors", r"^\S*\[build[\w:.-]*\] ERROR ",
)  # fmt: skip
_BUILD_PASSED = (
    r"[Cc]ompiled successfully", r"✓ built in", r"^[ \t]*Finished `?\w+", r"BUILD SUCCESS", r"Build succeeded", r"^Successfully (?:built|tagged)", r"Apply complete!",
    r"^No changes\.", r"^Plan: \d+ to add", r"naming to \S+", r"\*\* BUILD SUCCEEDED", r"Build complete!?", r"^(?i:build completed)", r"⚡ Done", r"^DONE\s", r"[Bb]undled \d+ modules",
    r"exporting to image", r"^[ \t]*\[\d+/\d+\] Linking", r"^\[100%\] Built target", r"^[ \t]*[○●ƒλ]  ?\(\w+\)  ",
)  # fmt: skip
_CI_FAILED = (
    r"^X [^\n]+", r"\tfail\t", r"completed with '(?:failure|timed_out)'", r"\"conclusion\":\s*\"failure\"", r"^completed\tfailure\t", rf"^{_N} failing,", r"conclusion:? failure",
)  # fmt: skip
_CI_PASSED = (
    r"completed with 'success'", r"All checks were successful", r"\tpass\t", r"\"conclusion\":\s*\"success\"", r"^completed\tsuccess\t", r"^✓ ",
)  # fmt: skip
_HOOK_FAILED = (
    r"husky - [\w-]+ (?:script|hook) (?:failed|exited)", r"\.{3,}Failed$", r"(?i:pre-(?:commit|push) hook[^\n]{0,40}(?:failed|exited))", r"✖ [^\n]+ (?:failed|found some errors)",
    r"hook declined", r"^fatal: (?:cannot lock ref|Unable to create|unable to write)", r"(?i:commit-msg hook)[^\n]{0,40}failed", r"^✖\s+(?:subject|type|body)",
)  # fmt: skip
_PUSH_FAILED = (
    r"^fatal: (?:Could not read from remote|unable to access|Authentication failed|unable to connect|Not possible to fast-forward|The remote end|refusing to merge|early EOF|remote error)", r"^ ! \[(?:remote )?rejected\]", r"^error: failed to push", r"^ssh: ", r"Permission denied \(publickey",
)  # fmt: skip
_MERGE_FAILED = (
    *_PUSH_FAILED,
    r"^CONFLICT ", r"^error: [^\n]*(?:merge|overwritten|conflict|could not apply)", r"^fatal: (?:You have not concluded|Exiting because of|refusing to merge|Not possible)",
)  # fmt: skip
_FAILED: dict[str, tuple[str, ...]] = {
    "test": _TESTS_FAILED,
    "lint": _LINT_FAILED,
    "types": _TYPES_FAILED,
    "build": _BUILD_FAILED,
    "check": (*_TESTS_FAILED, *_LINT_FAILED, *_TYPES_FAILED),
    "commit": (*_HOOK_FAILED, *_TYPES_FAILED, *_TESTS_FAILED, *_LINT_FAILED),
    "push": (*_PUSH_FAILED, *_HOOK_FAILED),
    "merge": _MERGE_FAILED,
    "ci": _CI_FAILED,
    "any": (r"^g?make(?:\[\d+\])?: \*\*\* (?!No rule|No targets)[^\n]*Error \d+", r"^[ \t]*ELIFECYCLE\s.*[Cc]ommand failed", r"^npm (?:ERR!|error) (?:code ELIFECYCLE|Lifecycle script)", r"^[ \t]*ERR_PNPM_RECURSIVE_(?:RUN|EXEC)_FIRST_FAIL"),
}  # fmt: skip
_PASSED: dict[str, tuple[str, ...]] = {
    "check": (*_TESTS_PASSED, *_LINT_PASSED, *_TYPES_PASSED),
    "test": _TESTS_PASSED,
    "lint": _LINT_PASSED,
    "types": _TYPES_PASSED,
    "build": _BUILD_PASSED,
    "commit": (r"^\[[^\]\n]+ [0-9a-f]{6,40}\] ",),
    "push": (r"^Everything up-to-date", r"^[ \t]+[0-9a-f]+\.\.[0-9a-f]+\s", r"^ \* \[new ", r"^Already up to date", r"^Fast-forward", r"set up to track"),
    "merge": (r"^Already up to date", r"^Fast-forward", r"^[ \t]+[0-9a-f]+\.\.[0-9a-f]+\s", r"^Merge made by", r"^Successfully rebased", r"^\[[^\]\n]+ [0-9a-f]{6,40}\] "),
    "ci": _CI_PASSED,
}  # fmt: skip
_NAMED = lazy_pattern(
    r"^(?:FAILED|ERROR) ([\w./\\-]+\.py)(?:::\S+)?|^[ \t]*(?:FAIL|❌|❯|×) +([\w./\\@-]+\.[cm]?[jt]sx?)\b|^FAIL\t(\S+)|^([\w./\\@-]+\.[cm]?tsx?)\(\d+,\d+\): error|"
    r"^([\w./\\@-]+\.(?:py|go|rs|tsx?))[:]\d+(?::\d+)?:? (?:-? ?error\b|[A-Z]+\d+ )",
    re.MULTILINE,
)
_CRASH = lazy_pattern(
    r"^Traceback \(most recent call last\)|^  File \"[^\"\n]{1,300}\", line \d+, in |^(?:error|Error): Cannot find (?:module|package)|^panic: |^thread '[^']*' panicked|^Segmentation fault|\(core dumped\)|^FATAL ERROR: |^Uncaught |"
    r"^(?:Reference|Type|Syntax|Range)Error: |^Error(?: [a-z]+){1,4}: \S|^(?:could not|cannot|failed to|unable to) (?!open|read|stat|access|find (?:module|package))\w|^[ \t]*Unhandled (?:rejection|exception)|^Exception in thread|^Fatal (?:error|Python error): |^\S*Error \[ERR_\w+\]: ",
    re.MULTILINE,
)
_NOT_RUN = lazy_pattern(
    r"command not found|not a valid statement separator|: ParserError:|\balready exists\b|not recognized as (?:an internal|the name)|^\S*: \S*: No such file or directory|is not a (?:\S+ )?command|"
    r"unrecogni[sz]ed (?:sub)?(?:command|option|argument)|[Uu]nknown (?:sub)?(?:option|flag|command|argument|arguments)|unexpected argument|[Ii]nvalid (?:option|argument|flag)|"
    r"no such (?:option|command|subcommand)|Unrecognized option|unexpected option|flag provided but not defined|^[Uu]sage: |error: the following arguments are required|"
    r"[Mm]issing script|No rule to make target|[Nn]o [Mm]akefile found|no such task|Task \S+ (?:does not exist|not found)|no task named|Script not found|Justfile does not contain|"
    r"does not contain main module|go\.mod file not found|could not (?:read|find) package\.json|ENOENT[^\n]{0,120}package\.json|could not find `?Cargo\.toml|[Nn]o pyproject\.toml|"
    r"[Nn]o tests? (?:found|files? found|ran|collected)|collected 0 items(?! /)|No test files|did not match any file|not a git repository|pathspec |nothing to commit|"
    r"nothing added to commit|no changes added|paths are ignored by|No module named (?:'?)(?:pytest|mypy|ruff|black|tox|nox|unittest2|pylint|flake8)|: not found$|No such file or directory: |"
    r"cd: [^\n]{0,200}(?:No such|no such|not a dir)|file or directory not found:|No files matching|no input files|TS5\d\d\d:|TS18003|TS17004|TS6142|EAI_AGAIN|connect to the [Dd]ocker (?:API|daemon)|(?:parse|syntax) error near|syntax error: unexpected end|imported from (?:/private)?/tmp/|Unknown file extension|error: unknown |Couldn't find any `?pages|"
    r"[Pp]ermission (?:for|to use)[^\n]{0,80}denied|doesn't want to (?:proceed|take)|denied by|requires approval|(?:Operation|Request) [Cc]ancelled|rejected by (?:the )?user|aborted by user|"
    r"\[Request interrupted|^Command timed out|timed out after|Missing entrypoints|needs? (?:your )?permission|[Uu]ser denied|blocked by (?:hook|policy)|has no upstream branch|No configured push destination|"
    r"[Aa]uthor identity unknown|Sibling tool call|No such file or directory \(os error 2\)$|can't open file|Cannot find module '[^'\n]*/(?:scripts?|bin|dist|build)/",
    re.MULTILINE,
)
_STOPPED = lazy_pattern(
    r"\^C\s*$|KeyboardInterrupt|Command timed out|timed out after|\bSIGINT\b|\bSIGTERM\b|signal: interrupt|Aborted by|was interrupted",
    re.MULTILINE,
)
_RUNNING = lazy_pattern(
    r"running in (?:the )?background|Process running with session|still running|moved to (?:the )?background|Background process started",
    re.IGNORECASE,
)
