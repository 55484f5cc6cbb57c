"""Pages for everybody: words that can be read in both colour schemes, landmarks, a focus that is seen, nothing that moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Tabs, settled
from tests.needs import is_installed

if not is_installed("module:starlette") or not is_installed("module:uvicorn"):
    pytest.skip("needs starlette and uvicorn, which are not installed", allow_module_level=True)

from tests.capture.history import OTHER
from tests.export.pages import page
from tests.web.server import Served

pytestmark = pytest.mark.slow

PAGES = ("/", "/sessions", "/s/1", "/s/1/m/2", "/s/1/restore", "/s/1/lineage", "/search", "/search?q=question", "/paths",
         "/paths/tool?tool=Bash", "/costs", "/health", "/nothing-here")  # fmt: skip

#: The words of a page whose contrast with what is behind them is less than WCAG 2.2 AA asks for. Words in plots stand on
#: shapes, which are not ancestors; a field shows its own words.
PALE = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => top.slice(0, 3).map((part, at) => part * top[3] + below[at] * (1 - top[3]));
  const light = (colour) => {
    const [r, g, b] = colour.map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const chain = (one) => { const found = []; for (let at = one; at; at = at.parentElement) found.unshift(at); return found; };
  const pale = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const one = node.parentElement;
    if (!node.textContent.trim() || !one.checkVisibility() || one.closest('svg, .quiet, .skip, #said, dialog, option')) continue;
    let ground = [255, 255, 255], opacity = 1;
    for (const each of chain(one)) {
      const style = getComputedStyle(each);
      ground = over(rgba(style.backgroundColor), ground);
      opacity *= Number(style.opacity);
    }
    const style = getComputedStyle(one);
    const colour = rgba(style.color);
    const shown = over([...colour.slice(0, 3), colour[3] * opacity], ground);
    const [high, low] = [light(shown), light(ground)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    if (opacity && ratio < least) pale.set(`${one.tagName}.${one.className} ${ratio.toFixed(2)}`, node.textContent.trim().slice(0, 40));
  }
  return [...pale].map((pair) => pair.join(': '));
}"""

#: Whether what has the focus looks other than without it.
SEEN = """() => {
  const one = document.activeElement, style = getComputedStyle(one);
  return one === document.body || style.outlineStyle !== 'none' || one.matches('.chip input, main, .graph a, .line a.title');
}"""


@pytest.mark.few(8)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_words_can_be_read(web: Served, open_tab: Tabs, path: str, scheme: str) -> None:
    tab, _ = open_tab(scheme=scheme)
    settled(tab, web.home + path)
    tab.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    tab.wait_for_timeout(100)
    assert tab.evaluate(PALE) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_of_a_restored_session_can_be_read(own: Served, open_tab: Tabs, scheme: str) -> None:
    own.done(own.change("/api/restore?session=@last"))
    own.change("/api/marks?session=@last", star=True, note="look at it")
    for path in ("/s/1/restore", "/sessions", "/s/1"):
        tab, _ = open_tab(scheme=scheme)
        settled(tab, own.home + path)
        assert tab.evaluate(PALE) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_of_a_file_can_be_read(own: Served, tmp_path: Path, open_tab: Tabs, scheme: str) -> None:
    store = own.taken.store
    file = tmp_path / "page.html"
    file.write_text(page(store, store.session(1)[0], context=True), "utf-8")
    tab, _ = open_tab(scheme=scheme)
    tab.goto(file.as_uri())
    tab.keyboard.press("e")
    assert tab.evaluate(PALE) == []


@pytest.mark.few(6)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_its_landmarks_and_a_heading(web: Served, open_tab: Tabs, path: str) -> None:
    tab, _ = open_tab()
    settled(tab, web.home + path)
    for landmark in ("main", "body > header", "header nav[aria-label]", "h1"):
        assert tab.locator(landmark).count() == 1, landmark
    assert tab.evaluate("document.documentElement.lang") == "en"
    ids = tab.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.few(3)
@pytest.mark.parametrize("path", ["/", "/sessions", "/s/1", "/search?q=question", "/paths", "/s/1/lineage"])
def test_the_focus_is_seen_wherever_tab_leads(web: Served, open_tab: Tabs, path: str) -> None:
    tab, _ = open_tab()
    settled(tab, web.home + path)
    tab.evaluate("document.activeElement.blur()")
    for _ in range(40):
        tab.keyboard.press("Tab")
        assert tab.evaluate(SEEN), tab.evaluate("document.activeElement.outerHTML.slice(0, 200)")


def test_nothing_moves_for_those_who_do_not_want_it(web: Served, open_tab: Tabs) -> None:
    tab, _ = open_tab()
    tab.emulate_media(reduced_motion="reduce")
    settled(tab, f"{web.home}/s/1")
    moving = "getComputedStyle(document.querySelector('#said')).transitionDuration"
    assert tab.evaluate(moving) == "0s"
    assert tab.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def test_tab_reaches_the_first_turn_without_passing_every_bar_of_the_strip(own: Served, open_tab: Tabs) -> None:
    history = own.taken.history
    number = own.taken.take_in(*[history.turn(f"question {n}", "yes", sid=OTHER) for n in range(100)], sid=OTHER).id
    tab, _ = open_tab()
    settled(tab, f"{own.home}/s/{number}")
    steps = 0
    while not tab.evaluate("document.activeElement.closest('.turn') !== null"):
        tab.keyboard.press("Tab")
        steps += 1
        assert steps < 34


def test_the_first_key_leads_past_the_bar(web: Served, open_tab: Tabs) -> None:
    tab, _ = open_tab()
    settled(tab, f"{web.home}/sessions")
    tab.keyboard.press("Tab")
    assert tab.get_by_text("Skip to the content").is_visible()
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main"
