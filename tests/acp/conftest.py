"""One archive and the person in front of it."""

from tests.cli.conftest import desk

__all__ = ["desk"]
