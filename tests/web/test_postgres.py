"""The pages over an archive in PostgreSQL: the same as over a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.server import Served, fill, served
from tests.web.test_pages import ALL

pytestmark = pytest.mark.slow


@pytest.fixture
def web(tmp_path: Path, postgres_url: str) -> Iterator[Served]:
    with served(tmp_path, url=postgres_url) as made:
        fill(made)
        yield made


def told(text: str) -> str:
    """A page without what differs from one run to another: its token, sizes on disk, where the archive is."""
    text = re.sub(r'(?s)<section aria-labelledby="(?:disk|versions)">.*?</section>', "", text)
    return re.sub(r'everturn-token" content="\w+"|/[^<" ]*/agent[^<" ]*', "", text)


def test_every_page_says_what_it_says_over_a_file(web: Served, tmp_path_factory: pytest.TempPathFactory) -> None:
    with served(tmp_path_factory.mktemp("file")) as other:
        fill(other)
        for path in ALL:
            answer, expected = web.ask(path), other.ask(path)
            assert answer.status == expected.status == 200, path
            if path != "/health" and "/search?q" not in path:  # the order of matches may differ
                assert told(answer.text) == told(expected.text), path


def test_marks_jobs_and_searches_work(web: Served) -> None:
    assert web.change("/api/marks?session=@last", title="mine", star=True).status == 200
    assert "mine" in web.ask("/sessions?starred=1").text
    for path in ("/api/restore?session=@last", "/api/verify", "/api/examine"):
        assert web.done(web.change(path))["state"] == "done", path
    assert "<mark>" in web.ask("/search?q=question").text
    assert "The archive is whole" in web.ask("/health").text


def test_no_page_shows_the_password_of_the_archive(tmp_path: Path, postgres_url: str) -> None:
    with served(tmp_path, url=postgres_url) as made:
        made.site.archive.url = made.site.archive.url.replace("://", "://ann:sw0rdf1sh-9x@", 1)
        made.site.archive._open_archive = lambda url: made.taken.store
        answer = made.ask("/health")
        assert answer.status == 200 and "postgresql" in answer.text
        assert "sw0rdf1sh-9x" not in answer.text
