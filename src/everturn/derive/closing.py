"""What an answer leaves open at its end: questions to the human, and the next steps it names.

Only the end of the last answer of a turn counts: a question in the middle of a text is often a figure of speech. Next
steps are the items under a heading that says so, or else sentences that begin with it.
"""

from __future__ import annotations

import re
from typing import Any

from everturn.derive.printable import one_line
from everturn.derive.prose import split_sentences
from everturn.model.conversation import CallStart

_LONGEST_CLOSING = 200
_END = 700  # characters of an answer that are its end
_QUESTIONS = 3
_STEPS = 8
_WORDS = 4  # fewer say nothing about what to do

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
    """The questions an answer ends with; none unless its last paragraph asks."""
    paragraphs = [one for one in re.split(r"\n[ \t]*\n", text[-_END:].strip()) if one.strip()]
    while len(paragraphs) > 1 and _ITEM.match(paragraphs[-1].splitlines()[0]):
        paragraphs.pop()  # what there is to choose from
    return _question_sentences(paragraphs[-1])[-_QUESTIONS:] if paragraphs else []


def find_call_questions(start: CallStart) -> list[str]:
    """What a call asks the human."""
    given: Any = start.input
    if isinstance(given, str):
        return [one_line(given, _LONGEST_CLOSING)] if given.strip() else []
    if not isinstance(given, dict):
        return []
    listed = given.get("questions")
    items = listed if isinstance(listed, list) else [given]
    found = []
    for item in items[:10]:
        words = item if isinstance(item, str) else _question_text(item) if isinstance(item, dict) else ""
        if words.strip():
            found.append(one_line(words, _LONGEST_CLOSING))
    return found


def find_next_steps(text: str) -> list[str]:
    """The next steps that an answer names last."""
    headed = list(_HEADED.finditer(text))
    if headed:
        return _list_items(text[headed[-1].end() :])
    found = [
        one_line(one.text, _LONGEST_CLOSING)
        for one in split_sentences(text[-2_000:])
        if _NEXT.match(one.text.lstrip("*_ "))
    ]
    return [words for words in found if not words.endswith("?") and len(words.split()) >= _WORDS][-_QUESTIONS:]


def _question_sentences(text: str) -> list[str]:
    return [
        one_line(one.text, _LONGEST_CLOSING) for one in split_sentences(text) if one.text.rstrip("*_\"')").endswith("?")
    ]


def _question_text(item: dict[str, Any]) -> str:
    return next(
        (item[name] for name in ("question", "text", "prompt", "message") if isinstance(item.get(name), str)), ""
    )


def _list_items(text: str) -> list[str]:
    """The items of the list that comes next, or the paragraph where there is none."""
    found: list[str] = []
    for line in text.strip("\n").splitlines():
        item = _ITEM.match(line)
        if item:
            found.append(one_line(item[1], _LONGEST_CLOSING))
        elif found and line.strip() and not line.startswith((" ", "\t")):
            break
        elif not found and line.strip():
            return [one_line(line, _LONGEST_CLOSING)]
        if len(found) == _STEPS:
            break
    return found
