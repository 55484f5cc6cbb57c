"""Lines with which test runners, compilers, linters, build tools, CI and clients say how a check ended.

`FAILED_LINES` and `PASSED_LINES` hold them by the kind of the check; `derive.checks` and `derive.open_failures` read outputs with them.
"""

from __future__ import annotations

import re

from everturn.text.lazy_pattern import lazy_pattern

COLOUR = lazy_pattern(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
#: The name of a task before each of its lines.
TASK_NAME = lazy_pattern(r"^(?:\[[a-z][\w:.-]{0,40}\] (?!ERROR)|[@\w/.-]{1,80}:[a-z][\w:-]{1,30}: )", re.MULTILINE)
TURBO_TASK = lazy_pattern(r"^[@\w/.-]{1,80}:(?:lint|test|build|type-?check|check)[\w:-]{0,20}: ", re.MULTILINE)
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
    r"^fatal: (?:[Cc]ould not read (?:from remote|Username|Password)|unable to access|Authentication failed|unable to connect|Not possible to fast-forward|The remote end|refusing to merge|early EOF|remote error)", r"^ ! \[(?:remote )?rejected\]", r"^error: failed to push", r"^ssh: ", r"Permission denied \(publickey",
)  # fmt: skip
_MERGE_FAILED = (
    *_PUSH_FAILED,
    r"^CONFLICT ", r"^error: [^\n]*(?:merge|overwritten|conflict|could not apply)", r"^fatal: (?:You have not concluded|Exiting because of|refusing to merge|Not possible)", r"^fatal: [^\n]{0,200}stash", r"^error: could not restore untracked files from stash",
)  # fmt: skip
FAILED_LINES: dict[str, tuple[str, ...]] = {
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
PASSED_LINES: dict[str, tuple[str, ...]] = {
    "check": (*_TESTS_PASSED, *_LINT_PASSED, *_TYPES_PASSED),
    "test": _TESTS_PASSED,
    "lint": _LINT_PASSED,
    "types": _TYPES_PASSED,
    "build": _BUILD_PASSED,
    "commit": (r"^\[[^\]\n]+ [0-9a-f]{6,40}\] ",),
    "push": (r"^Everything up-to-date", r"^[ \t]+[0-9a-f]+\.\.[0-9a-f]+\s", r"^ \* \[new ", r"^Already up to date", r"^Fast-forward", r"set up to track"),
    "merge": (r"^Dropped refs/stash@", r"^Already up to date", r"^Fast-forward", r"^[ \t]+[0-9a-f]+\.\.[0-9a-f]+\s", r"^Merge made by", r"^Successfully rebased", r"^\[[^\]\n]+ [0-9a-f]{6,40}\] "),
    "ci": _CI_PASSED,
}  # fmt: skip
NAMED_FAILURE = lazy_pattern(
    r"^(?:FAILED|ERROR) ([\w./\\-]+\.py)(?:::\S+)?|^[ \t]*(?:FAIL|❌|❯|×) +([\w./\\@-]+\.[cm]?[jt]sx?)\b|^FAIL\t(\S+)|^([\w./\\@-]+\.[cm]?tsx?)\(\d+,\d+\): error|"
    r"^([\w./\\@-]+\.(?:py|go|rs|tsx?))[:]\d+(?::\d+)?:? (?:-? ?error\b|[A-Z]+\d+ )",
    re.MULTILINE,
)
CRASH = lazy_pattern(
    r"^Traceback \(most recent call last\)|^  File \"[^\"\n]{1,300}\", line \d+, in |^(?:error|Error): Cannot find (?:module|package)|^panic: |^thread '[^']*' panicked|^Segmentation fault|\(core dumped\)|^FATAL ERROR: |^Uncaught |"
    r"^(?:Reference|Type|Syntax|Range)Error: |^Error(?: [a-z]+){1,4}: \S|^(?:could not|cannot|failed to|unable to) (?!open|read|stat|access|find (?:module|package))\w|^(?:\w+ )?Error: (?:[a-z]+ )?E[A-Z]{4,}\b|^\W*Failed to start\b|^[ \t]*Unhandled (?:rejection|exception)|^Exception in thread|^Fatal (?:error|Python error): |^\S*Error \[ERR_\w+\]: ",
    re.MULTILINE,
)
#: The end of a trace of Python.
RAISED = lazy_pattern(
    r"^(?:E +)?((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Exit|Interrupt|Failed|NotFound|Timeout)\b(?::[^\n]{0,300})?)$",
    re.MULTILINE,
)
NOT_RUN = lazy_pattern(
    r"command not found|not a valid statement separator|: ParserError:|\balready exists\b|not recognized as (?:an internal|the name)|^\S*:(?: line \d+:)? \S*: No such file or directory|is not a (?:\S+ )?command|"
    r"unrecogni[sz]ed (?:sub)?(?:command|option|argument)|[Uu]nknown (?:sub)?(?:option|flag|command|argument|arguments)|unexpected argument|[Ii]nvalid (?:option|argument|flag)|"
    r"no such (?:option|command|subcommand)|Unrecognized option|unexpected option|flag provided but not defined|^[Uu]sage: |error: the following arguments are required|accepts (?:at most )?\d+ arg\(s\)|requires (?:at least|exactly) \d+ arg|[Mm]issing required (?:argument|flag)|"
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
STOPPED = lazy_pattern(
    r"\^C\s*$|KeyboardInterrupt|Command timed out|timed out after|\bSIGINT\b|\bSIGTERM\b|signal: interrupt|Aborted by|was interrupted",
    re.MULTILINE,
)
RUNNING = lazy_pattern(
    r"running in (?:the )?background|Process running with session|still running|moved to (?:the )?background|Background process started",
    re.IGNORECASE,
)


# --- outputs of a call ---
ECHOED = lazy_pattern(r"^[$>] (\S[^\n]{2,300})$", re.MULTILINE)
#: How clients report what their editor or language server found in a file that was saved, and its errors.
SAVED = lazy_pattern(
    r"problems detected after saving the file|(?:This file has|LSP) errors(?: detected in this file)?, please fix"
)
PROBLEM = lazy_pattern(
    r"^[ \t]*(?:- \[[^\]\n]{0,40}\bError\]|(?:ERROR|Error) \[\d{1,7}:\d{1,7}\]) \S.{0,400}$", re.MULTILINE
)
TROUBLE = lazy_pattern(
    r"^(?![ \t]*[✓✔√]).*(?:(?<![\w/.-])(?<!\b0 )(?<!\bno )(?:errors?|fail(?:ed|s|ures?|ing)?|exception|fatal|panic|abort(?:ed|ing)?|cannot|timed out)(?![\w/-])"
    r"|exit(?:ed)? (?:with )?(?:code|status):? *[1-9]|[✖✗✘❌×]|not ok|\.\.\. ?\(?(?:output )?truncated)",
    re.IGNORECASE | re.MULTILINE,
)
CUT_SHORT = lazy_pattern(r"\|\s*(?:head|[ef]?grep|rg|awk|sed|wc|Select-\w+)\b|/dev/null|&\s*$|--quiet|--silent")
#: A list of CI runs, of which only the newest counts, and only if it went well; errors of a compiler that was called without the settings of the project.
LISTS_RUNS = lazy_pattern(r"\bgh run list\b")
NEWEST_RUN = lazy_pattern(r"^(?:completed|in_progress|queued)\t[^\n]*|^\[\{\"conclusion\":\s*\"\w*\"", re.MULTILINE)
UNCONFIGURED = lazy_pattern(r"error TS(?:17004|6142|5\d{3}|18003):")
#: What a client prints for an empty output, and filters that let only failures through.
NO_OUTPUT = lazy_pattern(r"\((?:\w+ completed with )?no output\)", re.IGNORECASE)
ONLY_FAILURES = lazy_pattern(
    r"\|\s*[ef]?grep\s+(?:-\w+\s+)*?(?:-\w*v\w*\s|[^|]{0,80}(?:fail|error|panic|✗|✘|not ok))", re.IGNORECASE
)
ECHO_STATUS = lazy_pattern(r"echo\s+(?:-\w+\s+)?[\"']?([^\"'$|;&]{0,40})\$(?:\?|\{?PIPESTATUS)")


# --- how a call as a whole ended, by one line of its output ---
#: Lines that clients and terminals add to the output of a command.
CLIENT_LINE = lazy_pattern(
    r"(?:Exit [Cc]ode: -?\d+|Wall time\b|Output:$|Chunk ID: |Process exited with code |Original token count: |Total output lines: |Command: |Directory: "
    r"|Error: \(none\)|Signal: |Background PIDs: |Process Group PGID: |Shell cwd was reset to |Command executed\.$|(?:\(\S{1,40}\) )?\S{1,60}@\S{1,60}[: ][^\n]{0,200}[$%#] "
    r"|PS [A-Z]:\\[^>\n]{0,200}>|</?[\w-]{1,40}>$|```|\W{1,200}$|\(eval\):\d+: no such file or directory: NUL)"
)
#: What a client says that could not run a command of its own, and that command.
CLIENT_FAILED = lazy_pattern(
    r"\s*((?:Unable to|Failed to|Could not|Cannot) \w[^\n]{0,300})\n(?:[^\n]{0,300}\n){0,3}?\s{0,4}cmdline: ([^\n]{3,2000})"
)
#: A line of a script, by its name: the settings of a shell complain in the output of any command.
SCRIPT_LINE = lazy_pattern(r"/[^\s:]{1,200}/([\w.-]{1,60}\.(?:sh|bash|zsh)): line \d+: ")
_ERROR_WORD = (
    r"(?:(?i:fatal(?: error)?|(?:[a-z]+ )?error|panic|fehler|erreur|errore|erro|错误|錯誤|エラー|오류|ошибка)|ERR!)"
)
_STATED = (
    rf"[>*!✖✗✘❌×⨯⚠\[ ]{{0,4}}(?:remote: |docker: |npm |\S{{1,40}}: )?{_ERROR_WORD}\]?(?:[\[ ]\w{{1,12}}\]?)?(?: occurred)? ?[:：!](?! ?(?:\(?none\b|null\b|0\b|false\b|undefined\b))\s*\S",
    r"\[?(?:ERROR|FATAL)\]?\s+\S", r"npm (?:ERR!|error) ", r"(?:[\w.]{1,80}\.)?\w{0,60}(?:Error|Exception)(?: \[\w{1,60}\])?: \S", r"Traceback \(most recent call last\)",
    r"[*\[\]\w ]{0,12}(?:BUILD|Build|Compilation) (?:FAILED|failed|FAILURE)\b",
)  # fmt: skip
_MISSING = r"(?:No such (?:file|container|device|image|host)\b|[Pp]ermission denied|Operation not permitted|Not a directory|Is a directory|cannot access|[Cc]onnection refused|Could not resolve host|Keine Berechtigung|Datei oder Verzeichnis nicht gefunden|Aucun fichier ou dossier|No existe el (?:fichero|archivo)|そのようなファイルやディレクトリはありません|没有那个文件或目录)"
_SHELL_TROUBLE = (
    r"[^\n]{0,160}\bcommand not found\b", rf"-?[\w./()+-]{{1,80}}(?:\[\d+\])?: [^\n]{{0,300}}{_MISSING}", r"[^\n]{0,160}\bis not recognized as (?:an internal|the name)",
    r"\+ (?:CategoryInfo|FullyQualifiedErrorId)\s*:", r"[^\n]{0,160}\bNo module named \S", r"Command '[^'\n]{1,80}' not found",
)  # fmt: skip
#: Lines that say that something failed even if the command ended with status 0.
STATES_FAILURE = lazy_pattern(f"(?:{'|'.join(_STATED)})")
#: The same, and those that a command may print besides its work: they count where no status is seen.
SAYS_FAILED = lazy_pattern(
    rf"(?![Ww]arning\b|WARN)(?:{'|'.join((*_STATED, *_SHELL_TROUBLE))}|\W{{0,4}}(?:[Ff]ailed to|[Uu]nable to|[Cc]ould not|[Cc]annot|[Cc]an't) \w|\W{{0,4}}(?:BUILD|Build|build|Compilation|Command|command) (?:FAILED|failed)\b"
    r"|[^\n]{0,80}\b(?:[Uu]nknown|[Uu]nrecogni[sz]ed|[Ii]nvalid|illegal) (?:sub)?(?:command|option|argument|flag)s?\b|curl: \(\d+\)|ssh: |\S{0,40}: \*\*\* |FAILED\b|panic: |Segmentation fault|❌ "
    r"|\s?(?:ELIFECYCLE|ERR_\w+)|[^\n]{0,80}exit(?:ed with)? (?:code|status):? [1-9])"
)
#: Lines with which programs say that they did what was asked.
SAYS_DONE = lazy_pattern(
    r"Successfully (?:installed|uninstalled|built|tagged|created|deployed|published|copied|removed)\b|(?:added|removed|changed) \d+ packages?\b|up to date\b|Already up[ -]to[ -]date|Everything up-to-date|✨ +Done in |Done in [\d.]+m?s\b|BUILD SUCCESS|Build succeeded"
)
#: The complaints of a program that shows files or searches.
OWN_TROUBLE = lazy_pattern(
    f"(?:fatal: |{'|'.join(_SHELL_TROUBLE)}|[^\\n]{{0,80}}\\b(?:unknown|unrecognized|invalid|illegal) option\\b)"
)
#: Of several lines, the one to show: it names the error.
TOLD_ERROR = lazy_pattern(rf"(?:{'|'.join(_STATED[:4])}|\+ CategoryInfo)")
#: How a call was stopped before it was done.
STOPPED_LINES = (
    ("denied", lazy_pattern(r"The user doesn't want to (?:proceed|take this action)|User (?:rejected|denied|declined)\b|[^\n]{0,60}\b(?:rejected|denied|declined) by (?:the )?user\b")),
    ("interrupted", lazy_pattern(r"\[Request interrupted by user|[^\n]{0,60}\b(?:interrupted|aborted) by (?:the )?user\b|\^C$|KeyboardInterrupt\b")),
    ("cancelled", lazy_pattern(r"(?:[│├└┌■◇◆▲✖✗×]\s{0,3}){0,3}(?:[^\n]{0,120}[\[(][yY](?:es)?/[nN]o?[\])]:? ?)?(?:(?:Operation|Request|Command|Task) (?:was )?)?(?:[Cc]ancell?ed|[Aa]borted|ABORTED|Abgebrochen|Annulé|Cancelado)[.!]{0,3}$")),
    ("timed out", lazy_pattern(r"(?:Error: )?(?:Command|The command|Process) timed out\b|[^\n]{0,60}\btimed out after \d")),
)  # fmt: skip
#: What a service answers that does not let the caller in, or lets nobody in for some time.
_LOCKED_OUT = (
    r"[^\n]{0,60}\b(?:requires? (?:authentication|authorization)|(?:not|aren't) (?:logged in|authenticated|authorized)|[Uu]nauthorized\b|[Aa]uthentication (?:failed|required)"
    r"|(?:hit|reached|exceeded) (?:your|the) (?:[\w-]{1,20} ){0,2}(?:limit|quota)|(?:usage|rate|session) limit (?:reached|exceeded)|[Qq]uota exceeded)[^\n]{0,160}$"
)
LOCKED_OUT = lazy_pattern(_LOCKED_OUT)
#: What a client answers if a call would have needed a permission that nobody gave, and nobody refused either.
NOT_GRANTED = lazy_pattern(
    r"[^\n]{0,80}\brequested permissions? to\b|[^\n]{0,200}\b(?:requires|needs|waiting for) (?:your )?approval\b|[^\n]{0,200}\brejected: blocked by policy\b"
)
#: The same, and a plain error.
REFUSED = lazy_pattern(rf"(?:MCP )?(?:[Ee]rror|ERROR)\b[: ]|{_LOCKED_OUT}")
#: What a tool says that could not do its work; a call in the wrong order and one that was not over say otherwise.
SAYS_TROUBLE = lazy_pattern(r"(?i)\b(?:fail|error|denied|cannot|could not|not found|no match)")
#: What stops a command before it does anything, and what nobody can mend by another option.
LACKS = lazy_pattern(
    r"not a git repository|No such file|not found\b|No module named|Cannot find module|ENOENT|EAI_AGAIN|[Dd]ocker (?:API|daemon)|[Pp]ermission|Operation not permitted"
)
#: A limit that is lifted at a time that the service names.
PASSES = lazy_pattern(r"(?i)\bresets?\b|\bavailable again\b|\btry again (?:at|in|later)\b")
