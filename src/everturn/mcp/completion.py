"""Session ids completed from their beginning, where a prompt or a resource asks for one."""

from __future__ import annotations

from typing import Any

from everturn.errors import NoArchive
from everturn.mcp import rpc
from everturn.mcp.archive import McpArchive
from everturn.mcp.handles import SESSION, TURNS
from everturn.mcp.rpc import RpcError

_MOST_COMPLETIONS = 100  # the protocol allows no more

#: What takes a session id: kind of reference, its name, the argument.
_ID_ARGUMENTS = {("ref/prompt", "handoff", "session"), ("ref/resource", SESSION, "id"), ("ref/resource", TURNS, "id")}


def complete_argument(archive: McpArchive, params: dict[str, Any]) -> dict[str, Any]:
    """Values that begin with what was typed. Raises Refused."""
    reference, argument = params.get("ref"), params.get("argument")
    if not isinstance(reference, dict) or not isinstance(argument, dict):
        raise RpcError(rpc.INVALID_PARAMS, "ref and argument are JSON objects")
    name, typed = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(typed, str):
        raise RpcError(rpc.INVALID_PARAMS, "argument has a name and a value, both strings")
    about = (reference.get("type"), reference.get("name") or reference.get("uri"), name)
    values = _complete_ids(archive, typed) if about in _ID_ARGUMENTS else []
    more = len(values) > _MOST_COMPLETIONS
    return {
        "completion": {"values": values[:_MOST_COMPLETIONS], "hasMore": more} | ({} if more else {"total": len(values)})
    }


def _complete_ids(archive: McpArchive, typed: str) -> list[str]:
    """Ids that begin so; with nothing typed the newest."""
    from everturn.store import SessionFilter, Store

    def found(store: Store) -> list[str]:
        if not typed:
            return [session.native_id for session, _ in store.sessions(SessionFilter(), 20)[0]]
        # A session may be there in several editions: each once.
        return list(dict.fromkeys(one.native_id for one in store.sessions_like(typed, 2 * _MOST_COMPLETIONS)))

    try:
        return archive.ask(found)
    except NoArchive:
        return []
