"""Names of code that a conversation uses: functions, settings, flags, branches. They are what a successor looks for first.

`find_code_names` finds them in a text: in back quotes, or by their shape (`snake_case`, `camelCase`, `CONSTANT`). Files are no names
here; they are found elsewhere. `advance_names` counts in how many messages each was used. Pure; never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from everturn.text.lazy_pattern import lazy_pattern

_READ = 12_000  # characters of a text
_MOST_FOUND = 60  # of one text
_MOST_KEPT = 400

_QUOTED = lazy_pattern(r"`([^`\s]{3,50})`")
_SHAPED = lazy_pattern(
    r"(?<![\w./\\@-])(?:[a-z][a-z0-9]+(?:[A-Z][a-z0-9]+){1,6}|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+){1,6}|[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+){1,8})(?:\(\))?(?![\w/\\@-])"
)
_BRANCH = lazy_pattern(r"^(?:On branch |Switched to (?:a new )?branch ')([^\s']{2,80})", re.MULTILINE)
_FILE = lazy_pattern(r"[/\\]|\.(?:[a-z]{1,5}|[a-z]\d)$")
_NAME = lazy_pattern(r"(?=.*[A-Za-z])[\w!#$@.:()\[\]<>*=+-]+")


class CodeName(Struct, frozen=True):
    """A name, the number of messages that use it, and the last of them."""

    text: str
    seq: int
    count: int = 1


def find_code_names(text: str) -> list[str]:
    """Return the names that a text uses, each once."""
    shown = text[:_READ]
    found = dict.fromkeys(
        [one for one in _QUOTED.findall(shown) if _NAME.fullmatch(one) and not _FILE.search(one)]
        + [one for one in _SHAPED.findall(shown) if not _FILE.search(one)]
    )
    return list(found)[:_MOST_FOUND]


def find_branch(output: str) -> str:
    """Return the branch that version control says it is on, "" if it says none."""
    found = _BRANCH.findall(output[:2_000])
    return found[-1] if found else ""


def advance_names(known: dict[str, CodeName], new: Iterable[CodeName]) -> dict[str, CodeName]:
    """Return the names after one more turn, the latest last; the oldest are dropped."""
    names = dict(known)
    for one in new:
        before = names.pop(one.text, None)
        names[one.text] = CodeName(one.text, one.seq, one.count + (before.count if before else 0))
    for text in list(names)[: max(0, len(names) - _MOST_KEPT)]:
        del names[text]
    return names
