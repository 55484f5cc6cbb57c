"""What some models think aloud before they answer, told apart from the answer.

Only at the start of an answer: further on, such a mark is more likely something the answer is about. Known marks:
`<think>…</think>`, `<thinking>…</thinking>`, `<reasoning>…</reasoning>`, `Thinking...` … `...done thinking.`, and a closing
tag alone on its line end, as servers leave it that put the opening one into the prompt. A thought without an end is all
there is.
"""

from __future__ import annotations

import re

_TAGS = "think|thinking|thought|reasoning"
_OPEN_TAG = re.compile(rf"\s*<({_TAGS})>", re.I)
_THINKING_LINE = re.compile(r"\s*thinking\.\.\.[ \t]*\n", re.I)
_DONE_LINE = re.compile(r"(?:\.\.\.)?done thinking\.?[ \t]*\n*", re.I)
_ONLY_CLOSED = re.compile(rf"\A(?:(?!<(?:{_TAGS})>|```).)*?</({_TAGS})>[ \t]*(?:\n|\Z)", re.I | re.S)
_STARTS = ("<think>", "<thinking>", "<thought>", "<reasoning>", "thinking...\n")


def split_thoughts(text: str) -> tuple[str, str]:
    """What was thought and what was answered; together they are the text."""
    end = 0
    while (after := _thought_end(text, end)) is not None and after > end:
        end = after
    if end == 0 and (closed := _ONLY_CLOSED.match(text)):
        end = closed.end()
    while end and end < len(text) and text[end].isspace():
        end += 1
    return text[:end], text[end:]


def thought_words(thought: str) -> str:
    """A thought without its marks."""
    bare = re.sub(rf"</?(?:{_TAGS})>|\A\s*thinking\.\.\.|(?:\.\.\.)?done thinking\.?", "", thought, flags=re.I)
    return bare.strip()


class Sieve:
    """The same for an answer that comes in pieces: what is thought is held back from the text.

    A closing tag without an opening one is seen at the end only, in the whole reply.
    """

    def __init__(self) -> None:
        self._held = ""
        self._is_open = True  # the answer may still begin with a thought
        self._sign = ""  # without which a thought that has begun does not end; spares looking at all of it each time

    def feed(self, text: str) -> str:
        """The part of the answer that is known to be one."""
        if not self._is_open:
            return text
        self._held += text
        if self._sign not in text:
            return ""
        self._is_open, self._sign = _may_be_thought(self._held), _open_tag_sign(self._held)
        return "" if self._is_open else split_thoughts(self._held)[1]

    def last(self) -> str:
        """What was held back and turns out to be an answer."""
        held, self._held = self._held if self._is_open else "", ""
        return split_thoughts(held)[1]


def _thought_end(text: str, start: int) -> int | None:
    """Where a thought that begins here ends; None when none begins."""
    if opened := _OPEN_TAG.match(text, start):
        closed = re.compile(rf"</{opened[1]}>", re.I).search(text, opened.end())
        return closed.end() if closed else len(text)
    if _THINKING_LINE.match(text, start) and (done := _DONE_LINE.search(text, start)):
        return done.end()
    return None


def _may_be_thought(text: str) -> bool:
    """Whether more text is needed to know."""
    answer = split_thoughts(text)[1]
    rest = answer.lstrip().lower()
    return not rest or bool(_THINKING_LINE.match(answer)) or any(start.startswith(rest) for start in _STARTS)


def _open_tag_sign(text: str) -> str:
    opened = _OPEN_TAG.match(text)
    return ">" if opened and f"</{opened[1]}>".lower() not in text.lower() else ""
