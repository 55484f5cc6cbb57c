"""Sessions in the formats of other programs: written, validated and read back as the same sessions."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from benchmarks.interchange import STANDARDS, differences, sessions
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import sync_all
from everturn.export.interchange import as_standard
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import Store, open_store
from tests.cli.desk import Desk
from tests.transcripts import write_history
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("history")
    truth = write_history(folder, seed=5, sessions=4)
    opened = open_store(str(folder / "archive.db"))
    places = SearchPlaces(folder / "nobody", {}, "linux", {"claude_code": (truth.root,)})
    sync_all(SyncJob(opened, all_sources(), places, Policy(), "box", "ann", lambda: 1))
    yield opened
    opened.close()


@pytest.mark.parametrize("name", STANDARDS)
def test_a_session_that_was_written_reads_as_the_same_session(store: Store, name: str) -> None:
    chosen = list(sessions(store, 6))
    assert len(chosen) >= 4
    assert {session.native_id: differences(store, session, name) for session in chosen} == {
        session.native_id: [] for session in chosen
    }


@pytest.mark.needs("module:atif")
def test_the_outside_package_accepts_every_trajectory(store: Store) -> None:
    from atif import Trajectory  # type: ignore[import-not-found,unused-ignore]

    for session in sessions(store, 6):
        Trajectory.model_validate(json.loads(b"".join(as_standard(store, all_sources(), session, "atif"))))


def test_spans_are_the_same_each_time_and_hold_what_the_conventions_ask_for(store: Store) -> None:
    session = next(sessions(store, 6))
    first, second = (list(as_standard(store, all_sources(), session, "otel")) for _ in range(2))
    assert first == second
    spans = [json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for line in first]
    assert len({span["spanId"] for span in spans}) == len(spans)
    assert {len(span["traceId"]) for span in spans} == {32}
    root, *rest = spans
    assert all(span["parentSpanId"] == root["spanId"] for span in rest)
    named = {span["name"].split()[0] for span in spans}
    assert {"invoke_agent", "chat", "execute_tool"} <= named
    for span in spans:
        keys = [one["key"] for one in span["attributes"]]
        assert "gen_ai.operation.name" in keys and "gen_ai.conversation.id" in keys
        assert ("gen_ai.usage.output_tokens" in keys) <= span["name"].startswith("chat")


def test_export_masks_secrets_and_names_the_forms_there_are(desk: Desk, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    desk.take_in(desk.archive.history.turn(f"my token is {secret}", "thank you"))
    for name in ("atif", "otel"):
        code, out, _ = desk.run("export", "@last", "--as", name)
        assert code == 0 and "my token is" in out and secret not in out
        assert secret in desk.run("export", "@last", "--as", name, "--reveal")[1]
    code, _, err = desk.run("export", "@last", "--as", "papyrus")
    assert code == 2 and "atif" in err and "markdown" in err


@pytest.mark.slow
@pytest.mark.needs("phoenix")
def test_a_real_collector_shows_the_session(store: Store, desk: Desk, tmp_path: Path) -> None:
    """Opt-in: Phoenix (`pip install arize-phoenix`, in an environment of its own) on the PATH."""
    desk.take_in(
        desk.archive.history.tool_turn("count the walruses", "ls", "three")
        + desk.archive.history.turn("seals?", "none")
    )
    with _phoenix(tmp_path) as address:
        code, _, err = desk.run("export", "@last", "--as", "otel", "--to", address)
        assert code == 0, err
        spans: list[dict[str, Any]] = []

        def arrived() -> bool:
            with urlopen(f"{address}/v1/projects/default/spans") as answer:  # on this machine
                spans[:] = json.load(answer)["data"]
            return len(spans) >= 4

        wait_until(arrived)
    kinds = sorted(span["span_kind"] for span in spans)
    assert kinds == ["AGENT", "LLM", "LLM", "TOOL"]
    (root,) = [span for span in spans if span["span_kind"] == "AGENT"]
    assert root["attributes"]["input.value"] == "count the walruses"
    answers = [span["attributes"] for span in spans if span["span_kind"] == "LLM"]
    assert {one["session.id"] for one in answers} == {root["attributes"]["session.id"]}
    assert any("none" in str(one) for one in answers)


@contextmanager
def _phoenix(folder: Path) -> Iterator[str]:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = os.environ | {
        "PHOENIX_WORKING_DIR": str(folder / "phoenix"), "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": "0", "PHOENIX_TELEMETRY_ENABLED": "false",
    }  # fmt: skip
    env.pop("PYTHONPATH", None)
    address = f"http://127.0.0.1:{port}"
    with (folder / "phoenix.log").open("wb") as log:
        process = subprocess.Popen(["phoenix", "serve"], env=env, stdout=log, stderr=log)
    try:
        wait_until(lambda: process.poll() is not None or _answers(address))
        assert process.poll() is None, (folder / "phoenix.log").read_text()[-2000:]
        yield address
    finally:
        process.kill()
        process.wait()


def _answers(address: str) -> bool:
    try:
        with urlopen(f"{address}/healthz"):  # on this machine
            return True
    except OSError:
        return False
