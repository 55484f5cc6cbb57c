"""Find what a session leaves open: questions to the human, next steps, and the items of a plan.

Only the end of the last answer of a turn counts for questions: one in the middle of a text is often rhetorical. Next steps
are the items under a heading that announces them, or else sentences that begin so.

Agents write plans in different shapes, recognised by shape and not by name: a list of items with a status replaces the
plan, a single item is added, an id with a status changes one, and text with check boxes is a list too. Never raises.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from everturn.model.conversation import CallStart
from everturn.text.printable import one_line
from everturn.text.sentences import split_sentences

_LONGEST = 200
_END = 700  # characters at the end of an answer
_QUESTIONS = 3
_STEPS = 8
_WORDS = 4  # a step with fewer words says nothing

_HEADED = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|\*\*|__)?(?:(?:recommended|suggested|possible|immediate|concrete|your|the|my)[ ])?"
    r"(?:next[ ](?:\w+[ ])?steps?|next|remaining(?:[ ](?:work|tasks|steps|items|issues))?|(?:still[ ])?to[ -]?dos?|still[ ](?:open|to[ ]do|missing)|"
    r"follow-?[ ]?ups?|what(?:['’]s|[ ]is|[ ]remains)?(?:[ ](?:left|next|remaining))?(?:[ ]to[ ]do)?|left[ ]to[ ]do|open[ ]items)"
    r"[ \t]*(?:\([^()\n]{0,80}\))?[ \t]*(?:\*\*|__)?[ \t]*:?[ \t]*(?:\*\*|__)?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_ITEM = re.compile(r"^[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+(?:\[.\][ \t]+)?(\S.{0,2000})$")
_NEXT = re.compile(
    r"(?:next,|next(?: up| step| i['’]?ll| i will| we)\b|the next step\b|remaining:|still (?:to do|open|missing):|"
    r"(?:i['’]ll|i will) next\b|(?:what['’]s|what is) left\b)",
    re.IGNORECASE,
)


def find_closing_questions(text: str) -> list[str]:
    """Return the questions in the last paragraph of an answer."""
    paragraphs = [one for one in re.split(r"\n[ \t]*\n", text[-_END:].strip()) if one.strip()]
    while len(paragraphs) > 1 and _ITEM.match(paragraphs[-1].splitlines()[0]):
        paragraphs.pop()  # the options of the question
    sentences = split_sentences(paragraphs[-1]) if paragraphs else ()
    questions = [one_line(one.text, _LONGEST) for one in sentences if one.text.rstrip("*_\"')").endswith("?")]
    return questions[-_QUESTIONS:]


def find_call_questions(start: CallStart) -> list[str]:
    """Return the questions of a call to the human."""
    given: Any = start.input
    if isinstance(given, str):
        return [one_line(given, _LONGEST)] if given.strip() else []
    if not isinstance(given, dict):
        return []
    listed = given.get("questions")
    items = listed if isinstance(listed, list) else [given]
    found = []
    for item in items[:10]:
        words = item if isinstance(item, str) else _question_text(item) if isinstance(item, dict) else ""
        if words.strip():
            found.append(one_line(words, _LONGEST))
    return found


def find_next_steps(text: str) -> list[str]:
    """Return the next steps that an answer names last."""
    if headed := list(_HEADED.finditer(text)):
        return _list_items(text[headed[-1].end() :])
    found = [
        one_line(one.text, _LONGEST) for one in split_sentences(text[-2_000:]) if _NEXT.match(one.text.lstrip("*_ "))
    ]
    return [words for words in found if not words.endswith("?") and len(words.split()) >= _WORDS][-_QUESTIONS:]


def _question_text(item: dict[str, Any]) -> str:
    return next(
        (item[name] for name in ("question", "text", "prompt", "message") if isinstance(item.get(name), str)), ""
    )


def _list_items(text: str) -> list[str]:
    """Return the items of the list at the beginning, or else the first line."""
    found: list[str] = []
    for line in text.strip("\n").splitlines():
        if item := _ITEM.match(line):
            found.append(one_line(item[1], _LONGEST))
        elif found and line.strip() and not line.startswith((" ", "\t")):
            break
        elif not found and line.strip():
            return [one_line(line, _LONGEST)]
        if len(found) == _STEPS:
            break
    return found


# --- plans ---
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
_BOX = re.compile(r"^[ \t]{0,40}(?:(?:[-*+]|\d{1,3}[.)])[ \t]{1,9})?\[(.)\][ \t]+(\S.{0,1000})$", re.MULTILINE)
_NUMBER = re.compile(r"#(\d{1,6})\b")


class PlanChange(Struct, frozen=True):
    """A plan item and its new status; `id` as the agent numbers it, or ""."""

    text: str
    status: str
    id: str = ""


class PlanUpdate(Struct, frozen=True):
    """The plan as one call states it: the whole plan, or changes to it."""

    changes: tuple[PlanChange, ...]
    whole: bool = True


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
