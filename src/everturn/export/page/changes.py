"""What an edit changed, line by line, in the colours of a diff."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby

from everturn.derive.diffs import style_of
from everturn.export.page.markup import Html, make_visible

_CLASSES = {"added": "add", "removed": "del", "hunk": "hunk", "bold": "file"}


def diff_html(lines: Iterable[str]) -> Html:
    """A diff. Neighbouring lines of one kind are one element: a long file that is new costs no more than its text."""
    return Html(f'<pre class="diff">{"".join(_style_runs(lines))}</pre>')


def _style_runs(lines: Iterable[str]) -> Iterator[str]:
    for style, run in groupby(lines, style_of):
        # One line of the diff is one line on the page, whatever line ends of other systems it holds.
        text = escape("\n".join(make_visible(line).replace("\n", "␊") for line in run))
        name = _CLASSES.get(style)
        yield f'<span class="{name}">{text}\n</span>' if name else f"{text}\n"
