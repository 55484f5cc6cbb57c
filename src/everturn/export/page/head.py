"""What stands above the first turn: what is known about a session, and the ways to its relatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from everturn.derive.numbers import counted, short
from everturn.derive.times import duration, iso
from everturn.export.markdown import minute
from everturn.export.page.look import Look
from everturn.export.page.markup import Html, element, shown, shown_line
from everturn.model.archive import Session, SessionText
from everturn.recall.lineage import Lineage, Relative
from everturn.recall.reading import has_words

_TITLE = 160
_RELATIONS = {
    ("subagent_of", True): "Subagent of",
    ("subagent_of", False): "Started subagent",
    ("forked_from", True): "Forked from",
    ("forked_from", False): "Forked into",
    ("continues", True): "Continues",
    ("continues", False): "Continued by",
    ("output_of", True): "Saved output of",
    ("output_of", False): "Saved output",
    ("teammate_of", True): "In the team of",
}


def head_html(session: Session, text: SessionText, relatives: Lineage, look: Look, is_nested: bool = False) -> Html:
    """The title and the facts below it; within another session only what differs from that one."""
    if is_nested:
        return element("header", _list((*_figures(session), _name(session, look))), class_="session")
    facts = (*_place(session, text, look), *_figures(session), _name(session, look), *_kin(relatives, look))
    title = element("h1", title_of(session, text, look))
    return element("header", title, _list(facts), *_notes(session), class_="session")


def title_of(session: Session, text: SessionText, look: Look) -> Html:
    """What a session is called: its title, else what was asked first, else its id."""
    return shown_line(look.clean(text.title or text.first_prompt or session.native_id), _TITLE)


def relation_of(one: Relative, is_elder: bool) -> str:
    """How a relative is related, in words that stand before its name."""
    return _RELATIONS.get((one.relation, is_elder)) or one.relation.replace("_", " ").capitalize()


def way_to(one: Relative, look: Look, words: str = "") -> Html:
    """The name of a relative, a link where there is an address."""
    name = words or one.native_id.rpartition("/")[2] or one.native_id
    address = look.to_session(one) if look.to_session and one.session is not None else ""
    inner = shown_line(look.clean(name), 60)
    if address:
        return element("a", inner, href=address, class_="kin")
    missing = "" if one.session is not None else " (not in the archive)"
    return Html(f'<span class="kin">{inner}{missing}</span>')


def _list(facts: Iterable[str]) -> Html:
    return element("ul", Html("".join(f"<li>{fact}</li>" for fact in facts)), class_="facts")


def _place(session: Session, text: SessionText, look: Look) -> Iterator[Html]:
    agent = look.titles.get(session.agent, session.agent)
    yield shown_line(look.clean(" ".join(filter(None, (agent, session.client)))), 80)
    if text.workspace:
        where = element("code", shown_line(look.clean(text.workspace), 120))
        branch = shown_line(look.clean(text.branch), 60)
        yield Html(f"{where} on {branch}") if branch else where


def _figures(session: Session) -> Iterator[Html]:
    if session.model:
        yield shown_line(session.model, 80)
    if session.started is not None:
        yield _span(session)
    yield Html(counted(session.n_turns, "turn"))
    if session.n_calls:
        failed = f', <span class="failed">{session.n_errors:,} failed</span>' if session.n_errors else ""
        yield Html(counted(session.n_calls, "tool call") + failed)
    read = session.tokens_in + session.tokens_cache_read + session.tokens_cache_write
    if read or session.tokens_out:
        yield Html(f"{short(read)} tokens read, {short(session.tokens_out)} written")


def _name(session: Session, look: Look) -> Html:
    return element("code", shown(look.clean(session.native_id)), title="session")


def _span(session: Session) -> Html:
    start, end = session.started or 0, session.ended
    begun = element("time", minute(start), datetime=iso(start))
    lasted = duration(end - start) if end is not None and end > start else ""
    return Html(f"{begun} UTC, {lasted}") if lasted else Html(f"{begun} UTC")


def _kin(relatives: Lineage, look: Look) -> Iterator[Html]:
    for one in relatives.ancestors:
        yield Html(f"{shown(relation_of(one, True))} {way_to(one, look)}")
    for one in (*relatives.forks, *relatives.others):
        yield Html(f"{shown(relation_of(one, False))} {way_to(one, look)}")


def _notes(session: Session) -> Iterator[Html]:
    if session.state != "current":
        yield element("p", "An older edition: its file was rewritten since.", class_="note")
    if not has_words(session):
        yield element("p", "Only the structure of this session was kept: there are no words to show.", class_="note")
