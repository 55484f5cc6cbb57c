"""List what can be read, where it is looked for, and what is in quarantine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from everturn.cli import frame
from everturn.cli.commands.sync import folder_options, search_places
from everturn.errors import MissingPath, NothingFound, UsageError
from everturn.sources.contract import abilities, read_beginning
from everturn.sources.recognition import describe_tie, resembles_transcript, tied, weigh_claims, winner


@frame.command(
    "everturn sources",
    "everturn sources --json",
    "everturn sources explain old/session.jsonl   why a file is read as this format, or not at all",
    make=click.group,
    invoke_without_command=True,
)
@folder_options
@click.pass_context
def command(ctx: click.Context, /, cx: frame.CommandContext, **folders: Any) -> None:
    """List the formats everturn reads, what it can do with each, where it looks, and how much is in the archive."""
    from everturn.capture.sync import UNREAD, find_unread, listed_paths

    if ctx.invoked_subcommand is not None:
        return

    places = search_places(cx, folders)
    known = _archived_files(cx)
    items = []
    for name, source in sorted(cx.sources.items()):
        roots = [str(root) for root in source.roots(places)]
        files = [file for file in known if file.format == name]
        failed = [
            {"path": file.path, "reason": file.fail_reason, "retry_at": file.retry_at}
            for file in files
            if file.fail_reason
        ]
        items.append(
            {"name": name, "title": source.title, "parser": source.parser, "folders": roots, "files": len(files),
             "gone": sum(file.state == "gone" for file in files), "can": abilities(source), "quarantine": failed}
        )  # fmt: skip
    paths = {file.path for file in known} | listed_paths(cx.sources, places)
    unread = find_unread(cx.sources, places, paths)
    if cx.json:
        cx.out.emit_json("sources", items, unread=unread)
        return
    columns = ("source", "agent", "files", "gone", "can", "folders")
    cx.out.table(columns, [_source_row(item) for item in items], right=(2, 3))
    for item in items:
        for bad in item["quarantine"]:
            cx.out.warn(f"in quarantine: {cx.out.text(bad['path'])}: {cx.out.text(bad['reason'])}")
    for path in unread:
        cx.out.warn(f"not read: {cx.out.text(path)} {UNREAD}")


@frame.command("everturn sources explain ~/Downloads/session.jsonl", make=command.command)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
def explain(cx: frame.CommandContext, path: Path) -> int:
    """Show which formats claim a file, with the evidence of each, and which of them it would be read as.

    Exit code 3 if the file would not be read.
    """
    if not path.exists():
        raise MissingPath(str(path))
    if not path.is_file():
        raise UsageError(f"{path} is not a regular file; `everturn add {path}` looks at every file of a folder")
    head = read_beginning(path)
    claims = weigh_claims(cx.sources.values(), path.resolve(), head, every=True)
    best = winner(claims)
    items = [
        {"source": claim.source.name, "title": claim.source.title, "score": claim.score, "reason": claim.reason,
         "kind": claim.found.kind, "session": claim.found.native_id, "chosen": claim is best}
        for claim in claims
    ]  # fmt: skip
    similar = not claims and resembles_transcript(head)
    if cx.json:
        cx.out.emit_json("sources-explain", items, path=str(path), looks_like_transcript=bool(claims) or similar)
        return 0 if best is not None else 3
    if claims:
        rows = [(claim.source.name, f"{claim.score}", claim.reason) for claim in claims]
        cx.out.table(("source", "score", "evidence"), rows, right=(1,))
    tie = describe_tie(claims) if tied(claims) else ""
    cx.out.emit(_verdict(cx.out.text(str(path)), best.source.title if best is not None else "", similar, tie))
    return 0 if best is not None else 3


def _verdict(path: str, title: str, similar: bool, tie: str) -> str:
    if title:
        return f"{path} is read as {title}."
    if tie:
        return f"{path} {tie}. Until then it is not read."
    if similar:
        return f"{path} looks like a transcript, but no source reads this format. It is not read."
    return f"{path} is not a transcript of any known format. It is not read."


def _source_row(item: dict[str, Any]) -> tuple[str, ...]:
    folders = ", ".join(item["folders"]) or "(none here)"
    return item["name"], item["title"], f"{item['files']:,}", f"{item['gone']:,}", ", ".join(item["can"]), folders


def _archived_files(cx: frame.CommandContext) -> list[Any]:
    try:
        return [file for file, _ in cx.store().files()]
    except NothingFound:  # nothing archived yet: the list of formats is worth showing all the same
        return []
