"""The files that a session changed, folded turn by turn, and whose changes they are.

Calls name most files. The rest is told by version control: the report of a commit, or `git status` after the work. Both show
the changes of everybody, so a file that only they name needs evidence:

- A commit shows what was there to commit, the first one of a repository all that ever was. Its files count if a command named them, if files were changed without a name
  before it (a pattern that covers them, an edit whose transcript has no path), or if a subagent worked whose
  changes nobody noted, and unless they were changed already when the agent began.
- A status counts for the files that a pattern covers (`sed -i … src/*.go`) and for what a subagent left behind.

One file has one name, see `derive.paths`. Pure; nothing is read from disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.file_book import FOLDER, REPORT, SUBAGENT, FileBook, FileState, present_again
from everturn.derive.file_commands import LOG_NAME
from everturn.derive.paths import is_absolute, is_scratch, local_path, matches_any, plain_path, same_case
from everturn.derive.tool_scripts import wide_targets
from everturn.derive.turn_facts import CallFact, Touch, TurnFacts
from everturn.derive.version_control import untracked_files
from everturn.text.lazy_pattern import lazy_pattern

NEVER = 1 << 62
CHANGES = ("edit", "create", "delete")


class RanBefore(Struct, frozen=True):
    """The commands that went well before a turn, and what is asked of them again and again."""

    read: int = 0  # how many commands were read for it
    commands: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()  # the patterns of the files that they changed without naming them
    begins: bool = False  # one of them made the repository


class TreeBefore(Struct, frozen=True):
    """What is known of the working tree before a turn."""

    workspace: str
    before: tuple[str, ...] = ()  # files that were changed already when the agent began
    delegated: bool = False  # a subagent has worked, and the client did not note what it changed
    unnamed: bool = False  # there were edits that name no file
    ran: RanBefore = RanBefore()
    named: Mapping[str, object] = {}  # files that were mentioned or listed


def advance_ran(ran: RanBefore, new: list[str], read: int) -> RanBefore:
    """Return what is known of the commands that went well after some more of them."""
    wide = dict.fromkeys((*ran.wide, *(pattern for one in new for pattern in wide_targets(one))))
    begins = ran.begins or any("git init" in one for one in new)
    return RanBefore(read, (*ran.commands, *new), tuple(wide), begins)


def advance_files(known: Mapping[str, FileState], facts: TurnFacts, tree: TreeBefore) -> FileBook:
    """Return the files after one more turn, the last one touched at the end."""
    files = known.copy() if isinstance(known, FileBook) else FileBook(known, tree.workspace)
    names, commits = _FileNames(files, facts, tree), _CommittedFiles(facts, tree)
    shown = _left_by_patterns(facts, tree)
    touches = (
        *facts.files,
        *_left_by_subagents(known, facts, tree),
        *shown,
        *_covered(known, facts, tree),
        *_untracked(facts),
        *facts.folders,
    )
    idle = _idle_tasks(facts)
    for touch in sorted(touches, key=attrgetter("seq")):
        path, given = names.find(touch)
        is_own = path in files and files[path].count > 0
        if path == "/" or (touch.by == SUBAGENT and touch.seq in idle) or (touch.by == REPORT and is_own):
            continue  # the report of a review names what others changed, that of an answer what its calls did
        if touch.path.endswith("/") and touch.action == "created":
            files.make_folder(path, facts.turn, touch.seq)
            continue
        if touch.action == "deleted" and (files.drop_folder(path) or names.is_no_loss(path, touch.seq, files)):
            continue
        if touch.action != "read" and not (names.is_edited(touch) or commits.is_own(touch, path, files.get(path))):
            continue  # a commit of what somebody else changed, or that says again what was written before
        shorter = names.take_shorter(path, given)
        before = _join_states(files.get(path), shorter)
        is_new = touch.action == "created" and path not in tree.before
        files.put(path, _update_file(before, touch, path, given, facts.turn, is_new))
        if touch.action == "deleted":
            files.delete_inside(path)
        elif touch.action != "read":
            files.restore_folders(path)
    files.restore_shown((call.seq, call.what) for call in _well_done(facts) if call.kind == "shell")
    return files


class _FileNames:
    """The one name of each file of a session.

    A call that names its file says best which one it means. A shell may run in another folder, version control names files
    from the root of a repository, and an answer may leave the folder out: such a name means the one changed file that ends
    with it. The same holds for relative and absolute names of calls if the workspace is not known, which shows in that no
    absolute name lies in it. `files` is changed by the caller, and looked up here.
    """

    def __init__(self, files: FileBook, facts: TurnFacts, tree: TreeBefore) -> None:
        self.files, self.tree = files, tree
        self.shell = {call.seq for call in facts.deeds if call.kind == "shell"}
        self.labels: dict[int, str] = {}
        for call in facts.deeds:
            self.labels[call.seq] = f"{self.labels.get(call.seq, '')}\n{call.what}".replace("\\", "/")
        self.own = [call for call in _well_done(facts) if call.kind == "shell"]
        self.edited: dict[int, str] = {}  # what the calls that edit name, by message: it may also hold a commit
        for call in facts.deeds:
            if call.kind in CHANGES:
                self.edited[call.seq] = f"{self.edited.get(call.seq, '')}\n{call.what}".replace("\\", "/")

    def is_edited(self, touch: Touch) -> bool:
        """Whether a call that edits files names a file."""
        return plain_path(touch.path) in self.edited.get(touch.seq, "")

    def find(self, touch: Touch) -> tuple[str, str]:
        """Return the name of a file, and what gave it: "absolute" or "relative" for a call, "shell", or "told"."""
        path = local_path(touch.path.rstrip("/\\") or "/", self.tree.workspace)
        given = self._given(touch, path)
        if known := self.files.spelled.get(same_case(path, self.tree.workspace)):
            return known, given
        near = [*self.files.enders(path), *self.files.ends(path)]
        same = [one for one in near if self._is_same(path, given, one, touch.seq)]
        same = [one for one in same if self.files[one].count] or ("/" in path and same) or []  # else one only read
        same = [one for one in same if len(one) >= len(path)] or same
        if len(same) > 1 and "/" not in path:
            same = [one for one in same if self.files.is_root(one[: -len(path) - 1])]
        return (same[0] if len(same) == 1 else path), given

    def _given(self, touch: Touch, path: str) -> str:
        if touch.by == SUBAGENT or (touch.seq in self.shell and not self.is_edited(touch)):
            return "shell"
        plain = plain_path(touch.path)
        label = self.labels.get(touch.seq, "")
        is_told = plain not in label and path not in label
        return "absolute" if is_absolute(plain) else "told" if is_told else "relative"

    def take_shorter(self, path: str, given: str) -> FileState | None:
        """Take out the file that so far had a name without its folder, or with another case, and that a call names in full."""
        if given not in _BY_CALLS:
            return None
        for one in self.files.ends(path):
            if one == path:
                continue
            is_shorter = path.endswith(f"/{one}") and not any(
                other.endswith(f"/{one}") for other in self.files.enders(one) if other != path
            )
            if (is_shorter or path.lower() == one.lower()) and self._is_same(one, self.files[one].given, path, NEVER):
                return self.files.take(one)
        return None

    def _is_same(self, path: str, given: str, known: str, seq: int) -> bool:
        """Whether a name that something gave means the file of another name."""
        is_weak, inside = given not in _BY_CALLS, self.files.has_workspace
        if path.lower() == known.lower():
            return given == "told"
        if given == "told" and not inside and path.endswith(f"/{known}"):
            return True
        if is_absolute(path):
            return is_weak and "/" in known and path.endswith(f"/{known}")
        if path.startswith("~") or not known.endswith(f"/{path}"):
            return False
        if given == "told" or (is_weak and "/" in path) or (not inside and self._given_before(known) == "told"):
            return True
        folder = known[: -len(path) - 1]
        if inside or is_scratch(known):
            return is_weak and folder == self._current_folder(seq)
        is_rare = "/" not in path and not _COMMON.match(path)
        return is_rare or (is_absolute(known) and ("/" in path or self.files.is_root(folder)))

    def is_no_loss(self, path: str, seq: int, files: FileBook) -> bool:
        """Whether what is removed needs no entry: a log, an emptied folder, a folder that a command of the session brought, or what is temporary."""
        if path in files and files[path].count:
            return False
        if LOG_NAME.search(path) or files.is_emptied(path):
            files.drop_removed_folders(path)
            return True
        name = path.rsplit("/", 1)[-1]
        if is_scratch(path):
            return True
        if "." in name:
            return False
        ran = (*self.tree.ran.commands, *(call.what for call in self.own if call.seq < seq))
        return any(_MAKES.search(one, 0, one.index(name)) for one in ran if name in one)

    def _given_before(self, path: str) -> str:
        return self.files[path].given if path in self.files else ""

    def _current_folder(self, seq: int) -> str:
        """Return the folder to which the commands before a message went, if it is certain."""
        own = [call.what for call in self.own[-_MOST_RAN:] if call.seq <= seq]
        below = ""
        for command in reversed((*self.tree.ran.commands[-_MOST_RAN:], *own)):
            for entered in reversed(_ENTERS.findall(command)):
                folder = local_path(entered.strip("\"'"), self.tree.workspace)
                below = f"{folder}/{below}".rstrip("/")
                if is_absolute(plain_path(entered.strip("\"'"))):
                    return below
        return below


_MAKES = lazy_pattern(
    r"\b(?:git (?:clone|worktree add|init)|create[-\w@./]*|[\w./@-]+ (?:create|init|new|generate|startproject|startapp)|unzip|tar|mkdir)\b[^;&|]*$"
)
#: What names a file in full, or from the workspace.
_BY_CALLS = ("relative", "absolute")
_ENTERS = lazy_pattern(r"(?:^|&&|;) ?cd (\"[^\"]{1,300}\"|'[^']{1,300}'|[^\s;&|]{1,300})")
_MOST_RAN = 200


#: Names that many folders have. A client may shorten other ones.
_COMMON = lazy_pattern(
    r"[._]*(?:readme|index|main|init|package|page|layout|routes?|types?|utils?|helpers?|config|settings|constants|app|server|tests?|setup|changelog|"
    r"license|todo|notes|dockerfile|makefile|styles?|globals?|schema|models?|views?|urls|conftest|requirements|tsconfig|vite|env|gitignore)\b_*[.\w-]*$",
    re.IGNORECASE,
)


def _join_states(one: FileState | None, two: FileState | None) -> FileState | None:
    """Return what is known of a file that had two names."""
    if one is None or two is None:
        return one or two
    first, last = sorted((one, two), key=attrgetter("seq"))
    return replace(
        last,
        count=one.count + two.count,
        reads=one.reads + two.reads,
        first=min(one.first, two.first),
        by=one.by and two.by,
        action=first.action if last.action == "read" else last.action,
        made=first.made,
    )


def advance_before(facts: TurnFacts, tree: TreeBefore) -> tuple[str, ...]:
    """Return the files that were changed before the agent changed or delegated anything."""
    if tree.delegated or tree.unnamed or tree.ran.wide:
        return tree.before
    first = min((one.seq for one in facts.files if one.action != "read"), default=NEVER)
    acts = [call.seq for call in _well_done(facts) if call.kind in CHANGES or _targets(call)]
    first = min(first, first_task(facts), *acts)
    shown = (local_path(one.path, tree.workspace) for one in facts.trees if one.seq < first)
    return tuple(dict.fromkeys((*tree.before, *shown)))


def count_unnamed(facts: TurnFacts) -> int:
    """Return how many edits of a turn name no file, if nothing else of the turn names it either."""
    seqs = [call.seq for call in _well_done(facts) if call.kind in CHANGES]
    noted = {one.seq for one in facts.files if one.action != "read"} if seqs else set[int]()
    told = noted - {call.seq for call in facts.deeds}
    return 0 if told else sum(seq not in noted for seq in seqs)


class _CommittedFiles:
    """Tells of the files that the reports of commits name whether the agent can have changed them."""

    def __init__(self, facts: TurnFacts, tree: TreeBefore) -> None:
        self.tree, self.seqs = tree, {seq for _, seq in facts.commits}
        self.roots = {seq for one, seq in facts.commits if one.root}
        self.before, self.own, self.wide = "", list[CallFact](), list[str]()
        if self.seqs:
            self.before = "\n".join(tree.ran.commands)
            self.own = [call for call in _well_done(facts) if call.kind == "shell"]
            self.wide = [*tree.ran.wide, *(pattern for call in self.own for pattern in _targets(call))]
            self.task = first_task(facts)
            noted = {one.seq for one in facts.files if one.action != "read"}
            self.unnamed = tree.unnamed or any(
                call.kind in CHANGES and call.seq not in noted for call in _well_done(facts)
            )
            self.own_text = "\n".join(call.what for call in self.own)

    def is_own(self, touch: Touch, path: str, known: FileState | None) -> bool:
        """Whether a change is the agent's: no commit reports it, the file is, or something that it did can have made it."""
        if touch.seq not in self.seqs or touch.by:
            return True
        is_known = known is not None and known.count > 0
        if is_known and touch.action == "created":
            return known is not None and known.action == "deleted"
        name = path.rsplit("/", 1)[-1]
        ran = [*_lines_with(name, self.before), *_lines_with(name, self.own_text)]
        if touch.action == "deleted" and any(map(_UNTRACKS.search, ran)):
            return False  # it is only no longer tracked
        if is_known or any(_ACTS_ON.search(one, 0, one.index(name)) for one in ran):
            return True
        if path in self.tree.before:
            return False
        if self.unnamed or matches_any(path, self.wide):
            return True
        return (self.tree.delegated or self.task < touch.seq) and touch.seq not in self.roots


def _lines_with(name: str, text: str) -> Iterator[str]:
    at = text.find(name)
    while at >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield text[text.rfind("\n", 0, at) + 1 : end]
        at = text.find(name, end)


#: Before the name of a file: a program that does more than show it or hand it to version control.
_ACTS_ON = lazy_pattern(
    r"(?:^|[;&|]\s?)(?!cd |git (?:add|commit|diff|log|show|status|push|ls-files|blame|checkout|restore)|(?:ls|cat|head|tail|grep|rg|file|wc|find|"
    r"less|diff|stat|sed -n|echo|bat|open|code) )\w[^;&|]*$"
)


_UNTRACKS = lazy_pattern(r"\bgit rm (?:-\S+ )*--cached\b")


def _well_done(facts: TurnFacts) -> Iterator[CallFact]:
    return (call for call in facts.deeds if call.status == "ok" and not call.outcome)


def _targets(call: CallFact) -> list[str]:
    return wide_targets(call.what) if call.kind == "shell" else []


def _left_by_patterns(facts: TurnFacts, tree: TreeBefore) -> Iterator[Touch]:
    """Yield the changed files that version control shows after a command that changed files by a pattern."""
    if not facts.trees:
        return
    own = [(call.seq, patterns) for call in _well_done(facts) if (patterns := _targets(call))]
    for one in facts.trees if own or tree.ran.wide else ():
        path = local_path(one.path, tree.workspace)
        if path in tree.before:
            continue
        if matches_any(path, tree.ran.wide) or any(seq < one.seq and matches_any(path, wide) for seq, wide in own):
            yield one


def _covered(known: Mapping[str, FileState], facts: TurnFacts, tree: TreeBefore) -> Iterator[Touch]:
    """Yield the files that were read or listed before and that the pattern of an editing command covers."""
    for call in _well_done(facts):
        patterns = [one for one in _targets(call) if not one.endswith("**/*") and _EDITS.search(call.what)]
        if not patterns:
            continue
        listed = (local_path(one.path, tree.workspace) for one in facts.mentions if one.seq < call.seq)
        for path in dict.fromkeys((*known, *tree.named, *listed)):
            fitting = [one for one in patterns if "/" in one or "/" not in path]
            if matches_any(path, fitting):
                yield Touch(path, "edited", call.seq)


#: A command that edits every file of a pattern: not those that a search picks out.
_EDITS = lazy_pattern(
    r"^(?:cd [^;&|]{1,300}(?:&&|;)\s?)?(?:for \w+ in [^;]{1,300}; ?do\s)?(?:g?sed|perl)\s[^|]{1,400}$"
)


def _untracked(facts: TurnFacts) -> Iterator[Touch]:
    """Yield the files that were taken out of version control and stay on the disk."""
    for call in _well_done(facts):
        if call.kind == "shell" and "git" in call.what:
            yield from (Touch(path, "untracked", call.seq) for path in untracked_files(call.what))


def _left_by_subagents(known: Mapping[str, FileState], facts: TurnFacts, tree: TreeBefore) -> Iterator[Touch]:
    """Yield files that are changed after a task of a subagent and were not before. A new repository shows all files."""
    first = -1 if tree.delegated else first_task(facts)
    if not facts.trees or tree.ran.begins or any("git init" in call.what for call in facts.deeds):
        return
    own = {local_path(one.path, tree.workspace) for one in facts.files if one.action != "read"}
    for one in facts.trees:
        path = local_path(one.path, tree.workspace)
        file = known.get(path)
        if one.seq > first and path not in tree.before and path not in own and not (file and file.count):
            yield replace(one, by=SUBAGENT)


def first_task(facts: TurnFacts) -> int:
    """Return where the first subagent worked of which the client did not note the changed files."""
    noted = {one.seq for one in facts.files if one.action != "read" and not one.by}
    tasks = (call for call in facts.deeds if call.kind == "task" and call.status == "ok" and call.seq not in noted)
    return min((call.seq for call in tasks if not _CHANGES_NOTHING.match(call.what)), default=NEVER)


def _idle_tasks(facts: TurnFacts) -> set[int]:
    """Return the tasks of subagents that change nothing."""
    return {call.seq for call in facts.deeds if call.kind == "task" and _CHANGES_NOTHING.match(call.what)}


#: The tool and the first words of a task that changes nothing, or the number of one to wait for, to read or to stop.
_CHANGES_NOTHING = lazy_pattern(
    r"\w+ (?:(?:(?:\w+ ){0,2}(?:review|audit)|explor|research|investigat|search|find|analy[sz]|understand|summari|look|read|inspect|check|verif|locat|list|map|assess"
    r"|trac[ei]|identif|diagnos|compar|evaluat|stud[iy])(?!.{0,200}\b(?:and|then|,) (?:\w+ly )?(?:fix|writ|creat|updat|implement|add|edit|chang|refactor|replac|remov))"
    r"|(?:\w+ ){0,5}(?:commit|commits|git|gitter|push|pull request|pr)\b|(?=\S*\d)[\w-]+$)",
    re.IGNORECASE,
)


def _update_file(known: FileState | None, touch: Touch, path: str, given: str, turn: int, is_new: bool) -> FileState:
    reads = touch.action == "read"
    if known is None:
        return FileState(path, touch.action, turn, touch.seq, int(not reads), int(reads), turn, touch.by, given, is_new)
    by = known.by if touch.by else ""
    given = max(given, known.given, key=_GIVEN.index)
    known = replace(known, path=path, by=by, given=given)
    if not reads:
        return replace(known, action=touch.action, turn=turn, seq=touch.seq, count=known.count + 1)
    known = present_again(known) if known.action == "deleted" else known
    return replace(known, reads=known.reads + 1)


_GIVEN = ("", FOLDER, "told", "shell", "relative", "absolute")
