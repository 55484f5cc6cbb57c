"""An operation of the JSON API, helpers that several operations share, and the OpenAPI document made from all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from everturn import __version__
from everturn.errors import NothingFound, UsageError
from everturn.model.archive import Session
from everturn.model.conversation import prepared
from everturn.sessions.lookup import resolve_session
from everturn.web import schemas
from everturn.web.request import Answer, WebRequest
from everturn.web.security import TOKEN_HEADER

T = TypeVar("T")

#: Pages name a session by its number, as its id may contain anything.
_NUMBER = "number:"


class Parameter(Struct, frozen=True):
    name: str
    about: str
    type: str = "string"
    required: bool = False
    several: bool = False


class Operation(Struct, frozen=True):
    path: str
    summary: str
    run: Answer
    answer: Any  # the type of the answer
    parameters: tuple[Parameter, ...] = ()
    method: str = "GET"
    body: Any = None  # the type of the request body, for a change
    counts: bool = False  # it may have to update the counts of the analytics first


SESSION = Parameter("session", "An id, any unique prefix, @last, or number:N as pages have it.", required=True)


def list_frame(name: str, items: Any, next: str = "", **more: Any) -> dict[str, Any]:
    return {"schema": f"everturn/{name}@1", **more, "items": list(items), "next": next or None}


def session_of(request: WebRequest) -> Session:
    """Return the session of the request. Raises NothingFound, UsageError."""
    name = request.word("session")
    if not name:
        raise UsageError("no session is named; add session=, with an id, any unique prefix, or @last")
    if not name.startswith(_NUMBER):
        return resolve_session(request.store, name)
    number = name.removeprefix(_NUMBER)
    if not number.isascii() or not number.isdigit() or len(number) > 15:
        raise NothingFound(f"{name[:40]!r} is not a session")
    return request.store.session(int(number))[0]


def body_of(request: WebRequest, type: type[T]) -> T:
    """Validate the body of the request. Raises UsageError."""
    try:
        return msgspec.convert(request.body, prepared(type))
    except msgspec.ValidationError as error:
        raise UsageError(f"the request is not valid: {error}") from error


_REFERENCE = "#/components/schemas/{name}"

#: Component names that clients know and that are not just the class name without `Json`.
_COMPONENT_NAMES = {
    "ArtifactJson": "Touched",
    "FailureGroup": "Failure",
    "HitJson": "everturn.web.schemas.Found",
    "MarksJson": "MarksItem",
    "NeighbourTurnJson": "everturn.web.schemas.Beside",
    "OutlineEntry": "Outline",
    "PathsJson": "PathsAnswer",
    "PositionCount": "AtPosition",
    "RestoreOptionsJson": "Wanted",
    "SessionJson": "SessionItem",
    "StatsJson": "StatsAnswer",
    "ToolNeighbour": "everturn.analyse.inspect.Beside",
    "ToolPathFinding": "everturn.analyse.paths.Found",
    "TrailHandle": "Handle",
    "UseTotal": "Used",
}


def openapi_operation(others: tuple[Operation, ...]) -> Operation:
    """Return the operation that returns the OpenAPI document, which describes itself too."""
    own = Operation("/api/openapi.json", "This document.", lambda request: {}, dict[str, Any])
    return msgspec.structs.replace(own, run=lambda request: openapi_document((*others, own)))


def openapi_document(operations: Iterable[Operation]) -> dict[str, Any]:
    operations = list(operations)
    types = [
        schemas.ProblemJson,
        *(one.answer for one in operations),
        *(one.body for one in operations if one.body is not None),
    ]
    shapes, components = _rename_components(*msgspec.json.schema_components(types, ref_template=_REFERENCE))
    by_type = dict(zip(map(str, types), shapes, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "everturn",
            "version": __version__,
            "description": "The archive of agent sessions on this machine. Secrets are masked in every answer.",
        },
        "paths": {one.path: {one.method.lower(): _operation(one, by_type)} for one in operations},
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": TOKEN_HEADER}},
        },
    }


def _rename_components(shapes: Any, components: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Replace class names by the published names of components."""

    def rename(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: _component_name(key, item, rename(item)) for key, item in value.items()}
        return [rename(item) for item in value] if isinstance(value, list | tuple) else value

    return rename(shapes), {_published_name(name): rename(shape) for name, shape in components.items()}


def _component_name(key: str, item: Any, renamed: Any) -> Any:
    if key == "$ref" and isinstance(item, str):
        return _REFERENCE.format(name=_published_name(item.rpartition("/")[2]))
    return _published_name(item).rpartition(".")[2] if key == "title" and isinstance(item, str) else renamed


def _published_name(name: str) -> str:
    return re.sub(r"[A-Za-z]+", lambda part: _COMPONENT_NAMES.get(part[0], part[0].removesuffix("Json")), name)


def _operation(one: Operation, shapes: dict[str, Any]) -> dict[str, Any]:
    problem = _json_content("Why not.", shapes[str(schemas.ProblemJson)])
    facts: dict[str, Any] = {
        "summary": one.summary,
        "operationId": one.path.removeprefix("/api/").replace(".json", ""),
        "parameters": [_parameter(parameter) for parameter in one.parameters],
        "responses": {"200": _json_content("The answer.", shapes[str(one.answer)]), "default": problem},
    }
    if one.method != "GET":
        facts["security"] = [{"token": []}]
        facts["requestBody"] = {"content": {"application/json": {"schema": shapes[str(one.body)]}}}
    return facts


def _json_content(about: str, shape: Any) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": shape}}}


def _parameter(one: Parameter) -> dict[str, Any]:
    shape: dict[str, Any] = {"type": one.type}
    if one.several:
        shape = {"type": "array", "items": shape}
    return {"name": one.name, "in": "query", "description": one.about, "required": one.required, "schema": shape}
