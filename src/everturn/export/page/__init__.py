"""How a conversation looks as HTML: what the self-contained file and the web page have in common.

Pure functions from the model to markup. A turn is the unit: `turn_html` puts one on the page, `head_html` what is known
of a session, `draw_minimap` a picture of all its turns, `list_turns` a list of them; `STYLE` and `SCRIPT` are the look and the few
keys. `markdown_html`, `diff_html` and `show_text` put single texts on a page. `PageLook` says what is shown, how much of it, and where
links lead. `selfcontained.as_html` makes one file of it all.

Promises: whatever stands in a transcript stays words. No script, style, address or element of it reaches the page; what
hides or reorders text is made visible; addresses lead to the web or to mail and nothing is loaded from anywhere. No
attribute `style` and no handler is ever written, so that a page can forbid both.
"""

from everturn.export.page.calls import diff_html
from everturn.export.page.content import markdown_html, pictures_of
from everturn.export.page.head import MinimapEntry, draw_minimap, head_html, list_turns
from everturn.export.page.markup import (
    SCRIPT,
    STYLE,
    Html,
    PageLook,
    children_of,
    element,
    make_visible,
    show_line,
    show_text,
)
from everturn.export.page.turn import turn_html

__all__ = [
    "SCRIPT",
    "STYLE",
    "Html",
    "MinimapEntry",
    "PageLook",
    "children_of",
    "diff_html",
    "draw_minimap",
    "element",
    "head_html",
    "list_turns",
    "make_visible",
    "markdown_html",
    "pictures_of",
    "show_line",
    "show_text",
    "turn_html",
]
