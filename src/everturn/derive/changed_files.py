"""The files that a session changed, folded turn by turn, and whose changes they are.

Calls name most files. The rest is told by version control: the report of a commit, or `git status` after the work. Both show
the changes of everybody, so a file that only they name needs evidence:

- A commit shows what was there to commit. Its files count if a command named them, if files were changed without a name
  before it (a pattern that covers them, an edit whose transcript has no path), or if a subagent worked whose
  changes nobody noted, and unless they were changed already when the agent began.
- A status counts for the files that a pattern covers (`sed -i … src/*.go`) and for what a subagent left behind.

One file has one name, see `derive.paths`. Pure; nothing is read from disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.paths import known_path, local_path, matches_any, same_case
from everturn.derive.tool_scripts import wide_targets
from everturn.derive.turn_facts import CallFact, Touch, TurnFacts
from everturn.text.lazy_pattern import lazy_pattern

NEVER = 1 << 62
CHANGES = ("edit", "create", "delete")


class FileState(Struct, frozen=True):
    """A file and the last action on it. `count` counts changes, `reads` reads."""

    path: str
    action: str
    turn: int
    seq: int
    count: int = 0
    reads: int = 0
    first: int = 0  # turn in which it first appeared
    by: str = ""  # "subagent" if only subagents touched it


class TreeBefore(Struct, frozen=True):
    """What is known of the working tree before a turn."""

    workspace: str
    before: tuple[str, ...] = ()  # files that were changed already when the agent began
    delegated: bool = False  # a subagent has worked, and the client did not note what it changed
    unnamed: bool = False  # there were edits that name no file
    ran: list[str] = []  # commands that went well
    named: tuple[str, ...] = ()  # files that were mentioned or listed


def advance_files(known: dict[str, FileState], facts: TurnFacts, tree: TreeBefore) -> dict[str, FileState]:
    """Return the files after one more turn, the last one touched at the end."""
    files = dict(known)
    spelled = {same_case(path, tree.workspace): path for path in files}
    committed = {seq for _, seq in facts.commits}
    shell = {call.seq for call in facts.deeds if call.kind == "shell"}
    named = {call.seq: call.what for call in facts.deeds if call.kind in CHANGES}
    shown = _left_by_patterns(facts, tree)
    touches = (*facts.files, *_left_by_subagents(known, facts, tree), *shown, *_covered(known, facts, tree))
    for touch in sorted(touches, key=attrgetter("seq")):
        path = local_path(touch.path.rstrip("/\\") or "/", tree.workspace)
        if touch.seq in shell or touch.by:
            path = known_path(path, [one for one, file in files.items() if file.count], not tree.workspace)
        elif "/" not in path and path not in files and path not in named.get(touch.seq, ""):  # told by an answer
            same = [one for one, file in files.items() if file.count and one.endswith(f"/{path}")]
            path = same[0] if len(same) == 1 else path
        path = spelled.setdefault(same_case(path, tree.workspace), path)
        is_own = path in files and files[path].count
        if (
            touch.seq in committed
            and touch.action != "read"
            and not is_own
            and not _is_committed(facts, tree, touch, path)
        ):
            continue  # a commit of what somebody else changed
        files[path] = _update_file(files.pop(path, None), touch, path, facts.turn)
    return files


def advance_before(facts: TurnFacts, tree: TreeBefore) -> tuple[str, ...]:
    """Return the files that were changed before the agent changed or delegated anything."""
    if tree.delegated or tree.unnamed or any(map(wide_targets, tree.ran)):
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


def _is_committed(facts: TurnFacts, tree: TreeBefore, touch: Touch, path: str) -> bool:
    """Whether a file that only the report of a commit names may be the agent's: something that it did can have made it."""
    name = path.rsplit("/", 1)[-1]
    ran = [*tree.ran, *(call.what for call in _well_done(facts) if call.kind == "shell" and call.seq <= touch.seq)]
    if any(_ACTS_ON.search(one, 0, one.index(name)) for one in ran if name in one):
        return True
    if path in tree.before:
        return False
    unnamed = tree.unnamed or any(call.kind in CHANGES and not _is_noted(call, facts) for call in _well_done(facts))
    delegated = tree.delegated or first_task(facts) < touch.seq
    return unnamed or delegated or any(matches_any(path, wide_targets(one)) for one in ran)


#: Before the name of a file: a program that does more than show it or hand it to version control.
_ACTS_ON = lazy_pattern(
    r"(?:^|[;&|]\s?)(?!cd |git (?:add|commit|diff|log|show|status|push|ls-files|blame|checkout|restore)|(?:ls|cat|head|tail|grep|rg|file|wc|find|"
    r"less|diff|stat|sed -n|echo|bat|open|code) )\w[^;&|]*$"
)


def _is_noted(call: CallFact, facts: TurnFacts) -> bool:
    return any(one.seq == call.seq and one.action != "read" for one in facts.files)


def _well_done(facts: TurnFacts) -> Iterator[CallFact]:
    return (call for call in facts.deeds if call.status == "ok" and not call.outcome)


def _targets(call: CallFact) -> list[str]:
    return wide_targets(call.what) if call.kind == "shell" else []


def _left_by_patterns(facts: TurnFacts, tree: TreeBefore) -> Iterator[Touch]:
    """Yield the changed files that version control shows after a command that changed files by a pattern."""
    if not facts.trees:
        return
    wide = [(-1, wide_targets(one)) for one in tree.ran] + [(call.seq, _targets(call)) for call in _well_done(facts)]
    wide = [(seq, patterns) for seq, patterns in wide if patterns]
    for one in facts.trees if wide else ():
        path = local_path(one.path, tree.workspace)
        if path not in tree.before and any(seq < one.seq and matches_any(path, patterns) for seq, patterns in wide):
            yield one


def _covered(known: dict[str, FileState], facts: TurnFacts, tree: TreeBefore) -> Iterator[Touch]:
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


def _left_by_subagents(known: dict[str, FileState], facts: TurnFacts, tree: TreeBefore) -> Iterator[Touch]:
    """Yield files that are changed after a task of a subagent and were not before."""
    first = -1 if tree.delegated else first_task(facts)
    own = {local_path(one.path, tree.workspace) for one in facts.files if one.action != "read"}
    for one in facts.trees:
        path = local_path(one.path, tree.workspace)
        file = known.get(path)
        if one.seq > first and path not in tree.before and path not in own and not (file and file.count):
            yield replace(one, by="subagent")


def first_task(facts: TurnFacts) -> int:
    """Return where the first subagent worked of which the client did not note the changed files."""
    noted = {one.seq for one in facts.files if one.action != "read" and not one.by}
    tasks = (call for call in facts.deeds if call.kind == "task" and call.status == "ok" and call.seq not in noted)
    return min((call.seq for call in tasks if not _ONLY_LOOKS.match(call.what)), default=NEVER)


#: The tool and the first words of a task that changes nothing.
_ONLY_LOOKS = lazy_pattern(
    r"\w+ (?:explor|research|investigat|search|find|review|audit|analy[sz]|understand|summari|look|read|inspect"
    r"|(?:\w+ ){0,5}(?:commit|commits|git|gitter|push|pull request|pr)\b)",
    re.IGNORECASE,
)


def _update_file(known: FileState | None, touch: Touch, path: str, turn: int) -> FileState:
    reads = touch.action == "read"
    if known is None:
        return FileState(path, touch.action, turn, touch.seq, int(not reads), int(reads), turn, touch.by)
    by = known.by if touch.by else ""
    if reads:
        return replace(known, reads=known.reads + 1, by=by)
    return replace(known, action=touch.action, turn=turn, seq=touch.seq, count=known.count + 1, by=by)
