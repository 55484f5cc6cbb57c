"""What an agent told the hook while it worked: one struct for the table of the same name, its fields the columns, in order.

No prompt, no argument, no output, no error text, no path: names, ids, times, sizes, classes.
"""

from __future__ import annotations

from msgspec import Struct

#: `begun`: before a tool runs; `ended`, `failed`: after it; `batch`: after all calls of one response; `session`: no call.
PHASES = ("begun", "ended", "failed", "batch", "session")


class HookEvent(Struct, frozen=True):
    """One event as a hook has heard it. A batch has one row for each of its calls."""

    session: str  # native id
    ref: str  # the call id; where there is none, a mark made of the time and the process
    event: str  # as the agent calls it
    phase: str  # of PHASES
    call_id: str = ""
    tool: str = ""
    agent_id: str = ""  # of a subagent
    at: int = 0
    duration_ms: int | None = None  # as the agent reported it
    error_class: str = ""
    input_size: int | None = None  # bytes of JSON
    output_size: int | None = None
    batch: str = ""  # the same for all calls of one batch
    batch_index: int | None = None
    batch_size: int | None = None
    own: int | None = None  # the session of the archive that has the call; NULL: only the hook has seen it
