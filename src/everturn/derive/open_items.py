"""Find what a session leaves open: work that was announced, what was put off, findings, and the items of a plan.

What an answer asks, offers and leaves to do is found in `derive.open_sentences`. `find_summary_steps` reads the steps in a
summary of the client, `find_manual_steps` those of a plan that a person does by hand.

Agents write plans in different shapes, recognised by shape and not by name: a list of items with a status replaces the
plan, a single item is added, an id with a status changes one, and text with check boxes is a list too. Never raises.

`advance_plan` applies such a call to the items of a plan.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.decisions import likeness
from everturn.derive.offers import Answered
from everturn.derive.open_sentences import is_question
from everturn.model.conversation import CallStart
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.sentences import split_sentences
from everturn.text.stance_words import AT_ONCE, BEGUN, CONDITION, PUT_OFF, REPORTS_DONE

_LONGEST = 200
_END = 700  # characters at the end of an answer
_STEPS = 8
_WORDS = 4  # a finding with fewer words says nothing
_STEPS_READ = 2_000  # characters at the end of an answer that can name steps
_SENTENCE = 300  # characters of a step
_LAST = 3  # sentences at the very end in which an order is meant for the person

_ITEM = lazy_pattern(r"^[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+(?:\[.\][ \t]+)?(\S.{0,2000})$")


_MANUAL = lazy_pattern(
    r"\bmanually\b|\bmanual (?:check|test|verif|spot|step|inspect|valid|smoke|qa|review)", re.IGNORECASE
)
_SUMMARY_HEADING = lazy_pattern(
    r"^[ \t]*(?:\d{1,2}[.)][ \t]+)?(?:#{1,6}[ \t]+|\*\*|__)?(?:\d{1,2}[.)][ \t]+)?(?:pending(?: tasks?)?|(?:optional )?next steps?|remaining(?: work| tasks)?|open items|todo)"
    r"(?:\*\*|__)?:?(?:\*\*|__)?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_SUMMARY_NEXT = lazy_pattern(
    r"(?:^|(?<=[.!;]\s))\W{0,4}(?:next(?: step| action| up)?|still to do|remaining)\W{0,3}:[ \t]+(\S[^\n]{3,400}?)(?=\.\s|\.?$|\s\()",
    re.IGNORECASE | re.MULTILINE,
)
_NOTHING = lazy_pattern(r"(?:none|nothing|n/a|keine|aucune?|ninguna?|なし|无)\b", re.IGNORECASE)


def is_no_answer(text: str) -> bool:
    """Whether a text stands in the place of an answer: a note that it was interrupted, or a command that is kept as text."""
    return _NO_ANSWER.match(text) is not None


_NO_ANSWER = lazy_pattern(
    r"\s*(?:\[(?:response|request) interrupted\b[^\]]{0,200}\]|(?:cancell?ed|aborted)\b\W{0,3}|```(?:bash|sh|shell|zsh|console|powershell)\n(?:(?!```).)*```)\s*$",
    re.IGNORECASE | re.DOTALL,
)


def find_begun(text: str) -> str:
    """Return the sentence with which an answer announces the calls after it, "" if it announces none.

    A single sentence before a call says what the call is for, however it is worded.
    """
    sentences = [one.text for one in split_sentences(text[-_END:])]
    words = sentences[-1].lstrip("*_ ") if sentences else ""
    is_alone = len(sentences) == 1 and not REPORTS_DONE.match(words)
    is_said = any(one.isalpha() for one in words)
    return one_line(sentences[-1], _LONGEST) if is_said and (is_alone or BEGUN.match(words)) else ""


def find_announced(text: str) -> str:
    """Return the last sentence of an answer if it announces work that should follow at once."""
    sentences = [one.text for one in split_sentences(text[-_END:])]
    words = sentences[-1].lstrip("*_ ") if sentences else ""
    is_short = len(sentences) == 1 and BEGUN.match(words) is not None and not CONDITION.search(words)
    return one_line(words, _LONGEST) if (is_short or AT_ONCE.match(words)) and not words.endswith("?") else ""


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


def find_summary_steps(text: str) -> list[str]:
    """Return the steps that a summary of the client leaves to do."""
    found = [one_line(one[1], _LONGEST) for one in _SUMMARY_NEXT.finditer(text)][-1:]
    for heading in _SUMMARY_HEADING.finditer(text):
        found += [one for one in _list_items(text[heading.end() :]) if not _NOTHING.match(one.lstrip("*_ "))]
    return list(dict.fromkeys(found))[:_STEPS]


class Question(Struct, frozen=True):
    """A question to the human, and the turn of the next human message."""

    text: str
    turn: int
    seq: int
    answered_by: int | None = None


def advance_questions(
    known: tuple[Question, ...], asked: Iterable[tuple[str, int]], written: list[int], turn: int
) -> tuple[Question, ...]:
    """Return the questions after one more turn; `written` are the messages of the human in it."""
    if written:
        known = tuple(one if one.answered_by is not None else replace(one, answered_by=turn) for one in known)
    last = max(written, default=-1)  # answers the questions of calls before it
    return (*known, *(Question(text, turn, seq, turn if seq < last else None) for text, seq in asked))


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


def find_put_off(text: str) -> list[str]:
    """Return the sentences in which a person puts something off."""
    if not PUT_OFF.search(text):
        return []
    spoken = (one.text for one in split_sentences(text) if not one.pasted and len(one.text) <= _SENTENCE)
    return [one_line(words, _SENTENCE) for words in spoken if PUT_OFF.search(words) and not is_question(words)][:_LAST]


def find_findings(text: str) -> list[str]:
    """Return what a review proposes: for each heading that announces it, the passages below as one text."""
    found = []
    for heading in _FINDINGS.finditer(text):
        below = text[heading.end() :][:_FINDINGS_READ]
        level = len(heading[1] or "") or 7
        end = next((one.start() for one in _ANY_HEADING.finditer(below) if len(one[1]) <= level), len(below))
        passages = dict.fromkeys(
            one.passage for one in split_sentences(below[:end]) if len(one.passage.split()) >= _WORDS
        )
        if passages:
            found.append(one_line(" · ".join(passages), _FINDINGS_SHOWN))
    return found[:_LAST]


#: A heading under which a review says what should change.
_FINDINGS = lazy_pattern(
    r"^[ \t]*(?:(#{1,6})[ \t]+|\*\*)[^\n*]{0,60}?\b(?:improvements?|recommend\w*|suggest\w*|findings?|issues?|concerns?|gaps?|weaknesses|problems?|should (?:fix|change)|plan|proposed \w+|"
    r"empfehlung\w*|verbesserung\w*|probleme?|améliorations?|recommandations?|problèmes?|mejoras?|recomendacion\w*|problemas?)\b[^\n]{0,60}$"
    r"|^[ \t]*#{1,6}[ \t]+[^\n]{0,30}(?:改善|提案|問題|指摘|建议|改进|问题)[^\n]{0,30}$",
    re.IGNORECASE | re.MULTILINE,
)
_ANY_HEADING = lazy_pattern(r"^(#{1,6})[ \t]+", re.MULTILINE)
_FINDINGS_READ, _FINDINGS_SHOWN = 4_000, 1_000


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
_BOX = lazy_pattern(r"^[ \t]{0,40}(?:(?:[-*+]|\d{1,3}[.)])[ \t]{1,9})?\[(.)\][ \t]+(\S.{0,1000})$", re.MULTILINE)
_NUMBER = lazy_pattern(r"#(\d{1,6})\b")


class PlanChange(Struct, frozen=True):
    """A plan item and its new status; `id` as the agent numbers it, or ""."""

    text: str
    status: str
    id: str = ""


class PlanUpdate(Struct, frozen=True):
    """The plan as one call states it: the whole plan, or changes to it."""

    changes: tuple[PlanChange, ...]
    whole: bool = True


_LINE_NUMBER = lazy_pattern(
    r"^(?:[ \t]*\d{1,6}(?::[ ]|→|\t)|\+(?=[-*]))", re.MULTILINE
)  # also the sign of an added line
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


def find_ticked(start: CallStart, listed: tuple[PlanChange, ...]) -> tuple[PlanChange, ...]:
    """Return the listed items that an edit of their file ticks."""
    given = start.input.values() if isinstance(start.input, dict) else (start.input,)
    written = [one for text in given if isinstance(text, str) for one in find_task_items(text)]
    known = {one.id for one in listed}
    return tuple(one for one in written if one.status == "done" and one.id in known)


def is_current(item: PlanItem, last_turn: int) -> bool:
    """Whether work may go on with an item that is not done: its plan is recent, or a file keeps it."""
    return item.id.startswith((BY_HAND, "task ")) or last_turn - item.turn <= _PLAN_TURNS


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


def advance_plan(
    known: tuple[PlanItem, ...], plans: Iterable[tuple[PlanUpdate, int]], turn: int
) -> tuple[PlanItem, ...]:
    """Return the plan after one more turn."""
    items = list(known)
    for plan, seq in plans:
        if plan.whole:
            items = _replace_plan(items, [PlanItem(one.text, one.status, turn, seq, one.id) for one in plan.changes])
            continue
        for one in plan.changes:
            _change_item(items, PlanItem(one.text, one.status or "open", turn, seq, one.id), bool(one.status))
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


def _change_item(items: list[PlanItem], new: PlanItem, has_status: bool) -> None:
    for number, one in enumerate(items):
        if new.id and one.id == new.id:
            status = new.status if has_status else one.status
            if status == one.status and new.text in ("", one.text):
                return  # the first place that says so is its evidence
            items[number] = replace(one, text=new.text or one.text, status=status, turn=new.turn, seq=new.seq)
            return
    if new.text:
        made = sum(1 for one in items if one.id)
        items.append(new if new.id else replace(new, id=str(made + 1)))


# --- calls that ask ---
_PAIR = lazy_pattern(r'"([^"\n]{2,600}?)"\s?=\s?"([^"]{1,1000}?)"(?=[\s,.;]|$)')
_TAGGED_ANSWER = lazy_pattern(r"<answer>\s*(.{1,1000}?)\s*</answer>", re.DOTALL)


def find_answers(given: Any, output: str) -> list[Answered]:
    """Return the questions of a call to the person with the answers in its result."""
    shown = output[:20_000]
    if pairs := _PAIR.findall(shown):
        return [Answered(one_line(question, _LONGEST), one_line(answer, _LONGEST)) for question, answer in pairs]
    asked = list(_asked(given))
    answers = list(_plain_answers(shown))
    return [Answered(question, one_line(answer, _LONGEST)) for question, answer in zip(asked, answers, strict=False)]


def _asked(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield one_line(given, _LONGEST)
    elif isinstance(given, dict):
        listed = given.get("questions")
        for item in listed[:10] if isinstance(listed, list) else [given]:
            words = (
                item
                if isinstance(item, str)
                else item.get("question") or item.get("text")
                if isinstance(item, dict)
                else None
            )
            if isinstance(words, str) and words.strip():
                yield one_line(words, _LONGEST)


def _plain_answers(output: str) -> Iterator[str]:
    if tagged := _TAGGED_ANSWER.findall(output):
        yield from tagged
        return
    try:
        held = json.loads(output)
    except ValueError:
        return
    answers = held.get("answers") if isinstance(held, dict) else None
    for one in answers.values() if isinstance(answers, dict) else answers if isinstance(answers, list) else ():
        words = one.get("answers", one.get("answer")) if isinstance(one, dict) else one
        words = ", ".join(map(str, words)) if isinstance(words, list) else words
        if isinstance(words, str) and words.strip():
            yield words
