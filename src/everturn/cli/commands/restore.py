"""Bring a session back: a document a fresh agent can work from, each statement with its proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from everturn.cli import frame
from everturn.errors import NoArchive, PartlyFailed

if TYPE_CHECKING:
    from everturn.restore.job import RestoreTarget


@click.command(
    epilog=frame.examples(
        "everturn restore @last",
        "everturn restore 3f2a9c --budget 2000 --out HANDOVER.md",
        "everturn restore recording.typescript --format json",
        "everturn restore @last --dump-turns",
        "everturn restore @last --model local",
    )
)
@click.argument("target")
@click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Only the first N turns.")
@click.option("--skip-evidence-search", is_flag=True, help="With a model: do not let it search the session.")
@click.option(
    "--max-searches", type=click.IntRange(0), default=8, show_default=True, metavar="N",
    help="With a model: how often it may search the session.",
)  # fmt: skip
@click.option("--dump-turns", is_flag=True, help="A summary of each turn instead of one of the session.")
@click.option("--model", default="", metavar="NAME", help="Let this model of the config write it; else none is asked.")
@click.option("--format", "form", type=click.Choice(("md", "json")), default="md", show_default=True, help="The form.")
@click.option("-o", "--out", "path", default="", metavar="FILE", help="Where to write; - is stdout, and so is nothing.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option(
    "--budget", type=click.IntRange(0), default=4000, show_default=True, metavar="TOKENS",
    help="How long it may be; 0 is no limit.",
)  # fmt: skip
@click.option(
    "--prompt-dir", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="With a model: take the prompts from here.",
)  # fmt: skip
@click.option("--include-header", is_flag=True, help="Also when, where and with what the session was held.")
@frame.common(reveal=True)
def command(cx: frame.CommandContext, target: str, form: str, path: str, force: bool, **wanted: Any) -> int:
    """Restore TARGET: what was wanted, decided and changed, what still fails, what is open and what comes next.

    TARGET is a session (an id, any unique beginning of one, @last) or a file: a transcript, or a recording of a terminal. A
    file that is not in the archive is only read. Every statement names turn and message, and is checked against them.

    Exit code 4 when a model was named and some of its part is missing: the document is whole without it, and says so.
    """
    from everturn.cli.restore_options import write_restoration
    from everturn.restore.document import LEAST

    if 0 < wanted["budget"] < LEAST:
        raise click.UsageError(
            f"--budget {wanted['budget']} is too small: the headings alone need {LEAST}; 0 is no limit"
        )
    found = _find_target(cx, target)
    try:
        for note in found.notes:
            cx.out.say(note)
        text, is_whole = write_restoration(cx, found, {**wanted, "form": "json" if cx.json else form})
    finally:
        if found.temporary:
            found.store.close()
    _write_text(cx, text, path, force)
    return 0 if is_whole else PartlyFailed.exit_code


def _find_target(cx: frame.CommandContext, wanted: str) -> RestoreTarget:
    from everturn.capture.policy import Policy
    from everturn.cli.sync_report import job_for
    from everturn.restore.job import find_target

    store = None if cx.settings.is_missing else cx.store()
    places = cx.places()
    if store is None and wanted.startswith("@"):
        raise NoArchive(cx.settings.db)
    # A file that is named is read as it is: the rules say what the archive keeps, and nothing is kept here.
    return find_target(wanted, store, lambda into: replace(job_for(cx, into, places), policy=Policy()))


def _write_text(cx: frame.CommandContext, text: str, path: str, force: bool) -> None:
    if path in ("", "-"):
        cx.out.emit(text.rstrip("\n"))
        return
    from everturn.cli.commands.export import write_file

    size = write_file(Path(path), [text.encode("utf-8", "replace")], force)
    cx.out.say(f"wrote {size:,} bytes to {path}")
