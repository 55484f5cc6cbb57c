"""Markdown of a model as markup.

HTML in it stays words. Links lead to the web or to mail only, and where their words do not say where they lead, the page
says it (in the form that cannot be mistaken for another name); other addresses and pictures are told, not followed. What
is longer than `LONGEST` is shown as it is. Equal texts are rendered once. Never raises.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from everturn.export.page.markup import Html, keep_breaks, make_visible, mark_breaks, show_prose

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

LONGEST = 200_000
_REMEMBERED = 2_000  # characters: what comes again is short
_SCHEMES = ("http://", "https://", "mailto:")
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")

#: Without any of these a text is paragraphs and nothing else.
_MARKS = re.compile(r"[\\`*_~\[\]<>&!|]|^(?:    |[ \t]*(?:[-+#=]|\d{1,9}[.)]|\t))", re.MULTILINE)


def markdown_html(text: str) -> Html:
    """The words of a model as it meant them to look."""
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
    except (RecursionError, ValueError, IndexError):  # a mistake of the parser must not cost the page
        return Html(f'<div class="plain">{show_prose(text)}</div>')


@cache
def _make_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": False}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # `_arrange_tokens` decides what becomes of it
    parser.core.ruler.push("arrange", _arrange_tokens)
    return parser


def _arrange_tokens(state: StateCore) -> None:
    """Make the tokens fit into a page that has headings, addresses and a width of its own."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
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
            token = _picture_token(token)
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
    """Let a link lead where it may, and be words about an address otherwise."""
    address = str(token.attrs.get("href", ""))
    if address.lower().startswith(_SCHEMES):
        token.attrs = {"href": address, "rel": "noopener noreferrer nofollow"}
    else:
        token.tag, token.attrs = "span", {"class": "reference", "title": make_visible(address)}


def _destination_tokens(opened: Token, words: str) -> list[Token]:
    """Where a link leads, when its own words say another place or none that could be checked."""
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


def _picture_token(token: Token) -> Token:
    """A picture from elsewhere: nothing is loaded, its address is told."""
    address = str(token.attrs.get("src", ""))
    return _text_token(f"[picture: {token.content or 'without words'}] ({address[:200]})")


def _text_token(content: str) -> Token:
    from markdown_it.token import Token

    return Token("text", "", 0, content=content)
