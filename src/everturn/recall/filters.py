"""Filters that are typed into a search: `tool:Bash -role:tool since:7d`.

A value that means nothing is a mistake, told with what would mean something; so is the same filter given twice where it
can have one value only. `-name:` leaves out what the filter would keep, wherever that has a meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.query import Filter
from everturn.derive.times import parse_when
from everturn.errors import UsageError
from everturn.model.words import FIELDS, ORIGINS
from everturn.recall.scope import EVERYWHERE, SAID, Exclusions, SearchFilters
from everturn.recall.sessions import resolve_session
from everturn.store import Store

T = TypeVar("T")

#: Who speaks, by the words people use for it.
SPEAKERS = {"user": ("human", "agent"), "assistant": ("model",), **{name: (name,) for name in ORIGINS}}
_LAST_TURN = 1 << 30
_TURNS = re.compile(r"([1-9][0-9]{0,8})(?:(-)([1-9][0-9]{0,8})?)?", re.ASCII)
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}


def apply_typed_filters(store: Store, filters: SearchFilters, typed: tuple[Filter, ...], now: int) -> SearchFilters:
    """The filters with those that were typed. Raises Usage for a value that means nothing, and for a contradiction."""
    for one in typed:
        if not one.value:
            raise UsageError(f"{one.name}: has no value; write {one.name}:{_EXAMPLES[one.name]}, or leave it out")
        changes = _NARROWING[one.name](_TypedFilter(store, filters, one, now))
        for name, value in changes.items():
            before = getattr(filters, name)
            if before != getattr(EVERYWHERE, name) and not isinstance(value, tuple | Exclusions) and before != value:
                raise UsageError(f"{one.name} is given twice; keep one of them")
        filters = replace(filters, **changes)
    return filters


_EXAMPLES = {
    "agent": "NAME", "session": "@last", "workspace": "PART", "branch": "main", "role": "user", "tool": "Bash",
    "path": "src/", "field": "answer", "since": "7d", "until": "2026-01-31", "turn": "3-7", "error": "yes",
}  # fmt: skip


class _TypedFilter(Struct, frozen=True):
    """One filter and what is needed to understand it."""

    store: Store
    filters: SearchFilters
    filter: Filter
    now: int

    def values(self) -> tuple[str, ...]:
        return tuple(part for part in self.filter.value.split(",") if part)

    def must_not(self, name: str, *values: object) -> dict[str, object]:
        unwanted = self.filters.unwanted
        return {"unwanted": replace(unwanted, **{name: (*getattr(unwanted, name), *values)})}


def _narrow_part_of(name: str, unwanted: str) -> Callable[[_TypedFilter], dict[str, object]]:
    """A part of a name, or parts that must not be in it."""

    def narrow(typed: _TypedFilter) -> dict[str, object]:
        if typed.filter.negated:
            return typed.must_not(unwanted, typed.filter.value.lower())
        return {name: typed.filter.value}

    return narrow


def _narrow_session(typed: _TypedFilter) -> dict[str, object]:
    session = resolve_session(typed.store, typed.filter.value)
    return typed.must_not("sessions", session.id) if typed.filter.negated else {"session": session}


def _narrow_role(typed: _TypedFilter) -> dict[str, object]:
    named = [origin for name in typed.values() for origin in _one_of(typed, SPEAKERS, name)]
    if typed.filter.negated:
        left = typed.filters.origins or SAID
        return {"origins": _check_left(typed, tuple(origin for origin in left if origin not in named))}
    return {"origins": (*typed.filters.origins, *named)}


def _narrow_field(typed: _TypedFilter) -> dict[str, object]:
    named = [_one_of(typed, {name: name for name in FIELDS}, name) for name in typed.values()]
    if typed.filter.negated:
        left = typed.filters.fields or tuple(name for name in FIELDS if name != "meta")
        return {"fields": _check_left(typed, tuple(field for field in left if field not in named))}
    return {"fields": (*typed.filters.fields, *named)}


def _check_left(typed: _TypedFilter, some: tuple[str, ...]) -> tuple[str, ...]:
    if not some:
        raise UsageError(
            f"-{typed.filter.name}:{typed.filter.value} leaves nothing to look at; leave out one of the filters"
        )
    return some


def _narrow_tool(typed: _TypedFilter) -> dict[str, object]:
    if typed.filter.negated:
        return typed.must_not("tools", *(name.lower() for name in typed.values()))
    return {"tools": (*typed.filters.tools, *typed.values())}


def _narrow_time(typed: _TypedFilter) -> dict[str, object]:
    name = typed.filter.name
    if typed.filter.negated:
        raise UsageError(
            f"-{name}: is not a thing; write {'until' if name == 'since' else 'since'}:{typed.filter.value}"
        )
    return {name: parse_when(typed.filter.value, typed.now)}


def _narrow_turn(typed: _TypedFilter) -> dict[str, object]:
    found = _TURNS.fullmatch(typed.filter.value)
    if not found or (found[3] and int(found[3]) < int(found[1])):
        raise _filter_mistake(typed, "a number like 12 or a range like 3-7")
    first = int(found[1]) - 1
    last = first if not found[2] else int(found[3]) - 1 if found[3] else _LAST_TURN
    return typed.must_not("turns", (first, last)) if typed.filter.negated else {"turns": (first, last)}


def _narrow_error(typed: _TypedFilter) -> dict[str, object]:
    wanted = _one_of(typed, _YES_NO, typed.filter.value.lower())
    return {"errors": wanted is not typed.filter.negated}


def _one_of(typed: _TypedFilter, known: dict[str, T], name: str) -> T:
    if name not in known:
        raise _filter_mistake(typed, f"one of {', '.join(known)}")
    return known[name]


def _filter_mistake(typed: _TypedFilter, wanted: str) -> UsageError:
    one = typed.filter
    return UsageError(
        f'{one.name}:{one.value} means nothing; give {wanted}, or look for the words as "{one.name} {one.value}"'
    )


_NARROWING: dict[str, Callable[[_TypedFilter], dict[str, object]]] = {
    "agent": _narrow_part_of("agent", "agents"),
    "workspace": _narrow_part_of("workspace", "workspaces"),
    "branch": _narrow_part_of("branch", "branches"),
    "path": _narrow_part_of("path", "paths"),
    "session": _narrow_session,
    "role": _narrow_role,
    "field": _narrow_field,
    "tool": _narrow_tool,
    "since": _narrow_time,
    "until": _narrow_time,
    "turn": _narrow_turn,
    "error": _narrow_error,
}
