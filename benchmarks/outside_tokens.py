"""Our token totals beside those of ccusage 18 on the same transcripts, every difference explained.

    python -m benchmarks.outside_tokens [FOLDER]      needs npm and a network; not part of `make bench`

The peer is installed into a temporary folder and runs with a home of its own, offline, on a copy of the files. Its rule is
written down here once more (`their_count`): where that gives the peer's own numbers, the difference between its rule and
ours is known record by record and is summed up by cause.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from everturn import clock
from everturn.analytics import counts
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.model.analytics import SLOT_MS
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import open_store

PEER = "ccusage@18"
FOLDER = Path(__file__).parents[2] / "shared" / "corpus" / "claude-code"
KINDS = ("input", "output", "cache read", "cache write")
_FIELDS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_THEIRS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens")

Count = Counter[tuple[str, str, str]]  # (day, model, kind)


def main() -> None:
    """Compare and print."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    records = list(_records(folder))
    ours, rule = our_count(folder), their_count(records)
    with tempfile.TemporaryDirectory() as place:
        peer = ask_peer(folder, Path(place))
    days = {key[:2] for key in ours | peer}
    print(f"{len(days)} days and models, {len(days - _differing(ours, peer))} with the same four totals")
    print(f"{PEER} by our copy of its rule: {len(_differing(rule, peer))} days and models differ")
    print(f"{'':12} {'ours':>14} {'peer':>14} {'difference':>12}")
    for kind in KINDS:
        mine, theirs = (sum(n for key, n in found.items() if key[2] == kind) for found in (ours, peer))
        print(f"{kind:12} {mine:14,} {theirs:14,} {theirs - mine:12,}")
    for cause, found in causes(records).items():
        print(f"  {cause}: " + ", ".join(f"{kind} {found[kind]:+,}" for kind in KINDS if found[kind]))


def our_count(folder: Path) -> Count:
    """What the archive says."""
    store = open_store("memory:")
    add_paths(
        SyncJob(store, all_sources(), SearchPlaces(folder, {}, sys.platform), Policy(), "box", "me", clock.now),
        [folder],
    )
    counts.catch_up(store)
    found: Count = Counter()
    for row in store.usage():
        if not row.inherited:
            day = f"{datetime.fromtimestamp(row.slot * SLOT_MS / 1000, UTC):%Y-%m-%d}"
            tokens = (row.tokens_in, row.tokens_out, row.tokens_cache_read, row.tokens_cache_write)
            for kind, n in zip(KINDS, tokens, strict=True):
                found[day, row.model, kind] += n
    return +found


def ask_peer(folder: Path, place: Path) -> Count:
    """What the peer says of a copy of the files."""
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(place), PEER], check=True, capture_output=True
    )
    shutil.copytree(folder, place / "config" / "projects" / "all")
    command = [str(place / "node_modules" / ".bin" / "ccusage"), "daily", "--json", "--offline", "--timezone", "UTC"]
    home = {"HOME": str(place / "home"), "CLAUDE_CONFIG_DIR": str(place / "config"), "PATH": os.environ["PATH"]}
    told = subprocess.run(command, check=True, capture_output=True, env=home).stdout
    found: Count = Counter()
    for day in json.loads(told)["daily"]:
        for model in day["modelBreakdowns"]:
            for kind, name in zip(KINDS, _THEIRS, strict=True):
                found[day["date"], model["modelName"], kind] += model[name]
    return +found


def their_count(records: list[dict[str, Any]]) -> Count:
    """The peer's rule: the first record of a response counts; what has no request id counts every time."""
    found: Count = Counter()
    seen: set[tuple[str, str]] = set()
    for record in sorted((one for one in records if not one["reported"]), key=lambda one: one["order"]):
        key = (record["id"], record["request"])
        if all(key) and key in seen:
            continue
        seen.add(key)
        for kind, n in zip(KINDS, record["tokens"], strict=True):
            found[record["day"], record["model"], kind] += n
    return +found


def causes(records: list[dict[str, Any]]) -> dict[str, Counter[str]]:
    """Why the peer's totals are others: peer minus ours, by cause."""
    by_response: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        by_response[record["id"]].append(record)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for parts in by_response.values():
        ours = [max(column) for column in zip(*(part["tokens"] for part in parts), strict=True)]
        own = sorted((part for part in parts if not part["reported"]), key=lambda part: part["order"])
        if not own:
            found["a subagent's own file is gone, its parent reports it"].subtract(dict(zip(KINDS, ours, strict=True)))
            continue
        counted = own if not own[0]["request"] else own[:1]
        for part in counted[:1]:
            _add(found["the first record of a response counts, the last has the final number"], part["tokens"], ours)
        for part in counted[1:]:
            _add(found["no request id: every record of a response counts"], part["tokens"], [0] * 4)
    return {cause: counts for cause, counts in found.items() if any(counts.values())}


def _add(counts: Counter[str], theirs: list[int], ours: list[int]) -> None:
    for kind, a, b in zip(KINDS, theirs, ours, strict=True):
        counts[kind] += a - b


def _records(folder: Path) -> Iterator[dict[str, Any]]:
    """Every record of a response, in the order the peer reads them: files by the time of their first record."""
    decoder = json.JSONDecoder()
    for file in sorted(folder.rglob("*.jsonl")):
        lines = [line for line in file.read_text("utf-8", "replace").split("\n") if line.strip()]
        events = []
        for number, line in enumerate(lines):
            try:
                event, end = decoder.raw_decode(line)
            except ValueError:
                continue
            events.append((number, event, end == len(line.rstrip())))
        times = [event["timestamp"] for _, event, _ in events if isinstance(event.get("timestamp"), str)]
        first = min(times, default="9")
        for number, event, _ in events:
            yield from _record(event, (first, str(file), number))


def _record(event: dict[str, Any], order: tuple[str, str, int]) -> Iterator[dict[str, Any]]:
    data = event.get("data") if event.get("type") == "progress" else None
    inner = data.get("message") if isinstance(data, dict) else None
    one = inner if isinstance(inner, dict) else event
    message = one.get("message") if one.get("type") == "assistant" else None
    if not isinstance(message, dict) or message.get("model") == "<synthetic>":
        return
    usage = message.get("usage") or {}
    at = datetime.fromisoformat(one["timestamp"]).astimezone(UTC)
    yield {
        "id": message.get("id") or "", "request": one.get("requestId") or "", "model": message["model"],
        "day": f"{at:%Y-%m-%d}", "tokens": [usage.get(name) or 0 for name in _FIELDS], "order": order,
        "reported": one is inner,
    }  # fmt: skip


def _differing(a: Count, b: Count) -> set[tuple[str, str]]:
    return {key[:2] for key in a | b if a[key] != b[key]}


if __name__ == "__main__":
    main()
