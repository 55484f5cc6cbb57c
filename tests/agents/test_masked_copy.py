"""A masked copy in a program's own format: the real program opens it and tells its model everything but the secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from everturn.model.archive import Session
from everturn.store.contract import Store, open_store
from tests.agents.clients import CLIENTS, Run
from tests.agents.held import next_request, resume, running, taken_in
from tests.agents.talk import EXPECTED, LAST, PROMPTS, assert_told

pytestmark = pytest.mark.agents

_SECRET = "AKIA" + "Q7XW2MZP4RTY5LNB"


def _exported(run: Run, session: Session, archive: Path, folder: Path) -> Path:
    folder.mkdir()
    words = ["export", session.native_id, "--as", "native", "--redacted", "--out", f"{folder}/", "--db", str(archive)]
    env = {**run.env, "EVERTURN_HOME": str(folder.parent / "everturn"), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-m", "everturn", *words], env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    (copy,) = folder.iterdir()
    return copy


def _put_back(run: Run, store: Store, session: Session, copy: Path) -> str:
    """Give the copy to the program in place of its own file, or import it; return the name of the session."""
    if run.client.name == "opencode":
        run.run(["opencode", "import", str(copy)])
        return str(json.loads(copy.read_bytes())["info"]["id"])
    (file,) = [file for file, version in store.files() if version.id == session.version]
    Path(file.path).write_bytes(copy.read_bytes())
    return session.native_id


@pytest.mark.parametrize("agent", CLIENTS)
def test_a_program_opens_a_masked_copy(agent: str, tmp_path: Path) -> None:
    archive = tmp_path / "archive.db"
    with closing(open_store(str(archive))) as store, running(agent, tmp_path / "home") as run:
        run.begin(f"{PROMPTS[0]} with the key {_SECRET}, please")
        session = taken_in(run, store)
        copy = _exported(run, session, archive, tmp_path / "copy")
        assert _SECRET.encode() not in copy.read_bytes()
        told = next_request(run, resume(agent, _put_back(run, store, session, copy)))
    told = list(dict.fromkeys(told))  # Gemini CLI repeats results when it goes on with a file of its own
    assert_told(told, (*EXPECTED[:7], ("user", LAST)))
    shown = "\n".join(one.text for one in told)
    assert _SECRET not in shown and "[REDACTED:aws_access_key" in shown
