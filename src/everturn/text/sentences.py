"""Split a message into the sentences its author wrote, without pasted matter.

A prompt contains more than prose: code, quotes, logs, tables, commands with their output, whole documents. `split_sentences`
leaves out what the author certainly did not write and marks sentences of a pasted document, so that a rule about sentences
does not take a log line for a request. Reads a bounded part of a long message. Never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from everturn.text.lazy_pattern import lazy_pattern

_MAX_CHARS = 24_000
_LONG = 4_000  # characters: no one types that many
_HEADINGS = 2


class Sentence:
    """One sentence on one line; `pasted` if it belongs to a document pasted into the message.

    `passage` is the paragraph or list item it stands in, on one line, and `heading` the heading above it.

    Not a struct: `everturn-hook` imports this module while an agent waits, and importing msgspec takes longer than the rest.
    """

    __slots__ = ("heading", "is_item", "passage", "pasted", "text")

    def __init__(
        self, text: str, pasted: bool = False, passage: str = "", heading: str = "", is_item: bool = False
    ) -> None:
        self.text = text
        self.pasted = pasted
        self.passage = passage or text
        self.heading = heading
        self.is_item = is_item


def split_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a message, in order. Several rules read the same message, so the last few results are kept."""
    return iter(_split_sentences(text[:_MAX_CHARS]))


@lru_cache(maxsize=4)
def _split_sentences(text: str) -> tuple[Sentence, ...]:
    return tuple(_find_sentences(text))


def _find_sentences(text: str) -> Iterator[Sentence]:
    text = _FENCE.sub("\n", text)
    text = _TAGGED.sub("\n", text) if "</" in text else text
    headings = len(_HEADING.findall(text))
    document = len(text) > _LONG or headings >= _HEADINGS
    pasted = len(text) > _LONG and not headings
    heading = ""
    for paragraph, is_item in _paragraphs(text):
        is_heading = bool(_HEADING.match(paragraph))
        pasted = pasted or (document and is_heading)
        passage = " ".join(_HEADING.sub("", paragraph).split()) if is_heading else " ".join(paragraph.split())
        if is_heading or _BOLD_LINE.match(passage):
            heading = passage.strip("*_: ")
        for part in _END.split(passage):
            if words := part.strip():
                yield Sentence(words, pasted, passage, heading, is_item)


_FENCE = lazy_pattern(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
#: Inserted by clients and editors: <file>…</file>, <system-reminder>…</system-reminder>.
_TAGGED = lazy_pattern(r"<([A-Za-z][\w-]{0,60})(?:\s[^<>\n]{0,300})?>.*?</\1>", re.DOTALL)
_HEADING = lazy_pattern(r"^#{1,6}[ \t]+", re.MULTILINE)
_BOLD_LINE = lazy_pattern(r"(?:\*\*|__)[^*_]{2,80}(?:\*\*|__):?$")
_ITEM = lazy_pattern(r"[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+(?:\[.\][ \t]+)?")
#: The end of a sentence, but not a dot within a name or a number.
_END = lazy_pattern(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'`(\[*_A-Z0-9À-Þ\u3040-\u30ff\u3400-\u9fff])|(?<=[.!?…])\s+(?=[a-z]+\b)(?<!\.\.\.\s)(?<!e\.g\.\s)(?<!i\.e\.\s)|[。！？]")  # fmt: skip


def _paragraphs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the paragraphs, and whether each is a list item; a heading is a paragraph of its own."""
    together: list[str] = []
    is_item = False
    for line in text.splitlines():
        if _is_foreign(line):
            line = ""
        starts = bool(_ITEM.match(line) or _HEADING.match(line))
        if together and (starts or not line.strip() or not _is_continued(together[-1], line)):
            yield " ".join(together), is_item
            together = []
        if line.strip():
            item = _ITEM.match(line)
            is_item = bool(item) if not together else is_item
            together.append(line[item.end() :] if item else line)
    if together:
        yield " ".join(together), is_item


def _is_continued(before: str, line: str) -> bool:
    """Whether the line continues the sentence: the line before is long, or this one begins in lower case."""
    first = line.lstrip()[:1]
    return not before.rstrip().endswith((".", "!", "?", ":", "…")) and (first.islower() or len(before) > 60)


_FOREIGN = lazy_pattern(
    r"""
      >                                       # a quote
    | \ {4}(?![ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t])(?=.*[(){};=<>]) # code by indentation
    | \s*(?:[$❯%➜»]|>>>|\.\.\.|PS[ ][A-Z]:) [ ]   # typed at a prompt
    | \(?[\w.()~-]{0,40}\)?\s?\w+@[\w.~:/-]+[>$\#]
    | \s*[+-]{1,3}(?:[^\s+-]|[ ]{4})|@@|diff[ ]|index[ ][0-9a-f]{7}     # a patch
    | \s*\||\s*[{}\[\]"']\s*[\w"'{}\[\]]*[:,]?\s*$ # a table; JSON
    | \s*"[^"]{1,80}"\s*:                     # JSON
    | \s*at[ ]\S+[ (].*:\d+ | \s*File[ ]"     # a trace
    | \s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d | \s*\[?\d\d:\d\d:\d\d        # a log
    | \s*\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|E|W|I)\]?[:| ]\s?\S*[\[\]:/|]
    | \s*\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL)\]?:[ ]
    | \s*(?:Traceback|npm[ ](?:ERR|WARN)|FAILED[ ]|PASSED[ ]|\w*(?:Error|Exception|Warning):[ ])
    | \s*\S+:\d+(?::\d+)?(?::|\s|$)           # a place in a file
    """,
    re.VERBOSE,
)
_SIGNS = lazy_pattern(r"[^\w\s.,;:!?'\"()/`-]")


def _is_foreign(line: str) -> bool:
    """Whether the line is not prose: code, a quote, a log, a table."""
    body = line.strip()
    return bool(_FOREIGN.match(line)) or (len(body) > 20 and len(_SIGNS.findall(body)) > len(body) / 8)
