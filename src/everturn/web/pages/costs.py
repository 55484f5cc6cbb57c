"""Costs: tokens and money by period, model, agent and folder; the cost of subagents, the tokens that forks repeat."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from everturn.analytics.cost import dollars
from everturn.analytics.plot_drawings import plot_svg
from everturn.analytics.plots import Bars, PlotBar
from everturn.analytics.stats import KEYS, PERIODS, Period, Stats, count_stats, periods_between
from everturn.export.page.markup import Html
from everturn.store.contract import SessionFilter
from everturn.text.printable import short_folder, short_number
from everturn.web.analytics_scope import cached_answer, filters_of, load_prices, scope_of
from everturn.web.pages.paths import query_of
from everturn.web.request import PageReply, WebRequest
from everturn.web.session_lines import archived_agents

_BARS = 31
_ROWS = 12
_MOST = 200  # rows, with the folded ones
_DOLLARS = 20_000_000  # micro-dollars from which a plot shows dollars instead of cents
_NAMES = 500  # newest sessions whose folders are known by name


def draw(request: WebRequest) -> PageReply:
    """Draw the page; its parts are fetched later."""
    values: dict[str, Any] = {
        "filters": {**filters_of(request), "period": _chosen_period(request)},
        "periods": PERIODS,
        "agents": archived_agents(request, request.sources),
        "keys": KEYS,
        **query_of(request),
    }
    values["query"] = f"{values['query'] or '?'}&period={_chosen_period(request)}".replace("?&", "?")
    return PageReply("costs", values, "Costs")


def draw_total(request: WebRequest) -> PageReply:
    found = _cached_stats(request, "")
    total = found.total
    unknown = [request.line(name, 60) or "(not named)" for name in total.cost.unknown_models[:6]]
    whole = total.cost.micro_dollars
    own = None if whole is None else whole - (found.subagents.micro_dollars or 0)
    values = {
        "total": total,
        "cost": dollars(total.cost),
        "own": dollars(replace(total.cost, micro_dollars=own)),
        "subagents": dollars(found.subagents),
        "reported": found.reported if found.reported.sessions else None,
        "reported_tokens": short_number(found.reported.tokens),
        "inherited": short_number(found.inherited_tokens) if found.inherited_tokens else "",
        "tokens": {
            name: short_number(getattr(total, f"tokens_{name}")) for name in ("in", "out", "cache_read", "cache_write")
        },
        "unknown": unknown,
        "as_of": found.prices_as_of,
        "plot": plot_spending(found, _chosen_period(request)),
    }
    return PageReply("total", values)


def draw_by(request: WebRequest) -> PageReply:
    by = request.choice("by", KEYS) or "model"
    rows = spending_rows(request, _cached_stats(request, by), by)
    return PageReply(
        "by", {"by": by, "rows": rows[:_ROWS], "more": rows[_ROWS:_MOST], "rest": max(0, len(rows) - _MOST)}
    )


def spending_rows(request: WebRequest, found: Stats, by: str) -> list[dict[str, Any]]:
    """Return what each agent, model or folder cost, the most expensive first."""
    sums: dict[str, list[Period]] = {}
    for one in found.items:
        sums.setdefault(one.key, []).append(one)
    names = _folder_names(request) if by == "workspace" else request.site.titles if by == "agent" else {}
    rows = [_cost_row(request, names.get(key, key), parts) for key, parts in sums.items()]
    rows.sort(key=lambda row: (-row["micro"], -row["tokens"]))
    most = max((row["micro"] for row in rows), default=0) or 1
    for row in rows:
        row["share"] = round(100 * row["micro"] / most, 1)
    return rows


def _cached_stats(request: WebRequest, by: str) -> Stats:
    period = _chosen_period(request)
    return cached_answer(
        request, f"stats {by}", lambda: count_stats(request.store, scope_of(request), load_prices(request), period, by)
    )


def _chosen_period(request: WebRequest) -> str:
    return request.choice("period", PERIODS) or "month"


def _cost_row(request: WebRequest, name: str, parts: list[Period]) -> dict[str, Any]:
    micro = sum(one.cost.micro_dollars or 0 for one in parts)
    unknown = any(one.cost.unknown_tokens for one in parts)
    tokens = sum(one.tokens_in + one.tokens_out + one.tokens_cache_read + one.tokens_cache_write for one in parts)
    known = any(one.cost.micro_dollars is not None for one in parts)
    cost = f"${micro / 1e6:,.2f}{'+' if unknown else ''}" if known else "?"
    cost = cost if tokens else "–"
    turns = sum(one.turns for one in parts)
    return {
        "name": request.line(name, 80) or "(not named)", "micro": micro, "cost": cost, "tokens": tokens,
        "shown": short_number(tokens), "turns": turns,
    }  # fmt: skip


def plot_spending(found: Stats, period: str, most: int = _BARS) -> Html:
    """Return the plot of the last periods, in cents or dollars; a period without work has an empty place."""
    spent = {one.period: one.cost.micro_dollars or 0 for one in found.items if one.period}
    if not spent:
        return Html("")
    names = periods_between(min(spent), max(spent), period)[-most:]
    size, unit = (1_000_000, "dollars") if max(spent.values()) >= _DOLLARS else (10_000, "cents")
    begins = 5 if period == "day" else 2  # leave out the century, of a day also the year
    bars = [PlotBar(name[begins:], round(spent.get(name, 0) / size)) for name in names]
    return Html(plot_svg(Bars("Cost over time", period, unit, bars), standalone=False))


def _folder_names(request: WebRequest) -> dict[str, str]:
    """Return the folders of the newest sessions, by workspace key. Cached."""

    def look() -> dict[str, str]:
        rows, _ = request.store.sessions(SessionFilter(), _NAMES)
        return {
            one.workspace_key: short_folder(request.line(text.workspace, 400)) for one, text in rows if text.workspace
        }

    return request.site.for_a_while("folders", look)
