"""The files of a session, and a file with the sessions that wrote it in the margin."""

from __future__ import annotations

from pathlib import Path

from everturn.cli import main
from tests.attribution.conftest import Run, story
from tests.attribution.conftest import run as command
from tests.attribution.test_why import plant
from tests.planted_repository import PlantedRepository
from tests.web.server import served

__all__ = ["command", "story"]


def test_a_file_shows_the_turn_that_wrote_each_line(story: PlantedRepository, command: Run, tmp_path: Path) -> None:
    session = plant(story)
    (story.root / "src" / "price.py").write_text((story.root / "src" / "price.py").read_text() + "# <b>by hand</b>\n")
    with served(tmp_path / "web") as made:
        assert main(["sync", "--db", made.site.archive.url]) == 0
        number = made.taken.store.sessions_like(session.id)[0].id
        assert f"/s/{number}/files" in made.ask(f"/s/{number}").text
        listed = made.ask(f"/s/{number}/files").text
        assert "src/price.py" in listed and f"/s/{number}/files/1" in listed
        page = made.ask(f"/s/{number}/files/1")
        assert page.status == 200 and "def round_price" in page.text
        assert f"/s/{number}?turn=2#t2" in page.text and "rounds prices" in page.text
        assert "<b>by hand" not in page.text and "&lt;b&gt;by hand" in page.text
        assert made.ask(f"/s/{number}/files/2").status == 404
        (story.root / "src" / "price.py").unlink()
        gone = made.ask(f"/s/{number}/files/1")
        assert gone.status == 200 and "def round_price" not in gone.text
