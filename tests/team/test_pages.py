"""The pages for a browser: who gets in, what they show, and what other sites cannot do with them."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlencode, urlsplit

import pytest

from everturn.clock import now
from everturn.team.pages import COOKIE
from tests.team.conftest import Team
from tests.team.test_access import PRIVATE, PROJECT, SHARED, ask

HOSTILE = "<script>alert(1)</script>"


class Browser:
    """Keeps a cookie and follows nothing."""

    def __init__(self, team: Team) -> None:
        self._host, self.cookie, self.text, self.location = urlsplit(team.address).netloc, "", "", ""

    def get(self, path: str) -> int:
        return self._ask("GET", path, "", {}).status

    def post(self, path: str, origin: str = "", **form: str) -> HTTPResponse:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._ask("POST", path, urlencode(form), headers | ({"Origin": origin} if origin else {}))

    def log_in(self, token: str) -> int:
        return self.post("/login", token=token).status

    def _ask(self, method: str, path: str, body: str, headers: dict[str, str]) -> HTTPResponse:
        connection = HTTPConnection(self._host, timeout=60)
        connection.request(method, path, body or None, headers | ({"Cookie": self.cookie} if self.cookie else {}))
        response = connection.getresponse()
        self.text, self.location = response.read().decode(), response.headers.get("location", "")
        if made := response.headers.get("set-cookie"):
            self.cookie = made.partition(";")[0]
        connection.close()
        return response


@pytest.fixture
def filled(team: Team) -> Team:
    """Ann has a private session and one that is shared with the project of bob and rita."""
    assert team.admin("project", PROJECT, "--add", "ann", "--add", "bob", "--add", "rita") == 0
    ann = team.laptop("ann")
    ann.talk("where is the zebrafish", "the zebrafish swims in the tank", PRIVATE, cwd="/home/ann/diary")
    ann.talk(f"where is the walrus {HOSTILE}", f"the walrus sleeps on the ice {HOSTILE}", SHARED)
    assert ann.push().failed == []
    body = json.dumps({"session": SHARED, "project": PROJECT}).encode()
    assert ask(team, team.token("ann"), "POST", "/v1/share", body)[0] == 200
    ann.store.close()
    return team


def test_everybody_sees_their_own_and_what_is_shared(filled: Team) -> None:
    paths = [
        "/",
        "/?q=walrus",
        "/?q=zebrafish",
        "/?q=owner:ann",
        f"/sessions/{PRIVATE}",
        f"/sessions/{SHARED}",
        "/sessions/@last",
    ]
    for name in ("ann", "bob", "rita", "eve"):
        browser = Browser(filled)
        assert browser.log_in(filled.token(name, ("read",))) == 303
        seen = ""
        for path in paths:
            assert browser.get(path) in (200, 404), path
            seen += browser.text
        assert ("swims in the tank" in seen) == (name == "ann"), name
        assert ("sleeps on the ice" in seen) == (name != "eve"), name
        assert ("/home/ann/diary" in seen) == (name == "ann"), name
        assert HOSTILE not in seen
    theirs, nowhere = (Browser(filled) for _ in range(2))
    for browser, session in ((theirs, PRIVATE), (nowhere, "33333333-cccc-4333-8444-555555555555")):
        browser.log_in(filled.token("eve", ("read",)))
        assert browser.get(f"/sessions/{session}") == 404
        browser.text = browser.text.replace(session, "?")
    assert theirs.text == nowhere.text


def test_without_a_valid_token_there_is_a_form_and_nothing_else(filled: Team) -> None:
    expired = filled.token("ann", days=1, made=now() - 10 * 86_400_000)
    push_only = filled.token("ann", ("push",))
    for token in ("", "evt_guess", expired, push_only):
        browser = Browser(filled)
        assert browser.log_in(token) == 403 and browser.cookie == ""
        browser.cookie = f"{COOKIE}={token}"
        for path in ("/", f"/sessions/{SHARED}", "/?q=walrus"):
            assert browser.get(path) == 303 and "walrus" not in browser.text
    assert Browser(filled).get("/login") == 200


@pytest.mark.parametrize("team", ["sqlite"], indirect=True)
def test_other_sites_can_do_nothing_with_the_cookie(filled: Team) -> None:
    browser = Browser(filled)
    token = filled.token("ann")
    assert browser.post("/login", "https://evil.example.com", token=token).status == 400 and browser.cookie == ""
    made = browser.post("/login", filled.address, token=token).headers["set-cookie"].lower()
    assert "httponly" in made and "samesite=strict" in made and "path=/" in made
    assert browser.get("/v1/sessions") == 401, "the API takes no cookie"
    assert browser.post("/v1/share", session=SHARED).status == 401
    response = browser.post("/logout")
    assert response.status == 303 and browser.get("/") == 303
    assert "default-src 'none'" in Browser(filled).post("/login", token="x").headers["content-security-policy"]
