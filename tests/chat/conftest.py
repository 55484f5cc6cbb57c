"""A desk with a model behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chat.program import Desk, Model
from tests.model_server import ModelServer


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture(params=["model", pytest.param("agent", marks=pytest.mark.slow)])
def held_by(request: pytest.FixtureRequest) -> str:
    """The two kinds of agents that a chat is held with. Quick runs have the model; `test_lineage.py` has both in any case."""
    return str(request.param)


@pytest.fixture
def desk(tmp_path: Path, model: Model) -> Iterator[Desk]:
    with ModelServer(model) as server:
        yield Desk(tmp_path, server)
