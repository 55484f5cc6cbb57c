"""The pages of a team's server, for a browser: log in with a token or the identity provider, search, list, read a session.

They are plain HTML without scripts, made from the same answers as the API, over the same limited connection. The token is in a cookie
that scripts cannot read and other sites cannot send; only these pages, which change nothing, accept it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from secrets import compare_digest
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from starlette.responses import RedirectResponse, Response

from everturn.errors import UsageError
from everturn.export.page.markup import Html, element
from everturn.sessions.lookup import resolve_session
from everturn.team import answers
from everturn.team.sign_in import LoginRefused, provider_rules
from everturn.text.times import iso

if TYPE_CHECKING:
    from everturn.team.app import TeamRequest

COOKIE = "everturn_team"
_STATE = "everturn_login"
_LOCAL = ("127.0.0.1", "localhost", "::1")
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1f;background:#fff}
@media(prefers-color-scheme:dark){body{color:#e6e6ea;background:#17171a}a{color:#8ab4f8}}
form{display:flex;gap:.5rem;margin:1rem 0}input{flex:1;font:inherit;padding:.4rem}button{font:inherit;padding:.4rem .8rem}
ol{list-style:none;padding:0}li{margin:.8rem 0;overflow-wrap:anywhere}small{opacity:.75;display:block}mark{font-weight:600}
pre{white-space:pre-wrap;overflow-wrap:anywhere}table{border-collapse:collapse}td,th{padding:.2rem .7rem .2rem 0;text-align:left}
nav{display:flex;gap:1rem;justify-content:space-between;align-items:center}
"""
_DIGEST = b64encode(sha256(_STYLE.encode()).digest()).decode()
HEADERS = {
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{_DIGEST}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow",
}


def token_of(headers: Mapping[str, str]) -> str:
    """Return the token in the cookie of a request, or ""."""
    return _cookie(headers, COOKIE)


def _cookie(headers: Mapping[str, str], name: str) -> str:
    try:
        held = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return held.value if held else ""


def to_login() -> Response:
    """Send a browser without a valid token to the form."""
    return RedirectResponse("/login", 303)


def login_form(request: TeamRequest) -> Response:
    return _page("Log in", _login_body(request, ""))


def begin_sign_in(request: TeamRequest) -> Response:
    """Send a browser to the identity provider. A cookie says on the way back that it is the same browser."""
    assert request.sign_in is not None
    host, is_local = _host(request)
    back = f"{'http' if is_local else 'https'}://{host}/login/back"
    state, address = request.sign_in.begin_page(request.store, back, request.now)
    answer = RedirectResponse(address, 303)
    answer.set_cookie(_STATE, state, max_age=600, httponly=True, samesite="lax", secure=not is_local, path="/login")
    return answer


def end_sign_in(request: TeamRequest) -> Response:
    """Take a browser back from the identity provider, with a token of ours in a cookie."""
    assert request.sign_in is not None
    state, begun = request.given.get("state", ""), _cookie(request.headers, _STATE)
    if not state or not compare_digest(state.encode(), begun.encode()):
        raise LoginRefused("this login was begun in another browser, or has taken too long; log in again")
    if "code" not in request.given:
        raise LoginRefused("the identity provider refused the login")
    made = request.sign_in.end_page(request.store, state, request.given["code"], request.now)
    # The browser comes from another site, so that it would not send the cookie to a redirect: the page moves on by itself.
    onward = Html('<meta http-equiv="refresh" content="0;url=/">') + element("p", element("a", "continue", href="/"))
    answer = _page("Logged in", Html(onward))
    _set_token(answer, request, made["token"], made["expires_at"])
    answer.delete_cookie(_STATE, httponly=True, samesite="lax", path="/login")
    return answer


def log_in(request: TeamRequest) -> Response:
    """Put a valid token into a cookie. A form of another site is refused."""
    from everturn.store.people import People

    origin, (host, _) = request.headers.get("origin", ""), _host(request)
    if origin and urlsplit(origin).netloc != host:
        raise UsageError("this form belongs to another site; open the address of the server itself")
    token = parse_qs(request.body.decode("ascii", "replace")).get("token", [""])[0].strip()
    caller = People(request.store).caller(token, request.now)
    if caller is None or not caller.may("read"):
        return _page("Log in", _login_body(request, "This token is not valid, or no longer, or not for reading."), 403)
    answer = RedirectResponse("/", 303)
    _set_token(answer, request, token, caller.expires_at)
    return answer


def _set_token(answer: Response, request: TeamRequest, token: str, expires_at: int) -> None:
    seconds = max((expires_at - request.now) // 1000, 1)
    is_local = _host(request)[1]
    answer.set_cookie(COOKIE, token, max_age=seconds, httponly=True, samesite="strict", secure=not is_local)


def _host(request: TeamRequest) -> tuple[str, bool]:
    """Return the host that the browser names, and whether it is this machine."""
    host = request.headers.get("host", "")
    return host, (urlsplit(f"//{host}").hostname or "") in _LOCAL


def log_out(request: TeamRequest) -> Response:
    answer = to_login()
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def overview(request: TeamRequest) -> Response:
    """Show the hits of a query or, without one, the newest sessions."""
    words = request.given.get("q", "").strip()
    found = answers.search_archive(request) if words else answers.list_sessions(request)
    items = [_item_html(one) for one in found["items"]] or [
        element("li", "Nothing was found." if words else "There are no sessions yet.")
    ]
    note = element("p", found["note"]) if found.get("note") else Html("")
    more = Html("")
    if found["next"]:
        given = {"q": words, "cursor": found["next"]} if words else {"after": found["next"]}
        more = element("p", element("a", "more", href=f"/?{urlencode(given)}"))
    search = element(
        "form",
        _input(name_="q", value=words, placeholder="words, owner:ann project:shop since:7d", aria_label="Search"),
        element("button", "Search"),
        action="/",
    )
    return _page(words or "Sessions", Html(_head(request) + search + note + element("ol", Html("".join(items))) + more))


def _head(request: TeamRequest) -> Html:
    links = [element("a", "Sessions", href="/"), element("a", "Statistics", href="/stats")]
    links += [element("a", "Why", href="/why")] if request.repositories else []
    return element(
        "nav",
        element("span", f"{request.caller.name}: what you may see"),
        *links,
        element("form", element("button", "Log out"), method="post", action="/logout"),
    )


def session_page(request: TeamRequest) -> Response:
    """Show a session that the caller may see, with secrets masked and without pictures."""
    session = resolve_session(request.store, request.given["session"])
    return Response(answers.session_html(request.store, session), media_type="text/html", headers=answers.PAGE_HEADERS)


def restored_page(request: TeamRequest) -> Response:
    """Show what a fresh agent must know to continue a session."""
    made = answers.restore_session(request)
    address = f"/sessions/{quote(made['session'], safe='')}"
    whole = element("p", element("a", "the whole session", href=address))
    return _page(made["title"] or made["session"], Html(_head(request) + whole + element("pre", made["text"])))


def stats_page(request: TeamRequest) -> Response:
    """Show what the sessions that the caller may see did."""
    from everturn.store.analytics import WORK_KEYS

    found = answers.sum_work(request)
    names = ("sessions", "turns", "calls", "errors", "tokens_in", "tokens_out", "tokens_cache_read")
    head = element("tr", *(element("th", one.replace("_", " ")) for one in (found["by"], *names)))
    rows = [
        element("tr", element("td", one["key"] or "-"), *(element("td", f"{one[name]:,}") for name in names))
        for one in found["items"]
    ]
    links = [element("a", f"by {one}", href=f"/stats?by={one}") for one in WORK_KEYS]
    body = _head(request) + element("nav", *links) + element("table", head, *rows)
    return _page("Statistics", Html(body))


def why_page(request: TeamRequest) -> Response:
    """Ask which turn wrote a line, and show the answer."""
    target, project = request.given.get("target", "").strip(), request.given.get("project", "")
    project = project or next(iter(request.repositories), "")
    fields = [
        _input(name_="project", value=project, placeholder="github.com/example/shop", aria_label="Project"),
        _input(
            name_="target", value=target, placeholder="src/app.py:10-20, a commit, main..feature", aria_label="Target"
        ),
    ]
    form = element("form", *fields, element("button", "Ask"), action="/why")
    answer = element("pre", answers.find_why(request)["text"]) if target else Html("")
    return _page("Why", Html(_head(request) + form + answer))


def refusal(sentence: str, status: int) -> Response:
    """Show an error as a page."""
    return _page("Not possible", Html(element("p", sentence) + element("p", element("a", "back", href="/"))), status)


def _input(**attributes: str) -> Html:
    return Html(element("input", **attributes).removesuffix("</input>"))


def _login_body(request: TeamRequest, note: str) -> Html:
    field = _input(
        name_="token", type_="password", autocomplete="current-password", aria_label="Token", required="required"
    )
    form = element("form", field, element("button", "Log in"), method="post", action="/login")
    hint = "An administrator makes your token with `everturn admin invite`, or `everturn team login --sso` gets one."
    provider = Html("")
    if provider_rules(request.store) is not None:
        provider = element("p", element("a", "Log in with your identity provider", href="/login/sso"))
    return Html((element("p", note) if note else "") + provider + form + element("p", hint))


def _item_html(one: dict[str, Any]) -> Html:
    address = f"/sessions/{quote(one['session'], safe='')}"
    turn = f"#t{one['turn']}" if one.get("turn") else ""
    facts = [
        one["owner"],
        one["machine"],
        one["agent"],
        one["workspace"],
        iso(one["ended"])[:10] if one["ended"] else "",
    ]
    snippet = _mark_spans(one["snippet"], one["spans"]) if one.get("snippet") else Html("")
    title = element("a", one["title"] or one["session"], href=address + turn)
    restored = element("a", "restore", href=f"{address}/restore")
    return element("li", title, element("small", " · ".join(filter(None, facts)), Html(" · "), restored), snippet)


def _mark_spans(text: str, spans: list[tuple[int, int]]) -> Html:
    parts, at = [], 0
    for start, end in spans:
        parts += [element("span", text[at:start]), element("mark", text[start:end])]
        at = end
    return element("span", *parts, element("span", text[at:]))


def _page(title: str, body: Html, status: int = 200) -> Response:
    head = element("title", f"{title} – everturn")
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, '
        f'initial-scale=1">\n{head}\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{element("h1", title)}\n{body}\n</main>\n</body>\n</html>\n'
    )
    return Response(text, status, media_type="text/html", headers=HEADERS)
