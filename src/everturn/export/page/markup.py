"""Words of strangers made fit for a page: nothing in them is markup, nothing in them hides.

`Html` is text that is markup already; every other text is escaped on its way in (`show_text`, `element`). Template engines
that ask for `__html__` take it as it is. Colours of terminals are dropped, control characters, overrides of the writing
direction and invisible characters become visible: a page shows what a model was really given.
"""

from __future__ import annotations

import re
from html import escape

from everturn.derive.printable import one_line, printable

#: Invisible characters that carry hidden words. A joiner between letters that are not ASCII is part of a script, or of
#: a picture made of several, and stays.
_HIDDEN_CHARACTERS = re.compile(
    "[\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2064\u3164\uffa0\U000e0000-\U000e007f]"
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
_KEPT_CHARACTERS = "\n\t\u200c\u200d"

#: Browsers take seconds to break one word of ten thousands of letters of different widths.
_LONG_WORD = re.compile(r"\S{200,}")
_BREAK_EVERY = 100


class Html(str):
    """Markup that may stand on a page as it is."""

    __slots__ = ()

    def __html__(self) -> Html:
        return self


def make_visible(text: str) -> str:
    """The text with everything that hides, reorders or is no character made visible."""
    if text.isascii() and text.isprintable():
        return text
    return printable(_HIDDEN_CHARACTERS.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text), _KEPT_CHARACTERS)


def show_text(text: str) -> Html:
    """Words as they are, in markup."""
    return Html(escape(make_visible(text)))


def show_prose(text: str) -> Html:
    """Words in letters of different widths: what is too long for a line may be broken at places that cost nothing."""
    return Html(keep_breaks(escape(mark_breaks(make_visible(text)))))


def mark_breaks(text: str) -> str:
    """Visible text with a mark where a very long word may be broken; `keep_breaks` makes markup of it."""
    return _LONG_WORD.sub(_break_word, text) if _LONG_WORD.search(text) else text


def keep_breaks(markup: str) -> str:
    """Markup with its marks made breaks. No text that is visible holds such a mark by itself."""
    return markup.replace("\0", "<wbr>")


def show_line(text: str, width: int) -> Html:
    """The beginning of some words on one line."""
    return Html(escape(one_line(text, width)))


def element(name: str, *inner: str, **attributes: str | int | None) -> Html:
    """An element; what stands in it is escaped unless it is markup. `class_` and `data_x` are spelt as Python can.

    An attribute that is None or "" is left out.
    """
    given = "".join(
        f' {word.rstrip("_").replace("_", "-")}="{escape(make_visible(str(value)))}"'
        for word, value in attributes.items()
        if value not in (None, "")
    )
    return Html(f"<{name}{given}>{''.join(map(_escape_inner, inner))}</{name}>")


def _escape_inner(inner: str) -> str:
    return inner if isinstance(inner, Html) else escape(make_visible(inner))


def _break_word(found: re.Match[str]) -> str:
    word = found[0]
    return "\0".join(word[start : start + _BREAK_EVERY] for start in range(0, len(word), _BREAK_EVERY))
