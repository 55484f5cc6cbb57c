"""Bytes to model and back, one package per format. `contract` is the whole interface; `toolkit` is what readers share."""

from everturn.sources.contract import Source, all_sources

__all__ = ["Source", "all_sources"]
