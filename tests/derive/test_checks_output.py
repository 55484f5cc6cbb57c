"""How a check ended, as its output says."""

from __future__ import annotations

import pytest

from everturn.derive.checks import failing_names, has_crashed, is_no_failure, is_running, read_output, shown_part


@pytest.mark.parametrize(
    ("kind", "output", "count"),
    [
        ("test", "== 2 failed, 3 passed, 1 warning in 0.12s ==", 2),
        ("test", "1 passed, 2 errors in 0.10s", 2),
        ("test", "FAILED (failures=1, errors=2)", 1),
        ("test", "Tests:       1 failed, 2 passed, 3 total", 1),
        ("test", " Test Files  1 failed | 2 passed (3)\n      Tests  4 failed | 9 passed (13)", 4),
        ("test", "  12 passing (1s)\n  3 failing", 3),
        ("test", " 72 pass\n 41 fail\n 4 errors", 41),
        ("test", "# pass 3\n# fail 2", 2),
        ("test", "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tshop/api\t0.1s", 0),
        ("test", "test result: FAILED. 3 passed; 2 failed; 0 ignored", 2),
        ("test", "10 examples, 1 failure", 1),
        ("test", "FAILURES!\nTests: 9, Assertions: 20, Failures: 2.", 2),
        ("test", "50% tests passed, 4 tests failed out of 8", 4),
        ("test", "Executed 3 tests, with 1 failure (0 unexpected)", 1),
        ("test", "00:01 +2 -1: Some tests failed.", 1),
        ("test", "5 tests completed, 2 failed", 2),
        ("test", "[ERROR] Tests run: 5, Failures: 2, Errors: 0", 2),
        ("test", "Failed!  - Failed:     3, Passed:     9", 3),
        ("test", "make: *** [Makefile:3: test] Error 1", 0),
        ("lint", "✖ 5 problems (2 errors, 3 warnings)", 5),
        ("lint", "Found 4 errors.", 4),
        ("lint", "src/a.py:3:1: E501 line too long", 0),
        ("lint", "2 issues:\n* errcheck: 2", 2),
        ("lint", "Summary: 6 issues in 1 file", 6),
        ("types", "a.ts(3,1): error TS2322: no", 0),
        ("types", "Found 7 errors in 2 files (checked 9 source files)", 7),
        ("build", "ERROR: failed to solve: process did not complete", 0),
        ("build", "│ Error: Unsupported argument", 0),
        ("build", "src/main.c:3:5: error: expected ';'", 0),
        ("build", "error[E0308]: mismatched types", 0),
        ("ci", "X main CI · 123", 0),
        ("ci", "build\tfail\t1m\thttps://example.org", 0),
        ("commit", "husky - pre-commit script failed (code 1)", 0),
        ("push", " ! [rejected]        main -> main (fetch first)", 0),
    ],
)
def test_failures_are_read_and_counted(kind: str, output: str, count: int) -> None:
    outcome = read_output(kind, f"$ the command\nsome text\n{output}\n")
    assert (outcome.verdict, outcome.count) == ("failed", count)
    assert outcome.line in " ".join(output.split())


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("test", "3 passed in 0.12s"),
        ("test", "Ran 3 tests in 0.1s\n\nOK"),
        ("test", "Tests:       3 passed, 3 total"),
        ("test", " 72 pass\n 0 fail"),
        ("test", "ok  \tshop/api\t0.1s"),
        ("test", "test result: ok. 3 passed; 0 failed"),
        ("test", "10 examples, 0 failures"),
        ("test", "100% tests passed, 0 tests failed out of 8"),
        ("lint", "All checks passed!"),
        ("lint", "0 issues."),
        ("lint", "✖ 5 problems (0 errors, 5 warnings)"),
        ("lint", "Checked 286 files in 126ms. Fixed 1 file."),
        ("types", "Success: no issues found in 9 source files"),
        ("build", "✓ built in 3.1s"),
        ("ci", "All checks were successful"),
    ],
)
def test_success_is_read(kind: str, output: str) -> None:
    assert read_output(kind, output).verdict == "passed"


def test_no_summary_is_no_verdict() -> None:
    assert read_output("test", "collecting ...").verdict == ""
    assert read_output("test", "the word failed in a sentence").verdict == ""


def test_names_of_tasks_and_colours_do_not_hide_a_summary() -> None:
    text = shown_part("[lint:go] \x1b[31m1 issues:\x1b[0m\n[lint:go] * staticcheck: 1")
    assert read_output("lint", text).count == 1


def test_a_long_output_is_read_at_both_ends() -> None:
    text = shown_part("x" * 100_000 + "\n3 failed, 1 passed in 0.1s\n")
    assert len(text) < 20_000 and read_output("test", text).count == 3


def test_failing_files_are_named() -> None:
    assert failing_names("FAILED tests/a.py::test_x - E\nFAILED tests/a.py::test_y\n") == ("tests/a.py",)
    assert failing_names(" FAIL  src/a.test.ts > x\nFAIL\tshop/api\t0.1s") == ("src/a.test.ts", "shop/api")
    assert failing_names("src/a.ts(3,1): error TS1: x\n./b.go:1:2: error: x") == ("src/a.ts", "b.go")


@pytest.mark.parametrize(
    "output",
    [
        "bash: pytest: command not found",
        "error: unrecognized subcommand 'bun'\n\nUsage: rtk [OPTIONS]",
        "error: unknown option '--write'",
        'npm error Missing script: "x"',
        "make: *** No rule to make target 'x'.  Stop.",
        "Permission for this action was denied by the classifier.",
        "The user doesn't want to proceed with this tool use",
        "Command timed out after 2m 0s",
        "collected 0 items",
        "nothing to commit, working tree clean",
    ],
)
def test_what_stopped_a_command_before_it_checked_anything(output: str) -> None:
    assert is_no_failure(output)


def test_a_crash_and_a_background_run_are_known() -> None:
    assert has_crashed("log\nerror: Cannot find module 'x' from 'y'\n") == "error: Cannot find module 'x' from 'y'"
    assert has_crashed("an error occurred") == ""
    assert is_running("Command running in background with ID: b1") and not is_running("3 passed")


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("test", "FAIL    example/pkg 0.3s"),
        ("lint", "web:lint:  ELIFECYCLE  Command failed with exit code 1."),
        ("lint", " ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL  Command failed with exit code 1: eslint a.ts"),
        ("build", " ✓ Compiled successfully in 6.0s\n[Error: Failed to collect page data for /x] {"),
        ("build", "FATAL ERROR: Ineffective mark-compacts near heap limit"),
        ("commit", "fatal: cannot lock ref 'HEAD': Unable to create 'x.lock': Permission denied"),
    ],
)
def test_a_failure_is_seen_in_the_forms_of_more_tools(kind: str, output: str) -> None:
    assert read_output(kind, shown_part(output)).verdict == "failed"


@pytest.mark.parametrize(
    "output",
    [
        "(eval):1: parse error near `;'",
        "npm error code EAI_AGAIN",
        "a.tsx(6,9): error TS17004: Cannot use JSX unless the '--jsx' flag is provided.",
        "q^C",
    ],
)
def test_more_of_what_stops_a_command_before_it_checks_anything(output: str) -> None:
    assert is_no_failure(output)
