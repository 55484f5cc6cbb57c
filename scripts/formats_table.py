"""Write docs/formats.md: what each format gives on the real files beside the checkout.

    PYTHONPATH=src python scripts/formats_table.py ../shared/corpus > docs/formats.md

Every file is taken in through the same door as `everturn add`, into an archive in memory; raw bytes are compared.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from everturn import clock
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.sources.contract import SearchPlaces, abilities, all_sources
from everturn.store.contract import Store, open_store

HEAD = """# Formats

What everturn reads, and what came out of real files of each: {files} files of `../shared/corpus`, taken in by
`everturn add`. Written by `scripts/formats_table.py`; not checked in CI, because the files are not part of the project.

*Unpaired* are calls without a result and results without a call; *records* are lines or elements, each counted once as a
message, as known, as unknown or as a problem; *same* says that every stored file is byte for byte the one on disk.

| format | can | files | sessions | turns | steps | messages | calls | unpaired | records | unknown | problems | same |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def main() -> None:
    """Take in the folder and print the page."""
    root = Path(sys.argv[1]).resolve()
    store = open_store("memory:")
    sources = all_sources()
    job = SyncJob(store, sources, SearchPlaces(root / "no-home", {}, "linux"), Policy(), "here", "me", clock.now)
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.parent != root]
    report = add_paths(job, files)
    rows = {name: counted(store, name) for name in sources}
    print(HEAD.format(files=sum(row["files"] for row in rows.values())))
    for name, row in rows.items():
        numbers = " | ".join(f"{row[key]:,}" for key in KEYS)
        same = "yes" if row["files"] and not row["differs"] else "–" if not row["files"] else f"no ({row['differs']})"
        print(f"| `{name}` ({sources[name].title}) | {', '.join(abilities(sources[name]))} | {numbers} | {same} |")
    print("\nNot claimed by any source, by folder:", left_out(report.skipped, root) or "nothing", end=".\n")
    if report.failed:
        print("\nCould not be read:", ", ".join(path for path, _ in report.failed))


KEYS = ("files", "sessions", "turns", "steps", "messages", "calls", "unpaired", "records", "unknown", "problems")


def counted(store: Store, name: str) -> Counter[str]:
    """Everything of one format."""
    row: Counter[str] = Counter()
    for file, version in store.files():
        if file.format != name:
            continue
        if not file.container:
            row["files"] += 1
            is_plain = file.kind not in ("container", "bundle")
            row["differs"] += is_plain and store.read_raw(version.id, 0, version.size) != Path(file.path).read_bytes()
        for census in store.census(version.id):
            row["records"] += census.n
            row["unknown"] += census.n * (census.disposition == "unknown")
            row["problems"] += census.n * (census.disposition == "problem")
        for session in store.sessions_in(version.id):
            calls = store.calls(session.id)
            row.update(
                sessions=1, turns=session.n_turns, steps=session.n_steps, messages=session.n_messages,
                calls=session.n_calls, unpaired=sum(call.status in ("open", "orphan") for call in calls),
            )  # fmt: skip
    return row


def left_out(skipped: list[tuple[str, str]], root: Path) -> str:
    """Which folders hold files that nobody knew."""
    folders = Counter(Path(path).relative_to(root).parts[0] for path, _ in skipped)
    return ", ".join(f"{folder} ({n})" for folder, n in sorted(folders.items()))


if __name__ == "__main__":
    main()
