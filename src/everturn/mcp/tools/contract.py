"""The contract of a tool, and how tools are found and called. A module of this folder that defines `TOOL` is a tool.

A struct validates the arguments, and the schema for clients is made from it, so the two cannot differ. The answer is text
for the model; data for programs goes into `data`. Wrong arguments, and what the archive cannot give, are answers marked as
errors, so that the model can do better.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from everturn.errors import EverturnError
from everturn.mcp import rpc
from everturn.mcp.archive import McpArchive, clean
from everturn.mcp.rpc import RpcError
from everturn.model.conversation import prepared

if TYPE_CHECKING:
    from everturn.store.contract import Store

T = TypeVar("T", bound=Struct)

#: Limits of an answer in tokens.
LEAST_TOKENS, MOST_TOKENS = 200, 8000

MaxTokens = Annotated[
    int, Meta(ge=LEAST_TOKENS, le=MOST_TOKENS, description=f"How long the answer may be, in tokens (≤ {MOST_TOKENS}).")
]
SessionName = Annotated[str, Meta(description="A session: its id or a unique prefix of it, a handle, or @last.")]


@dataclass(frozen=True)
class ToolAnswer:
    text: str
    data: Mapping[str, Any] | None = None
    is_error: bool = False


@dataclass(frozen=True)
class McpTool:
    """A tool. Every tool only reads."""

    name: str
    title: str
    description: str
    input: Mapping[str, Any]  # schema of the arguments
    run: Callable[[McpArchive, dict[str, Any]], ToolAnswer]  # may raise EverturnError and msgspec.ValidationError
    output: Mapping[str, Any] | None = None  # schema of `ToolAnswer.data`


@cache
def all_tools() -> dict[str, McpTool]:
    found = {}
    for entry in sorted(os.listdir(os.path.dirname(os.path.abspath(__file__)))):
        stem, ending = os.path.splitext(entry)
        if ending == ".py" and not stem.startswith("_"):
            tool = getattr(importlib.import_module(f"everturn.mcp.tools.{stem}"), "TOOL", None)
            if tool is not None:
                found[tool.name] = tool
    return found


def describe_tool(tool: McpTool) -> dict[str, Any]:
    facts = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": dict(tool.input),
        "annotations": {
            "title": tool.title,
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }
    return facts | ({"outputSchema": dict(tool.output)} if tool.output else {})


def call_tool(archive: McpArchive, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a tool. Raises RpcError for an unknown name."""
    tool = all_tools().get(name)
    if tool is None:
        there = ", ".join(all_tools())
        raise RpcError(rpc.INVALID_PARAMS, f"there is no tool {rpc.show_client_word(name)}; there are {there}")
    answer = _run_tool(tool, archive, arguments)
    result: dict[str, Any] = {"content": [{"type": "text", "text": answer.text}], "isError": answer.is_error}
    return result | ({"structuredContent": dict(answer.data)} if answer.data is not None else {})


def reading_tool(arguments: type[T], answer: Callable[[McpArchive, Store, T], ToolAnswer], **facts: Any) -> McpTool:
    """Return a tool that answers from the archive, with its arguments as a struct."""

    def run(archive: McpArchive, given: dict[str, Any]) -> ToolAnswer:
        asked = msgspec.convert(given, prepared(arguments))
        return archive.read(lambda store: answer(archive, store, asked))

    return McpTool(input=schema(arguments), run=run, **facts)


def schema(arguments: type[Struct]) -> dict[str, Any]:
    _, parts = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    found = parts[arguments.__name__]
    return {key: value for key, value in found.items() if key not in ("title", "description")}


def _run_tool(tool: McpTool, archive: McpArchive, arguments: dict[str, Any]) -> ToolAnswer:
    # Models write null for arguments they leave out.
    given = {key: value for key, value in arguments.items() if value is not None}
    try:
        return tool.run(archive, given)
    except msgspec.ValidationError as error:
        takes = ", ".join(tool.input["properties"])
        return ToolAnswer(f"{tool.name}: these arguments cannot be used: {error}. It takes: {takes}.", is_error=True)
    except EverturnError as error:
        return ToolAnswer(clean(str(error)), is_error=True)
