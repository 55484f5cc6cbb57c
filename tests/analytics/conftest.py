"""An archive of its own for each test of the questions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from everturn.store.contract import Store, open_store


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(open_store("memory:")) as made:
        yield made
