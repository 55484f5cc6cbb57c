"""One rule for how words combine: help, documentation, tool description and behaviour."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.cli.commands.search import command
from everturn.model.vocabulary import QUERY_RULE
from everturn.recall.schema import DESCRIPTION
from everturn.retrieval.search import search
from everturn.sources.contract import all_sources
from everturn.web.api.sessions import READ_OPERATIONS
from tests.recall.archives import Archive

DOCS = Path(__file__).parents[2] / "docs"


def test_every_surface_states_the_rule() -> None:
    asked = next(one for one in READ_OPERATIONS if one.path == "/api/search").parameters[0].about
    texts = (
        command.help or "",
        DESCRIPTION,
        asked,
        (DOCS / "search.md").read_text(),
        (DOCS / "commands.md").read_text(),
    )
    assert [QUERY_RULE in " ".join(text.split()) for text in texts] == [True] * len(texts)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("red apple", ["red apple", "red pear", "green apple"]),  # optional: both words first
        ('"red" apple', ["red apple", "red pear"]),
        ('"red apple"', ["red apple"]),
        ("app* red", ["red apple", "green apple"]),
        ("pear OR plum red", ["red pear", "blue plum"]),
        ("red apple -green", ["red apple", "red pear"]),
    ],
)
def test_words_combine_by_the_rule(archive: Archive, words: str, found: list[str]) -> None:
    archive.take_in(
        *(archive.history.turn(text, "ok") for text in ("red apple", "red pear", "green apple", "blue plum"))
    )
    shown = [one.snippet for one in search(archive.store, all_sources(), words).items]
    assert sorted(shown) == sorted(found) and shown[0] == found[0]
