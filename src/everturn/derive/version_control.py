"""What version control shows: what became of commits, and the state of the working tree. See `derive.commits` for how they are found.

`find_history_changes` returns what gives earlier commits other hashes or takes them back: a rebase, a filter, a reset.
`advance_commits` folds both: every commit above the base of such a change is void.

`tree_changes` reads the output of `git status` and `git diff --stat`. It shows which files were changed before the agent
began, and what a subagent left behind whose own transcript is not archived. It returns (action, path) pairs.

Nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter
from posixpath import normpath

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.commits import MOST_CHARS, Commit, LoggedCommit, command_text, is_subject
from everturn.derive.file_book import UNRECORDED
from everturn.derive.file_commands import LOG_NAME, Touch, last_folder
from everturn.derive.paths import has_ending, is_absolute, is_generated
from everturn.model.conversation import CallStart
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import both_ends
from everturn.text.shell import split_commands, unquote_git_path


class CommitState(Struct, frozen=True):
    """A commit; `replaced` if it is void: amended, rebased, rewritten or taken back, as `ended` says if that is known."""

    hash: str
    subject: str
    turn: int
    seq: int
    replaced: bool = False
    url: str = ""  # of a pull request or an issue
    by: str = ""  # "subagent" if the report of a subagent states it
    branch: str = ""
    pushed: bool = False
    saved: bool = False  # another branch or a tag was put on it
    ended: str = ""
    shown: int = -1  # the message that shows its hash, if its call does not


class HistoryChange(Struct, frozen=True):
    """A command after which commits have other hashes or are gone; or what keeps them from that: a push, another branch."""

    how: str  # "push", "branch", or the name of the command
    base: str = ""  # the last commit that stays: a hash, `~2` before the last two, `pushed`, or "" for none
    branch: str = ""  # or _ALL
    first: bool = True  # before the commits of the same call


# --- what becomes of commits ---
_ALL = "*"  # every branch
_CHANGES_HISTORY = ("filter-branch", "filter-repo", "rebase", "reset", "push", "branch", "-b", "-c", "tag")
_SAVES = {"branch": "branch", "tag": "tag", "checkout": "-b", "switch": "-c"}  # and the option that makes one
_REBASED = lazy_pattern(r"uccessfully rebased and updated (?:refs/heads/([^\s.]{1,200}))?")
_REWRITTEN = lazy_pattern(r"^Ref 'refs/heads/([^'\n]{1,200})' was rewritten", re.MULTILINE)
_BEFORE = lazy_pattern(r"(?:HEAD|@)(?:~(\d{0,3})|(\^{1,9}))")
_HASH = lazy_pattern(r"[0-9a-f]{6,40}")
_REMOTE = lazy_pattern(r"(?:origin|upstream)/\S+|@\{u(?:pstream)?\}|FETCH_HEAD")


def find_history_changes(start: CallStart, output: str, went_well: bool, branch: str = "") -> list[HistoryChange]:
    """Return what a call did to earlier commits, in order; `branch` is the current one, if that is known."""
    text = command_text(start)[:MOST_CHARS]
    if not went_well or "git" not in text or not any(word in text for word in _CHANGES_HISTORY):
        return []
    shown, found, has_committed = both_ends(output, MOST_CHARS), list[HistoryChange](), False
    for one in split_commands(text):
        words = _git_words([word.text for word in one.words])
        has_committed |= words[:1] == ["commit"]
        if words and (change := _history_change(words, shown)) is not None:
            found.append(replace(change, branch=change.branch or branch, first=not has_committed))
    return found


def _git_words(words: list[str]) -> list[str]:
    """Return the words of a command of git after its own options; none for another program."""
    if words[:1] != ["git"]:
        return []
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-C", "-c") else rest[1:]
    return rest


def _history_change(words: list[str], shown: str) -> HistoryChange | None:
    name, operands = words[0], [word for word in words[1:] if not word.startswith("-")]
    if name == "push" and "--dry-run" not in words and "rejected]" not in shown and "fatal:" not in shown:
        return HistoryChange("push")
    if _SAVES.get(name) in words and len(operands) == 1 and not {"-d", "-D", "-m", "-M", "--delete"} & set(words):
        return HistoryChange("branch")
    if name == "filter-repo":
        return HistoryChange(name, branch=_ALL)
    if name == "filter-branch" and ("was rewritten" in shown or "is unchanged" not in shown):
        rewritten = _REWRITTEN.findall(shown)
        return HistoryChange(name, branch=rewritten[0] if len(rewritten) == 1 and "--all" not in words else _ALL)
    if name == "reset":
        base = _base(operands[0]) if len(operands) == 1 else None
        return None if base is None else HistoryChange(name, base)
    rebased = _REBASED.search(shown) if name == "rebase" or {"--rebase", "-r"} & set(words) else None
    if rebased is None or name not in ("rebase", "pull"):
        return None
    base = "pushed" if name == "pull" else _base(operands[-1]) if operands else ""
    return HistoryChange("rebase", base or "", rebased[1] or "")


def _base(revision: str) -> str | None:
    """Return a revision as the base of a change, None if it is no commit before the current one."""
    if before := _BEFORE.fullmatch(revision):
        return f"~{len(before[2]) if before[2] else int(before[1] or 1)}"
    return revision if _HASH.fullmatch(revision) else "pushed" if _REMOTE.fullmatch(revision) else None


def advance_commits(
    known: tuple[CommitState, ...],
    made: Sequence[tuple[Commit, int]],
    changes: Sequence[tuple[HistoryChange, int]],
    turn: int,
    logged: Sequence[LoggedCommit] = (),
) -> tuple[CommitState, ...]:
    """Return the commits after one more turn. Those that others replace or that are taken back are marked.

    A commit without a hash has the one that a log behind it shows for its subject.
    """
    commits = list(known)
    events: list[tuple[int, int, Commit | HistoryChange]] = [(seq, 1, one) for one, seq in made]
    events += [(seq, 0 if one.first else 2, one) for one, seq in changes]
    for seq, _, one in sorted(events, key=itemgetter(0, 1)):
        if isinstance(one, HistoryChange):
            _change_history(commits, one, turn)
        elif one.undone:
            commits = [old for old in commits if old.hash[:7] != one.hash[:7]]
        else:
            _add_commit(commits, one, turn, seq)
    return tuple(_name_logged(commits, logged))


def _name_logged(commits: list[CommitState], logged: Sequence[LoggedCommit]) -> list[CommitState]:
    taken = {one.hash[:7] for one in commits}
    for number, one in enumerate(commits) if logged else ():
        if one.hash or one.url or not one.subject:
            continue
        found = next(
            (log for log in logged if log.seq > one.seq and log.subject and is_subject(log.subject, one.subject)), None
        )
        if found is not None and found.hash[:7] not in taken:
            by = "" if one.by == UNRECORDED else one.by  # it is recorded now
            commits[number] = replace(one, hash=found.hash, shown=found.seq, by=by)
            taken.add(found.hash[:7])
    return commits


def _add_commit(commits: list[CommitState], one: Commit, turn: int, seq: int) -> None:
    hashes = (old.hash[:7] for old in commits if old.hash)
    if (one.hash and any(map(one.hash.startswith, hashes))) or (one.url and any(old.url == one.url for old in commits)):
        return  # printed again
    standing = [number for number, old in enumerate(commits) if not old.replaced and not old.url]
    if one.amends:
        ended = [number for number in standing[-1:] if not commits[number].saved]
    else:
        ended = [number for number in standing if one.rebased and commits[number].subject == one.subject]
    subject = one.subject or next((commits[number].subject for number in ended if one.amends), "")
    for number in ended:
        commits[number] = replace(commits[number], replaced=True)
    commits.append(
        CommitState(one.hash, subject, turn, seq, url=one.url, by=one.by, branch=one.branch, shown=one.shown)
    )


def _change_history(commits: list[CommitState], change: HistoryChange, turn: int) -> None:
    """Mark the commits above the base of a change; after a push, those that are pushed."""
    left = [number for number, old in enumerate(commits) if not old.replaced and not old.url]
    standing = [
        number for number in left if change.branch in ("", _ALL) or commits[number].branch in ("", change.branch)
    ]
    if flag := {"push": "pushed", "branch": "saved"}.get(change.how):
        for number in standing:
            commits[number] = replace(commits[number], **{flag: True})
        return
    word = "taken back by" if change.how == "reset" else "rewritten by"
    for number in _above_base(commits, standing, change):
        if change.branch == _ALL or not commits[number].saved:
            ended = f"{word} {change.how} in turn {turn + 1}"
            commits[number] = replace(commits[number], replaced=True, ended=ended)


def _above_base(commits: list[CommitState], standing: list[int], change: HistoryChange) -> list[int]:
    base = change.base
    if base.startswith("~"):
        return standing[-int(base[1:]) :] if base != "~0" else []
    at = next((number for number, one in enumerate(commits) if base and one.hash and one.hash[:7] == base[:7]), None)
    if at is not None:
        return [number for number in standing if number > at]
    if base == "pushed" or (base and change.how == "reset"):  # to a commit that the session did not make
        return [number for number in standing if not commits[number].pushed]
    return standing


# --- the working tree ---

_MOST = 200
_ASKS = lazy_pattern(
    r"\bgit\b(?:\s+-C\s+(\"[^\"\n]{1,400}\"|\S{1,400}))?(?:\s+-[cC]\s+\S+|\s+--?\S+)*\s+(status|diff)\b([^;&|\n]{0,200})"
)
_OTHER_TREE = lazy_pattern(
    r"\.\.|\bHEAD[~^]|--cached\b.{0,40}\b[0-9a-f]{7,40}\b|\b(?:origin|upstream)/|\bmain\b|\bmaster\b|--no-index"
)
_SHORT = lazy_pattern(
    r"^(?:([ MADRC?][MD ?]) |(?:\t| {8})?(modified|deleted|new file): {1,8})(\S.{0,400}?)\r?$", re.MULTILINE
)
_STAT = lazy_pattern(r"^ (\S.{0,400}?) +\| +(?:\d+ [+-]*|Bin .{0,60})\r?$", re.MULTILINE)


def tree_changes(command: str, output: str) -> list[Touch]:
    """Return the files that differ from the last commit; empty for a command that shows something else."""
    asks = _ASKS.search(command[:MOST_CHARS]) if "git" in command else None
    if asks is None or not output or _OTHER_TREE.search(asks[3]):
        return []
    shown = output[:MOST_CHARS]
    found: dict[str, str] = {}
    for code, word, path in _SHORT.findall(shown):
        if code and not code.strip():
            continue
        is_new = "?" in code or "A" in code or word == "new file"
        is_gone = "D" in code or word == "deleted"
        found[_last_name(path)] = "created" if is_new else "deleted" if is_gone else "edited"
    folder = last_folder(command[: asks.start()]) if found and asks[2] == "status" else ""
    folder = (asks[1] or "").strip('"') or folder
    if folder:  # `git status` names files from where it runs
        found = {normpath(f"{folder}/{path}"): action for path, action in found.items() if not path.endswith("/")}
    if "stat" in asks[3] or not found:
        for path in _STAT.findall(shown):
            found.setdefault(_last_name(path), "edited")
    kept = [(action, path) for path, action in found.items() if not path.endswith("/") and not is_generated(path)]
    return kept if len(kept) <= _MOST else []


#: What may commit, put away or discard changes, or bring others.
_MAY_SETTLE = lazy_pattern(
    r"\b(?:git|hg|jj|sl|svn|gh|glab)\b[^\n]{0,400}?\b(?:commit|ci|stash|checkout|restore|reset|switch|clean|merge|rebase|pull|revert|am|cherry-pick|worktree|apply|submit)\b"
    r"|commit|release|deploy|publish|backup|\b(?:npm|yarn|pnpm|poetry|cargo|bun)\s[^\n]{0,40}\bversion\b|\bsync",
    re.IGNORECASE,
)


_SETTLES = lazy_pattern(
    r"commit|\bpush|\bstash|\bcheck(?:ed)? ?in|revert|undo|undid|discard|roll(?:ed)? ?back|eingecheckt|rückgängig|verworfen|annul|subid|deshac|deshic|desfaz|desfiz"
    r"|提交|推送|撤销|撤銷|回滚|回滾|还原|コミット|プッシュ|取り消|元に戻|커밋|푸시|되돌",
    re.IGNORECASE,
)


def may_have_settled(said: str) -> bool:
    """Whether words may be of changes that are committed or taken back."""
    return _SETTLES.search(said) is not None


def is_tracked(path: str) -> bool:
    """Whether a file of the workspace is of those that are committed: no log, no settings of one machine, nothing that tools write."""
    name = path.rpartition("/")[2]
    is_inside = not (is_absolute(path) or path.startswith(("~", "<", "../")))
    return (
        is_inside
        and has_ending(name)
        and not (is_generated(path) or LOG_NAME.search(path) or name.startswith(".env") or ".local." in name)
    )


_ENTERED = lazy_pattern(r"(?:^|[;&|(\s])cd (\"[^\"]{1,300}\"|'[^']{1,300}'|[^\s;&|()\"']{1,300})")
_OTHER_REPOSITORY = lazy_pattern(r"\bgit\s+(?:-C|--git-dir|--work-tree)\b|\b(?:pushd|ssh|docker|kubectl)\b")


def may_settle(command: str) -> bool:
    """Whether files that were changed before a command may be committed, put away or discarded after it; also of one that is cut."""
    return command.endswith("…") or _MAY_SETTLE.search(command) is not None


def commit_folder(command: str) -> str | None:
    """Return the folder in which a command commits, "" for that of the session; None when in doubt."""
    found = {one.strip("\"'") for one in _ENTERED.findall(command)}
    in_doubt = len(found) > 1 or any("$" in one for one in found) or _OTHER_REPOSITORY.search(command)
    return None if in_doubt else next(iter(found), "")


def untracked_files(command: str) -> list[str]:
    """Return the files and folders that `git rm --cached` names: they stay, but are no longer tracked."""
    if "--cached" not in command:
        return []
    words = [_git_words([word.text for word in one.words if word.sure]) for one in split_commands(command)]
    found = [name for one in words if one[:1] == ["rm"] and "--cached" in one for name in one[1:]]
    return [
        name for name in found if name[0] != "-" and name != "." and not (is_generated(name) or set("*?[") & set(name))
    ]


def _last_name(path: str) -> str:
    """Return the new name of a renamed file, without quotes, and without the sign for folders that are left out."""
    name = unquote_git_path(path.rpartition(" -> ")[2].rstrip()).removeprefix(".../")
    return f"{name}/" if name.endswith(" content)") else name  # a submodule
