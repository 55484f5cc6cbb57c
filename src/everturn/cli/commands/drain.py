"""Process the events of the agents' hooks now."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from everturn import clock
from everturn.capture import hook_answer
from everturn.cli import frame
from everturn.cli.commands.sync import make_sync_job
from everturn.errors import EverturnError
from everturn.store.contract import SessionFilter

if TYPE_CHECKING:
    from everturn.model.archive import Session
    from everturn.store.contract import Store

_RECENT_MS = 10 * 60_000  # a session this recent may be the one the hook reported
_MOST_SESSIONS = 8


@frame.command("everturn drain", "everturn drain --json")
def command(cx: frame.CommandContext) -> int:
    """Process the events that `everturn-hook` received, and the transcripts that agents are writing.

    The hooks that `everturn install` sets up start this by themselves at the end of each turn and session; it stays for
    about a second, until nothing more comes. If another one is running, it leaves the rest to that one.
    """
    from everturn.capture.drain import drain_once
    from everturn.install.plan import records

    job = make_sync_job(cx, cx.store(create=True), cx.places())
    enabled = {option for record in records(cx.settings.state / "installed") for option in record.options}
    rounds = drain_once(
        job, time.sleep, lambda folders: _prepare_sessions(cx, job.store, enabled, folders) if enabled else None
    )
    if cx.json:
        cx.out.emit_json("drain", [], rounds=rounds)
    elif not rounds:
        cx.out.say("another drain is running")
    return 0


def _prepare_sessions(cx: frame.CommandContext, store: Store, enabled: set[str], folders: Mapping[str, str]) -> None:

    folder, now = str(cx.settings.state / "context"), clock.now()
    rows, _ = store.sessions(SessionFilter(since=now - _RECENT_MS), _MOST_SESSIONS)
    for session, text in reversed(rows):  # the newest of a folder is written last
        if "statusline" in enabled:
            hook_answer.prepare_context(
                folder, session.native_id, hook_answer.STATUS, _status_json(store, session, now)
            )
        if enabled & {"where", "hints"} and not cx.is_encrypted:
            workspace = text.workspace or folders.get(session.native_id, "")
            _prepare_words(cx, store, session, workspace, "hints" in enabled)
    if "where" in enabled:
        hook_answer.let_ask(folder, cx.is_encrypted)
    hook_answer.clear(folder, now)


def _prepare_words(cx: frame.CommandContext, store: Store, session: Session, workspace: str, hints: bool) -> None:
    from everturn.resume.handoff import texts_in_view, where_you_were
    from everturn.sessions.secrets import archive_cleaner

    folder, clean = str(cx.settings.state / "context"), archive_cleaner(store)
    try:
        where = where_you_were(store, cx.sources, session, clean, clock.now())
        seen = texts_in_view(store, cx.sources, session, clean) if hints else []
    except EverturnError:
        return
    if workspace and where:
        hook_answer.prepare_context(folder, workspace, hook_answer.WHERE, hook_answer.as_printed(where))
    if seen:
        hook_answer.prepare_context(folder, session.native_id, hook_answer.WINDOW, hook_answer.BETWEEN.join(seen))


def _status_json(store: Store, session: Session, now: int) -> str:
    size = store.version(session.version).size
    tokens = session.tokens_in + session.tokens_out + session.tokens_cache_read + session.tokens_cache_write
    return json.dumps({"size": size, "tokens": tokens, "turns": session.n_turns, "at": now})
