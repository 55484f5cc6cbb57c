"""Commits as version control reported them."""

from __future__ import annotations

import pytest

from everturn.derive.version_control import Commit, find_commits, find_head, is_rebase, name_commits
from everturn.model.conversation import CallStart


def shell(command: str) -> CallStart:
    return CallStart("c", "shell", "shell", command=command)


def test_a_report_is_the_proof() -> None:
    output = "[main 1a2b3c4] Add login\n 2 files changed"
    assert find_commits(shell('git commit -m "Add login" | tail -3'), output, True) == [Commit("1a2b3c4", "Add login")]


def test_several_commits_of_one_command() -> None:
    output = "[main (root-commit) aaaaaaa] One\n[feature/x bbbbbbb] Two\n"
    found = find_commits(shell("git commit -m One && git commit -m Two"), output, True)
    assert [(one.hash, one.subject) for one in found] == [("aaaaaaa", "One"), ("bbbbbbb", "Two")]


def test_an_amended_commit_says_so() -> None:
    assert find_commits(shell("git commit --amend --no-edit"), "[main 1a2b3c4] Add login", True)[0].amends


def test_a_quiet_commit_has_the_subject_it_was_given() -> None:
    assert find_commits(shell('git add . && git commit -q -m "Add login\n\nWith tests"'), "", True) == [
        Commit("", "Add login")
    ]
    document = "git commit -q -m \"$(cat <<'EOF'\nAdd logout\n\nBody\nEOF\n)\""
    assert find_commits(shell(document), "", True) == [Commit("", "Add logout")]


@pytest.mark.parametrize(
    ("command", "output", "went_well"),
    [
        ('git commit -q -m "x"', "", False),
        ('git commit -q -m "x" || true', "", True),
        ('git commit -m "x"', "nothing to commit, working tree clean", True),
        ("git commit --dry-run -m x", "", True),
        ("git log --oneline", "[main 1a2b3c4] Add login", True),
        ("cat notes.txt", "[main 1a2b3c4] Add login", True),
        ("git commit-graph write", "", True),
        ("pytest", "", True),
    ],
)
def test_without_proof_there_is_no_commit(command: str, output: str, went_well: bool) -> None:
    assert find_commits(shell(command), output, went_well) == []


def test_a_tool_for_version_control_commits_too() -> None:
    call = CallStart("c", "git_command", "other", input={"args": ["commit", "-m", "x"]})
    assert find_commits(call, "[main 1a2b3c4] x", True) == [Commit("1a2b3c4", "x")]


def test_a_log_names_a_quiet_commit() -> None:
    command = "git commit -q -m 'Add login page' && git log -1"
    log = f"commit {'1a2b' * 10}\nAuthor: Ann <a@b.c>\nDate:   now\n\n    Add login page\n"
    assert find_commits(shell(command), log, True) == [Commit("1a2b" * 10, "Add login page")]
    assert find_commits(shell(command), "1a2b3c4 Something else entirely", True) == [Commit("", "Add login page")]


def test_a_push_after_a_rebase_names_the_commit_again() -> None:
    push = CallStart("c", "Bash", "shell", command="git push origin main")
    head = find_head(push, "To https://example.org/shop.git\n   1111111a..2222222b  main -> main")
    assert head == Commit("2222222b", "")
    made = [(Commit("3333333c", "add tides"), 4)]
    name_commits(made, head)
    assert len(made) == 1
    name_commits(made, head, 8)
    assert made[1:] == [(Commit("2222222b", "add tides", rebased=True), 8)]
    assert is_rebase(CallStart("c", "Bash", "shell", command="git pull --rebase origin main")) and not is_rebase(push)


def test_a_commit_that_was_there_before_is_not_the_subagents() -> None:
    task = CallStart("c", "Task", "task")
    assert find_commits(task, "per the recent commit `6184fe5` it is gated", True) == []


def test_a_subagent_states_its_commit() -> None:
    task = CallStart("c", "Task", "task")
    assert find_commits(task, "**Final commit SHA:** 6184fe5", True) == [Commit("6184fe5", "", by="subagent")]
    assert find_commits(task, "Please commit defaced changes", True) == []
    looks = CallStart("c", "Task", "task", input={"prompt": "Find the last working commit: look at git log."})
    assert find_commits(looks, "The last working commit: 6184fe5", True) == []
    does = CallStart("c", "Task", "task", input={"prompt": "Fix the lamp, then commit the change."})
    assert [one.hash for one in find_commits(does, "Commit: 6184fe5", True)] == ["6184fe5"]


def test_a_report_of_a_commit_in_the_output_of_other_clients() -> None:
    commit = CallStart("c", "Shell", "shell", "", "git commit -m x")
    for shown in (
        "Output: [main 6184fe5] light the lamp    \n 1 file changed",
        f"[main 6184fe5] light the lamp{' ' * 900}",
    ):
        assert [(one.hash, one.subject) for one in find_commits(commit, shown, True)] == [("6184fe5", "light the lamp")]


def test_a_pull_request_is_known_by_its_address() -> None:
    url = "https://github.com/ann/shop/pull/12"
    assert find_commits(shell("gh pr create --fill"), f"Creating pull request\n{url}\n", True) == [
        Commit("", url, url=url)
    ]
    assert find_commits(shell("gh pr view 12"), url, True) == []
