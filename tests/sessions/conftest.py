"""The fixtures of `tests/recall`, for these tests too."""

from tests.recall.conftest import archive, store

__all__ = ["archive", "store"]
