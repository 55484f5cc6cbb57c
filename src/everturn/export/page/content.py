"""Text and pictures of messages as HTML.

Markdown of a model becomes markup. HTML in it stays text. Links lead to the web or to mail only, and if the text of a
link does not name its host, the page shows it. A text longer than `LONGEST` is shown as it is. Nothing here raises.

Pictures are shown if their bytes are in the record and of a known type. The first bytes decide, not the label. A file
embeds them or leaves them out; a running program may serve them one by one under a name that is a hash of the content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from hashlib import blake2b
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

from everturn.export.page.markup import Html, PageLook, element, keep_breaks, make_visible, mark_breaks, show_prose
from everturn.model.conversation import Block

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token


LONGEST = 200_000
_REMEMBERED = 2_000  # characters: only short texts repeat
_SCHEMES = ("http://", "https://", "mailto:")
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")

#: A text without any of these is paragraphs and nothing else.
_MARKS = re.compile(r"[\\`*_~\[\]<>&!|]|^(?:    |[ \t]*(?:[-+#=]|\d{1,9}[.)]|\t))", re.MULTILINE)


def markdown_html(text: str) -> Html:
    return _render_cached(text) if len(text) <= _REMEMBERED else _render_text(text)


@lru_cache(1024)
def _render_cached(text: str) -> Html:
    return _render_text(text)


def _render_text(text: str) -> Html:
    text = make_visible(text).strip("\n")
    if len(text) > LONGEST:
        return Html(f'<div class="plain">{show_prose(text)}</div>')
    if not _MARKS.search(text):
        parts = _BLANK_LINES.split(text.strip())
        return Html("".join(f"<p>{show_prose(part)}</p>" for part in parts if part))
    try:
        return Html(keep_breaks(_make_parser().render(text)))
    except (RecursionError, ValueError, IndexError):  # a bug of the parser must not break the page
        return Html(f'<div class="plain">{show_prose(text)}</div>')


@cache
def _make_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": False}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # `_arrange_tokens` handles links
    parser.core.ruler.push("arrange", _arrange_tokens)
    return parser


def _arrange_tokens(state: StateCore) -> None:
    """Adapt the tokens to a page that has headings, links and a width of its own."""
    level = 2  # of the heading of the turn; no level is skipped, as a reader of headings expects
    for token in state.tokens:
        if token.type == "heading_open":
            level = min(6, int(token.tag[1]) + 2, level + 1)
            token.tag = f"h{level}"
        elif token.type == "heading_close":
            token.tag = f"h{level}"
        elif token.type == "fence":
            token.info = ""
        elif token.type in ("th_open", "td_open"):
            align = str(token.attrs.pop("style", "")).rpartition(":")[2]
            if align in ("center", "right"):
                token.attrs["class"] = align
        elif token.children:
            token.children = _rewrite_links(token.children)


def _rewrite_links(tokens: list[Token]) -> list[Token]:
    found: list[Token] = []
    opened: Token | None = None
    words = ""
    for token in tokens:
        if token.type == "image":
            # A picture from elsewhere becomes text with its address. Nothing is loaded.
            address = str(token.attrs.get("src", ""))
            token = _text_token(f"[picture: {token.content or 'without words'}] ({address[:200]})")
        if token.type == "link_open":
            opened, words = token, ""
            _restrict_link(token)
        elif token.type == "link_close" and opened is not None:
            token.tag = opened.tag
            found.append(token)
            found += _destination_tokens(opened, words)
            opened = None
            continue
        else:
            words += token.content
            token.content = mark_breaks(token.content) if token.type == "text" else token.content
        found.append(token)
    return found


def _restrict_link(token: Token) -> None:
    """Keep a link to the web or to mail, and turn any other into text."""
    address = str(token.attrs.get("href", ""))
    if address.lower().startswith(_SCHEMES):
        token.attrs = {"href": address, "rel": "noopener noreferrer nofollow"}
    else:
        token.tag, token.attrs = "span", {"class": "reference", "title": make_visible(address)}


def _destination_tokens(opened: Token, words: str) -> list[Token]:
    """Return the host of a link if its text does not name it."""
    host = _address_host(str(opened.attrs.get("href", "")))
    if not host or host in words.lower():
        return []
    return [_text_token(f" ({host})")]


def _address_host(address: str) -> str:
    try:
        parts = urlsplit(address)
        return parts.path.rpartition("@")[2].lower() if parts.scheme.lower() == "mailto" else parts.hostname or ""
    except ValueError:
        return ""


def _text_token(content: str) -> Token:
    from markdown_it.token import Token

    return Token("text", "", 0, content=content)


_DEEPEST = 6
_MOST = 50
_ADDRESS = re.compile(r"data:image/[\w.+-]{1,40};base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_SMALLEST = 32  # characters of the smallest picture
_BEGINNINGS = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
_NAMES = ("data", "base64", "url", "image_url", "source", "content", "output", "inlineData", "file", "image")


class PagePicture(Struct, frozen=True):
    """A picture: its type, and its bytes in base64."""

    kind: str
    data: str

    @property
    def name(self) -> str:
        """A name that only this picture has."""
        return blake2b(self.data.encode(), digest_size=8).hexdigest()


def pictures_html(block: Block | None, look: PageLook, seq: int) -> Iterator[Html]:
    """Yield the pictures of a block of message `seq` or of a result; a description if they cannot be shown."""
    found = pictures_of(() if block is None else (block,))
    for picture in found:
        yield _picture_html(picture, look, seq)
    if block is not None and block.kind == "image" and not found:
        yield element("p", "[a picture that is not in the record]", class_="beside")


def pictures_of(blocks: Iterable[Block]) -> list[PagePicture]:
    """Return the pictures of some blocks, as many as a page may have."""
    found = list[PagePicture]()
    for block in blocks:
        if block.kind != "image" and block.result is None:
            continue
        for data in _find_pictures(block.data):
            kind = next(media for beginning, media in _BEGINNINGS.items() if data.startswith(beginning))
            found.append(PagePicture(kind, data))
            if len(found) >= _MOST:
                return found
    return found


def _picture_html(picture: PagePicture, look: PageLook, seq: int) -> Html:
    address = f"data:{picture.kind};base64,{picture.data}"
    if look.to_picture is not None and seq >= 0:
        address = look.to_picture(seq, picture.name)
    elif len(picture.data) > look.largest:
        why = "too large to be put here" if look.largest else "left out"
        return element(
            "p", f"[a picture of {len(picture.data) * 3 // 4:,} bytes, {picture.kind}: {why}]", class_="beside"
        )
    alt = "picture from the conversation"
    return Html(f'<img class="picture" src="{escape(address)}" alt="{alt}" loading="lazy">')


def _find_pictures(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield every picture in a value as base64, wherever formats put them."""
    if isinstance(value, str):
        address = _ADDRESS.match(value)
        data = value[address.end() :] if address else value
        if len(data) >= _SMALLEST and data.startswith(tuple(_BEGINNINGS)):
            data = "".join(data.split())
            if _BASE64.fullmatch(data):
                yield data
    elif depth < _DEEPEST:
        inside: list[Any] = []
        if isinstance(value, list):
            inside = [one for one in value if not isinstance(one, str)]
        elif isinstance(value, dict):
            inside = [value[name] for name in _NAMES if name in value]
        for one in inside:
            yield from _find_pictures(one, depth + 1)
