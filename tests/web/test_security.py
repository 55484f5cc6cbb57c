"""Who is answered: this machine, our own pages. Other names, other sites and odd paths get nothing."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from everturn.web.app import open_listener
from everturn.web.security import CSP
from tests.web.server import JSON, Served, fill, served

CHANGES = ("/api/marks?session=@last", "/api/restore?session=@last", "/api/examine", "/api/verify")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "[::1]:{port}",
        "",
    ],
)
def test_a_name_that_is_not_ours_is_refused(web: Served, host: str) -> None:
    for path in ("/", "/sessions", "/api/sessions", "/static/web.css"):
        answer = web.ask(path, Host=host.format(port=web.port))
        assert answer.status == 421, path
        assert b"everturn-token" not in answer.body


def test_both_names_of_this_machine_are_answered(web: Served) -> None:
    for name in ("127.0.0.1", "localhost", "LOCALHOST"):
        assert web.ask("/", Host=f"{name}:{web.port}").status == 200


def test_a_page_of_another_site_is_refused(full: Served) -> None:
    for origin in ("http://evil.example", "null", "http://localhost:1", f"https://127.0.0.1:{full.port}"):
        assert full.ask("/api/sessions", Origin=origin).status == 403
        for path in CHANGES:
            answer = full.ask(path, "POST", b"{}", Origin=origin, X_Everturn_Token=full.site.token)
            assert answer.status == 403


@pytest.mark.parametrize("path", CHANGES)
def test_a_change_needs_the_token_of_the_run(full: Served, path: str) -> None:
    assert full.ask(path, "POST", b"{}", Content_Type=JSON).status == 403
    assert full.ask(path, "POST", b"{}", Content_Type=JSON, X_Everturn_Token="").status == 403
    assert full.ask(path, "POST", b"{}", Content_Type=JSON, X_Everturn_Token="x" * 32).status == 403
    assert full.ask(path, "POST", b"{}", X_Everturn_Token="ü").status == 403
    # a form of another site can send this much, and no header of its own
    assert full.ask(path, "POST", b"star=1", Content_Type="application/x-www-form-urlencoded").status == 403
    assert full.ask(path, "POST", b"{}", X_Everturn_Token=full.site.token, Sec_Fetch_Site="cross-site").status == 403
    assert full.ask(path, "POST", b"{}", X_Everturn_Token=full.site.token).status == 200


def test_a_page_cannot_be_read_by_a_change_nor_changed_by_a_read(full: Served) -> None:
    assert full.ask("/sessions", "POST", b"{}", X_Everturn_Token=full.site.token).status == 405
    assert full.ask("/api/sessions", "DELETE", X_Everturn_Token=full.site.token).status == 405
    assert full.ask("/api/marks?session=@last").status == 405


def test_a_request_that_is_too_long_is_refused(full: Served) -> None:
    body = b'{"note": "' + b"x" * 100_000 + b'"}'
    assert full.ask("/api/marks?session=@last", "POST", body, X_Everturn_Token=full.site.token).status == 413


def test_what_is_not_json_is_refused(full: Served) -> None:
    for body in (b"{", b"[]", b"\xff", b'{"star": "yes"}', b'{"unknown": 1}'):
        answer = full.ask("/api/marks?session=@last", "POST", body, X_Everturn_Token=full.site.token)
        assert answer.status == 400, body
        assert answer.json["schema"] == "everturn/error@1"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/....//app.py", "/static//etc/passwd",
        "/static/%2fetc%2fpasswd", "/static/web.css%00.py", "/static/..\\app.py", "/static/", "/static/web.css/x",
        "/../../etc/passwd", "//etc/passwd", "/s/../sessions.html", "/s/1e3", "/s/-1", "/s/0", "/s/99999999999999999999",
        "/s/1/m/0", "/s/1/m/999999999999", "/session/..%2f..%2fetc%2fpasswd", "/session/%00",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_what_is_served(full: Served, path: str) -> None:
    answer = full.ask(path)
    assert answer.status in (400, 404), answer.status
    assert b"root:" not in answer.body and b"import " not in answer.body


def test_every_answer_says_what_a_browser_may_do(full: Served) -> None:
    for path in ("/", "/nothing", "/api/sessions", "/api/nothing", "/static/web.css", "/s/1", "/s/1?turn=99"):
        headers = full.ask(path).headers
        assert headers["content-security-policy"] == CSP, path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers and "server" not in headers
    assert "unsafe" not in CSP and "http" not in CSP


def test_it_listens_on_this_machine_only(web: Served) -> None:
    with socket.create_connection(("127.0.0.1", web.port), 5) as answered:
        assert answered.getpeername() == ("127.0.0.1", web.port)
    # A server on all addresses would also answer here.
    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", web.port), 5):
        pass
    with closing(open_listener(0)) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Served]:
    """A server that answers only those who know its key."""
    with served(tmp_path, key="k" * 32) as made:
        fill(made)
        yield made


def test_who_does_not_know_the_key_of_a_private_run_reads_nothing(private: Served) -> None:
    cookie = f"everturn-{private.port}"
    for path in ("/", "/s/1", "/api/sessions", "/static/web.css", "/?key=", "/?key=wrong", f"/?KEY={private.site.key}"):
        for shown in ("", f"{cookie}=wrong", f"other={private.site.key}", "\x7f;;=", f"{cookie}="):
            answer = private.ask(path, Cookie=shown)
            assert answer.status == 403, path
            assert b"question" not in answer.body and "set-cookie" not in answer.headers
    assert private.ask("/?key=" + private.site.key, Host="evil.example").status == 421
    assert private.change("/api/verify").status == 403


def begin(served: Served, query: str) -> str:
    """The cookie of a new browser session."""
    answer = served.ask(f"/?{query}")
    assert answer.status == 303
    return str(answer.headers["set-cookie"]).split("; ")[0]


def token_of(served: Served, cookie: str) -> str:
    found = re.search(r'everturn-token" content="(\w+)"', served.ask("/", Cookie=cookie).text)
    assert found
    return found[1]


def test_the_key_goes_from_the_address_into_a_cookie(private: Served) -> None:
    answer = private.ask(f"/s/1?turn=2&key={private.site.key}&x=a%26b")
    assert (answer.status, answer.headers["location"]) == (303, "/s/1?turn=2&x=a%26b")
    cookie, *how = answer.headers["set-cookie"].split("; ")
    assert set(how) == {"Path=/", "HttpOnly", "SameSite=Lax"} and private.site.key not in cookie
    assert private.ask(answer.headers["location"], Cookie=cookie).status == 200
    assert private.ask("/api/sessions", X_Everturn_Key=private.site.key).status == 200
    elsewhere = private.ask(f"//evil.example/x?key={private.site.key}")
    assert elsewhere.headers["location"] == "/evil.example/x"


def test_a_code_opens_one_session(private: Served) -> None:
    code = private.app.sessions.new_code()
    cookie = begin(private, f"once={code}")
    assert private.ask("/", Cookie=cookie).status == 200
    assert private.ask(f"/?once={code}").status == 403
    assert private.ask("/?once=wrong").status == 403


def test_a_change_in_a_private_run_needs_both(private: Served) -> None:
    cookie = begin(private, f"key={private.site.key}")
    token = token_of(private, cookie)
    assert private.ask("/api/examine", "POST", b"{}", Cookie=cookie).status == 403
    assert private.ask("/api/examine", "POST", b"{}", X_Everturn_Token=token).status == 403
    assert private.ask(f"/api/examine?key={private.site.key}", "POST", b"{}", X_Everturn_Token=token).status == 403
    assert private.ask("/api/examine", "POST", b"{}", X_Everturn_Token=token, Cookie=cookie).status == 200


def test_the_token_of_a_session_is_good_for_that_session_only(private: Served) -> None:
    mine, theirs = (begin(private, f"key={private.site.key}") for _ in range(2))
    token = token_of(private, theirs)
    assert token != private.site.token and private.site.token not in private.ask("/", Cookie=mine).text
    assert private.ask("/api/examine", "POST", b"{}", X_Everturn_Token=token, Cookie=mine).status == 403
    assert private.ask("/api/examine", "POST", b"{}", X_Everturn_Token=private.site.token, Cookie=mine).status == 403
