"""How calls ended, as far as the record shows it.

`judge_checks` says how each check of a call ended. `judge_call` says how the call itself did: it is `ok` only if that is recorded, by an exit
status that no pipe hides or by a summary in the output. Where the output begins or ends with the words of a failure, it failed,
whatever the status. Otherwise nothing is said. `find_admissions` are the sentences with which an answer says that calls failed. A command that only shows or searches text does not fail by what it shows. Pure;
of an output, the beginning and the end are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from msgspec import Struct

from everturn.derive.check_lines import (
    CLIENT_FAILED,
    CLIENT_LINE,
    COLOUR,
    CUT_SHORT,
    ECHO_STATUS,
    ECHOED,
    LISTS_RUNS,
    LOCKED_OUT,
    NEWEST_RUN,
    NO_OUTPUT,
    ONLY_FAILURES,
    OWN_TROUBLE,
    PROBLEM,
    REFUSED,
    SAVED,
    SAYS_DONE,
    SAYS_FAILED,
    SCRIPT_LINE,
    STATES_FAILURE,
    STOPPED_LINES,
    TOLD_ERROR,
    TROUBLE,
    UNCONFIGURED,
)
from everturn.derive.checks import (
    CheckOutcome,
    CheckRun,
    command_words,
    failing_names,
    find_checks,
    has_crashed,
    is_no_failure,
    is_running,
    only_looks,
    read_output,
    shown_part,
    shows_status,
)
from everturn.model.archive import Call
from everturn.model.conversation import CallStart
from everturn.text.printable import error_line, one_line
from everturn.text.sentences import split_sentences
from everturn.text.stance_words import CLAIMS_PASS, UNSURE
from everturn.text.trouble_words import ADMITS, IDLE_WORDS, LETS_BE, NAME, OVERCOME, PATH_WORD, TAKES_EFFECT, WORD

EDITOR = "editor"  # the kind of a check that the editor made when a file was saved
_SHORT = 1_500  # characters of an output that is nothing but a message about a wrong call
#: Classes of errors after which nothing is known about the check.
_NOT_CHECKED = frozenset(("rejected", "interrupted", "cancelled", "timeout", "unknown_tool", "invalid_input"))
_STOP_STATUS = frozenset((124, 126, 127, 130, 137, 143))
#: Kinds that fail only if their output says so: they also end with an error for other reasons.
_TOLD_BY_OUTPUT = frozenset(("commit", "push", "merge", "ci", "program"))
#: Kinds whose programs are the project's own: when one dies, there is no summary.
_MAY_CRASH = frozenset(("test", "build", "check"))
#: Tools that print nothing when all is well.
_QUIET_KINDS = frozenset(("types", "lint", "build"))


class CheckResult(Struct, frozen=True):
    """How one check of a call ended."""

    run: CheckRun
    verdict: str  # failed | passed | clean: nothing in the output speaks of a failure
    count: int = 0
    line: str = ""
    names: tuple[str, ...] = ()  # failing files, tests or packages, as far as the output names them


# --- the checks of a call ---
def judge_checks(call: Call, start: CallStart, output: str, workspace: str = "") -> tuple[CheckResult, ...]:
    """Return how the checks of a call ended; those about which nothing is known are left out."""
    if start.kind in ("edit", "create") and call.status == "ok":
        return _judge_saved(start, output)
    if start.kind != "shell" or not start.command or call.status in ("open", "orphan"):
        return ()
    runs = find_checks(start.command, workspace, _given_folder(start))
    text = shown_part(output) if runs else ""
    if not runs or call.error_class in _NOT_CHECKED or is_running(text):
        return ()
    failed = call.status == "error" or bool(call.exit_status)
    if failed:
        return tuple(_judge_failed(runs, text, call.exit_status, start.command))
    judged = tuple(_judge_succeeded(runs, text, call.exit_status == 0, start.command))
    return judged + _judge_hooks(judged, text, workspace)


_MOST_HOOKS = 10


def _judge_hooks(judged: tuple[CheckResult, ...], text: str, workspace: str) -> tuple[CheckResult, ...]:
    """Return the checks that the hooks of a commit or a push ran, as their echoed commands show: it went well, so they did."""
    if not any(one.run.kind in ("commit", "push") and one.verdict == "passed" for one in judged):
        return ()
    echoed = ECHOED.findall(text)[:_MOST_HOOKS]
    return tuple(CheckResult(run, "passed") for line in echoed for run in find_checks(line, workspace))


_MOST_SAVED = 8_000


def _judge_saved(start: CallStart, output: str) -> tuple[CheckResult, ...]:
    """Return the errors that the editor found in a file after a call had changed it."""
    found = SAVED.search(output)
    lines = PROBLEM.findall(output, found.end(), found.end() + _MOST_SAVED) if found is not None else []
    if not lines or not start.path:
        return ()
    path = start.path.replace("\\", "/")
    run = CheckRun(EDITOR, "any", "diagnostics", (path,))
    return (CheckResult(run, "failed", len(lines), lines[0].strip(), (path,)),)


def _judge_succeeded(
    runs: tuple[CheckRun, ...], text: str, certain: bool, command: str, told: str = ""
) -> Iterator[CheckResult]:
    """Read the output of the runs whose exit status is not known. Of those with the same last line, the last is meant."""
    taken = {told} if told else set()
    for run in reversed(runs):
        if not run.hidden and run.kind != "ci" and certain:
            stated = _stated_failure(text, command) if run.kind == "program" else ""
            yield CheckResult(run, "failed", 0, stated) if stated else CheckResult(run, "passed")
            continue
        outcome = _read_run(run, text)
        if outcome.verdict == "failed":
            if outcome.line not in taken and not (run.kind == "ci" and LISTS_RUNS.search(command)):
                yield _failed_result(run, outcome, text)
            taken.add(outcome.line)
        elif outcome.verdict == "passed" or (_is_silent_success(run, text, command) and not is_no_failure(text)):
            yield CheckResult(run, "passed")
        elif run.kind in _MAY_BE_CLEAN and _is_clean(run.kind, text, command):
            yield CheckResult(run, "clean")


#: Kinds whose failures are seen in their output, signs of any failure, and what may keep them out of sight.
_MAY_BE_CLEAN = frozenset(("test", "build", "lint", "types", "program"))


def _is_clean(kind: str, text: str, command: str) -> bool:
    """Whether an output is shown to its end, says something, and nothing of a failure. Linters name theirs in one way only."""
    is_whole = bool(text.strip()) and not CUT_SHORT.search(command) and _printed_status(text, command) is None
    return is_whole and not is_no_failure(text) and (kind in ("lint", "types") or not TROUBLE.search(text))


def _judge_failed(
    runs: tuple[CheckRun, ...], text: str, exit_status: int | None, command: str
) -> Iterator[CheckResult]:
    """Find the run that failed: the first whose output says so, else the only one that can have."""
    seen = [run for run in runs if not run.hidden]
    outcomes = [_read_run(run, text) for run in seen]
    culprit = _find_culprit(seen, outcomes, text)
    if culprit is None and seen and seen[0].kind in ("commit", "push") and exit_status == 1 and _runs_hooks(text):
        culprit = 0
    if culprit is None and exit_status not in _STOP_STATUS and not is_no_failure(text):
        culprit = next((at for at, one in enumerate(outcomes) if _can_be_blamed(seen[at], one)), None)
    for at, run in enumerate(seen if culprit is not None else ()):
        if at < (culprit or 0):
            yield CheckResult(run, "passed")
        elif at == culprit:
            yield _failed_result(run, outcomes[at], text)
    told = outcomes[culprit].line if culprit is not None else ""
    yield from _judge_succeeded(tuple(run for run in runs if run.hidden), text, False, command, told)


def _find_culprit(seen: list[CheckRun], outcomes: list[CheckOutcome], text: str) -> int | None:
    """Return the first run whose output says that it failed; of several programs that may have crashed, the one it names, else the last."""
    failed = [at for at, one in enumerate(outcomes) if one.verdict == "failed"]
    crashed = list(takewhile(lambda at: seen[at].kind == "program", failed))
    named = next((at for at in crashed if seen[at].tool.rpartition(" ")[2] in text), None)
    return named if named is not None else crashed[-1] if crashed else next(iter(failed), None)


def _runs_hooks(text: str) -> bool:
    """Whether a commit or a push that failed ran a check first."""
    return any(find_checks(line) for line in ECHOED.findall(text)[:_MOST_HOOKS])


def _can_be_blamed(run: CheckRun, outcome: CheckOutcome) -> bool:
    return not outcome.verdict and run.alone and run.kind not in _TOLD_BY_OUTPUT


def _read_run(run: CheckRun, text: str) -> CheckOutcome:
    if run.kind == "program":
        line = "" if run.hidden or is_no_failure(text) else has_crashed(text)
        return CheckOutcome("failed", 0, line) if line else CheckOutcome()
    if run.kind == "ci" and (row := NEWEST_RUN.search(text)):
        text = row[0]
    outcome = read_output(run.kind, text) if run.kind != "types" or not UNCONFIGURED.search(text) else CheckOutcome()
    if not outcome.verdict and run.kind in _MAY_CRASH and not is_no_failure(text):
        crash = has_crashed(text)
        outcome = CheckOutcome("failed", 0, crash) if crash else outcome
    unclear = run.kind in ("push", "commit") or (run.kind != "test" and run.family != "docker" and len(text) < _SHORT)
    if outcome.verdict == "failed" and not outcome.count and unclear and is_no_failure(text):
        return CheckOutcome()
    return outcome


def _failed_result(run: CheckRun, outcome: CheckOutcome, text: str) -> CheckResult:
    return CheckResult(run, "failed", outcome.count, outcome.line, failing_names(text))


def _is_silent_success(run: CheckRun, text: str, command: str) -> bool:
    """Whether a run without a summary went well: by a printed status, or by printing no errors."""
    if run.kind == "ci":
        return False
    printed = _printed_status(text, command)
    if printed is not None:
        return printed == 0
    is_silent = not NO_OUTPUT.sub("", text).strip() and "/dev/null" not in command
    return is_silent and (run.kind in _QUIET_KINDS or bool(ONLY_FAILURES.search(command)))


def _printed_status(text: str, command: str) -> int | None:
    """Return the exit status that `echo "exit: $?"` printed."""
    echo = ECHO_STATUS.search(command)
    if echo is None:
        return None
    found = re.findall(rf"^{re.escape(echo[1])}(\d{{1,3}})\s*$", text, re.MULTILINE)
    return int(found[-1]) if found else None


def _given_folder(start: CallStart) -> str:
    given = start.input if isinstance(start.input, dict) else {}
    folder = given.get("workdir") or given.get("cwd") or given.get("dir_path") or ""
    return folder if isinstance(folder, str) else ""


# --- a call as a whole ---
_ENDS = 2_000  # characters read at the beginning and at the end of an output
_FIRST, _LAST, _FEW_LINES = 3, 4, 12
_LINE = 160
_NAMED = {"rejected": "denied", "interrupted": "interrupted", "cancelled": "cancelled", "timeout": "timed out"}
_CLASSES = {how: error_class for error_class, how in _NAMED.items()}


class CallVerdict(Struct, frozen=True):
    """How a call ended: `ok`, `failed`, `exit 2` …, "" if nothing is recorded; and the line of its output that says so."""

    how: str = ""
    line: str = ""
    failed: bool = False

    @property
    def error_class(self) -> str:
        """The class of an error that a client would have noted."""
        return _CLASSES.get(self.how, "")

    @property
    def text(self) -> str:
        """In words, for a document."""
        return f"{self.how}: {self.line}" if self.line else self.how


def judge_call(call: Call, start: CallStart, output: str, checks: Sequence[CheckResult] = ()) -> CallVerdict:
    """Return how a call ended; `checks` are those that it ran."""
    if call.status in ("open", "orphan"):
        return CallVerdict("no result")
    if (named := _NAMED.get(call.error_class)) is not None:
        return CallVerdict(named, failed=True)
    is_shell = start.kind == "shell"
    lines = _end_lines(output, start.command)
    if call.status == "error" or call.exit_status:
        how = f"exit {call.exit_status}" if call.exit_status else "failed"
        return CallVerdict(how, _failure_line(lines, SAYS_FAILED) if is_shell else "", failed=True)
    stopped = _stop_named(lines)
    if stopped == "denied" or (stopped and not _shows_text(start)):
        return CallVerdict(stopped, failed=True)
    return _unmarked_ending(call, start, output, lines, checks) if is_shell else _tool_ending(start, lines)


def _unmarked_ending(
    call: Call, start: CallStart, output: str, lines: list[str], checks: Sequence[CheckResult]
) -> CallVerdict:
    """Return how a command ended that the client did not mark as failed."""
    failed = next((one for one in checks if one.verdict == "failed"), None)
    is_shown = call.exit_status == 0 and shows_status(start.command)
    how = "exit 0, but it printed" if is_shown else "failed"
    if failed is not None:
        how = "failed" if failed.run.kind == "ci" else how  # what it shows is the run of somebody else
        return CallVerdict(how, one_line(failed.line.strip("= "), _LINE), failed=True)
    if is_running(output):
        return CallVerdict("running")
    looks = only_looks(start.command)
    if is_shown and any(one.verdict == "passed" and one.run.kind != "program" for one in checks):
        return CallVerdict("ok")
    if looks:
        line = _failure_line(lines, OWN_TROUBLE) if len(lines) <= _FIRST else ""
    elif is_shown:
        line = _stated_line(lines)
    else:
        few = len(lines) <= _FEW_LINES
        line = _failure_line(lines if few else [*lines[:_FIRST], *lines[-_LAST:]], SAYS_FAILED)
    if line:
        told = (
            next((one for one in reversed(lines) if TOLD_ERROR.match(one)), line)
            if line.startswith("Traceback")
            else line
        )
        return CallVerdict(how, one_line(told, _LINE), failed=True)
    is_told = bool(checks) and all(one.verdict == "passed" for one in checks)
    is_told = is_told or (not looks and any(SAYS_DONE.match(line) for line in lines[-_LAST:]))
    return CallVerdict("ok") if is_shown or is_told else CallVerdict()


def _stated_failure(text: str, command: str) -> str:
    """Return the line with which a program says that it failed although it ended with status 0."""
    return "" if only_looks(command) else _stated_line(_end_lines(text, command))


def _stated_line(lines: Sequence[str]) -> str:
    return _failure_line([*lines[:1], *lines[-1:]], STATES_FAILURE)


def _shows_text(start: CallStart) -> bool:
    """Whether the output of a call is a text that it only shows: what that says of a failure is not about the call."""
    return start.kind in ("read", "search") or (start.kind == "shell" and only_looks(start.command))


def _tool_ending(start: CallStart, lines: list[str]) -> CallVerdict:
    """Return how a call of another tool ended: a service that refuses often answers in plain words."""
    short = lines[:1] if len(lines) <= _FEW_LINES and not _shows_text(start) else []
    refused = [line for line in short if REFUSED.match(line)] or [
        line for line in lines[-1:] if LOCKED_OUT.match(line) and not _shows_text(start)
    ]
    return CallVerdict("failed", one_line(refused[0], _LINE), failed=True) if refused else CallVerdict("ok")


def find_failed_notice(text: str) -> list[tuple[str, CheckResult]]:
    """Return the check that a client ran by itself and says it could not do, after its command."""
    found = CLIENT_FAILED.match(text)
    runs = find_checks(found[2].replace(" --no-verify", "")) if found is not None else ()
    if found is None or not runs:
        return []
    return [(one_line(found[2], _COMMAND), CheckResult(runs[0], "failed", 0, one_line(found[1], _LINE)))]


def printed_error(output: str, command: str) -> str:
    """Return the most telling line of what a failed call printed."""
    return error_line("\n".join(_end_lines(output, command)))


def _end_lines(output: str, command: str) -> list[str]:
    """Return the first and the last lines of an output, without those of the client and of the scripts that begin a shell."""
    text = output if len(output) <= 2 * _ENDS else f"{output[:_ENDS]}\n{output[-_ENDS:]}"
    text = COLOUR.sub("", text) if "\x1b" in text else text
    lines = (line.removeprefix("Output: ").strip() for line in text.splitlines())
    kept = (line for line in lines if line and not CLIENT_LINE.match(line))
    return [line for line in kept if (found := SCRIPT_LINE.match(line)) is None or found[1] in command]


def _failure_line(lines: Sequence[str], pattern: re.Pattern[str]) -> str:
    """Return the line that says best what failed: of those that a pattern matches, the first that names an error."""
    found = [line for line in lines if pattern.match(line)]
    return one_line(next((line for line in found if TOLD_ERROR.match(line)), found[0] if found else ""), _LINE)


def _stop_named(lines: Sequence[str]) -> str:
    """Return how a call was stopped, if its output is only that, or ends with it."""
    return next(
        (how for how, pattern in STOPPED_LINES for line in (*lines[:1], *lines[-1:]) if pattern.match(line)), ""
    )


def proven_commands(start: CallStart, ending: CallVerdict) -> tuple[str, ...]:
    """Return the commands of a call that may have gone well, by name: nothing that is known speaks against it."""
    return command_words(start.command) if start.kind == "shell" and ending.how in ("ok", "") else ()


# --- what an answer says of calls that failed ---
_MOST_PENDING, _MOST_ADMITTED, _SENTENCE, _COMMAND = 3, 8, 300, 200
_LAST_FAILED = 3  # calls that nothing went past


def answered_failures(
    answers: Sequence[tuple[str, int]], calls: Sequence[tuple[int, str, str, str]]
) -> Iterator[tuple[str, int]]:
    """Yield what the last answer of a turn says of failed calls, and which of those right before them the others let be.

    Answers and calls come with their messages.
    """
    before = -1
    for text, seq in answers:
        is_last = seq == answers[-1][1]
        said = find_admissions(text, [call[1:] for call in calls if is_last or before <= call[0] < seq])
        yield from ((one, seq) for one in said if is_last or lets_be(one))
        if is_last:
            yield from ((one, seq) for one in _pending(text) if one not in said)
        before = seq


def _pending(answer: str) -> list[str]:
    """Return the sentences of an answer that say of something that it takes effect, or ends, only later."""
    if not TAKES_EFFECT.search(answer):
        return []
    found = (one.text for one in split_sentences(answer) if TAKES_EFFECT.search(one.text))
    return [one_line(one, _SENTENCE) for one in islice(found, _MOST_PENDING)]


def find_admissions(answer: str, calls: Sequence[tuple[str, str, str]]) -> list[str]:
    """Return the sentences of an answer that say that something failed and not that this is over.

    `calls` are the outcome, the words and the error of each call of the turn. A sentence in any language says so of the last
    ones, if nothing went well after them, by naming what they name.
    """
    if not any(outcome == "failed" for outcome, _, _ in calls):
        return []
    last = islice(takewhile(lambda call: call[0], reversed(calls)), _LAST_FAILED)
    named = [call[1:] for call in last if NAME.search(call[2])]
    spoken = (one.text for one in split_sentences(answer))
    told = (one for one in spoken if ADMITS.search(one) or any(names_call(one, *call) for call in named))
    found = (one for one in told if not OVERCOME.search(one))
    return [one_line(one, _SENTENCE) for one in islice(found, _MOST_ADMITTED)]


def lets_be(sentence: str) -> bool:
    """Whether a sentence says that something failed and that it is left as it is."""
    return bool(LETS_BE.search(sentence) and ADMITS.search(sentence))


def is_about_call(sentence: str, command: str, error: str) -> bool:
    """Whether a sentence speaks of a call: it shares words with the command and its error, besides those of a path."""
    words = {one.lower() for one in WORD.findall(PATH_WORD.sub(" ", sentence))} - IDLE_WORDS
    return len(words & {one.lower() for one in WORD.findall(f"{command[:_COMMAND]} {error}")}) >= _SHARED


def names_call(sentence: str, command: str, error: str) -> bool:
    """Whether a sentence, in whatever language, holds names that stand in a command and its error."""
    named = set(NAME.findall(sentence))
    if len(named) < _SHARED or named.isdisjoint(NAME.findall(error)):
        return False
    return len(named & set(NAME.findall(f"{command[:_COMMAND]} {error}"))) >= _SHARED


_SHARED = 2  # words


_CLAIMED = {"b": "build", "c": "build", "l": "lint", "e": "lint"}


def claimed_kinds(answer: str) -> tuple[str, ...]:
    """Return the kinds of checks that an answer says pass, without reservation."""
    found = (one for one in CLAIMS_PASS.finditer(answer) if not UNSURE.search(_sentence_at(answer, one)))
    words = ((one[1] or one[2] or one[3]).lower() for one in found)
    return tuple(dict.fromkeys(_CLAIMED.get(word[0], "test" if word.startswith("te") else "types") for word in words))


def _sentence_at(text: str, found: re.Match[str]) -> str:
    first = max(text.rfind(sign, 0, found.start()) for sign in ".\n!")
    ends = [at for sign in (". ", "\n", "!") if (at := text.find(sign, found.end())) >= 0]
    return text[first + 1 : min(ends, default=len(text))]
