"""List what can be read, where it is looked for, and what is in quarantine."""

from __future__ import annotations

from typing import Any

from everturn.cli import frame
from everturn.cli.commands.sync import folder_options, search_places


@frame.command("everturn sources", "everturn sources --json")
@folder_options
def command(cx: frame.CommandContext, **folders: Any) -> None:
    """List the formats everturn reads, what it can do with each, where it looks, and how much is in the archive."""
    from everturn.sources.contract import abilities, all_sources

    places = search_places(cx, folders)
    known = _archived_files(cx)
    items = []
    for name, source in sorted(all_sources().items()):
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
    if cx.json:
        cx.out.emit_json("sources", items)
        return
    columns = ("source", "agent", "files", "gone", "can", "folders")
    cx.out.table(columns, [_source_row(item) for item in items], right=(2, 3))
    for item in items:
        for bad in item["quarantine"]:
            cx.out.warn(f"in quarantine: {cx.out.text(bad['path'])}: {cx.out.text(bad['reason'])}")


def _source_row(item: dict[str, Any]) -> tuple[str, ...]:
    folders = ", ".join(item["folders"]) or "(none here)"
    return item["name"], item["title"], f"{item['files']:,}", f"{item['gone']:,}", ", ".join(item["can"]), folders


def _archived_files(cx: frame.CommandContext) -> list[Any]:
    from everturn.errors import NothingFound

    try:
        return [file for file, _ in cx.store().files()]
    except NothingFound:  # nothing archived yet: the list of formats is worth showing all the same
        return []
