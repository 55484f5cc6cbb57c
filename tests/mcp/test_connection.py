"""An archive on a server: asked through a connection that may break between two questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everturn.errors import OlderArchive
from everturn.mcp.archive import McpArchive as Served
from everturn.mcp.server import McpServer
from everturn.store import sql_store
from everturn.store.contract import open_store
from tests.mcp.test_tools import said
from tests.recall.archives import Archive

pytestmark = [pytest.mark.slow, pytest.mark.needs("module:psycopg")]


def test_a_connection_that_broke_is_made_again_and_the_question_answered(
    postgres_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    import psycopg

    archive = Archive(open_store(postgres_url), tmp_path / "agent")
    archive.take_in(archive.history.turn("the zebra question", "an answer"))
    archive.store.close()
    offers = McpServer(Served(postgres_url))
    request.addfinalizer(offers.close)
    assert "zebra" in said(offers, "list_sessions")
    with psycopg.connect(postgres_url.rpartition("schema=")[0].rstrip("?&"), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", offers.archive.read(_backend))
    assert "zebra" in said(offers, "open_session")


def _backend(store: Any) -> tuple[int]:
    """The process of the server at the other end of a store's connection."""
    found: tuple[int] = store.driver.one("SELECT pg_backend_pid()")
    return found


def test_an_older_archive_on_a_server_is_left_as_it_is(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(postgres_url).close()
    steps = (
        *sql_store.known_migrations("postgres"),
        sql_store.Migration(99, "later", "CREATE TABLE later (x int)", "abc"),
    )
    monkeypatch.setattr(sql_store, "known_migrations", lambda engine: steps)
    with pytest.raises(OlderArchive, match="everturn sync"):
        open_store(postgres_url, create=False, upgrade=False)
    open_store(postgres_url, create=False).close()
    open_store(postgres_url, create=False, upgrade=False).close()
