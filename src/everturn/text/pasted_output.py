"""Find the failure in output that a person pasted: of a terminal, a browser, a build, an editor.

The lines that name an error tell the failure, the first and the last ones, since a trace ends with what was raised, and a log begins
with the cause. A message in which much is typed around its output is about something else, and so is a document.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from everturn.text.printable import one_line
from everturn.text.sentences import SHELL_PROMPT, typed_sentences
from everturn.text.trouble_words import (
    FRAME,
    FRAMES,
    HEADING,
    LISTED_ERROR,
    MARGIN,
    NAMED_ERROR,
    PASTED_ERROR,
    PASTED_SUMMARY,
    PRINTS_ERROR,
    SHOWS_SUCCESS,
    TERM,
    TYPED_FIRST,
    UNCAUGHT,
)

#: Characters of what is told of a report.
LONGEST = 300
_READ = 24_000
_ERROR_LINE = 200
_SOME_LINES, _MOST_LINES = 140, 3  # characters of each of several lines, and how many are told
_MOST_TYPED = 150  # words in a message that is about the output in it
_FEW_HEADINGS = 2  # more make a document
_BEGINNING = 40  # characters by which the first sentence of a message is known


class PastedFailure(NamedTuple):
    """The lines of pasted output that tell a failure, the kinds of checks they come from, and the command that was typed."""

    text: str
    kinds: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


def find_pasted_failure(text: str) -> PastedFailure | None:
    """Return the failure in a prompt that is little more than the pasted output of a command, a browser or an editor."""
    if summary := PASTED_SUMMARY.search(text, 0, _READ):
        return PastedFailure(one_line(summary[0].strip("= "), LONGEST), ("test",))
    if typed := TYPED_FIRST.match(text):
        found = PASTED_ERROR.findall(text, 0, _READ)[-1:]
        commands = (" ".join(typed[1].split()),)
        return PastedFailure(one_line(found[0].strip(), LONGEST), (), commands) if found else None
    if listed := LISTED_ERROR.search(text, 0, _READ):
        return PastedFailure(one_line(listed[1].strip(), LONGEST))
    lines = _error_lines(text[:_READ])
    return PastedFailure(_join_lines(lines)) if lines else None


def is_printed(sentence: str, text: str) -> bool:
    """Whether a sentence of a message stands in output that was pasted into it."""
    if FRAMES.search(sentence):
        return True
    if text.lstrip().startswith(sentence[:_BEGINNING]) and not UNCAUGHT.match(sentence[:_BEGINNING]):
        return False
    typed = (one.text for one in typed_sentences(MARGIN.sub("", text)))
    return not any(sentence in one or one in sentence for one in typed)


def _error_lines(text: str) -> Sequence[str]:
    """Return the lines of pasted output that name an error; none of a document, and none that a success follows."""
    first = UNCAUGHT.search(text)
    if first is None or len(list(islice(HEADING.finditer(text), _FEW_HEADINGS))) >= _FEW_HEADINGS:
        return ()
    typed = [one.text for one in typed_sentences(MARGIN.sub("", text))]
    if sum(len(TERM.findall(one)) for one in typed) > _MOST_TYPED:
        return ()
    found = list(UNCAUGHT.finditer(text, first.start()))
    if SHOWS_SUCCESS.search(text, found[-1].end()):
        return ()
    lines = [" ".join(MARGIN.sub("", one[0].strip()).split()) for one in found]
    told = [one for one in lines if not (SHELL_PROMPT.match(one) or PRINTS_ERROR.search(one))]
    return list(dict.fromkeys([one for one in told if not FRAME.match(one)] or told))


def _join_lines(lines: Sequence[str]) -> str:
    """Return the lines to tell: the first one, and the first and the last that name what was raised, else the last ones."""
    named = [one for one in lines if NAMED_ERROR.search(one)]
    told = list(dict.fromkeys((lines[0], *((named[0], named[-1]) if named else lines[-(_MOST_LINES - 1) :]))))
    width = _ERROR_LINE if len(told) == 1 else _SOME_LINES
    return one_line(" … ".join(one[:width].strip() for one in told), (width + 3) * len(told))
