"""The OpenAPI document, made from the list of operations and the shapes of their answers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec

from everturn import __version__
from everturn.web import schemas
from everturn.web.api.operations import Operation, Parameter
from everturn.web.asking import Asked
from everturn.web.security import TOKEN_HEADER

_REFERENCE = "#/components/schemas/{name}"


def operation(others: tuple[Operation, ...]) -> Operation:
    """The operation that gives the document; it describes itself too."""
    own = Operation("/api/openapi.json", "This document.", _nothing, dict[str, Any])
    return msgspec.structs.replace(own, run=partial(_document, (*others, own)))


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """The document."""
    wanted = list(operations)
    types = [schemas.Problem, *(one.answer for one in wanted), *(one.body for one in wanted if one.body is not None)]
    shapes, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    by_type = dict(zip(map(str, types), shapes, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "everturn",
            "version": __version__,
            "description": "The archive of agent sessions on this machine. Secrets are masked in every answer.",
        },
        "paths": {one.path: {one.method.lower(): _operation(one, by_type)} for one in wanted},
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": TOKEN_HEADER}},
        },
    }


def _document(operations: tuple[Operation, ...], asked: Asked) -> dict[str, Any]:
    return document(operations)


def _nothing(asked: Asked) -> dict[str, Any]:
    return {}


def _operation(one: Operation, shapes: dict[str, Any]) -> dict[str, Any]:
    problem = _content("Why not.", shapes[str(schemas.Problem)])
    facts: dict[str, Any] = {
        "summary": one.summary,
        "operationId": one.path.removeprefix("/api/").replace(".json", ""),
        "parameters": [_parameter(parameter) for parameter in one.parameters],
        "responses": {"200": _content("The answer.", shapes[str(one.answer)]), "default": problem},
    }
    if one.method != "GET":
        facts["security"] = [{"token": []}]
        facts["requestBody"] = {"content": {"application/json": {"schema": shapes[str(one.body)]}}}
    return facts


def _content(about: str, shape: Any) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": shape}}}


def _parameter(one: Parameter) -> dict[str, Any]:
    shape: dict[str, Any] = {"type": one.type}
    if one.several:
        shape = {"type": "array", "items": shape}
    return {"name": one.name, "in": "query", "description": one.about, "required": one.required, "schema": shape}
