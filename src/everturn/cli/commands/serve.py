"""Serve an archive that a team shares."""

from __future__ import annotations

import click

from everturn import clock
from everturn.cli import frame
from everturn.errors import EverturnError, UsageError

_PORT = 8790


@frame.command(
    "everturn serve --db postgresql://everturn@db.example.com/everturn",
    "everturn serve --host 0.0.0.0 --certificate cert.pem --private-key key.pem",
    "everturn serve --repository github.com/example/shop=/srv/git/shop",
    json=False,
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=_PORT, show_default=True, type=click.IntRange(0, 65535), help="0 uses any free port.")
@click.option("--certificate", default=None, type=click.Path(exists=True, dir_okay=False), help="For TLS, in PEM.")
@click.option("--private-key", default=None, type=click.Path(exists=True, dir_okay=False), help="For TLS, in PEM.")
@click.option(
    "--repository", "repositories", multiple=True, metavar="PROJECT=FOLDER",
    help="A clone of a project's repository on this machine, for `why`. Repeatable.",
)  # fmt: skip
@click.option("--log", is_flag=True, help="Print a line of JSON for every request, without any content.")
def command(
    cx: frame.CommandContext,
    host: str,
    port: int,
    certificate: str | None,
    private_key: str | None,
    repositories: tuple[str, ...],
    log: bool,
) -> None:
    """Serve a shared archive to a team: pushes, searches, reading, and MCP for agents.

    Make it with `everturn admin init` first. People need a token (`everturn admin invite`). Everybody sees what is their own
    or shared with their projects, nothing else. Without TLS it listens on this machine only, for a reverse proxy or a trial.
    docs/team.md is the runbook.
    """
    if host not in ("127.0.0.1", "localhost", "::1") and not certificate:
        raise UsageError(f"{host} can be reached by others, and tokens must not travel without TLS; give --certificate")
    try:
        from everturn.team.service import named_folders, serve_team
    except ImportError as error:
        raise EverturnError("serving needs Starlette and uvicorn; run: pip install 'everturn[web]'") from error
    emit = cx.out.emit if log else lambda line: None
    copies = named_folders(repositories)
    serve_team(cx.settings.db, (host, port), (certificate, private_key), clock.now, emit, cx.out.say, copies)
