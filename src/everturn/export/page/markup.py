"""Markup from untrusted text, the look of a page, and the room on it.

`Html` is text that is markup already. Any other text is escaped on its way in (`show_text`, `element`). Terminal colours
are dropped; control characters, direction overrides and invisible characters become visible, so that a page shows what a
model was really given. `PageRoom` limits a turn: long texts are cut in the middle, then only their beginnings are shown.
Each gap is marked, with a link to the full text if there is one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from html import escape
from pathlib import Path

from msgspec import Struct

from everturn.sessions.lineage import Relative
from everturn.text.printable import one_line, printable

#: Invisible characters that can carry hidden text. A joiner between non-ASCII letters is part of a script or an emoji
#: and stays.
_HIDDEN_CHARACTERS = re.compile(
    "[\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2064\u3164\uffa0\U000e0000-\U000e007f]"
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
_KEPT_CHARACTERS = "\n\t\u200c\u200d"

#: Browsers take seconds to wrap one word of tens of thousands of letters.
_LONG_WORD = re.compile(r"\S{200,}")
_BREAK_EVERY = 100


class Html(str):
    """Markup that may be put on a page as it is."""

    __slots__ = ()

    def __html__(self) -> Html:
        return self


def make_visible(text: str) -> str:
    """Make everything visible that hides, reorders or is not a character."""
    if text.isascii() and text.isprintable():
        return text
    return printable(_HIDDEN_CHARACTERS.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text), _KEPT_CHARACTERS)


def show_text(text: str) -> Html:
    return Html(escape(make_visible(text)))


def show_prose(text: str) -> Html:
    """Return text in a proportional font as markup; very long words may be wrapped."""
    return Html(keep_breaks(escape(mark_breaks(make_visible(text)))))


def mark_breaks(text: str) -> str:
    """Mark where a very long word of visible text may be wrapped; `keep_breaks` turns the marks into markup."""
    return _LONG_WORD.sub(_break_word, text) if _LONG_WORD.search(text) else text


def keep_breaks(markup: str) -> str:
    """Replace the marks by breaks. Visible text never contains such a mark by itself."""
    return markup.replace("\0", "<wbr>")


def show_line(text: str, width: int) -> Html:
    """Return the beginning of a text on one line as markup."""
    return Html(escape(one_line(text, width)))


def element(name: str, *inner: str, **attributes: str | int | None) -> Html:
    """Return an element; content that is no markup is escaped. `data_x` is `data-x`; empty attributes are left out."""
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


#: Relatives that a call started, by (seq, idx) of the call.
Children = Mapping[tuple[int, int], list[Relative]]


class PageLook(Struct, frozen=True):
    """How a file to pass on differs from a page of a running program. Without an address there is no link."""

    clean: Callable[[str], str] = str  # removes secrets
    anchor: str = "t"  # prefix of the anchor of a turn: `#t12`
    longest: int = 40_000  # characters of one text; a longer one is cut in its middle
    most: int = 1_500_000  # characters of a turn; after that only the beginnings of tool texts are shown
    largest: int = 2_000_000  # characters of a picture in base64; 0 leaves pictures out
    thinking: bool = True
    context: bool = True  # text that clients injected, folded
    workspace: str = ""  # removed from the paths of files within it
    titles: Mapping[str, str] = {}  # display names of agents
    children: Children = {}
    inside: Callable[[Relative], Iterable[str]] | None = None  # markup of a relative, to embed
    to_inside: Callable[[Relative], str] | None = (
        None  # where a page fetches the markup of a relative once it is opened
    )
    to_session: Callable[[Relative], str] | None = None  # the address of a relative
    to_record: Callable[[int], str] | None = None  # the address of a message as captured, by its seq
    to_whole: Callable[[int], str] | None = None  # the address of a message in full, by its seq
    to_picture: Callable[[int, str], str] | None = None  # of a picture, by the seq of its message and its name


_LEAST = 400  # characters of a text that are shown if there is no room left
_TAIL = 4  # the share of a cut text that is taken from its end: a quarter


class PageRoom:
    def __init__(self, look: PageLook) -> None:
        self._look = look
        self._left = look.most
        self._named = Counter[int]()  # elements of each message

    def name(self, seq: int) -> str:
        """Return the id attribute of an element, where a message can be opened: `m12` of the first one of a message."""
        if self._look.to_record is None or seq < 0:
            return ""
        self._named[seq] += 1
        number = self._named[seq]
        prefix = escape(self._look.anchor[:-1])
        return f' id="{prefix}m{seq + 1}"' if number == 1 else f' id="{prefix}m{seq + 1}-{number}"'

    def cut(self, text: str, seq: int) -> str:
        """Return the text; if it is too long, without its middle and with a line that says so."""
        head, gone, tail = self._split_text(text)
        return f"{head}\n… {gone:,} characters left out …\n{tail}" if gone else text

    def block(self, text: str, seq: int, name: str) -> Html:
        """Return text as it is, in a block of that class."""
        put = show_prose if name == "plain" else show_text
        head, gone, tail = self._split_text(text.strip("\n"))
        shown_head = put(head)
        self._left -= len(shown_head) - len(head)  # markup may be several times longer than its text
        inner = f'{shown_head}</pre>{self._gap_html(gone, seq)}<pre class="{name}">{put(tail)}' if gone else shown_head
        return Html(f'<pre class="{name}">{inner}</pre>')

    def words(self, text: str, seq: int) -> tuple[str, Html]:
        """Return the beginning of a text to render, and a mark if there is more."""
        longest = self._look.longest
        self._left -= min(len(text), longest)
        return (text, Html("")) if len(text) <= longest else (text[:longest], self._gap_html(len(text) - longest, seq))

    def take(self, markup: Html, seq: int) -> Html:
        """Return markup that is shown as a whole or not at all."""
        if len(markup) > self._left:
            return element(
                "p", "[a picture: no room left for it on this page] ", self._whole_link(seq), class_="beside"
            )
        self._left -= len(markup)
        return markup

    def _split_text(self, text: str) -> tuple[str, int, str]:
        longest = min(self._look.longest, max(_LEAST, self._left))
        self._left -= min(len(text), longest)
        if len(text) <= longest:
            return text, 0, ""
        tail = longest // _TAIL
        return text[: longest - tail], len(text) - longest, text[len(text) - tail :]

    def _gap_html(self, gone: int, seq: int) -> Html:
        return element("p", f"… {gone:,} characters left out … ", self._whole_link(seq), class_="gap")

    def _whole_link(self, seq: int) -> Html:
        address = self._look.to_whole(seq) if self._look.to_whole and seq >= 0 else ""
        return Html(f'<a href="{escape(address)}">show all</a>') if address else Html("")


STYLE = Path(__file__).with_name("style.css").read_text("utf-8")
SCRIPT = Path(__file__).with_name("page.js").read_text("utf-8")
