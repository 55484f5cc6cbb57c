"""A session at one moment, as JSON.

    {"version": "1", "created_at": …, "parent_id": …, "children_ids": […], "tags": {…}, "policies": {…},
     "slices": [{"slice_type": "module:Class", "item_type": "module:Class", "items": […]}]}

Restoring is strict: an unknown version, a missing field, one too many, one of the wrong type, a time without a zone are
each told by name in one `SnapshotRestoreError`. Nothing is unpickled and nothing is imported because a snapshot says so:
only types that the program itself has registered are ever made.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from everturn.errors import SnapshotRestoreError
from everturn.resume.conversation import ConversationState, aware_now
from everturn.resume.typedjson import Shape, name_json_type, name_of, shape_of, to_json

VERSION: Literal["1"] = "1"

#: What becomes of a slice when its session is rolled back: `state` is set back, a `log` goes on.
Policy = Literal["state", "log"]


@dataclass(frozen=True)
class SliceData:
    """The items of one type: objects when taken from a session, JSON objects when read and not yet restored."""

    slice_type: str
    item_type: str
    items: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """Everything a session held. Made by `Session.snapshot`, given back to one by `rollback`."""

    slices: tuple[SliceData, ...] = ()
    created_at: datetime = field(default_factory=aware_now)
    parent_id: UUID | None = None
    children_ids: tuple[UUID, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, Policy] = field(default_factory=dict)
    version: Literal["1"] = VERSION

    def to_json(self) -> str:
        """As text. Raises Usage for what JSON cannot say."""
        return to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes, types: Iterable[type] = (ConversationState,)) -> Snapshot:
        """Read a snapshot. Items of `types` are checked and made at once, others when a session that knows them takes them.

        Raises SnapshotRestoreError.
        """
        snapshot: Snapshot = _read_snapshot(_parse_snapshot(text))
        shapes = {name_of(kind): shape_of(kind) for kind in types}
        wrong: list[str] = []
        slices = tuple(
            _restore_slice(one, f"slices[{number}]", shapes, wrong) for number, one in enumerate(snapshot.slices)
        )
        if wrong:
            raise SnapshotRestoreError(wrong)
        return replace(snapshot, slices=slices)

    def restored(self, shapes: Mapping[str, Shape]) -> dict[str, tuple[Any, ...]]:
        """The objects of each slice. Raises SnapshotRestoreError with everything that is wrong, also for unknown types."""
        wrong: list[str] = []
        items: dict[str, tuple[Any, ...]] = {}
        for number, one in enumerate(self.slices):
            path = f"slices[{number}]"
            if one.slice_type not in shapes:
                wrong.append(f"{path}.slice_type: this session has registered no such type")
            items[one.slice_type] = _restore_slice(one, path, shapes, wrong).items
        if wrong:
            raise SnapshotRestoreError(wrong)
        return items


def _parse_snapshot(text: str | bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as failure:
        raise SnapshotRestoreError([f"it is no JSON ({type(failure).__name__})"]) from failure
    if not isinstance(value, dict):
        raise SnapshotRestoreError([f"expected an object, found {name_json_type(value)}"])
    if "version" in value and value["version"] != VERSION:  # what else differs then is no mistake
        raise SnapshotRestoreError([f"version: this everturn knows {VERSION!r} only"])
    return value


def _read_snapshot(value: dict[str, Any]) -> Any:
    wrong: list[str] = []
    snapshot = shape_of(Snapshot)(value, "", wrong)
    wrong = [one.removeprefix(".") for one in wrong]
    if not wrong:
        names = [one.slice_type for one in snapshot.slices]
        wrong += [f"slices[{n}].slice_type: there twice" for n, name in enumerate(names) if name in names[:n]]
        wrong += [
            f"slices[{n}].item_type: not the type of its slice"
            for n, one in enumerate(snapshot.slices)
            if one.item_type != one.slice_type
        ]
    if wrong:
        raise SnapshotRestoreError(wrong)
    return snapshot


def _restore_slice(one: SliceData, path: str, shapes: Mapping[str, Shape], wrong: list[str]) -> SliceData:
    shape = shapes.get(one.slice_type)
    if shape is None:
        return one
    items = tuple(
        shape(item, f"{path}.items[{number}]", wrong) if isinstance(item, dict | list | str | int | None) else item
        for number, item in enumerate(one.items)
    )
    return replace(one, items=items)
