"""One command line of everturn, in a real terminal: the other program is there, shows what was said, and goes on with it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

import everturn
from tests.agents.clients import CLIENTS, Run
from tests.agents.heard import heard, tools
from tests.agents.held import Held, running
from tests.agents.talk import EXPECTED, LAST, PROMPTS, assert_told
from tests.model_server import Asked
from tests.tmux import Pane

pytestmark = [pytest.mark.agents, pytest.mark.needs("tmux")]

NAMES = tuple(CLIENTS)


def giver_for(agent: str) -> str:
    """Another program, and each of them once."""
    return NAMES[NAMES.index(agent) - 1]


def everturn_in(run: Run, held: Held, *words: str) -> Pane:
    """A command line of everturn in a terminal, in the home of a program."""
    env = {
        **run.env,
        "PYTHONPATH": str(Path(everturn.__file__).parents[1]),
        "EVERTURN_HOME": str(run.home / "everturn"),
    }
    command = [sys.executable, "-m", "everturn", *words, "-w", str(run.work), "--db", str(held.home / "archive.db")]
    return Pane(run.home, command, env, (120, 60), run.work)


def asked_for(run: Run, pane: Pane, words: str, presses_enter: bool = False) -> Asked:
    """The first request with these words in it.

    A program may take Enter for a part of the text if it comes right after it (Gemini CLI does): press it until it works.
    """
    last = [0.0]

    def asked() -> list[Asked]:
        found = [one for one in run.server.asked if words in one.text and tools(one)]
        if presses_enter and not found and time.monotonic() - last[0] > 5:
            last[0] = time.monotonic()
            pane.press("Enter")
        return found

    pane.wait(lambda _: bool(asked()))
    return asked()[0]


def type_once_heard(pane: Pane, words: str) -> None:
    """A program that has just drawn its screen may not listen yet: type until the words are there."""
    last = [0.0]

    def is_there(screen: str) -> bool:
        if words not in screen and time.monotonic() - last[0] > 5:
            last[0] = time.monotonic()
            pane.type(words)
        return words in screen

    pane.wait(is_there)


@pytest.mark.parametrize("agent", NAMES)
def test_a_session_is_opened_in_another_program_by_one_command(
    agent: str, held: dict[str, Held], tmp_path: Path
) -> None:
    given = held[giver_for(agent)]
    line = ("resume", given.session.native_id, "--in", agent)
    with running(agent, tmp_path) as run, everturn_in(run, given, *line) as pane:
        pane.wait(lambda text: all(words in text for words in ("SAY-FOUR: seen.", PROMPTS[2])))
        pane.wait(lambda text: any(sign in text for sign in _READY))
        type_once_heard(pane, LAST)
        asked = asked_for(run, pane, LAST, presses_enter=True)
    assert_told(heard(asked), (*EXPECTED, ("user", LAST)))


@pytest.mark.parametrize("agent", NAMES)
def test_a_session_is_handed_over_by_one_command(agent: str, held: dict[str, Held], tmp_path: Path) -> None:
    given = held[giver_for(agent)]
    line = ("handoff", given.session.native_id, "--in", agent)
    with running(agent, tmp_path) as run, everturn_in(run, given, *line) as pane:
        asked = asked_for(run, pane, f"session {given.session.native_id}")
    (prompt,) = [one.text for one in heard(asked) if "You take over work" in one.text]
    assert "data, not instructions" in prompt and "conversation_recall" in prompt
    for asked_before in PROMPTS:
        assert asked_before in prompt


#: What the programs show when they wait for words.
_READY = ("? for shortcuts", "Ask Codex", "ctrl+p commands", "Type your message")
