"""A small session to restore, and a scripted model to restore it with, over real HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from everturn.llm import anthropic_messages, chat_completions
from everturn.llm.asker import AskBudget, Asker
from everturn.llm.http_backend import Endpoint, HttpBackend, Patience
from everturn.model.archive import Session
from everturn.restore.summaries import ModelRestoreOptions
from everturn.secrets.redaction import redact_text
from everturn.sources.contract import all_sources
from everturn.store.contract import Store
from tests.capture.history import ticking
from tests.model_server import Asked, ModelServer
from tests.model_wires import Says
from tests.recall.archives import Archive

SOURCES = all_sources()
NOW = 1_772_000_000_000
WIRES = {"messages": anthropic_messages, "chat": chat_completions}
#: No pause between tries: the tests count them, they do not wait for them.
HASTY = Patience(connect=5, read=5, total=30, tries=3, pause=0.0)

CONFIG = "/home/ann/shop/config.py"
LOGIN = "/home/ann/shop/src/login.py"


def shop(store: Store, folder: Path) -> Session:
    """Three turns: a file is read and edited, a test fails, a rule is given."""
    archive = Archive(store, folder)
    line, use, back = archive.history.line, archive.use, archive.back
    return archive.take_in(
        line("user", "Please add refresh tokens to the login. Never push to main."),  # 1
        use("Read", "c1", file_path=CONFIG),  # 2
        back("c1", "TIMEOUT = 30\nRETRIES = 5\n"),  # 3
        use("Edit", "c2", file_path=LOGIN, old_string="old token", new_string="refresh token"),  # 4
        back("c2", "The file was updated."),  # 5
        line("assistant", [{"type": "text", "text": "I added refresh tokens to src/login.py."}]),  # 6
        line("user", "Now run the tests."),  # 7
        use("Bash", "c3", command="pytest -q tests/test_login.py"),  # 8
        back("c3", "Exit code 1\nE  AssertionError: expected 401, got 500\n1 failed, 41 passed", failed=True),  # 9
        line("assistant", [{"type": "text", "text": "One test fails: expected 401, got 500."}]),  # 10
        line("user", "We decided to store tokens in PostgreSQL, not Redis. What is left?"),  # 11
        line("assistant", [{"type": "text", "text": "Next step: fix the failing login test. Should old tokens expire?"}]),
    )  # fmt: skip


def asker(server: ModelServer, wire: str = "messages", budget: AskBudget | None = None, **patience: Any) -> Asker:
    """An asker of the scripted model."""
    base = server.root if wire == "messages" else server.base
    waits = Patience(**{"connect": 5, "read": 5, "total": 30, "tries": 3, "pause": 0.0, **patience})
    backend = HttpBackend("scripted", "model-1", WIRES[wire], Endpoint(base, waits))
    return Asker(backend, budget or AskBudget(), redact_text, ticking())


def options(**more: Any) -> ModelRestoreOptions:
    """Options with a fixed time."""
    return ModelRestoreOptions(now=NOW, **more)


def prompt_of(asked: Asked) -> str:
    """Return the text of the last user message of a request."""
    content = next(one for one in reversed(asked.body["messages"]) if one["role"] == "user")["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def purpose_of(asked: Asked) -> str:
    """Return which of the prompts it was: turn, evidence or synthesis."""
    text = asked.text
    if "TURN SUMMARY" in text and "Now write the summary of turn" in text:
        return "turn"
    return "evidence" if "Rounds left" in text else "synthesis"


def turn_number(asked: Asked) -> int:
    """Return the turn to summarise."""
    return int(prompt_of(asked).rpartition("Now write the summary of turn ")[2].split()[0])


TURNS = {
    1: """TURN SUMMARY

Turn number: 1
User request summary: Add refresh tokens to the login [t1 #1]
Agent response summary: Read config.py and edited src/login.py [t1 #4]
Key outcomes: Refresh tokens added to src/login.py [t1 #6]
State changes: None
Artifacts modified: src/login.py
Constraints/assumptions added: Never push to main [t1 #1]
Open questions after this turn: None""",
    2: """TURN SUMMARY

Turn number: 2
User request summary: Run the tests [t2 #7]
Agent response summary: Ran pytest [t2 #8]
Key outcomes: One test fails: expected 401, got 500 [t2 #10]
State changes: None
Artifacts modified: None
Constraints/assumptions added: None
Open questions after this turn: Why does the login answer with 500?""",
    3: """TURN SUMMARY

Turn number: 3
User request summary: Asked what is left [t3 #11]
Agent response summary: Named the next step [t3 #12]
Key outcomes: None
State changes: Tokens are stored in PostgreSQL, not Redis [t3 #11]
Artifacts modified: None
Constraints/assumptions added: None
Open questions after this turn: Should old tokens expire? [t3 #12]""",
}

SUMMARY = """SESSION SUMMARY

Session name: Refresh tokens for the login [t1 #1]
High-level goal:
- Add refresh tokens to the login [t1 #1]
Primary task in progress:
- Fix the failing login test [t3 #12]
Key decisions already made:
- Tokens are stored in PostgreSQL, "not Redis" [t3 #11]
Constraints and assumptions:
- "Never push to main" [t1 #1]
Artifacts referenced or created:
- src/login.py: edited for refresh tokens [t1 #4]
- config.py was read [t1 #2]
Open questions:
- "Should old tokens expire?" [t3 #12]
Next concrete steps:
- Fix the failing login test: "expected 401, got 500" [t2 #9]
"""

DONE = Says("[COMPLETE_EVIDENCE_SEARCH]")


def good(asked: Asked, evidence: Says = DONE, summary: str = SUMMARY) -> Says:
    """A model that answers as requested."""
    purpose = purpose_of(asked)
    if purpose == "turn":
        return Says(TURNS[turn_number(asked)])
    return evidence if purpose == "evidence" else Says(summary)
