"""Sessions, turns, tokens, cost and errors over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everturn.cli import analytics_options, frame
from everturn.text.printable import plural

if TYPE_CHECKING:
    from everturn.analytics.stats import Period, Stats

_MILLION, _THOUSAND = 1_000_000, 1000


@frame.command(
    "everturn stats",
    "everturn stats --period day --since 14d",
    "everturn stats --by model",
    "everturn stats --by workspace --period week --json",
    "everturn stats --plot calendar.svg",
)
@click.option(
    "--period", default="month", show_default=True, type=click.Choice(["day", "week", "month"]), help="The period of each line.",
)  # fmt: skip
@click.option("--by", type=click.Choice(["agent", "model", "workspace"]), help="One line for each of these.")
@analytics_options.plot_option
@analytics_options.options
def command(cx: frame.CommandContext, period: str, by: str | None, plot: str, **filters: str) -> int:
    """Show what was done and what it cost, over time (UTC).

    SESSIONS are those that `everturn sessions` lists, in the period in which they did something; subagents are not among
    them, and their work is counted. COST is by list price of the tokens; `+` is behind it where a model's price is not known, `?` where none is, `-` where
    no tokens were reported. Own prices go into prices.toml beside the config file (`everturn config get prices`). What forks
    repeat is counted once. With --since only what was done since then counts; tools and errors are those of the sessions.
    """
    from everturn.analytics import cost
    from everturn.analytics.stats import count_stats

    analytics_options.check_plot(plot)
    scope = analytics_options.scope_of(cx, **filters)
    if plot:
        from everturn.analytics.plots import activity_calendar

        return analytics_options.draw_plot(cx, scope, activity_calendar(cx.store(), scope), plot)
    found = count_stats(cx.store(), scope, cost.load_prices(cx.settings.prices), period, by or "")
    if not found.items:
        if cx.json:
            cx.out.emit_json("stats", [])
        return analytics_options.print_nothing(cx, scope, "there is nothing to count")
    if cx.json:
        more = {name: getattr(found, name) for name in found.__struct_fields__ if name != "items"}
        cx.out.emit_json("stats", found.items, **more)
    else:
        _print_stats(cx, found, by or "")
    return 0


def _print_stats(cx: frame.CommandContext, found: Stats, by: str) -> None:
    head = ("period", *([by] if by else []))
    columns = (*head, "sessions", "turns", "calls", "errors", "in", "out", "cached", "cost")
    rows = [[one.period or "no date", *([one.key or "-"] if by else []), *_numbers(one)] for one in found.items]
    rows.append(["all", *([""] if by else []), *_numbers(found.total)])
    right = range(len(head), len(columns))
    analytics_options.table(cx, columns, rows, right, spare=("in", "cached", "errors", "sessions"))
    _print_trend(cx, found)
    if found.tools:
        analytics_options.print_sentence(
            cx, f"tools     {', '.join(f'{one.name} {one.n:,}' for one in found.tools)}", indent=" " * 10
        )
    if found.errors:
        names = ", ".join(f"{one.name.replace('_', ' ')} {one.n:,}" for one in found.errors)
        analytics_options.print_sentence(cx, f"errors    {names}", indent=" " * 10)
    _print_subagents(cx, found)
    from everturn.analytics.cost import dollars

    models = [name or "(not named)" for name in found.total.cost.unknown_models]
    unknown = ", ".join(models[:5]) + (f" and {len(models) - 5} more" if len(models) > 5 else "")
    cx.out.say(
        f"list prices as of {found.prices_as_of}"
        + (f"; subagents {dollars(found.subagents)}" if found.subagents.micro_dollars else "")
        + (f"; no price for {unknown}" if unknown else "")
    )


def _print_subagents(cx: frame.CommandContext, found: Stats) -> None:
    """Print what main sessions and subagents did apart, and what is known from reports only."""
    own, both, told = found.own, found.inclusive, found.reported
    parts = []
    if both.sessions > own.sessions:
        who = plural(both.sessions - own.sessions, "subagent")
        parts += [
            f"main sessions {plural(own.calls, 'call')}, {_short(own.tokens)} tokens",
            f"with {who} {plural(both.calls, 'call')}, {_short(both.tokens)} tokens",
        ]
    if told.sessions:
        who = plural(told.sessions, "subagent")
        parts.append(f"reported only, not in these counts: {told.calls:,} calls, {_short(told.tokens)} tokens of {who}")
    if found.taken_back.turns:
        gone = plural(found.taken_back.turns, "turn")
        parts.append(f"taken back: {gone} with {plural(found.taken_back.calls, 'call')}")
    if parts:
        analytics_options.print_sentence(cx, f"work      {'; '.join(parts)}", indent=" " * 10)


def _print_trend(cx: frame.CommandContext, found: Stats) -> None:
    """Print the turns over time as one line, if there are enough periods."""
    from everturn.analytics.plot_drawings import spark_line

    turns: dict[str, int] = {}
    for one in found.items:
        if one.period:
            turns[one.period] = turns.get(one.period, 0) + one.turns
    cx.out.emit()
    if len(turns) > 2:
        cx.out.emit(f"turns     {spark_line(list(turns.values()), max(cx.out.width - 12, 10))}")


def _numbers(one: Period) -> list[str]:
    from everturn.analytics.cost import dollars

    cached = one.tokens_cache_read + one.tokens_cache_write
    tokens = [_short(n) for n in (one.tokens_in, one.tokens_out, cached)]
    has_tokens = (
        one.cost.priced_tokens or one.cost.unknown_tokens
    )  # where no token was reported nobody knows what it cost
    return [
        *(f"{n:,}" for n in (one.sessions, one.turns, one.calls, one.errors)), *tokens,
        dollars(one.cost) if has_tokens else "-",
    ]  # fmt: skip


def _short(n: int) -> str:
    if n >= 100 * _MILLION:
        return f"{n / _MILLION:,.0f}M"
    if n >= _MILLION:
        return f"{n / _MILLION:,.1f}M"
    return f"{n / _THOUSAND:,.1f}k" if n >= _THOUSAND else str(n)
