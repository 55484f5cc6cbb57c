"""The commits that a call made, with their hashes.

The evidence for a commit is the line `[branch 1a2b3c4] subject` in the output of a command that commits. Without it (quiet
mode, or an output that was cut) a commit counts if the call succeeded and nothing hides its exit status, if the output has the
count of its changes, or if a log behind it shows its subject. Its subject is then the message given, and its hash the one that a
log, a push or `git rev-parse` shows, there or later. A subagent may state its commit in its report.

`TurnCommits` collects the commits of a turn. One without a hash (quiet mode, an output that was cut, a transcript without
results) has that which an answer behind it states as a commit's, if there are as many of both. The answer about a subagent that
was to commit may state a commit that nothing else shows; it is labelled. A hash that an answer only mentions is no commit.

Nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.failures import strip_attempt
from everturn.derive.file_book import REPORT, SUBAGENT, UNRECORDED
from everturn.derive.file_commands import GIT
from everturn.derive.tool_scripts import script_calls
from everturn.model.conversation import CallStart
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import both_ends, one_line

MOST_CHARS = 20_000
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
    shown: int = -1  # the message that shows its hash, if its call does not
    root: bool = False  # the first one of its repository


_COMMITS = lazy_pattern(rf"{GIT}(?:commit|merge|revert|cherry-pick|am|rebase)\b")
_COMMIT = lazy_pattern(rf"{GIT}commit\b(?!-)")
_MERGE = lazy_pattern(rf"{GIT}merge\b(?!-)")
_REPORT = lazy_pattern(
    r"^(?:(?:Output: )?[ \t│|>]{0,6}\[(?P<branch>[^\]\n]{1,200}?) (?P<root>\(root-commit\) )?(?P<hash>[0-9a-f]{6,40})\]|Commit (?P<told>[0-9a-f]{7,40})) (?P<subject>.{1,500})",
    re.MULTILINE,
)
_REBASES = lazy_pattern(rf"{GIT}(?:rebase|cherry-pick|am)\b")
_MESSAGE = lazy_pattern(r"""(?:^|\s)(?:-[a-z]*m|--message)(?:\s+|=)?("(?:[^"\\]|\\.)*"|'[^']*'|\S+)""")
_DOCUMENT = lazy_pattern(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n\s*([^\n]{1,500})")
_DRY = lazy_pattern(r"--dry-run|--no-commit|\s-n\b(?=.*cherry)")


def find_commits(start: CallStart, output: str, went_well: bool) -> list[Commit]:
    """Return the commits of a call, in order."""
    if start.kind == "task":
        return _stated_commits(output) if went_well and is_to_commit(start) else []
    if went_well and start.kind != "shell" and "git" in start.name.lower() and (made := _api_commit(start, output)):
        return [made]
    text = _without_texts(command_text(start)[:MOST_CHARS])
    if "git" not in text and not _OPENS.search(text) and " changed" not in output:
        return []
    shown = both_ends(output, MOST_CHARS)
    found = _reported_commits(start, text, shown)
    is_quiet = not found and went_well and start.kind == "shell" and _COMMITS.search(text) is not None
    if is_quiet and not (_REFUSED.search(shown) or _DRY.search(text)):
        found = _quiet_commits(start, text, shown, "--amend" in text)
    if went_well and _OPENS.search(text):
        found += [Commit("", one[0], url=one[0]) for one in _URL.finditer(shown)][-1:]
        found += [Commit("", f"{_MERGE_OF}{one[1]}") for one in _MERGED.finditer(text) if not _REFUSED.search(shown)]
    return found


def _reported_commits(start: CallStart, text: str, shown: str) -> list[Commit]:
    """Return the commits that an output reports: of a command that commits, or else with the count of their changes."""
    is_commit = _COMMITS.search(text) is not None
    if not is_commit and " changed" not in shown:
        return []
    reports = [one for one in _REPORT.finditer(shown) if one["hash"] or start.kind != "shell"]
    if not is_commit:
        is_own = start.kind == "shell" and not _VIEWS.search(text)
        reports = [one for one in reports if is_own and one["hash"] and _COUNTED.match(shown, one.end())]
    amends, rebased = "--amend" in text, _REBASES.search(text) is not None
    return [
        Commit(
            one["hash"] or one["told"],
            one_line(one["subject"], _SUBJECT),
            amends,
            rebased,
            branch=one["branch"] or "",
            root=bool(one["root"]),
        )
        for one in reports
    ]


def _quiet_commits(start: CallStart, text: str, shown: str, amends: bool) -> list[Commit]:
    """Return the commits of a command without a report: those that a log behind them shows, or that certainly were made."""
    subjects = list(_commit_subjects(text))
    logged = logged_commits(start, shown)
    merged = list(_commit_subjects(text, _MERGE))
    given = [*subjects, *merged]
    hashes = [next((one.hash for one in logged if is_subject(one.subject, subject)), "") for subject in given]
    if any(hashes):
        return [Commit(number, subject, amends) for number, subject in zip(hashes, given, strict=True) if number]
    if amends and not subjects and logged and find_head(start, shown) == logged[0]:
        return [replace(logged[0], amends=True)]
    proven = sum(_COMMIT.match(_PROXY.sub("", part)) is not None for part in strip_attempt(text).proven)
    is_told = _COUNT.search(shown) is not None or ("<<" in text and _COMMIT.search(text) is not None)
    certain = subjects[-proven:] if proven else subjects[:1] if is_told else []
    certain += merged[:1] if "Merge made by" in shown else []
    head = find_head(start, shown)
    if len(certain) == 1 and head is not None and is_subject(head.subject, certain[0]):
        return [Commit(head.hash, certain[0], amends)]
    return [Commit("", subject, amends) for subject in certain]


#: What git counts below the report of a commit.
_COUNT = lazy_pattern(
    r"^ ?\d{1,6} files? changed(?:, \d{1,9} insertions?\(\+\))?(?:, \d{1,9} deletions?\(-\))?\r?$", re.MULTILINE
)


_COUNTED = lazy_pattern(r"\r?\n(?: (?:Author|Committer|Date): [^\n]{0,200}\n){0,3} \d{1,6} files? changed")
#: A command that shows what is in a file, or what ran elsewhere.
_VIEWS = lazy_pattern(
    r"(?:^|[;&\n]\s{0,4})(?:cat|bat|less|more|head|tail|grep|rg|sed|awk|jq|gh|ssh|curl|docker|kubectl|journalctl|echo|printf|type|Get-Content|Select-String)\b"
)


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
    shown = f"{both_ends(output, MOST_CHARS)}\n{both_ends(asked, MOST_CHARS)}"
    found = _API_HASH.search(shown) if _API.search(start.name) else None
    if found is None:
        return None
    told = given.get("message") or given.get("commit_message") or given.get("commit_title")
    named = _API_SUBJECT.search(asked[:MOST_CHARS])
    subject = told if isinstance(told, str) else named[1] if named else ""
    return Commit(found[1] or found[2] or found[3], one_line(subject.partition("\n")[0], _SUBJECT))


_MERGE_OF = "Merge pull request #"  # what a forge writes, with the number and the branch
_MERGED = lazy_pattern(r"\bgh pr merge\b(?![^\n;&|]{0,200} (?:--auto|--rebase|-r)\b)[^\n;&|\"']{0,99}?[ /](\d{1,9})\b")
_OPENS = lazy_pattern(r"\b(?:gh (?:pr|issue)|glab (?:mr|issue)) (?:create|new|merge|close)\b")
_URL = lazy_pattern(r"https://[\w.-]{3,100}/[\w./-]{3,200}/(?:pull|issues|merge_requests)/\d{1,9}\b")
_PROXY = lazy_pattern(r"^\w{1,20} (?=git )")  # a program in front that passes the command on
_REFUSED = lazy_pattern(r"nothing (?:added )?to commit|no changes added|Aborting commit|not mergeable|already merged")
_LOG = lazy_pattern(rf"{GIT}(?:log|show|rev-parse|reflog|branch(?= -v))\b([^;&|\n]{{0,200}})")
_ONE_LINE = lazy_pattern(
    r"^(?:\* )?(?:(?<=\* )[\w./-]{1,100} +)?([0-9a-f]{7,40})(?=[ |:])(?: \([^()\n]{1,200}\)| \[[^\[\]\n]{1,200}\])?(?: ?[|:·–—-])? ?(?:HEAD@\{0\}: commit[^:\n]{0,20}: )?(\S.{0,500}?)\r?$",
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
    text = command_text(start)
    if "git push" in text and (pushed := _PUSHED.search(output[:MOST_CHARS])):
        return Commit(pushed[1], "")
    log = _LOG.search(text[:MOST_CHARS]) if "git" in text else None
    if log is None or _ELSEWHERE.search(log[1]):
        return None
    shown = output[:MOST_CHARS]
    full, short = _FULL.search(shown), _ONE_LINE.search(shown)
    found = min(filter(None, (full, short)), key=lambda one: one.start(), default=None)
    if found is not None:
        return Commit(found[1], one_line(found[2], _SUBJECT))
    bare = _BARE.search(shown) if "rev-parse" in log[0] or "%" in log[0] else None
    return Commit(bare[1], "") if bare is not None else None


def logged_commits(start: CallStart, output: str) -> list[Commit]:
    """Return the commits that a log shows, of any branch or file."""
    text = command_text(start)
    if "git" not in text or not _LOG.search(text[:MOST_CHARS]):
        return []
    shown = output[:MOST_CHARS]
    found = [one for pattern in (_ONE_LINE, _FULL) for one in islice(pattern.finditer(shown), _MOST_COMMITS)]
    found.sort(key=lambda one: one.start())
    return [Commit(one[1], one_line(one[2], _SUBJECT)) for one in found]


_PUSHED = lazy_pattern(r"^[ \t]+[0-9a-f]{7,40}\.\.([0-9a-f]{7,40})[ \t]+(\S+) -> (?:\S+/)?\2\s*$", re.MULTILINE)
#: A log of another branch, of one file, or of a range.
_ELSEWHERE = lazy_pattern(r"\.\.|\s--all\b|\s(?:origin|upstream)/|--author|--grep|\s--(?:\s|$)|\s-S|\^|~\d|HEAD@")


def is_amend(start: CallStart) -> bool:
    """Whether a call changes the last commit without giving it another subject."""
    text = _without_texts(command_text(start)[:MOST_CHARS])
    return "--amend" in text and _COMMIT.search(text) is not None and not any(_commit_subjects(text))


def is_rebase(start: CallStart) -> bool:
    """Whether a call puts commits on another base or rewrites them, so that their hashes change."""
    return bool(_REBASE.search(_without_texts(command_text(start)[:MOST_CHARS])))


_REBASE = lazy_pattern(
    r"\bgit\b[^;&|\n]{0,80}\s(?:rebase\b|filter-(?:branch|repo)\b|pull\b[^;&|\n]{0,80}\s(?:--rebase|-r)\b)"
)


def name_commits(commits: list[tuple[Commit, int]], head: Commit, rebased: int | None = None) -> None:
    """Give the last commit the hash that a later log shows for it; `rebased` is where it got another one."""
    if not commits or commits[-1][0].url:
        return
    last, seq = commits[-1]
    if not is_subject(head.subject, last.subject) or last.hash.startswith(head.hash[:7]):
        return
    if not last.hash:
        commits[-1] = replace(last, hash=head.hash), seq
    elif rebased is not None:
        commits.append((Commit(head.hash, last.subject, rebased=True), rebased))


def is_subject(shown: str, subject: str) -> bool:
    """Whether a shown subject, which may be cut, is that of a commit; "" is of any."""
    if subject.startswith(_MERGE_OF):  # squashed, it has the subject of the request with its number
        return shown.startswith(f"{subject} ") or shown.endswith(f"(#{subject.removeprefix(_MERGE_OF)})")
    start = shown.rstrip(".…").strip()
    return subject.startswith(start) if len(start) >= 12 or not start else start == subject


_NUMBER = r"(?=[0-9a-f]{0,39}\d)(?=[0-9a-f]{0,39}[a-f])([0-9a-f]{7,40})\b"
_CODED = lazy_pattern(r"`[0-9a-f]{7}")
_STATED = lazy_pattern(
    rf"\bcommit(?:ted)?(?: (?:sha|hash|id))?\b(?:\*\*)?(?: ?(?:as|is|at|是|为|為|は))?[:=：]?(?:\*\*)?[ \t]{{0,4}}[`(（]{{0,2}}\b{_NUMBER}",
    re.IGNORECASE,
)
#: The commits between which a push moved a branch.
_RANGE = lazy_pattern(rf"\b[0-9a-f]{{7,40}}`?(?:\.\.\.?| ?(?:→|->) ?)`?{_NUMBER}")
_PUSHED_AS = lazy_pattern(rf"(?:\bpush(?:ed)?\b|推)[^\n.。]{{0,40}}[(（]`{_NUMBER}`[)）]", re.IGNORECASE)
#: A hash with its subject, as a log shows them.
_AS_LOGGED = lazy_pattern(rf"`{_NUMBER}[`:：]{{0,2}} {{1,2}}`?(\S[^\n`]{{2,200}})`")


def stated_hashes(answer: str) -> list[str]:
    """Return the hashes that an answer states as those of commits, or as what was pushed."""
    shown = both_ends(answer, MOST_CHARS)
    named = [one for one in _STATED.finditer(shown) if not _OLDER.search(shown, max(0, one.start() - 30), one.start())]
    others = (*_RANGE.finditer(shown), *_PUSHED_AS.finditer(shown))
    return list(dict.fromkeys(one[1].lower() for one in (*named, *others)))


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
    shown = both_ends(report, MOST_CHARS)
    named = (one for one in _STATED.finditer(shown) if not _OLDER.search(shown, max(0, one.start() - 30), one.start()))
    found = {one[1].lower(): "" for one in named}
    subjects = ((one[1].lower(), _QUOTED.match(one[2].strip())) for one in _ITEM.finditer(shown))
    found |= {number: one_line((one[1] or one[2]).strip("`*_ \t"), _SUBJECT) for number, one in subjects if one}
    return [Commit(number, subject, by="subagent") for number, subject in found.items()]


_QUOTED = lazy_pattern(r"`([^`\n]{3,400})`|([^\n]*)")  # a subject in a list, or all that stands there
_ASKED = lazy_pattern(
    r"\b(?:git commit|(?:and|then|to|must|please|finally|create|make|stage,?) (?:\w+ ){0,2}commits?)\b(?! (?:hist|log|list|mess))"
    r"|(?:^|[.\n:-] ?)\W{0,4}commit\b(?! (?:hist|log|list|hash))|\bgit add\b[^\n.。]{1,12}\bcommit\b|(?:并|再|然后|请|后)[^\n。]{0,12}提交|コミットして|커밋(?:해|하)",
    re.IGNORECASE | re.MULTILINE,
)


def is_to_commit(start: CallStart) -> bool:
    """Whether a subagent was asked to commit, or what it was asked is not known: only then it states commits of its own."""
    given = start.input.values() if isinstance(start.input, dict) else ()
    words = " ".join((start.prompt, *(one for one in given if isinstance(one, str))))[:MOST_CHARS]
    return not words.strip() or _ASKED.search(words) is not None


def command_text(start: CallStart) -> str:
    """Return the command line of a call: of a shell, of a version control tool, or of a script that calls tools."""
    if start.kind != "shell":
        return _git_command_line(start)
    if start.command:
        return start.command
    given = start.input.get("input", start.input.get("code")) if isinstance(start.input, dict) else start.input
    return "\n".join(text for _, text, _ in script_calls(given)) if isinstance(given, str) else ""


#: What runs its here-document, or takes the words of a commit from it.
_RUNS_TEXT = lazy_pattern(
    r"(?:^|[\s;&|(\"'/])(?:ba|z|k|da|fi)?sh\b|\b(?:ssh|pwsh|powershell|eval|python[\d.]*|node|ruby|perl)\b"
)
_TAKES_WORDS = lazy_pattern(r"\b(?:git|gh|glab)\b[^\n;&|]{0,400}$")
_MOST_DOCUMENTS = 20


def _without_texts(command: str) -> str:
    """Return a command line without what its here-documents only write; of the message of a commit, its first line stays."""
    at = 0
    for _ in range(_MOST_DOCUMENTS if "<<" in command else 0):
        if (found := _BODY.search(command, at)) is None:
            break
        at = found.end()
        closing = lazy_pattern(rf"^[ \t]*{re.escape(found[1])}\b", re.MULTILINE).search(command, at)
        end = closing.start() if closing else len(command)
        head = command[command.rfind("\n", 0, found.start()) + 1 : found.start()]
        if _RUNS_TEXT.search(head) or _RUNS_TEXT.search(found[2]):
            at = end
            continue
        body = command[at:end].lstrip()
        kept = f"{body.partition(chr(10))[0]}\n" if _TAKES_WORDS.search(head) and body else ""
        command = command[:at] + kept + command[end:]
        at += len(kept)
    return command


_BODY = lazy_pattern(r"<<-?[ \t]{0,4}['\"]?(\w{1,60})['\"]?([^\n]{0,1000})\n")


def _git_command_line(start: CallStart) -> str:
    """Return the arguments of a version control tool as a command line."""
    if "git" not in start.name.lower() or not isinstance(start.input, dict):
        return ""
    words = [word for value in start.input.values() for word in (value if isinstance(value, list) else [value])]
    return "git " + " ".join(word for word in words if isinstance(word, str)).removeprefix("git ")


def _commit_subjects(text: str, pattern: re.Pattern[str] = _COMMIT) -> Iterator[str]:
    """Yield the subjects of the commits of a command line that gives them, or those of what a pattern begins."""
    found = list(islice(pattern.finditer(text), _MOST_COMMITS))
    ends = [one.start() for one in found[1:]] + [len(text)]
    for one, end in zip(found, ends, strict=False):
        if subject := _commit_subject(text[one.end() : end], text[: one.start()]):
            yield subject


_MOST_COMMITS = 40
#: What a variable of either shell is given.
_VARIABLE = lazy_pattern(r"\$?\b(\w{1,60})[ \t]{0,4}=[ \t]{0,4}@?[\"'][ \t]{0,4}\r?\n?([^\n\"']{1,500})")


def _commit_subject(given: str, before: str) -> str:
    """Return the subject in what is given to a commit, or in the variable that is; "" if it is not there."""
    message, document = _MESSAGE.search(given), _DOCUMENT.search(given)
    if document is not None and (message is None or message.end() > document.start()):
        return one_line(document[2], _SUBJECT)
    if message is None:
        return ""
    words = message[1][1:-1] if message[1][0] in "\"'" else message[1]
    if words[:1] == "$" and words[1:2] != "(":
        values = [one[2] for one in _VARIABLE.finditer(before) if one[1].lower() == words[1:].strip("{}").lower()]
        words = values[-1] if values else ""
    return one_line(words.lstrip().partition("\n")[0], _SUBJECT)


def on_branch(commit: Commit, branch: str) -> Commit:
    """Return a commit with a branch, unless its report names one."""
    return commit if commit.branch or commit.url or not branch else replace(commit, branch=branch)


def find_branch(output: str) -> str:
    """Return the branch that version control says it is on, "" if it says none."""
    found = _BRANCH.findall(output[:2_000])
    return next(filter(None, found[-1])) if found else ""


_BRANCH = lazy_pattern(
    r"^(?:On branch |Switched to (?:a new )?branch '|\[)([^\s'\]]{2,80})(?:'|\r?$| (?:\(root-commit\) )?[0-9a-f]{7,40}\])|^\W{0,6}(?:current |git )branch:\W{0,4}([\w./-]{2,80})",
    re.MULTILINE | re.IGNORECASE,
)


# --- the commits of a turn ---
_MOST_LOGGED = 60  # commits of logs that are kept of a turn


class LoggedCommit(Struct, frozen=True):
    """A commit that a log shows, and the message with it. Without a subject: what was pushed."""

    hash: str
    subject: str
    seq: int


class TurnCommits:
    """Collects the commits of a turn, call by call and answer by answer."""

    def __init__(self) -> None:
        self.made: list[tuple[Commit, int]] = []
        self.logged: list[LoggedCommit] = []
        self._stated: list[tuple[list[str], int]] = []
        self._delegated = -1  # the message of the first task that was to commit
        self._has_rebased = False

    def hear(self, text: str, seq: int) -> None:
        """Take the hashes that an answer states."""
        if "ommit" not in text and not _CODED.search(text):
            return
        if found := stated_hashes(text):
            self._stated.append((found, seq))
        for one in islice(_AS_LOGGED.finditer(text), _MOST_COMMITS):
            self._log(Commit(one[1], one[2]), seq)

    def hear_notice(self, text: str, seq: int) -> None:
        """Take what a client says it took back."""
        self.made += [(one, seq) for one in find_undone(text)]

    def note(self, start: CallStart, output: str, seqs: tuple[int, int], went_well: bool, branch: str) -> None:
        """Take a call and its output; `seqs` are their messages."""
        seq, shown_in = seqs
        known = {one.hash for one, _ in self.made if one.hash}
        found = find_commits(start, output, went_well)
        made = [one for one in found if one.by != SUBAGENT or one.hash not in known]
        self.made += [(on_branch(one, branch), seq) for one in made]
        self._has_rebased |= went_well and is_rebase(start)
        if start.kind == "task":
            may_commit = went_well and not made and self._delegated < 0 and is_to_commit(start)
            self._delegated = seq if may_commit else self._delegated
        elif not found and (head := find_head(start, output)):
            name_commits(self.made, head, seq if self._has_rebased and went_well else None)
            self._log(head, shown_in)
        for one in logged_commits(start, output) if start.kind == "shell" else ():
            self._log(one, shown_in)

    def _log(self, one: Commit, seq: int) -> None:
        if len(self.logged) < _MOST_LOGGED:
            self.logged.append(LoggedCommit(one.hash, one.subject, seq))

    def note_unrecorded(self, start: CallStart, seq: int, branch: str) -> None:
        """Take a call that returned, and whose result the transcript does not hold."""
        made = find_commits(start, "", True) or ([Commit("", "", amends=True)] if is_amend(start) else [])
        again = {one.subject for one in made if one.subject and not one.amends}  # what failed is tried again
        self.made = [one for one in self.made if one[0].hash or one[0].subject not in again]
        self.made += [(on_branch(one, branch), seq) for one in made]

    def note_begun(self, start: CallStart, seq: int, branch: str) -> None:
        """Take a call that is the last of the session and has no result yet: whether it commits is not known."""
        if start.kind == "shell":
            made = find_commits(start, "", True)
            self.made += [(replace(on_branch(one, branch), by=UNRECORDED), seq) for one in made if not one.url]

    def found(self) -> list[tuple[Commit, int]]:
        """Return the commits of the turn in order, as far as they have a hash or a subject."""
        self.made.sort(key=lambda one: one[1])
        for hashes, seq in self._stated:
            known = [one.hash[:7] for one, _ in self.made if one.hash]
            if new := [number for number in hashes if number[:7] not in known]:
                self._name_stated(new, seq)
        return [(one, seq) for one, seq in self.made if one.hash or one.subject or one.undone]

    def _name_stated(self, numbers: list[str], seq: int) -> None:
        """Give the commits without a hash before an answer those that it states; after a task that was to commit, they are commits."""
        before = [n for n, (one, made) in enumerate(self.made) if made < seq and not one.undone]
        nameless = [n for n in before if not (self.made[n][0].hash or self.made[n][0].url)]
        if len(nameless) == len(numbers):
            for n, number in zip(nameless, numbers, strict=True):
                self.made[n] = replace(self.made[n][0], hash=number, shown=seq), self.made[n][1]
        elif 0 <= self._delegated < seq and not nameless:
            logged = [one.hash[:7] for one in self.logged]
            self.made += [(Commit(one, "", by=REPORT), seq) for one in numbers if one[:7] not in logged]
