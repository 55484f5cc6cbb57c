"""Quotas and retention: what the server refuses, what it erases, and what it never touches."""

from __future__ import annotations

import json

import pytest

from everturn.errors import EverturnError
from tests.team.conftest import Team
from tests.team.test_access import ask

OLD, NEW = "11111111-aaaa-4333-8444-555555555555", "22222222-bbbb-4333-8444-555555555555"


def listed(team: Team, name: str = "ann") -> list[str]:
    return sorted(one["session"] for one in json.loads(ask(team, team.token(name), "GET", "/v1/sessions")[1])["items"])


def test_a_push_beyond_the_quota_is_refused_and_keeps_what_is_there(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    ann, bob = team.laptop("ann"), team.laptop("bob")
    ann.talk("where is the walrus", "on the ice", OLD)
    ann.push()
    assert team.admin("quota", "2kB") == 0
    assert team.admin("quota", "9MB", "--person", "bob") == 0
    for laptop in (ann, bob):
        laptop.talk("and now a long one", "word " * 2000, NEW)
    with pytest.raises(EverturnError, match=r"your quota of 0.0 MB is used up"):
        ann.push()
    assert bob.push().pushed == 1
    assert listed(team) == [OLD] and listed(team, "bob") == [NEW]
    assert team.admin("quota", "none") == 0
    assert ann.push().pushed == 1
    assert listed(team) == [OLD, NEW]
    capsys.readouterr()
    assert team.admin("quota", "--json") == 0
    rows = {row["person"]: row for row in json.loads(capsys.readouterr().out)["items"]}
    assert rows["ann"]["used"] > 10_000 and rows["ann"]["quota"] is None and rows["bob"]["quota"] == 9_000_000
    assert rows["eve"]["used"] == 0
    assert team.admin("quota", "much") == 2 and team.admin("quota", "1GB", "--person", "nobody") != 0


def test_old_sessions_are_erased_and_not_pushed_again(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    ann = team.laptop("ann")
    ann.talk("where is the walrus", "on the ice", OLD)  # in March
    ann.push()
    assert team.admin("retention", "6m") == 2
    assert team.admin("expire") == 0 and listed(team) == [OLD], "without a rule everything is kept"
    assert team.admin("retention", "30d") == 0
    capsys.readouterr()
    assert team.admin("expire", "--dry-run", "--json") == 0
    assert [one["session"] for one in json.loads(capsys.readouterr().out)["items"]] == [OLD]
    assert listed(team) == [OLD]
    assert team.admin("expire") == 0
    assert listed(team) == []
    assert ask(team, team.token("ann"), "GET", "/v1/search?q=walrus")[1].count(OLD) == 0
    assert ann.push().bytes == 0, "it is known how far it was pushed"
    assert listed(team) == []
    ann.talk("the walrus again", "still there", OLD)
    assert ann.push().bytes > 0
    assert listed(team) == [OLD], "what is new is stored"
    capsys.readouterr()
    assert team.admin("audit", "--json") == 0
    assert ("ann", "expire", OLD) in {
        (row["person"], row["action"], row["subject"]) for row in json.loads(capsys.readouterr().out)["items"]
    }
