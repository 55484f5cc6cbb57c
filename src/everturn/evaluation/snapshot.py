"""A session at one moment, as JSON.

    {"version": "1", "created_at": …, "parent_id": …, "children_ids": […], "tags": {…}, "policies": {…},
     "slices": [{"slice_type": "module:Class", "item_type": "module:Class", "items": […]}]}

Restoring is strict: every mistake is reported by path, without quoting content, in one `SnapshotRestoreError`. Nothing is
unpickled or imported because of a snapshot: only types that the program registered are ever created. `build_shape`
refuses types that could not be restored equal. msgspec reads what it accepts as strictly as we do; the walk over shapes
reads the rest (floats, enums, unions, classes that hold themselves) and names every mistake.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec

from everturn.deprecations import warn_renamed
from everturn.errors import EverturnError, SnapshotRestoreError, UsageError
from everturn.loop.conversation import ConversationState, aware_now
from everturn.model.conversation import prepared

#: Reads a JSON value at a path and adds mistakes to a list.
Shape = Callable[[Any, str, list[str]], Any]

_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}
#: As `datetime.isoformat` writes aware times; others are left to the walk.
_AWARE_TIME = r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?[+-]\d\d:\d\d\Z"
_JSON_NAMES = {**_NAMES, list: "a list", dict: "an object"}


def build_shape(cls: type) -> Shape:
    """Return the reader of a frozen dataclass. Raise UsageError for types that cannot be written and read back."""
    walk = _dataclass_shape(cls, {})
    try:
        strict = _strict_type(cls, {})
    except TypeError:
        return walk

    def read(value: Any, path: str, wrong: list[str]) -> Any:
        try:
            msgspec.convert(value, prepared(strict))
            return msgspec.convert(value, prepared(cls))
        except Exception:  # of msgspec, or of the class itself: the walk names every mistake
            return walk(value, path, wrong)

    return read


def to_json(value: Any) -> str:
    """Encode dataclasses and JSON values. Raise UsageError for naive times, nan, infinity and bytes."""
    try:
        plain = msgspec.to_builtins(
            value, builtin_types=(datetime, bytes, bytearray, memoryview), enc_hook=_mapping_json
        )
        return json.dumps(plain, default=_time_text, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as failure:
        raise UsageError(f"this cannot be put into a snapshot: {failure}") from failure


def type_name(cls: type) -> str:
    """Return `module:Class`."""
    return f"{cls.__module__}:{cls.__qualname__}"


def name_json_type(value: Any) -> str:
    """Name the type of a JSON value."""
    return _JSON_NAMES.get(type(value), type(value).__name__)


# --- writing ---
def _mapping_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def _time_text(value: Any) -> str:
    if not isinstance(value, datetime):
        raise TypeError(f"{type(value).__name__} is no JSON")
    if value.tzinfo is None:
        raise ValueError("a time without a time zone")
    return value.isoformat()


# --- reading ---
def _shape(hint: Any, known: dict[type, list[Shape]]) -> Shape:
    """Return the shape of an annotation."""
    if hint is Any or hint is object:
        return _read_any
    if hint in _NAMES or hint is None:
        return _plain_shape(type(None) if hint is None else hint)
    origin, given = get_origin(hint), get_args(hint)
    if origin in _GENERIC:
        return _GENERIC[origin](given, known)
    if isinstance(hint, type):
        return _class_shape(hint, known)
    raise UsageError(f"{hint} cannot be put into a snapshot")


def _class_shape(hint: type, known: dict[type, list[Shape]]) -> Shape:
    if hint is datetime:
        return _read_datetime
    if hint is UUID:
        return _read_uuid
    if issubclass(hint, Enum):
        return _enum_shape(hint)
    if is_dataclass(hint):
        return _dataclass_shape(hint, known)
    raise UsageError(f"{hint.__qualname__} cannot be put into a snapshot; only frozen dataclasses and JSON values can")


def _dataclass_shape(cls: type, known: dict[type, list[Shape]]) -> Shape:
    if not is_dataclass(cls) or not cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise UsageError(f"{cls.__qualname__} cannot be put into a snapshot; make it a frozen dataclass")
    if cls in known:  # it holds itself

        def later(value: Any, path: str, wrong: list[str]) -> Any:
            return known[cls][0](value, path, wrong)

        return later
    known[cls] = []
    try:
        hints = get_type_hints(cls)
    except NameError as failure:
        raise UsageError(f"the annotations of {cls.__qualname__} cannot be understood: {failure}") from failure
    known[cls].append(_RecordShape(cls, {one.name: _shape(hints[one.name], known) for one in fields(cls) if one.init}))
    return known[cls][0]


def _strict_type(hint: Any, known: dict[type, Any]) -> Any:
    """Return a type by which msgspec accepts only values that the walk reads the same. Raise TypeError if there is none."""
    origin, given = get_origin(hint), get_args(hint)
    if hint in (Any, str, int, bool, UUID, None, type(None)):
        return hint
    if hint is datetime:
        return Annotated[str, msgspec.Meta(pattern=_AWARE_TIME)]
    if origin in (tuple, list, dict, Sequence, Mapping):
        return origin[tuple(one if one is Ellipsis else _strict_type(one, known) for one in given)]
    if origin in (Union, types.UnionType) and len(given) == 2 and type(None) in given:
        return Union[tuple(_strict_type(one, known) for one in given)]  # noqa: UP007 -- made at run time
    if origin is Literal and all(type(one) is str for one in given):
        return hint
    if is_dataclass(hint) and isinstance(hint, type):
        return _strict_struct(hint, known)
    raise TypeError(hint)


def _strict_struct(cls: type, known: dict[type, Any]) -> Any:
    """Return a struct of a dataclass's fields; not for one that holds itself or has an `__init__` of its own."""
    if cls not in known:
        known[cls] = None
        names = {one.name for one in fields(cls) if one.init}
        if names != cls.__dataclass_fields__.keys() or cls.__init__.__code__.co_filename != "<string>":  # type: ignore[attr-defined,misc]
            raise TypeError(cls)
        hints = get_type_hints(cls)
        members = [(name, _strict_type(hints[name], known)) for name in names]
        known[cls] = msgspec.defstruct(cls.__name__, members, forbid_unknown_fields=True)
    if known[cls] is None:
        raise TypeError(cls)
    return known[cls]


class _RecordShape:
    """Reads one dataclass."""

    def __init__(self, cls: type, shapes: dict[str, Shape]) -> None:
        self._cls, self._shapes = cls, shapes

    def __call__(self, value: Any, path: str, wrong: list[str]) -> Any:
        if not isinstance(value, dict):
            return _report_mismatch(wrong, path, "an object", value)
        before = len(wrong)
        if value.keys() != self._shapes.keys():
            wrong += [f"{path}.{name}: missing" for name in self._shapes if name not in value]
            wrong += [f"{path}.{_safe_key(name)}: no such field" for name in value if name not in self._shapes]
        given = {
            name: shape(value[name], f"{path}.{name}", wrong) for name, shape in self._shapes.items() if name in value
        }
        if len(wrong) > before:
            return None
        try:
            return self._cls(**given)
        except (ValueError, TypeError, EverturnError) as failure:
            wrong.append(f"{path}: {type(failure).__name__}")
            return None


def _plain_shape(kind: type) -> Shape:
    taken = (float, int) if kind is float else (kind,)

    def read(value: Any, path: str, wrong: list[str]) -> Any:
        return value if type(value) in taken else _report_mismatch(wrong, path, _NAMES[kind], value)

    return read


def _read_any(value: Any, path: str, wrong: list[str]) -> Any:
    return value


def _read_datetime(value: Any, path: str, wrong: list[str]) -> Any:
    try:
        when = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        when = None
    if when is None:
        return _report_mismatch(wrong, path, "a time in ISO 8601", value)
    if when.tzinfo is None:
        wrong.append(f"{path}: a time without a time zone")
    return when


def _read_uuid(value: Any, path: str, wrong: list[str]) -> Any:
    try:
        return UUID(value) if isinstance(value, str) else _report_mismatch(wrong, path, "a UUID", value)
    except ValueError:
        return _report_mismatch(wrong, path, "a UUID", value)


def _enum_shape(kind: type[Enum]) -> Shape:
    values = {member.value: member for member in kind}
    if not all(isinstance(value, str | int) for value in values):
        raise UsageError(
            f"{kind.__qualname__} cannot be put into a snapshot; give its members text or numbers as values"
        )

    def read(value: Any, path: str, wrong: list[str]) -> Any:
        known = isinstance(value, str | int) and type(value) is not bool and value in values
        return values[value] if known else _report_mismatch(wrong, path, f"a {kind.__name__}", value)

    return read


def _literal_shape(given: tuple[Any, ...], known: dict[type, list[Shape]]) -> Shape:
    def read(value: Any, path: str, wrong: list[str]) -> Any:
        fits = any(type(value) is type(one) and value == one for one in given)
        return value if fits else _report_mismatch(wrong, path, "one of " + ", ".join(map(str, given)), value)

    return read


def _tuple_shape(given: tuple[Any, ...], known: dict[type, list[Shape]]) -> Shape:
    if len(given) != 2 or given[1] is not Ellipsis:
        raise UsageError("only tuples of any length, tuple[X, ...], can be put into a snapshot")
    return _sequence_shape(given[:1], known, tuple)


def _sequence_shape(given: tuple[Any, ...], known: dict[type, list[Shape]], make: Callable[[Any], Any] = list) -> Shape:
    shape = _shape(given[0] if given else Any, known)

    def read(value: Any, path: str, wrong: list[str]) -> Any:
        if not isinstance(value, list):
            return _report_mismatch(wrong, path, "a list", value)
        return make(shape(one, f"{path}[{number}]", wrong) for number, one in enumerate(value))

    return read


def _dict_shape(given: tuple[Any, ...], known: dict[type, list[Shape]]) -> Shape:
    if given and given[0] is not str:
        raise UsageError("only mappings with text as keys can be put into a snapshot")
    shape = _shape(given[1] if given else Any, known)

    def read(value: Any, path: str, wrong: list[str]) -> Any:
        if not isinstance(value, dict):
            return _report_mismatch(wrong, path, "an object", value)
        if shape is _read_any:
            return value
        return {name: shape(one, f"{path}.{_safe_key(name)}", wrong) for name, one in value.items()}

    return read


def _union_shape(given: tuple[Any, ...], known: dict[type, list[Shape]]) -> Shape:
    shapes = [_shape(one, known) for one in given]

    def read(value: Any, path: str, wrong: list[str]) -> Any:
        mistakes: list[str] = []
        for shape in shapes:
            tried: list[str] = []
            result = shape(value, path, tried)
            if not tried:
                return result
            if len(tried) > 1 or not tried[0].startswith(f"{path}: "):  # this member, with a mistake inside
                mistakes = tried
        wrong += mistakes or [f"{path}: {name_json_type(value)} does not fit"]
        return None

    return read


_GENERIC: dict[Any, Callable[[tuple[Any, ...], dict[type, list[Shape]]], Shape]] = {
    Union: _union_shape,
    types.UnionType: _union_shape,
    Literal: _literal_shape,
    tuple: _tuple_shape,
    list: _sequence_shape,
    Sequence: _sequence_shape,
    dict: _dict_shape,
    Mapping: _dict_shape,
}


def _report_mismatch(wrong: list[str], path: str, expected: str, value: Any) -> None:
    wrong.append(f"{path}: expected {expected}, found {name_json_type(value)}")


def _safe_key(name: str) -> str:
    """Return a name from the snapshot if it is safe to repeat."""
    return name if name.isidentifier() and len(name) <= 60 else "?"


# --- the snapshot ---

VERSION: Literal["1"] = "1"

#: The effect of a rollback on a slice: `state` is restored, a `log` stays.
Policy = Literal["state", "log"]


@dataclass(frozen=True)
class SliceData:
    """The items of one type: objects when taken from a session, JSON objects when read and not yet restored."""

    slice_type: str
    item_type: str
    items: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """The items of a session. Made by `EvaluationSession.snapshot`, restored by `rollback`."""

    slices: tuple[SliceData, ...] = ()
    created_at: datetime = field(default_factory=aware_now)
    parent_id: UUID | None = None
    children_ids: tuple[UUID, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, Policy] = field(default_factory=dict)
    version: Literal["1"] = VERSION

    def to_json(self) -> str:
        """Encode as text. Raise UsageError for values JSON cannot hold."""
        return to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes, types: Iterable[type] = (ConversationState,)) -> Snapshot:
        """Read a snapshot: items of `types` at once, others when a session restores them. Raise SnapshotRestoreError."""
        try:
            value = _decode_json(text)
        except (ValueError, RecursionError) as failure:
            raise SnapshotRestoreError([f"it is not JSON ({type(failure).__name__})"]) from failure
        if not isinstance(value, dict):
            raise SnapshotRestoreError([f"expected an object, found {name_json_type(value)}"])
        if "version" in value and value["version"] != VERSION:  # other differences are expected then
            raise SnapshotRestoreError([f"version: this everturn knows {VERSION!r} only"])
        snapshot: Snapshot = _read_snapshot(value)
        shapes = {type_name(kind): build_shape(kind) for kind in types}
        wrong: list[str] = []
        slices = tuple(
            _restore_slice(one, f"slices[{number}]", shapes, wrong) for number, one in enumerate(snapshot.slices)
        )
        if wrong:
            raise SnapshotRestoreError(wrong)
        return replace(snapshot, slices=slices)

    def restored(self, shapes: Mapping[str, Shape]) -> dict[str, tuple[Any, ...]]:
        """Old name of `restore_slices`."""
        warn_renamed("Snapshot.restored", "Snapshot.restore_slices")
        return self.restore_slices(shapes)

    def restore_slices(self, shapes: Mapping[str, Shape]) -> dict[str, tuple[Any, ...]]:
        """Return the objects of each slice. Raise SnapshotRestoreError with every mistake, unknown types included."""
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


def _decode_json(text: str | bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):  # lone surrogates, which messages may hold, or no JSON at all
        return json.loads(text)


def _read_snapshot(value: dict[str, Any]) -> Any:
    wrong: list[str] = []
    snapshot = build_shape(Snapshot)(value, "", wrong)
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
