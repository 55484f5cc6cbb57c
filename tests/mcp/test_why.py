"""The tool `why`."""

from __future__ import annotations

from pathlib import Path

from everturn.mcp.archive import McpArchive
from everturn.mcp.tools.contract import call_tool
from tests.attribution.conftest import Run, run, story
from tests.attribution.test_why import plant
from tests.planted_repository import PlantedRepository

__all__ = ["run", "story"]


def test_an_agent_asks_who_wrote_a_line(story: PlantedRepository, run: Run, tmp_path: Path) -> None:
    session = plant(story)
    run("sync")
    archive = McpArchive(str(tmp_path / "archive.db"), folder=str(story.root))
    answer = call_tool(archive, "why", {"target": "src/price.py:1"})
    text = answer["content"][0]["text"]
    assert not answer["isError"] and session.id in text and "rounds prices" in text
    for target, words in (
        ("src/none.py:1", "there is no file"),
        ("src/price.py:99", "has 4 lines"),
        ("x..y", "no commit"),
    ):
        answer = call_tool(archive, "why", {"target": target})
        assert answer["isError"] and words in answer["content"][0]["text"]
    archive.close()
