"""Commits as version control reported them."""

from __future__ import annotations

import pytest

from everturn.derive.commits import (
    Commit,
    find_commits,
    find_head,
    find_undone,
    is_rebase,
    name_commits,
)
from everturn.derive.session_state import SessionState, advance_state
from everturn.derive.turn_facts import TurnFacts
from everturn.derive.version_control import find_history_changes
from everturn.model.conversation import CallStart


def shell(command: str) -> CallStart:
    return CallStart("c", "shell", "shell", command=command)


def test_a_report_is_the_proof() -> None:
    output = "[main 1a2b3c4] Add login\n 2 files changed"
    found = find_commits(shell('git commit -m "Add login" | tail -3'), output, True)
    assert found == [Commit("1a2b3c4", "Add login", branch="main")]


def test_several_commits_of_one_command() -> None:
    output = "[main (root-commit) aaaaaaa] One\n[feature/x bbbbbbb] Two\n"
    found = find_commits(shell("git commit -m One && git commit -m Two"), output, True)
    assert [(one.hash, one.subject) for one in found] == [("aaaaaaa", "One"), ("bbbbbbb", "Two")]


def test_an_amended_commit_says_so() -> None:
    assert find_commits(shell("git commit --amend --no-edit"), "[main 1a2b3c4] Add login", True)[0].amends


@pytest.mark.parametrize(
    ("command", "output", "changes"),
    [
        ("git filter-branch -f --index-filter 'git rm --cached x' -- --all", "Ref 'refs/heads/main' was rewritten", [("filter-branch", "", "*")]),
        ("git filter-repo --path x --invert-paths", "", [("filter-repo", "", "*")]),
        ("git rebase -i 1a2b3c4", "Successfully rebased and updated refs/heads/lamp.", [("rebase", "1a2b3c4", "lamp")]),
        ("git rebase main", "Current branch lamp is up to date.", []),
        ("git pull --rebase && git push", "Successfully rebased and updated refs/heads/lamp.", [("rebase", "pushed", "lamp"), ("push", "", "")]),
        ("git reset --soft HEAD~2", "", [("reset", "~2", "")]),
        ("git reset HEAD^", "", [("reset", "~1", "")]),
        ("git reset HEAD a.py && git reset && git reset --hard", "", []),
        ("git checkout -b lamp", "", [("branch", "", "")]),
        ("echo git reset --hard HEAD~1", "", []),
        ("git push --force", "! [rejected] main -> main", []),
    ],
)  # fmt: skip
def test_what_a_command_does_to_earlier_commits(command: str, output: str, changes: list[tuple[str, str, str]]) -> None:
    found = find_history_changes(shell(command), output, True)
    assert [(one.how, one.base, one.branch) for one in found] == changes


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
    assert find_commits(call, "[main 1a2b3c4] x", True) == [Commit("1a2b3c4", "x", branch="main")]


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


def test_a_tool_of_a_forge_commits() -> None:
    one, two = "1a" * 20, "2b" * 20
    start = CallStart("1", "mcp__github__create_or_update_file", input={"message": "Light the lamp\n\nAt last"})
    output = f'{{"content": {{"sha": "{two}"}}, "commit": {{"sha": "{one}", "url": "x"}}}}'
    assert find_commits(start, output, True) == [Commit(one, "Light the lamp")]
    pushed = CallStart(
        "1", "mcp_github_push_files", input={"asked": "*Parameters*:\n  * message: Light it\n  * files: x"}
    )
    assert find_commits(pushed, f'{{"ref": "x", "object": {{"sha": "{one}", "type": "commit"}}}}', True) == [
        Commit(one, "Light it")
    ]
    assert find_commits(CallStart("1", "mcp__github__get_commit"), output, True) == []
    assert find_commits(start, "Not found", True) == []


def test_a_subagent_lists_the_commits_that_it_made() -> None:
    start = CallStart("1", "task", "task", prompt="Commit the work in two parts.")
    report = "Done.\n- `1a2b3c4` — `Lamp // Light it`\n2. **5d6e7f8**: Fence // Paint it\n- 2024 was a year\n"
    found = find_commits(start, report, True)
    assert [(one.hash, one.subject, one.by) for one in found] == [
        ("1a2b3c4", "Lamp // Light it", "subagent"), ("5d6e7f8", "Fence // Paint it", "subagent"),
    ]  # fmt: skip


def test_a_commit_that_the_client_took_back_is_none() -> None:
    made = TurnFacts(0, 1, commits=((Commit("1a2b3c4", "Light it"), 0), (Commit("5d6e7f8", "Paint it"), 1)))
    back = TurnFacts(
        1, 2, commits=tuple((one, 2) for one in find_undone("Commit `1a2b3c4` was reset and removed from git."))
    )
    state = advance_state(advance_state(SessionState("s"), made), back)
    assert [one.hash for one in state.commits] == ["5d6e7f8"]
