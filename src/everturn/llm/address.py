"""Where a request may go: to https, or to this machine itself.

An address with a name and password in it is refused, since addresses are shown and logged where keys must not be.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit, urlunsplit

from everturn.errors import BadConfig


def address(name: str, base: str, path: str) -> str:
    """`path` behind a base address; a query of the base stays behind both. Raises `BadConfig`."""
    key = f"models.{name}.base_url"
    try:
        parts = urlsplit(base)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise BadConfig(key, "is no address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise BadConfig(key, "must be an address that begins with https://")
    if "@" in parts.netloc:
        raise BadConfig(key, "must not hold a password: name the key with key_env or keyring")
    if parts.scheme == "http" and not is_loopback(host):
        raise BadConfig(key, f"{host} is another machine, so the address must begin with https://")
    return urlunsplit(SplitResult(parts.scheme, parts.netloc, join_address(parts.path, path), parts.query, ""))


def join_address(base: str, path: str) -> str:
    """Both paths; a version that both name (`…/v1` and `/v1/…`) is named once."""
    base = base.rstrip("/")
    first = "/" + path.split("/")[1]
    return base + (path.removeprefix(first) if base.endswith(first) and path.count("/") > 1 else path)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
