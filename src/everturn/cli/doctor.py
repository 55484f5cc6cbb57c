"""Check that everything works and that nothing is about to be lost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from everturn import clock
from everturn.cli import capturing, frame


@click.command(epilog=frame.examples("everturn doctor", "everturn doctor --json"))
@capturing.folder_options
@frame.common
def command(cx: frame.Context, **folders: Any) -> int:
    """Prove health by writing, reading and searching; report drift, quarantine, and what an agent will soon delete.

    Exit code 1 if something is wrong, 4 if something deserves a look.
    """
    from everturn.capture.health import examine
    from everturn.sources import all_sources

    store = cx.store(create=True)
    folder = None if cx.settings.db.startswith(("postgres", "memory:")) else Path(cx.settings.db).parent
    places = capturing.places_with(cx, folders)
    doctor = examine(store, all_sources(), places, cx.settings.machine, folder, clock.now)
    sizes = store.sizes()
    if cx.json:
        cx.out.emit_json("doctor", [asdict(check) for check in doctor.checks], worst=doctor.worst, sizes=sizes)
    else:
        for check in doctor.checks:
            mark = {"ok": "ok  ", "warn": "LOOK", "bad": "BAD "}[check.level]
            cx.out.emit(f"{mark} {cx.out.text(check.name)}: {cx.out.text(check.text)}")
            if check.advice and check.level != "ok":
                cx.out.emit(f"     → {check.advice}")
        parts = ", ".join(f"{name} {size / 1e6:,.1f} MB" for name, size in sizes.items())
        cx.out.emit(f"     {cx.settings.db}: {parts}")
    return {"ok": 0, "warn": 4, "bad": 1}[doctor.worst]
