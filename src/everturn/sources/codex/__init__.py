"""Codex: rollouts in `~/.codex/sessions`, one JSON record per line, some compressed.

Read first: `find` (where files are), `events` (what a record is, in both eras), `speaker` (who speaks), `message` (a record
by itself), `reader` (records together). `screenlog` reads the log that the terminal program writes on request.
"""

from __future__ import annotations

from everturn.sources.codex.files import NAME, find, is_screen_log, resume_command, roots, sniff, workspace
from everturn.sources.contract import (
    AskProgram,
    Install,
    NativeWriter,
    Source,
    SourceCandidate,
    SourceReader,
    lazy_import,
)


def _reader(found: SourceCandidate, state: bytes) -> SourceReader:
    if is_screen_log(found):
        from everturn.sources.codex.screen_log import CodexScreenLogReader

        return CodexScreenLogReader(found, state)
    from everturn.sources.codex.reader import CodexReader

    return CodexReader(found, state)


SOURCE = Source(
    name=NAME,
    title="Codex",
    parser=2,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=lazy_import("everturn.sources.codex.reader:view"),
    workspace=workspace,
    unpack=lazy_import("everturn.sources.codex.files:unpack"),
    option="codex-dir",
    resume_command=resume_command,
    native=NativeWriter(
        name=lazy_import("everturn.sources.codex.program:name"),
        place=lazy_import("everturn.sources.codex.program:place"),
        write=lazy_import("everturn.sources.codex.program:write"),
        begin=lazy_import("everturn.sources.codex.program:begin"),
    ),
    check=lazy_import("everturn.sources.codex.check:check"),
    ask=AskProgram(
        command=lazy_import("everturn.sources.codex.program:command"),
        read=lazy_import("everturn.sources.codex.program:read"),
        around=lazy_import("everturn.sources.codex.program:around"),
        leaves="nothing: it is told not to keep the session",
    ),
    install=Install(
        lazy_import("everturn.sources.codex.program:edits"),
        "Start it anew and look at the hooks with `/hooks`: it runs them when you have trusted them.",
    ),
)
