"""Doing things in a real browser: watching a sync, having a model write, typing faster than the server, opening subagents."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import Tabs, settled
from tests.needs import is_installed

if not is_installed("module:starlette") or not is_installed("module:uvicorn"):
    pytest.skip("needs starlette and uvicorn, which are not installed", allow_module_level=True)

from tests.capture.history import OTHER
from tests.export.test_page import PIXEL
from tests.model_server import Asked, ModelServer
from tests.model_wires import Says
from tests.restore.shop import asker, good, shop
from tests.web.server import Served, served

if TYPE_CHECKING:
    from playwright.sync_api import Dialog, Route

pytestmark = pytest.mark.slow


# following ------------------------------------------------------------------------------------------------------------
@contextmanager
def watching(web: Served) -> Iterator[None]:
    """`everturn sync --watch` beside the server, on the same archive."""
    command = [sys.executable, "-m", "everturn", "sync", "--watch", "--db", web.site.archive.url]
    environment = {**os.environ, "CLAUDE_CONFIG_DIR": str(web.taken.history.root)}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def test_pages_that_are_open_follow_a_sync_that_watches(own: Served, open_tab: Tabs) -> None:
    listing, heard = open_tab()
    settled(listing, f"{own.home}/sessions")
    home, _ = open_tab()
    settled(home, own.home)
    history = own.taken.history
    with watching(own):
        history.write(history.turn("a session begun just now", "yes", sid=OTHER), OTHER)
        home.get_by_text("a session begun just now").wait_for(timeout=60_000)
        line = listing.locator(".line", has_text="a session begun just now")
        line.wait_for(timeout=60_000)
        assert line.locator(".live").is_visible()
        listing.get_by_text("a session begun just now").click()
        listing.locator("#t1").wait_for()
        with history.file(OTHER).open("ab") as file:
            file.write(history.turn("a second question", "answer two", sid=OTHER))
        listing.locator("#t2").get_by_text("a second question").wait_for(timeout=60_000)
    assert heard.complaints == []


# restoring ------------------------------------------------------------------------------------------------------------
def test_a_model_writes_only_after_it_was_confirmed_and_its_progress_is_seen(
    tmp_path_factory: pytest.TempPathFactory, open_tab: Tabs
) -> None:
    def slowly(asked: Asked) -> Any:
        said = good(asked)
        return Says(said.text, calls=said.calls, wait=0.4)

    with served(tmp_path_factory.mktemp("model")) as made, ModelServer(slowly) as server:
        made.site.models, made.site.open_model = ("scripted",), lambda store, session, model: asker(server)
        number = shop(made.taken.store, made.folder / "shop").id
        tab, heard = open_tab()
        settled(tab, f"{made.home}/s/{number}/restore")
        questions = list[str]()

        def answer(box: Dialog) -> None:
            questions.append(box.message)
            if len(questions) > 1:
                box.accept()
            else:
                box.dismiss()

        tab.on("dialog", answer)
        tab.get_by_label("Model").select_option("scripted")
        button = tab.get_by_role("button", name="Restore")
        button.click()
        assert server.asked == [] and "may cost money" in questions[0]
        button.click()
        tab.wait_for_selector("progress[max]")
        tab.get_by_text("with the model model-1").wait_for(timeout=60_000)
        assert len(server.asked) > 3
        assert tab.get_by_text("Refresh tokens for the login").count()
        assert tab.locator(".proof-mark.yes").count() > 5
        tab.locator(".statements .proofs a").first.click()
        tab.wait_for_url(re.compile(rf"/s/{number}\?(turn|message)=\d+.*#m\d+$"))
        assert heard.complaints == []


# searching ------------------------------------------------------------------------------------------------------------
def test_an_answer_that_comes_too_late_is_dropped(web: Served, open_tab: Tabs) -> None:
    tab, heard = open_tab()
    settled(tab, f"{web.home}/search")
    held = list["Route"]()
    tab.route(re.compile(r"q=broke&"), lambda route: held.append(route))  # noqa: PLW0108 -- a builtin cannot be wrapped
    field = tab.locator(".search input[name=q]")
    field.fill("broke")
    while not held:
        tab.wait_for_timeout(20)
    field.fill("fourth")
    tab.locator(".hits mark", has_text="fourth").first.wait_for()
    held[0].continue_()
    tab.wait_for_timeout(500)
    assert tab.locator(".hits mark").first.inner_text() == "fourth"
    assert tab.url.endswith("?q=fourth")
    assert heard.complaints == []


#: Types faster than any pause, however busy the machine is.
TYPE = """(word) => {
  const field = document.querySelector('.search input[name=q]');
  for (const letter of word) {
    field.value += letter;
    field.dispatchEvent(new InputEvent('input', {bubbles: true, data: letter, inputType: 'insertText'}));
  }
}"""


def test_one_question_is_asked_for_a_word_that_is_typed_fast(web: Served, open_tab: Tabs) -> None:
    tab, heard = open_tab()
    settled(tab, f"{web.home}/search")
    before = len(heard.requests)
    tab.evaluate(TYPE, "question")
    tab.wait_for_selector(".hits mark")
    assert len(heard.requests) - before <= 3


def test_a_server_that_is_gone_is_told(web: Served, open_tab: Tabs) -> None:
    tab, _ = open_tab()
    settled(tab, f"{web.home}/search")
    tab.route(re.compile("part=1"), lambda route: route.abort())
    tab.keyboard.type("question")
    tab.locator("#said.on", has_text="The server does not respond").wait_for()


def test_matches_are_reached_and_left_with_the_arrows(web: Served, open_tab: Tabs) -> None:
    tab, heard = open_tab()
    settled(tab, f"{web.home}/search?q=question")
    here = "document.activeElement.closest('li, label')?.tagName"
    assert tab.evaluate(here) == "LABEL"
    tab.keyboard.press("ArrowDown")
    assert tab.evaluate(here) == "LI"
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("ArrowUp")
    assert tab.evaluate(here) == "LABEL"
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    tab.wait_for_url(re.compile(r"/s/1\?turn="))
    assert heard.complaints == []


def test_a_filter_without_a_word_shows_the_newest_and_a_facet_narrows(web: Served, open_tab: Tabs) -> None:
    tab, heard = open_tab()
    settled(tab, f"{web.home}/search")
    tab.get_by_text("More filters").click()
    tab.get_by_label("Folder").fill("shop")
    tab.wait_for_selector(".hits a")
    facet = tab.locator(".facets a", has_text="prompt")
    facet.click()
    tab.wait_for_url(re.compile("in=prompt"))
    assert set(tab.locator(".hits .where i").all_inner_texts()) == {"prompt"}
    assert heard.complaints == []


# inside a session -----------------------------------------------------------------------------------------------------
def test_a_subagent_is_opened_in_place_and_can_be_gone_to(web: Served, open_tab: Tabs) -> None:
    tab, heard = open_tab()
    settled(tab, f"{web.home}/s/1")
    child = tab.locator("details.child")
    assert not tab.get_by_text("found it in b.py").count()
    child.locator("summary").focus()
    tab.keyboard.press("Enter")
    child.get_by_text("found it in b.py").wait_for()
    assert tab.locator("#t1").count() == 1
    child.get_by_text("open this session").click()
    tab.wait_for_url(re.compile(r"/s/\d+$"))
    assert tab.get_by_text("Subagent of").is_visible()
    assert heard.complaints == []


def test_a_picture_is_seen(own: Served, open_tab: Tabs) -> None:
    shown = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    words = {"type": "text", "text": "what is it"}
    number = own.taken.take_in(own.taken.history.line("user", [shown, words], sid=OTHER), sid=OTHER).id
    tab, heard = open_tab()
    settled(tab, f"{own.home}/s/{number}")
    tab.locator("img.picture").scroll_into_view_if_needed()
    while not tab.evaluate("document.querySelector('img.picture').complete"):
        tab.wait_for_timeout(20)
    assert tab.evaluate("document.querySelector('img.picture').naturalWidth") == 1
    assert heard.complaints == []


def test_a_match_deep_in_a_turn_longer_than_a_page_is_reached(own: Served, open_tab: Tabs) -> None:
    archive = own.taken
    pieces = [archive.history.line("user", "go", sid=OTHER)]
    for number in range(600):
        output = "the needle is here" if number == 555 else f"{number}!"
        pieces += [
            archive.history.line("assistant", [_use(number)], sid=OTHER),
            archive.history.line(
                "user", [{"type": "tool_result", "tool_use_id": f"c{number}", "content": output}], sid=OTHER
            ),
        ]
    archive.take_in(*pieces, sid=OTHER)
    tab, heard = open_tab()
    settled(tab, f"{own.home}/search?q=needle")
    tab.locator(".hits a", has_text="needle").first.click()
    tab.wait_for_url(re.compile(r"message=\d+#m\d+$"))
    shown = tab.locator(".call pre", has_text="the needle is here")
    shown.wait_for()
    assert tab.locator(".call").count() < 600  # the piece with the match, and the one before it once it is loaded
    tab.keyboard.press("g")
    tab.keyboard.press("g")
    tab.locator(".turn .prompt", has_text="go").first.wait_for()
    assert heard.complaints == []


def _use(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": f"echo {number}"}}


def test_the_link_to_a_turn_is_copied(web: Served, open_tab: Tabs) -> None:
    tab, _ = open_tab()
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    settled(tab, f"{web.home}/s/1#t3")
    tab.keyboard.press("y")
    tab.locator("#said.on", has_text="Link copied").wait_for()
    assert tab.evaluate("navigator.clipboard.readText()") == f"{web.home}/s/1?turn=3#t3"
