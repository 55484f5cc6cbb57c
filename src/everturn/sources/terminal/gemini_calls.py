"""Titles of the calls of Gemini CLI: `✓  Shell seq 1 5`, `✓  Edit  notes.txt → Accepted (+1, -1)`."""

from __future__ import annotations

import re

from msgspec.structs import replace

from everturn.sources.terminal import tools
from everturn.sources.terminal.transcript import DrawnCall

#: Marks of a call that waits for its turn or for permission, or is at work.
OPEN = "o?⊶⊷"
_TITLE = re.compile(r"(?P<state>[o?⊶⊷✓✕x-]) {1,2}(?P<name>[A-Z][A-Za-z]{1,40}(?: Memory)?)(?: {1,2}(?P<words>\S.*))?$")
_FAILED = {"x": "other", "✕": "other", "-": "rejected"}
_NAMES = {  # as drawn → the tool's own name, its kind
    "Shell": ("run_shell_command", "shell"),
    "ReadFile": ("read_file", "read"),
    "ReadManyFiles": ("read_many_files", "read"),
    "WriteFile": ("write_file", "create"),
    "Edit": ("replace", "edit"),
    "ReadFolder": ("list_directory", "search"),
    "FindFiles": ("glob", "search"),
    "SearchText": ("search_file_content", "search"),
    "WebFetch": ("web_fetch", "fetch"),
    "GoogleSearch": ("google_web_search", "search"),
    "WriteTodos": ("write_todos", "plan"),
    "Save Memory": ("save_memory", "other"),
}
_ACTIONS = {"read": "read", "create": "created", "edit": "edited"}
_FOLDER = re.compile(r" \[(?:in|current working directory) [^\]]{0,400}\]")
_OUTCOME = re.compile(r" → (?P<outcome>.{1,80})$")


def read_call_title(title: str) -> DrawnCall | None:
    """Return the call that a title names, without its output; None for what is no title."""
    found = _TITLE.match(title)
    if found is None:
        return None
    name, kind = _NAMES.get(found["name"], (found["name"], "other"))
    words = (found["words"] or "").strip()
    status = "open" if found["state"] in OPEN else "error" if found["state"] in _FAILED else "ok"
    call = DrawnCall(
        name, kind, title[1:].strip(), status=status, error_class=_FAILED.get(found["state"], ""),
        action=_ACTIONS.get(kind, "") if status == "ok" else "",
    )  # fmt: skip
    if kind == "shell":
        return replace(call, command=_FOLDER.sub("", words))
    if kind in _ACTIONS:
        outcome = _OUTCOME.search(words)
        path = _OUTCOME.sub("", words).removeprefix("Writing to ")
        return replace(call, path=path.split(": ", 1)[0], output=outcome["outcome"] if outcome else "")
    return replace(call, pattern=words) if kind == "search" else call


def close_call(call: DrawnCall, text: str) -> DrawnCall:
    """Return the call with what is drawn below it."""
    if text == "interrupted":
        return replace(call, status="error", error_class="interrupted", action="")
    output = "\n".join(part for part in (call.output, text) if part)
    if call.status == "error" and call.error_class == "other":
        return replace(call, output=output, error_class=tools.error_class(output))
    return replace(call, output=output)
