"""Repair a session that no longer opens."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

import click

from everturn import clock
from everturn.cli import frame
from everturn.text.printable import plural

if TYPE_CHECKING:
    from everturn.model.archive import Session
    from everturn.resume.diagnosis import BrokenSession, Diagnosis, DiagnosisFinding
    from everturn.resume.handoff import NativeOptions, NativePlan

_CODES = {"sound": 0, "mendable": 1, "lossy": 4, "irrecoverable": 4}
_MOST_FINDINGS = 40  # findings printed one by one


@frame.command(
    "everturn repair 3f2a9c --check    only say what is wrong",
    "everturn repair 3f2a9c",
    "everturn repair ~/Downloads/broken.jsonl",
    "everturn repair broken.jsonl --print > repaired.jsonl",
)
@click.argument("wanted", metavar="SESSION|FILE")
@click.option(
    "--check", is_flag=True, help="Write nothing; exit code 0: intact, 1: can be repaired, 4: something is lost."
)
@click.option("--print", "only_print", is_flag=True, help="Print the repaired session instead of writing it.")
@click.option("--in", "agent", default="", metavar="AGENT", help="Make it a session of this agent.")
@click.option(
    "--of", "native_id", default="", metavar="ID", help="Where a file holds records of several sessions: this one."
)
@click.option("--as", "source", default="", metavar="SOURCE", help="Read FILE as this source (`everturn sources`).")
@click.option("--force", is_flag=True, help="Make a new session even if nothing is wrong.")
def command(cx: frame.CommandContext, wanted: str, **options: Any) -> int:
    """Find what is wrong with SESSION, or a FILE of one, and make a new session of all that can be saved.

    The broken file is not touched. What it has lost is filled in from older versions of it in the archive; a file that is
    gone comes back from there altogether. Words go over as they are, secrets included. Exit code 4 when some are lost.
    """
    from everturn.resume.diagnosis import diagnose_session

    patient, session = _find_broken(cx, wanted, options)
    with diagnose_session(patient, cx.places(), clock.now()) as diagnosis:
        if options["check"]:
            _report(cx, diagnosis, None)
            return _CODES[diagnosis.state]
        if diagnosis.state == "sound" and not (options["force"] or options["only_print"]):
            _report(cx, diagnosis, None)
            return 0
        return _write_repair(cx, diagnosis, session, options)


def _find_broken(
    cx: frame.CommandContext, wanted: str, options: dict[str, Any]
) -> tuple[BrokenSession, Session | None]:
    """Return the copies to repair, and the session if it is in the archive."""
    from everturn.resume.repair import copies_for_other_session, copies_of_file, copies_of_session, session_in

    path, machine = Path(wanted), cx.settings.machine
    session: Session | None = None
    if os.sep in wanted or path.is_file():
        if not cx.settings.is_missing and not options["source"]:
            session = session_in(cx.store(), machine, path)
    else:
        session = cx.session(wanted)
    if session is None:
        patient = copies_of_file(cx.sources, path, options["source"])
    else:
        patient = copies_of_session(cx.store(), cx.sources, session, machine)
    return (copies_for_other_session(patient, options["native_id"]) if options["native_id"] else patient), session


def _write_repair(
    cx: frame.CommandContext, diagnosis: Diagnosis, session: Session | None, options: dict[str, Any]
) -> int:
    from everturn.resume.handoff import write_native
    from everturn.resume.repair import plan_repair

    if diagnosis.refused and cx.json:
        _report(cx, diagnosis, None)
    plan = plan_repair(diagnosis, cx.sources, _native_options(cx, diagnosis, options["agent"]))
    if options["only_print"]:
        for note in _notes(diagnosis, plan):
            cx.out.say(note)
        cx.out.emit_bytes(plan.content)
    else:
        assert diagnosis.session is not None
        write_native(diagnosis.store if cx.settings.is_missing else cx.store(), session or diagnosis.session, plan)
        _report(cx, diagnosis, plan)
    return 4 if diagnosis.state == "lossy" else 0


def _native_options(cx: frame.CommandContext, diagnosis: Diagnosis, agent: str) -> NativeOptions:
    from everturn.resume.handoff import NativeOptions, agent_named

    source, session = diagnosis.patient.source, diagnosis.session
    target = agent_named(cx.sources, agent) if agent else source
    held = diagnosis.store.session(session.id)[1].workspace if session is not None else ""
    folder = "" if os.path.isdir(held) else os.getcwd()
    if folder and session is not None and not diagnosis.refused:
        cx.out.warn(f"the session's folder does not exist ({held or 'unknown'}); it continues in {folder}")
    return NativeOptions(
        target, cx.places(), clock.new_id(), clock.now(), cx.settings.data / "handed-over", folder, is_repair=True
    )


# output ---------------------------------------------------------------------------------------------------------------
def _report(cx: frame.CommandContext, diagnosis: Diagnosis, plan: NativePlan | None) -> None:
    if cx.json:
        cx.out.emit_json("repair", diagnosis.findings, **_facts(diagnosis, plan))
        return
    for finding in diagnosis.findings[:_MOST_FINDINGS]:
        cx.out.emit(cx.out.text(_finding_line(finding, "mendable" if plan is None else "mended")))
    for note in _notes(diagnosis, plan):
        cx.out.say(note)
    if plan is not None:
        cx.out.say(f"wrote {plan.path} ({len(plan.content):,} bytes)")

        commands = [["cd", plan.new.workspace], plan.take_in, plan.command]
        cx.out.emit(cx.out.text(" && ".join(join(words) for words in commands if words and words[-1])))


def _finding_line(finding: DiagnosisFinding, mended: str) -> str:
    where = f"{finding.copy} bytes {finding.start:,}-{finding.start + finding.size:,}"
    return f"{'LOST' if finding.lost else mended:<8}  {where}  {finding.kind}: {finding.note}"


def _notes(diagnosis: Diagnosis, plan: NativePlan | None) -> list[str]:
    findings = diagnosis.findings
    lost = sum(finding.lost for finding in findings)
    state = {
        "sound": "nothing is wrong with it; `everturn resume` opens it",
        "mendable": f"{plural(len(findings), 'finding')}, no words are lost",
        "lossy": f"{plural(len(findings), 'finding')}, words are lost by {lost:,}",
        "irrecoverable": f"it cannot be repaired: {diagnosis.refused}",
    }[diagnosis.state]
    found = [f"{diagnosis.patient.found.path}: {state}"]
    if len(findings) > _MOST_FINDINGS:
        kinds = Counter(finding.kind for finding in findings)
        found.append("in all: " + ", ".join(f"{n:,} {kind}" for kind, n in kinds.most_common()))
    return found + (plan.history.notes if plan is not None else [])


def _facts(diagnosis: Diagnosis, plan: NativePlan | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "state": diagnosis.state,
        "refused": diagnosis.refused or None,
        "agent": diagnosis.patient.source.name,
        "session": diagnosis.patient.native_id,
        "path": str(diagnosis.patient.found.path),
        "new": None,
    }
    if plan is not None:
        commands = [words for words in (plan.take_in, plan.command) if words]
        new = {"agent": plan.source.name, "session": plan.new.id, "path": str(plan.path), "commands": commands}
        facts["new"] = {**new, "workspace": plan.new.workspace, "notes": plan.history.notes}
    return facts
