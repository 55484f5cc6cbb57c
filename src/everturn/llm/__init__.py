"""Models that the user configured: a neutral protocol, one module per wire format, one HTTP backend."""

from everturn.llm.protocol import Backend

__all__ = ["Backend"]
