"""Rows of the table `session_message`, where the client's second generation keeps a message in one piece.

They are put into the words of the first generation, so that all that follows knows only one.
"""

from __future__ import annotations

from typing import Any

from everturn.sources.foreign import strings, word
from everturn.sources.linewise import Rec, listing, mapping

#: Rows about the session, not of it.
_SWITCHES = ("agent-switched", "model-switched")


def translate_row(kind: str, data: Rec) -> tuple[Rec, list[Any]] | None:
    """The message and its parts; None for a row that says nothing. A kind that is not known has no role."""
    info = {"id": data.get("id"), "sessionID": data.get("sessionID"), "time": data.get("time")}
    if kind in _SWITCHES:
        return None
    if kind == "user":
        mentions = [{"type": "agent", **mapping(agent)} for agent in listing(data.get("agents"))]
        return {**info, "role": "user"}, [_text(data), *map(_file, listing(data.get("files"))), *mentions]
    if kind in ("synthetic", "system"):
        return {**info, "role": "user"}, [{**_text(data), "synthetic": True}]
    if kind == "compaction":
        summary = {"type": "text", "text": data.get("summary") or "", "synthetic": True}
        return {**info, "role": "user"}, [{"type": "compaction"}, summary]
    if kind == "shell":
        return {**info, "role": "assistant"}, [_shell(data)]
    if kind == "assistant":
        return _assistant_row(info, data)
    return {**data, **info}, []


def _assistant_row(info: Rec, data: Rec) -> tuple[Rec, list[Any]]:
    model = mapping(data.get("model"))
    info |= {"role": "assistant", "modelID": model.get("id"), "agent": data.get("agent")}
    info |= {key: data[key] for key in ("finish", "tokens", "cost", "error") if key in data}
    parts = [{"type": "step-start"}, *map(_content, listing(data.get("content")))]
    files = listing(mapping(data.get("snapshot")).get("files"))
    return info, [*parts, {"type": "patch", "files": files}] if files else parts


def _content(part: Any) -> Any:
    if not isinstance(part, dict) or part.get("type") != "tool":
        return part
    state, time = mapping(part.get("state")), mapping(part.get("time"))
    said = "\n".join(strings([mapping(one).get("text") for one in listing(state.get("content"))]))
    attached = [_file(one) for one in listing(state.get("attachments"))]
    return {
        "type": "tool",
        "callID": part.get("id"),
        "tool": part.get("name"),
        "state": {
            "status": state.get("status"),
            "input": state.get("input"),
            "output": said,
            "error": word(mapping(state.get("error")).get("message")) or said,
            "metadata": state.get("structured"),
            "attachments": attached,
            "time": {"start": time.get("ran") or time.get("created"), "end": time.get("completed")},
        },
    }


def _shell(data: Rec) -> Rec:
    time = mapping(data.get("time"))
    state = {
        "status": "completed" if "completed" in time else "running",
        "input": {"command": data.get("command")},
        "output": data.get("output"),
        "time": {"start": time.get("created"), "end": time.get("completed")},
    }
    return {"type": "tool", "callID": data.get("callID"), "tool": "bash", "state": state}


def _text(data: Rec) -> Rec:
    return {"type": "text", "text": word(data.get("text"))}


def _file(attached: Any) -> Rec:
    found = mapping(attached)
    return {"type": "file", "mime": found.get("mime"), "filename": found.get("name"), "url": found.get("uri")}
