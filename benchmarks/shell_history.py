"""What becomes of commits, against git: `python -m benchmarks.shell_history --sessions 60`.

Random commands of a seed commit, amend, reset, rebase, filter, switch and tag in a repository of their own. Afterwards a commit
stands if a branch or a tag reaches it: that is the truth. What is said of each commit that a command printed is held against
it: how many of those said to be void are (precision), and how many of the void ones are said to be (recall).
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from everturn.derive.commits import find_branch, find_commits, on_branch
from everturn.derive.version_control import CommitState, advance_commits, find_history_changes
from everturn.model.conversation import CallStart

_STEPS = range(6, 16)
#: Commands over {n} (a number of their own), {k} (commits to go back), {h} (a printed commit), {b} (another branch).
_COMMITS = (
    "echo {n} >> f{n}.txt && git add . && git commit -m 'Change {n}'",
    "echo {n} >> a.txt && git add . && git commit -m 'Change {n}' && git status --short",
    "echo {n} > f{n}.txt; git add f{n}.txt; git commit -q -m 'Change {n}' && git log --oneline -1",
)
_CHANGES = (
    "git commit --amend -m 'Change {n} again'", "echo {n} >> g{n}.txt && git add . && git commit --amend --no-edit",
    "git reset --soft HEAD~{k}", "git reset --hard HEAD~{k}", "git reset --soft HEAD~{k} && git commit -m 'Squash {n}'", "git reset --hard {h}",
    "git reset HEAD a.txt", "git reset", "git switch -c side{n}", "git switch {b}", "git checkout {b} && git status", "git tag v{n}", "git branch keep{n}",
    "git rebase {b}", "git filter-branch -f --msg-filter 'cat; echo more' -- --all", "git revert --no-edit HEAD", "git log --oneline -3",
    "git rebase -f HEAD~{k}", "git stash", "git branch keep{n} && git reset --hard HEAD~{k}",
)  # fmt: skip


@dataclass
class HistoryScore:
    """How many commits are void, how many are said to be, and the sessions that were told wrong."""

    void: int = 0
    said: int = 0
    right: int = 0
    commits: int = 0
    faults: list[str] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shell_history", description=__doc__)
    parser.add_argument("--sessions", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", action="store_true", help="print the sessions that were told wrong")
    options = parser.parse_args()
    score = measure_histories(options.sessions, options.seed)
    print(f"{score.commits} commits, {score.void} void, {score.said} said")
    print(f"precision {score.right / max(1, score.said):.3f}, recall {score.right / max(1, score.void):.3f}")
    print("\n".join(score.faults) if options.faults else "", end="")


def measure_histories(sessions: int, seed: int) -> HistoryScore:
    """Run random sessions and add up what is said of their commits."""
    score, chance = HistoryScore(), random.Random(seed)
    for _ in range(sessions):
        with tempfile.TemporaryDirectory() as name:
            _play_session(Path(name), chance, score)
    return score


def _play_session(root: Path, chance: random.Random, score: HistoryScore) -> None:
    """Run one session and add what is said of its commits."""
    known: tuple[CommitState, ...] = ()
    branch, log = "", list[str]()
    _run(root, "git init -q -b main && echo 0 > a.txt && git add . && git commit -q -m Begin")
    for number in range(chance.choice(_STEPS)):
        command = _next_command(root, chance, known, number)
        output, went_well = _run(root, command, number)
        call = CallStart("1", "Bash", "shell", "", command, {"command": command})
        made = [(on_branch(one, branch), number) for one in find_commits(call, output, went_well)]
        changes = [(one, number) for one in find_history_changes(call, output, went_well, branch)]
        known = advance_commits(known, made, changes, number)
        branch = find_branch(output) or branch
        log.append(f"$ {command}\n{output.strip()}")
    _judge(root, known, score, log)


def _next_command(root: Path, chance: random.Random, known: tuple[CommitState, ...], number: int) -> str:
    branches = _run(root, "git branch --format='%(refname:short)'")[0].split() or ["main"]
    hashes = [one.hash for one in known if one.hash and not one.replaced] or ["HEAD"]
    form = chance.choice(_COMMITS if number < 2 or chance.random() < 0.5 else _CHANGES)
    return form.format(n=number, k=chance.choice((1, 1, 2)), h=chance.choice(hashes), b=chance.choice(branches))


def _judge(root: Path, known: tuple[CommitState, ...], score: HistoryScore, log: list[str]) -> None:
    reached = _run(root, "git rev-list --branches --tags")[0].split()
    wrong = []
    for one in known:
        if not one.hash:
            continue
        is_void = not any(number.startswith(one.hash) for number in reached)
        score.commits += 1
        score.void, score.said = score.void + is_void, score.said + one.replaced
        score.right += is_void and one.replaced
        if is_void != one.replaced:
            wrong.append(f"{one.hash} {one.subject} is {'void' if is_void else 'not void'}; {one.ended}")
    if wrong:
        score.faults.append("\n".join((*log, *wrong, "")))


def _run(root: Path, command: str, number: int = 0) -> tuple[str, bool]:
    """Run a command at a time of its own: git gives the same commit of the same second the same hash."""
    names = {f"GIT_{who}_{what}": "x@y.z" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {
        "PATH": os.environ.get("PATH", ""), "HOME": str(root), "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true",
        "FILTER_BRANCH_SQUELCH_WARNING": "1", "GIT_COMMITTER_DATE": f"{1_700_000_000 + number} +0000", **names,
    }  # fmt: skip
    ended = subprocess.run(
        ["bash", "-c", command], cwd=root, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return ended.stdout + ended.stderr, not ended.returncode


if __name__ == "__main__":
    main()
