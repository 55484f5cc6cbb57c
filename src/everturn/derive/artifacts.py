"""Find the files that a tool call touched, and the files that a text mentions.

`touched_files` returns (action, path) pairs of one successful call: only what is certain, from the call, its result, the
words of a shell command, the reports that version control and patch print, and lines such as `Wrote out.csv` of a command that
acts. Files that a pull, a merge or a build brings are not touched by the agent. Paths stay as they were given (see
`derive.paths` for one name per file); nothing is read from disk.

`find_mentions` recognises a file name by its ending, since many words contain a dot: versions, hosts, members of an object.
Addresses, mails and the folders of package managers do not count.

Both read a bounded part of long texts and never raise.

What version control shows: the commits that a call made, with their hashes, and the state of the working tree.

The evidence for a commit is the line `[branch 1a2b3c4] subject` in the output of a command that commits. Without it (quiet
mode) a commit counts only if the call succeeded and nothing hides its exit status; its subject is then the message given, and
its hash is the one that `git log` or `git rev-parse` shows afterwards. A subagent may state its commit in its report.

`tree_changes` reads the output of `git status` and `git diff --stat`. It shows which files were changed before the agent
began, and what a subagent left behind whose own transcript is not archived. `stated_changes` reads the report of such a
subagent. Both return (action, path) pairs and never raise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from posixpath import normpath

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.failures import strip_attempt
from everturn.derive.file_commands import (
    MAX_CHARS,
    Touch,
    command_touches,
    last_folder,
    named_files,
    reported_files,
    stated_changes,
)
from everturn.derive.paths import ENDINGS, has_ending, is_generated, resolve_path
from everturn.derive.tool_scripts import script_calls
from everturn.model.conversation import CallEnd, CallStart
from everturn.text.diffs import patched_files
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.shell import unquote_git_path

_ACTION = {"read": "read", "edit": "edited", "create": "created", "delete": "deleted"}


def touched_files(call: CallStart, end: CallEnd, output: str) -> list[Touch]:
    """Return the actions and paths of a successful call, in order and without repeats; empty for one that failed."""
    if end.is_error:
        return []
    action, path = end.action or _ACTION.get(call.kind, ""), end.path or call.path
    others = [one for one in end.others if not is_generated(one[1])]
    found: list[Touch] = [(action, path), *others] if action and path and "${" not in path else others
    given = _given_text(call)
    found += _patch_touches(given, call.command)
    if call.kind == "shell" and not end.exit_status:
        output = _both_ends(output, MAX_CHARS)
        for command, folder in shell_commands(call):
            found += command_touches(command, output, folder)
            found += _patch_touches(command, command) if command != given else []
            found += reported_files(command[:MAX_CHARS], output)
            found += _told_by_output(command[:MAX_CHARS], output, folder)
    return list(dict.fromkeys(found))


def shell_commands(call: CallStart) -> list[tuple[str, str]]:
    """Return the commands of a call, each with its folder: one, or those in a script that calls tools."""
    if call.command:
        return [(call.command, "")]
    given = _given_text(call)
    if "tools" not in given:
        return [("", "")]
    return [(text, folder) for _, text, folder in script_calls(given)]


def _both_ends(text: str, chars: int) -> str:
    return text if len(text) <= 2 * chars else f"{text[:chars]}\n{text[-chars:]}"


def _given_text(call: CallStart) -> str:
    """Return the text that may be a patch or a script: a command, the whole input, or its one argument."""
    given = call.input.get("input", call.input.get("code")) if isinstance(call.input, dict) else call.input
    return call.command or (given if isinstance(given, str) else "")


_MOVES = lazy_pattern(
    r"^\*\*\* Update File: (.{1,4096}?)[ \t]*\r?\n\*\*\* Move to: (.{1,4096}?)[ \t]*\r?$", re.MULTILINE
)


def _patch_touches(text: str, command: str) -> list[Touch]:
    """Return the files of a patch; one that is moved is deleted in one place and created in another."""
    patched = patched_files(text) if text else []
    if not patched:
        return []
    moved = dict(_MOVES.findall(text)) if "*** Move to: " in text else {}
    folder = last_folder(command.partition("<<")[0] + "<<") if command.lstrip().startswith("cd ") else ""
    found: list[Touch] = []
    for kind, path in patched:
        found += [("deleted", path), ("created", moved[path])] if path in moved else [(_ACTION[kind], path)]
    return [(action, resolve_path(folder, path) or path) for action, path in found]


# --- what a program says it did ---
_DEEDS = {
    **dict.fromkeys(
        ("wrote", "writing", "created", "creating", "create", "generated", "generating", "saved", "saving", "exported"), "created"),
    **dict.fromkeys(("updated", "updating", "update", "reformatted", "fixing", "fixed", "patched", "rewrote", "modified"), "edited"),
    **dict.fromkeys(("read", "reading", "loaded", "loading"), "read"),
}  # fmt: skip
#: An output without any of these tells no deed.
_DEED_MARKS = (
    "rote ", "riting ", "reate", "CREATE ", "reating", "enerat", "aved ", "aving ", "xported ", "nflating", "xtracting", "pdat", "UPDATE ", "formatted ",
    "ixing ", "ixed ", "atched ", "odified ", "Read ", "read ", "eading ", "oaded ", "oading ",
)  # fmt: skip
_LONGEST_DEED = 600
_DEED = lazy_pattern(
    r"(?P<verb>[a-z]{4,12}):?\s{1,20}(?P<what>(?:(?:files?|the|new|output|reports?|results?|data|log|html|xml|json|csv|lines?|bytes|rows|"
    r"records|entries|items|to|in|into|from|as|config|configuration|template|\d[\d,.]{0,12})\s{1,4}){0,6}|[^\n>'\"`]{1,80}? (?:->|→|to:?)\s{1,4})"
    r"(?P<quote>['\"`]?)(?P<path>[\w@+~./\\](?:[^'\"`*?$<>|(),;\s]|(?<=\w) (?=\w)){0,300}?)(?P=quote)"
    r"(?P<tail>\.{0,3}|\s{0,4}\.{3}\s{0,4}(?:done|ok)?|\s{1,4}[(\[][^\n]{0,200}[)\]]|\s{1,4}in [\d.]{1,8} ?m?s|\s{1,4}successfully)!?",
    re.IGNORECASE,
)
#: Commands that show texts of others, ask only, or run elsewhere.
_NOT_DOING = lazy_pattern(
    r"--(?:dry-run|check|summary)\b|\b(?:git|gh|ssh|docker|podman|kubectl|journalctl|curl|wget|jq|diff|bat|nl|tac|strings|ls|find|tree|"
    r"history|cat|less|more|grep|rg|sed|awk|head|tail|echo|printf)\b"
)


_FILTERED = lazy_pattern(
    r"\| ?(?:tail|head|e?grep|rg|sed|awk)\b[^|;&\n]{0,400}"
)  # of an output, which is still its own


def _told_by_output(command: str, output: str, start: str) -> Iterator[Touch]:
    """Yield the files of lines such as `Wrote out/report.csv`, where the command did something."""
    if not output or _NOT_DOING.search(_FILTERED.sub("", command)) or not any(mark in output for mark in _DEED_MARKS):
        return
    told = [touch for line in output.splitlines() if (touch := _read_deed(line)) is not None]
    told = [(action, path) for action, path in told if action == "read" or not is_generated(path)]
    folder = last_folder(command, start) if told else ""
    yield from ((action, place) for action, path in told if (place := resolve_path(folder, path)))


def _read_deed(line: str) -> Touch | None:
    words = line.strip(" \t✓✔✅→")
    action = _DEEDS.get(words.split(None, 1)[0].rstrip(":").lower()) if words and len(words) <= _LONGEST_DEED else None
    found = _DEED.fullmatch(words) if action is not None else None
    if action is None or found is None:
        return None
    verb, path = found["verb"].lower(), found["path"]
    if verb in ("create", "update") and "bytes)" not in found["tail"] and "  " not in line.strip():
        return None  # a wish: `Update README.md`
    if (verb == "read" and not found["what"]) or (" " in path and not found["quote"]):
        return None
    if not has_ending(path) or "@" in path.partition("/")[0]:
        return None
    return action, path


# --- mentions ---
_MENTION_CHARS = 12_000
_MAX_MENTIONS = 120  # of one text: a longer listing says little about each

#: The end of a name. Its beginning is searched backwards, which is far cheaper than trying every word.
_END = lazy_pattern(
    rf"\.(?:{ENDINGS})(?![\w@/\\*-]|\.\w|\((?!\d))|\b(?:Dockerfile|Makefile|Gemfile|Procfile)\b(?![/.(])"
    r"|(?<![\w.])\.(?:gitignore|dockerignore)\b(?![/.(])"
)
_NAME_BEFORE = lazy_pattern(r"(?:[A-Za-z]:(?=[/\\]))?[\w@.+~/\\-]*$")
_LONGEST = 200
#: Endings that are as often members of an object: they count only after a folder.
_DOUBTFUL = frozenset((".c", ".h", ".sum", ".mod", ".ex", ".cs", ".conf", ".less", ".fish", ".nu", ".lock", ".tf"))
_SURE = frozenset(("go.mod", "go.sum", "uv.lock", "poetry.lock", "Cargo.lock", "yarn.lock"))
_FOREIGN = lazy_pattern(r"(?:^|[/\\])(?:node_modules|\.git|site-packages|__pycache__|\.venv|dist|vendor)[/\\]")


def find_mentions(text: str) -> Counter[str]:
    shown = _both_ends(text, _MENTION_CHARS)
    found: Counter[str] = Counter()
    for end in _END.finditer(shown):
        if name := _mentioned_name(shown, end):
            found[name] += 1
    return Counter(dict(found.most_common(_MAX_MENTIONS)))


def _mentioned_name(text: str, end: re.Match[str]) -> str:
    first = max(0, end.start() - _LONGEST)
    before = _NAME_BEFORE.search(text, first, end.start())
    start = before.start() if before is not None else end.start()
    name = text[start : end.end()]
    if (start and text[start - 1] in "@:$%") or "@" in name.partition("/")[0] or "//" in name:
        return ""  # a mail, an address, a variable
    if start == end.start() and name.startswith(".") and not name.endswith("ignore"):
        return ""  # an ending alone
    if end[0] in _DOUBTFUL and "/" not in name and "\\" not in name and name not in _SURE:
        return ""
    return "" if _FOREIGN.search(name) else name


_ACTS = lazy_pattern(
    r"\b(?:creat|updat|edit|modify|add|writ|fix|chang|refactor|implement|adjust|replac|rewrit|mov|extend|correct|sav"
    r"|aktualisier|erstell|änder|bearbeit|ergänz|erweiter|korrigier|ersetz|pass|schreib|modifi|cré|ajout|mett|corri|remplac|écri|añad|agreg|actualiz|reemplaz|escrib)\w*\b"
    r"(?: \w[\w'-]*){0,3}? `?$|\b(?:called|named) `?$|\b(?:in|into|to)(?: (?:the|a|our|your))?(?: (?:file|existing|new|main|root)){0,2} `?$"
    r"|(?:修改|更新|编辑|編輯|添加|创建|創建|新建|新增|重写|修复|修復|调整|替换|追加|作成|変更|修正)[^\n`。，、]{0,6}`?$",
    re.IGNORECASE,
)
_ACTS_AFTER = lazy_pattern(r"`?\s?(?:を|に|のファイルを)[^\n。`]{0,12}(?:修正|更新|編集|追加|作成|変更|書き換)")
_CREATES = lazy_pattern(
    r"\b(?:creat|add|writ)\w*\b[^.\n]{0,80}\b(?:new|rule|file|script|test|doc\w*|module|task|spec\w*)\b", re.I
)
_ANNOUNCED = 600  # characters of a text in which a file is announced, from its end


def announced_file(text: str) -> str | None:
    """Return the file that a text says is changed next; "" for a new one without a name, None if it says nothing."""
    shown = text.rstrip()[-_ANNOUNCED:]
    found = [(end, name) for end in _END.finditer(shown) if (name := _mentioned_name(shown, end))]
    for end, name in reversed(found):
        start = end.end() - len(name)
        is_act = _ACTS.search(shown, max(0, start - 80), start) or _ACTS_AFTER.match(shown, end.end())
        if is_act and has_ending(name):
            return name
    return "" if _CREATES.search(shown) else None


def told_files(
    nameless: list[tuple[str, int]], answer: tuple[str, int], known: Collection[str], noted: bool, named: Iterable[str]
) -> dict[str, int]:
    """Return the files of edits that name none, with the message that says so.

    `nameless` has the files announced before them, or the one that was read last. The answer at the end names further ones; if
    there are other edits that name their file (`noted`), only those of which it says that they were changed.
    """
    text, seq = answer
    stated = [path for _, path in stated_changes(text)] if noted else named_files(text)
    told = {path: seq for path in stated if path not in known}
    longer = [*told, *known, *named]
    for name, at in nameless:
        path = next((path for path in longer if path.endswith(f"/{name}")), name)
        if told and _ABSOLUTE.match(path):  # a path as calls have it: that of the file read last
            bare = path.replace("\\", "/").rsplit("/", 1)[-1]
            path = path if told.pop(bare, None) is not None else ""  # the answer names this file, or others
        if path and path not in known and not is_generated(path):
            told.setdefault(path, at)
    return told


_ABSOLUTE = lazy_pattern(r"/|[A-Za-z]:|file:")


# --- What version control shows: the commits that a call made, with their hashes, and the state of the working tree ---
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


_COMMITS = lazy_pattern(r"\bgit\b(?:\s+-[cC]\s+\S+|\s+--?\S+)*\s+(?:commit|merge|revert|cherry-pick|am|rebase)\b")
_COMMIT = lazy_pattern(r"\bgit\b(?:\s+-[cC]\s+\S+|\s+--?\S+)*\s+commit\b(?!-)")
_REPORT = lazy_pattern(
    r"^(?:(?:Output: )?\[(?:[^\]\n]{1,200}? )(?:\(root-commit\) )?([0-9a-f]{6,40})\]|Commit ([0-9a-f]{7,40})) (.{1,500})",
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
    text = _command_text(start)
    if went_well and _OPENS.search(text[:_MOST_CHARS]):
        return [Commit("", one[0], url=one[0]) for one in _URL.finditer(_both_ends(output, _MOST_CHARS))][-1:]
    if not text or not _COMMITS.search(text[:_MOST_CHARS]) or _DRY.search(text[:_MOST_CHARS]):
        return []
    amends = "--amend" in text
    shown = _both_ends(output, _MOST_CHARS)
    rebased = _REBASES.search(text[:_MOST_CHARS]) is not None
    reports = [one for one in _REPORT.finditer(shown) if one[1] or start.kind != "shell"]
    found = [Commit(one[1] or one[2], one_line(one[3], _SUBJECT), amends, rebased) for one in reports]
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
    """Whether a call puts commits on another base, so that their hashes change."""
    return bool(_REBASE.search(_command_text(start)[:_MOST_CHARS]))


_REBASE = lazy_pattern(r"\bgit\b[^;&|\n]{0,80}\s(?:rebase\b|pull\b[^;&|\n]{0,80}\s(?:--rebase|-r)\b)")


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


#: Words before a commit that was there already.
_OLDER = lazy_pattern(
    r"\b(?:recent|previous|prior|earlier|existing|upstream|base|per|since|after|before|from|see|introduced (?:in|by))(?: the| this| that)? (?:\w+ )?$",
    re.IGNORECASE,
)


def _stated_commits(report: str) -> list[Commit]:
    """Return the commits that the report of a subagent states as its own."""
    if "ommit" not in report and "COMMIT" not in report:
        return []
    shown = _both_ends(report, _MOST_CHARS)
    named = (one for one in _STATED.finditer(shown) if not _OLDER.search(shown, max(0, one.start() - 30), one.start()))
    found = {one[1].lower(): one for one in named}
    return [Commit(number, "", by="subagent") for number in found]


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


# --- the working tree ---

_MAX_CHARS = 20_000
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
    asks = _ASKS.search(command[:_MAX_CHARS]) if "git" in command else None
    if asks is None or not output or _OTHER_TREE.search(asks[3]):
        return []
    shown = output[:_MAX_CHARS]
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
