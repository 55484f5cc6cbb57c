"""Codex: rollouts in `~/.codex/sessions`, one JSON record per line, some compressed.

Read first: `find` (where files are), `events` (what a record is, in both eras), `speaker` (who speaks), `message` (a record
by itself), `reader` (records together). `screenlog` reads the log that the terminal program writes on request.
"""

from __future__ import annotations

from everturn.sources import Ask, Found, Install, Native, Reader, Source, lazy
from everturn.sources.codex.find import NAME, find, is_screen_log, resume_command, roots, sniff, workspace


def _reader(found: Found, state: bytes) -> Reader:
    if is_screen_log(found):
        from everturn.sources.codex.screenlog import ScreenLogReader

        return ScreenLogReader(found, state)
    from everturn.sources.codex.reader import RolloutReader

    return RolloutReader(found, state)


SOURCE = Source(
    name=NAME,
    title="Codex",
    parser=2,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=lazy("everturn.sources.codex.view:view"),
    workspace=workspace,
    unpack=lazy("everturn.sources.codex.compressed:unpack"),
    option="codex-dir",
    resume_command=resume_command,
    native=Native(
        name=lazy("everturn.sources.codex.native:name"),
        place=lazy("everturn.sources.codex.native:place"),
        write=lazy("everturn.sources.codex.native:write"),
        begin=lazy("everturn.sources.codex.native:begin"),
    ),
    check=lazy("everturn.sources.codex.checking:check"),
    ask=Ask(
        command=lazy("everturn.sources.codex.asking:command"),
        read=lazy("everturn.sources.codex.asking:read"),
        around=lazy("everturn.sources.codex.asking:around"),
        leaves="nothing: it is told not to keep the session",
    ),
    install=Install(
        lazy("everturn.sources.codex.installing:edits"),
        "Start it anew and look at the hooks with `/hooks`: it runs them when you have trusted them.",
    ),
)
