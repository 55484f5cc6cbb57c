"""What a person erases on the server, and what stays."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from everturn.cli import main
from everturn.store.contract import open_store
from everturn.team.client import Login, save_login
from tests.team.conftest import Team
from tests.team.test_access import ask

FIRST, SECOND = "11111111-aaaa-4333-8444-555555555555", "22222222-bbbb-4333-8444-555555555555"


def listed(team: Team, name: str) -> list[str]:
    return sorted(one["session"] for one in json.loads(ask(team, team.token(name), "GET", "/v1/sessions")[1])["items"])


def erase(team: Team, name: str, **wanted: object) -> int:
    return ask(team, team.token(name), "POST", "/v1/erase", json.dumps(wanted).encode())[0]


def test_a_person_erases_what_is_their_own_and_nothing_else(team: Team) -> None:
    laptops = {name: team.laptop(name) for name in ("ann", "bob")}
    for laptop in laptops.values():
        laptop.talk("where is the walrus", "on the ice", FIRST)
        laptop.talk("where is the zebrafish", "in the tank", SECOND)
        laptop.push()
    assert erase(team, "eve", session=FIRST) == 404
    assert erase(team, "rita", everything=True) == 403, "a reader owns nothing"
    assert erase(team, "ann") == 400 == erase(team, "ann", session=FIRST, everything=True)
    assert erase(team, "eve", everything=True) == 200
    assert listed(team, "ann") == [FIRST, SECOND] == listed(team, "bob")
    assert erase(team, "ann", session=FIRST) == 200
    assert laptops["ann"].push().bytes == 0, "it is not pushed again"
    assert listed(team, "ann") == [SECOND]
    assert erase(team, "ann", everything=True) == 200
    assert listed(team, "ann") == [] and listed(team, "bob") == [FIRST, SECOND]
    with closing(open_store(team.url)) as store:
        assert {file.owner for file, _ in store.files()} == {"bob"}


@pytest.mark.parametrize("team", ["sqlite"], indirect=True)
def test_erasing_by_a_command(team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = team.laptop("ann")
    ann.talk("where is the walrus", "on the ice", FIRST)
    ann.push()
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path / "home"))
    save_login(tmp_path / "home" / "state" / "team.json", Login(team.address, team.token("ann")))
    assert main(["team", "erase", "--yes"]) == 2
    assert main(["team", "erase", FIRST[:8], "--yes"]) == 0
    assert listed(team, "ann") == []
