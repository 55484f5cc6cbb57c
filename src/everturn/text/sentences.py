"""Split a message into the sentences its author wrote, without pasted matter.

A prompt contains more than prose: code, quotes, logs, tables, commands with their output, whole documents. `split_sentences`
leaves out what the author certainly did not write and marks sentences of a pasted document, so that a rule about sentences
does not take a log line for a request. Reads a bounded part of a long message. Never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from everturn.text.lazy_pattern import lazy_pattern

_MAX_CHARS = 24_000
_LONG = 4_000  # characters: no one types that many
_HEADINGS = 2


class Sentence:
    """One sentence on one line; `pasted` if it belongs to a document pasted into the message.

    `passage` is the paragraph or list item it stands in, on one line, and `heading` the heading above it. `text` leaves out a
    wide sign at its end (。！？); `asks` says whether that was a question mark.

    Not a struct: `everturn-hook` imports this module while an agent waits, and importing msgspec takes longer than the rest.
    """

    __slots__ = ("asks", "heading", "is_item", "passage", "pasted", "text")

    def __init__(
        self,
        text: str,
        pasted: bool = False,
        passage: str = "",
        heading: str = "",
        is_item: bool = False,
        asks: bool = False,
    ) -> None:
        self.text = text
        self.pasted = pasted
        self.passage = passage or text
        self.heading = heading
        self.is_item = is_item
        self.asks = asks


def split_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a message, in order. Several rules read the same message, so the last few results are kept."""
    return iter(_split_sentences(text[:_MAX_CHARS]))


def typed_sentences(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of a prompt that were typed; in one that is mostly output, what stands above and below it."""
    return _typed_sentences(text[:_MAX_CHARS])


@lru_cache(maxsize=4)
def _typed_sentences(text: str) -> tuple[Sentence, ...]:
    lines = text.splitlines()
    shown = [at for at, line in enumerate(lines) if line.strip()]
    if len(shown) < _FEW_LINES:
        return tuple(one for one in split_sentences(text) if not one.pasted)
    output = [at for at in shown if _is_foreign(lines[at]) or _OUTPUT.match(lines[at]) or SHELL_PROMPT.match(lines[at])]
    if any(SHELL_PROMPT.match(lines[at]) for at in shown) or len(output) >= max(_FEW_LINES, len(shown) / 2):
        below = [line for line in lines[output[-1] + 1 :] if line.strip()] if output else []
        lines = [*lines[: output[0] if output else 0], "", *below[-_FEW_LINES:]]
        from everturn.text.printable import orders_work  # the hook imports this module, and seldom meets a log

        lines = [one for one in lines if orders_work(one) or not _MACHINE.search(one)]
    else:
        lines = ["" if at in output else line for at, line in enumerate(lines)]
    found = tuple(one for one in split_sentences("\n".join(lines)) if not one.pasted and _WORDS.search(one.text))
    return found if found or len(text) <= _LONG else _around_document(text)


def _around_document(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of the first and the last paragraph of a long text, of those that ask for something."""
    blocks = [one for one in _BLANK.split(text) if one.strip()]
    ends = [one[:_EDGE] for one in (blocks[0], blocks[-1])] if blocks else []
    from everturn.text.printable import orders_work

    return tuple(one for block in dict.fromkeys(ends) if orders_work(block) for one in split_sentences(block))


_EDGE = 800  # characters of a paragraph above or below a document
_BLANK = lazy_pattern(r"\n[ \t]*\n|\n[-=_*]{3,}[ \t]*\n")


_FEW_LINES = 3
_MACHINE = lazy_pattern(r"[{}\[\]=<>|]|://|\d+\.\d+\.\d+")  # signs of a line that nobody typed
_WORDS = lazy_pattern(r"[^\W\d_]{2}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
#: More lines that programs write: levels in brackets, Windows prompts, frames of a trace, code.
_OUTPUT = lazy_pattern(
    r"""
      \s*\[(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL)\]
    | \s*(?:Caused[ ]by:|npm[ ]error|error\[\w{1,12}\]|fatal:[ ])
    | (?:PS[ ])?[^\s>]{0,120}[:\\][^>\n]{0,200}\\[^>\n]{0,200}> | (?:\(\w{1,20}\)[ ])?[➜❯]
    | \s*(?:WARN|INFO|ERRO|DEBU|FATA)\[\d
    | [^\n]{0,300}\([\w$./\\-]{1,120}\.\w{1,6}:\d+(?::\d+)?\)\s*$
    | \s*(?:\S+[ ]){0,3}[^\s:]{1,200}:\d+(?::\d+)?(?:\s*$|\s+[^\w\s])
    | \s*\S+\.\w{1,5}\?[^\s:]{1,40}:\d+\s
    | \s*[✔✓✗✘│├└┌─═●▶❌✅]
    | [^\n]{0,400}(?:[{;]|\w\()\s*$
    | \s*[})\]]+[;,)]*\s*$
    """,
    re.VERBOSE,
)

#: Where something was typed at a terminal.
SHELL_PROMPT = lazy_pattern(
    r"(?:PS[ ])?[A-Za-z]:\\[^>\n]{0,300}>|(?:\(\w{1,20}\)[ ])?[➜❯]|\(?[\w.()~-]{0,40}\)?\s?[\w.-]{1,40}@[\w.~:/ -]{1,80}[$#%]\s"
)


@lru_cache(maxsize=24)
def _split_sentences(text: str) -> tuple[Sentence, ...]:
    return tuple(_find_sentences(text))


def _find_sentences(text: str) -> Iterator[Sentence]:
    text = text.replace("\r\n", "\n") if "\r" in text else text
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
        for part, asks in _ended_parts(passage):
            if words := part.strip():
                yield Sentence(words, pasted, passage, heading, is_item, asks)


def _ended_parts(passage: str) -> Iterable[tuple[str, bool]]:
    """Return the sentences of a passage, each with whether a wide question mark ends it."""
    if _WIDE_QUESTION not in passage:
        return ((part, False) for part in _END.split(passage))
    ends = [(found.start(), found.end()) for found in _END.finditer(passage)]
    starts = [0, *(end for _, end in ends)]
    return (
        (passage[start:end], passage.startswith(_WIDE_QUESTION, end))
        for start, end in zip(starts, [*(start for start, _ in ends), len(passage)], strict=True)
    )


_WIDE_QUESTION = "？"


#: A longer fence holds shorter ones.
_FENCE = lazy_pattern(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
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
_SIGNS = lazy_pattern(r"[^\w\s.,;:!?'\"()/`\u2013-\u201d\u2026\u3001-\u3015\uff01-\uff20-]")


def _is_foreign(line: str) -> bool:
    """Whether the line is not prose: code, a quote, a log, a table."""
    body = line.strip()
    return bool(_FOREIGN.match(line)) or (len(body) > 20 and len(_SIGNS.findall(body)) > len(body) / 8)
