"""Rebuild everything derived from the stored bytes."""

from __future__ import annotations

from everturn import clock
from everturn.cli import frame
from everturn.text.printable import plural


@frame.command("everturn rebuild")
def command(cx: frame.CommandContext) -> None:
    """Drop sessions, turns, calls and the index, and make them again from the raw layer.

    Needed only after damage: a newer everturn does it by itself, a part at a time. Nothing you wrote (titles, notes) is touched.
    Vectors stay; those of what is now read in another way are stale and not looked at until they are made again.
    """
    from everturn.capture.writer import ArchiveWriter, rebuild_archive
    from everturn.cli.meaning_options import say_if_there

    store = cx.store()
    desk = ArchiveWriter(store, cx.settings.machine, cx.settings.owner, clock.now())
    with cx.out.progress("rebuild") as step:
        count = rebuild_archive(desk, cx.sources, lambda done, total, path: step(done, path, total))
    sessions, messages = (plural(desk.written[f"{noun}s"], noun) for noun in ("session", "message"))
    line = f"rebuilt from {plural(count, 'file')}: {sessions}, {messages}"
    cx.out.emit_result("rebuild", line, versions=count, written=desk.written)
    say_if_there(
        cx, store, "vectors stay where nothing is read in another way; `everturn doctor` says how many are stale"
    )
