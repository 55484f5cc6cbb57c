"""Pictures: within a file only where they were asked for, on a page of a program one by one, never from elsewhere."""

from __future__ import annotations

import re
from typing import Any

import pytest

from everturn.export.page.markup import PageLook
from tests.export.pages import page
from tests.export.test_page import PIXEL, seen, turns_of
from tests.recall.archives import Archive


def picture(data: str, media: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}


def test_pictures_are_shown_in_prompts_and_in_outputs(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", [picture(PIXEL), {"type": "text", "text": "what is it"}]),
        archive.use("Read", "a", file_path="x.png"),
        archive.back("a", [picture(PIXEL)]),
    )
    sources = [given["src"] for tag, given in seen(archive, session, pictures=True).elements if tag == "img"]
    assert sources == [f"data:image/png;base64,{PIXEL}"] * 2


def test_pictures_are_left_out_of_a_file_and_told_unless_they_are_asked_for(archive: Archive) -> None:
    session = archive.take_in(archive.history.line("user", [picture(PIXEL), {"type": "text", "text": "what is it"}]))
    found = seen(archive, session)
    assert found.count("img") == 0
    assert PIXEL not in page(archive.store, session)
    assert "image/png: left out]" in found.text


def test_a_page_of_a_program_asks_for_pictures_one_by_one(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", [picture(PIXEL), {"type": "text", "text": "what is it"}]),
        archive.use("Read", "a", file_path="x.png"),
        archive.back("a", [picture(PIXEL)]),
    )
    written = turns_of(archive, session, PageLook(to_picture=lambda seq, name: f"/p/{seq}/{name}"))
    assert PIXEL not in written
    assert re.findall(r'<img class="picture" src="(/p/\d+/)[0-9a-f]{16}"', written) == ["/p/0/", "/p/2/"]


@pytest.mark.parametrize(
    "data", ["PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+PC9zdmc+PHN2Zz4=", PIXEL + '" onerror="x', "https://x.invalid/a.png"]
)
def test_what_is_no_known_picture_is_told_in_words(archive: Archive, data: str) -> None:
    session = archive.take_in(archive.history.line("user", [picture(data), {"type": "text", "text": "see"}]))
    found = seen(archive, session, pictures=True)
    assert found.count("img") == 0
    assert "picture" in found.text


def test_a_picture_that_is_too_large_is_told_in_words(archive: Archive) -> None:
    session = archive.take_in(archive.history.line("user", [picture(PIXEL.rstrip("=") + "A" * 4000)]))
    written = turns_of(archive, session, PageLook(largest=1000))
    assert "<img" not in written
    assert "too large" in written
