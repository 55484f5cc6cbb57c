"""Tool use without content: names, order, times, counts, classes of errors.

A `Trail` is the tool use of one session as it was last counted. A `Tally` holds the counts of any number of trails:
tallies add up, so totals are the sum over sessions and change by the difference of one session. The tables of the plane
are `TALLIES`: each has a key and counters, nothing else.

Every call is counted once, in the session that owns it and not in forks that repeat it. Sessions of subagents are counted
separately (`subagent` 0 or 1), so that the reader can choose between own and inclusive numbers.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from everturn.model.vocabulary import ERROR_CLASSES

#: Kinds of session whose calls are a subagent's.
SUBAGENT_KINDS = ("subagent", "sidechain")
#: Kinds of session that are counted. The others are files beside a conversation, without turns.
COUNTED_KINDS = ("main", *SUBAGENT_KINDS)

#: Paths are counted up to this many steps.
LONGEST_PATH = 6
#: Positions in a turn are distinguished up to here; all later ones are one.
LAST_POSITION = 20
#: Quarter of an hour: every time zone is a whole number of these.
SLOT_MS = 900_000
#: Some providers have other prices for longer prompts: the class of a prompt is how many of these sizes it exceeds.
PROMPT_SIZES = (100_000, 200_000, 272_000)

#: Separates the names of a path.
ARROW = " → "

#: Stands for the beginning and end of a turn in `tool_pair`.
EDGE = ""

CLASS, OPEN, INHERITED = 63, 64, 128  # parts of an outcome: mask of the error class, and flags


class Use(NamedTuple):
    """One tool call in its turn."""

    tool: str
    batch: int  # number of the batch within the turn: shared by parallel calls
    number: int  # within the batch
    status: str  # ok | error | open
    error_class: str  # "" unless it failed
    duration_ms: int | None
    own: bool  # False: repeated by a fork, only there for the positions of the others
    retry_of: int  # number of the failed call in this turn's list that this one retries; -1


class Trail(Struct, frozen=True, array_like=True):
    """The tool use of one session, in columns: one entry per call, in order. Turns without a call of its own are left out."""

    names: list[str] = []  # of tools; `tools` are numbers into this
    turns: list[int] = []
    tools: list[int] = []
    batches: list[int] = []
    outcomes: list[int] = []  # number in ERROR_CLASSES, with OPEN and INHERITED added
    durations: list[int] = []  # milliseconds; -1 when unknown


class TallyTable(NamedTuple):
    """One table of totals: the columns after `subagent` that are its key, and its counters."""

    name: str
    key: tuple[str, ...]
    counters: tuple[str, ...]


#: Every table of totals; `subagent` leads every key. The counters of a row are never all zero.
TALLIES = (
    # one row per tool. sessions, turns: that use it; retries: of a failed call; parallel: in a batch of several; timed:
    # with known duration, and their sum; position: sum of the batch numbers
    TallyTable(
        "tool_total", ("tool",),
        ("n", "errors", "open", "sessions", "turns", "retries", "parallel", "timed", "duration_ms", "position"),
    ),
    TallyTable("tool_position", ("tool", "position"), ("n", "errors")),  # position: number of the batch, up to LAST_POSITION
    TallyTable("tool_duration", ("tool", "bucket"), ("n",)),  # see `bucket_of`
    TallyTable("tool_failure", ("tool", "error_class"), ("n", "sessions")),
    # relation next: a tool of one batch, a tool of the batch after it (each pair once per two batches; EDGE: the turn begins
    # or ends); parallel: two calls of one batch, first <= second by name; recovery: a call failed, a tool of the next
    # batch. errors: the second one failed (parallel: either)
    TallyTable("tool_pair", ("relation", "first", "second"), ("n", "errors", "sessions")),
    # a path is names joined by ARROW, a tool called again and again being one step; length 1 to LONGEST_PATH, within a
    # turn. position: sum of the batch numbers of its first call; r1…r6: how often that step was a repeated one
    TallyTable(
        "tool_path", ("length", "path"),
        ("n", "sessions", "turns", "position", "errors", "r1", "r2", "r3", "r4", "r5", "r6"),
    ),
    TallyTable("turn_length", ("calls",), ("n", "errors")),  # turns by number of calls; errors: with a failed one
    # what: sessions (that used a tool), turns (that did), calls, errors, batches, parallel (batches of several), path1…path6
    # (paths of that length)
    TallyTable("plane_total", ("what",), ("n",)),
)  # fmt: skip


class PlaneTable(NamedTuple):
    """A table or view without any content."""

    name: str
    order: tuple[str, ...]
    columns: dict[str, str]  # name → text | integer


def _column_types(words: str) -> dict[str, str]:
    """Parse `a b# c`, in which # marks integers."""
    return {word.rstrip("#"): "integer" if word.endswith("#") else "text" for word in words.split()}


_COUNTED = ("position", "bucket", "length", "calls")  # parts of keys that are integers

#: The tables that any program may read and export. Booleans are 0 or 1, times ISO 8601 in UTC.
PLANE = (
    PlaneTable(
        "sessions", ("source", "session_id", "started_at", "state"),
        _column_types(
            "source session_id kind parent_session_id state mode client model workspace_key started_at ended_at messages# "
            "inherited_messages# turns# steps# calls# errors# prompts# tokens_in# tokens_out# tokens_cache_read# "
            "tokens_cache_write#"
        ),
    ),
    PlaneTable(
        "turns", ("source", "session_id", "turn_index", "id"),
        _column_types(
            "id source session_id turn_index# started_at duration_ms# tool_count# error_count# was_compacted# "
            "was_interrupted# starter step_count# batch_count# is_subagent# workspace_key"
        ),
    ),
    PlaneTable(
        "invocations", ("source", "session_id", "turn_index", "turn_sequence", "parallel_index", "id"),
        _column_types(
            "id source session_id tool_use_id tool_name turn_id turn_sequence# parallel_group# turn_index# parallel_index# "
            "batch_size# is_error# status error_class exit_status# kind timestamp duration_ms# input_size# output_size# "
            "retry_of is_subagent# parent_session_id workspace_key model"
        ),
    ),
    PlaneTable(
        "daily_usage", ("source", "session_id", "day", "model", "is_subagent", "workspace_key"),
        _column_types(
            "source session_id day model is_subagent# workspace_key responses# tokens_in# tokens_out# tokens_cache_read# "
            "tokens_cache_write# tokens_cache_write_1h#"
        ),
    ),
    *(
        PlaneTable(
            table.name, ("subagent", *table.key),
            {"subagent": "integer"}
            | {name: "integer" if name in _COUNTED else "text" for name in table.key}
            | dict.fromkeys(table.counters, "integer"),
        )
        for table in TALLIES
    ),
)  # fmt: skip

#: Table → key (with `subagent` first) → counters.
Tally = dict[str, dict[tuple[int | str, ...], list[int]]]


class ToolTotal(Struct, frozen=True):
    """A row of `tool_total`."""

    tool: str
    n: int
    errors: int
    open: int
    sessions: int
    turns: int
    retries: int
    parallel: int
    timed: int
    duration_ms: int
    position: int


class ToolPair(Struct, frozen=True):
    """A row of `tool_pair`."""

    relation: str
    first: str
    second: str
    n: int
    errors: int
    sessions: int


class ToolPath(Struct, frozen=True):
    """A row of `tool_path`."""

    steps: tuple[str, ...]
    n: int
    sessions: int
    turns: int
    position: int  # a sum: divide by n
    errors: int
    repeated: tuple[int, ...]  # for each step, how often the tool was called more than once there


class UsageRow(Struct):
    """Tokens of one session in a quarter of an hour, by model: each response once."""

    session: int = 0
    slot: int = 0  # time // SLOT_MS; -1 when nobody knows
    model: str = ""
    inherited: int = 0  # a fork repeats these responses: they are counted where they were made
    prompt_size: int = 0  # how many of PROMPT_SIZES the prompts exceed
    responses: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cache_read: int = 0
    tokens_cache_write: int = 0
    tokens_cache_write_1h: int = 0  # of the ones before: those that are kept for an hour


class ActivityRow(Struct):
    """The activity of one session in a quarter of an hour, its own turns and calls only. A turn counts where it began."""

    session: int = 0
    slot: int = 0
    turns: int = 0
    prompts: int = 0  # turns that a human began
    calls: int = 0
    errors: int = 0
    busy_ms: int = 0  # sum of the turns' durations


class WorkSum(Struct, frozen=True):
    """The work of several sessions; `key` is what they have in common."""

    key: str
    sessions: int  # without subagents, whose work is counted
    turns: int
    calls: int
    errors: int
    tokens_in: int
    tokens_out: int
    tokens_cache_read: int
    tokens_cache_write: int


class TurnKey(Struct):
    """The stable name of a turn: a hash of its session's id and its start, the same however often it is taken in."""

    session: int = 0
    idx: int = 0
    turn_id: str = ""


def bucket_of(duration_ms: int) -> int:
    """Return the bucket of a duration: exact below 64 ms, then 32 buckets for each doubling (within 3.2 %)."""
    if duration_ms < 64:
        return max(duration_ms, 0)
    shift = duration_ms.bit_length() - 6
    return shift * 32 + (duration_ms >> shift)


def bucket_start(bucket: int) -> int:
    """Return the shortest duration of a bucket."""
    if bucket < 64:
        return bucket
    shift = bucket // 32 - 1
    return (bucket - shift * 32) << shift


def outcome(status: str, error_class: str, inherited: int) -> int:
    """Encode the end of a call as one number."""
    failed = ERROR_CLASSES.index(error_class or "other") if status == "error" else 0
    return failed + (OPEN if status == "open" else 0) + (INHERITED if inherited else 0)
