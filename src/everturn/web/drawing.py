"""Pages as HTML: the templates of this package, everything escaped where it is put in.

A page `x` is the template `x.html`, which puts `parts/x.html` into the frame of all pages; a part alone is what a page that
is open exchanges. Words are escaped by the templates; only what `export.page` has made is taken as HTML.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from everturn import __version__
from everturn.derive.numbers import plural
from everturn.derive.times import ago, duration, iso
from everturn.web.asking import PageReply
from everturn.web.site import Site

#: The pages of the bar at the top: address, name, key after `g`.
BAR = (
    ("/", "Home", "h"),
    ("/sessions", "Sessions", "s"),
    ("/search", "Search", "f"),
    ("/paths", "Paths", "p"),
    ("/costs", "Costs", "c"),
    ("/health", "Health", "d"),
)


def render_page(site: Site, page: PageReply, path: str, now: int, part: bool) -> str:
    """The page, or only the part of it that changes."""
    name = f"parts/{page.template}.html" if part else f"{page.template}.html"
    return (
        environment()
        .get_template(name)
        .render(page.values, site=site, page_title=page.title, here=path, now=now, bar=BAR, version=__version__)
    )


@cache
def environment() -> Environment:
    """The templates, read once."""
    made = Environment(
        loader=PackageLoader("everturn.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "iso": iso,
        "duration": duration,
        "number": _number_text,
        "size": size_text,
        "moment": time_html,
        "day": _minute_text,
    }
    made.globals |= {"ago": ago, "counted": plural}
    return made


def size_text(n: float) -> str:
    """Bytes as people read them."""
    for unit in ("bytes", "kB", "MB"):
        if n < 1000:
            return f"{n:,.0f} {unit}" if unit == "bytes" or n >= 100 else f"{n:,.1f} {unit}"
        n /= 1000
    return f"{n:,.1f} GB"


def time_html(ms: int | None, now: int) -> Markup:
    """A time as a distance, with the exact one to be seen on pointing at it."""
    if ms is None:
        return Markup("")
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(iso(ms), ago(ms, now))


def _number_text(value: Any) -> str:
    return f"{value:,}"


def _minute_text(ms: int | None) -> str:
    return iso(ms)[:16].replace("T", " ")
