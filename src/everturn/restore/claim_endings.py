"""Hold the success that a statement tells of against the only thing it cites: a run that failed, or an interruption."""

from __future__ import annotations

import re
from collections.abc import Iterator

from everturn.model.archive import MessageRow
from everturn.restore.claim_acts import ClaimedAct
from everturn.restore.claim_record import RecordedRun, act_record, command_kinds, has_failed
from everturn.restore.evidence import quote_short
from everturn.restore.grounds import Ground

_SUCCESSES = ("pass", "push", "merge", "commit", "pr", "tag", "release", "deploy", "install")
_BROKEN_OFF = re.compile(
    r"\b(?:interrupted|aborted|turn_aborted|hit your (?:usage )?limit|rate limit|(?:an|the) (?:issue|error|problem) with|may not exist|not found|(?:may|do) not have access|API error)\b",
    re.I,
)
_MAX_CHARS = 4_000


def find_ending_faults(ground: Ground, text: str, acts: list[ClaimedAct], cited: list[MessageRow]) -> Iterator[str]:
    """Report that something is said to have succeeded whose run, the only thing that is cited, failed or was broken off."""
    if not cited or any(act.kind == "fail" or act.denied for act in acts):
        return
    if not any(act.kind in _SUCCESSES for act in acts):
        return
    for row in cited:
        if row.kind == "notification" and has_failed(ground.text(row)):
            yield f"message {row.seq + 1} reports a failure"
            return
    if all(_is_failure(ground, row) for row in cited):
        yield f"message {cited[0].seq + 1} reports a failure or an interruption"
    runs = _runs_meant(ground, acts, {row.seq for row in cited})
    if runs and all(one.failed for one in runs):
        yield f"{quote_short(runs[-1].command)} failed in turn {runs[-1].turn + 1}"


def _is_failure(ground: Ground, row: MessageRow) -> bool:
    """Whether a message that nobody wrote says that something failed or was broken off."""
    if row.origin in ("human", "model") or ground.is_person(row):
        return False
    text = ground.text(row)[:_MAX_CHARS]
    return bool(_BROKEN_OFF.search(text)) if row.origin != "tool" else _has_no_call(ground, row) and has_failed(text)


def _has_no_call(ground: Ground, row: MessageRow) -> bool:
    return not any(row.seq in (one.seq, one.result_seq) for one in act_record(ground).deeds.runs)


def _runs_meant(ground: Ground, acts: list[ClaimedAct], seqs: set[int]) -> list[RecordedRun]:
    """Return the cited runs if they all failed, else those of commands that do what is told."""
    runs = [one for one in act_record(ground).deeds.runs if one.seq in seqs or one.result_seq in seqs]
    if all(one.failed for one in runs):
        return runs
    kinds = {act.kind for act in acts}
    return [one for one in runs if kinds & {kind for kind, _ in command_kinds(one.command[:_MAX_CHARS])}]
