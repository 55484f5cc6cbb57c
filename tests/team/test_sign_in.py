"""Login with an identity provider: a real one that runs beside the test."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec
import pytest

from everturn.cli import main
from everturn.clock import now
from everturn.errors import EverturnError
from everturn.team import sign_in
from everturn.team.client import load_login
from everturn.team.sign_in import LoginCode, ProviderRules, fetch_code
from tests.team.conftest import Team
from tests.team.test_access import ask
from tests.team.test_pages import Browser

pytestmark = [
    pytest.mark.needs("module:joserfc"),
    pytest.mark.needs("module:oidc_provider_mock"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
CLIENT = "everturn"


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    import oidc_provider_mock
    from oidc_provider_mock import User

    def user(name: str, **claims: object) -> User:
        return User(sub=name, claims={"email": f"{name}@example.com", "email_verified": True, **claims})

    people = [user("sub-ann", email="ann@example.com"), user("sub-new", email="ann@example.com"), user("sub-eve"),
              user("sub-liar", email="bob@example.com", email_verified=False)]  # fmt: skip
    with oidc_provider_mock.run_server_in_thread(user_claims=people) as server:
        yield f"http://localhost:{server.server_port}"


def logged_in_as(subject: str) -> Callable[[str], None]:
    """A browser whose user is logged in at the provider and agrees."""

    def browse(address: str) -> None:
        import threading

        body = urlencode({"sub": subject}).encode()
        threading.Thread(target=lambda: urllib.request.urlopen(address, body).read(), daemon=True).start()

    return browse


@pytest.fixture
def with_provider(team: Team, provider: str, tmp_path: Path) -> Team:
    secret = tmp_path / "secret"
    secret.write_text("the secret of the client\n")
    assert team.admin("provider", provider, CLIENT, "--secret-from", str(secret)) == 0
    assert team.admin("email", "ann", "Ann@example.com") == 0
    assert team.admin("email", "bob", "bob@example.com") == 0
    return team


def start(team: Team) -> tuple[ProviderRules, str]:
    status, answer = ask(team, "", "GET", "/v1/login")
    assert status == 200
    rules = json.loads(answer)
    return ProviderRules(rules["issuer"], rules["client"]), rules["nonce"]


def code(team: Team, subject: str) -> LoginCode:
    rules, nonce = start(team)
    return fetch_code(rules, nonce, logged_in_as(subject))


def log_in(team: Team, given: LoginCode) -> tuple[int, dict[str, str]]:
    status, answer = ask(team, "", "POST", "/v1/login", msgspec.json.encode(given))
    return status, json.loads(answer)


def test_a_person_logs_in_by_the_browser(
    with_provider: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("webbrowser.open", logged_in_as("sub-ann"))
    assert main(["team", "login", with_provider.address, "--sso"]) == 0
    token = load_login(tmp_path / "home" / "state" / "team.json").token
    me = json.loads(ask(with_provider, token, "GET", "/v1/me")[1])
    assert (me["name"], sorted(me["scopes"])) == ("ann", ["push", "read"])
    assert token not in capsys.readouterr().out
    assert with_provider.admin("revoke", "ann") == 0
    assert log_in(with_provider, code(with_provider, "sub-ann"))[0] == 403, "a person whose access has ended"


def test_a_person_logs_in_on_the_pages(with_provider: Team) -> None:
    browser = Browser(with_provider)
    assert browser.get("/login") == 200 and "/login/sso" in browser.text
    for subject, status in (("sub-ann", 200), ("sub-eve", 403)):
        browser = Browser(with_provider)
        back = agreed_at(browser, subject)
        stranger = Browser(with_provider)
        assert stranger.get(back) == 403 and stranger.cookie == "", "begun in another browser"
        assert browser.get(back) == status
        assert (browser.get("/") == 200 and "ann: what you may see" in browser.text) == (status == 200)
        browser.cookie = begun = f"everturn_login={parse_qs(urlsplit(back).query)['state'][0]}"
        assert browser.get(back) == 403 and browser.cookie == begun, "good once"
    refused = Browser(with_provider)
    state = parse_qs(urlsplit(agreed_at(refused, "sub-ann")).query)["state"][0]
    assert refused.get(f"/login/back?error=access_denied&state={state}") == 403
    assert refused.get("/login/back?code=x&state=made-up") == 403


def agreed_at(browser: Browser, subject: str) -> str:
    """Begin a login on the pages and agree at the provider; return where the provider sends the browser."""
    assert browser.get("/login/sso") == 303
    parts = urlsplit(browser.location)
    provider = HTTPConnection(parts.netloc, timeout=60)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    provider.request("POST", f"{parts.path}?{parts.query}", urlencode({"sub": subject}), form)
    response = provider.getresponse()
    response.read()
    back = urlsplit(response.headers["location"])
    provider.close()
    return f"{back.path}?{back.query}"


def test_who_is_not_meant_does_not_get_in(with_provider: Team) -> None:
    strangers = [log_in(with_provider, code(with_provider, subject)) for subject in ("sub-eve", "sub-liar")]
    assert [status for status, _ in strangers] == [403, 403]
    assert strangers[0][1] == strangers[1][1], "an unverified address is no address"
    assert log_in(with_provider, code(with_provider, "sub-ann"))[0] == 200
    assert log_in(with_provider, code(with_provider, "sub-new"))[0] == 403, "the address has changed hands"
    assert log_in(with_provider, code(with_provider, "sub-ann"))[0] == 200


def test_a_code_is_good_once_and_only_here(with_provider: Team, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    good = code(with_provider, "sub-ann")
    assert log_in(with_provider, good)[0] == 200
    assert log_in(with_provider, good)[0] == 403, "used already"
    rules, nonce = start(with_provider)
    first = fetch_code(rules, nonce, logged_in_as("sub-ann"))
    second = fetch_code(rules, nonce, logged_in_as("sub-ann"))
    assert [log_in(with_provider, one)[0] for one in (first, second)] == [200, 403], "a nonce is good once"
    other = fetch_code(ProviderRules(provider, "another-program"), start(with_provider)[1], logged_in_as("sub-ann"))
    made_up = fetch_code(rules, "made-up-nonce", logged_in_as("sub-ann"))
    elsewhere = msgspec.structs.replace(code(with_provider, "sub-ann"), redirect="https://evil.example.com/callback")
    for wrong in (made_up, elsewhere, LoginCode("", "", ""), other):
        status, answer = log_in(with_provider, wrong)
        assert status == 403 and "token" not in answer, wrong
    assert ask(with_provider, "", "POST", "/v1/login", b"x")[0] == 400
    late = code(with_provider, "sub-ann")
    monkeypatch.setattr(sign_in, "_LEEWAY", -(10**6))
    assert log_in(with_provider, late)[0] == 403, "expired"


@pytest.mark.parametrize("team", ["sqlite"], indirect=True)
def test_without_a_provider_there_is_no_such_login(team: Team, provider: str) -> None:
    assert ask(team, "", "GET", "/v1/login")[0] == 404
    assert log_in(team, LoginCode("x", "y", "http://127.0.0.1/"))[0] == 403
    assert team.admin("provider", "http://login.example.com", CLIENT) == 2, "without TLS"
    assert team.admin("email", "ann", "nobody") == 2
    assert team.admin("provider", provider, CLIENT) == 0 and team.admin("provider", "none") == 0
    assert ask(team, "", "GET", "/v1/login")[0] == 404


def test_a_refusal_of_the_provider_is_told(provider: str) -> None:
    def deny(address: str) -> None:
        import threading

        state = parse_qs(urlsplit(address).query)
        wrong = f"{state['redirect_uri'][0]}?code=guess&state=guess"
        refused = f"{state['redirect_uri'][0]}?error=access_denied&state={state['state'][0]}"

        def visit() -> None:
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(wrong)
            urllib.request.urlopen(refused).read()

        threading.Thread(target=visit, daemon=True).start()

    with pytest.raises(EverturnError, match="refused the login: access_denied"):
        fetch_code(ProviderRules(provider, CLIENT), f"nonce {now()}", deny)
