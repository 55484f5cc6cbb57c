"""How much of a turn fits on a page.

One text is cut in its middle beyond `Look.longest`; once a turn has taken `Look.most` characters its tools are shown by
their beginnings only, or the turn goes on on another page (`Look.to_rest`). What is left out is told where it is missing,
with the way to all of it where there is one.
"""

from __future__ import annotations

from html import escape

from everturn.export.page.look import PageLook
from everturn.export.page.markup import Html, element, show_prose, show_text

_LEAST = 400  # characters of a text that are shown when there is no room left
_TAIL = 4  # one part in so many is kept from the end


class PageRoom:
    """What is left of a turn's share of the page."""

    def __init__(self, look: PageLook, turn: int) -> None:
        self._look, self._turn = look, turn
        self._left = look.most
        self.drawn = 0  # characters of markup
        self.next_seq = -1  # the message at which the turn was ended for want of room
        self._named = set[int]()

    @property
    def is_full(self) -> bool:
        """Whether the turn goes on elsewhere."""
        return self._look.to_rest is not None and self.drawn >= self._look.most

    def name(self, seq: int) -> str:
        """The attribute that makes a message an address (`#m12`), for the first place that shows some of it.

        Where messages can be looked at one by one; elsewhere nobody asks for it.
        """
        if self._look.to_record is None or seq < 0 or seq in self._named:
            return ""
        self._named.add(seq)
        return f' id="{escape(self._look.anchor[:-1])}m{seq + 1}"'

    def rest(self) -> Html:
        """The way to what there was no room for."""
        if self._look.to_rest is None or self.next_seq < 0:
            return Html("")
        link = element("a", "go on reading", href=self._look.to_rest(self._turn, self.next_seq))
        return element("p", "This turn is longer than a page: ", link, class_="gap")

    def cut(self, text: str, seq: int) -> str:
        """The text, without its middle when it is too long, and a line that says so."""
        head, gone, tail = self._split_text(text)
        return f"{head}\n… {gone:,} characters left out …\n{tail}" if gone else text

    def block(self, text: str, seq: int, name: str) -> Html:
        """Words as they are, in a block of that class."""
        put = show_prose if name == "plain" else show_text
        head, gone, tail = self._split_text(text.strip("\n"))
        shown_head = put(head)
        self._left -= len(shown_head) - len(head)  # markup may be several times as long as what it shows
        inner = f'{shown_head}</pre>{self._gap_html(gone, seq)}<pre class="{name}">{put(tail)}' if gone else shown_head
        return Html(f'<pre class="{name}">{inner}</pre>')

    def words(self, text: str, seq: int) -> tuple[str, Html]:
        """The beginning of a text that is to be rendered, and what tells that there is more."""
        longest = self._look.longest
        self._left -= min(len(text), longest)
        return (text, Html("")) if len(text) <= longest else (text[:longest], self._gap_html(len(text) - longest, seq))

    def take(self, markup: Html, seq: int) -> Html:
        """Markup that is shown as a whole or not at all."""
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
