"""`everturn export --as html`: one file, masked unless asked otherwise, of one session or several."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.history import OTHER, SID
from tests.cli.desk import HOSTILE, KEY, Desk
from tests.export.test_page import PIXEL

PICTURES = "pictures are shown as they were: look at them before you pass the file on\n"


def test_secrets_are_masked_unless_revealed(desk: Desk, tmp_path: Path) -> None:
    desk.take_in(desk.archive.history.turn(f"key {KEY} {HOSTILE}", "reply"))
    target = tmp_path / "page.html"
    code, out, err = desk.run("export", SID[:8], "--as", "html", "--out", str(target))
    assert (code, out) == (0, "")
    assert err == f"wrote {target.stat().st_size:,} bytes to {target}\n"
    assert KEY not in target.read_text("utf-8")
    code, _, _ = desk.run("export", SID[:8], "--as", "html", "--reveal", "--force", "--out", str(target))
    assert (code, KEY in target.read_text("utf-8")) == (0, True)


@pytest.mark.parametrize(("words", "shown"), [((), False), (("--pictures",), True), (("--reveal",), True)])
def test_pictures_are_put_in_only_when_they_are_asked_for(desk: Desk, words: tuple[str, ...], shown: bool) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    desk.take_in(
        desk.archive.history.line("user", [{"type": "image", "source": source}, {"type": "text", "text": "see"}])
    )
    code, out, err = desk.run("export", SID, "--as", "html", *words)
    assert (code, PIXEL in out, PICTURES in err) == (0, shown, shown)


def test_several_sessions_go_into_one_page(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn("the first", "reply"))
    desk.archive.take_in(desk.archive.history.turn("the second", "reply", OTHER), sid=OTHER)
    done = desk.process("export", SID, OTHER, "--as", "html")
    page = done.stdout.decode()
    assert (done.returncode, page.count("<h1>"), 'id="s2-t1"' in page) == (0, 2, True)


@pytest.mark.parametrize("words", [("--as", "json"), ("--as", "html", "--version", "1")])
def test_what_takes_one_session_refuses_several(desk: Desk, words: tuple[str, ...]) -> None:
    desk.take_in(desk.archive.history.turn("ask", "reply"))
    code, out, err = desk.run("export", SID, SID, *words)
    assert (code, out) == (2, "")
    assert "several sessions" in err
