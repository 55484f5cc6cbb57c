"""The head of a session page: facts, links to relatives, the minimap, and the list of turns.

The minimap is a strip with a bar for each turn, coloured by kind of work. It is drawn from rows of turns and counts of
calls, without any content. Many turns share a bar, so that the drawing does not grow with the session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import log2

from msgspec import Struct

from everturn.export.page.markup import Html, PageLook, element, show_line, show_text
from everturn.model.archive import Session, SessionText, Turn
from everturn.sessions.lineage import Lineage, Relative, relation_words
from everturn.sessions.messages import has_words
from everturn.text.printable import plural, short_number
from everturn.text.times import duration, iso, minute, turn_ms

_TITLE = 160


def head_html(session: Session, text: SessionText, relatives: Lineage, look: PageLook, is_nested: bool = False) -> Html:
    """Return the title and the facts; within another session only what differs from that one."""
    if is_nested:
        return element("header", _facts_list((*_figure_facts(session), _session_name(session, look))), class_="session")
    facts = (
        *_place_facts(session, text, look),
        *_figure_facts(session),
        _session_name(session, look),
        *_relative_facts(relatives, look),
    )
    title = element("h1", title_of(session, text, look))
    return element("header", title, _facts_list(facts), *_session_notes(session), class_="session")


def title_of(session: Session, text: SessionText, look: PageLook) -> Html:
    """Return the name of a session: its title, else its first prompt, else its id."""
    return show_line(look.clean(text.title or text.first_prompt or session.native_id), _TITLE)


def relation_of(one: Relative, is_elder: bool) -> str:
    """Describe the relation of a relative, in words before its name."""
    is_started = one.relation == "subagent_of" and not is_elder
    return "Started subagent" if is_started else relation_words(one, is_elder).capitalize()


def relative_link(one: Relative, look: PageLook, words: str = "") -> Html:
    """Return the name of a relative, a link if there is an address."""
    name = words or one.native_id.rpartition("/")[2] or one.native_id
    address = look.to_session(one) if look.to_session and one.session is not None else ""
    inner = show_line(look.clean(name), 60)
    if address:
        return element("a", inner, href=address, class_="kin")
    missing = "" if one.session is not None else " (not in the archive)"
    return Html(f'<span class="kin">{inner}{missing}</span>')


def _facts_list(facts: Iterable[str]) -> Html:
    return element("ul", Html("".join(f"<li>{fact}</li>" for fact in facts)), class_="facts")


def _place_facts(session: Session, text: SessionText, look: PageLook) -> Iterator[Html]:
    agent = look.titles.get(session.agent, session.agent)
    yield show_line(look.clean(" ".join(filter(None, (agent, session.client)))), 80)
    if text.workspace:
        where = element("code", show_line(look.clean(text.workspace), 120))
        branch = show_line(look.clean(text.branch), 60)
        yield Html(f"{where} on {branch}") if branch else where


def _figure_facts(session: Session) -> Iterator[Html]:
    if session.model:
        yield show_line(session.model, 80)
    if session.started is not None:
        start, end = session.started, session.ended
        begun = element("time", minute(start), datetime=iso(start))
        lasted = duration(end - start) if end is not None and end > start else ""
        yield Html(f"{begun} UTC, {lasted}") if lasted else Html(f"{begun} UTC")
    yield Html(plural(session.n_turns, "turn"))
    if session.n_calls:
        failed = f', <span class="failed">{session.n_errors:,} failed</span>' if session.n_errors else ""
        yield Html(plural(session.n_calls, "tool call") + failed)
    read = session.tokens_in + session.tokens_cache_read + session.tokens_cache_write
    if read or session.tokens_out:
        yield Html(f"{short_number(read)} tokens read, {short_number(session.tokens_out)} written")


def _session_name(session: Session, look: PageLook) -> Html:
    return element("code", show_text(look.clean(session.native_id)), title="session")


def _relative_facts(relatives: Lineage, look: PageLook) -> Iterator[Html]:
    for one in relatives.ancestors:
        yield Html(f"{show_text(relation_of(one, True))} {relative_link(one, look)}")
    for one in (*relatives.forks, *relatives.others):
        yield Html(f"{show_text(relation_of(one, False))} {relative_link(one, look)}")


def _session_notes(session: Session) -> Iterator[Html]:
    if session.state != "current":
        yield element("p", "An older version: its file was rewritten since.", class_="note")
    if not has_words(session):
        yield element("p", "Only the structure of this session was kept: there are no words to show.", class_="note")


_WIDE, _HIGH = 1000, 48
_LANE = 6  # above the bars, for events of the context
_BARS = 240
_WIDEST = 80  # of a bar, so that a few turns do not fill the strip
_BUSY = 15  # calls of a full bar, unless a turn has more
_LOWEST = 5.0

#: The parts of a bar, lowest first, and their labels. More colours could not be distinguished.
KINDS = {
    "edit": "changes",
    "shell": "commands",
    "read": "reading",
    "fetch": "web",
    "task": "subagents",
    "other": "other tools",
    "talk": "only words",
    "inherited": "copied",
    "failed": "failed",
    "compacted": "compacted",
    "interrupted": "interrupted",
}
_KIND_GROUPS = {"create": "edit", "delete": "edit", "search": "read", "recall": "read"}
_EVENTS = ("compacted", "interrupted")


class MinimapEntry(Struct, frozen=True):
    """A turn in the list: its number from 1 and the beginning of its prompt. Number 0 is the heading of a session."""

    number: int
    words: str
    failed: bool = False
    address: str = ""  # default: `#t12`


class MinimapBar(Struct, frozen=True):
    """Consecutive turns, and the position of their bar."""

    turns: Sequence[Turn]
    work: Counter[str]  # calls by kind
    left: float
    width: float
    high: float

    @property
    def calls(self) -> int:
        return sum(turn.n_calls for turn in self.turns)

    @property
    def errors(self) -> int:
        return sum(turn.n_errors for turn in self.turns)

    @property
    def solid(self) -> float:
        """The width without the gap to the next bar."""
        return self.width - min(1.5, self.width / 5)


def draw_minimap(
    turns: Sequence[Turn], address: Callable[[int], str] | None = None, work: Iterable[tuple[int, str, int]] = ()
) -> Html:
    """Draw a strip of bars: height by number of calls, colour by kind, red for the share that failed.

    `address` returns the address of turn N (from 1). `work` yields (turn from 0, kind, number of calls).
    """
    if not turns:
        return Html("")
    address_of = address or (lambda number: f"#t{number}")
    bars = _make_bars(turns, _count_by_turn(work))
    areas = _group_areas(bars)
    shown = "".join(f'<path class="{kind}" d="{"".join(areas[kind])}"/>' for kind in KINDS if kind in areas)
    links = "".join(_turn_link(bar, address_of(bar.turns[0].idx + 1)) for bar in bars)
    label = (
        f"All {plural(len(turns), 'turn')}: the higher a bar the more calls, coloured by kind, red where they failed"
    )
    legend = "".join(f'<span class="{kind}">{words}</span>' for kind, words in KINDS.items() if kind in areas)
    return Html(
        f'<nav class="minimap" aria-label="{label}"><svg viewBox="0 0 {_WIDE} {_HIGH}" preserveAspectRatio="none" '
        f'role="group" aria-label="{label}">{shown}{links}</svg><p class="kinds" aria-hidden="true">{legend}</p></nav>'
    )


def list_turns(entries: Iterable[MinimapEntry]) -> Html:
    """Return the turns with their prompts, each a link."""
    items = [
        element(
            "li",
            element("a", _number_html(one), one.words, href=one.address or f"#t{one.number}"),
            class_="failed" if one.failed else "" if one.number else "whole",
        )
        for one in entries
    ]
    return element("nav", element("ol", Html("".join(items))), class_="outline", aria_label="Turns")


def _number_html(one: MinimapEntry) -> Html:
    return element("span", str(one.number), class_="number") if one.number else Html("")


def _count_by_turn(work: Iterable[tuple[int, str, int]]) -> dict[int, Counter[str]]:
    found: dict[int, Counter[str]] = {}
    for turn, kind, n in work:
        name = _KIND_GROUPS.get(kind, kind)
        found.setdefault(turn, Counter())[name if name in KINDS else "other"] += n
    return found


def _make_bars(turns: Sequence[Turn], work: dict[int, Counter[str]]) -> list[MinimapBar]:
    weights = [1 + log2(1 + turn.n_messages) for turn in turns]
    scale = min(_WIDE / sum(weights), _WIDEST / max(weights))
    full = log2(1 + max(_BUSY, *(turn.n_calls for turn in turns)))
    count, left, bars = min(len(turns), _BARS), 0.0, list[MinimapBar]()
    for first, last in pairwise([*(len(turns) * number // count for number in range(count)), len(turns)]):
        some, width = turns[first:last], sum(weights[first:last]) * scale
        calls = sum(turn.n_calls for turn in some) / len(some)
        high = _LOWEST + (_HIGH - _LANE - _LOWEST) * min(1.0, log2(1 + calls) / full)
        kinds = sum((work.get(turn.idx, Counter()) for turn in some), Counter[str]())
        bars.append(MinimapBar(some, kinds, left, width, high))
        left += width
    return bars


def _group_areas(bars: Sequence[MinimapBar]) -> dict[str, list[str]]:
    """Return the boxes of each colour: a few shapes however many bars there are."""
    found: dict[str, list[str]] = {}
    for bar in bars:
        top = float(_HIGH)
        for kind, high in _bar_layers(bar):
            top -= high
            found.setdefault(kind, []).append(_box_path(bar.left, top, bar.solid, high))
        if bar.errors and bar.calls:
            red = max(3.0, bar.high * min(1.0, bar.errors / bar.calls))
            found.setdefault("failed", []).append(_box_path(bar.left, _HIGH - red, bar.solid, red))
        for name in _EVENTS:
            if any(getattr(turn, name) for turn in bar.turns):
                found.setdefault(name, []).append(_box_path(bar.left, 0, min(bar.solid, 6), _LANE - 1))
    return found


def _bar_layers(bar: MinimapBar) -> list[tuple[str, float]]:
    """Return the colours of a bar from below, each with its height."""
    if all(turn.inherited for turn in bar.turns):
        return [("inherited", bar.high)]
    total = bar.work.total()
    if not total:
        return [("other" if bar.calls else "talk", bar.high)]
    return [(kind, bar.high * bar.work[kind] / total) for kind in KINDS if bar.work[kind]]


def _box_path(x: float, y: float, width: float, height: float) -> str:
    return f"M{x:.1f} {y:.1f}h{width:.1f}v{height:.1f}h-{width:.1f}z"


def _turn_link(bar: MinimapBar, address: str) -> Html:
    """Link the whole height to the turn. The Tab key skips it: hundreds of stops would be too many."""
    box = f'<rect x="{bar.left:.1f}" width="{bar.width:.1f}" height="{_HIGH}"/>'
    first, last = bar.turns[0], bar.turns[-1]
    numbers = f"Turn {first.idx + 1}" if first is last else f"Turns {first.idx + 1}–{last.idx + 1}"
    facts = [numbers, minute(first.started), duration(turn_ms(first)) if first is last else ""]
    facts += [plural(bar.calls, "call")] * bool(bar.calls)
    facts += [f"{KINDS[kind]} {n:,}" for kind, n in bar.work.most_common(3)]
    facts += [f"{bar.errors:,} failed"] * bool(bar.errors)
    facts += [name for name in _EVENTS if any(getattr(turn, name) for turn in bar.turns)]
    return element("a", element("title", " · ".join(filter(None, facts))), Html(box), href=address, tabindex=-1)
