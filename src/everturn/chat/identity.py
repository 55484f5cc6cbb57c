"""Who held a session, and with which prompt and workspace; and the question before somebody else goes on with it.

The agent that began a session and the one that answered last are recorded in its journal, and each answer has the name and
the path of its agent. A session of another program has the name that its file gives. `confirm_identity` is asked on every
path to an earlier session: by number, by id, by `--resume` and by `everturn resume`. Without a terminal a difference is an
error, unless `--force` is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from everturn.chat.screen import ChatScreen
from everturn.chat.setup import Agent, ChatSetup
from everturn.errors import SessionDiffers
from everturn.loop.journal_state import AGENT
from everturn.model.archive import Session
from everturn.sessions.messages import stored_lines
from everturn.store.contract import Store

_BEGINNING = 64 << 10  # bytes of a journal in which its first agent is recorded
_UNSIGNED = Agent()
_SIGNED = b'"agent_path":"'


class ResumptionDeclined(Exception):
    """The person declined to continue a session of another agent, prompt or workspace."""


class SessionIdentity(Struct, frozen=True):
    """The agent or model that a session was held with."""

    agent: Agent = _UNSIGNED  # that began it
    last: Agent = _UNSIGNED  # that answered last
    system: str | None = None  # the system prompt; None: unknown
    workspace: str = ""
    restored: dict[str, Any] = {}  # the sessions it was restored from, with their summary
    is_foreign: bool = False  # held by another program


class IdentityDifference(Struct, frozen=True):
    """One thing that is not as it was, in words."""

    what: str  # agent | prompt | workspace
    old: str
    new: str

    @property
    def sentence(self) -> str:
        if self.what == "workspace":
            return f"Session of the workspace {self.old}, using it in {self.new}."
        return f"Session created with {self.old}, using {self.new}."


def read_identity(setup: ChatSetup, session: Session) -> SessionIdentity:
    """Return what a session was held with, from its journal or its file."""
    workspace = setup.store.session(session.id)[1].workspace
    if session.agent != AGENT:
        agent = _foreign_agent(setup, session)
        return SessionIdentity(agent, agent, workspace=workspace, is_foreign=True)
    agents: list[Agent] = []
    system, restored = None, {}
    for record in _identity_records(setup.store, session):
        kind, data = record.get("kind"), record.get("data")
        if record.get("type") == "setup":
            system = str(record.get("system", ""))
        elif kind == "agent" and isinstance(data, dict):
            agents.append(_read_agent(data))
        elif kind == "restored" and isinstance(data, dict):
            restored = data
    agents = agents or _signatures(setup.store, session) or [_UNSIGNED]
    return SessionIdentity(agents[0], agents[-1], system, workspace, restored)


def first_agent(setup: ChatSetup, session: Session) -> Agent:
    """Return the agent that began a session. Its name is that of the saved file."""
    if session.agent != AGENT:
        return _foreign_agent(setup, session)
    head = setup.store.read_raw(session.version, 0, _BEGINNING)
    found = (_decode(line) for line in head.split(b"\n") if b'"kind":"agent"' in line)
    return next((_read_agent(one["data"]) for one in found if isinstance(one.get("data"), dict)), _UNSIGNED)


def agent_file(store: Store, session: Session) -> str:
    """Return the file of the Python agent that held a session last; "" if a model or another program did."""
    if session.agent != AGENT:
        return ""
    states = [one for one in _identity_records(store, session) if one.get("kind") == "agent"]
    agents = [_read_agent(data) for one in states if isinstance(data := one.get("data"), dict)]
    agents = agents or _signatures(store, session)
    return agents[-1].path if agents else ""


def find_differences(setup: ChatSetup, identity: SessionIdentity) -> Iterator[IdentityDifference]:
    """Yield what is not as it was when the session was held."""
    old, new = identity.last, setup.agent
    if identity.is_foreign:
        if (old.name, old.path) != (new.name, new.path):
            yield IdentityDifference("agent", old.path or old.name, new.path or new.name)
    elif old.path != new.path:
        yield IdentityDifference("agent", old.path or "no agent file", new.path or "no agent file")
    if identity.system is not None and identity.system != setup.instructions:
        yield IdentityDifference("prompt", _name_prompt(identity.system), _name_prompt(setup.instructions))
    if identity.workspace and setup.workspace and Path(identity.workspace) != Path(setup.workspace):
        yield IdentityDifference("workspace", identity.workspace, setup.workspace)


def confirm_identity(setup: ChatSetup, sessions: Sequence[Session], screen: ChatScreen, force: bool = False) -> None:
    """Ask whether to go on if anything differs. Raises ResumptionDeclined, and SessionDiffers without a terminal."""
    found = [(one, list(find_differences(setup, read_identity(setup, one)))) for one in sessions]
    for session, differences in found:
        if differences and not force and not screen.is_terminal:
            raise SessionDiffers(session.native_id, [one.sentence for one in differences])
    sentences = dict.fromkeys(one.sentence for _, differences in found for one in differences)
    for sentence in () if force else sentences:
        screen.warn(sentence)
    if sentences and not force and not screen.agrees("Continue?"):
        raise ResumptionDeclined


def _foreign_agent(setup: ChatSetup, session: Session) -> Agent:
    source = setup.sources.get(session.agent)
    name = setup.store.session(session.id)[1].agent_name
    return Agent(name or (source.title if source is not None else session.agent), "")


def _identity_records(store: Store, session: Session) -> Iterator[dict[str, Any]]:
    wanted = (b'"type":"setup"', b'"kind":"agent"', b'"kind":"restored"')
    for line in stored_lines(store, store.version(session.version)):
        if any(mark in line[:200] for mark in wanted):
            yield _decode(line)


def _signatures(store: Store, session: Session) -> list[Agent]:
    """Return the agents that signed answers. The record of the agent is erased with a forgotten parent; these stay."""
    signed = (line for line in stored_lines(store, store.version(session.version)) if _SIGNED in line)
    replies = (_decode(line).get("reply") for line in signed)
    found = (Agent(str(one.get("agent", "")), str(one["agent_path"])) for one in replies if isinstance(one, dict))
    return list(dict.fromkeys(found))


def _decode(line: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _read_agent(data: dict[str, Any]) -> Agent:
    return Agent(str(data.get("name", "")) or _UNSIGNED.name, str(data.get("path", "")))


def _name_prompt(system: str) -> str:
    digest = sha256(system.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"the system prompt {digest}" if system else "no system prompt"
