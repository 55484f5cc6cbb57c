"""Models, where the user configured one: a neutral protocol, one module per wire format, one HTTP backend."""

from everturn.llm.protocol import Backend

__all__ = ["Backend"]
