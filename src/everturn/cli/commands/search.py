"""Find messages by their words, in everything that was said or done."""

from __future__ import annotations

import os
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from everturn import clock
from everturn.cli import frame
from everturn.cli.output import Pen, in_one_line, open_pager
from everturn.errors import UsageError
from everturn.model.vocabulary import FIELDS, ORIGINS, QUERY_RULE
from everturn.text.folders import FOLDER_RULE, resolve_folder
from everturn.text.printable import short_folder
from everturn.text.times import ago, iso, minute, parse_when

if TYPE_CHECKING:
    from everturn.cli.output import Output, Pen
    from everturn.retrieval.hits import NeighbourTurn, SearchHit
    from everturn.retrieval.scope import SearchFilters

_ROLES = ("user", "assistant")
_SIMILAR = 4  # matches with the same text that are named


class WordsCommand(click.Command):
    """A command whose words may start with a minus: `everturn search parser -yaml`.

    Only `-h` and arguments with two minuses are options. All others are words, in order; after `--` everything is a word.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Pass the options first, then the words after a `--`."""
        if ctx.resilient_parsing:  # shell completion
            return super().parse_args(ctx, args)
        with_value = {
            name for one in self.params if isinstance(one, click.Option) and not one.is_flag for name in one.opts
        }
        options: list[str] = []
        words: list[str] = []
        rest = iter(args)
        for arg in rest:
            if arg == "--":
                words += rest
            elif arg == "-h" or arg.startswith("--"):
                options += [arg, *islice(rest, 1 if arg in with_value else 0)]
            else:
                words.append(arg)
        return super().parse_args(ctx, [*options, "--", *words])


@frame.command(
    "everturn search parse error",
    "everturn search '\"exact phrase\" pre* json OR yaml' -unwanted",
    "everturn search 'migration tool:Bash error:yes since:7d'",
    "everturn search rename path:src/ -branch:main",
    "everturn search '/line \\d+: .*denied/i'",
    "everturn search timeout --in tool_output --context 1",
    "everturn search migration --session @last --lineage --widen",
    "everturn search what did I say about the cache 3 days ago",
    cls=WordsCommand,
    reveal=True,
    help=f"""Find messages by WORDS, in prompts, answers, thinking, tool input and tool output, the best first.

    {QUERY_RULE} /…/ is a regular expression, /…/i in any case. Filters stand among the words: agent: session: workspace:
    branch: role: tool: path: field: owner: machine: project: since: until: turn:3-7 error:yes taken-back:yes literal:yes, each
    also with a minus before it. What you took back by going back before it is left out unless taken-back:yes is given.

    Of a question such as "what did I say about the cache 3 days ago", the time and the speaker are understood: messages that
    fit come first, the others follow, and a line says so. Typed filters win, and --literal turns it off.

    Context that the client added is left out while there is anything else. Matches with the same text are shown once, with
    their number. A line says when no message holds all the words, and what else was done.

    With `everturn[meaning]` installed, a question also finds messages that say the same in other words; nothing is sent. Where
    the config has a [meaning] section with another model and `everturn sync --meaning` has made vectors, the words are sent
    to that model. Names, paths, quoted phrases and one or two words are found by words alone.
    """,
)
@click.argument("words", nargs=-1, required=True)
@click.option("--agent", default="", metavar="NAME", help="Only in sessions of this agent.")
@click.option("--workspace", default="", metavar="FOLDER", help=FOLDER_RULE)
@click.option("--here", is_flag=True, help="Only in sessions held in the current folder.")
@click.option("--session", default="", metavar="SESSION", help="Only in this session: an id or its prefix, @last.")
@click.option("--lineage", is_flag=True, help="With --session: also in what it came from and what it started.")
@click.option("--widen", is_flag=True, help="When nothing is found there: in the same folder, then everywhere.")
@click.option("--since", default="", metavar="WHEN", help="Only messages since then: 2026-01-31, 7d, yesterday.")
@click.option("--until", default="", metavar="WHEN", help="Only messages before then.")
@click.option("--in", "fields", multiple=True, type=click.Choice(FIELDS), help="Only in these parts; may be repeated.")
@click.option(
    "--role", "roles", multiple=True, type=click.Choice([*ORIGINS, *_ROLES]), help="Only by this speaker; may be repeated.",
)  # fmt: skip
@click.option("--context", default=0, metavar="N", type=click.IntRange(0, 5), help="Show N turns before and after.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many matches to show.")
@click.option("--after", default="", metavar="CURSOR", help="Continue where an earlier search ended.")
@click.option(
    "--sort", default="best", show_default=True, type=click.Choice(["best", "time"]), help="The best first, or the newest.",
)  # fmt: skip
@click.option("--no-collapse", is_flag=True, help="Show every match, also those with the same text.")
@click.option("--literal", is_flag=True, help="Search for the literal words: do not interpret times and speakers.")
@click.option("--no-meaning", is_flag=True, help="Find and rank by words only, not by meaning.")
def command(
    cx: frame.CommandContext, words: tuple[str, ...], limit: int, after: str, context: int, **options: Any
) -> int:
    """Search and print the hits."""
    from everturn.export.json_document import hit_item
    from everturn.retrieval.search import search

    _check_filter_names(" ".join(words))
    store, now = cx.store(), clock.now()
    filters = _filters(cx, now, **options)
    meaning = None
    if not options["no_meaning"]:
        from everturn.cli.meaning_options import for_search

        meaning = for_search(cx, store)
    page = search(
        store, cx.sources, " ".join(words), filters, limit, after, cx.out.clean, now, meaning,
        understand=not options["literal"], sort=options["sort"], collapse=not options["no_collapse"], home=os.path.expanduser("~"),
    )  # fmt: skip
    items = _add_context(cx, page.items, context)
    if cx.json:
        about = {"note": page.note or None, "notes": page.notes, "scope": page.scope or None}
        cx.out.emit_json("search", map(hit_item, items), page.next, **about)
    else:
        with open_pager(cx.out):
            _print_hits(cx.out, items, now)
    for note in page.notes:
        cx.out.warn(note)
    if not items:
        cx.out.warn(_nothing_text(filters, after, " ".join(words)))
        return 3
    if page.next and not cx.json:
        cx.out.say(f"for more matches, add --after {page.next}")
    return 0


def _check_filter_names(words: str) -> None:
    """Refuse a filter that does not exist but resembles one. Raises UsageError."""
    from everturn.retrieval.query import parse_query
    from everturn.retrieval.typos import meant_filters

    for word, name in meant_filters(parse_query(words)):
        typed, _, value = word.partition(":")
        raise UsageError(f"there is no filter {typed}:; did you mean {name}:{value}? Quote it to search for the text")


def _filters(cx: frame.CommandContext, now: int, **options: Any) -> SearchFilters:
    from everturn.retrieval.scope import SPEAKERS, SearchFilters

    session, since, until = (options[name] for name in ("session", "since", "until"))
    if options["lineage"] and not session:
        raise UsageError("--lineage needs a session to start from; add --session @last")
    if options["here"] and options["workspace"]:
        raise UsageError("--here and --workspace both name a folder; keep one of them")
    return SearchFilters(
        agent=options["agent"],
        workspace=resolve_folder("." if options["here"] else options["workspace"], home=os.path.expanduser("~")),
        session=cx.session(session) if session else None,
        since=parse_when(since, now) if since else None,
        until=parse_when(until, now) if until else None,
        fields=options["fields"],
        origins=tuple(origin for role in options["roles"] for origin in SPEAKERS[role]),
        lineage=options["lineage"],
        widen=options["widen"],
    )


def _add_context(cx: frame.CommandContext, items: list[SearchHit], turns: int) -> list[SearchHit]:
    if not turns:
        return items
    from everturn.retrieval.hits import with_neighbours

    return [with_neighbours(cx.store(), cx.sources, found, turns, cx.out.clean) for found in items]


def _print_hits(out: Output, items: list[SearchHit], now: int) -> None:
    from everturn.sessions.lookup import short_ids

    pen = Pen(out)
    also = [one.session for found in items for one in found.similar]
    shorts = short_ids([*(found.session for found in items), *also], out.archive)
    groups: dict[int, list[SearchHit]] = {}
    for found in items:
        groups.setdefault(found.session.id, []).append(found)
    for number, (session_id, group) in enumerate(groups.items()):
        session, text = group[0].session, group[0].text
        short = out.text(shorts[session_id])
        about = in_one_line(out, text.title or text.first_prompt, out.width - len(short) - 2 if out.fancy else 80)
        older = "" if session.state == "current" else "older version"
        facts = " · ".join(
            filter(
                None,
                (session.agent, _time_text(out, session.ended, now), short_folder(out.text(text.workspace)), older),
            )
        )
        out.emit(("\n" if number else "") + f"{pen('bold', short)}  {about}".rstrip())
        out.emit("  " + pen("dim", facts))
        for found in group:
            _print_neighbours(out, pen, found.before)
            place = _place_text(found, pen, is_short=out.fancy)
            out.emit_wrapped(f"{place}  {mark_matches(out, pen, found)}", "    ", "  ")
            if found.similar:
                out.emit_wrapped(pen("dim", _similar_text(out, found, shorts)), "    ")
            _print_neighbours(out, pen, found.after)


def _print_neighbours(out: Output, pen: Pen, turns: tuple[NeighbourTurn, ...]) -> None:
    for one in turns:
        out.emit_wrapped(pen("dim", f"turn {one.turn + 1} {one.role}  {out.text(one.text, ' ')}"), "    ")


def _similar_text(out: Output, found: SearchHit, shorts: dict[int, str]) -> str:
    """Return how many matches have the same text, and where the first of them are."""
    places = []
    for one in found.similar[:_SIMILAR]:
        where = "" if one.session.id == found.session.id else f"{out.text(shorts[one.session.id])} "
        places.append(where + ("title" if one.row is None else f"turn {one.row.turn + 1} #{one.row.seq + 1}"))
    more = ", …" if len(found.similar) > _SIMILAR else ""
    return f"and {len(found.similar)} more like it: {', '.join(places)}{more}"


def _time_text(out: Output, at: int | None, now: int) -> str:
    """Return a time as people say it on a terminal, a date elsewhere."""
    return ago(at, now) if out.fancy else iso(at)[:10]


def _place_text(found: SearchHit, pen: Pen, is_short: bool) -> str:
    field, at = found.field.replace("_", " "), "" if is_short else f" {minute(found.at)}"
    if found.row is None:
        return pen("cyan", field) + pen("dim", at)
    return pen("cyan", f"turn {found.row.turn + 1}") + pen("dim", f" #{found.row.seq + 1} {field}{at}")


def mark_matches(out: Output, pen: Pen, found: SearchHit) -> str:
    """Return the excerpt with its matches marked: in colour on a terminal, «so» elsewhere."""
    pieces = ((out.text(text, " "), is_match) for text, is_match in found.pieces)
    mark = partial(pen, "match") if pen.on else "«{}»".format
    return "".join(mark(text) if is_match else text for text, is_match in pieces)


def _nothing_text(filters: SearchFilters, after: str, words: str) -> str:
    from everturn.retrieval.query import parse_query
    from everturn.retrieval.scope import EVERYWHERE

    if after:
        return "there are no more matches"
    if filters == EVERYWHERE and not parse_query(words).filters:
        return "nothing found; try fewer or other words, a prefix like pars*, or `everturn sync` first"
    return "nothing found; remove a filter, or try fewer words or a prefix like pars*"
