"""A session as typed slices: one list of frozen dataclasses per type, changed by events through reducers.

    session = EvaluationSession()
    session.mutate(Plan).register(Plan, replace_latest)
    session.dispatch(Plan(…))
    session.query(Plan).latest()
    before = session.snapshot()
    session.mutate().rollback(before)

A reducer changes the list of its slice for an event. Items are never changed in place, so a snapshot shares them. A session
may be used from several threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar, overload
from uuid import UUID

from everturn.errors import UsageError
from everturn.evaluation.snapshot import Policy, SliceData, Snapshot, build_shape, type_name
from everturn.loop.conversation import ConversationState, new_uuid

T = TypeVar("T")

#: Changes the list of a slice for an event.
Reducer = Callable[[list[Any], Any], None]


def append(items: list[Any], event: Any) -> None:
    """Keep every event."""
    items.append(event)


def replace_latest(items: list[Any], event: Any) -> None:
    """Keep only the last event."""
    items[:] = [event]


def upsert(key: Callable[[Any], Any]) -> Reducer:
    """Keep one event per key, in the order in which the keys first appeared."""

    def reduce(items: list[Any], event: Any) -> None:
        event_key = key(event)
        for number, item in enumerate(items):
            if key(item) == event_key:
                items[number] = event
                return
        items.append(event)

    return reduce


class Slice(Generic[T]):
    """The items of one type."""

    def __init__(self, kind: type[T], policy: Policy = "state") -> None:
        self.kind, self.policy = kind, policy
        self.shape = build_shape(kind)
        self._items: list[T] = []
        self._reducers: dict[type, Reducer] = {}

    def items(self) -> tuple[T, ...]:
        """Return the items."""
        return tuple(self._items)

    def seed(self, items: Iterable[T]) -> None:
        """Replace the items."""
        self._items = list(items)

    def register(self, event: type, reducer: Reducer) -> None:
        """Apply `reducer` to events of that type."""
        self._reducers[event] = reducer

    def takes(self, event: Any) -> bool:
        """Whether the event is for this slice."""
        return type(event) in self._reducers

    def take(self, event: Any) -> None:
        """Apply an event."""
        self._reducers.get(type(event), append)(self._items, event)


class SliceQuery(Generic[T]):
    """A view of the items of a slice."""

    def __init__(self, items: tuple[T, ...]) -> None:
        self._items = items

    def latest(self) -> T | None:
        """Return the last item, or None."""
        return self._items[-1] if self._items else None

    def all(self) -> tuple[T, ...]:
        """Return every item, oldest first."""
        return self._items

    def where(self, matches: Callable[[T], bool]) -> tuple[T, ...]:
        """Return the items that match."""
        return tuple(filter(matches, self._items))


class EvaluationSession:
    """Typed slices that can be saved as JSON and restored."""

    def __init__(
        self,
        *,
        session_id: UUID | None = None,
        parent: EvaluationSession | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        self.session_id, self.parent, self.tags = session_id or new_uuid(), parent, dict(tags or {})
        self.children: list[EvaluationSession] = []
        self.lock = threading.RLock()
        self._slices: dict[type, Slice[Any]] = {}
        if parent is not None:
            parent.children.append(self)

    def query(self, kind: type[T]) -> SliceQuery[T]:
        """Return the items of a type; none if there is no slice."""
        with self.lock:
            current = self._slices.get(kind)
            return SliceQuery(current.items() if current is not None else ())

    @overload
    def mutate(self, kind: type[T]) -> Mutation[T]: ...
    @overload
    def mutate(self, kind: None = None) -> WholeMutation: ...
    def mutate(self, kind: type[T] | None = None) -> Mutation[T] | WholeMutation:
        """Return the changes of one slice, or of the whole session."""
        return WholeMutation(self) if kind is None else Mutation(self, kind)

    def dispatch(self, event: Any) -> None:
        """Give an event to every slice that registered its type. Raise UsageError if there is none."""
        with self.lock:
            takers = [one for one in self._slices.values() if one.takes(event)]
            if not takers:
                raise UsageError(f"nothing takes {type(event).__qualname__}; register a reducer for it first")
            for one in takers:
                one.take(event)

    def snapshot(self, include_all: bool = False) -> Snapshot:
        """Return the items of all slices, without empty ones; with `include_all` the logs too."""
        with self.lock:
            kept = [one for one in self._slices.values() if include_all or one.policy == "state"]
            current = [(type_name(one.kind), one.items()) for one in kept]
            return Snapshot(
                slices=tuple(SliceData(name, name, items) for name, items in current if items),
                parent_id=self.parent.session_id if self.parent is not None else None,
                children_ids=tuple(child.session_id for child in self.children),
                tags=dict(self.tags),
                policies={type_name(kind): one.policy for kind, one in self._slices.items()},
            )

    def slice(self, kind: type[T]) -> Slice[T] | None:
        """Return the slice of a type, or None."""
        return self._slices.get(kind)

    def install(self, new: Slice[T]) -> None:
        """Use the program's own slice for a type; it takes over the current items."""
        with self.lock:
            old = self._slices.get(new.kind)
            if old is not None and old.items():
                new.seed(old.items())
            self._slices[new.kind] = new


class Mutation(Generic[T]):
    """Changes of the slice of one type, which is created on first use."""

    def __init__(self, session: EvaluationSession, kind: type[T]) -> None:
        self._session, self._kind = session, kind

    def register(self, event: type, reducer: Reducer, policy: Policy = "state") -> None:
        """Apply `reducer` to events of a type in this slice. Raise UsageError for items that JSON cannot hold."""
        with self._session.lock:
            current = self._slice()
            current.policy = policy
            current.register(event, reducer)

    def seed(self, items: T | Iterable[T]) -> None:
        """Replace the items by these, or by this one."""
        given = (items,) if isinstance(items, self._kind) else tuple(items)  # type: ignore[arg-type]
        for item in given:
            if not isinstance(item, self._kind):
                raise UsageError(f"a slice of {self._kind.__qualname__} cannot hold {type(item).__qualname__}")
        with self._session.lock:
            self._slice().seed(given)

    def clear(self) -> None:
        """Remove all items."""
        self.seed(())

    def _slice(self) -> Slice[T]:
        current = self._session.slice(self._kind)
        if current is None:
            current = Slice(self._kind)
            self._session.install(current)
        return current


class WholeMutation:
    """Changes of the whole session."""

    def __init__(self, session: EvaluationSession) -> None:
        self._session = session

    def rollback(self, snapshot: Snapshot) -> None:
        """Restore every slice from the snapshot; slices it lacks become empty, logs stay.

        Raise SnapshotRestoreError without any change. Conversations are always known, other types must be registered.
        """
        session = self._session
        with session.lock:
            slices = {type_name(kind): one for kind, one in session._slices.items()}
            slices.setdefault(type_name(ConversationState), Slice(ConversationState))
            items = snapshot.restore_slices({name: one.shape for name, one in slices.items()})
            for name, one in slices.items():
                if one.policy == "state" and (name in items or one.items()):
                    one.seed(items.get(name, ()))
                    session._slices[one.kind] = one

    def reset(self) -> None:
        """Empty every slice; registrations stay."""
        with self._session.lock:
            for one in self._session._slices.values():
                one.seed(())
