"""Notes and traces of `why`, and the summary that the GitHub Action makes of notes."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

from tests.attribution.conftest import Run
from tests.attribution.test_why import plant
from tests.planted_repository import PlantedRepository

SUMMARY = Path(__file__).parents[2] / "scripts" / "notes_summary.py"


def export(run: Run, story: PlantedRepository, form: str, *more: str) -> str:
    code, out, err = run("why", "HEAD", "-C", str(story.root), "--export", form, *more)
    assert code == 0, err
    return out


def test_a_note_has_ids_and_ranges_and_no_request(story: PlantedRepository, run: Run) -> None:
    session = plant(story)
    run("sync")
    export(run, story, "notes", "--yes")
    head, _, about = story.git("notes", "--ref=ai", "show", "HEAD").partition("\n---\n")
    lines = head.splitlines()
    assert lines[0] == "src/price.py" and lines[1].startswith("  s_") and lines[1].endswith(" 1-4")
    told = json.loads(about)
    assert told["schema_version"] == "authorship/3.0.0" and told["base_commit_sha"] == story.head()
    assert list(told["sessions"].values()) == [{"agent_id": {"tool": "claude_code", "id": session.id}}]
    assert "rounds prices" not in about and "h_" not in head
    done = subprocess.run(
        [sys.executable, str(SUMMARY), "", "HEAD"], cwd=story.root, capture_output=True, text=True, check=True
    )
    assert session.id in done.stdout and "4 of 4" in done.stdout
    assert not export(run, story, "notes", "--yes")  # once is enough
    assert not story.git("notes", "--ref=everturn", "list")


def test_forget_tells_how_to_remove_the_notes_that_name_a_session(story: PlantedRepository, run: Run) -> None:
    session = plant(story)
    run("sync")
    export(run, story, "notes", "--yes")
    code, out, err = run("forget", session.id, "--yes", "--json")
    assert code == 0, err
    (command,) = json.loads(out)["remove_notes"]
    subprocess.run(shlex.split(command), check=True, capture_output=True)
    assert not story.git("notes", "--ref=ai", "list").strip()


def test_a_note_of_others_is_never_replaced(story: PlantedRepository, run: Run) -> None:
    plant(story)
    run("sync")
    story.git("notes", "--ref=ai", "add", "-m", "theirs", "HEAD")
    export(run, story, "notes", "--yes")
    assert story.git("notes", "--ref=ai", "show", "HEAD").strip() == "theirs"
    ours = story.git("notes", "--ref=everturn", "show", "HEAD")
    export(run, story, "notes", "--yes")
    assert story.git("notes", "--ref=everturn", "show", "HEAD") == ours


def test_requests_are_exported_only_when_asked_for_and_shown_first(story: PlantedRepository, run: Run) -> None:
    session = plant(story)
    story.prompt(session, "a secret side project")
    story.write(session, "src/side.py", ["SIDE_PROJECT_OF_MINE = 1"])
    story.session_commit(session, "Side")
    story.save_transcripts()
    run("sync")
    code, out, err = run("why", "HEAD~2..HEAD", "-C", str(story.root), "--export", "notes", "--yes", "--with-requests")
    assert code == 0 and "rounds prices" in out, err
    first = story.git("notes", "--ref=ai", "show", "HEAD~1")
    lines, _, about = first.partition("\n---\n")
    ((key, text),) = json.loads(about)["everturn"]["requests"].items()
    assert key in lines and "rounds prices" in text and "side project" not in first


def test_a_trace_record_has_the_level_and_the_rule(story: PlantedRepository, run: Run) -> None:
    session = plant(story)
    run("sync")
    record = json.loads(export(run, story, "trace"))
    assert record["version"] == "0.1.0" and record["vcs"] == {"type": "git", "revision": story.head()}
    (talk,) = record["files"][0]["conversations"]
    assert talk["ranges"] == [{"start_line": 1, "end_line": 4}]
    own = talk["metadata"]["dev.everturn"]
    assert (own["level"], own["rule"], own["session"], own["turn"]) == ("replayed", "in place", session.id, 2)
    assert "request" not in own
