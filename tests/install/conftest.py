"""The fixtures of `tests/capture`, for these tests too."""

from tests.capture.conftest import any_store, history, store

__all__ = ["any_store", "history", "store"]
