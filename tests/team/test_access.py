"""Who sees what: every route and every tool for an owner, a member, a reader, a stranger, and tokens that are no good."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
import pytest

from everturn.clock import now
from everturn.mcp.tools.contract import all_tools
from everturn.team.app import PAGE, PUBLIC, ROUTES
from everturn.team.intake import FileName
from tests.team.conftest import Team

PRIVATE, SHARED = "11111111-aaaa-4333-8444-555555555555", "22222222-bbbb-4333-8444-555555555555"
CANARIES = (PRIVATE, "zebrafish", "/home/ann/diary")
PROJECT = "github.com/example/shop"


def ask(team: Team, token: str, method: str, path: str, body: bytes = b"") -> tuple[int, str]:
    """Status and answer."""
    connection = HTTPConnection(urlsplit(team.address).netloc, timeout=60)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection.request(method, path, body or None, headers)
    response = connection.getresponse()
    answer = response.read().decode()
    connection.close()
    return response.status, answer


def rpc(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def questions() -> list[tuple[str, str, bytes]]:
    """Everything that can be asked, with guesses at what is not one's own."""
    made: list[tuple[str, str, bytes]] = [
        ("GET", path, b"")
        for path in ("/v1/me", "/v1/sessions", "/v1/sessions?owner=ann", "/v1/sessions?text=zebrafish")
    ]
    words = (
        "zebrafish",
        "zebrafsh",
        "walrus",
        "zeb*",
        '"zebrafish swims"',
        f"zebrafish session:{PRIVATE[:8]}",
        "agent:claude_code fish",
        "/zebra.*/",
    )
    made += [("GET", f"/v1/search?q={quote(one)}", b"") for one in words]
    made += [
        ("GET", f"/v1/sessions/{quote(name)}{part}", b"")
        for name in (PRIVATE, PRIVATE[:8], SHARED, "@last", "@-1", "@-2")
        for part in ("", "/restore")
    ]
    made += [("GET", f"/v1/stats?by={by}", b"") for by in ("owner", "project", "agent", "model", "month", "x")]
    made += [
        ("GET", f"/v1/why?project={PROJECT}&target={quote(one)}", b"") for one in ("a.py:1", "HEAD", "/etc/hosts:1", "")
    ]
    for tool in all_tools():
        for given in (
            {"target": "/etc/hosts:1"},{}, {"session": PRIVATE}, {"session": "@last"}, {"action": "search", "query": "zebrafish"}, {"query": "zebrafish"},
                      {"action": "range", "query": f"session:{PRIVATE}"}, {"action": "summary", "query": f"session:{PRIVATE}"}, {"path": "/home/ann/diary/x.py"}):  # fmt: skip
            made.append(("POST", "/mcp", rpc("tools/call", name=tool, arguments=given)))
    made += [("POST", "/mcp", rpc(method)) for method in ("initialize", "tools/list", "resources/list", "prompts/list")]
    made.append(("POST", "/mcp", rpc("resources/read", uri=f"everturn://session/{PRIVATE}")))
    reference = {"type": "ref/resource", "uri": "everturn://session/{id}"}
    made.append(
        ("POST", "/mcp", rpc("completion/complete", ref=reference, argument={"name": "id", "value": PRIVATE[:4]}))
    )
    return made


@pytest.fixture
def filled(team: Team) -> Team:
    """Ann has a private session and one that is shared with the project of bob and rita."""
    assert team.admin("project", PROJECT, "--shares", "--add", "ann", "--add", "bob", "--add", "rita") == 0
    ann = team.laptop("ann")
    ann.talk("where is the zebrafish", "the zebrafish swims in the tank", PRIVATE, cwd="/home/ann/diary")
    ann.talk("where is the walrus", "the walrus sleeps on the ice", SHARED)
    assert ann.push().failed == []
    body = json.dumps({"session": SHARED, "project": PROJECT}).encode()
    assert ask(team, team.token("ann"), "POST", "/v1/share", body)[0] == 200
    ann.store.close()
    return team


def test_nobody_but_the_owner_sees_what_is_private(filled: Team) -> None:
    found: dict[str, str] = {}
    for name in ("ann", "bob", "rita", "eve"):
        token = filled.token(name, ("read",))
        answered = [(question, *ask(filled, token, *question)) for question in questions()]
        assert [
            one for one in answered if one[1] >= 500 or "does not let us" in one[2] or "postgresql:" in one[2]
        ] == []
        found[name] = "\n".join(answer for _, _, answer in answered)
    for name, answers in found.items():
        leaked = [canary for canary in CANARIES if canary in answers.replace("zebrafsh", "")]
        # A search repeats what was asked; only the text of the session itself counts then.
        leaked = [canary for canary in leaked if name != "ann" and canary not in ("zebrafish", PRIVATE)]
        assert leaked == [], name
        assert ("swims in the tank" in answers) == (name == "ann"), name
        assert ("sleeps on the ice" in answers) == (name != "eve"), name
        assert (f'"session":"{PRIVATE}"' in answers.replace(": ", ":")) == (name == "ann"), name
    for name, counted in {"ann": [("ann", 2)], "bob": [("ann", 1)], "rita": [("ann", 1)], "eve": []}.items():
        sums = json.loads(ask(filled, filled.token(name), "GET", "/v1/stats")[1])["items"]
        assert [(one["key"], one["sessions"]) for one in sums] == counted, name
    titles = {name: json.loads(ask(filled, filled.token(name), "GET", "/v1/sessions")[1])["items"] for name in found}
    assert {name: sorted(one["session"] for one in items) for name, items in titles.items()} == {
        "ann": [PRIVATE, SHARED], "bob": [SHARED], "rita": [SHARED], "eve": [],
    }  # fmt: skip


def test_an_unknown_session_and_one_of_somebody_else_are_answered_alike(filled: Team) -> None:
    token = filled.token("eve", ("read",))
    nowhere = "33333333-cccc-4333-8444-555555555555"
    for path in ("/v1/sessions/{}", "/v1/sessions/{}/restore", "/v1/search?q=x%20session:{}"):
        theirs, none = (ask(filled, token, "GET", path.format(name)) for name in (PRIVATE, nowhere))
        assert theirs[0] == none[0] == 404
        assert theirs[1].replace(PRIVATE, "?") == none[1].replace(nowhere, "?")


def test_every_route_refuses_a_token_that_is_no_good(filled: Team) -> None:
    expired = filled.token("ann", days=1, made=now() - 10 * 86_400_000)
    revoked = filled.token("eve")
    assert filled.admin("revoke", "eve") == 0
    reader = filled.token("rita")
    push_only = filled.token("ann", ("push",))
    for route in ROUTES:
        path = route.path.replace("{session}", SHARED).replace("{number}", "1")
        if route.scope in (PUBLIC, PAGE):  # see test_sign_in and test_pages
            assert ask(filled, "evt_guess", route.method, path, b"x")[0] in (200, 303, 400, 403, 404)
            continue
        if not route.scope:  # a link instead of a token: see test_links
            assert ask(filled, filled.token("ann"), route.method, path.replace("{link}", "evs_guess"))[0] == 404
            continue
        for token in ("", "evt_guess", expired, revoked, expired[:-1]):
            assert ask(filled, token, route.method, path, b"x")[0] == 401, (route.path, token)
        if route.scope == "push":
            assert ask(filled, reader, route.method, path, b"x")[0] == 403, route.path
        else:
            assert ask(filled, push_only, route.method, path, b"x")[0] == 403, route.path


def test_nobody_changes_what_belongs_to_somebody_else(filled: Team) -> None:
    eve = filled.token("eve")
    for body in ({"session": PRIVATE, "project": None}, {"session": PRIVATE, "project": PROJECT}):
        assert ask(filled, eve, "POST", "/v1/share", json.dumps(body).encode())[0] == 404
    machine = "ann/" + "box"
    drop = msgspec.msgpack.encode(FileName(machine, "pushed:/x"))
    assert ask(filled, eve, "POST", "/v1/push/drop", drop)[0] == 200
    erase = msgspec.msgpack.encode([{"agent": "claude_code", "native_id": PRIVATE}])
    assert json.loads(ask(filled, eve, "POST", "/v1/push/erasures", erase)[1]) == {"erased": 0}
    assert json.loads(ask(filled, eve, "GET", "/v1/push?machine=box")[1]) == {"items": []}
    items = json.loads(ask(filled, filled.token("ann"), "GET", "/v1/sessions")[1])["items"]
    assert sorted(one["session"] for one in items) == [PRIVATE, SHARED]


def test_what_is_taken_back_is_private_again(filled: Team) -> None:
    body = json.dumps({"session": SHARED, "project": None}).encode()
    assert ask(filled, filled.token("ann"), "POST", "/v1/share", body)[0] == 200
    assert json.loads(ask(filled, filled.token("bob"), "GET", "/v1/sessions")[1])["items"] == []
    assert filled.admin("project", PROJECT, "--remove", "bob") == 0


def test_the_audit_log_says_who_did_what_without_words(filled: Team, capsys: pytest.CaptureFixture[str]) -> None:
    ask(filled, filled.token("bob"), "GET", f"/v1/sessions/{SHARED}")
    ask(filled, filled.token("bob"), "GET", "/v1/search?q=walrus")
    capsys.readouterr()
    assert filled.admin("audit", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["items"]
    assert ("bob", "read", SHARED) in {(row["person"], row["action"], row["subject"]) for row in rows}
    assert {"push", "share", "search", "read"} <= {row["action"] for row in rows}
    assert "walrus" not in json.dumps(rows)


def test_tools_that_read_files_of_the_server_are_not_offered(team: Team) -> None:
    token = team.token("ann", ("read",))
    tools = json.loads(ask(team, token, "POST", "/mcp", rpc("tools/list"))[1])["result"]["tools"]
    assert {tool["name"] for tool in tools} == set(all_tools()) - {"why"}
    status, answer = ask(
        team, token, "POST", "/mcp", rpc("tools/call", name="why", arguments={"target": "/etc/hosts:1"})
    )
    assert status == 400 and "your own machine" in answer
    assert ask(team, token, "POST", "/mcp", b'{"method": "notifications/initialized"}')[0] == 202


def test_health_is_told_without_a_token(team: Team) -> None:
    assert ask(team, "", "GET", "/healthz")[0] == 200
    assert ask(team, "", "GET", "/readyz") == (200, "ready\n")
    assert "everturn_requests_total" in ask(team, "", "GET", "/metrics")[1]


@pytest.mark.needs("module:psycopg")
@pytest.mark.parametrize("team", ["postgres"], indirect=True)
def test_the_database_role_that_reads_sees_no_more_than_its_person(filled: Team) -> None:
    import psycopg

    from everturn.store.postgres import parse_address

    address = parse_address(filled.url)
    with psycopg.connect(address.conninfo) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname=%s", [address.schema]).fetchall()
    seen: dict[str, set[str]] = {}
    for person in ("ann", "bob", "eve", ""):
        seen[person] = set()
        for (table,) in tables:
            with psycopg.connect(address.conninfo) as connection:
                connection.execute(f'SET LOCAL search_path TO "{address.schema}", pg_catalog')
                connection.execute(f'SET LOCAL ROLE "{address.schema}_reader"')
                connection.execute("SELECT set_config('everturn.person', %s, true)", [person])
                try:
                    rows = connection.execute(f'SELECT * FROM "{table}"').fetchall()
                except psycopg.errors.InsufficientPrivilege:
                    continue
                seen[person].update(f"{table}: {row}" for row in rows)
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(f'DELETE FROM "{table}"')
    assert {row.partition(":")[0] for row in seen["ann"]} >= {
        "session",
        "message",
        "blob",
        "chunk",
        "entry_text",
        "session_text",
    }
    assert (
        {row for row in seen["eve"] if not row.startswith("setting")}
        == set()
        == {row for row in seen[""] if not row.startswith("setting")}
    )
    assert any("walrus" in row for row in seen["bob"]) and not any(
        "zebra" in row or "diary" in row for row in seen["bob"]
    )
