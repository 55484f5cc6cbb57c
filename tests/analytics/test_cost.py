"""Money is exact, dated, and silent about nothing: what has no price is told. Tokens are what the files say, once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from everturn.analytics import counts
from everturn.analytics.cost import Cost, Prices, cost_by, dollars, load_prices, token_cost
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.errors import BadConfig
from everturn.model.analytics import SLOT_MS, UsageRow
from everturn.sources.contract import SearchPlaces
from everturn.store.contract import open_store
from tests.capture.history import SOURCES, ticking
from tests.quick import some
from tests.transcripts import write_history

REAL = Path(__file__).parents[3] / "shared" / "corpus" / "claude-code"

LIST = """
as_of = "2026-01-01"
[[price]]
names = ["m1"]
input = 3
output = 15.0
cache_read = 0.3
cache_write = 3.75
cache_write_1h = 6.0
[price.above]
prompt = 200000
input = 6.0
output = 22.5
[[price]]
names = ["m2"]
from = "2026-02-01"
input = 2.0
output = 8.0
[[price]]
names = ["m2"]
from = "2026-01-01"
input = 10.0
output = 40.0
"""


@pytest.fixture
def prices(tmp_path: Path) -> Prices:
    file = tmp_path / "prices.toml"
    file.write_text(LIST, "utf-8")
    return load_prices(file)


def used(model: str, day: str = "2026-03-01", **columns: int) -> UsageRow:
    at = int(datetime.fromisoformat(f"{day}T12:00+00:00").timestamp() * 1000)
    return UsageRow(1, at // SLOT_MS, model, **columns)


def test_every_kind_of_token_has_its_own_price(prices: Prices) -> None:
    row = used("m1", tokens_in=1, tokens_out=10, tokens_cache_read=100, tokens_cache_write=50, tokens_cache_write_1h=20)
    assert token_cost([row], prices) == Cost(3 + 150 + 30 + 30 * 3_750_000 // 1_000_000 + 1 + 120, 161)


def test_a_sum_is_rounded_once(prices: Prices) -> None:
    rows = [used("m1", tokens_cache_read=1) for _ in range(10)]
    assert token_cost(rows, prices).micro_dollars == 3
    assert token_cost(rows[:1], prices).micro_dollars == 0


def test_a_long_prompt_has_its_own_price(prices: Prices) -> None:
    assert token_cost([used("m1", tokens_in=10, prompt_size=2)], prices).micro_dollars == 60
    assert token_cost([used("m1", tokens_in=10, prompt_size=1)], prices).micro_dollars == 30
    assert token_cost([used("m1", tokens_cache_read=10, prompt_size=3)], prices) == Cost(None, 0, 10, ("m1",))


def test_the_price_of_the_day_counts(prices: Prices) -> None:
    days = {"2025-12-31": None, "2026-01-01": 10, "2026-01-31": 10, "2026-02-01": 2, "2027-01-01": 2}
    assert {day: token_cost([used("m2", day, tokens_in=1)], prices).micro_dollars for day in days} == days


def test_usage_without_a_time_has_a_price_only_where_it_never_changed(prices: Prices) -> None:
    assert token_cost([UsageRow(1, -1, "m1", tokens_in=2)], prices).micro_dollars == 6
    assert token_cost([UsageRow(1, -1, "m2", tokens_in=2)], prices) == Cost(None, 0, 2, ("m2",))


def test_a_model_nobody_knows_has_no_price(prices: Prices) -> None:
    rows = [used("m1", tokens_in=1), used("m9", tokens_in=5), used("", tokens_out=4)]
    assert token_cost(rows, prices) == Cost(3, 1, 9, ("", "m9"))
    assert token_cost(rows[1:], prices).micro_dollars is None
    assert token_cost([], prices) == Cost(0)
    assert [dollars(token_cost(part, prices)) for part in (rows, rows[1:], [])] == ["$0.0000+", "?", "$0.00"]
    assert token_cost([used("m1-fast", tokens_in=1)], prices).micro_dollars is None


def test_a_name_with_a_date_is_the_same_model(prices: Prices) -> None:
    for name in ("m1-20250929", "m1-2025-09-29"):
        assert token_cost([used(name, tokens_in=1)], prices).micro_dollars == 3


def test_what_a_fork_inherits_costs_nothing_again(prices: Prices) -> None:
    assert token_cost([used("m1", tokens_in=1), used("m1", tokens_in=1, inherited=1)], prices).micro_dollars == 3


def test_groups_are_priced_each_for_itself(prices: Prices) -> None:
    rows = [used("m1", tokens_in=1), used("m2", tokens_in=1), used("m1", tokens_in=2)]
    assert {name: one.micro_dollars for name, one in cost_by(rows, prices, lambda row: row.model).items()} == {
        "m1": 9,
        "m2": 2,
    }


# the lists --------------------------------------------------------------------------------------------------------


def test_the_list_that_comes_along_can_be_read_and_has_a_date() -> None:
    ours = load_prices()
    assert datetime.fromisoformat(ours.as_of).year >= 2026
    assert len(ours.models) > 40
    for name, entries in ours.models.items():
        assert all(price.rates.output >= price.rates.input > 0 for price in entries), name
        assert all(price.long is None or price.long.input > price.rates.input for price in entries), name


def test_a_list_of_ones_own_replaces_a_model_and_leaves_the_others(tmp_path: Path) -> None:
    name = next(iter(load_prices().models))
    own = tmp_path / "prices.toml"
    own.write_text(f'[[price]]\nnames = ["{name}", "mine"]\ninput = 0\noutput = 0.000001\n', "utf-8")
    prices = load_prices(own)
    assert token_cost([used(name, tokens_out=1_000_000)], prices) == Cost(1, 1_000_000)
    assert prices.as_of == load_prices().as_of and set(prices.models) == set(load_prices().models) | {"mine"}
    assert load_prices(tmp_path / "none.toml") == load_prices()


@pytest.mark.parametrize(
    "text",
    [
        "[[price]]\nnames = ['a']\ninput = 1.0\n",
        "[[price]]\nnames = ['a']\ninput = 1.0\noutput = 0.0000001\n",
        "[[price]]\nnames = ['a']\ninput = -1.0\noutput = 1.0\n",
        "[[price]]\nnames = ['a']\ninput = 1.0\noutput = 1.0\nprize = 3\n",
        "[[price]]\nnames = ['a']\ninput = 1.0\noutput = 1.0\n[price.above]\nprompt = 5\ninput = 1.0\noutput = 1.0\n",
        "[[price]\n",
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(tmp_path: Path, text: str) -> None:
    own = tmp_path / "prices.toml"
    own.write_text(text, "utf-8")
    with pytest.raises(BadConfig, match="prices"):
        load_prices(own)


# tokens -----------------------------------------------------------------------------------------------------------

Used = Counter[tuple[str, str, str]]  # (model, day, kind of token) → n


def recount(files: Iterator[Path]) -> Used:
    """The tokens of transcripts, from their bytes and nothing else: each response once, wherever it was copied to."""
    responses: dict[tuple[str, str], dict[str, Any]] = {}
    for file in sorted(files):
        for line in file.read_bytes().splitlines():
            for event in _events(line):
                event = _reported(event)
                message = event.get("message") if event.get("type") == "assistant" else None
                if isinstance(message, dict) and message.get("model") != "<synthetic>":
                    _take(responses, event, message)
    found: Used = Counter()
    for (_, model), one in responses.items():
        for kind, n in one["tokens"].items():
            found[model, one["day"], kind] += n
    return +found


def _events(line: bytes) -> Iterator[dict[str, Any]]:
    """Most lines are one record; a few are several without a break."""
    text, at, decoder = line.decode("utf-8", "replace").strip(), 0, json.JSONDecoder()
    while at < len(text):
        try:
            event, at = decoder.raw_decode(text, at)
        except ValueError:
            return
        if isinstance(event, dict):
            yield event


def _reported(event: dict[str, Any]) -> dict[str, Any]:
    """The work of a subagent is in the file of its parent too: all that is left if its own file is gone."""
    data = event.get("data") if event.get("type") == "progress" else None
    inner = data.get("message") if isinstance(data, dict) else None
    return inner if isinstance(inner, dict) else event


def _take(responses: dict[tuple[str, str], dict[str, Any]], event: dict[str, Any], message: dict[str, Any]) -> None:
    usage = message.get("usage") or {}
    tokens = {
        "in": usage.get("input_tokens") or 0,
        "out": usage.get("output_tokens") or 0,
        "read": usage.get("cache_read_input_tokens") or 0,
        "write": usage.get("cache_creation_input_tokens") or 0,
        "hour": (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens") or 0,
    }
    at = datetime.fromisoformat(event["timestamp"]).astimezone(UTC)
    one = responses.setdefault((message["id"], message["model"]), {"day": f"{at:%Y-%m-%d}", "tokens": tokens})
    one["day"] = min(one["day"], f"{at:%Y-%m-%d}")
    one["tokens"] = {kind: max(n, one["tokens"][kind]) for kind, n in tokens.items()}


def archived(root: Path) -> Used:
    store = open_store("memory:")
    add_paths(
        SyncJob(store, SOURCES, SearchPlaces(root / "no-home", {}, "linux", {}), Policy(), "box", "ann", ticking()),
        [root],
    )
    counts.catch_up(store)
    found: Used = Counter()
    for row in store.usage():
        if not row.inherited:
            day = f"{datetime.fromtimestamp(row.slot * SLOT_MS / 1000, UTC):%Y-%m-%d}"
            for kind, n in zip(("in", "out", "read", "write", "hour"), _tokens(row), strict=True):
                found[row.model, day, kind] += n
    store.close()
    return +found


def _tokens(row: UsageRow) -> tuple[int, ...]:
    return row.tokens_in, row.tokens_out, row.tokens_cache_read, row.tokens_cache_write, row.tokens_cache_write_1h


def test_tokens_of_a_generated_history_are_those_of_an_independent_count(tmp_path: Path) -> None:
    history = write_history(tmp_path, seed=3, sessions=9)
    expected = recount(iter(history.files))
    assert sum(expected.values()) > 1000
    assert archived(tmp_path) == expected


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason="the real transcripts are not here")
def test_tokens_of_real_transcripts_are_those_of_an_independent_count() -> None:
    for folder in some(sorted(filter(Path.is_dir, REAL.iterdir())), 3):
        expected = recount(folder.rglob("*.jsonl"))
        assert sum(expected.values()) > 1000
        assert archived(folder) == expected
