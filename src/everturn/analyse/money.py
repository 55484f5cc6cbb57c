"""What tokens cost, in integer micro-dollars, by list prices; what has no price is said, never guessed.

Usage is counted once per response, in the session that made it: rows that a fork inherits cost nothing here. These are
list prices of tokens. What a subscription, a reseller, a batch or a faster tier costs is not in a transcript.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from msgspec import Struct

from everturn.analyse.prices import Prices, Rates, load_prices, models_of
from everturn.model.analytics import SLOT_MS, UsageRow

__all__ = ["Cost", "Prices", "cost_by", "dollars", "load_prices", "models_of", "token_cost"]

_SLOTS_A_DAY = 86_400_000 // SLOT_MS
_MICRODOLLAR = 1_000_000
_K = TypeVar("_K", bound=Hashable)


class Cost(Struct, frozen=True):
    """What some usage costs. `micro_dollars` is of the tokens that have a price; None when none of them has one."""

    micro_dollars: int | None
    priced_tokens: int = 0
    unknown_tokens: int = 0  # without a price
    unknown_models: tuple[str, ...] = ()  # theirs; "" where the transcript does not say


def token_cost(rows: Iterable[UsageRow], prices: Prices) -> Cost:
    """What the own usage of some rows costs. Rounded once, at the end, to the nearest micro-dollar."""
    exact = priced = unknown = 0
    models: set[str] = set()
    for row in rows:
        if row.inherited:
            continue
        day = None if row.slot < 0 else row.slot // _SLOTS_A_DAY
        amount, known, rest = _row_cost(row, prices.rates(row.model, day, row.prompt_size))
        exact, priced, unknown = exact + amount, priced + known, unknown + rest
        if rest:
            models.add(row.model)
    total = None if unknown and not priced else (exact + _MICRODOLLAR // 2) // _MICRODOLLAR
    return Cost(total, priced, unknown, tuple(sorted(models)))


def cost_by(rows: Iterable[UsageRow], prices: Prices, key: Callable[[UsageRow], _K]) -> dict[_K, Cost]:
    """The same in groups, each rounded for itself."""
    groups: dict[_K, list[UsageRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return {name: token_cost(group, prices) for name, group in groups.items()}


def dollars(found: Cost) -> str:
    """For people: `$12.34`, `$12.34+` when part of it has no price, `?` when nothing has one; small sums with four decimals."""
    if found.micro_dollars is None:
        return "?"
    cents, more = found.micro_dollars / 1e6, "+" if found.unknown_tokens else ""
    return f"${cents:,.4f}{more}" if 0 < found.micro_dollars < 10_000 else f"${cents:,.2f}{more}"


def _row_cost(row: UsageRow, rates: Rates | None) -> tuple[int, int, int]:
    """The price in millionths of a micro-dollar, the tokens it is for, the tokens that have none."""
    short = max(row.tokens_cache_write - row.tokens_cache_write_1h, 0)
    tokens = (row.tokens_in, row.tokens_out, row.tokens_cache_read, short, row.tokens_cache_write_1h)
    if rates is None:
        return 0, 0, sum(tokens)
    kinds = (rates.input, rates.output, rates.cache_read, rates.cache_write, rates.cache_write_1h)
    pairs = list(zip(tokens, kinds, strict=True))
    amount = sum(n * rate for n, rate in pairs if rate is not None)
    known = sum(n for n, rate in pairs if rate is not None)
    return amount, known, sum(tokens) - known
