"""The rows of a store: one struct per table, with the columns as fields, in order.

Two planes. `Session`, `Turn`, `Step`, `Call` and `MessageRow` are structure: names, order, times, counts, sizes, classes.
They never hold prompt text, output, error text or a path, and they are all that a workspace in mode `structure` has. So is
`HookEvent`, an event that an agent reported to the hook. `SessionText`, `Artifact`, `ProblemRow`, the chunks and the index
hold content. `Descent` is kept about a session that everturn made from another one, since its file cannot say so.

Times are milliseconds UTC. Index numbers are 0-based; surfaces show them 1-based.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from everturn.model.conversation import prepared

#: How many steps back a model response may continue. Seen in real files for one step in 8,000.
RECENT_STEPS = 50


class SourceFile(Struct):
    """A source file: one file of one machine."""

    id: int = 0
    format: str = ""
    machine: str = ""
    owner: str = ""
    path: str = ""
    kind: str = "main"  # of SESSION_KINDS
    native_id: str = ""
    parent: str = ""
    mode: str = "full"
    state: str = "live"  # live | gone
    version: int = 0  # id of the current version
    fail_reason: str = ""  # why it is in quarantine; empty when it is not
    fail_count: int = 0
    retry_at: int = 0
    container: int = 0  # id of the file that holds this conversation; its path is then CONTAINER#NAME


class Version(Struct):
    """A source file as long as it only grows. A rewrite, truncation or change of mode starts the next version."""

    id: int = 0
    source: int = 0
    number: int = 1
    reason: str = "first"  # first | truncated | rewritten | mode | merged
    mode: str = "full"  # of MODES
    offset: int = 0  # bytes of the source that were read: the cursor
    size: int = 0  # bytes stored; equal to offset in mode full
    parsed: int = 0  # stored bytes that derived rows exist for
    device: int = 0
    inode: int = 0
    file_size: int = 0  # as last seen
    mtime_ns: int = 0
    head: bytes = b""  # hash of the first bytes of the source
    tail: bytes = b""  # hash of the last bytes before the cursor
    parser: int = 0  # parser version of the derived rows; -1 = raw only, could not be parsed
    state: bytes = b""  # reader state, to continue
    lines: int = 0
    glued: int = 0
    opened_at: int = 0
    changed_at: int = 0
    erased: int = 0  # bytes blanked by `forget`


class Session(Struct):
    """One conversation of one agent, read from one version of one source."""

    id: int = 0
    agent: str = ""
    native_id: str = ""
    version: int = 0
    kind: str = "main"
    parent: str = ""  # native id
    mode: str = "full"
    state: str = "current"  # current | superseded (a newer version of the same file holds it)
    machine: str = ""
    owner: str = ""
    client: str = ""
    model: str = ""  # of the last response
    workspace_key: str = ""  # short hash, to group without naming
    started: int | None = None
    ended: int | None = None
    n_messages: int = 0  # also the next seq
    n_inherited: int = 0  # messages that a session with a lower id holds too
    n_turns: int = 0
    n_steps: int = 0
    n_calls: int = 0
    n_errors: int = 0
    n_prompts: int = 0  # messages typed by a human
    tokens_in: int = 0  # own steps only, each response once
    tokens_out: int = 0
    tokens_cache_read: int = 0
    tokens_cache_write: int = 0


class SessionText(Struct):
    """The content-bearing facts of a session."""

    session: int = 0
    title: str = ""
    title_rank: int = 0
    summary: str = ""
    workspace: str = ""
    branch: str = ""
    first_prompt: str = ""
    team: str = ""
    agent_name: str = ""
    slug: str = ""  # the short name that the agent gave the session


class Turn(Struct, gc=False):
    """One request and all that followed until the next."""

    session: int = 0
    idx: int = 0
    first_seq: int = 0
    last_seq: int = 0
    starter: str = "none"  # human | agent | none
    started: int | None = None
    ended: int | None = None
    reported_ms: int | None = None
    n_messages: int = 0
    n_steps: int = 0
    n_calls: int = 0
    n_batches: int = 0  # steps that called tools
    n_errors: int = 0
    answered: int = 0  # the model, or an error in its place, has answered: the next prompt starts a turn
    compacted: int = 0
    interrupted: int = 0
    inherited: int = 0
    taken_back: int = 0  # nothing that a person, an agent or a model said in it is on the live path


class Step(Struct, gc=False):
    """One model response plus the results of the tools it called."""

    session: int = 0
    idx: int = 0
    turn: int = 0
    first_seq: int = 0
    provider_id: str = ""
    model: str = ""
    started: int | None = None
    ended: int | None = None
    n_calls: int = 0  # the size of the parallel batch
    resumes: int = 0  # continues a response that began in an earlier step; its tokens are those not reported there
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cache_read: int = 0
    tokens_cache_write: int = 0
    inherited: int = 0
    tokens_cache_write_1h: int = 0  # of the cache writes: those with a lifetime of one hour


class Call(Struct, gc=False):
    """One tool call. A result whose call was never seen is a row too, with status `orphan`."""

    session: int = 0
    seq: int = 0  # of the message that holds the call; of the result for an orphan
    idx: int = 0  # block within that message
    call_id: str = ""
    turn: int = 0
    step: int = 0  # -1 for an orphan
    batch: int = 0  # number within the step's parallel batch
    position: int = 0  # number of the batch within the turn: shared by parallel calls
    name: str = ""
    kind: str = "other"
    status: str = "open"
    error_class: str = ""
    exit_status: int | None = None
    started: int | None = None
    ended: int | None = None
    duration_ms: int | None = None
    input_size: int = 0
    output_size: int = 0
    result_seq: int | None = None
    inherited: int = 0

    @property
    def failure(self) -> str:
        """How it failed, in a few words; "" if it did not, or nothing is known about it."""
        if self.exit_status:
            return f"exit {self.exit_status}"
        return "" if self.error_class in ("", "other", "exit_status") else self.error_class.replace("_", " ")


class ReportedWork(Struct):
    """The work of a subagent, as reported by the result of the call that started it. It counts only while nothing better is known."""

    session: int = 0
    seq: int = 0  # of the call
    idx: int = 0
    turn: int = 0
    at: int | None = None
    child: str = ""  # native id of the subagent's session; "" if the result does not name it
    tokens: int = 0
    calls: int = 0
    duration_ms: int | None = None


class MessageRow(Struct, gc=False):
    """The position and type of a message; its text is read from the raw layer."""

    session: int = 0
    seq: int = 0
    turn: int = 0
    step: int = -1
    role: str = ""
    origin: str = ""
    kind: str = ""
    at: int | None = None
    precision: str = ""
    fingerprint: int | None = None
    start: int = 0
    size: int = 0
    fidelity: str = "exact"
    inherited: int = 0
    taken_back: int = 0  # seq of the message that took it back; 0: it is on the live path


class TakesBack(Struct, frozen=True):
    """A message that takes others back: so many turns, or all from a message on, by its native id or its offset."""

    seq: int
    turns: int = 0
    native_id: str = ""
    start: int = -1


def is_live(row: MessageRow, last: int | None = None) -> bool:
    """Whether a message is on the live path, or was when `last` was the last message."""
    return not row.taken_back or (last is not None and row.taken_back > last)


class TakenBack(Struct, frozen=True):
    """Messages that a later one took back: the person went back before the first of them. Both ends are included."""

    first: int
    last: int
    by: int  # seq of the message that took them back


class Artifact(Struct, gc=False):
    """A file touched by a tool call."""

    session: int = 0
    seq: int = 0  # of the call's message
    idx: int = 0  # of the call's block
    n: int = 0  # several files by one call
    turn: int = 0
    action: str = ""
    path: str = ""


#: Bytes of one line hash in the edit index.
LINE_HASH = 8


class EditRow(Struct):
    """One row of the edit index: the changes that a call made to one file. The text itself is in the raw layer, at the call's message."""

    session: int = 0
    seq: int = 0  # of the call's message
    idx: int = 0  # of the call's block
    n: int = 0  # number among the edits of the call
    turn: int = 0
    began: int | None = None  # when the call was made
    at: int | None = None  # when its result came
    kind: str = ""  # write | replace | patch | append | text
    path: str = ""  # as given
    name: int = 0  # keyed hash of the file's name, in lower case
    lines: bytes = b""  # keyed hashes of the added lines, 8 bytes each, in order; 8 zero bytes between changes


class EditLines(Struct, frozen=True):
    """An edit that is about to be written to the index: its added lines, one list per change."""

    seq: int
    idx: int
    n: int
    turn: int
    began: int | None
    at: int | None
    kind: str
    path: str
    lines: list[list[str]]


class LinkRow(Struct):
    """A statement about another session, made from this one."""

    session: int = 0
    relation: str = ""
    native_id: str = ""
    call_id: str = ""
    hint: int = 0
    n: int = 0  # messages shared, for forked_from


class ProblemRow(Struct):
    """Bytes that could not be read."""

    version: int = 0
    start: int = 0
    size: int = 0
    kind: str = ""
    reason: str = ""
    provisional: int = 0


class CensusRow(Struct):
    """How many records of a type a version had, and what became of them."""

    version: int = 0
    type: str = ""
    client: str = ""
    disposition: str = ""
    n: int = 0


class Chunk(Struct):
    """A range of stored bytes, which are addressed by their digest."""

    version: int = 0
    start: int = 0
    size: int = 0
    digest: bytes = b""


class PackedChunk(Struct, frozen=True):
    """A chunk of a version that is not in the archive yet, with its bytes as they are stored."""

    start: int
    size: int
    digest: bytes
    data: bytes


class Tombstone(Struct):
    """A mark of `forget` that keeps something from returning: a session by id, or a message by fingerprint."""

    kind: str = "session"  # session | message
    agent: str = ""
    key: str = ""  # native id, or the fingerprint in decimal
    at: int = 0


class KeptRow(Struct):
    """A row that cannot be derived: a title, a pin, a note, a receipt. `subject` is a native session id or ''."""

    kind: str = ""
    agent: str = ""
    subject: str = ""
    key: str = ""
    value: str = ""  # JSON
    at: int = 0


class IndexRow(Struct, gc=False):
    """Text of one message for the full-text index, one value per field of `vocabulary.FIELDS` (None = nothing)."""

    seq: int
    texts: tuple[str | None, ...]
    is_folded: bool = False  # the texts are what an index tokenizes (`text.terms`)


class JournalTail(Struct):
    """The end of a session: everything that is needed to continue with new messages."""

    next_seq: int = 0
    next_turn: int = 0
    next_step: int = 0
    turn: Turn | None = None  # the last one
    step: Step | None = None  # the last one
    open_calls: dict[str, list[Call]] = {}  # calls without a result, and orphans, by call id
    recent: list[Step] = []  # the last RECENT_STEPS, oldest first


class MessageText(Struct):
    """A message with its words, as programs read it in SQL (view `conversation_turns`)."""

    session: int = 0
    seq: int = 0
    role: str = ""
    content: str | None = None
    tool_calls: str | None = None  # JSON
    tool_call_id: str | None = None
    tool_name: str | None = None
    tokens: int = 0


class SessionGrowth(Struct):
    """Rows that new messages add to one session. `turns`, `steps` and `calls` replace rows of the same key."""

    messages: list[MessageRow]
    turns: list[Turn]
    steps: list[Step]
    calls: list[Call]
    artifacts: list[Artifact]
    links: list[LinkRow]
    index: list[IndexRow]
    stale_turns: list[int]  # older turns whose calls and errors must be counted again
    dropped_calls: list[tuple[int, int]] = []  # (seq, idx) of orphan rows whose call was found
    first_prompt: str = ""
    model: str = ""
    started: int | None = None
    ended: int | None = None
    n_prompts: int = 0
    edits: list[EditLines] = []
    words: list[MessageText] = []  # of sources whose words SQL can read
    reported: list[ReportedWork] = []
    takes_back: list[TakesBack] = []
    taken_back: list[TakenBack] = []  # what these are, once the earlier messages are known


#: Kinds of kept rows: about the new session, and about the one it was made from.
ORIGIN, OFFSPRING = "origin", "offspring"

#: Kind of kept rows that name data outside of a session that is erased with it, and the family of whole files.
FRAMEWORK, FILE = "framework", "file"


class FrameworkData(Struct, frozen=True):
    """Data beside a session: a list of a framework, one item of a list, a thread of checkpoints, or a file."""

    family: str  # of the list; "" for a thread, FILE for a file
    owner: str  # of the list, or the name of the thread or file
    key: str = ""  # of the item


#: `MessageRow.inherited` of messages handed over from the origin. Other copies have 1 and become owners when the owner is
#: deleted; these never do while their origin is in the archive.
HANDED_OVER = 2


class Descent(Struct, frozen=True):
    """Another session that one was made from, or that was made from it."""

    agent: str
    native_id: str
    relation: str  # forked_from: in the same agent | converted_from: for another one | repaired_from
    upto: int | None = None  # the last turn that was handed over, from 0
    messages: int = 0  # number of messages that the new session began with


def descents(rows: Iterable[KeptRow], agent: str) -> list[Descent]:
    """Decode the kept rows about sessions of an agent."""
    return [msgspec.json.decode(row.value, type=prepared(Descent)) for row in rows if row.agent == agent]


#: `begun`: before a tool runs; `ended`, `failed`: after it; `batch`: after all calls of one response; `session`: no call.
PHASES = ("begun", "ended", "failed", "batch", "session")


class HookEvent(Struct, frozen=True):
    """An event as reported to the hook. A batch has one row for each of its calls."""

    session: str  # native id
    ref: str  # the call id, or a mark made of time and process
    event: str  # the agent's name for it
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
    own: int | None = None  # id of the archived session with the call; NULL: only the hook has seen it
