"""The cost of tokens in integer micro-dollars, by list prices: the bundled list, and the user's own over it.

A list is TOML, described in docs/analytics.md. Models are named as transcripts name them, also with a date appended. Of
several entries for a model, the one with the latest `from` that is not after the day of the usage counts. A day before
all of them has no price, and neither has a model without an entry. An entry of the user's list replaces all bundled ones
for the models it names.

A missing price is reported, never guessed. Usage is counted once per response, in the session that made it: rows that a
fork inherits cost nothing here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Hashable, Iterable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from everturn.errors import BadConfig
from everturn.model.analytics import PROMPT_SIZES, SLOT_MS, UsageRow
from everturn.model.conversation import prepared

_BUNDLED_PRICES = Path(__file__).with_name("prices.toml")
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")
_EPOCH = date(1970, 1, 1)
_MICRODOLLARS = 1_000_000


class Rates(Struct, frozen=True):
    """Millionths of a micro-dollar for one token; None: that kind of token has no price."""

    input: int
    output: int
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None


class Price(Struct, frozen=True):
    """The rates of a model from a day on (days since 1970; None: from the beginning)."""

    since: int | None
    rates: Rates
    above: int | None = None  # how many of PROMPT_SIZES a prompt must exceed for the rates of long ones
    long: Rates | None = None


class Prices(Struct, frozen=True):
    """Prices by model, the latest first."""

    as_of: str
    models: dict[str, tuple[Price, ...]]

    def rates(self, model: str, day: int | None, prompt_size: int = 0) -> Rates | None:
        """Return the rates of a model on a day; None if unknown. Without a day, only an unchanged price counts."""
        entries = self.models.get(model) or self.models.get(_DATED.sub("", model)) or ()
        if day is None:
            entries = entries if len(entries) == 1 and entries[0].since is None else ()
        for price in entries:
            if price.since is None or (day is not None and price.since <= day):
                long = price.above is not None and prompt_size >= price.above
                return price.long if long else price.rates
        return None


def load_prices(own: Path | None = None) -> Prices:
    """Return the bundled list with the user's own over it, if that file exists. Raises BadConfig if it is invalid."""
    ours = _read_prices(_BUNDLED_PRICES)
    if own is None or not own.is_file():
        return ours
    theirs = _read_prices(own)
    return Prices(theirs.as_of or ours.as_of, ours.models | theirs.models)


def models_of(path: Path) -> tuple[str, ...]:
    """Return the models that a list has prices for. Raises BadConfig."""
    return tuple(sorted(_read_prices(path).models))


class _LongPromptRates(Struct, frozen=True, forbid_unknown_fields=True):
    prompt: int
    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None


class _PriceEntry(Struct, frozen=True, forbid_unknown_fields=True):
    names: list[str]
    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    since: date | None = msgspec.field(default=None, name="from")
    above: _LongPromptRates | None = None


class _PriceList(Struct, frozen=True, forbid_unknown_fields=True):
    as_of: str = ""
    price: list[_PriceEntry] = []


def _read_prices(path: Path) -> Prices:
    try:
        found = tomllib.loads(path.read_text("utf-8"), parse_float=Decimal)
        listed = msgspec.convert(found, prepared(_PriceList), strict=False)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise BadConfig("prices", f"{path} is not a list of prices: {error}") from None
    models: dict[str, list[Price]] = {}
    for entry in listed.price:
        price = _price(entry, path)
        for name in entry.names:
            models.setdefault(name, []).append(price)
    return Prices(listed.as_of, {name: tuple(sorted(found, key=_newest_first)) for name, found in models.items()})


def _price(entry: _PriceEntry, path: Path) -> Price:
    since = None if entry.since is None else (entry.since - _EPOCH) // timedelta(days=1)
    if entry.above is None:
        return Price(since, _rates(entry, path))
    if entry.above.prompt not in PROMPT_SIZES:
        sizes = ", ".join(map(str, PROMPT_SIZES))
        raise BadConfig("prices", f"{path}: above.prompt of {entry.names[0]} must be one of {sizes}")
    return Price(since, _rates(entry, path), PROMPT_SIZES.index(entry.above.prompt) + 1, _rates(entry.above, path))


def _rates(entry: _PriceEntry | _LongPromptRates, path: Path) -> Rates:
    def exact(value: Any) -> Any:
        if value is None:
            return None
        number = Decimal(value) * _MICRODOLLARS
        if number < 0 or number != int(number):
            raise BadConfig("prices", f"{path}: {value} is no price with at most six decimals")
        return int(number)

    kinds = (entry.input, entry.output, entry.cache_read, entry.cache_write, entry.cache_write_1h)
    return Rates(*map(exact, kinds))


def _newest_first(price: Price) -> tuple[bool, int]:
    return price.since is None, -(price.since or 0)


_SLOTS_A_DAY = 86_400_000 // SLOT_MS
_K = TypeVar("_K", bound=Hashable)


class Cost(Struct, frozen=True):
    """The cost of some usage. `micro_dollars` is of the tokens that have a price; None when none of them has one."""

    micro_dollars: int | None
    priced_tokens: int = 0
    unknown_tokens: int = 0  # without a price
    unknown_models: tuple[str, ...] = ()  # theirs; "" where the transcript does not say


def token_cost(rows: Iterable[UsageRow], prices: Prices) -> Cost:
    """Return the cost of some rows without inherited ones. Rounded once, at the end, to the nearest micro-dollar."""
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
    total = None if unknown and not priced else (exact + _MICRODOLLARS // 2) // _MICRODOLLARS
    return Cost(total, priced, unknown, tuple(sorted(models)))


def cost_by(rows: Iterable[UsageRow], prices: Prices, key: Callable[[UsageRow], _K]) -> dict[_K, Cost]:
    """Return the cost of groups of rows, each rounded by itself."""
    groups: dict[_K, list[UsageRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return {name: token_cost(group, prices) for name, group in groups.items()}


def dollars(found: Cost) -> str:
    """Format a cost: `$12.34`, `$12.34+` if some tokens have no price, `?` if none has one; small sums with four decimals."""
    if found.micro_dollars is None:
        return "?"
    cents, more = found.micro_dollars / 1e6, "+" if found.unknown_tokens else ""
    return f"${cents:,.4f}{more}" if 0 < found.micro_dollars < 10_000 else f"${cents:,.2f}{more}"


def _row_cost(row: UsageRow, rates: Rates | None) -> tuple[int, int, int]:
    """Return the price in millionths of a micro-dollar, the tokens it covers, and the tokens without a price."""
    short = max(row.tokens_cache_write - row.tokens_cache_write_1h, 0)
    tokens = (row.tokens_in, row.tokens_out, row.tokens_cache_read, short, row.tokens_cache_write_1h)
    if rates is None:
        return 0, 0, sum(tokens)
    kinds = (rates.input, rates.output, rates.cache_read, rates.cache_write, rates.cache_write_1h)
    pairs = list(zip(tokens, kinds, strict=True))
    amount = sum(n * rate for n, rate in pairs if rate is not None)
    known = sum(n for n, rate in pairs if rate is not None)
    return amount, known, sum(tokens) - known
