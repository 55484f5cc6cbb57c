"""What version control shows: the commits that a call made, with their hashes, what became of them, and the state of the working tree.

The evidence for a commit is the line `[branch 1a2b3c4] subject` in the output of a command that commits. Without it (quiet
mode) a commit counts only if the call succeeded and nothing hides its exit status; its subject is then the message given, and
its hash is the one that `git log` or `git rev-parse` shows afterwards. A subagent may state its commit in its report.
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

from everturn.derive.failures import strip_attempt
from everturn.derive.file_commands import Touch, last_folder
from everturn.derive.paths import is_generated
from everturn.derive.tool_scripts import script_calls
from everturn.model.conversation import CallStart
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import both_ends, one_line
from everturn.text.shell import split_commands, unquote_git_path

_MOST_CHARS = 20_000
_SUBJECT = 200


class Commit(Struct, frozen=True):
    """One commit; the hash as printed, or "". `amends`: it takes the place of an earlier one."""

    hash: str
    subject: str
    amends: bool = False
    rebased: bool = False  # made again by a rebase or a cherry-pick
    url: str = ""  # of a pull request or an issue, which is no commit but belongs beside it
    by: str = ""  # "subagent" if the report of a subagent states it
    undone: bool = False  # taken back: no commit, but what becomes of an earlier one
    branch: str = ""  # on which its report says it is


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


class HistoryChange(Struct, frozen=True):
    """A command after which commits have other hashes or are gone; or what keeps them from that: a push, another branch."""

    how: str  # "push", "branch", or the name of the command
    base: str = ""  # the last commit that stays: a hash, `~2` before the last two, `pushed`, or "" for none
    branch: str = ""  # or _ALL
    first: bool = True  # before the commits of the same call


_COMMITS = lazy_pattern(r"\bgit\b(?:\s+-[cC]\s+\S+|\s+--?\S+)*\s+(?:commit|merge|revert|cherry-pick|am|rebase)\b")
_COMMIT = lazy_pattern(r"\bgit\b(?:\s+-[cC]\s+\S+|\s+--?\S+)*\s+commit\b(?!-)")
_REPORT = lazy_pattern(
    r"^(?:(?:Output: )?\[(?P<branch>[^\]\n]{1,200}?) (?:\(root-commit\) )?(?P<hash>[0-9a-f]{6,40})\]|Commit (?P<told>[0-9a-f]{7,40})) (?P<subject>.{1,500})",
    re.MULTILINE,
)
_REBASES = lazy_pattern(r"\bgit\b(?:\s+-[cC]\s+\S+|\s+--?\S+)*\s+(?:rebase|cherry-pick|am)\b")
_MESSAGE = lazy_pattern(r"""(?:^|\s)(?:-[a-z]*m|--message)(?:\s+|=)?("(?:[^"\\]|\\.)*"|'[^']*'|\S+)""")
_DOCUMENT = lazy_pattern(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n\s*([^\n]{1,500})")
_DRY = lazy_pattern(r"--dry-run|--no-commit|\s-n\b(?=.*cherry)")


def find_commits(start: CallStart, output: str, went_well: bool) -> list[Commit]:
    """Return the commits of a call, in order."""
    if start.kind == "task":
        return _stated_commits(output) if went_well and _is_to_commit(start) else []
    if went_well and start.kind != "shell" and "git" in start.name.lower() and (made := _api_commit(start, output)):
        return [made]
    text = _command_text(start)
    if went_well and _OPENS.search(text[:_MOST_CHARS]):
        return [Commit("", one[0], url=one[0]) for one in _URL.finditer(both_ends(output, _MOST_CHARS))][-1:]
    if not text or not _COMMITS.search(text[:_MOST_CHARS]) or _DRY.search(text[:_MOST_CHARS]):
        return []
    amends = "--amend" in text
    shown = both_ends(output, _MOST_CHARS)
    rebased = _REBASES.search(text[:_MOST_CHARS]) is not None
    reports = [one for one in _REPORT.finditer(shown) if one["hash"] or start.kind != "shell"]
    found = [
        Commit(
            one["hash"] or one["told"], one_line(one["subject"], _SUBJECT), amends, rebased, branch=one["branch"] or ""
        )
        for one in reports
    ]
    if found or not went_well or start.kind != "shell" or _REFUSED.search(shown):
        return found
    proven = (_PROXY.sub("", part) for part in strip_attempt(text).proven)
    quiet = any(map(_COMMIT.match, proven)) or ("<<" in text and _COMMIT.search(text))
    subject = _commit_subject(text) if quiet else ""
    if not subject:
        return []
    head = find_head(start, output)
    is_same = head is not None and _is_subject(head.subject, subject)
    return [Commit(head.hash if head is not None and is_same else "", subject, amends)]


#: A tool of a forge that commits, and the commit in its answer: of a file, of a branch that moves on, of a merge.
_API = lazy_pattern(
    r"(?:push|create_or_update|create|update|delete|commit|merge)\w*_(?:files?|commit|pull_request)\b", re.IGNORECASE
)
_API_HASH = lazy_pattern(
    r"\"commit\":\s{0,40}\{\s{0,40}\"sha\":\s{0,4}\"([0-9a-f]{40})\"|\"object\":\s{0,40}\{\s{0,40}\"sha\":\s{0,4}\"([0-9a-f]{40})\""
    r"|\"sha\":\s{0,4}\"([0-9a-f]{40})\",\s{0,40}\"merged\":\s{0,4}true"
)
_API_SUBJECT = lazy_pattern(r"^[ \t]*\* (?:commit_)?message: (\S[^\r\n]{0,500})", re.MULTILINE)


def _api_commit(start: CallStart, output: str) -> Commit | None:
    """Return the commit that a tool of a forge made, if its answer has the hash."""
    given = start.input if isinstance(start.input, dict) else {}
    asked = str(given.get("asked", ""))  # with the answer, in some transcripts
    shown = f"{both_ends(output, _MOST_CHARS)}\n{both_ends(asked, _MOST_CHARS)}"
    found = _API_HASH.search(shown) if _API.search(start.name) else None
    if found is None:
        return None
    told = given.get("message") or given.get("commit_message") or given.get("commit_title")
    named = _API_SUBJECT.search(asked[:_MOST_CHARS])
    subject = told if isinstance(told, str) else named[1] if named else ""
    return Commit(found[1] or found[2] or found[3], one_line(subject.partition("\n")[0], _SUBJECT))


_OPENS = lazy_pattern(r"\b(?:gh (?:pr|issue)|glab (?:mr|issue)) (?:create|new|merge|close)\b")
_URL = lazy_pattern(r"https://[\w.-]{3,100}/[\w./-]{3,200}/(?:pull|issues|merge_requests)/\d{1,9}\b")
_PROXY = lazy_pattern(r"^\w{1,20} (?=git )")  # a program in front that passes the command on
_REFUSED = lazy_pattern(r"nothing to commit|no changes added|Aborting commit|nothing added to commit")
_LOG = lazy_pattern(r"\bgit\b(?:\s+-[cC]\s+\S+|\s+--?\S+)*\s+(?:log|show|rev-parse|reflog)\b([^;&|\n]{0,200})")
_ONE_LINE = lazy_pattern(
    r"^(?:\* )?([0-9a-f]{7,40})(?: \([^()\n]{1,200}\))? (?:HEAD@\{0\}: commit[^:\n]{0,20}: )?(\S.{0,500}?)\r?$",
    re.MULTILINE,
)
_FULL = lazy_pattern(r"^commit ([0-9a-f]{40})\b[^\n]*\n(?:[A-Z]\w+:[^\n]*\n)+\s*\n {4}(\S[^\n]{0,500})", re.MULTILINE)
_BARE = lazy_pattern(r"^([0-9a-f]{7,40})\r?$", re.MULTILINE)


_UNDONE = lazy_pattern(r"\bCommit `?([0-9a-f]{7,40})`? was reset and removed from git\b")


def find_undone(notice: str) -> list[Commit]:
    """Return the commits that a client says it took back."""
    found = _UNDONE.findall(notice) if "removed from git" in notice else []
    return [Commit(one, "", undone=True) for one in found]


def find_head(start: CallStart, output: str) -> Commit | None:
    """Return the newest commit that a log, a push or `git rev-parse HEAD` shows; without a subject for the latter two."""
    text = _command_text(start)
    if "git push" in text and (pushed := _PUSHED.search(output[:_MOST_CHARS])):
        return Commit(pushed[1], "")
    log = _LOG.search(text[:_MOST_CHARS]) if "git" in text else None
    if log is None or _ELSEWHERE.search(log[1]):
        return None
    shown = output[:_MOST_CHARS]
    full, short = _FULL.search(shown), _ONE_LINE.search(shown)
    found = min(filter(None, (full, short)), key=lambda one: one.start(), default=None)
    if found is not None:
        return Commit(found[1], one_line(found[2], _SUBJECT))
    bare = _BARE.search(shown) if "rev-parse" in log[0] or "%" in log[0] else None
    return Commit(bare[1], "") if bare is not None else None


_PUSHED = lazy_pattern(r"^[ \t]+[0-9a-f]{7,40}\.\.([0-9a-f]{7,40})[ \t]+(\S+) -> (?:\S+/)?\2\s*$", re.MULTILINE)
#: A log of another branch, of one file, or of a range.
_ELSEWHERE = lazy_pattern(r"\.\.|\s--all\b|\s(?:origin|upstream)/|--author|--grep|\s--(?:\s|$)|\s-S|\^|~\d|HEAD@")


def is_rebase(start: CallStart) -> bool:
    """Whether a call puts commits on another base or rewrites them, so that their hashes change."""
    return bool(_REBASE.search(_command_text(start)[:_MOST_CHARS]))


_REBASE = lazy_pattern(
    r"\bgit\b[^;&|\n]{0,80}\s(?:rebase\b|filter-(?:branch|repo)\b|pull\b[^;&|\n]{0,80}\s(?:--rebase|-r)\b)"
)


def name_commits(commits: list[tuple[Commit, int]], head: Commit, rebased: int | None = None) -> None:
    """Give the last commit the hash that a later log shows for it; `rebased` is where it got another one."""
    if not commits or commits[-1][0].url:
        return
    last, seq = commits[-1]
    if not _is_subject(head.subject, last.subject) or last.hash.startswith(head.hash[:7]):
        return
    if not last.hash:
        commits[-1] = replace(last, hash=head.hash), seq
    elif rebased is not None:
        commits.append((Commit(head.hash, last.subject, rebased=True), rebased))


def _is_subject(shown: str, subject: str) -> bool:
    """Whether a shown subject, which may be cut, is that of a commit; "" is of any."""
    start = shown.rstrip(".…").strip()
    return subject.startswith(start) if len(start) >= 12 or not start else start == subject


_STATED = lazy_pattern(
    r"\bcommit(?:ted)?(?: (?:sha|hash|id))?\b(?:\*\*)?(?: (?:as|is|at))?[:=]?(?:\*\*)?[ \t]{0,4}`?\b(?=[0-9a-f]{0,39}\d)(?=[0-9a-f]{0,39}[a-f])([0-9a-f]{7,40})\b",
    re.IGNORECASE,
)


#: One of a list of commits: a hash, a dash and a subject.
_ITEM = lazy_pattern(
    r"^[ \t]{0,8}(?:[-*•]|\d{1,3}[.)])[ \t]{1,4}\W{0,4}(?=[0-9a-f]{0,39}\d)(?=[0-9a-f]{0,39}[a-f])([0-9a-f]{7,40})\b[`*]{0,3}[ \t]{0,4}(?:[-—–:|→][ \t]{0,4}|(?=[`\"“«「]))(\S[^\n]{2,400})$",
    re.MULTILINE,
)
#: Words before a commit that was there already.
_OLDER = lazy_pattern(
    r"\b(?:recent|previous|prior|earlier|existing|upstream|base|per|since|after|before|from|see|introduced (?:in|by))(?: the| this| that)? (?:\w+ )?$",
    re.IGNORECASE,
)


def _stated_commits(report: str) -> list[Commit]:
    """Return the commits that the report of a subagent states as its own."""
    shown = both_ends(report, _MOST_CHARS)
    named = (one for one in _STATED.finditer(shown) if not _OLDER.search(shown, max(0, one.start() - 30), one.start()))
    found = {one[1].lower(): "" for one in named}
    subjects = ((one[1].lower(), _QUOTED.match(one[2].strip())) for one in _ITEM.finditer(shown))
    found |= {number: one_line((one[1] or one[2]).strip("`*_ \t"), _SUBJECT) for number, one in subjects if one}
    return [Commit(number, subject, by="subagent") for number, subject in found.items()]


_QUOTED = lazy_pattern(r"`([^`\n]{3,400})`|([^\n]*)")  # a subject in a list, or all that stands there
_ASKED = lazy_pattern(
    r"\b(?:git commit|(?:and|then|to|must|please|finally|create|make|stage,?) (?:\w+ ){0,2}commits?)\b(?! (?:hist|log|list|mess))"
    r"|(?:^|[.\n:-] ?)\W{0,4}commit\b(?! (?:hist|log|list|hash))",
    re.IGNORECASE | re.MULTILINE,
)


def _is_to_commit(start: CallStart) -> bool:
    """Whether a subagent was asked to commit, or what it was asked is not known: only then it states commits of its own."""
    given = start.input.values() if isinstance(start.input, dict) else ()
    words = " ".join((start.prompt, *(one for one in given if isinstance(one, str))))[:_MOST_CHARS]
    return not words.strip() or _ASKED.search(words) is not None


def _command_text(start: CallStart) -> str:
    """Return the command line of a call: of a shell, of a version control tool, or of a script that calls tools."""
    if start.kind != "shell":
        return _git_command_line(start)
    if start.command:
        return start.command
    given = start.input.get("input", start.input.get("code")) if isinstance(start.input, dict) else start.input
    return "\n".join(text for _, text, _ in script_calls(given)) if isinstance(given, str) else ""


def _git_command_line(start: CallStart) -> str:
    """Return the arguments of a version control tool as a command line."""
    if "git" not in start.name.lower() or not isinstance(start.input, dict):
        return ""
    words = [word for value in start.input.values() for word in (value if isinstance(value, list) else [value])]
    return "git " + " ".join(word for word in words if isinstance(word, str)).removeprefix("git ")


def _commit_subject(text: str) -> str:
    after = text[_COMMIT.search(text).end() :] if _COMMIT.search(text) else ""  # type: ignore[union-attr]
    if document := _DOCUMENT.search(after):
        return one_line(document[2], _SUBJECT)
    if (message := _MESSAGE.search(after)) is None:
        return ""
    words = message[1][1:-1] if message[1][0] in "\"'" else message[1]
    return one_line(words.lstrip().partition("\n")[0], _SUBJECT)


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
    text = _command_text(start)[:_MOST_CHARS]
    if not went_well or "git" not in text or not any(word in text for word in _CHANGES_HISTORY):
        return []
    shown, found, has_committed = both_ends(output, _MOST_CHARS), list[HistoryChange](), False
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
) -> tuple[CommitState, ...]:
    """Return the commits after one more turn. Those that others replace or that are taken back are marked."""
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
    return tuple(commits)


def on_branch(commit: Commit, branch: str) -> Commit:
    """Return a commit with a branch, unless its report names one."""
    return commit if commit.branch or commit.url or not branch else replace(commit, branch=branch)


def _add_commit(commits: list[CommitState], one: Commit, turn: int, seq: int) -> None:
    hashes = (old.hash[:7] for old in commits if old.hash)
    if (one.hash and any(map(one.hash.startswith, hashes))) or (one.url and any(old.url == one.url for old in commits)):
        return  # printed again
    standing = [number for number, old in enumerate(commits) if not old.replaced and not old.url]
    if one.amends:
        ended = [number for number in standing[-1:] if not commits[number].saved]
    else:
        ended = [number for number in standing if one.rebased and commits[number].subject == one.subject]
    for number in ended:
        commits[number] = replace(commits[number], replaced=True)
    commits.append(CommitState(one.hash, one.subject, turn, seq, url=one.url, by=one.by, branch=one.branch))


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
    asks = _ASKS.search(command[:_MOST_CHARS]) if "git" in command else None
    if asks is None or not output or _OTHER_TREE.search(asks[3]):
        return []
    shown = output[:_MOST_CHARS]
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


_FIXES = lazy_pattern(
    r"\b(?:lint|format|fmt|prettier|biome|ruff|eslint)\S*[:\s](?:fix|write|format)\b|--(?:fix|write)\b|\b(?:run|make|yarn|pnpm|just) (?:format|fmt)\b"
)
_FIXED = lazy_pattern(
    r"\b(?:fixed|reformatted|formatted) [1-9]\d* files?\b|\b[1-9]\d* files? (?:were )?(?:reformatted|fixed|formatted)\b",
    re.IGNORECASE,
)


def fixes_unnamed_files(command: str, output: str) -> bool:
    """Whether a formatter or fixer that was given no files says that it changed some."""
    return bool(_FIXES.search(command) and _FIXED.search(output))


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


def find_branch(output: str) -> str:
    """Return the branch that version control says it is on, "" if it says none."""
    found = _BRANCH.findall(output[:2_000])
    return next(filter(None, found[-1])) if found else ""


_BRANCH = lazy_pattern(
    r"^(?:On branch |Switched to (?:a new )?branch '|\[)([^\s'\]]{2,80})(?:'|\r?$| (?:\(root-commit\) )?[0-9a-f]{7,40}\])|^\W{0,6}(?:current |git )branch:\W{0,4}([\w./-]{2,80})",
    re.MULTILINE | re.IGNORECASE,
)
