"""Bytes to model and back, one package per format. `contract` is the interface; `toolkit` holds what readers share."""

from everturn.sources.contract import Source, all_sources

__all__ = ["Source", "all_sources"]
