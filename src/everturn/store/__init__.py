"""Model to database: one contract, two engines. `contract` says what a store can do; the tests of the contract run on every engine."""

from everturn.store.contract import SessionFilter, Store, open_store

__all__ = ["SessionFilter", "Store", "open_store"]
