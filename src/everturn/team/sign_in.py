"""Login with the team's identity provider (OpenID Connect), on both sides.

On the pages the browser itself is sent to the provider and comes back to the server (`begin_page`, `end_page`). Otherwise the laptop gets a nonce from the team's server and a code for it from the provider: authorization code with PKCE and a redirect
to this machine (RFC 8252). The server exchanges the code, so that a client secret, if there is one, stays there. It checks the ID
token with joserfc: signature, issuer, audience, times, and its own nonce, which is good once. Then it issues a token of its own.

An administrator names the e-mail address of a person. At the first login the provider must have verified that address; from then on
the person is known by the provider's subject, so that an address that changes hands opens nothing.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from secrets import compare_digest, token_urlsafe
from threading import Lock
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import Request, urlopen

from msgspec import Struct

from everturn.errors import EverturnError, UsageError
from everturn.store.contract import Store
from everturn.store.people import SCOPES, People

_ISSUER, _CLIENT, _SECRET = "team oidc issuer", "team oidc client", "team oidc secret"
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]
_NONCE_MS = 600_000
_KEYS_MS = 600_000
_MOST_NONCES = 10_000
_LEEWAY = 60  # seconds that clocks may differ
_TIMEOUT = 20
_LONGEST = 1 << 20  # bytes of a provider's answer
_LOCAL = ("127.0.0.1", "localhost", "::1")
DAYS = 30  # a token is valid after a login


class LoginRefused(EverturnError):
    """A login that is not accepted. The reason does not tell who is known here."""


class ProviderRules(Struct, frozen=True):
    """The provider of a team, and what the team is called there."""

    issuer: str
    client: str


class LoginCode(Struct, frozen=True):
    """The code that the browser brought back, and the proof that it was this laptop that asked."""

    code: str
    verifier: str
    redirect: str


def provider_rules(store: Store) -> ProviderRules | None:
    issuer, client = store.setting(_ISSUER), store.setting(_CLIENT)
    return ProviderRules(issuer, client) if issuer and client else None


def set_provider(store: Store, issuer: str, client: str, secret: str = "") -> None:
    """Set the provider, or none, and the secret of the client if it has one. Raises UsageError for an address without TLS."""
    if issuer:
        _check_address(issuer)
    store.set_setting(_ISSUER, issuer.rstrip("/"))
    store.set_setting(_CLIENT, client)
    store.set_setting(_SECRET, secret)


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
        raise UsageError(f"{address!r} is not the address of an identity provider; it begins with https://")


def _fetch(address: str, form: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a JSON document of the provider. Raises EverturnError."""
    _check_address(address)
    body = urlencode(form).encode() if form is not None else None
    try:
        with urlopen(Request(address, data=body), timeout=_TIMEOUT) as response:  # noqa: S310 -- checked
            found = json.loads(response.read(_LONGEST))
    except HTTPError as error:
        raise LoginRefused(f"the identity provider refused the login (status {error.code}); log in again") from error
    except (URLError, OSError, ValueError) as error:
        raise EverturnError(f"the identity provider at {address} does not answer: {error}; try again later") from error
    if not isinstance(found, dict):
        raise EverturnError(f"the identity provider at {address} does not answer as expected; check its address")
    return found


def _discover(issuer: str) -> dict[str, Any]:
    found = _fetch(f"{issuer}/.well-known/openid-configuration")
    if str(found.get("issuer", "")).rstrip("/") != issuer:
        raise EverturnError(f"the identity provider at {issuer} calls itself {found.get('issuer')!r}; set that issuer")
    return found


def _provider_address(rules: ProviderRules, back: str, state: str, nonce: str, verifier: str) -> str:
    """Return where a browser logs in, and comes back from with a code."""
    address = str(_discover(rules.issuer).get("authorization_endpoint", ""))
    _check_address(address)
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code", "client_id": rules.client, "redirect_uri": back, "scope": "openid email", "state": state,
        "nonce": nonce, "code_challenge": challenge, "code_challenge_method": "S256",
    }  # fmt: skip
    return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}"


# --- the server ---


def _exchange(rules: ProviderRules, secret: str, given: LoginCode) -> str:
    """Return the ID token for a code. Raises LoginRefused."""
    form = {
        "grant_type": "authorization_code", "code": given.code, "redirect_uri": given.redirect, "client_id": rules.client,
        "code_verifier": given.verifier, **({"client_secret": secret} if secret else {}),
    }  # fmt: skip
    found = _fetch(str(_discover(rules.issuer).get("token_endpoint", "")), form).get("id_token")
    if not isinstance(found, str):
        raise LoginRefused("the identity provider sent no ID token; the client there must be one of OpenID Connect")
    return found


def _required_rules(store: Store) -> ProviderRules:
    if (rules := provider_rules(store)) is None:
        raise LoginRefused("this server has no identity provider; log in with a token")
    return rules


def _drop_old(held: dict[str, Any], old: list[str]) -> None:
    """Make room for one more: without these and, if there are too many others, the first."""
    for key in old:
        del held[key]
    while len(held) >= _MOST_NONCES:
        del held[next(iter(held))]


class _PageLogin(Struct, frozen=True):
    """A login in a browser that has begun."""

    nonce: str
    verifier: str
    redirect: str
    until: int


class SignIn:
    """Nonces that were given out, and the provider's keys. Shared by the threads of a server."""

    def __init__(self) -> None:
        self._nonces: dict[str, int] = {}
        self._keys: tuple[str, int, Any] = ("", 0, None)
        self._issuer = ""
        self._begun: dict[str, _PageLogin] = {}
        self._lock = Lock()

    def new_nonce(self, now: int) -> str:
        """Return a nonce that is good for one login within ten minutes."""
        nonce = token_urlsafe(24)
        with self._lock:
            _drop_old(self._nonces, [one for one, until in self._nonces.items() if until <= now])
            self._nonces[nonce] = now + _NONCE_MS
        return nonce

    def begin_page(self, store: Store, redirect: str, now: int) -> tuple[str, str]:
        """Begin a login in a browser; return its state, which the browser must bring back, and the provider's address."""
        rules = _required_rules(store)
        begun = _PageLogin(self.new_nonce(now), token_urlsafe(48), redirect, now + _NONCE_MS)
        state = token_urlsafe(24)
        with self._lock:
            _drop_old(self._begun, [key for key, one in self._begun.items() if one.until <= now])
            self._begun[state] = begun
        return state, _provider_address(rules, redirect, state, begun.nonce, begun.verifier)

    def end_page(self, store: Store, state: str, code: str, now: int) -> dict[str, Any]:
        """Return a new token for the person whose browser came back from the provider. Raises LoginRefused."""
        with self._lock:
            begun = self._begun.pop(state, None)
        if begun is None or begun.until <= now:
            raise LoginRefused("this login has taken too long or was used already; log in again")
        return self._admit(store, LoginCode(code, begun.verifier, begun.redirect), now, begun.nonce)

    def log_in(self, store: Store, given: LoginCode, now: int) -> dict[str, Any]:
        """Return a new token for the person who has logged in at the provider, on a laptop. Raises LoginRefused."""
        if urlsplit(given.redirect).hostname != "127.0.0.1":
            raise LoginRefused("a login comes back to 127.0.0.1 only; log in again")
        return self._admit(store, given, now)

    def _admit(self, store: Store, given: LoginCode, now: int, nonce: str = "") -> dict[str, Any]:
        rules = _required_rules(store)
        claims = self._check(rules, _exchange(rules, store.setting(_SECRET), given), now)
        if nonce and claims["nonce"] != nonce:
            raise LoginRefused("the ID token is of another login; log in again")
        people = People(store)
        address = str(claims.get("email", "")) if claims.get("email_verified") is True else ""
        with store.write():
            name = people.identify(claims["iss"], claims["sub"], address)
            if name is None:
                raise LoginRefused(
                    "the identity provider knows you, but this archive does not; ask an administrator to invite you"
                )
            token = people.new_token(name, SCOPES if people.role(name) == "member" else ("read",), now, DAYS)
            caller = people.caller(token, now)
            if caller is None:
                raise LoginRefused("your access to this archive has ended; ask an administrator")
            people.note(caller, "login", "", now)
        return {"token": token, "name": name, "expires_at": caller.expires_at}

    def _check(self, rules: ProviderRules, id_token: str, now: int) -> dict[str, Any]:
        from joserfc import jwt
        from joserfc.errors import JoseError

        known: Any = {"essential": True}
        issuer: Any = {**known, "value": self._issuer_of(rules)}
        audience: Any = {**known, "value": rules.client}
        registry = jwt.JWTClaimsRegistry(
            now=now // 1000, leeway=_LEEWAY, iss=issuer, aud=audience, exp=known, iat=known, sub=known, nonce=known
        )
        try:
            claims: dict[str, Any] = jwt.decode(id_token, self._key_set(rules, now), algorithms=_ALGORITHMS).claims
            registry.validate(claims)
        except (JoseError, ValueError, KeyError) as error:
            raise LoginRefused(f"the ID token is not valid: {type(error).__name__}; log in again") from error
        if not self._use_nonce(str(claims["nonce"]), now):
            raise LoginRefused("this login has taken too long or was used already; log in again")
        if claims.get("azp") not in (None, rules.client) or not claims["sub"]:
            raise LoginRefused("the ID token is for another program; log in again")
        return claims

    def _use_nonce(self, nonce: str, now: int) -> bool:
        with self._lock:
            return self._nonces.pop(nonce, 0) > now

    def _issuer_of(self, rules: ProviderRules) -> str:
        """Return the issuer as the provider writes it, with or without a slash at the end."""
        with self._lock:
            if self._issuer.rstrip("/") == rules.issuer:
                return self._issuer
        issuer = str(_discover(rules.issuer)["issuer"])
        with self._lock:
            self._issuer = issuer
        return issuer

    def _key_set(self, rules: ProviderRules, now: int) -> Any:
        from joserfc.jwk import KeySet

        with self._lock:
            issuer, until, keys = self._keys
        if issuer == rules.issuer and until > now:
            return keys
        keys = KeySet.import_key_set(_fetch(str(_discover(rules.issuer).get("jwks_uri", ""))))  # type: ignore[arg-type]  # checked there
        with self._lock:
            self._keys = rules.issuer, now + _KEYS_MS, keys
        return keys


# --- the laptop ---


def fetch_code(rules: ProviderRules, nonce: str, browse: Callable[[str], object]) -> LoginCode:
    """Let the user log in at the provider, in the browser that `browse` opens. Raises EverturnError."""
    verifier, state = token_urlsafe(48), token_urlsafe(24)
    answers: list[dict[str, list[str]]] = []
    with _Receiver(answers, state) as receiver:
        back = f"http://127.0.0.1:{receiver.server_port}/callback"
        browse(_provider_address(rules, back, state, nonce, verifier))
        while not answers:
            receiver.handle_request()
            if receiver.gave_up:
                raise EverturnError("nobody logged in within five minutes; run `everturn team login` again")
    answer = answers[0]
    if "code" not in answer:
        why = " ".join(answer.get("error_description") or answer.get("error") or ["no reason given"])
        raise EverturnError(f"the identity provider refused the login: {why[:200]}")
    return LoginCode(answer["code"][0], verifier, back)


class _Receiver(HTTPServer):
    """Waits for the browser to come back. Another `state` than ours is not an answer."""

    timeout = 300
    gave_up = False

    def __init__(self, answers: list[dict[str, list[str]]], state: str) -> None:
        self.answers, self.state = answers, state
        super().__init__(("127.0.0.1", 0), _Callback)

    def handle_timeout(self) -> None:
        self.gave_up = True


class _Callback(BaseHTTPRequestHandler):
    server: _Receiver

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        given = parse_qs(parts.query)
        is_ours = parts.path == "/callback" and compare_digest("".join(given.get("state", ())), self.server.state)
        if is_ours:
            self.server.answers.append(given)
        self.send_response(200 if is_ours else 404)
        self.send_header("content-type", "text/plain; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"You can close this window and go back to the terminal.\n" if is_ours else b"unknown\n")

    def log_message(self, *args: object) -> None:
        """Print nothing."""
