"""Message lists of any program, as they went to a model provider: JSON or JSONL, in the shapes of the common interfaces.

The last resort: many formats hold such messages, so this source ranks below all others. It has no folders and finds nothing
in one: only `add` recognises its files, one by one.

Reading order: `message` (the shapes, and one element as a message), `reader` (a whole file).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, no_candidates, no_folders, no_workspace

SOURCE = Source(
    name="messages",
    title="Message lists",
    parser=1,
    fields=("role", "content", "tool_calls", "tool_call_id", "trajectory", "messages_display"),
    roots=no_folders,
    find=no_candidates,
    **lazy_imports("everturn.sources.messages.reader", "sniff", "view", reader="MessagesReader"),
    workspace=no_workspace,
    rank=-2,
)
