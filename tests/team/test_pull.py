"""One's own sessions on a second machine, and pushes after every sync."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from everturn.cli import main
from everturn.store.contract import SessionFilter, open_store
from everturn.team.client import Login, save_login
from everturn.team.download import PullFile
from tests.capture.history import SID
from tests.team.conftest import Team
from tests.team.test_access import PROJECT, ask

OTHER = "22222222-bbbb-4333-8444-555555555555"


class Desk:
    """A second machine of a person, used by commands."""

    def __init__(self, team: Team, folder: Path, monkeypatch: pytest.MonkeyPatch, config: str = "") -> None:
        folder.mkdir()
        monkeypatch.setenv("EVERTURN_HOME", str(folder))
        (folder / "config.toml").write_text(f'machine = "desk"\nowner = "ann"\n{config}')
        save_login(folder / "state" / "team.json", Login(team.address, team.token("ann")))
        self.db = str(folder / "archive.db")

    def run(self, *words: str) -> int:
        return main([*words, "--db", self.db])

    def sessions(self) -> list[tuple[str, int, str]]:
        with closing(open_store(self.db)) as store:
            rows, _ = store.sessions(SessionFilter())
            return sorted((row.native_id, row.n_messages, row.machine) for row, _ in rows)


@pytest.fixture
def desk(team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(team, tmp_path / "desk", monkeypatch)


def test_a_second_machine_gets_ones_own_sessions_and_no_others(
    team: Team, desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    ann, bob = team.laptop("ann"), team.laptop("bob")
    assert team.admin("project", PROJECT, "--add", "ann", "--add", "bob") == 0
    ann.talk("where is the walrus", "on the ice", SID)
    ann.push()
    bob.talk("where is the lemon", "in the tree", OTHER)
    bob.push()
    body = json.dumps({"session": OTHER, "project": PROJECT}).encode()
    assert ask(team, team.token("bob"), "POST", "/v1/share", body)[0] == 200
    assert desk.run("pull") == 0
    assert desk.sessions() == [(SID, 2, "box")]
    ann.talk("and the walrus now", "in the water", SID)
    ann.push()
    capsys.readouterr()
    assert desk.run("pull", "--json") == 0
    first = json.loads(capsys.readouterr().out)["report"]
    assert desk.run("pull", "--json") == 0
    second = json.loads(capsys.readouterr().out)["report"]
    assert (first["pulled"], second["pulled"], second["same"], second["bytes"]) == (1, 0, 1, 0)
    assert desk.sessions() == [(SID, 4, "box")]
    assert desk.run("search", "walrus") == 0 and "and the «walrus» now" in capsys.readouterr().out
    assert desk.run("pull", "--from", "nowhere") == 0
    with closing(open_store(desk.db)) as store:
        assert {file.path.partition(":")[0] for file, _ in store.files()} == {"pulled"}
    assert desk.run("push") == 0
    assert len(json.loads(ask(team, team.token("ann"), "GET", "/v1/sessions")[1])["items"]) == 2, "nothing comes back"


@pytest.mark.parametrize("team", ["sqlite"], indirect=True)
def test_what_was_forgotten_on_the_second_machine_is_not_pulled_again(team: Team, desk: Desk) -> None:
    ann = team.laptop("ann")
    ann.talk("where is the walrus", "on the ice", SID)
    ann.talk("where is the lemon", "in the tree", OTHER)
    ann.push()
    assert desk.run("pull") == 0
    assert desk.run("forget", SID, "--yes") == 0
    assert desk.run("pull") == 0
    assert [native_id for native_id, _, _ in desk.sessions()] == [OTHER]


@pytest.mark.parametrize("team", ["sqlite"], indirect=True)
def test_the_rules_of_the_second_machine_hold(team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = team.laptop("ann")
    ann.talk("where is the walrus", "on the ice", SID)
    ann.push()
    rules = '[[workspace]]\npath = "/home/ann/*"\nmode = "off"\n'
    strict = Desk(team, tmp_path / "strict", monkeypatch, rules)
    assert strict.run("pull") == 0
    assert strict.sessions() == []


def test_nobody_pulls_the_files_of_somebody_else(team: Team) -> None:
    ann = team.laptop("ann")
    ann.talk("where is the walrus", "on the ice", SID)
    ann.push()
    [file] = msgspec.msgpack.decode(ann.client.get_bytes("/v1/pull"), type=list[PullFile])
    path = f"/v1/pull/bytes?source={file.source}&number=1&offset=0"
    assert ask(team, team.token("ann"), "GET", path)[0] == 200
    for name in ("bob", "eve"):
        assert msgspec.msgpack.decode(team.client(team.token(name)).get_bytes("/v1/pull")) == []
        theirs = ask(team, team.token(name), "GET", path)
        nowhere = ask(team, team.token(name), "GET", path.replace(f"source={file.source}", "source=999999"))
        assert theirs == nowhere and theirs[0] == 404
    for wrong in ("source=x", "source=-1", "source=1&offset=-1", f"source={1 << 60}"):
        assert ask(team, team.token("ann"), "GET", f"/v1/pull/bytes?{wrong}")[0] == 400


@pytest.mark.parametrize("team", ["sqlite"], indirect=True)
def test_every_sync_pushes_if_the_config_says_so(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = Desk(team, tmp_path / "desk", monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    history = team.laptop("ann").history
    history.write(history.turn("where is the walrus", "on the ice", SID), SID)
    words = ("sync", "--claude-dir", str(history.root))
    assert desk.run(*words) == 0
    token = team.token("ann")
    assert json.loads(ask(team, token, "GET", "/v1/sessions")[1])["items"] == [], "not by itself"
    assert desk.run("config", "set", "team.push", "always") == 2
    assert "never, masked, full" in capsys.readouterr().err
    assert desk.run("config", "set", "team.push", "masked") == 0
    assert desk.run(*words) == 0
    assert [one["machine"] for one in json.loads(ask(team, token, "GET", "/v1/sessions")[1])["items"]] == ["desk"]
    save_login(tmp_path / "desk" / "state" / "team.json", Login("http://127.0.0.1:9", token))
    capsys.readouterr()
    assert desk.run(*words) == 0, "a server that is away is no failure of the sync"
    assert "not pushed" in capsys.readouterr().err
