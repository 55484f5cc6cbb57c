"""Typed answers: a dataclass, msgspec struct or pydantic model that the model is asked for, as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from everturn.loop.tools import decode_model, json_schema

_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n```", re.S)


def output_request(kind: Any) -> str:
    """Return the words that ask for this type; "" for none."""
    if kind is None:
        return ""
    return f"Answer with one JSON object and nothing else. Its schema: {json.dumps(output_schema(kind))}"


def output_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of the type."""
    own = getattr(kind, "model_json_schema", None)
    return dict(own()) if own is not None else json_schema(kind)


def read_output(text: str, kind: Any) -> Any:
    """Return the value in an answer. Raise ValueError with a reason for the model."""
    for place in [text.strip(), *_FENCE.findall(text), text[text.find("{") : text.rfind("}") + 1]]:
        try:
            value = msgspec.json.decode(place)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        if hasattr(kind, "model_validate"):
            return kind.model_validate(value)  # its ValidationError is a ValueError
        return msgspec.convert(value, kind, dec_hook=decode_model)
    raise ValueError("it holds no JSON object")
