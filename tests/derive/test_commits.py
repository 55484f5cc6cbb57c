"""Commits whose own output does not show their hash: logs, pushes, counts, and what an answer states."""

from __future__ import annotations

import pytest

from everturn.derive.commits import Commit, LoggedCommit, TurnCommits, find_commits, stated_hashes
from everturn.derive.file_book import REPORT, UNRECORDED
from everturn.derive.session_state import SessionState, advance_state
from everturn.derive.turn_facts import TurnFacts
from everturn.model.conversation import CallStart


def shell(command: str) -> CallStart:
    return CallStart("c", "shell", "shell", command=command)


def task(prompt: str) -> CallStart:
    return CallStart("t", "Agent", "task", prompt=prompt)


def made(commits: TurnCommits) -> list[tuple[str, str, str]]:
    return [(one.hash, one.subject, one.by) for one, _ in commits.found()]


def test_a_log_behind_a_quiet_commit_proves_it_wherever_the_commit_stands() -> None:
    command = 'git add .\ngit commit -q -m "Count otters"\ngit commit -q -m "Feed walruses"\ngit log --oneline'
    output = "bbbb222 Feed walruses\naaaa111 Count otters\n9999999 Begin"
    found = find_commits(shell(command), output, True)
    assert [(one.hash, one.subject) for one in found] == [("aaaa111", "Count otters"), ("bbbb222", "Feed walruses")]
    assert find_commits(shell(command), "9999999 Begin", True) == []


def test_a_log_proves_a_merge_with_a_subject_of_its_own() -> None:
    call = shell('git merge otters -m "Let the otters in"; git log --oneline -2')
    assert find_commits(call, "aaaa111 Let the otters in\n9999999 Begin", True) == [
        Commit("aaaa111", "Let the otters in")
    ]
    assert find_commits(call, "9999999 Begin", True) == []
    told = "Merge made by the 'ort' strategy.\n a.py | 2 +-"
    assert find_commits(shell('git merge x -m "Let the otters in"'), told, True) == [Commit("", "Let the otters in")]


def test_the_count_of_changes_is_left_of_a_report_that_was_cut() -> None:
    call = shell('cd shop; git commit -m "Count otters" 2>&1 | tail -3')
    report = " 2 files changed, 9 insertions(+), 1 deletion(-)\n create mode 100644 otters.py"
    assert find_commits(call, report, True) == [Commit("", "Count otters")]
    assert find_commits(call, "no report", True) == []


def test_an_amended_commit_without_a_subject_has_that_of_the_log() -> None:
    call = shell("git commit -q --amend --no-edit && git log --oneline -1")
    assert find_commits(call, "aaaa111 Count otters", True) == [Commit("aaaa111", "Count otters", amends=True)]


@pytest.mark.parametrize(
    ("answer", "hashes"),
    [
        ("Committed as `1a2b3c4` and pushed.", ["1a2b3c4"]),
        ("新的 commit hash 是 `1a2b3c4`。", ["1a2b3c4"]),
        ("Pushed: `9999abc..1a2b3c4` main -> main", ["1a2b3c4"]),
        ("`9999abc` → `1a2b3c4`, pushed with force", ["1a2b3c4"]),
        ("Fixed and pushed to `origin/main` (`1a2b3c4`)", ["1a2b3c4"]),
        ("It broke since commit 1a2b3c4.", []),
        ("commit 1234567 has no letters", []),
    ],
)
def test_an_answer_states_hashes(answer: str, hashes: list[str]) -> None:
    assert stated_hashes(answer) == hashes


def test_the_answer_behind_a_commit_without_a_hash_gives_it() -> None:
    commits = TurnCommits()
    commits.note_unrecorded(shell('git commit -m "Count otters"'), 3, "")
    commits.hear("Done: commit `1a2b3c4`.", 4)
    commits.note_unrecorded(shell("git commit --amend --no-edit"), 5, "")
    commits.hear("Amended, now commit `5d6e7f8` instead of commit `1a2b3c4`.", 6)
    assert made(commits) == [("1a2b3c4", "Count otters", ""), ("5d6e7f8", "", "")]


def test_an_answer_that_states_more_than_was_made_names_nothing() -> None:
    commits = TurnCommits()
    commits.note(shell('git commit -q -m "Count otters"'), "", (3, 4), True, "")
    commits.hear("Between commit 1a2b3c4 and commit 5d6e7f8 the otters were lost.", 5)
    assert made(commits) == [("", "Count otters", "")]


def test_the_answer_about_a_subagent_that_was_to_commit_states_its_commit() -> None:
    commits = TurnCommits()
    commits.note(task("Fix the pool, then commit and push."), "All done and pushed.", (3, 4), True, "")
    commits.hear("All three are done, commit `1a2b3c4` is pushed.", 5)
    assert made(commits) == [("1a2b3c4", "", REPORT)]


def test_an_answer_alone_makes_no_commit() -> None:
    reviewed, listed = TurnCommits(), TurnCommits()
    reviewed.note(task("Review the pool."), "Fine.", (3, 4), True, "")
    reviewed.hear("I looked at commit `1a2b3c4`.", 5)
    listed.note(task("Fix it and commit."), "Done.", (3, 4), True, "")
    listed.note(shell("git log --oneline -1"), "1a2b3c4 An old one", (5, 6), True, "")
    listed.hear("The branch is at commit `1a2b3c4`.", 7)
    assert made(reviewed) == made(listed) == []


def test_a_log_of_a_later_turn_gives_the_hash() -> None:
    quiet = TurnFacts(turn=0, last_seq=9, commits=((Commit("", "Count otters"), 3),))
    log = (LoggedCommit("1a2b3c4", "Count otters", 13), LoggedCommit("9999abc", "Begin", 13))
    state = advance_state(advance_state(SessionState("s", ""), quiet), TurnFacts(turn=1, last_seq=19, logged=log))
    assert [(one.hash, one.shown) for one in state.commits] == [("1a2b3c4", 13)]


def test_an_amended_commit_without_a_subject_keeps_the_one_before() -> None:
    facts = TurnFacts(
        turn=0, last_seq=9, commits=((Commit("aaaa111", "Count otters"), 3), (Commit("bbbb222", "", amends=True), 5))
    )
    state = advance_state(SessionState("s", ""), facts)
    assert [(one.hash, one.subject, one.replaced) for one in state.commits] == [
        ("aaaa111", "Count otters", True),
        ("bbbb222", "Count otters", False),
    ]


@pytest.mark.parametrize(
    ("command", "subject"),
    [
        ("$text = @'\nCount otters\n\nAll of them.\n'@; git commit -m $text", "Count otters"),
        ('msg="Count otters"; git commit -m "$msg"', "Count otters"),
        ("git commit -m $unknown", None),
    ],
)
def test_a_variable_may_hold_the_subject(command: str, subject: str | None) -> None:
    assert [one.subject for one in find_commits(shell(command), "", True)] == ([subject] if subject else [])


def test_a_commit_that_is_tried_again_without_results_is_one() -> None:
    commits = TurnCommits()
    commits.note_unrecorded(shell("git commit -m 'Count otters'"), 3, "")
    commits.note_unrecorded(shell("git commit -am 'Count otters'"), 5, "")
    commits.hear("Commit `1a2b3c4` is there.", 6)
    assert made(commits) == [("1a2b3c4", "Count otters", "")]


def test_an_answer_may_show_a_commit_as_a_log_does() -> None:
    commits = TurnCommits()
    commits.hear("It is there: `1a2b3c4 Count otters`.", 6)
    assert commits.logged == [LoggedCommit("1a2b3c4", "Count otters", 6)]
    assert made(commits) == []


def test_a_pull_request_does_not_hide_the_commit_of_the_same_command() -> None:
    output = "[pool 1a2b3c4] Count otters\n 1 file changed\nhttps://github.com/ann/zoo/pull/7\n"
    found = find_commits(shell('git commit -m "Count otters" && git push && gh pr create --fill'), output, True)
    assert [(one.hash, one.url) for one in found] == [("1a2b3c4", ""), ("", "https://github.com/ann/zoo/pull/7")]


def test_settings_with_spaces_may_stand_before_the_commit() -> None:
    call = shell('git -c user.name="Ann B" -c user.email=a@b.c -C \'/my zoo\' commit -m "Count otters"')
    assert [one.hash for one in find_commits(call, "[main 1a2b3c4] Count otters", True)] == ["1a2b3c4"]


REPORT_OF_A_SCRIPT = (
    "> release\n[main 1a2b3c4] Release 4\n Date: Mon May 4 10:00:00 2026\n 2 files changed, 4 insertions(+)"
)


@pytest.mark.parametrize(
    ("command", "output", "hashes"),
    [
        ("./release.sh", REPORT_OF_A_SCRIPT, ["1a2b3c4"]),
        ("", REPORT_OF_A_SCRIPT, ["1a2b3c4"]),  # the rest of the output of a command that still ran
        ("npm run release 2>&1 | tail -9", REPORT_OF_A_SCRIPT, ["1a2b3c4"]),
        ("cat release.log", REPORT_OF_A_SCRIPT, []),
        ("./release.sh", "[main 1a2b3c4] Release 4", []),
    ],
)
def test_a_report_with_its_count_proves_the_commit_of_any_program(command: str, output: str, hashes: list[str]) -> None:
    assert [one.hash for one in find_commits(shell(command), output, True)] == hashes


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("git log -1 --format='%h - %s'", "1a2b3c4 - Count otters"),
        ("git log -1 --format='%h|%s'", "1a2b3c4|Count otters"),
        ("git branch -v", "* main 1a2b3c4 [ahead 1] Count otters"),
        ("git log --oneline --decorate", "1a2b3c4 (HEAD -> main) Count otters"),
    ],
)
def test_logs_have_many_forms(command: str, line: str) -> None:
    commits = TurnCommits()
    commits.note(shell(command), line, (3, 4), True, "")
    assert commits.logged[0] == LoggedCommit("1a2b3c4", "Count otters", 4)


@pytest.mark.parametrize(
    ("command", "subjects"),
    [
        ('mkdir docs && cat <<EOF > docs/plan.md\n1. run `git commit -m "Feed otters"`\nEOF', []),
        ("tee plan.md <<'EOF'\ngit add . && git commit -m 'Feed otters'\nEOF\ngit status", []),
        ("cat > a.md <<EOF\ngit commit -m no\nEOF\ngit commit -m 'Add notes'", ["Add notes"]),
        ("git commit -m 'Add notes' && cat > a.md <<EOF\nA title\nEOF", ["Add notes"]),
        ("git commit -F - <<EOF\nAdd notes\n\ngit commit -m 'no'\nEOF", ["Add notes"]),
        ("bash <<EOF\ngit commit -m 'Add notes'\nEOF", ["Add notes"]),
        ("git commit -m \"$(cat <<'EOF'\nAdd notes\n\nbecause\nEOF\n)\"", ["Add notes"]),
    ],
)
def test_text_that_is_only_written_makes_no_commit(command: str, subjects: list[str]) -> None:
    assert [one.subject for one in find_commits(shell(command), "", True)] == subjects


def test_a_commit_that_a_session_ends_with_is_told_until_it_goes_on() -> None:
    commits = TurnCommits()
    commits.note_begun(shell("git add . && git commit -m 'Count otters'"), 5, "")
    assert made(commits) == [("", "Count otters", UNRECORDED)]
    begun = TurnFacts(0, 5, commits=tuple(commits.found()))
    state = advance_state(SessionState("s", "/zoo"), begun)
    assert [one.subject for one in state.commits] == ["Count otters"]
    assert advance_state(state, TurnFacts(1, 9)).commits == ()
    log = TurnFacts(1, 9, logged=(LoggedCommit("aaaa111", "Count otters", 8),))
    assert [(one.hash, one.by) for one in advance_state(state, log).commits] == [("aaaa111", "")]


@pytest.mark.parametrize("line", ["aaaa111 Merge pull request #47 from zoo/otters", "aaaa111 feat: count otters (#47)"])
def test_a_request_that_the_session_merged_has_the_hash_of_a_later_log(line: str) -> None:
    (merged,) = find_commits(shell("gh pr merge 47 --merge --delete-branch 2>&1 | tail -5"), "", True)
    state = advance_state(SessionState(), TurnFacts(0, 5, commits=((merged, 3),)))
    assert [(one.hash, one.subject) for one in state.commits] == [("", "Merge pull request #47")]
    found, subject = line.split(" ", 1)
    others = (LoggedCommit("bbbb222", "Merge pull request #4 from zoo/seals", 8), LoggedCommit(found, subject, 9))
    state = advance_state(state, TurnFacts(1, 9, logged=others))
    assert [(one.hash, one.subject) for one in state.commits] == [("aaaa111", "Merge pull request #47")]


@pytest.mark.parametrize(
    ("command", "output", "went_well"),
    [
        ("gh pr merge 47 --auto", "", True),
        ("gh pr merge 47 --rebase --delete-branch", "", True),  # its commits are put on the branch one by one
        ("gh pr merge -t 'Release 2'", "", True),
        ("gh pr merge 47", "", False),
        ("gh pr merge 47 2>&1 | tail -3", "X Pull request zoo/otters#47 is not mergeable: conflicts", True),
        ("gh pr view 47; gh pr list", "", True),
    ],
)
def test_a_request_that_was_not_merged_makes_no_commit(command: str, output: str, went_well: bool) -> None:
    assert find_commits(shell(command), output, went_well) == []
