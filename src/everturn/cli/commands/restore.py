"""Restore a session as a document a fresh agent can work from, each statement with evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec
from msgspec import structs

from everturn.cli import frame
from everturn.errors import NoArchive, PartlyFailed
from everturn.restore.document import LEAST
from everturn.text.printable import to_json
from everturn.text.times import iso

if TYPE_CHECKING:
    from collections.abc import Callable

    from everturn.restore.job import RestoreTarget

Options = dict[str, Any]  # of the command
Made = TypeVar("Made")


@frame.command(
    "everturn restore @last",
    "everturn restore 3f2a9c --budget 2000 --out HANDOVER.md",
    "everturn restore recording.typescript --format json",
    "everturn restore @last --dump-turns",
    "everturn restore @last --model local",
    "everturn restore @last --model local --workspace .",
    reveal=True,
)
@click.argument("target")
@click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Only the first N turns.")
@click.option("--skip-evidence-search", is_flag=True, help="With a model: do not let it search the session.")
@click.option(
    "--max-searches", type=click.IntRange(0), default=8, show_default=True, metavar="N",
    help="With a model: how often it may search the session.",
)  # fmt: skip
@click.option("--dump-turns", is_flag=True, help="A summary of each turn instead of one of the session.")
@click.option("--model", default="", metavar="NAME", help="Let this configured model write it. Default: no model.")
@click.option("--format", "form", type=click.Choice(("md", "json")), default="md", show_default=True, help="The form.")
@click.option("-o", "--out", "path", default="", metavar="FILE", help="The output file. Default: stdout (-).")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option(
    "--budget", type=click.IntRange(0), default=4000, show_default=True, metavar="TOKENS",
    help="The longest result; 0 is no limit.",
)  # fmt: skip
@click.option(
    "--prompt-dir", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="With a model: take the prompts from here.",
)  # fmt: skip
@click.option(
    "--workspace", type=click.Path(exists=True, file_okay=False, resolve_path=True), metavar="DIR",
    help="With a model: let it search and read the files in DIR. Without this it reads none.",
)  # fmt: skip
@click.option("--include-header", is_flag=True, help="Include when, where and with which agent it was held.")
def command(cx: frame.CommandContext, target: str, form: str, path: str, force: bool, **options: Any) -> int:
    """Restore TARGET: what was wanted, decided and changed, what still fails, what is open and what comes next.

    TARGET is a session (an id, any unique prefix, @last) or a file: a transcript, or a recording of a terminal. A
    file that is not in the archive is only read. Every statement names turn and message, and is checked against them.

    Exit code 4 when a model was named and some of its part is missing: the document is whole without it, and says so.
    """
    if 0 < options["budget"] < LEAST:
        raise click.UsageError(
            f"--budget {options['budget']} is too small: the headings alone need {LEAST}; 0 is no limit"
        )
    if options["workspace"] and not options["model"]:
        raise click.UsageError("--workspace is for a model: add --model NAME")
    found = _find_target(cx, target)
    try:
        for note in found.notes:
            cx.out.say(note)
        write = _write_turns if options["dump_turns"] else _write_document
        text, is_complete = write(cx, found, {**options, "form": "json" if cx.json else form})
    finally:
        if found.temporary:
            found.store.close()
    _write_text(cx, text, path, force)
    return 0 if is_complete else PartlyFailed.exit_code


def _find_target(cx: frame.CommandContext, name: str) -> RestoreTarget:
    from everturn.capture.policy import Policy
    from everturn.cli.commands.sync import make_sync_job
    from everturn.restore.job import find_target

    store = None if cx.settings.is_missing else cx.store()
    places = cx.places()
    if store is None and name.startswith("@"):
        raise NoArchive(cx.settings.db)
    # A file that is named is read as it is: the rules say what the archive keeps, and nothing is kept here.
    return find_target(name, store, lambda into: replace(make_sync_job(cx, into, places), policy=Policy()))


def _write_document(cx: frame.CommandContext, target: RestoreTarget, options: Options) -> tuple[str, bool]:
    """Return the document as text, and whether a model wrote all that it was asked for."""
    from everturn.restore.job import restore_session
    from everturn.restore.markdown import document_json, document_markdown

    document = _run_job(cx, target, options, restore_session)
    for note in document.notes if document.missing else ():
        cx.out.warn(note)
    document = structs.replace(document, notes=(*document.notes, *target.notes))
    facts = {name: cx.out.text(str(value)) for name, value in _header(target).items() if options["include_header"]}
    if options["form"] == "json":
        made = document_json(document, cx.out.clean, options["budget"], **({"header": facts} if facts else {}))
        return _json_text(cx, "restore", [made], made), not document.missing
    header = "\n".join(f"{name}: {value}" for name, value in facts.items())
    return document_markdown(document, cx.out.clean, options["budget"], header), not document.missing


def _write_turns(cx: frame.CommandContext, target: RestoreTarget, options: Options) -> tuple[str, bool]:
    """Return the turns as text, and whether a model summarised all of them if one was named."""
    from everturn.restore.job import restore_turns
    from everturn.restore.turns import as_items, as_text

    reports = _run_job(cx, target, options, restore_turns)
    for note in reports.notes:
        cx.out.warn(note)
    if options["form"] != "json":
        return "\n".join(as_text(reports.turns, cx.out.clean)), not reports.notes
    items = list(as_items(reports.turns, cx.out.clean))
    alone = {"session": target.session.native_id, "turns": items}
    return _json_text(cx, "restore-turns", items, alone), not reports.notes


def _run_job(cx: frame.CommandContext, target: RestoreTarget, options: Options, job: Callable[..., Made]) -> Made:
    """Run a job with a progress bar. If it asks a model, show the cost."""
    from everturn.restore.job import RestoreOptions, open_asker

    asker, searches = None, options["max_searches"]
    if options["model"]:
        asker = open_asker(target.store, target.session, cx.open_backend(options["model"]), searches)
    choices = RestoreOptions(
        options["max_turns"],
        options["skip_evidence_search"],
        searches,
        str(options["prompt_dir"] or ""),
        options["workspace"] or "",
    )
    with cx.out.progress("turn", target.session.n_turns) as step:
        made = job(target, cx.sources, choices, asker, lambda done, total: step(done, total=total))
    if asker is not None:
        used = asker.tokens_spent
        cx.out.say(
            f"asked {len(asker.receipts):,} times: {used.input:,} tokens in, {used.output:,} out ({used.source})"
        )
    return made


def _header(target: RestoreTarget) -> dict[str, Any]:
    session, text = target.session, target.store.session(target.session.id)[1]
    facts = {
        "Session": session.native_id,
        "Agent": session.agent,
        "Client": session.client,
        "Model": session.model,
        "Working folder": text.workspace,
        "Branch": text.branch,
        "Started": iso(session.started) if session.started is not None else "",
        "Ended": iso(session.ended) if session.ended is not None else "",
        "Turns": session.n_turns,
        "Messages": session.n_messages,
        "Calls": session.n_calls,
        "Errors": session.n_errors,
    }
    return {name: value for name, value in facts.items() if value != ""}


def _json_text(cx: frame.CommandContext, name: str, items: list[Any], alone: Any) -> str:
    """Return one line in the envelope of every command with `--json`; else the bare value, indented."""
    if cx.json:
        return to_json({"schema": f"everturn/{name}@1", "items": items, "next": None})
    return msgspec.json.format(to_json(alone), indent=2)


def _write_text(cx: frame.CommandContext, text: str, path: str, force: bool) -> None:
    if path in ("", "-"):
        cx.out.emit(text.rstrip("\n"))
        return
    from everturn.cli.commands.export import write_file

    size = write_file(Path(path), [text.encode("utf-8", "replace")], force)
    cx.out.say(f"wrote {size:,} bytes to {path}")
