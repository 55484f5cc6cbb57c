"""A page as a parser sees it, and what must never be on it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.parser import HTMLParser

from everturn.export.page.standalone import as_html
from everturn.model.archive import Session
from everturn.sources.contract import all_sources
from everturn.store.contract import Store

VOID = {"meta", "link", "img", "br", "hr", "rect", "path", "wbr"}
TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "link",
        "style",
        "body",
        "main",
        "article",
        "header",
        "footer",
        "nav",
        "section",
    ),
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "a", "b", "strong", "em", "s", "code", "pre", "span"),
    *(
        "div",
        "details",
        "summary",
        "time",
        "img",
        "br",
        "hr",
        "blockquote",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    ),
    *("svg", "rect", "path", "script", "wbr"),
}
ATTRIBUTES = {
    *("class", "id", "href", "rel", "title", "role", "aria-label", "datetime", "open", "lang", "src", "alt", "loading"),
    *(
        "start",
        "viewbox",
        "preserveaspectratio",
        "x",
        "y",
        "d",
        "aria-hidden",
        "tabindex",
        "width",
        "height",
        "charset",
        "content",
        "http-equiv",
        "name",
    ),
}
ADDRESS = re.compile(r"#[\w-]+$|https?://|mailto:|data:,$", re.I)
PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$")


def page(store: Store, *sessions: Session, **wanted: bool) -> str:
    """The file of some sessions, as it is written."""
    pieces = as_html(store, all_sources(), sessions, None, **wanted)
    return "".join(piece.encode("utf-8", "replace").decode() for piece in pieces)


class Seen(HTMLParser):
    """Every element of a page, the words on it, and all that is wrong with it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.wrong: list[str] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.wrong += [f"<{tag}> is left open" for tag in self._open]

    def classes(self, name: str) -> list[dict[str, str | None]]:
        """The elements of a class."""
        return [given for _, given in self.elements if name in (given.get("class") or "").split()]

    def count(self, tag: str) -> int:
        """How many elements of a name there are."""
        return sum(one == tag for one, _ in self.elements)

    @property
    def text(self) -> str:
        """All words on the page."""
        return "".join(self.words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.wrong += _faults(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] not in ("script", "style"):
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        self.wrong.append("a comment")


def _faults(tag: str, attrs: Iterable[tuple[str, str | None]]) -> list[str]:
    wrong = [] if tag in TAGS or tag == "title" else [f"<{tag}>"]
    for name, value in attrs:
        if name not in ATTRIBUTES:
            wrong.append(f"<{tag} {name}>")
        elif (name == "href" and not ADDRESS.match(value or "")) or (name == "src" and not PICTURE.match(value or "")):
            wrong.append(f"<{tag} {name}={value!r}>"[:200])
    return wrong
