"""Sessions that work with tools, for the tests of the plane: `working("Read Edit", "Bash!")` is a turn with two batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from everturn.analytics import counts
from everturn.model.conversation import Block, CallEnd, CallStart, Message, TokenUsage
from everturn.store.contract import AnalyticsScope, Store
from tests.store.building import NOON, prompt, tell

_numbers = count(1)


def working(*batches: str, at: int = NOON) -> list[Message]:
    """A prompt and the batches that follow, each the names of its tools; one that ends in `!` fails, in `?` never ends."""
    messages = [prompt("do it", next(_numbers), at=at)]
    for n, batch in enumerate(batches):
        calls = [(f"call{next(_numbers)}", word) for word in batch.split()]
        messages.append(_response(calls, at + 1000 * n))
        messages += [_result(call, word, at + 1000 * n + 500) for call, word in calls if not word.endswith("?")]
    return messages


def told(store: Store, session: int, *batches: str, at: int = NOON) -> list[Message]:
    """Add such a turn to a session."""
    messages = working(*batches, at=at)
    tell(store, session, *messages)
    return messages


def rows(store: Store, scope: AnalyticsScope | None = None) -> dict[str, dict[tuple[int | str, ...], list[int]]]:
    """Everything that is counted."""
    counts.catch_up(store)
    return counts.read_counts(store, scope or AnalyticsScope()).tables


def stored(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """Every row of the plane as it is stored, with `subagent`."""
    tables = ("tool_total", "tool_position", "tool_duration", "tool_failure", "tool_pair", "tool_path", "turn_length")
    of_session = ("plane_total", "plane_session", "turn_key", "call_retry", "usage", "activity")
    return {name: sorted(_all(store, name), key=repr) for name in (*tables, *of_session)}


def _all(store: Store, name: str) -> Iterator[tuple[object, ...]]:
    yield from store.driver.all(f'SELECT * FROM "{name}"')  # type: ignore[attr-defined]


def _response(calls: Sequence[tuple[str, str]], at: int) -> Message:
    blocks = [Block("call", "input", "tool_input", call=CallStart(call, word.rstrip("!?"))) for call, word in calls]
    number = next(_numbers)
    return Message(
        "assistant", "model", blocks=tuple(blocks), fingerprint=number, at=at, precision="ms",
        provider_id=f"response{number}", model="m1", usage=TokenUsage(3, 5, 7, 11, 2),
    )  # fmt: skip


def _result(call: str, word: str, at: int) -> Message:
    block = Block("result", "output", "tool_output", result=CallEnd(call, is_error=word.endswith("!")))
    return Message("user", "tool", "result", blocks=(block,), fingerprint=next(_numbers), at=at, precision="ms")
