"""Turn summaries by a model: one request for each turn, with the summary before it and the totals so far.

The goal is set once. Decisions, constraints and artifacts accumulate; the latest list of open questions counts. A turn
that cannot be summarised is skipped with a reason. Each summary is kept at once under the hash of the turn's bytes, the
version of the prompt and the model: an interrupted run continues, and a second run makes no requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import blake2b

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from everturn.derive.decisions import likeness
from everturn.errors import Busy, ModelError, NoSpace, OverBudget
from everturn.llm.asker import Asker
from everturn.llm.protocol import Receipt
from everturn.model.archive import KeptRow, Session
from everturn.model.conversation import prepared
from everturn.recall.answer import entries_of, indent_text
from everturn.recall.budget import fit_entries
from everturn.recall.evidence import MAX_EVIDENCE_SEARCHES
from everturn.restore.grounds import read_citations
from everturn.restore.mechanical import Progress
from everturn.restore.prompts import (
    TURN_HEADER,
    RestorePrompts,
    TurnSummary,
    ask_in_form,
    fill_prompt,
    own_prompts,
    single_message_request,
    turn_summary,
)
from everturn.restore.turns import FIELDS
from everturn.secrets.redaction import redact_text
from everturn.sessions.messages import Records, Sources, TurnView, live_part, read_turns
from everturn.store.contract import Store
from everturn.text.printable import Clean, quote_for_model
from everturn.text.tokens import cut_to_tokens, find_highest, fits_tokens

#: Kind of the kept rows that hold one summary each.
TURN_SUMMARY_KIND = "turn_summary"

_ANSWER = 1200  # tokens
_MOST_FAILURES = 3  # failed requests in a row before the model is given up
_HEARSAY_HEAD = "summary by the client (hearsay, not a fact):"
_FULL = tuple(key for key in FIELDS if key != "turn")
_SHORT = ("request", "outcomes")


class ModelRestoreOptions(Struct, frozen=True):
    max_turns: int | None = None  # only the first so many
    skip_evidence: bool = False
    max_searches: int = MAX_EVIDENCE_SEARCHES
    workspace: str = ""  # folder whose files the model may read; "" for none
    prompt_tokens: int = 32_000  # the longest prompt; less if the model's window is smaller
    native_tools: bool | None = None  # True: tool calls, False: requests in brackets, None: as the backend can
    prompts: RestorePrompts = msgspec.field(default_factory=own_prompts)
    clean: Clean = redact_text
    now: int = 0  # ms UTC, for kept rows
    fresh: bool = False  # ignore kept answers

    @property
    def last(self) -> int | None:
        return None if self.max_turns is None else self.max_turns - 1

    def room(self, asker: Asker, answer: int) -> int:
        """Return the tokens of a prompt for a model that may answer with `answer` tokens."""
        window = asker.backend.window if asker.backend is not None else 0
        return max(1000, min(self.prompt_tokens, window - answer)) if window else self.prompt_tokens


class SummaryTotals(Struct, frozen=True):
    goal: str = ""
    decisions: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()


class TurnSummaries(Struct, frozen=True):
    """All turns of a session, summarised or skipped with a reason. No turn is missing from both."""

    turns: tuple[TurnSummary, ...] = ()
    skipped: dict[int, str] = {}
    state: SummaryTotals = SummaryTotals()
    kept: int = 0  # how many were kept by an earlier run
    receipts: tuple[Receipt, ...] = ()  # of the kept ones
    digest: str = ""  # of the bytes of all turns


def summarise_turns(
    store: Store, sources: Sources, session: Session, asker: Asker, options: ModelRestoreOptions, progress: Progress
) -> TurnSummaries:
    work = _SummaryPass(store, sources, session, asker, options)
    total = len(store.turns(session.id, 0, options.last))
    for whole in read_turns(store, session, 0, options.last):
        if (view := live_part(whole)) is not None:
            work.turn(view, total)
        progress(whole.turn.idx + 1, total)
    return work.result()


def accumulate_summaries(state: SummaryTotals, summary: TurnSummary) -> SummaryTotals:
    """Return the totals after one more summary."""
    return SummaryTotals(
        goal=state.goal or summary.request or "",
        decisions=_add_new(state.decisions, summary.state_changes),
        constraints=_add_new(state.constraints, summary.constraints),
        artifacts=_add_new(state.artifacts, summary.artifacts),
        open_questions=state.open_questions if summary.open_questions is None else summary.open_questions,
    )


def write_summary_text(summary: TurnSummary, fields: Sequence[str] = _FULL) -> str:
    """Return a summary in the form that the model fills in."""
    lines = [f"Turn number: {summary.turn + 1}"]
    for key, label in FIELDS.items():
        value = getattr(summary, key) if key in fields else None
        if value is not None:
            text = value if isinstance(value, str) else "; ".join(value)
            lines.append(f"{label}: {text or 'None'}")
    return "\n".join(lines)


def state_text(state: SummaryTotals, tokens: int) -> str:
    """Return the totals within a budget: the latest entries of each list, and how many were left out."""
    lists = {key: value for key, value in asdict(state).items() if key != "goal"}
    render = partial(_state_lines, cut_to_tokens(state.goal, tokens // 4), lists)
    return render(find_highest(max(map(len, lists.values())), lambda number: fits_tokens(render(number), tokens)))


def all_summaries_text(summaries: TurnSummaries, tokens: int) -> str:
    """Return every summary within a budget: the latest in full, older ones in two lines, the rest as a count."""
    turns = sorted((*summaries.turns, *(TurnSummary(turn) for turn in summaries.skipped)), key=lambda one: one.turn)
    render = partial(_summaries_text, turns, summaries.skipped)
    full = find_highest(len(turns), lambda number: fits_tokens(render(number, len(turns)), tokens))
    if full or fits_tokens(render(0, len(turns)), tokens):
        return render(full, len(turns))
    return render(
        0, find_highest(len(turns), lambda number: fits_tokens(render(0, number), tokens))
    )  # no room for two lines each


def turn_text(store: Store, sources: Sources, session: Session, view: TurnView, tokens: int, clean: Clean) -> str:
    """Return the messages of a turn with their citations within a budget, and how many were cut."""
    entries = [
        replace(one, head=_HEARSAY_HEAD) if one.head == "summary:" else one
        for one in entries_of(store, sources, session, view, clean, quiet=True)
        if one.head != "context:"
    ]
    requests = [number for number, one in enumerate(entries) if one.head == "user:"]
    others = [number for number, one in enumerate(entries) if one.head != "user:"]
    fitted = fit_entries(entries, max(tokens - 60, 100), others[:-1] + requests[1:] + others[-1:] + requests[:1])
    texts = [f"[t{one.turn + 1} #{one.seq + 1}] {one.head}\n{indent_text(one.text)}".rstrip() for one in fitted.entries]
    if fitted.left_out or fitted.cut:
        lost = f"{len(fitted.left_out)} pieces of this turn are left out and {len(fitted.cut)} are shortened"
        texts.insert(0, f"[{lost}: there was no room]")
    return "\n\n".join(texts)


class _SummaryPass:
    def __init__(
        self, store: Store, sources: Sources, session: Session, asker: Asker, options: ModelRestoreOptions
    ) -> None:
        self.store, self.sources, self.session, self.asker, self.options = store, sources, session, asker, options
        self.records = Records(store, sources, session)
        self.known = {
            row.key: row.value for row in store.kept(TURN_SUMMARY_KIND, session.native_id) if row.agent == session.agent
        }
        self.turns: list[TurnSummary] = []
        self.skipped: dict[int, str] = {}
        self.state = SummaryTotals()
        self.model = model_of(asker)
        self.room = options.room(asker, _ANSWER)
        self.receipts: list[Receipt] = []
        self.kept, self.failures, self.stopped = 0, 0, ""
        self.digest = blake2b(digest_size=16)

    def turn(self, view: TurnView, total: int) -> None:
        """Add the next turn, from a kept summary or the model."""
        key = self._kept_key(view)
        kept = None if self.options.fresh else _read_kept(self.known.get(key, ""))
        summary = None
        if kept is not None:
            summary = replace(kept.summary, turn=view.turn.idx)
            self.kept += 1
            self.receipts += kept.receipts
        elif self.stopped:
            self.skipped[view.turn.idx] = self.stopped
        else:
            summary = self._ask_summary(view, total, key)
        if summary is not None:
            self.turns.append(summary)
            self.state = accumulate_summaries(self.state, summary)

    def result(self) -> TurnSummaries:
        return TurnSummaries(
            tuple(self.turns), self.skipped, self.state, self.kept, tuple(self.receipts), self.digest.hexdigest()
        )

    def _kept_key(self, view: TurnView) -> str:
        content = blake2b(f"{view.turn.idx}:{view.turn.first_seq}:".encode(), digest_size=16)
        for row in view.rows:
            content.update(self.records.record(row))
        self.digest.update(content.digest())
        return f"{content.hexdigest()}:{self.options.prompts.turn.version}:{self.model}"

    def _ask_summary(self, view: TurnView, total: int, key: str) -> TurnSummary | None:
        turn, before = view.turn.idx, len(self.asker.receipts)
        request = single_message_request(self._fill_prompt(view, total), _ANSWER)
        try:
            answer = ask_in_form(
                self.asker, request, f"turn {turn + 1}", TURN_HEADER, lambda text: turn_summary(text, turn)
            )
        except ModelError as error:
            self._note_failure(turn, error)
            return None
        self.failures = 0
        if answer.value is None:
            self.skipped[turn] = answer.why
            return None
        self._keep_summary(view, key, _KeptValue(answer.value, list(self.asker.receipts[before:])))
        return answer.value

    def _note_failure(self, turn: int, error: ModelError) -> None:
        self.skipped[turn] = str(error)
        self.failures += 1
        if isinstance(error, OverBudget) or self.failures == _MOST_FAILURES:
            self.stopped = f"not requested: {error.why}"

    def _fill_prompt(self, view: TurnView, total: int) -> str:
        room, clean = self.room, self.options.clean
        before = write_summary_text(self.turns[-1]) if self.turns else "(this is the first one)"
        values = {
            "turn": quote_for_model(turn_text(self.store, self.sources, self.session, view, room * 6 // 10, clean)),
            "number": str(view.turn.idx + 1),
            "total": str(total),
            "previous": quote_for_model(cut_to_tokens(before, room // 10)),
            "state": quote_for_model(state_text(self.state, room // 8)),
        }
        return fill_prompt(self.options.prompts.turn, values)

    def _keep_summary(self, view: TurnView, key: str, value: _KeptValue) -> None:
        """Keep a summary at once, because it cost money. If the archive cannot be written, the pass goes on."""
        turn, session = view.turn, self.session
        covers = {"turn": turn.idx, "first_seq": turn.first_seq, "last_seq": turn.last_seq}
        made = {**covers, "model": self.model, "prompt": self.options.prompts.turn.version, **asdict(value)}
        value_text = msgspec.json.encode(made).decode()
        keep(
            self.store, KeptRow(TURN_SUMMARY_KIND, session.agent, session.native_id, key, value_text, self.options.now)
        )


def model_of(asker: Asker) -> str:
    return (asker.backend.model or asker.backend.name) if asker.backend is not None else ""


def keep(store: Store, row: KeptRow) -> None:
    """Keep a row if the archive can be written now."""
    try:
        with store.write():
            store.keep(row)
    except (Busy, NoSpace):
        pass


class _KeptValue(Struct, frozen=True):
    """The part of a kept row that is read again."""

    summary: TurnSummary
    receipts: list[Receipt] = []


def _read_kept(value: str) -> _KeptValue | None:
    if not value:
        return None
    try:
        return msgspec.json.decode(value, type=prepared(_KeptValue))
    except msgspec.MsgspecError:  # written by another version: make it again
        return None


# --- texts ---
def _add_new(known: tuple[str, ...], new: Iterable[str] | None) -> tuple[str, ...]:
    """Add new entries. A repeated one keeps its first wording, whatever it cites."""
    by_words = {likeness(read_citations(one).text): one for one in known}
    for one in new or ():
        by_words.setdefault(likeness(read_citations(one).text), one)
    return tuple(by_words.values())


def _state_lines(goal: str, lists: dict[str, tuple[str, ...]], most: int) -> str:
    lines = [f"Goal: {goal or 'not known yet'}"]
    for key, entries in lists.items():
        shown = entries[len(entries) - min(most, len(entries)) :]
        left = [f"[{len(entries) - len(shown)} older ones are left out]"] if len(shown) < len(entries) else []
        lines += [f"{key.replace('_', ' ').capitalize()}:", *left, *(f"- {one}" for one in shown)]
        lines += [] if entries else ["- none"]
    return "\n".join(lines)


def _summaries_text(turns: list[TurnSummary], skipped: dict[int, str], full: int, shown: int) -> str:
    """Return the last `full` in full and the others short; of all, the first and last `shown` together."""
    first, last = (shown + 1) // 2, shown // 2
    texts = [_summary_or_gap(one, skipped, number >= len(turns) - full) for number, one in enumerate(turns)]
    if shown < len(turns):
        texts[first : len(texts) - last] = [f"[the summaries of {len(turns) - shown} turns are left out here]"]
    return "\n\n".join(texts)


def _summary_or_gap(one: TurnSummary, skipped: dict[int, str], in_full: bool) -> str:
    if one.turn in skipped:
        return f"Turn number: {one.turn + 1}\n[not summarised; see what is known of the session]"
    return write_summary_text(one, _FULL if in_full else _SHORT)
