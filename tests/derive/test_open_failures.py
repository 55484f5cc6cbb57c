"""What opens a failure, what continues it, and what closes it."""

from __future__ import annotations

import pytest

from everturn.derive.call_results import CheckResult, claimed_kinds, find_failed_notice, judge_checks
from everturn.derive.checks import CheckRun
from everturn.derive.failures import Complaint
from everturn.derive.open_failures import (
    FailureEvent,
    OpenFailure,
    advance_failures,
)
from everturn.model.archive import Call
from everturn.model.conversation import CallStart

FAILED = "== 2 failed, 3 passed in 0.1s =="
PASSED = "5 passed in 0.1s"


def judged(
    command: str, output: str = "", exit_status: int | None = 0, error_class: str = ""
) -> tuple[CheckResult, ...]:
    status = "error" if exit_status or error_class else "ok"
    call = Call(status=status, exit_status=exit_status, error_class=error_class)
    return judge_checks(call, CallStart("c", "Bash", "shell", command=command), output)


def verdicts(
    command: str, output: str = "", exit_status: int | None = 0, error_class: str = ""
) -> list[tuple[str, str]]:
    return [(one.run.kind, one.verdict) for one in judged(command, output, exit_status, error_class)]


def folded(*events: FailureEvent | tuple[str, str, int | None], turn: int = 0) -> tuple[OpenFailure, ...]:
    made = [
        one if isinstance(one, FailureEvent) else FailureEvent(at, one[0], "", judged(*one))
        for at, one in enumerate(events)
    ]
    return advance_failures((), made, turn)


def test_an_exit_status_that_is_seen_decides() -> None:
    assert verdicts("pytest", FAILED, 0) == [("test", "passed")]
    assert verdicts("pytest", "no summary", 1) == [("test", "failed")]


def test_behind_a_pipe_the_output_decides() -> None:
    assert verdicts("pytest | tail -3", FAILED) == [("test", "failed")]
    assert verdicts("pytest | tail -3", PASSED) == [("test", "passed")]
    assert verdicts("pytest | tail -3", "nothing to see") == [("test", "clean")]
    assert verdicts("pytest | head -3", "nothing to see") == []
    assert verdicts("pytest | tail -3", "teardown failed") == []
    assert verdicts("tsc --noEmit | head") == [("types", "passed")]
    assert verdicts("tsc --noEmit > /dev/null; true") == []


def test_a_filter_that_shows_only_failures_and_showed_none_is_a_success() -> None:
    assert verdicts('go test ./... | grep -v "^ok"') == [("test", "passed")]
    assert verdicts("npm test | grep -iE 'fail|error'", "(Bash completed with no output)") == [("test", "passed")]
    assert verdicts("npm test | grep harbour") == []


def test_a_conflict_is_over_once_it_is_committed() -> None:
    conflict = ("git fetch && git merge main", "CONFLICT (content): Merge conflict in tides.py", 1)
    assert len(folded(conflict)) == 1
    assert len(folded(conflict, ("git fetch", "", 0))) == 1
    assert folded(conflict, ("git add . && git commit --no-edit", "", 0)) == ()
    stuck = ("git merge main", "fatal: You have not concluded your cherry-pick", None)
    assert [one.kind for one in folded(stuck)] == ["merge"]


def test_a_build_that_ends_well_had_warnings_before() -> None:
    warned = "./pier.ts\nModule not found: Can't resolve 'rope'\n\n"
    assert verdicts("npx next build", f"{warned} ✓ Compiled successfully", None) == [("build", "passed")]
    assert verdicts("npx next build", f"{warned}○  (Static)  prerendered as static content\n", None) == [
        ("build", "passed")
    ]
    assert verdicts("npx next build", f" ✓ Compiled successfully\n{warned}", None) == [("build", "failed")]
    assert verdicts("pytest | tail -9", f"{FAILED}\n{PASSED}") == [("test", "failed")]


def test_subcommands_that_check_are_checks_of_any_program() -> None:
    assert verdicts("npx hardhat compile", "Error HH8: no account", 1) == [("build", "failed")]
    assert verdicts("alembic check", "Traceback (most recent call last):", 1) == [("check", "failed")]
    assert not folded(("cd pier && npx hardhat compile", "no", 1), ("npx hardhat compile", "Compiled 3 files", 0))


def test_of_programs_in_a_chain_the_one_that_the_crash_names_has_failed() -> None:
    crash = 'Traceback (most recent call last):\n  File "a.py", line 3, in pier\nKeyError: 7'
    assert [one.run.tool for one in judged("npm pkg set type=module && ferry load", "TypeError: x", 1)] == ["ferry"]
    assert judged("./a.py && ./b.py", crash, 1)[0].run.tool == "a.py"
    assert judged("./c.py && ./b.py", crash, 1)[-1] == CheckResult(
        CheckRun("program", "any", "b.py", alone=True), "failed", 0, "KeyError: 7"
    )


def test_a_printed_exit_status_counts() -> None:
    assert verdicts('make build; echo "EXIT=$?"', "log\nEXIT=0") == [("build", "passed")]
    assert verdicts('make build; echo "EXIT=$?"', "log\nEXIT=2") == []  # it may have been called wrongly


def test_without_an_exit_status_the_output_decides() -> None:
    assert verdicts("bun test", " 3 pass\n 41 fail", None) == [("test", "failed")]
    assert verdicts("bun test", " 3 pass\n 0 fail", None) == [("test", "passed")]


def test_of_a_chain_the_one_whose_output_says_so_has_failed() -> None:
    command = "npm run test && npm run lint && npm run build"
    output = "Tests:       3 passed, 3 total\n✖ 2 problems (2 errors, 0 warnings)"
    assert verdicts(command, output, 1) == [("test", "passed"), ("lint", "failed")]


def test_a_check_is_not_blamed_for_another_command() -> None:
    assert verdicts("npm install && npm test", "npm error ERESOLVE", 1) == []
    assert verdicts("npm test && cp a b", PASSED, 1) == []


def test_what_did_not_check_anything_is_no_verdict() -> None:
    assert verdicts("pytest --bogus", "error: unrecognized arguments: --bogus", 4) == []
    assert verdicts("pytest", "bash: pytest: command not found", 127) == []
    assert verdicts("pytest", "", None, "rejected") == verdicts("pytest", "", None, "interrupted") == []
    assert verdicts("pytest", FAILED, None, "timeout") == []
    assert verdicts("git commit -m x", "nothing to commit, working tree clean", 1) == []
    assert verdicts("gh run view 7", "some run") == []


def test_a_program_fails_only_by_dying() -> None:
    assert verdicts("shop list", "error: Cannot find module 'x' from 'y'", 1) == [("program", "failed")]
    assert verdicts("shop list", "nothing found", 1) == []


def test_a_program_without_an_exit_status_fails_by_its_words() -> None:
    assert verdicts("ferry start --quay 8", "Error starting the ferry: no such quay", None) == [("program", "failed")]
    assert verdicts("ferry start --quay 8", "Error starting the ferry: it already exists", None) == []
    assert verdicts("ferry start --quay 8", "on its way", None) == [("program", "clean")]


def test_a_failure_stays_until_the_same_or_a_wider_run_passes() -> None:
    (item,) = folded(("pytest tests/a", FAILED, 1), ("pytest tests/b", PASSED, 0))
    assert (item.what, item.text, item.count, item.seq) == ("pytest tests/a", FAILED, 2, 0)
    assert folded(("pytest tests/a", FAILED, 1), ("cd /x && pytest -q | tail", PASSED, 0)) == ()


def test_runs_of_one_check_are_one_failure() -> None:
    (item,) = folded(("pytest tests/a", FAILED, 1), ("pytest tests/b", FAILED, 1), ("pytest", FAILED, 1))
    assert (item.what, item.times, item.seq, item.last_seq) == ("pytest", 3, 0, 2)


def test_a_narrower_run_closes_it_when_it_covers_every_file_that_was_named() -> None:
    output = "FAILED tests/a.py::test_x\nFAILED tests/b.py::test_y\n9 failed, 3 passed in 0.1s"
    (item,) = folded(("pytest", output, 1), ("pytest tests/a.py", PASSED, 0))
    assert item.names == ("tests/b.py",)
    assert folded(("pytest", output, 1), ("pytest tests/a.py", PASSED, 0), ("pytest tests/b.py", PASSED, 0)) == ()
    assert len(folded(("pytest", output, 1), ("pytest tests -k one", PASSED, 0))) == 1


def test_a_narrower_run_with_as_many_failures_has_found_them_all() -> None:
    assert folded(("npm test", " 1 fail", 1), ("npm test a.ts", " 1 fail", 1), ("npm test a.ts", " 0 fail", 0)) == ()
    assert (
        len(folded(("npm test", " 3 fail", 1), ("npm test a.ts", " 1 fail", 1), ("npm test a.ts", " 0 fail", 0))) == 1
    )


def test_edits_since_the_last_run_are_counted() -> None:
    edit = FailureEvent(1, changed=("a.py",))
    (item,) = folded(("pytest", FAILED, 1), edit, FailureEvent(2, changed=("b.py",)))
    assert (item.edits, item.changed) == (2, ("a.py", "b.py"))
    (item,) = folded(("pytest", FAILED, 1), edit, ("pytest", FAILED, 1))
    assert item.edits == 0


def test_a_complaint_holds_until_the_person_confirms() -> None:
    said = FailureEvent(0, complaint=Complaint("it crashes"))
    (item,) = folded(said, ("pytest", PASSED, 0))
    assert (item.kind, item.what) == ("reported", "it crashes")
    assert folded(said, FailureEvent(1, confirms=True)) == ()


def test_a_complaint_that_names_checks_holds_until_all_of_them_pass() -> None:
    said = FailureEvent(0, complaint=Complaint("lint and test failures", ("lint", "test")))
    assert len(folded(said, ("npm test", PASSED, 0))) == 1
    assert folded(said, ("npm test", PASSED, 0), ("npm run lint", "", 0)) == ()


def test_a_complaint_that_names_a_command_holds_until_it_goes_well() -> None:
    said = FailureEvent(0, complaint=Complaint("`shop explain` dies", commands=("shop explain",)))
    assert len(folded(said, FailureEvent(1, ran=("shop list",)))) == 1
    assert folded(said, FailureEvent(1, ran=("shop explain --all",))) == ()


def test_a_repeated_complaint_is_one() -> None:
    first = FailureEvent(0, complaint=Complaint("the cart page is empty", terms=("cart", "page")))
    (item,) = folded(first, FailureEvent(5, complaint=Complaint("still empty", again=True)))
    assert (item.what, item.times, item.seq, item.last_seq) == ("still empty", 2, 0, 5)


def test_what_was_changed_long_ago_without_another_complaint_is_accepted() -> None:
    known = folded(FailureEvent(0, complaint=Complaint("it crashes")), FailureEvent(1, changed=("a.py",)))
    assert advance_failures(known, (), 11) == known
    assert advance_failures(known, (), 12) == ()


def test_errors_that_the_editor_found_hold_until_the_file_is_saved_without_any_or_a_check_passes() -> None:
    def saved(seq: int, output: str, path: str = "src/app.ts") -> list[FailureEvent]:
        results = judge_checks(Call(status="ok"), CallStart("c", "replace_in_file", "edit", path), output)
        return [FailureEvent(seq, f"replace_in_file {path}", "", results), FailureEvent(seq, changed=(path,))]

    cline = "Saved.\n\nNew problems detected after saving the file:\nsrc/app.ts\n- [ts Error] Line 2: No type 'x'.\n"
    opencode = (
        "\nThis file has errors, please fix\n<file_diagnostics>\nERROR [2:7] Cannot find name 'x'.\n</file_diagnostics>"
    )
    for output, line in ((cline, "- [ts Error] Line 2: No type 'x'."), (opencode, "ERROR [2:7] Cannot find name 'x'.")):
        (failure,) = advance_failures((), saved(1, output), 0)
        assert (failure.kind, failure.text, failure.names) == ("editor", line, ("src/app.ts",))
        assert advance_failures((failure,), saved(2, "Saved.", "src/other.ts"), 1)
        assert not advance_failures((failure,), saved(2, "Saved."), 1)
        assert not advance_failures((failure,), [FailureEvent(2, "tsc", "", judged("tsc --noEmit"))], 1)
    hint = cline.replace("ts Error", "ts Warning")
    assert not advance_failures((), saved(1, hint), 0)


def test_the_checks_of_a_hook_passed_when_the_commit_went_well() -> None:
    hooks = "$ pytest tests\n5 passed\n$ ruff check\n[main 1a2b3c4] Add the basket"
    assert folded(("pytest tests", FAILED, 1), ("git commit -m basket", hooks, 0)) == ()
    assert len(folded(("pytest tests", FAILED, 1), ("git commit -m basket", "[main 1a2b3c4] Add the basket", 0))) == 1


def test_a_failure_stays_whatever_else_happens_until_its_check_passes() -> None:
    others = [
        ("ls -la", "a", 0),
        ("ruff check", "ok", 0),
        ("git push", "Everything up-to-date", 0),
        ("npm run build", "", 1),
    ]
    for number in range(len(others) + 1):
        kept = folded(("pytest tests/api", FAILED, 1), *others[:number], FailureEvent(50, changed=("a.py",)))
        assert any(one.what == "pytest tests/api" for one in kept), number
    assert not any(
        one.what == "pytest tests/api"
        for one in folded(("pytest tests/api", FAILED, 1), *others, ("pytest", PASSED, 0))
    )


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        ("All tests pass and the build succeeds.", ("test", "build")),
        ("The type check is clean; lint passes.", ("types", "lint")),
        ("Tests should pass now.", ()),
        ("All tests pass except two that still fail.", ()),
        ("The build doesn't pass yet.", ()),
        ("I built the page.", ()),
        ("It compiles successfully.", ("build",)),
        ("ESLint extension successfully installed.", ()),
    ],
)
def test_an_answer_claims_what_passes_only_without_reservation(answer: str, kinds: tuple[str, ...]) -> None:
    assert claimed_kinds(answer) == kinds


def test_a_claim_ends_a_failure_only_after_changes() -> None:
    failed = FailureEvent(3, "npm run build", "", (CheckResult(CheckRun("build", "js"), "failed", 1, "Failed"),))
    claim = FailureEvent(9, claims=("build",))
    assert len(advance_failures((), [failed, claim], 0)) == 1
    assert advance_failures((), [failed, FailureEvent(5, changed=("a.ts",)), claim], 0) == ()


REPORT = Complaint("the drawer does not close", terms=("drawer", "close"))


def left(*messages: str | Complaint, edits: int = 1) -> int:
    """Return how many reports are left after some messages, one in each turn."""
    known = advance_failures((), [FailureEvent(0, complaint=REPORT, said=REPORT.text)], 0)
    changed = ("src/drawer.ts",) * edits
    known = advance_failures(known, [FailureEvent(1, changed=changed)], 0) if edits else known
    for turn, one in enumerate(messages, 1):
        text, complaint = (one, None) if isinstance(one, str) else (one.text, one)
        known = advance_failures(known, [FailureEvent(turn * 10, complaint=complaint, said=text)], turn)
    return len(known)


def test_a_report_is_settled_when_the_person_turns_to_other_things() -> None:
    other = "Translate the landing page into Dutch."
    assert left(other) == 1
    assert left(other, "Add the opening hours below every picture.") == 0
    assert left(other, "Add the opening hours below every picture.", edits=0) == 1
    assert left(other, other, other, edits=0) == 0


def test_going_on_with_the_same_work_settles_nothing() -> None:
    assert left("commit", "push it please to the remote server", "yes, continue with that plan") == 1
    assert left("Paint the drawer green and yellow.", "How does the handle of that cabinet turn?") == 1
    assert left("关闭按钮", "Fix the merge conflicts, then update the changelog.") == 1


def test_a_different_report_settles_the_one_before() -> None:
    assert left(Complaint("the lamp is broken", terms=("lamp",))) == 1  # the new one
    assert left(Complaint("the lamp is broken", terms=("lamp",)), edits=0) == 2  # nothing was done about the first
    assert left(Complaint("the drawer still does not close", again=True, terms=("drawer",))) == 1


def test_an_edit_without_a_name_is_an_attempt() -> None:
    (item,) = folded(FailureEvent(0, complaint=REPORT, said=REPORT.text), FailureEvent(1, changed=("",)))
    assert (item.edits, item.changed) == (1, ())


def test_a_run_in_which_nothing_speaks_of_a_failure_ends_one_that_was_seen() -> None:
    failed = ("npm run build | tail -20", "Failed to compile.", 0)
    assert folded(failed)
    assert not folded(failed, ("npm run build | tail -9", "12 pages", 0))
    assert folded(failed, ("npm run build | tail -9", "worker exited with code: 1", 0))
    assert folded(failed, ("npm run build | head -9", "12 pages", 0))
    assert folded(failed, ("npm run build:docs | tail -9", "12 pages", 0))
    assert not folded(failed, ("npm run build | tail -9", "○  (Static)   prerendered as static content", 0))


def test_the_order_of_several_checks_does_not_matter() -> None:
    failed = ("npm run typecheck; npm test; npm run lint", "a.ts(1,2): error TS2375: no\nTests  3 passed (3)", None)
    assert folded(failed)
    assert not folded(failed, ("npm run typecheck; npm run lint; npm test", "WARN an error\nTests  3 passed (3)", None))


def test_options_of_a_script_are_no_targets() -> None:
    crash = "Traceback (most recent call last):"
    runs = [(f"python scripts/test_sim.py --shape {one} --save {one}.png", crash, None) for one in ("flat", "round")]
    (only,) = folded(*runs)
    assert only.times == 2
    assert not folded(*runs, ("python scripts/test_sim.py --shape oval", "saved", 0))


def test_a_script_named_after_a_test_file_covers_it() -> None:
    failed = ("node --import tsx/register --test tests/roles.test.ts", "ℹ fail 1", 1)
    assert folded(failed)
    assert not folded(failed, ("pnpm test:roles", "ℹ fail 0", 0))
    assert folded(failed, ("pnpm test:rooms", "ℹ fail 0", 0))


def test_the_newest_run_of_a_list_may_end_a_failure_of_ci() -> None:
    failed = ("gh run view 7", "X main ci · 7\nX Process completed with exit code 1.", 0)
    assert folded(failed)
    assert not folded(failed, ("gh run list --limit 2", "completed\tsuccess\tci\ncompleted\tfailure\tci", 0))
    assert folded(failed, ("gh run list --limit 2", "completed\tfailure\tci\ncompleted\tsuccess\tci", 0))
    assert not folded(("gh run list", "completed\tfailure\tci", 0))


def test_a_compiler_without_the_settings_of_the_project_checks_nothing() -> None:
    output = "\n".join(f"a.tsx({at},1): error TS17004: Cannot use JSX" for at in range(99))
    assert not folded(("npx tsc --noEmit a.tsx", output, 2))
    assert not folded(("cd web && tsc", "The token '&&' is not a valid statement separator.", None))


def test_a_branch_that_cannot_be_left_is_open() -> None:
    failed = (
        "git switch main",
        "error: Your local changes to the following files would be overwritten by checkout:",
        1,
    )
    assert folded(failed)
    assert not folded(failed, ("git checkout main", "Switched to branch 'main'", 0))
    assert not folded(("git checkout -- a.py", "error: pathspec 'a.py' did not match", 1))


def test_a_script_of_the_project_may_crash() -> None:
    assert folded(("npm run seed", "TypeError: room is undefined", 1))
    assert not folded(("npm run seed", "no rooms yet", 1))
    assert not folded(("npm run seed", "npm error Missing script: seed", 1))
    assert not folded(("npm run dev", "ready", 143))
    assert folded(("pnpm serve", '  File "hotel.py", line 3, in open\nOSError: no port', None))
    assert not folded(("npm run seed", "TypeError: room is undefined", 1), ("npm run seed", "7 rooms", 0))


def test_a_deployment_is_a_check_of_its_own() -> None:
    failed = ("vercel --prod --yes", 'Error: Command "npm install" exited with 1', 1)
    assert folded(failed)
    assert folded(failed, ("npm run build", "✓ built in 3s", 0))
    assert not folded(failed, ("vercel deploy --prod", "Production: https://hotel.example", 0))
    assert not folded(("vercel ls", "Error: not linked", 1), ("gcloud run services list", "ERROR: no project", 1))


def test_a_program_that_nobody_runs_again_is_left() -> None:
    known = folded(("python scripts/serve.py", "Traceback (most recent call last):", 1))
    assert advance_failures(known, (), 11) == known
    assert advance_failures(known, (), 12) == ()
    changed = advance_failures(known, [FailureEvent(9, changed=("a.py",))], 1)
    assert advance_failures(changed, (), 7) == changed
    assert advance_failures(changed, (), 8) == ()
    again = ("conda run -n quay python scripts/serve.py", "ready", 0)
    assert not folded(("python scripts/serve.py", "Traceback (most recent call last):", 1), again)


def test_a_check_that_failed_long_ago_is_left_after_edits() -> None:
    known = folded(("pytest", FAILED, 1))
    assert advance_failures(known, (), 90) == known
    known = advance_failures(known, [FailureEvent(9, changed=("a.py",))], 1)
    assert advance_failures(known, (), 39) == known
    assert advance_failures(known, (), 40) == ()


def test_a_script_among_temporary_files_is_no_program_of_the_project() -> None:
    crash = "Traceback (most recent call last):\nKeyError: 'cart'"
    for command in ("python /tmp/try.py", "node /private/tmp/probe.mjs", "bash $TMPDIR/run.sh"):
        assert folded((command, crash, 1)) == ()
    assert (
        len(folded(("python scripts/try.py", crash, 1)))
        == len(folded(("python /tmp/shop/test_cart.py", crash, 1)))
        == 1
    )


def test_who_builds_on_a_name_of_the_error_has_seen_it_work() -> None:
    report = Complaint("NameError: name 'pier_table' is not defined", terms=("pier",))

    def kept(said: str) -> int:
        known = advance_failures((), [FailureEvent(0, complaint=report, said=report.text)], 0)
        return len(advance_failures(known, [FailureEvent(10, said=said)], 1))

    assert kept("Can you add a column to the pier_table?") == kept("Sort pier_table by name.") == 0
    assert kept("What is the pier_table?") == kept("pier_table is still empty") == kept("Go on with the harbour.") == 1


def test_a_program_that_says_error_has_failed_even_with_status_0() -> None:
    assert verdicts("./dock.sh --json", "ERROR: two quays are named 001\n{}") == [("program", "failed")]
    assert verdicts("./dock.sh --json", "12 quays\n{}") == [("program", "passed")]


def test_what_is_put_away_may_be_lost() -> None:
    assert verdicts("git stash pop", "fatal: 'refs/stash@{0}' is not a stash-like commit", 1) == [("merge", "failed")]
    assert verdicts("git stash && pytest; git stash pop", "x") == []


def test_tests_of_a_compiled_language_show_that_it_builds_again_whatever_they_name() -> None:
    build = ("dotnet build src/Quay.sln", "Build FAILED.\n    2 Error(s)", 1)
    passed = "Passed!  - Failed:     0, Passed:    20, Skipped:     0, Total:    20"
    assert [one.kind for one in folded(build)] == ["build"]
    assert folded(build, ("dotnet test tests/Quay.Tests.csproj", passed, 0)) == ()


def test_output_that_is_pasted_after_work_on_a_report_continues_it() -> None:
    said, log = Complaint("the floor has no texture"), Complaint("No textures found at Atlas", pasted=True)
    known = advance_failures((), [FailureEvent(1, complaint=said), FailureEvent(2, changed=("floor.xml",))], 0)
    (one,) = advance_failures(known, [FailureEvent(3, complaint=log, said="new log")], 1)
    assert (one.what, [told.text for told in one.earlier]) == (log.text, [said.text])


def test_other_output_that_is_pasted_next_is_another_failure() -> None:
    first = Complaint("Error: the crane is stuck", terms=("crane", "stuck"), pasted=True)
    second = Complaint("Error: the lamp has no name", terms=("lamp", "name"), pasted=True)
    typed = Complaint("the crane does not move", terms=("crane", "move"))

    def after(before: Complaint) -> list[int]:
        known = advance_failures((), [FailureEvent(0, complaint=before)], 0)
        return [one.times for one in advance_failures(known, [FailureEvent(9, complaint=second)], 1)]

    assert after(first) == [1, 1]
    assert after(typed) == [2]


def test_what_a_client_could_not_run_by_itself_fails_until_it_is_done() -> None:
    notice = "Unable to commit: Cmd('git') failed: exit code(128)\n  cmdline: git commit -m quay --no-verify -- a.py\n  stderr: no key"
    ((what, result),) = find_failed_notice(notice)
    assert what == "git commit -m quay --no-verify -- a.py"
    failed = FailureEvent(0, what, "", (result,))
    (item,) = folded(failed)
    assert (item.kind, item.text) == ("commit", "Unable to commit: Cmd('git') failed: exit code(128)")
    assert folded(failed, ("git commit -m quay", "[main 1a2b3c4] quay", 0)) == ()
    assert find_failed_notice("Unable to reach the quay.\ngit commit -m quay") == []
