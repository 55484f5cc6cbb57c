"""Links to single sessions, for people without a token: what they show, to whom, and how they end."""

from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from everturn.cli import main
from everturn.clock import now
from everturn.store.contract import open_store
from everturn.store.people import People
from everturn.team.client import Login, save_login
from tests.team.conftest import Team
from tests.team.test_access import PROJECT, ask

LINKED, PRIVATE = "11111111-aaaa-4333-8444-555555555555", "22222222-bbbb-4333-8444-555555555555"
SECRET = "AKIA" + "Q7XW2MZP4RTY5LNB"
DAY = 86_400_000


@pytest.fixture
def filled(team: Team) -> Team:
    """Ann has two sessions, the second one private; bob shares a project with her."""
    assert team.admin("project", PROJECT, "--add", "ann", "--add", "bob") == 0
    ann = team.laptop("ann")
    ann.talk(f"where is the walrus {SECRET}", "the walrus sleeps <script>alert(1)</script>", LINKED)
    copied = ann.history.file(LINKED).read_bytes().replace(LINKED.encode(), PRIVATE.encode())
    ann.history.write(copied, PRIVATE)  # a fork: the same messages, then others
    ann.talk("where is the zebrafish", "in the tank", PRIVATE)
    assert ann.push(full=True).failed == []
    ann.store.close()
    return team


def make(team: Team, token: str, session: str, days: int = 7) -> tuple[int, dict[str, object]]:
    status, answer = ask(team, token, "POST", "/v1/links", json.dumps({"session": session, "days": days}).encode())
    return status, json.loads(answer)


def test_a_link_shows_one_session_and_nothing_else(filled: Team) -> None:
    status, made = make(filled, filled.token("ann"), LINKED)
    assert status == 200
    status, page = ask(filled, "", "GET", str(made["path"]))
    assert status == 200 and "walrus" in page
    assert "zebrafish" not in page and PRIVATE not in page and SECRET not in page and "<script>alert" not in page
    for other in ("/v1/sessions", f"/v1/sessions/{LINKED}", "/v1/search?q=walrus", "/v1/pull"):
        assert ask(filled, str(made["path"]).rpartition("/")[2], "GET", other)[0] == 401, "a link is no token"
    connection = HTTPConnection(urlsplit(filled.address).netloc, timeout=60)
    connection.request("GET", str(made["path"]))
    headers = connection.getresponse().headers
    assert "sandbox" in headers["content-security-policy"] and headers["x-robots-tag"].startswith("noindex")
    assert (headers["referrer-policy"], headers["cache-control"]) == ("no-referrer", "no-store")
    connection.close()


def test_nobody_makes_or_ends_a_link_to_what_belongs_to_somebody_else(filled: Team) -> None:
    body = json.dumps({"session": LINKED, "project": PROJECT}).encode()
    assert ask(filled, filled.token("ann"), "POST", "/v1/share", body)[0] == 200
    _, made = make(filled, filled.token("ann"), LINKED)
    for name in ("bob", "eve"):
        theirs, nowhere = (make(filled, filled.token(name), session) for session in (LINKED, "33333333"))
        assert theirs[0] == nowhere[0] == 404, "also of a shared session"
        assert str(theirs[1]).replace(LINKED, "?") == str(nowhere[1]).replace("33333333", "?")
        assert ask(filled, filled.token(name), "POST", f"/v1/links/{made['id']}/revoke", b"x")[0] == 404
        assert json.loads(ask(filled, filled.token(name), "GET", "/v1/links")[1]) == {"items": []}
    assert ask(filled, filled.token("rita"), "POST", "/v1/links", b"{}")[0] == 403
    assert ask(filled, "", "GET", str(made["path"]))[0] == 200


def test_a_link_ends(filled: Team) -> None:
    """By its time, by its maker, with the access of its maker, and with the session."""
    ann = filled.token("ann")
    unknown = ask(filled, "", "GET", "/s/evs_guess")
    assert unknown[0] == 404
    _, made = make(filled, ann, LINKED)
    assert [one["id"] for one in json.loads(ask(filled, ann, "GET", "/v1/links")[1])["items"]] == [made["id"]]
    assert ask(filled, ann, "POST", f"/v1/links/{made['id']}/revoke", b"x")[0] == 200
    assert ask(filled, "", "GET", str(made["path"])) == unknown
    with closing(open_store(filled.url)) as store, store.write():
        people = People(store)
        caller = people.caller(ann, now())
        assert caller is not None
        [(file, _)] = [found for found in store.files() if found[0].native_id == LINKED]
        old = people.new_link(caller, file.id, ("claude_code", LINKED), now() - 10 * DAY, 9)
        elsewhere = people.new_link(caller, file.id, ("claude_code", PRIVATE), now(), 9)
    assert ask(filled, "", "GET", f"/s/{old.secret}") == unknown, "expired"
    assert ask(filled, "", "GET", f"/s/{elsewhere.secret}") == unknown, "of another file"
    _, last = make(filled, ann, LINKED)
    assert filled.admin("revoke", "ann") == 0
    assert ask(filled, "", "GET", str(last["path"])) == unknown
    assert filled.admin("invite", "ann") == 0
    assert ask(filled, "", "GET", str(last["path"]))[0] == 200
    with closing(open_store(filled.url)) as store, store.write():
        store.delete_file(file.id)
    assert ask(filled, "", "GET", str(last["path"])) == unknown


@pytest.mark.parametrize("team", ["sqlite"], indirect=True)
def test_links_by_commands(
    filled: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path / "home"))
    save_login(tmp_path / "home" / "state" / "team.json", Login(filled.address, filled.token("ann")))
    capsys.readouterr()
    assert main(["team", "link", LINKED[:8], "--days", "2"]) == 0
    address = capsys.readouterr().out.strip()
    assert ask(filled, "", "GET", urlsplit(address).path)[0] == 200
    assert main(["team", "links", "--json"]) == 0
    [one] = json.loads(capsys.readouterr().out)["items"]
    assert main(["team", "unlink", str(one["id"])]) == 0
    assert ask(filled, "", "GET", urlsplit(address).path)[0] == 404
    assert filled.admin("audit", "--json") == 0
    rows = json.loads(capsys.readouterr().out.strip().splitlines()[-1])["items"]
    assert {"make link", "link", "unlink"} <= {row["action"] for row in rows}
    assert address.rpartition("/")[2] not in json.dumps(rows)
