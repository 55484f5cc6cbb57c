"""The plan of a session: the items that calls, task files and prompts list, and what becomes of them.

Agents write plans in different shapes, recognised by shape and not by name: a list of items with a status replaces the
plan, a single item is added, an id with a status changes one, and text with check boxes is a list too. The items of a task file
count once one of them is ticked, whatever ticks it: an edit, or a command with the number of the task. `tick_made_tasks` also takes those for done whose files were made. `find_manual_steps` reads
the steps of a plan that a person does by hand. `advance_plan` applies it all to the items of a plan. Pure. Never raises.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from posixpath import basename
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.decisions import likeness
from everturn.model.conversation import CallStart
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.sentences import split_sentences

_LONGEST = 200
_STEPS = 8
_STEPS_READ = 2_000  # characters below a heading that can name steps

#: Status of a plan item.
STATUSES = ("open", "doing", "done", "dropped")

_MAX_ITEMS = 200
_LISTS = ("todos", "plan", "items", "tasks", "steps", "todo_list", "todoList")
_TEXTS = ("content", "step", "subject", "description", "title", "text", "task", "name", "todo")
_IDS = ("taskId", "task_id", "id")
_STATUS = {
    **dict.fromkeys(("pending", "open", "todo", "not_started", "not-started", "queued", "blocked", "unchecked", " "), "open"),
    **dict.fromkeys(("in_progress", "in-progress", "inprogress", "active", "doing", "started", "current", "running"), "doing"),
    **dict.fromkeys(("completed", "complete", "done", "finished", "closed", "checked", "x"), "done"),
    **dict.fromkeys(("cancelled", "canceled", "deleted", "dropped", "skipped", "removed", "abandoned"), "dropped"),
}  # fmt: skip
_BOX = lazy_pattern(r"^[ \t]{0,40}(?:(?:[-*+]|\d{1,3}[.)])[ \t]{1,9})?\[(.)\][ \t]+(\S.{0,1000})$", re.MULTILINE)
_NUMBER = lazy_pattern(r"#(\d{1,6})\b")


class PlanChange(Struct, frozen=True):
    """A plan item and its new status; `id` as the agent numbers it, or ""."""

    text: str
    status: str
    id: str = ""


class PlanUpdate(Struct, frozen=True):
    """The plan as one call states it: the whole plan, or changes to it; `known` if it adds no items."""

    changes: tuple[PlanChange, ...]
    whole: bool = True
    known: bool = False


_LINE_NUMBER = lazy_pattern(
    r"^(?:[ \t]*\d{1,6}(?::[ ]|→|\t)|\+(?=[-*]))", re.MULTILINE
)  # also the sign of an added line
_BY_HAND_TURNS = 2
_PLAN_TURNS = 10  # a plan that was not touched for more turns is not followed any more
_TASK_FILE = (".md", ".markdown", ".txt", ".mdx")


def find_task_items(text: str) -> tuple[PlanChange, ...]:
    """Return the check boxes of a task file that are not indented, whether it was read or written."""
    if "[ ]" not in text and "[x]" not in text and "[X]" not in text:
        return ()
    found = (one for one in _BOX.finditer(_LINE_NUMBER.sub("", text[:100_000])) if one[0][:1] not in " \t")
    return tuple(
        PlanChange(one_line(one[2], _LONGEST), _STATUS.get(one[1].lower(), "open"), f"task {one_line(one[2], 60)}")
        for one in found
    )[:_MAX_ITEMS]


def find_ticked(start: CallStart) -> tuple[PlanChange, ...]:
    """Return the items that a call ticks in a task file: lines that an edit writes, and numbers in a command that writes ticks."""
    given = start.input.values() if isinstance(start.input, dict) else (start.input,)
    written = [one for text in given if isinstance(text, str) for one in find_task_items(text)]
    numbers = dict.fromkeys(_TICKS.findall(start.command[:_COMMAND_READ])) if start.command else ()
    ticked = (one for one in written if one.status == "done")
    return (*ticked, *(PlanChange("", "done", f"{_BY_NUMBER}{one}") for one in numbers))


def writes_ticks(command: str) -> bool:
    """Whether a command writes ticks into a file that may hold tasks."""
    return ("[x" in command or "[X" in command) and ".md" in command


#: A command that writes a tick before the number of a task.
_TICKS = lazy_pattern(r"\[[xX]\\?\][ \t]*(?:\*\*)?([A-Z]{1,4}[-_]?\d{1,4}|\d{1,3}(?:\.\d{1,3})*)\b")
_TASK_NUMBER = lazy_pattern(r"\W{0,4}([A-Z]{1,4}[-_]?\d{1,4}|\d{1,3}(?:\.\d{1,3})*)\b")
_BY_NUMBER = "number "
_COMMAND_READ = 4_000


def task_number(text: str) -> str:
    """Return the number that a task begins with, "" if it has none."""
    found = _TASK_NUMBER.match(text)
    return found[1] if found else ""


def find_current(items: Sequence[PlanItem], last_turn: int) -> list[PlanItem]:
    """Return the items that are not done and with which work may go on.

    A file keeps its tasks. An agent's plan counts while it is recent; one of which nothing was done and that no later turn
    touched was only proposed. What a person was to check by hand is over after a few turns.
    """
    own = [one for one in items if not one.id.startswith((BY_HAND, _TASK))]
    is_begun = any(one.status == "done" for one in own)
    kept = {BY_HAND: _BY_HAND_TURNS, _TASK: last_turn}
    found = []
    for one in items:
        kind = next((name for name in kept if one.id.startswith(name)), "")
        turns = kept.get(kind, _PLAN_TURNS if is_begun else 0)
        if one.status in ("open", "doing") and last_turn - one.turn <= turns:
            found.append(one)
    return found


def is_task(item: PlanItem) -> bool:
    """Whether an item was read in a task file."""
    return item.id.startswith(_TASK)


def is_task_file(path: str) -> bool:
    """Whether a file may hold a list of tasks."""
    return path.lower().endswith(_TASK_FILE)


def find_plan(start: CallStart, output: str = "") -> PlanUpdate | None:
    """Return the plan update of a successful call, or None."""
    given = start.input
    if start.kind != "plan":
        # Some agents report progress in an argument of any call.
        progress = given.get("task_progress") if isinstance(given, dict) else None
        return _plan_of_boxes(progress) if isinstance(progress, str) else None
    if isinstance(given, str):
        return _plan_of_boxes(given)
    if not isinstance(given, dict):
        return _plan_of_list(given) if isinstance(given, list) else None
    return _plan_of_arguments(given, output)


def _plan_of_arguments(given: dict[str, Any], output: str) -> PlanUpdate | None:
    listed = next((given[name] for name in _LISTS if isinstance(given.get(name), list)), None)
    if listed is not None:
        return _plan_of_list(listed)
    if any(name in given for name in _IDS):
        return _plan_of_change(given)
    if isinstance(given.get("subject"), str):
        number = _NUMBER.search(output[:500])
        return PlanUpdate((PlanChange(_item_text(given), "open", number[1] if number else ""),), whole=False)
    boxes = [value for value in given.values() if isinstance(value, str) and _BOX.search(value)]
    return _plan_of_boxes(boxes[0]) if boxes else None


def _plan_of_list(items: list[Any]) -> PlanUpdate:
    changes = [_read_change(item) for item in items[:_MAX_ITEMS]]
    return PlanUpdate(tuple(change for change in changes if change.text))


def _read_change(item: Any) -> PlanChange:
    if isinstance(item, str):
        return PlanChange(one_line(item, _LONGEST), "open")
    if not isinstance(item, dict):
        return PlanChange("", "open")
    return PlanChange(_item_text(item), _item_status(item) or "open", _item_id(item))


def _plan_of_change(given: dict[str, Any]) -> PlanUpdate | None:
    text, status = _item_text(given), _item_status(given)
    return PlanUpdate((PlanChange(text, status, _item_id(given)),), whole=False) if text or status else None


def _plan_of_boxes(text: str) -> PlanUpdate | None:
    found = [
        PlanChange(one_line(body, _LONGEST), _STATUS.get(sign.lower(), "done" if sign in "✓✔☑" else "doing"))
        for sign, body in _BOX.findall(text[:100_000])[:_MAX_ITEMS]
    ]
    return PlanUpdate(tuple(found)) if found else None


def _item_text(item: dict[str, Any]) -> str:
    return next((one_line(item[name], _LONGEST) for name in _TEXTS if isinstance(item.get(name), str)), "")


def _item_id(item: dict[str, Any]) -> str:
    return next((str(item[name])[:40] for name in _IDS if isinstance(item.get(name), str | int)), "")


def _item_status(item: dict[str, Any]) -> str:
    for name in ("status", "state"):
        if isinstance(item.get(name), str):
            return _STATUS.get(item[name].lower().strip(), "open")
    for name in ("done", "completed", "checked"):
        if isinstance(item.get(name), bool):
            return "done" if item[name] else "open"
    return ""


# --- The plan of a session: its items, and how a call that writes the plan changes them. Pure ---
class PlanItem(Struct, frozen=True):
    """An item of the plan; turn and seq of its last change."""

    text: str
    status: str  # of open_items.STATUSES
    turn: int
    seq: int
    id: str = ""


def fold_plan(
    known: tuple[PlanItem, ...],
    plans: Iterable[tuple[PlanUpdate, int]],
    turn: int,
    ran: Iterable[str],
    changed: Mapping[str, int],
) -> tuple[PlanItem, ...]:
    """Return the plan after a turn that also ran some commands and changed some files, by the message that did."""
    return tick_made_tasks(tick_run_steps(advance_plan(known, plans, turn), ran), changed)


def advance_plan(
    known: tuple[PlanItem, ...], plans: Iterable[tuple[PlanUpdate, int]], turn: int
) -> tuple[PlanItem, ...]:
    """Return the plan after one more turn."""
    items = list(known)
    for plan, seq in plans:
        if plan.whole:
            items = _replace_plan(items, [PlanItem(one.text, one.status, turn, seq, one.id) for one in plan.changes])
            continue
        items = _without_renamed(items, plan.changes)
        for one in plan.changes:
            change = PlanItem(one.text, one.status or "open", turn, seq, one.id)
            _change_item(items, change, bool(one.status), adds=not plan.known)
    return tuple(items)


def _replace_plan(old: list[PlanItem], new: list[PlanItem]) -> list[PlanItem]:
    """Replace the plan: items that are missing in the new one and were not done are dropped."""
    new_keys = {likeness(one.text) for one in new}
    turn, seq = (new[0].turn, new[0].seq) if new else (old[-1].turn, old[-1].seq) if old else (0, 0)
    kept = [
        one if one.status in ("done", "dropped") else replace(one, status="dropped", turn=turn, seq=seq)
        for one in old
        if likeness(one.text) not in new_keys
    ]
    before = {likeness(one.text): one for one in old}
    return [*kept, *(_keep_unchanged(before.get(likeness(one.text)), one) for one in new)]


def _keep_unchanged(before: PlanItem | None, now: PlanItem) -> PlanItem:
    return before if before is not None and before.status == now.status else now


def _without_renamed(items: list[PlanItem], listed: tuple[PlanChange, ...]) -> list[PlanItem]:
    """Leave out the tasks of a file that it now lists in other words or with another number."""
    ids = {one.id for one in listed if one.id.startswith(_TASK)}
    if len(ids) < _LISTING:
        return items
    names = {name for one in listed for name in _task_names(one.text)}
    return [one for one in items if not is_task(one) or one.id in ids or names.isdisjoint(_task_names(one.text))]


def _task_names(text: str) -> list[str]:
    """Return what tells a task from others: its number, and its words without it."""
    number = task_number(text)
    return [one for one in (number, likeness(text.removeprefix(number))) if one]


_TASK, _LISTING = "task ", 3  # fewer changes are no list


def _is_same_item(one: PlanItem, new: PlanItem) -> bool:
    if new.id.startswith(_BY_NUMBER):
        return is_task(one) and task_number(one.text) == new.id.removeprefix(_BY_NUMBER)
    return bool(new.id) and one.id == new.id


def _change_item(items: list[PlanItem], new: PlanItem, has_status: bool, adds: bool = True) -> None:
    for number, one in enumerate(items):
        if _is_same_item(one, new):
            status = new.status if has_status else one.status
            if status == one.status and new.text in ("", one.text):
                return  # the first place that says so is its evidence
            items[number] = replace(one, text=new.text or one.text, status=status, turn=new.turn, seq=new.seq)
            return
    if new.text and adds:
        made = sum(1 for one in items if one.id)
        items.append(new if new.id else replace(new, id=str(made + 1)))


# --- tasks whose files were made ---
def tick_made_tasks(items: tuple[PlanItem, ...], changed: Mapping[str, int]) -> tuple[PlanItem, ...]:
    """Mark the tasks of a file as done whose own files were all changed after they were listed.

    `changed` maps files to the message of their last change. A file that many tasks name says nothing of each, unless
    a later task is done.
    """
    waiting = {number: _named_files(one.text) for number, one in enumerate(items) if _is_waiting_task(one)}
    if not waiting or not changed:
        return items
    shared = Counter(path for one in items if is_task(one) for path in _named_files(one.text))
    last = max((at for at, one in enumerate(items) if one.status == "done" and is_task(one)), default=-1)
    made = {basename(path): (path, seq) for path, seq in changed.items()}
    done = {
        number
        for number, named in waiting.items()
        if named
        and (number < last or max(shared[one] for one in named) <= _SHARED)
        and all(_is_made(one, made, items[number].seq) for one in named)
    }
    return tuple(replace(one, status="done") if number in done else one for number, one in enumerate(items))


def _is_waiting_task(one: PlanItem) -> bool:
    return one.status == "open" and is_task(one)


def _named_files(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_NAMED_FILE.findall(text)))


def _is_made(named: str, made: Mapping[str, tuple[str, int]], since: int) -> bool:
    path, seq = made.get(basename(named), ("", -1))
    return seq > since and (path.endswith(named.lstrip("./")) or named.endswith(path))


_SHARED = 2  # tasks that may name the same file
_NAMED_FILE = lazy_pattern(r"`(/?(?:[\w.@()\[\]-]{1,80}/){0,20}[\w.@()\[\]-]{1,80}\.[A-Za-z]\w{0,9})`")


# --- steps by hand ---
_MANUAL = lazy_pattern(
    r"\bmanually\b|\bmanual (?:check|test|verif|spot|step|inspect|valid|smoke|qa|review)", re.IGNORECASE
)
_ANY_HEADING = lazy_pattern(r"^(#{1,6})[ \t]+", re.MULTILINE)


def find_manual_steps(text: str) -> tuple[PlanChange, ...]:
    """Return the steps by which a plan wants its result checked: by hand, or by a command that it names."""
    by_hand = (
        one.passage
        for one in split_sentences(text)
        if _MANUAL.match(one.passage) or (one.is_item and _MANUAL.search(one.passage[:120]))
    )
    checks = (
        one[1]
        for heading in _VERIFIES.finditer(text)
        for one in _STEP.finditer(_ANY_HEADING.split(text[heading.end() :][:_STEPS_READ])[0])
        if _SHELL.search(one[1]) or _BY_HAND.match(one[1])
    )
    return tuple(
        PlanChange(one_line(one, _LONGEST), "open", f"{BY_HAND}{one_line(one, 60)}")
        for one in dict.fromkeys((*by_hand, *checks))
    )[:_STEPS]


def tick_run_steps(items: tuple[PlanItem, ...], ran: Iterable[str]) -> tuple[PlanItem, ...]:
    """Mark the steps as done whose command was run."""
    waiting = [one for one in items if one.status == "open" and one.id.startswith(BY_HAND)]
    done = {one.id for command in ran for one in waiting if _runs(command, one.text)} if waiting else set()
    return tuple(replace(one, status="done") if one.id in done else one for one in items) if done else items


def _runs(command: str, step: str) -> bool:
    run = command.replace(" run ", " ")
    return any(one.replace(" run ", " ") in run for one in _SHELL.findall(step))


#: How the ids of such steps begin.
BY_HAND = "by hand "
_VERIFIES = lazy_pattern(
    r"^#{1,6}[ \t][^\n]{0,40}(?:verif|test plan|validat|how to test|prüfung|vérif|comprobaci|検証|验证)[^\n]{0,40}\n",
    re.IGNORECASE | re.MULTILINE,
)
_STEP = lazy_pattern(r"^(?:[-*+]|\d{1,2}[.)])[ \t]+(?:\[ \][ \t]+)?(\S[^\n]{3,400})$", re.MULTILINE)
_SHELL = lazy_pattern(
    r"`((?:bun|npm|pnpm|yarn|npx|node|python3?|go|cargo|make|uv|pytest|tox|gradle|mvn|docker|\./)\S*(?: [^`]{1,100})?)`"
)
_BY_HAND = lazy_pattern(
    r"(?:click|open|start|visually|verify edge|navigate|load the|in the browser|klick|öffne|clique|ouvr|haz clic|abre|クリック|開いて|点击|打开)",
    re.IGNORECASE,
)
