"""When two commands are the same attempt, and what a run that went well proves."""

from __future__ import annotations

import pytest

from everturn.derive.call_results import find_admissions, is_about_call, names_call
from everturn.derive.failures import (
    attempt_keys,
    call_outcome,
    proven_keys,
    proves_anywhere,
    strip_attempt,
)
from everturn.model.conversation import CallStart


def shell(command: str) -> CallStart:
    return CallStart("c", "shell", "shell", command=command)


def edit(path: str, kind: str = "edit", name: str = "edit") -> CallStart:
    return CallStart("c", name, kind, path=path)


@pytest.mark.parametrize(
    "command",
    [
        "pytest",
        "pytest -q",
        "pytest 2>&1",
        "  pytest  ",
        "timeout 60 pytest",
        "PYTHONPATH=. pytest",
        "cd /home/ann/shop && pytest",
        "pytest > log.txt",
    ],
)
def test_the_same_attempt_in_other_dress(command: str) -> None:
    workspace = "/home/ann/shop"
    assert (
        attempt_keys(shell(command), workspace)
        == attempt_keys(shell("pytest"), workspace)
        == proven_keys(shell(command), workspace)
    )


@pytest.mark.parametrize("command", ["pytest tests/a", "cd sub && pytest", "python -m pytest", "npm test"])
def test_another_attempt_is_another(command: str) -> None:
    assert attempt_keys(shell(command)) != attempt_keys(shell("pytest"))


@pytest.mark.parametrize(
    "command", ["pytest | tail -5", "pytest || true", "pytest; echo done", "pytest 2>&1 | grep FAIL"]
)
def test_a_hidden_exit_status_proves_nothing(command: str) -> None:
    assert attempt_keys(shell(command)) == attempt_keys(shell("pytest"))
    assert proven_keys(shell(command)) == ()


def test_a_chain_proves_each_of_its_commands() -> None:
    assert set(attempt_keys(shell("make build"))) | set(attempt_keys(shell("make test"))) == set(
        proven_keys(shell("make build && make test"))
    )


def test_after_a_semicolon_only_the_last_counts() -> None:
    assert proven_keys(shell("make build; make test")) == attempt_keys(shell("make test"))


def test_loops_are_not_taken_apart() -> None:
    one, other = "for f in a; do x $f; done", "for f in b; do y $f; done"
    assert attempt_keys(shell(one)) != attempt_keys(shell(other))


def test_scripts_given_to_a_program_differ_by_their_text() -> None:
    assert attempt_keys(shell("python - <<E\nprint(1)\nE")) != attempt_keys(shell("python - <<E\nprint(2)\nE"))


def test_a_sign_within_quotes_splits_nothing() -> None:
    assert strip_attempt("echo 'a && b | c; d'").parts == ("echo 'a && b | c; d'",)


def test_a_commit_is_the_same_with_other_words() -> None:
    again = "git add b && git commit -m \"$(cat <<'E'\nSecond\nE\n)\""
    assert attempt_keys(shell('git add a && git commit -m "First"')) == proven_keys(shell(again))


def test_writing_a_file_is_the_same_with_any_tool() -> None:
    assert attempt_keys(edit("a.py")) == proven_keys(edit("a.py", "create", "write")) != proven_keys(edit("b.py"))
    assert attempt_keys(edit("a.py")) != proven_keys(edit("a.py", "read", "read"))


def test_a_patch_is_about_its_files() -> None:
    text = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Add File: b.py\n+z\n*** End Patch"
    assert attempt_keys(CallStart("c", "apply_patch", "edit", input={"input": text})) == (
        *attempt_keys(edit("a.py")),
        *attempt_keys(edit("b.py")),
    )


@pytest.mark.parametrize(
    ("command", "error_class", "status", "wanted"),
    [
        ("pytest", "exit_status", 1, "failed"),
        ("grep word file", "exit_status", 1, "probe"),
        ("ls nowhere 2>/dev/null", "exit_status", 2, "probe"),
        ("cat a | grep b", "exit_status", 1, "probe"),
        ("grep -q x file && make", "exit_status", 1, "failed"),
        ("grep word file", "not_found", 127, "failed"),
        ("pytest", "rejected", None, "rejected"),
        ("pytest", "interrupted", None, "interrupted"),
        ("pytest", "cancelled", None, "cancelled"),
        ("pytest", "timeout", 124, "failed"),
        ("git diff -- no/such/file", "exit_status", 128, "probe"),
        ('ls -1 a/*.md | wc -l && echo "---" && ls b', "exit_status", 1, "probe"),
        ("gh pr view --json number", "exit_status", 1, "probe"),
        ("gh pr merge 7", "exit_status", 1, "failed"),
        ("powershell.exe -NoProfile -Command 'rg --files | rg word'", "exit_status", 1, "probe"),
        ("bash -lc 'make all'", "exit_status", 2, "failed"),
        ('rg -n "unbalanced|word', "exit_status", 2, "probe"),
    ],
)
def test_failures_are_told_from_what_only_looks_like_one(
    command: str, error_class: str, status: int | None, wanted: str
) -> None:
    assert call_outcome(shell(command), error_class, status) == wanted


def test_what_failed_in_the_wrong_folder_is_proven_in_another() -> None:
    wrong = "Exit code 1\npattern ./...: directory prefix . does not contain main module"
    failed = attempt_keys(shell("go test ./..."), "", wrong)
    assert failed == proves_anywhere(shell("cd src && go test ./..."))
    assert attempt_keys(shell("go test ./..."), "", "--- FAIL: TestParse") != failed


def test_a_rebase_is_through_when_it_was_continued() -> None:
    assert attempt_keys(shell("git rebase origin/main")) == proven_keys(shell("git add . && git rebase --continue"))


def test_odd_commands_do_no_harm() -> None:
    for command in ("", "'", '"', "&&", "||||", "\x00", "a" * 100_000, "(" * 5000, "'a' " * 5000, "\\"):
        attempt_keys(shell(command))
        proven_keys(shell(command))


def test_an_answer_that_names_a_failed_call_speaks_of_it() -> None:
    answer = (
        "The page is done. `shipctl harbour up` failed with a locked quay. The map test failed at first and is fixed."
    )
    failed = [("failed", "shipctl harbour up", "Error: the quay is locked")]
    assert find_admissions(answer, failed) == ["`shipctl harbour up` failed with a locked quay."]
    assert find_admissions(answer, [("", "shipctl harbour up", "")]) == []
    for answer in (
        "shipctl harbour 启动失败。",
        "`shipctl harbour` konnte nicht starten.",
        "No se pudo ejecutar shipctl harbour.",
    ):
        (said,) = find_admissions(answer, failed)
        assert is_about_call(said, "shipctl harbour up", "Error: quay is locked")
    assert not is_about_call("The build failed in src/harbour/up.py.", "cat src/harbour/up.py", "")


def test_an_answer_in_any_language_speaks_of_the_last_failed_call_by_its_names() -> None:
    call = ("failed", "tools/check_quay.sh --all", "harbour.yml not found in /srv/docks-03")
    said = "`tools/check_quay.sh` harbour.yml dosyasını bulamadı."
    assert find_admissions(f"{said} Başka bir şey yok.", [call]) == [said]
    assert find_admissions(said, [call, ("", "vim harbour.yml", "")]) == []  # something went well after it
    assert not names_call("Die Datei harbour.yml liegt im Ordner.", call[1], call[2])
