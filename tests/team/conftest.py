"""A team: a shared archive on each engine, its server, and laptops with histories of their own."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import uvicorn

from everturn.capture.policy import Policy
from everturn.cli import main
from everturn.clock import now
from everturn.store.contract import open_store
from everturn.store.people import People
from everturn.team.app import TeamServer
from everturn.team.client import Login, TeamClient
from everturn.team.upload import Push, PushReport
from tests.capture.history import History, run


class Laptop:
    """A machine with a history, an archive and a token."""

    def __init__(self, folder: Path, name: str, login: Login) -> None:
        self.history = History(folder / name)
        self.store = open_store(str(folder / f"{name}.db"))
        self.name, self.client = name, TeamClient(login)

    def talk(self, ask: str, reply: str, sid: str, cwd: str = "/home/ann/shop") -> None:
        """Say something in a session and take it in."""
        data = self.history.turn(ask, reply, sid, cwd=cwd)
        if self.history.file(sid).exists():
            self.history.grow(data, sid)
        else:
            self.history.write(data, sid)
        run(self.store, self.history)

    def push(self, policy: Policy = Policy(), again: bool = False, full: bool = False) -> PushReport:  # noqa: B008 -- frozen
        [machine] = {file.machine for file, _ in self.store.files()}
        return Push(self.store, self.client, policy, machine, full, again).run()


class Team:
    """The server and those who administer it."""

    def __init__(self, url: str, folder: Path, address: str) -> None:
        self.url, self._folder, self.address = url, folder, address

    def admin(self, *words: str) -> int:
        return main(["admin", *words, "--db", self.url])

    def token(
        self, name: str, scopes: tuple[str, ...] = ("read", "push"), days: int = 90, made: int | None = None
    ) -> str:
        with closing(open_store(self.url)) as store, store.write():
            return People(store).new_token(name, scopes, made or now(), days)

    def laptop(self, name: str) -> Laptop:
        return Laptop(self._folder, name, Login(self.address, self.token(name)))

    def client(self, token: str) -> TeamClient:
        return TeamClient(Login(self.address, token))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs("module:psycopg"))])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Team]:
    url = str(tmp_path / "team.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres_archive"))
    assert main(["admin", "init", "--db", url]) == 0
    for name, role in (("ann", "member"), ("bob", "member"), ("rita", "reader"), ("eve", "member")):
        assert main(["admin", "invite", name, "--role", role, "--db", url]) == 0
    with served(url) as address:
        yield Team(url, tmp_path, address)


def served(url: str, **repositories: Path) -> ServedTeam:
    return ServedTeam(url, repositories)


class ServedTeam:
    """The server in a thread of this process."""

    def __init__(self, url: str, repositories: dict[str, Path]) -> None:
        self._team = TeamServer(url, now, repositories=repositories)
        self._listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(self._team.application(), log_level="critical", lifespan="off", ws="none")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.01)
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()
        self._team.close()
