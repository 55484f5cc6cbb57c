"""Erase a session everywhere, permanently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from everturn import clock
from everturn.cli import frame
from everturn.cli.meaning_options import vectors_to_erase
from everturn.cli.output import in_one_line
from everturn.errors import EverturnError, NothingFound, UsageError
from everturn.text.printable import plural
from everturn.text.times import parse_when

if TYPE_CHECKING:
    from everturn.capture.writer import ArchiveWriter
    from everturn.maintenance.forget import ForgetReport
    from everturn.maintenance.retention import RetentionRules
    from everturn.model.archive import Session
    from everturn.store.contract import Store


@frame.command(
    "everturn forget 3f2a9c",
    "everturn forget @last --yes",
    "everturn forget 3f2a9c --turn 4              one turn of it",
    "everturn forget --matching 'hunter2'         every message with these words, and all that was made from it",
    "everturn forget --before 2025-01-01          every session that ended before",
    "everturn forget --retention --dry-run        what is older than your rules keep it",
    "everturn forget 3f2a9c --dry-run",
)
@click.argument("session", required=False, default="")
@click.option("--turn", type=click.IntRange(1), metavar="N", help="Only this turn of SESSION.")
@click.option("--message", type=click.IntRange(1), metavar="N", help="Only this message of SESSION.")
@click.option("--matching", default="", metavar="TEXT", help="Every message, of SESSION or of all, that contains TEXT.")
@click.option("--before", default="", metavar="DATE", help="Every session that ended before.")
@click.option("--retention", is_flag=True, help="Every session that is older than [retention] in the config keeps it.")
@click.option("--keep-forks", is_flag=True, help="Leave copies of its messages in sessions that were forked from it.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="Only say what would be erased.")
def command(
    cx: frame.CommandContext, session: str, before: str, keep_forks: bool, yes: bool, dry_run: bool, **part: Any
) -> int:
    """Erase SESSION with its subagents, every version, its index, its vectors and everything that was made from it.

    Made from it are copies of its messages in forks, and in sessions that continue it the prompt they began with, injected
    states and summaries. Afterwards no byte of it is left in the archive, and a later sync does not bring it back. If this
    is interrupted, the next command completes it. The agent's own file is not touched: delete it yourself if it is still
    there.
    """
    turn, message, matching = part["turn"], part["message"], part["matching"]
    retention = part["retention"]
    if sum(map(bool, (turn, message, matching, before, retention))) > 1 or not (
        session or matching or before or retention
    ):
        raise UsageError(
            "name a session, or one of --matching, --before and --retention; --turn and --message need a session"
        )
    if (turn or message) and not session:
        raise UsageError("--turn and --message need a session")
    if turn or message or matching:
        return _forget_messages(cx, session, turn, message, matching, yes, dry_run)
    rows = _expired_sessions(cx) if retention else _chosen_sessions(cx, session, before)
    return _forget_sessions(cx, rows, keep_forks, yes, dry_run)


def _chosen_sessions(cx: frame.CommandContext, session: str, before: str) -> list[Session]:
    from everturn.sessions.lookup import iterate_sessions
    from everturn.store.contract import SessionFilter

    store = cx.store()
    if not before:
        return [cx.session(session)]
    limit = parse_when(before, clock.now())
    older = iterate_sessions(store, SessionFilter(until=limit))
    found = [row for row in older if (row.ended or row.started or 0) < limit and (row.ended or row.started)]
    if not found:
        raise NothingFound(f"no session ended before {before}")
    return found


def retention_rules(cx: frame.CommandContext) -> RetentionRules:
    """Return the rules of the settings. Raises BadConfig."""
    from everturn.maintenance.retention import RetentionRules

    rules = tuple((rule.path, rule.keep) for rule in cx.settings.workspaces if rule.keep)
    return RetentionRules(cx.settings.keep, rules)


def _expired_sessions(cx: frame.CommandContext) -> list[Session]:
    from everturn.maintenance.retention import expired_sessions

    rules = retention_rules(cx)
    if rules.shortest is None:
        raise NothingFound(
            "no rule limits how long sessions are kept; `everturn config set retention.keep 365d` sets one"
        )
    if not (found := expired_sessions(cx.store(), rules, clock.now())):
        raise NothingFound("no session is older than your rules keep it")
    return found


def apply_retention(cx: frame.CommandContext, store: Store) -> list[str]:
    """Erase the sessions that are older than the rules keep them, once a day; return their ids."""
    from everturn.maintenance.forget import forget_sessions, names_beside, plan_forget
    from everturn.maintenance.retention import expired_sessions, is_due

    rules = retention_rules(cx)
    if rules.shortest is None or not is_due(store, clock.now()):
        return []
    rows = expired_sessions(store, rules, clock.now())
    if not rows:
        return []
    _erase_beside(cx, names_beside(store, [one for row in rows for one in plan_forget(store, row)], keep_forks=False))
    try:
        done = forget_sessions(_desk(cx, store), cx.sources, rows, False, vectors_to_erase(cx, store))
        _erase_beside(cx, done.names)
    except EverturnError as failure:  # recorded: the next command completes it
        cx.out.warn(f"an erasure is not complete yet: {failure}")
    names = [row.native_id for row in rows]
    cx.out.say(f"erased {plural(len(rows), 'session')} that are older than your rules keep them")
    return names


def _forget_sessions(cx: frame.CommandContext, rows: list[Session], keep_forks: bool, yes: bool, dry_run: bool) -> int:
    from everturn.attribution.exports import note_removals
    from everturn.maintenance.forget import forget_sessions, names_beside, plan_forget

    store = cx.store()
    doomed = [one for row in rows for one in plan_forget(store, row)]
    for row in rows:
        text = store.session(row.id)[1]
        cx.out.say(f"{row.native_id} {in_one_line(cx.out, text.title or text.first_prompt, 80)}")
    cx.out.say(f"{plural(len(doomed), 'session')}, {plural(sum(one.n_messages for one in doomed), 'message')}")
    if _is_refused(cx, [one.native_id for one in doomed], yes, dry_run):
        return 0
    desk, removals = _desk(cx, store), note_removals(store, {one.native_id for one in doomed})
    copies = _erase_beside(cx, names_beside(store, doomed, keep_forks))
    done = forget_sessions(desk, cx.sources, rows, keep_forks, vectors_to_erase(cx, store))
    done.still_there = [path for path in done.files if Path(path).exists()]
    _finish(cx, store, done, copies + _erase_beside(cx, done.names), removals)
    return 0


def _forget_messages(
    cx: frame.CommandContext, session: str, turn: int | None, message: int | None, text: str, yes: bool, dry_run: bool
) -> int:
    from everturn.attribution.exports import note_removals
    from everturn.maintenance.forget import find_matching, forget_messages, text_pattern

    store = cx.store()
    row = cx.session(session) if session else None
    pattern = text_pattern(text) if text else None
    if pattern is not None:
        found = [one for one in find_matching(store, pattern) if row is None or one.session == row.id]
    else:
        assert row is not None
        found = [
            one
            for one in store.messages(row.id)
            if (turn is not None and one.turn == turn - 1) or (message is not None and one.seq == message - 1)
        ]
    if not found and (pattern is None or row is not None):
        raise NothingFound("there is no such message")
    names = sorted({store.session(number)[0].native_id for number in {one.session for one in found}})
    cx.out.say(f"{plural(len(found), 'message')} in {plural(len(names), 'session')}")
    if _is_refused(cx, names, yes, dry_run):
        return 0
    whole, removals = pattern if row is None else None, note_removals(store, names)
    copies = _erase_beside(cx, names)
    done = forget_messages(_desk(cx, store), cx.sources, found, whole, vectors_to_erase(cx, store))
    _finish(cx, store, done, copies + _erase_beside(cx, names), removals)
    return 0


def _is_refused(cx: frame.CommandContext, names: list[str], yes: bool, dry_run: bool) -> bool:
    """Return whether only the plan was wanted. Raises Abort if the user says no."""
    if dry_run:
        if cx.json:
            cx.out.emit_json("forget", names, dry_run=True)
        return True
    if not yes and not click.confirm("Erase this permanently?", err=True):
        raise click.Abort
    return False


def _desk(cx: frame.CommandContext, store: Store) -> ArchiveWriter:
    from everturn.capture.spool import drain_spool
    from everturn.capture.writer import ArchiveWriter

    drain_spool(store, cx.settings.state / "spool")  # its paths must not stay there
    return ArchiveWriter(store, cx.settings.machine, cx.settings.owner, clock.now())


def complete_erasures(cx: frame.CommandContext, store: Store) -> None:
    """Complete the erasures that were interrupted, with the files beside the archive. Raises Busy."""
    from everturn.maintenance.forget import finish_erasures, pending_erasures

    names = [name for one in pending_erasures(store) for name in one.names]
    _erase_beside(cx, names)
    finish_erasures(_desk(cx, store), cx.sources, vectors_to_erase(cx, store))
    cx.out.say("an interrupted erasure was completed")


def _erase_beside(cx: frame.CommandContext, names: Sequence[str]) -> list[str]:
    """Erase the files beside the archive that may hold words of these sessions.

    Done before the rows are erased, as nobody knows the names after a kill, and after it, for what was made meanwhile.
    These are copies made before migrations, answers prepared for hooks, which may contain any session, the Markdown files of
    `everturn chat`, and files that were written only to hand a session to an agent.
    """
    from everturn.capture.hook_answer import clear
    from everturn.chat.earlier_sessions import erase_saved

    database, data = Path(cx.settings.db), cx.settings.data
    copies = sorted(database.parent.glob(f"{database.name}.before-*")) if database.is_file() else []
    handed_over = [path for path in (data / "handed-over").glob("*") if path.stem in names]
    for path in (*copies, *handed_over):
        path.unlink()
    prepared, chats = clear(str(cx.settings.state / "context")), data / "chats"
    saved = [f"{name} in {chats}" for name in names if chats.is_dir() and erase_saved(chats, name)]
    return [*map(str, copies), *prepared, *saved, *map(str, handed_over)]


def _finish(cx: frame.CommandContext, store: Store, done: ForgetReport, copies: list[str], removals: list[str]) -> None:
    if cx.json:
        cx.out.emit_json("forget", done.sessions, forgotten=asdict(done), copies=copies, remove_notes=removals)
        return
    cx.out.emit(f"erased {len(done.sessions)} sessions and {done.forked_messages} copied messages in forks")
    for path in copies:
        cx.out.emit(f"erased our own copy {path}")
    for path in done.still_there:
        cx.out.warn(f"the agent's own file is still there: {cx.out.text(path)}")
    for kept in (*store.kept("backup"), *store.kept("export")):
        if kept.kind == "backup" or kept.subject in done.sessions:
            cx.out.warn(
                f"{'a backup' if kept.kind == 'backup' else 'an export'} may still hold it: {cx.out.text(kept.key)}"
            )
    for name in done.kept_in:
        cx.out.warn(f"copies of its messages stay in {name} (--keep-forks)")
    for one in removals:
        cx.out.warn(f"a git note may still name it; this removes the note: {cx.out.text(one)}")
