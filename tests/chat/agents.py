"""The two kinds of agents that a chat has: a model behind a server, and an agent written in Python.

`Teller` runs chats with one kind and knows what it was told: each text is one request to a model, or one message to a Python
agent, in order. The Python agent remembers what it was told, as agents of frameworks do, and says how many messages that is.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.chat.program import SUMMARY, Desk, Ran, is_restoration, last_words

_SOURCE = """
import json
import pathlib

LOG = pathlib.Path(__file__).with_suffix(".log")
SUMMARY = {summary!r}


class Agent:
    name = {name!r}
    context_window = {window}

    def __init__(self):
        self.told = []

    def __call__(self, text):
        self.told.append(text)
        with LOG.open("a") as log:
            log.write(json.dumps(text) + "\\n")
        if "Generate a progressive session summary" in text:
            background = "Earlier work." if "Condense this previous summary" in text else "Initial session."
            return SUMMARY.format(background=background, topic="a topic")
        if "CONTEXT RESTORATION" in text:
            return "I have reviewed our previous conversation. Ready to continue!"
        return f"I remember {{len(self.told)}} messages"


{ending}
"""

#: How a file gives its agent.
ENDINGS = {"object": "agent = Agent()", "maker": "def create_agent():\n    return Agent()"}


def write_agent(folder: Path, name: str = "Simple Sally", ending: str = "maker", window: int = 0) -> Path:
    """Write the file of an agent. A window of 0 is not known."""
    path = folder / f"{name.lower().replace(' ', '_')}.py"
    path.write_text(_SOURCE.format(summary=SUMMARY, name=name, window=window, ending=ENDINGS[ending]))
    return path


class Teller:
    """Chats with one kind of agent."""

    def __init__(self, desk: Desk, kind: str, window: int = 0) -> None:
        self.desk, self.kind = desk, kind
        self.path = write_agent(desk.folder, window=window) if kind == "agent" else None
        self.name = "Simple Sally" if self.path else "Assistant"
        self.words = ("--agent", str(self.path)) if self.path else ()

    def chat(self, *lines: str, words: tuple[str, ...] = ("--new",)) -> Ran:
        """A chat in which these lines are typed."""
        return self.desk.chat(*lines, words=(*words, *self.words))

    def told(self) -> list[str]:
        """Everything the agent was told."""
        if self.path is None:
            return [
                "\n\n".join(str(one["content"]) for one in asked.body["messages"]) for asked in self.desk.server.asked
            ]
        log = self.path.with_suffix(".log")
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def restorations(self) -> list[str]:
        """The first thing it was told in each session that continues another."""
        if self.path is None:
            return [last_words(one) for one in self.desk.server.asked if is_restoration(one)]
        return [one for one in self.told() if "CONTEXT RESTORATION" in one]
