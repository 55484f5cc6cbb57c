"""Both databases give the same answers."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from everturn.analytics.cost import load_prices
from everturn.analytics.inspect import inspect_tools
from everturn.analytics.paths import find_paths, list_positions
from everturn.analytics.plots import activity_calendar, transitions, turn_lengths
from everturn.analytics.stats import count_stats
from everturn.analytics.struggles import find_struggles, group_kinds
from everturn.analytics.suggest import find_suggestions
from everturn.analytics.turns import TurnFilter, list_shape_rows, list_turn_rows
from everturn.store.contract import AnalyticsScope, SessionFilter, Store, open_store
from tests.analytics.histories import chain, fill, history, session

SCOPES = (AnalyticsScope(), AnalyticsScope(subagents=False), AnalyticsScope(SessionFilter(agent="maker")))


def answers(store: Store) -> list[Any]:
    fill(store, history(5, 25))
    fill(store, [session("x/agent-1", chain(*["Bash!timeout"] * 3, "Reed!unknown_tool", "Bash"), kind="subagent")])
    given: list[Any] = []
    for scope in SCOPES:
        given += [
            find_paths(store, scope, 30, True),
            list_positions(store, scope),
            inspect_tools(store, scope, "Read"),
            find_suggestions(store, scope),
        ]
        given += [
            group_kinds(store, find_struggles(store, scope)),
            count_stats(store, scope, load_prices(), "day", "model"),
        ]
        given += [list_turn_rows(store, scope, TurnFilter(), 500), list_shape_rows(store, scope, TurnFilter())]
        given += [transitions(store, scope), turn_lengths(store, scope), activity_calendar(store, scope)]
    return given


@pytest.mark.slow
def test_both_databases_give_the_same_answers(postgres_url: str) -> None:
    with closing(open_store("memory:")) as one, closing(open_store(postgres_url)) as other:
        for first, second in zip(answers(one), answers(other), strict=True):
            assert first == second
