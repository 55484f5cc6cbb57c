"""The self-contained file in a real browser: hostile transcripts stay words, and it can be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everturn.sessions.lookup import resolve_session
from everturn.store.contract import open_store
from tests.browser.conftest import WIDTHS, Tabs
from tests.capture.history import History, run
from tests.export.pages import page
from tests.hostile import TRICKS, write_hostile
from tests.recall.archives import Archive

pytestmark = pytest.mark.slow  # starting a browser takes seconds

#: Open what is folded, and let the pointer and the focus be everywhere once.
EVERYTHING = """() => {
  for (const one of document.querySelectorAll('details')) one.open = true;
  for (const one of document.querySelectorAll('*')) {
    for (const kind of ['mouseover', 'mouseenter', 'focus', 'toggle']) one.dispatchEvent(new Event(kind, {bubbles: true}));
  }
}"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """The file of each hostile session, by the name of its trick."""
    folder = tmp_path_factory.mktemp("hostile")
    history = History(folder / "agent")
    made = write_hostile(history)
    store = open_store("memory:")
    run(store, history)
    files = {}
    for name, sid in made.items():
        files[name] = folder / f"{sid}.html"
        files[name].write_text(page(store, resolve_session(store, sid), context=True), "utf-8")
    store.close()
    yield files


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A session with parallel calls, a diff, a failure, a subagent and three turns."""
    store = open_store("memory:")
    archive = Archive(store, tmp_path / "agent")
    session = archive.take_in(
        archive.history.turn("first", "one"),
        archive.busy_turn("change it"),
        archive.history.turn("last", "bye " * 2000),
    )
    path = tmp_path / "page.html"
    path.write_text(page(store, session), "utf-8")
    store.close()
    return path


@pytest.mark.few(16)
@pytest.mark.parametrize("trick", TRICKS)
def test_nothing_runs_and_nothing_is_asked_for(open_tab: Tabs, hostile: dict[str, Path], trick: str) -> None:
    tab, heard = open_tab()
    tab.goto(hostile[trick].as_uri())
    tab.evaluate(EVERYTHING)
    assert tab.evaluate("window.pwned") is None
    assert heard.complaints == []
    assert heard.outside("file:") == []
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_its_window(open_tab: Tabs, file: Path, width: int) -> None:
    tab, heard = open_tab(width)
    tab.goto(file.as_uri())
    tab.keyboard.press("e")
    assert tab.locator("details:not([open])").count() == 0
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.locator("section.turn").count() == 4  # one of them in the subagent
    assert heard.complaints == []


def test_parallel_calls_stand_side_by_side(open_tab: Tabs, file: Path) -> None:
    tab, _ = open_tab()
    tab.goto(file.as_uri())
    boxes: list[Any] = [one.bounding_box() for one in tab.locator(".batch .call").all()]
    assert len(boxes) == 2
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] < boxes[1]["x"]


def test_a_link_to_a_turn_leads_there_and_what_is_folded_opens(open_tab: Tabs, file: Path) -> None:
    tab, _ = open_tab()
    tab.goto(f"{file.as_uri()}#t3")
    tab.wait_for_function("document.querySelector('#t3').getBoundingClientRect().top < innerHeight")
    call = tab.locator("details.call", has_text="make test")
    assert not tab.get_by_text("Error: it broke").last.is_visible()
    call.locator("summary").click()
    assert tab.get_by_text("Error: it broke").last.is_visible()


def test_a_link_to_a_turn_far_down_leads_to_that_turn(open_tab: Tabs, tmp_path: Path) -> None:
    store = open_store("memory:")
    archive = Archive(store, tmp_path / "agent")
    turns = [archive.history.turn(f"question {n}", "word " * (37 * n % 1500)) for n in range(1, 90)]
    path = tmp_path / "page.html"
    path.write_text(page(store, archive.take_in(*turns)), "utf-8")
    store.close()
    tab, heard = open_tab()
    tab.goto(f"{path.as_uri()}#t60")
    for number in (60, 12, 85):
        tab.locator(f".outline a[href='#t{number}']").click()
        top = f"document.querySelector('#t{number}').getBoundingClientRect().top"
        tab.wait_for_function(f"-5 < {top} && {top} < 100")
        tab.wait_for_timeout(300)
        assert -5 < tab.evaluate(top) < 100  # it stays there
    assert heard.complaints == []


def test_keys_go_from_turn_to_turn(open_tab: Tabs, file: Path) -> None:
    tab, heard = open_tab()
    tab.emulate_media(reduced_motion="reduce")
    tab.goto(file.as_uri())
    for _ in range(3):
        tab.keyboard.press("j")
    assert tab.evaluate("document.querySelector('#t3').getBoundingClientRect().top") < 100
    tab.keyboard.press("k")
    assert tab.evaluate("document.querySelector('#t2').getBoundingClientRect().top") < 100
    assert heard.complaints == []


def test_dark_and_light_follow_the_system(open_tab: Tabs, file: Path) -> None:
    colours = []
    for scheme in ("light", "dark"):
        tab, _ = open_tab(scheme=scheme)
        tab.goto(file.as_uri())
        colours.append(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1]


def test_every_link_and_control_has_a_name(open_tab: Tabs, file: Path) -> None:
    tab, _ = open_tab()
    tab.goto(file.as_uri())
    nameless = tab.evaluate(
        "[...document.querySelectorAll('a, button, summary, img')].filter(one => "
        "!(one.textContent.trim() || one.getAttribute('aria-label') || one.getAttribute('alt'))).length"
    )
    assert nameless == 0
