"""Really erase a session, everywhere, for good."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everturn import clock
from everturn.cli import frame
from everturn.text.printable import plural

if TYPE_CHECKING:
    from everturn.maintenance.forget import ForgetReport
    from everturn.store.contract import Store


@frame.command("everturn forget 3f2a9c", "everturn forget @last --yes", "everturn forget 3f2a9c --dry-run")
@click.argument("session")
@click.option("--keep-forks", is_flag=True, help="Leave copies of its messages in sessions that were forked from it.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say what would be erased.")
def command(cx: frame.CommandContext, session: str, keep_forks: bool, yes: bool, dry_run: bool) -> int:
    """Erase SESSION with its subagents, every version, its index, its vectors and copies of its messages in forks.

    Afterwards no byte of it is left in the archive, and a later sync does not bring it back. The agent's own file is not
    touched: delete it yourself if it is still there.
    """
    from everturn.capture.spool import drain_spool
    from everturn.capture.writer import ArchiveWriter, find_offspring
    from everturn.cli.meaning_options import vectors_to_erase
    from everturn.cli.output import in_one_line
    from everturn.maintenance.forget import forget_session, plan_forget
    from everturn.sessions.lookup import resolve_session
    from everturn.sources.contract import all_sources

    store = cx.store()
    row = resolve_session(store, session)
    doomed = plan_forget(store, row)
    text = store.session(row.id)[1]
    title = in_one_line(cx.out, text.title or text.first_prompt, 80)
    cx.out.say(
        f"{row.native_id} {title}: {plural(len(doomed), 'session')}, {plural(sum(one.n_messages for one in doomed), 'message')}"
    )
    if dry_run:
        if cx.json:
            cx.out.emit_json("forget", [one.native_id for one in doomed], dry_run=True)
        return 0
    if not yes and not click.confirm("Erase this for good?", err=True):
        raise click.Abort
    desk = ArchiveWriter(store, cx.settings.machine, cx.settings.owner, clock.now())
    drain_spool(store, cx.settings.state / "spool")  # its paths must not stay there
    handed = [one.native_id for one in doomed]
    handed += [one.native_id for one in find_offspring(store, doomed) if not keep_forks]
    done = forget_session(desk, all_sources(), row, keep_forks, vectors_to_erase(cx, store))
    done.still_there = [path for path in done.files if Path(path).exists()]
    copies = _erase_copies(cx) + _erase_saved(cx, done.sessions) + _erase_handoffs(cx, handed)
    if cx.json:
        cx.out.emit_json("forget", done.sessions, forgotten=asdict(done), copies=copies)
    else:
        _print_report(cx, store, done, copies)
    return 0


def _print_report(cx: frame.CommandContext, store: Store, done: ForgetReport, copies: list[str]) -> None:
    cx.out.emit(f"erased {len(done.sessions)} sessions and {done.forked_messages} copied messages in forks")
    for path in copies:
        cx.out.emit(f"erased our own copy {path}")
    for path in done.still_there:
        cx.out.warn(f"the agent's own file is still there: {cx.out.text(path)}")
    for kept in store.kept("backup"):
        cx.out.warn(f"a backup may still hold it: {cx.out.text(kept.key)}")
    for name in done.kept_in:
        cx.out.warn(f"copies of its messages stay in {name} (--keep-forks)")


def _erase_copies(cx: frame.CommandContext) -> list[str]:
    """Erase copies made before migrations, and answers prepared for hooks: both may contain the session."""
    from everturn.capture.hook_answer import clear

    database = Path(cx.settings.db)
    erased = []
    for path in sorted(database.parent.glob(f"{database.name}.before-*")) if database.is_file() else []:
        path.unlink()
        erased.append(str(path))
    return erased + clear(str(cx.settings.state / "context"))


def _erase_handoffs(cx: frame.CommandContext, names: list[str]) -> list[str]:
    """Erase files that were written only to hand a session to an agent."""
    paths = [path for path in (cx.settings.data / "handed-over").glob("*") if path.stem in names]
    for path in paths:
        path.unlink()
    return [str(path) for path in paths]


def _erase_saved(cx: frame.CommandContext, sessions: list[str]) -> list[str]:
    """Erase the Markdown files of `everturn chat`."""
    from everturn.chat.earlier_sessions import erase_saved

    folder = cx.settings.data / "chats"
    return [f"{name} in {folder}" for name in sessions if folder.is_dir() and erase_saved(folder, name)]
