"""A conversation that a real program has held, in an archive; and a converted one, opened in another real program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from everturn import clock
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import sync_all
from everturn.model.archive import Session
from everturn.resume.handoff import NativeOptions, NativePlan, plan_native, write_native
from everturn.sessions.lookup import best_match
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store, open_store
from tests.agents.clients import CLIENTS, Run
from tests.agents.heard import Heard, heard, tools
from tests.agents.talk import LAST, PROMPTS, script
from tests.model_server import ModelServer


@dataclass(frozen=True)
class Held:
    """A conversation in an archive."""

    store: Store
    session: Session
    home: Path  # of the program; the archive is archive.db in it

    def files(self) -> dict[Path, bytes]:
        """Everything of the program's."""
        found = (path for path in self.home.rglob("*") if path.is_file() and not path.name.startswith("archive.db"))
        return {path: path.read_bytes() for path in found}


def hold(agent: str, home: Path) -> Held:
    """Let a program hold the conversation of `talk`, and take it into an archive."""
    store = open_store(str(home / "archive.db"))
    with running(agent, home) as run:
        run.begin(PROMPTS[0])
        session = taken_in(run, store)
        for prompt in PROMPTS[1:]:
            run.again(resume(agent, session.native_id), prompt)
        return Held(store, taken_in(run, store, session.native_id), home)


def taken_in(run: Run, store: Store, native_id: str = "") -> Session:
    """The newest session of a program, or that with an id, after a sync."""
    source = all_sources()[run.client.name]
    job = SyncJob(store, {source.name: source}, run.places(), Policy(), "box", "ann", clock.now)
    assert sync_all(job).failed == []
    if native_id:
        return best_match(store.sessions_of(source.name, native_id))
    return store.sessions(SessionFilter(agent=source.name))[0][0][0]


@contextmanager
def running(agent: str, home: Path) -> Iterator[Run]:
    """A program in a home of its own, with a model to talk to."""
    client = CLIENTS[agent]
    with ModelServer(script(client)) as server:
        yield Run(client, home, server).settle()


def resume(agent: str, native_id: str) -> list[str]:
    """everturn's command to go on with a session."""
    command = all_sources()[agent].resume_command
    assert command is not None
    return command(native_id)


def converted(held: Held, run: Run, upto: int | None = None, fit: int = 0) -> NativePlan:
    """The conversation as a session of another program, written into its home."""
    target = all_sources()[run.client.name]
    folder = run.home / "handed-over"
    wanted = NativeOptions(target, run.places(), clock.new_id(), clock.now(), folder, str(run.work), upto, fit)
    made = plan_native(held.store, all_sources(), held.session, wanted)
    write_native(held.store, held.session, made)
    if made.take_in:
        run.run(made.take_in)
    return made


def next_request(run: Run, command: list[str]) -> list[Heard]:
    """What the model is told when the program goes on with a session by its own command."""
    run.again(command, LAST)
    asked = [one for one in run.server.asked if LAST in one.text and tools(one)]
    assert asked, "the program did not ask its model"
    return heard(asked[0])
