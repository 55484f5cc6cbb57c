"""Find the agent that a person means by a name: `claude_code`, `Claude Code`, `claude-code` and `claude` are the same."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from everturn.errors import UsageError
from everturn.sources.contract import Source

_NEAR = 0.6


def find_agent(sources: Iterable[Source], name: str) -> Source:
    """Return the agent with this name, title or unique beginning of one. Raises UsageError with the closest name.

    Of several agents that a beginning fits, the one whose sessions can be resumed is meant, if there is one only.
    """
    known = list(sources)
    flat = _flatten(name)
    for one in known:
        if flat in (one.name, _flatten(one.title)):
            return one
    fitting = [one for one in known if flat and (one.name.startswith(flat) or _flatten(one.title).startswith(flat))]
    for some in (fitting, [one for one in fitting if one.native is not None]):
        if len(some) == 1:
            return some[0]
    names = sorted(one.name for one in fitting or known)
    near = get_close_matches(flat, names, 1, _NEAR)
    if fitting:
        raise UsageError(f"{name!r} fits several agents: {', '.join(names)}; type more of the name")
    hint = f"did you mean {near[0]}?" if near else f"known agents are {', '.join(names)}"
    raise UsageError(f"there is no agent {name!r}; {hint}")


def _flatten(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")
