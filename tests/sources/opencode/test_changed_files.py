"""The files that changed in a step belong to the subagent that ran in it, if nothing else can have changed them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sources.goldens import ingest
from tests.sources.opencode.building import CHILD, PARENT, assistant, info, text, tool, user

CHANGED = ["/home/ann/otter/src/fish.py", "/home/ann/otter/src/river.py"]


@pytest.mark.parametrize(("others", "known"), [((), CHANGED), (("bash",), []), (("read",), CHANGED)])
def test_files_of_a_subagent(tmp_path: Path, others: tuple[str, ...], known: list[str]) -> None:
    calls = [tool("task", "call_1", {"prompt": "feed them"}, "Done.", sessionId=CHILD)]
    given = {"bash": {"command": "git pull"}, "read": {"filePath": "/home/ann/otter/notes.md"}}
    calls += [tool(name, f"call_{name}", given[name], "ok") for name in others]
    step = assistant(2, *calls, {"type": "patch", "hash": "1a2b", "files": CHANGED})
    document = {"info": info(PARENT, "otters"), "messages": [user(1, text("feed the otters")), step]}
    path = tmp_path / f"{PARENT}.json"
    path.write_text(json.dumps(document))
    with ingest("opencode", path) as taken:
        (session,) = taken.store.sessions_of("opencode", PARENT)
        edited = [one.path for one in taken.store.artifacts(session.id) if one.action == "edited"]
    assert edited == known
