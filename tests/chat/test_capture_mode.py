"""A chat under the user's capture rules: what may be kept of it, and what is on disk afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.program import Desk
from tests.secrets.secret_vectors import TOKENS

WORD = "qzwvxkjyq"
TOKEN = TOKENS["github_token"][0]


def kept(desk: Desk) -> str:
    """Everything of the archive and of saved chats, as text."""
    store = desk.store()
    driver = store.driver  # type: ignore[attr-defined]
    chunks = [store.read_chunk(digest).decode() for (digest,) in driver.all('SELECT "digest" FROM "blob"')]
    rows = repr(driver.all('SELECT * FROM "kept"')) + repr(driver.all('SELECT * FROM "session_text"'))
    saved = [path.read_text() for path in desk.home.rglob("*.md")]
    return rows + "".join(chunks) + "".join(saved)


@pytest.mark.parametrize("mode", ["redacted", "structure", "off"])
def test_a_chat_keeps_what_its_mode_allows(desk: Desk, mode: str) -> None:
    config = desk.home / "config.toml"
    config.write_text(config.read_text() + f'\n[capture]\nmode = "{mode}"\n')
    ran = desk.chat(f"{WORD} my token is {TOKEN}", "exit")
    assert ran.code == 0 and "answer 1" in ran.out
    found = kept(desk) if Path(desk.home / "archive.db").exists() else ""
    assert TOKEN not in found and (WORD in found) == (mode == "redacted")
    assert ("nothing of this chat is kept" in ran.err) == (mode != "redacted")
