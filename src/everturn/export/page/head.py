"""What stands above the first turn: what is known about a session, and the ways to its relatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from everturn.derive.numbers import plural, short_number
from everturn.derive.times import duration, iso
from everturn.export.markdown import minute_text
from everturn.export.page.look import PageLook
from everturn.export.page.markup import Html, element, show_line, show_text
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


def head_html(session: Session, text: SessionText, relatives: Lineage, look: PageLook, is_nested: bool = False) -> Html:
    """The title and the facts below it; within another session only what differs from that one."""
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
    """What a session is called: its title, else what was asked first, else its id."""
    return show_line(look.clean(text.title or text.first_prompt or session.native_id), _TITLE)


def relation_of(one: Relative, is_elder: bool) -> str:
    """How a relative is related, in words that stand before its name."""
    return _RELATIONS.get((one.relation, is_elder)) or one.relation.replace("_", " ").capitalize()


def relative_link(one: Relative, look: PageLook, words: str = "") -> Html:
    """The name of a relative, a link where there is an address."""
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
        yield _time_span(session)
    yield Html(plural(session.n_turns, "turn"))
    if session.n_calls:
        failed = f', <span class="failed">{session.n_errors:,} failed</span>' if session.n_errors else ""
        yield Html(plural(session.n_calls, "tool call") + failed)
    read = session.tokens_in + session.tokens_cache_read + session.tokens_cache_write
    if read or session.tokens_out:
        yield Html(f"{short_number(read)} tokens read, {short_number(session.tokens_out)} written")


def _session_name(session: Session, look: PageLook) -> Html:
    return element("code", show_text(look.clean(session.native_id)), title="session")


def _time_span(session: Session) -> Html:
    start, end = session.started or 0, session.ended
    begun = element("time", minute_text(start), datetime=iso(start))
    lasted = duration(end - start) if end is not None and end > start else ""
    return Html(f"{begun} UTC, {lasted}") if lasted else Html(f"{begun} UTC")


def _relative_facts(relatives: Lineage, look: PageLook) -> Iterator[Html]:
    for one in relatives.ancestors:
        yield Html(f"{show_text(relation_of(one, True))} {relative_link(one, look)}")
    for one in (*relatives.forks, *relatives.others):
        yield Html(f"{show_text(relation_of(one, False))} {relative_link(one, look)}")


def _session_notes(session: Session) -> Iterator[Html]:
    if session.state != "current":
        yield element("p", "An older edition: its file was rewritten since.", class_="note")
    if not has_words(session):
        yield element("p", "Only the structure of this session was kept: there are no words to show.", class_="note")
