"""Suggestions for tools, from the way agents work. Each has evidence that can be opened.

    sequence      tools that follow each other so often that one command could do it
    pair          two tools of which one hardly ever comes without the other
    fails first   a tool whose first call in a session mostly fails, and what worked after it
    unknown tool  a tool that agents call and that does not exist, and the one they may have meant

The saving is the number of unnecessary calls, each a round trip to the model, and the time of failed ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import partial

from msgspec import Struct

from everturn.analytics.counts import TrailHandle, find_examples, handles
from everturn.analytics.path_counts import PathCounts, count_paths
from everturn.analytics.paths import ToolPathFinding, judge_paths
from everturn.derive.trails import turns_of
from everturn.model.analytics import Trail
from everturn.store.contract import AnalyticsScope, Store

KINDS = ("sequence", "pair", "fails first", "unknown tool")
_ALWAYS = 0.8  # the least share of a tool's calls in a pair
_MOSTLY = 0.6  # the least share of first calls that fail
_LEAST_SESSIONS = 5
_LEAST_LIKENESS = 0.6
_HUMAN = ("rejected", "interrupted", "cancelled")

Trails = list[tuple[int, Trail]]


class Suggestion(Struct, frozen=True):
    """One thing to do something about."""

    kind: str  # of KINDS
    tools: tuple[str, ...]
    n: int  # how often it was seen
    sessions: int
    instead: str  # the tool that worked, or was meant; empty when there is none
    share: float  # pair: of the calls of the rarer one; fails first: of first calls; sequence, unknown tool: 1
    lift: float  # over chance, for sequence and pair; else 0
    saved_calls: int
    saved_ms: int  # what failed calls took, as far as known
    evidence: tuple[TrailHandle, ...]


def find_suggestions(store: Store, scope: AnalyticsScope, top: int = 20) -> list[Suggestion]:
    """Return suggestions, largest saving first, at most `top` of each kind."""
    seen = count_paths(store, scope)
    # Where two tools alternate again and again the agent explores, which no command can replace.
    worth = [one for one in judge_paths(seen) if not (len(one.tools) > 3 and len(set(one.tools)) == 2)]
    made = [
        *_suggest_paths(store, seen, worth[:top]),
        *_suggest_failing_first(store, seen),
        *_suggest_unknown(store, scope, seen, top),
    ]
    return sorted(made, key=lambda one: (-one.saved_calls, one.kind, one.tools))


def nearest_tool(name: str, known: Iterable[str]) -> str:
    """Return the tool that may have been meant; "" if none is similar."""
    plain = _plain_name(name)
    rated = [(SequenceMatcher(None, plain, _plain_name(tool)).ratio(), tool) for tool in sorted(known)]
    best = max(rated, default=(0.0, ""), key=lambda one: one[0])
    return best[1] if best[0] >= _LEAST_LIKENESS else ""


# --- sequences and pairs ---
def _suggest_paths(store: Store, seen: PathCounts, found: Iterable[ToolPathFinding]) -> Iterator[Suggestion]:
    for one in found:
        share = max(one.n / seen.steps.get(tool, one.n) for tool in (one.tools[0], one.tools[-1]))
        is_pair = len(one.tools) == 2 and share >= _ALWAYS
        examples = find_examples(seen.sample, partial(_has_steps, one.tools), one.tools)
        yield Suggestion(
            "pair" if is_pair else "sequence", one.tools, one.n, one.sessions, "", round(share, 3) if is_pair else 1.0,
            one.lift, one.n * (len(one.tools) - 1), 0, handles(store, examples),
        )  # fmt: skip


def _has_steps(steps: tuple[str, ...], tools: list[str]) -> bool:
    """Whether the tools of a turn have these steps in a row."""
    run = [tool for n, tool in enumerate(tools) if not n or tools[n - 1] != tool]
    return any(tuple(run[start : start + len(steps)]) == steps for start in range(len(run) - len(steps) + 1))


# --- first calls that fail ---
class _FirstCalls:
    def __init__(self) -> None:
        self.sessions = 0
        self.failed: list[tuple[int, int]] = []  # session, turn
        self.lost_ms = 0
        self.then: Counter[str] = Counter()


def _suggest_failing_first(store: Store, seen: PathCounts) -> Iterator[Suggestion]:
    firsts: dict[str, _FirstCalls] = {}
    for session, trail in seen.sample:
        _count_first_calls(session, trail, firsts)
    for tool, first in sorted(firsts.items()):
        share = len(first.failed) / first.sessions
        if tool in seen.working and first.sessions >= _LEAST_SESSIONS and share >= _MOSTLY:
            n = len(first.failed)
            instead = min(first.then, key=lambda name: (-first.then[name], name), default="")
            yield Suggestion(
                "fails first", (tool,), n, first.sessions, instead, round(share, 3), 0.0, n, first.lost_ms,
                handles(store, first.failed[:3]),
            )  # fmt: skip


def _count_first_calls(session: int, trail: Trail, firsts: dict[str, _FirstCalls]) -> None:
    met: set[str] = set()
    for turn, uses in turns_of(trail):
        if len(met) == len(trail.names):
            return
        for index, use in enumerate(uses):
            if use.tool in met or not use.own or use.status == "open" or use.error_class in _HUMAN:
                continue
            met.add(use.tool)
            first = firsts.setdefault(use.tool, _FirstCalls())
            first.sessions += 1
            if use.status == "error":
                first.failed.append((session, turn))
                first.lost_ms += use.duration_ms or 0
                later = (one.tool for one in uses[index + 1 :] if one.batch > use.batch and one.status == "ok")
                first.then.update([name] if (name := next(later, "")) else [])


# --- unknown tools ---
def _suggest_unknown(store: Store, scope: AnalyticsScope, seen: PathCounts, top: int) -> Iterator[Suggestion]:
    missing = {tool: found for tool, found in seen.missing.items() if tool not in seen.working}
    for tool, (n, sessions) in sorted(missing.items(), key=lambda item: (-item[1][0], item[0]))[:top]:
        examples = _find_uses(store, scope, tool, seen.sample)
        meant = nearest_tool(tool, seen.working)
        yield Suggestion("unknown tool", (tool,), n, sessions, meant, 1.0, 0.0, n, 0, handles(store, examples))


def _find_uses(store: Store, scope: AnalyticsScope, tool: str, sample: Trails) -> list[tuple[int, int]]:
    """Return examples of a tool. A rare name may not be in the sample; then all trails are read until one has it."""

    def has_tool(tools: list[str]) -> bool:
        return tool in tools

    return find_examples(sample, has_tool, [tool]) or find_examples(store.trails(scope), has_tool, [tool], most=1)


def _plain_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())
