"""Both databases give the same answers."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from everturn.analyse.inspect import inspect
from everturn.analyse.money import load
from everturn.analyse.paths import paths, places
from everturn.analyse.plane import Scope
from everturn.analyse.plots import activity_calendar, transitions, turn_lengths
from everturn.analyse.stats import stats
from everturn.analyse.struggles import kinds, struggles
from everturn.analyse.suggest import suggest
from everturn.analyse.turns import Wanted, shapes, turns
from everturn.store import SessionFilter, Store, open_store
from tests.analyse.histories import chain, fill, history, session

SCOPES = (Scope(), Scope(subagents=False), Scope(SessionFilter(agent="maker")))


def answers(store: Store) -> list[Any]:
    fill(store, history(5, 25))
    fill(store, [session("x/agent-1", chain(*["Bash!timeout"] * 3, "Reed!unknown_tool", "Bash"), kind="subagent")])
    given: list[Any] = []
    for scope in SCOPES:
        given += [
            paths(store, scope, 30, True),
            places(store, scope),
            inspect(store, scope, "Read"),
            suggest(store, scope),
        ]
        given += [kinds(store, struggles(store, scope)), stats(store, scope, load(), "day", "model")]
        given += [turns(store, scope, Wanted(), 500), shapes(store, scope, Wanted())]
        given += [transitions(store, scope), turn_lengths(store, scope), activity_calendar(store, scope)]
    return given


@pytest.mark.slow
def test_both_databases_give_the_same_answers(postgres_url: str) -> None:
    with closing(open_store("memory:")) as one, closing(open_store(postgres_url)) as other:
        for first, second in zip(answers(one), answers(other), strict=True):
            assert first == second
