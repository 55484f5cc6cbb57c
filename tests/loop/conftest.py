"""The fixtures of `tests/resume`, for these tests too."""

from tests.resume.conftest import archive, store, url

__all__ = ["archive", "store", "url"]
