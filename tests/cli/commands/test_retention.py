"""Retention rules: what is older than they keep it is erased by `sync` and `forget --retention`, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everturn import clock
from everturn.errors import BadConfig
from everturn.maintenance.retention import parse_span
from tests.cli.desk import Desk

DAY = 86_400_000
OLD, OLDER, NEW, CLIENT = (f"{n}0000000-2222-4333-8444-555555555555" for n in range(1, 5))
WORD = "qzwvxkjyq"


@pytest.fixture
def aged(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Sessions that are 100, 400, 10 and 50 days old; the last one in a workspace of a client."""
    history, now = desk.archive.history, clock.now()
    for sid, days, cwd in ((OLD, 100, "/w"), (OLDER, 400, "/w"), (NEW, 10, "/w"), (CLIENT, 50, "/clients/acme")):
        at = clock_text(now - days * DAY)
        desk.take_in(history.turn(f"ask {WORD}{sid[0]}", "reply", sid, cwd=cwd, timestamp=at), sid=sid)
    desk.archive.store.close()
    monkeypatch.setenv("HOME", str(desk.db.parent / "nobody"))
    return desk


def clock_text(ms: int) -> str:
    from everturn.text.times import iso

    return iso(ms)


def rules(desk: Desk, text: str) -> None:
    (desk.db.parent / "config.toml").write_text(text)


def kept(desk: Desk) -> set[str]:
    return {row["id"] for row in desk.json("sessions")["items"]}


def test_without_rules_nothing_is_erased(aged: Desk) -> None:
    assert json.loads(aged.run("sync", "--json")[1])["erased"] == []
    code, _, err = aged.run("forget", "--retention", "--yes")
    assert code == 3 and "no rule limits" in err
    assert kept(aged) == {OLD, OLDER, NEW, CLIENT}


def test_sync_erases_once_a_day_what_is_older(aged: Desk) -> None:
    rules(aged, '[retention]\nkeep = "1y"\n')
    assert "1 session older" in aged.run("doctor")[1]
    code, out, err = aged.run("sync", "--json")
    assert json.loads(out)["erased"] == [OLDER] and "erased 1 session" in err
    assert kept(aged) == {OLD, NEW, CLIENT}
    assert f"{WORD}{OLDER[0]}".encode() not in aged.db.read_bytes()
    assert aged.run("search", f"{WORD}{OLDER[0]}")[0] == 3
    rules(aged, '[retention]\nkeep = "90d"\n')
    assert json.loads(aged.run("sync", "--json")[1])["erased"] == [], "once a day"
    code, out, _ = aged.run("forget", "--retention", "--yes", "--json")
    assert code == 0 and json.loads(out)["items"] == [OLD]
    assert kept(aged) == {NEW, CLIENT}


def test_a_rule_of_a_workspace_wins(aged: Desk) -> None:
    rules(aged, '[retention]\nkeep = "30d"\n[[workspace]]\npath = "/w"\nkeep = "forever"\n')
    assert json.loads(aged.run("forget", "--retention", "--dry-run", "--json")[1])["items"] == [CLIENT]
    rules(aged, '[[workspace]]\npath = "/clients/*"\nmode = "full"\nkeep = "6w"\n')
    assert json.loads(aged.run("forget", "--retention", "--dry-run", "--json")[1])["items"] == [CLIENT]
    assert kept(aged) == {OLD, OLDER, NEW, CLIENT}, "a dry run erases nothing"


@pytest.mark.parametrize("text", ["6m", "0d", "30", "-1d", "12h", "1 month", "99999999d"])
def test_a_span_that_could_be_misread_is_refused_and_erases_nothing(aged: Desk, text: str) -> None:
    with pytest.raises(BadConfig):
        parse_span(text)
    assert aged.run("config", "set", "retention.keep", text)[0] == 2
    rules(aged, f'[retention]\nkeep = "{text}"\n')
    assert aged.run("sync")[0] == 2
    assert kept(aged) == {OLD, OLDER, NEW, CLIENT}


def test_a_session_without_times_is_kept(desk: Desk, tmp_path: Path) -> None:
    desk.take_in(desk.archive.history.turn("ask", "reply", timestamp=None))
    desk.archive.store.close()
    rules(desk, '[retention]\nkeep = "1d"\n')
    assert desk.run("forget", "--retention", "--yes")[0] == 3
