"""A real server in this process over an archive of its own, and a client that says exactly what it is told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import uvicorn

from everturn.clock import now
from everturn.sources.contract import SearchPlaces
from everturn.store.contract import Store, open_store
from everturn.store.pool import open_existing
from everturn.web.app import application, open_listener
from everturn.web.security import Guard
from everturn.web.site import Site, WebArchive
from tests.recall.archives import Archive as Taken

JSON = "application/json"


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Served:
    """A server and the archive behind it."""

    def __init__(self, folder: Path, site: Site, port: int, app: Guard) -> None:
        self.folder, self.site, self.port, self.app = folder, site, port, app
        self.taken = Taken(open_store(site.archive.url), folder / "agent")

    @property
    def home(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
        """One request; `Host` is the right one unless it is given. The path goes out as it is."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        got = connection.getresponse()
        answer = Answer(got.status, {name.lower(): value for name, value in got.getheaders()}, got.read())
        connection.close()
        return answer

    def change(self, path: str, **values: Any) -> Answer:
        """A change as our own pages make it."""
        return self.ask(
            path, "POST", msgspec.json.encode(values), X_Everturn_Token=self.site.token, Content_Type=JSON,
            Origin=self.home,
        )  # fmt: skip

    def done(self, job: Answer) -> Any:
        """Wait for a job that was begun."""
        assert job.status == 200, job.text
        while True:
            told = self.ask(f"/api/jobs?id={job.json['id']}").json
            if told["state"] in ("done", "failed"):
                return told
            time.sleep(0.02)


@contextmanager
def served(
    folder: Path, opened: Callable[[str], Store] = open_existing, url: str = "", **more: Any
) -> Iterator[Served]:
    """A server on a port of its own, over an archive in the folder or at `url`; its agents keep theirs in `folder`/agent."""
    url = url or str(folder / "archive.db")
    open_store(url).close()
    places = SearchPlaces(folder / "home", {}, "linux", {"claude_code": (folder / "agent",)})
    site = Site(WebArchive(url, opened), places, "box", clock=more.pop("clock", now), **more)
    listener = open_listener(0)
    port = listener.getsockname()[1]
    app = application(site, port)
    config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="none", server_header=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    site.live.start()
    made = Served(folder, site, port, app)
    try:
        yield made
    finally:
        server.should_exit = True
        site.live.end_events()
        thread.join(30)
        listener.close()
        made.taken.store.close()
        site.close()


def fill(made: Served) -> int:
    """A session with everything a page shows: parallel calls, a diff, a failure, a subagent. Its number."""
    archive = made.taken
    session = archive.take_in(
        archive.history.turn("first question", "one answer"),
        archive.busy_turn("change the parser"),
        archive.history.turn("third question", "third answer"),
        archive.history.turn("fourth question", "fourth answer"),
    )
    return session.id
