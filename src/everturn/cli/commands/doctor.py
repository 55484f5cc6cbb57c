"""Check that everything works and that nothing is about to be lost."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everturn import clock
from everturn.analytics import cost
from everturn.cli import frame
from everturn.cli.commands.forget import retention_rules
from everturn.cli.commands.install import installable_agents, program_command, record_folder
from everturn.cli.commands.sync import folder_options, search_places
from everturn.cli.meaning_options import embedder_of, existing_vectors, is_wanted, vectors_path
from everturn.errors import EverturnError
from everturn.maintenance.retention import expired_sessions
from everturn.store.cipher import CIPHER
from everturn.text.printable import plural

if TYPE_CHECKING:
    from everturn.maintenance.doctor import HealthReport
    from everturn.store.contract import Store


_PATIENCE = 20  # seconds for the MCP server to answer


@frame.command("everturn doctor", "everturn doctor --json")
@folder_options
def command(cx: frame.CommandContext, **folders: Any) -> int:
    """Prove health by writing, reading and searching; report drift, quarantine, and what an agent will soon delete.

    For each agent that everturn is installed into: whether its hooks are in place and fire, and whether the MCP server answers.

    Exit code 1 if something is wrong, 4 if something needs attention.
    """
    from everturn.maintenance.doctor import examine_archive

    store = cx.store(create=True)
    folder = None if cx.settings.db.startswith(("postgres", "memory:")) else Path(cx.settings.db).parent
    places = search_places(cx, folders)
    doctor = examine_archive(store, cx.sources, places, cx.settings.machine, folder, clock.now)
    _check_integrations(cx, store, doctor)
    _check_encryption(cx, store, doctor)
    _check_retention(cx, store, doctor)
    _check_meaning(cx, store, doctor)
    _check_prices(cx, doctor)
    sizes = store.sizes()
    if cx.json:
        cx.out.emit_json("doctor", [asdict(check) for check in doctor.checks], worst=doctor.worst, sizes=sizes)
    else:
        for check in doctor.checks:
            mark = {"ok": "ok  ", "warn": "LOOK", "bad": "BAD "}[check.level]
            cx.out.emit(f"{mark} {cx.out.text(check.name)}: {cx.out.text(check.text)}")
            if check.advice and check.level != "ok":
                cx.out.emit(f"     → {cx.out.text(check.advice)}")
        parts = ", ".join(f"{name} {size / 1e6:,.1f} MB" for name, size in sizes.items())
        cx.out.emit(f"     {cx.out.text(cx.settings.db)}: {parts}")
    return {"ok": 0, "warn": 4, "bad": 1}[doctor.worst]


def _check_integrations(cx: frame.CommandContext, store: Store, doctor: HealthReport) -> None:
    """Check the agents that everturn is installed into: their hooks, and the MCP server that they start."""
    from everturn.install.plan import changed_files, read_record
    from everturn.maintenance.doctor import Integration, check_integrations

    found = []
    for name in installable_agents():
        source, record = cx.sources[name], read_record(record_folder(cx), name)
        if record is not None and source.install is not None:
            found.append(
                Integration(name, source.title, record.at, tuple(changed_files(record)), source.install.remark)
            )
    check_integrations(doctor, store, found, clock.now())
    if found:
        trouble = _ask_server([*program_command("everturn"), "mcp", "--db", cx.settings.db])
        if trouble:
            doctor.note("MCP server", "bad", trouble, "run `everturn mcp` in a terminal; it says what is wrong")
        else:
            doctor.note("MCP server", "ok", "it starts and answers")


def _ask_server(command: list[str]) -> str:
    """Start the MCP server as an agent does and greet it; return what is wrong, or ""."""
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "doctor", "version": "1"}}
    greeting = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    try:
        done = subprocess.run(
            command, input=f"{greeting}\n".encode(), capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.SubprocessError) as failure:
        return f"it does not answer: {type(failure).__name__}"
    try:
        answer = json.loads(done.stdout.split(b"\n", 1)[0])
    except ValueError:
        return f"it does not answer (exit code {done.returncode})"
    return "" if isinstance(answer, dict) and "result" in answer else "it refuses the greeting of a client"


def _check_encryption(cx: frame.CommandContext, store: Store, doctor: HealthReport) -> None:
    """Check that nothing of an encrypted archive is left in plain text, as far as it is known."""
    from everturn.maintenance.encryption import plain_databases

    if not cx.is_encrypted:
        return
    known = cx.settings.encryption
    doctor.note("encryption", "ok", f"{CIPHER}, with the key from {known.key}")
    backups = [row.key for row in store.kept("backup")]
    if plain := plain_databases(Path(cx.settings.db), vectors_path(cx, store), backups):
        text = f"not encrypted: {', '.join(map(str, plain))}"
        doctor.note("encryption", "warn", text, "run `everturn encrypt` again, or delete them")
    if known.previous:
        text = f"some files may still have the key from {known.previous}"
        doctor.note("encryption", "warn", text, "run `everturn rekey` to complete it")


def _check_retention(cx: frame.CommandContext, store: Store, doctor: HealthReport) -> None:
    """Report what is older than the rules keep it. Without rules there is nothing to say."""
    try:
        rules = retention_rules(cx)
    except EverturnError as error:
        doctor.note("retention", "bad", str(error), "nothing is erased until the rule is fixed")
        return
    if rules.shortest is not None:
        found = len(expired_sessions(store, rules, clock.now()))
        text = f"{plural(found, 'session')} older than your rules keep them"
        doctor.note("retention", "ok", text + ("; the next sync of the day erases them" if found else ""))


def _check_prices(cx: frame.CommandContext, doctor: HealthReport) -> None:
    """Check the user's own prices: a list that cannot be read stops `everturn stats`."""
    own = cx.settings.prices
    if not own.is_file():
        return
    try:
        models = len(cost.models_of(own))
    except EverturnError as error:
        doctor.note("prices", "warn", str(error), f"fix {own} or remove it: everturn has its own list")
    else:
        doctor.note("prices", "ok", f"{own} has the prices of {models:,} model names")


def _check_meaning(cx: frame.CommandContext, store: Store, doctor: HealthReport) -> None:
    """Check how much of the archive has vectors of the configured model. Having none is fine."""
    try:
        vectors = existing_vectors(cx, store)
        if not is_wanted(cx):
            if vectors is not None:
                text = f"{vectors.path} holds vectors, and [meaning] names no model or is disabled: they are not used"
                doctor.note("meaning", "ok", text)
            return
        embedder = embedder_of(cx)
    except EverturnError as error:
        doctor.note("meaning", "warn", str(error), "until then, searches use words only")
        return
    from everturn.retrieval.meaning import SCHEME, coverage

    found = coverage(store, embedder, vectors)
    text = (
        f"{plural(found.vectors, 'vector')} of {embedder.name} ({embedder.dimensions} numbers, scheme {SCHEME}); "
        f"{found.complete:,} of {plural(found.sessions, 'session')} complete, {found.stale:,} stale and not used"
    )
    more = "" if found.complete == found.sessions else "; `everturn sync --meaning` makes the rest"
    doctor.note("meaning", "ok", f"{text}{more} (subagents included)")
