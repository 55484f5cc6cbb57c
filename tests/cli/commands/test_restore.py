"""`everturn restore`: every target, every form, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everturn.restore.document import SECTIONS
from everturn.store.contract import open_store
from everturn.text.tokens import fits_tokens
from tests.capture.history import OTHER, SID
from tests.cli.desk import ACTIVE, HOSTILE, KEY, Desk
from tests.model_server import Asked, ModelServer
from tests.model_wires import Call, Says
from tests.restore.shop import good, prompt_of, purpose_of, shop

RECORDING = Path(__file__).parents[2] / ".." / "shared" / "corpus" / "terminal" / "demo.cast"


@pytest.fixture
def told(desk: Desk, tmp_path: Path) -> Desk:
    shop(desk.archive.store, tmp_path / "shop")
    return desk


def test_a_session_is_restored_as_markdown(told: Desk) -> None:
    code, out, err = told.run("restore", "@last")
    assert code == 0 and err == ""
    assert out.startswith("# SESSION SUMMARY\n")
    assert re.findall(r"^## (.+)$", out, re.MULTILINE)[:8] == list(SECTIONS.values())
    assert "- Never push to main. [t1 #1]" in out


def test_the_json_alone_is_the_summary_and_with_the_flag_it_is_framed(told: Desk) -> None:
    alone = json.loads(told.run("restore", SID, "--format", "json")[1])
    framed = told.json("restore", SID)
    assert framed["schema"] == "everturn/restore@1" and framed["items"] == [alone]
    assert alone["constraints"] == ["Never push to main."] and alone["evidence"]["constraints"][0]["verified"] is True


def test_turns_come_instead_of_the_whole(told: Desk) -> None:
    _, out, _ = told.run("restore", "@last", "--dump-turns")
    assert out.count("TURN SUMMARY") == 3 and "SESSION SUMMARY" not in out
    items = told.json("restore", "@last", "--dump-turns")["items"]
    assert [one["turn"] for one in items] == [1, 2, 3]


def test_only_the_first_turns_when_asked_for(told: Desk) -> None:
    _, out, _ = told.run("restore", "@last", "--max-turns", "1")
    assert "covers turns 1 to 1 of 3" in out and "PostgreSQL" not in out
    assert told.run("restore", "@last", "--max-turns", "1", "--dump-turns")[1].count("TURN SUMMARY") == 1


def test_a_budget_is_kept_and_one_too_small_is_refused(told: Desk) -> None:
    turns = (told.archive.history.turn(f"please do task number {n} of many", "done", OTHER) for n in range(200))
    told.take_in(*turns, sid=OTHER)
    code, out, _ = told.run("restore", OTHER, "--budget", "800")
    assert code == 0 and fits_tokens(out, 800) and "not shown)" in out
    code, _, err = told.run("restore", "@last", "--budget", "10")
    assert code == 2 and "--budget 10" in err
    assert "not shown)" not in told.run("restore", OTHER, "--budget", "0")[1]


def test_the_header_says_when_and_where(told: Desk) -> None:
    _, out, _ = told.run("restore", "@last", "--include-header")
    assert "Working folder: /home/ann/shop" in out and "Started: 2026-03-01T10:00:01" in out
    header = json.loads(told.run("restore", "@last", "--include-header", "--format", "json")[1])["header"]
    assert header["Branch"] == "main"


def test_a_file_is_read_and_the_archive_left_alone(desk: Desk, tmp_path: Path) -> None:
    history = desk.archive.history
    path = tmp_path / "elsewhere.jsonl"
    path.write_bytes(history.turn("translate the manual into french", "done"))
    before = desk.db.read_bytes()
    code, out, err = desk.run("restore", str(path))
    assert code == 0 and "translate the manual into french" in out
    assert "the file was not archived" in err
    assert desk.db.read_bytes() == before and desk.run("sessions")[0] == 3


def test_a_file_needs_no_archive(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.jsonl"
    path.write_bytes(desk.archive.history.turn("translate the manual into french", "done"))
    desk.archive.store.close()
    desk.db.unlink()
    code, out, _ = desk.run("restore", str(path))
    assert code == 0 and "translate the manual" in out and not desk.db.exists()
    desk.archive.store = open_store("memory:")


@pytest.mark.skipif(not RECORDING.exists(), reason="no recordings beside the checkout")
def test_a_recording_of_a_terminal_is_restored(desk: Desk) -> None:
    code, out, _ = desk.run("restore", str(RECORDING))
    assert code == 0 and "## Artifacts referenced or created\n- `" in out


def test_what_is_not_there_is_told(told: Desk) -> None:
    assert told.run("restore", "nothing")[0] == 3
    assert told.run("restore", "no/such.jsonl")[0] == 2


def test_it_is_written_to_a_file_and_none_is_replaced(told: Desk, tmp_path: Path) -> None:
    path = tmp_path / "HANDOVER.md"
    code, out, err = told.run("restore", "@last", "--out", str(path))
    assert (code, out) == (0, "") and "wrote" in err
    assert path.read_text().startswith("# SESSION SUMMARY") and path.stat().st_mode & 0o077 == 0
    assert told.run("restore", "@last", "--out", str(path))[0] == 2
    assert told.run("restore", "@last", "--out", str(path), "--force")[0] == 0


@pytest.mark.parametrize("more", [(), ("--format", "json"), ("--dump-turns",), ("--json",), ("--dump-turns", "--json")])
def test_secrets_are_masked_and_nothing_reaches_the_terminal_raw(desk: Desk, more: tuple[str, ...]) -> None:
    desk.take_in(desk.archive.history.turn(f"never log {KEY} or {HOSTILE}", f"ok {KEY} {HOSTILE}"))
    _, out, _ = desk.run("restore", "@last", *more)
    assert KEY not in out and not ACTIVE & set(out)
    assert KEY in desk.run("restore", "@last", "--reveal", *more)[1]


def config(tmp_path: Path, server: ModelServer) -> None:
    (tmp_path / "config.toml").write_text(
        f'[models.scripted]\nkind = "anthropic"\nmodel = "model-1"\nbase_url = "{server.root}"\n'
    )


def test_with_a_model_what_it_says_is_checked_kept_and_listed(told: Desk, tmp_path: Path) -> None:
    with ModelServer(good) as server:
        config(tmp_path, server)
        code, out, err = told.run("restore", SID, "--model", "scripted")
        asked = len(server.asked)
        again = told.run("restore", SID, "--model", "scripted")
        assert len(server.asked) == asked  # what was paid for is not asked for twice
    assert code == 0 and "with the model" in out and again[1] == out
    assert "tokens in" in err
    _, shown, _ = told.run("show", SID, "--summaries")
    assert "model-1" in shown and "turns 1-3" in shown and "(up to date)" in shown and "# SESSION SUMMARY" in shown
    item: dict[str, Any] = told.json("show", SID, "--summaries")["items"][0]
    assert item["stale"] is False and item["summary"]["receipts"]


def test_files_are_read_only_in_the_folder_that_is_named(told: Desk, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "login.py").write_text("walrus = 1\n")
    wishes = (Call("read_file", {"file_path": "login.py"}), Call("complete_evidence_search", {}))
    for named in ((), ("--workspace", str(work))):
        turns = iter(Says(calls=(one,)) for one in wishes)

        def script(asked: Asked, turns: Iterator[Says] = turns) -> Says:
            return next(turns) if purpose_of(asked) == "evidence" else good(asked)

        with ModelServer(script) as server:
            config(tmp_path, server)
            told.run("restore", SID, "--model", "scripted", *named)
        assert ("walrus" in prompt_of(server.asked[-1])) is bool(named)
    code, _, err = told.run("restore", SID, "--workspace", str(work))
    assert code == 2 and "--model" in err
    assert told.run("restore", SID, "--model", "scripted", "--workspace", str(work / "login.py"))[0] == 2


def test_turns_told_by_a_model(told: Desk, tmp_path: Path) -> None:
    with ModelServer(good) as server:
        config(tmp_path, server)
        code, out, _ = told.run("restore", SID, "--model", "scripted", "--dump-turns")
    assert code == 0 and out.count("TURN SUMMARY") == 3 and "Named the next step" in out


def test_a_model_that_is_not_configured_is_told(told: Desk) -> None:
    code, _, err = told.run("restore", "@last", "--model", "nobody")
    assert code == 2 and "nobody" in err


def test_without_a_summary_the_list_says_how_to_make_one(told: Desk) -> None:
    code, _, err = told.run("show", SID, "--summaries")
    assert code == 3 and "--model NAME" in err


def test_a_model_that_cannot_be_asked_is_told_and_the_document_is_there_all_the_same(
    told: Desk, tmp_path: Path
) -> None:
    with ModelServer([]) as server:
        config(tmp_path, server)
        code, out, err = told.run("restore", SID, "--model", "scripted", "--budget", "660")
        turns = told.run("restore", SID, "--model", "scripted", "--dump-turns")
    assert code == 4 and "everturn: turns 1–3 were not summarised by the model" in err
    assert "- Never push to main. [t1 #1]" in out and "made from the records only" in out
    assert turns[0] == 4 and turns[1].count("TURN SUMMARY") == 3 and "not summarised by the model" in turns[2]


@pytest.mark.parametrize(("target", "code", "said"), [
    ("", 2, "name a session or a file"),
    (os.devnull, 1, "not a regular file"),
    (__file__, 1, "no source knows this format; `everturn sources` lists the supported formats\n"),
])  # fmt: skip
def test_what_cannot_be_restored_is_told_with_what_to_do(desk: Desk, target: str, code: int, said: str) -> None:
    found, _, err = desk.run("restore", target)
    assert found == code and said in err
