"""The JSON of the API and of commands with `--json`, field by field.

The OpenAPI document is made from these structs. They are strict: an unknown field is a mistake, and tests validate the
answers of both surfaces against them. A field that is UNSET may be missing.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import UNSET, Struct, UnsetType

T = TypeVar("T")


class StrictJson(Struct, forbid_unknown_fields=True):
    """A struct that knows all its fields."""


class ItemsJson(StrictJson, Generic[T]):
    """The frame of every answer that is a list: `next` is the cursor of the next page."""

    schema: str
    items: list[T]
    next: str | None


class CountsJson(StrictJson):
    """How much there is in a session."""

    turns: int
    steps: int
    messages: int
    inherited: int
    prompts: int
    calls: int
    errors: int


class TokensJson(StrictJson):
    """Tokens as the provider reported them."""

    input: int
    output: int
    cache_read: int
    cache_write: int


class SessionFactsJson(StrictJson):
    """What is known about a session as a whole."""

    id: str
    agent: str
    kind: str
    parent: str | None
    state: str
    mode: str
    words: bool
    title: str | None
    summary: str | None
    first_prompt: str | None
    workspace: str | None
    branch: str | None
    team: str | None
    agent_name: str | None
    slug: str | None
    machine: str
    owner: str
    client: str | None
    model: str | None
    started: str | None
    ended: str | None
    counts: CountsJson
    tokens: TokensJson


class SessionJson(SessionFactsJson):
    """A session in a list, with enough of its id to tell it from the others."""

    short: str


class SourceJson(StrictJson):
    """Where the bytes of a session come from."""

    path: str
    format: str
    machine: str
    state: str
    version: int
    versions: list[int]
    bytes: int
    erased: int
    parser: int


class ArtifactJson(StrictJson):
    """A file a call touched."""

    action: str
    path: str


class CallJson(StrictJson):
    """A tool call; parallel ones share their position."""

    id: str | None
    name: str | None
    kind: str
    status: str
    error_class: str | None
    exit_status: int | None
    turn: int
    step: int | None
    position: int
    batch: int
    message: int
    block: int
    result_message: int | None
    started: str | None
    ended: str | None
    duration_ms: int | None
    input_size: int
    output_size: int
    inherited: bool
    artifacts: list[ArtifactJson]
    parallel: bool | UnsetType = UNSET


class RelativeJson(StrictJson):
    """Another session and how it is related."""

    relation: str
    id: str
    archived: bool
    kind: str | None
    shared_messages: int | None
    call: CallJson | None


class LineageJson(StrictJson):
    """The relatives of a session."""

    ancestors: list[RelativeJson]
    forks: list[RelativeJson]
    children: list[RelativeJson]
    others: list[RelativeJson]


class PassageJson(StrictJson):
    """Some words of a turn and what they are."""

    kind: str
    message: int | UnsetType = UNSET
    at: str | UnsetType | None = UNSET
    origin: str | UnsetType = UNSET
    taken_back: int | UnsetType = UNSET
    text: str | UnsetType = UNSET
    call: CallJson | UnsetType = UNSET
    started: list[str] | UnsetType = UNSET
    tool: str | UnsetType = UNSET
    path: str | UnsetType = UNSET
    command: str | UnsetType = UNSET
    result: str | UnsetType = UNSET


class TurnJson(StrictJson):
    """One request and all that followed until the next."""

    number: int
    starter: str
    started: str | None
    ended: str | None
    duration_ms: int | None
    first_message: int
    last_message: int
    n_steps: int
    n_calls: int
    n_errors: int
    compacted: bool
    interrupted: bool
    inherited: bool
    taken_back: bool
    passages: list[PassageJson]


class ShowJson(ItemsJson[TurnJson]):
    """Turns of a session, with what is known about it."""

    session: SessionFactsJson
    source: SourceJson
    lineage: LineageJson


class RecordJson(StrictJson):
    """A message as it was captured, and the bytes it stands in."""

    message: int
    start: int
    size: int
    record: str


class NeighbourTurnJson(StrictJson):
    """The first words of a turn before or after a match."""

    turn: int
    role: str
    text: str


class SimilarHitJson(StrictJson):
    """A match with the same text as the one it is listed under."""

    session: str
    turn: int | None
    message: int | None
    at: str | None


class HitJson(StrictJson):
    """A message that matches; without a turn when the session's own title or summary does."""

    session: str
    agent: str
    kind: str
    state: str
    title: str | None
    workspace: str | None
    turn: int | None
    message: int | None
    role: str | None
    origin: str | None
    taken_back: bool
    field: str
    at: str | None
    score: float
    snippet: str
    spans: list[tuple[int, int]]
    before: list[NeighbourTurnJson]
    after: list[NeighbourTurnJson]
    similar: list[SimilarHitJson]


class SearchJson(ItemsJson[HitJson]):
    """Matches, best first, and what was done to find them."""

    note: str | None
    notes: list[str]
    scope: str | None


class CheckJson(StrictJson):
    """One thing that was looked at."""

    name: str
    level: str
    text: str
    advice: str


class DoctorJson(ItemsJson[CheckJson]):
    """How the archive is."""

    worst: str
    sizes: dict[str, int]


class MarksJson(StrictJson):
    """What people put on a session."""

    session: str
    agent: str
    title: str
    star: bool
    note: str


class MarksChangeJson(StrictJson):
    """What to change of it; what is missing stays."""

    title: str | None = None
    star: bool | None = None
    note: str | None = None


class RestoreOptionsJson(StrictJson):
    """How to restore a session."""

    model: str = ""
    confirmed: bool = False
    max_turns: int | None = None
    workspace: str = ""


class NothingJson(StrictJson):
    """No choice to make."""


class JobJson(StrictJson):
    """How far a piece of work is: waiting, running, done or failed."""

    schema: str
    id: str
    name: str
    state: str
    done: int
    total: int
    error: str


class NodeJson(StrictJson):
    """A session in the graph of a lineage."""

    id: str
    title: str
    agent: str
    kind: str
    archived: bool
    started: str | None
    turns: int
    compacted: int


class EdgeJson(StrictJson):
    """How the younger session hangs on the elder."""

    younger: str
    elder: str
    relation: str
    turn: int | None


class GraphJson(ItemsJson[NodeJson]):
    """Related sessions."""

    session: str
    edges: list[EdgeJson]


class SummaryJson(StrictJson):
    """A restored session: see the document's own fields; statements and their evidence stand in the same order."""

    schema: str
    session: str
    agent: str
    workspace: str
    turns: int
    messages: int
    note: str
    session_name: str
    high_level_goal: str
    primary_task: str
    key_decisions: list[str]
    constraints: list[str]
    artifacts: list[str]
    open_questions: list[str]
    next_steps: list[str]
    facts: dict[str, list[str]]
    unverified: list[dict[str, Any]]
    evidence: dict[str, list[dict[str, Any]]]
    not_shown: dict[str, int]
    notes: list[str]
    model: str | None
    prompt_version: str | None
    receipts: list[Any]
    header: dict[str, str] | UnsetType = UNSET


class ProblemJson(StrictJson):
    """Why there is no answer."""

    schema: str
    error: str
