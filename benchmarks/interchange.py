"""Sessions written in a standard and read back: what came back differently, and what an outside package says of the file.

    python -m benchmarks.interchange [ARCHIVE] [--most N]

Without an archive, a generated history is used. `atif` from PyPI validates the trajectories where it is installed. Sessions
also go to a client of `everturn acp`, a real process, and are put together again from its updates; the models of
`agent-client-protocol` validate these. ACP holds no tokens and no turns, and no text that belongs to no call and no speaker:
the output of commands of the client, and what it put into the conversation by itself.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths, sync_all
from everturn.export.interchange import as_standard
from everturn.model.archive import Session
from everturn.sessions.messages import read_messages
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, Store, open_store
from tests.acp.test_server import Client
from tests.transcripts import write_history

STANDARDS = ("atif", "otel", "otel in protobuf")


def differences(store: Store, session: Session, name: str) -> list[str]:
    """Return what is different after a session was written in a standard and read back."""
    name, _, form = name.partition(" in ")
    data = b"".join(as_standard(store, all_sources(), session, name))
    if form and (wire := all_sources()[name].wire) is not None:
        data = wire.pack(data)
    with tempfile.TemporaryDirectory() as folder, closing(open_store("memory:")) as other:
        path = Path(folder) / "session.json"
        path.write_bytes(data)
        places = SearchPlaces(Path(folder), {}, "linux")
        report = add_paths(SyncJob(other, all_sources(), places, Policy(), "box", "ann", lambda: 1), [path])
        if report.skipped or report.failed:
            return [f"not taken in: {report.skipped or report.failed}"]
        found = other.sessions_of(name, session.native_id)
        if len(found) != 1:
            return [f"{len(found)} sessions came back"]
        before, after = facts(store, session), facts(other, found[0])
    wrong = [key for key in before if before[key] != after[key]]
    return wrong + (_refused(data) if name == "atif" else [])


def facts(store: Store, session: Session) -> dict[str, Any]:
    """Return what a standard must hold of a session."""
    texts: Counter[str] = Counter()
    for _, message in read_messages(store, all_sources(), session):
        for block in message.blocks:
            if block.field in ("prompt", "answer", "thinking", "tool_output") and block.kind not in (
                "image",
                "document",
            ):
                texts[block.field] += _length(block.text)
    calls = [call for call in store.calls(session.id) if call.status != "orphan"]
    steps = store.steps(session.id)
    return {
        "turns": session.n_turns,
        "steps": session.n_steps,
        "prompts": session.n_prompts,
        "calls": [(call.call_id, call.name, call.kind) for call in calls],
        "outcomes": [(call.call_id, call.status, call.error_class, call.exit_status) for call in calls],
        "batches": [(call.call_id, call.position) for call in calls],
        "tokens": [
            sum(getattr(step, f"tokens_{kind}") for step in steps)
            for kind in ("in", "out", "cache_read", "cache_write")
        ],
        "compactions": sum(turn.compacted for turn in store.turns(session.id)),
        **{f"characters of {field}": texts[field] for field in ("prompt", "answer", "thinking", "tool_output")},
    }


def _refused(data: bytes) -> list[str]:
    if find_spec("atif") is None:
        return []
    from atif import Trajectory  # type: ignore[import-not-found,unused-ignore]

    try:
        Trajectory.model_validate(json.loads(data))
    except ValueError as failure:
        return [f"refused by atif: {str(failure).splitlines()[0]}"]
    return []


_FIELDS = {"user_message_chunk": "prompt", "agent_message_chunk": "answer", "agent_thought_chunk": "thinking"}
_OUTCOMES = {"completed": "ok", "failed": "error", "pending": "open", "in_progress": "open"}


def acp_differences(client: Client, store: Store, session: Session) -> list[str]:
    """Return what a client of `everturn acp` gets differently."""
    answer, updates = client.ask("session/load", sessionId=session.native_id, cwd="/", mcpServers=[])
    if "error" in answer:
        return [f"not loaded: {answer['error']['message']}"]
    texts: Counter[str] = Counter()
    calls: dict[str, str] = {}
    for update in updates:
        kind = update["sessionUpdate"]
        if kind in _FIELDS:
            texts[_FIELDS[kind]] += _length(update["content"]["text"])
            continue
        calls[update["toolCallId"]] = _OUTCOMES[update["status"]]
        texts["tool_output"] += sum(_length(one["content"]["text"]) for one in update.get("content", ()))
    before = facts(store, session)
    for row, message in read_messages(store, all_sources(), session):
        for block in message.blocks:
            is_typed = row.role == "user" and row.origin in ("human", "agent")
            if (block.field == "prompt" and not is_typed) or (block.field == "tool_output" and block.result is None):
                before[f"characters of {block.field}"] -= _length(block.text)
    after = {f"characters of {field}": texts[field] for field in ("prompt", "answer", "thinking", "tool_output")}
    wrong = [key for key, n in after.items() if before[key] != n]
    if [status for _, status, *_ in before["outcomes"]] != list(calls.values()):
        wrong.append("calls and outcomes")
    return wrong + _refused_updates(session, updates)


def _refused_updates(session: Session, updates: list[dict[str, Any]]) -> list[str]:
    if find_spec("acp") is None:
        return []
    from acp.schema import SessionNotification  # type: ignore[import-not-found,unused-ignore]

    try:
        for update in updates:
            SessionNotification.model_validate({"sessionId": session.native_id, "update": update})
    except ValueError as failure:
        return [f"refused by agent-client-protocol: {str(failure).splitlines()[0]}"]
    return []


def _length(text: str) -> int:
    return len(text.replace("\n", "").replace(" ", ""))


def sessions(store: Store, most: int) -> Iterator[Session]:
    rows, _ = store.sessions(SessionFilter(kinds=("main", "subagent")), most)
    yield from (row for row, _ in rows if row.n_messages)


def main() -> None:
    """Print, for each standard, how many sessions came back the same, and what differed in the others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("archive", nargs="?", default="")
    parser.add_argument("--most", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(given.archive or str(Path(folder) / "archive.db"))
        if not given.archive:
            truth = write_history(Path(folder) / "history", seed=7, sessions=90)
            places = SearchPlaces(Path(folder) / "home", {}, "linux", {"claude_code": (truth.root,)})
            sync_all(SyncJob(store, all_sources(), places, Policy(), "box", "ann", lambda: 1))
        chosen = list(sessions(store, given.most))
        checked = "validated by atif" if find_spec("atif") is not None else "atif is not installed: not validated"
        for name in STANDARDS:
            found = Counter(wrong for session in chosen for wrong in differences(store, session, name))
            same = sum(not differences(store, session, name) for session in chosen)
            print(f"{name}: {same} of {len(chosen)} sessions the same{f' ({checked})' if name == 'atif' else ''}")
            for wrong, n in found.most_common():
                print(f"    {n} × {wrong}")
        _print_acp(store, chosen)
        store.close()


def _print_acp(store: Store, chosen: list[Session]) -> None:
    client = Client(Path(store.url))
    try:
        client.ask("initialize", protocolVersion=1)
        found = [acp_differences(client, store, session) for session in chosen]
    finally:
        client.close()
    is_checked = find_spec("acp") is not None
    checked = "validated by agent-client-protocol" if is_checked else "agent-client-protocol is not installed"
    print(f"acp: {sum(not one for one in found)} of {len(chosen)} sessions the same ({checked})")
    for wrong, n in Counter(wrong for one in found for wrong in one).most_common():
        print(f"    {n} × {wrong}")


if __name__ == "__main__":
    main()
