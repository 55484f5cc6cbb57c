"""The pages in a real browser: nothing complains, nothing leads outside, everything can be done with the keyboard."""

from __future__ import annotations

import re

import pytest

from tests.browser.conftest import WIDTHS, Tabs, settled
from tests.hostile import write_hostile
from tests.needs import is_installed
from tests.quick import some

if not is_installed("module:starlette") or not is_installed("module:uvicorn"):
    pytest.skip("needs starlette and uvicorn, which are not installed", allow_module_level=True)

from everturn.model.vocabulary import SESSION_KINDS
from everturn.sessions.lookup import marks_of
from everturn.store.contract import SessionFilter
from tests.web.server import Served, served

pytestmark = pytest.mark.slow

PAGES = (
    "/", "/sessions", "/s/1", "/s/1?turn=2#t2", "/s/1/m/2", "/s/1/restore", "/s/1/lineage", "/search", "/search?q=question",
    "/paths", "/paths/tool?tool=Bash", "/costs", "/health", "/nothing-here",
)  # fmt: skip

#: Each thing that can be used has a name, each picture that says something too, and headings begin at the first level.
NAMELESS = """() => [...document.querySelectorAll('a, button, input:not([type=hidden]), select, textarea, summary, svg[role=img]')]
  .filter((one) => one.checkVisibility())
  .filter((one) => !(one.getAttribute('aria-label') || one.textContent.trim() || one.title || one.labels?.length
                     || one.querySelector('title')))
  .map((one) => one.outerHTML.slice(0, 120))"""


@pytest.mark.few(14)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_calm_and_fits(web: Served, open_tab: Tabs, path: str, width: int) -> None:
    tab, heard = open_tab(width, "dark" if width == 1280 else "light")
    settled(tab, web.home + path)
    expected = (
        ["Failed to load resource: the server responded with a status of 404 (Not Found)"] if "nothing" in path else []
    )
    assert heard.complaints == expected
    assert heard.outside(web.home) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(NAMELESS) == []
    assert tab.locator("h1").count() == 1
    assert tab.title().endswith("everturn")


def test_keys_lead_from_page_to_page_and_help_is_there(web: Served, open_tab: Tabs) -> None:
    tab, heard = open_tab()
    settled(tab, web.home)
    tab.keyboard.press("?")
    assert tab.locator("#help").is_visible()
    tab.keyboard.press("Escape")
    assert not tab.locator("#help").is_visible()
    for key, path in (
        ("s", "/sessions"),
        ("f", "/search"),
        ("p", "/paths"),
        ("c", "/costs"),
        ("d", "/health"),
        ("h", "/"),
    ):
        tab.keyboard.press("Escape")  # out of the field that has the focus on some pages
        tab.keyboard.press("g")
        tab.keyboard.press(key)
        tab.wait_for_url(web.home + path)
    assert heard.complaints == []


def test_a_word_typed_anywhere_is_searched_as_it_is_typed(web: Served, open_tab: Tabs) -> None:
    tab, heard = open_tab()
    settled(tab, web.home)
    tab.keyboard.press("/")
    tab.keyboard.type("question")
    tab.locator("#home-results mark").first.wait_for()
    tab.keyboard.press("Enter")
    tab.wait_for_selector("mark")
    field = tab.locator(".search input[name=q]")
    field.fill("broke")
    tab.locator(".hits mark", has_text="broke").first.wait_for()
    assert tab.url.endswith("/search?q=broke")
    tab.get_by_label("prompt", exact=True).check(force=True)
    tab.wait_for_selector(".empty")
    tab.get_by_label("prompt", exact=True).uncheck(force=True)
    tab.wait_for_selector(".hits a")
    field.press("Escape")
    tab.keyboard.press("j")
    tab.keyboard.press("Enter")
    tab.wait_for_url(re.compile(r"/s/1\?turn=2&message=\d+#m\d+$"))
    assert tab.locator("#t2.at").is_visible()
    assert tab.get_by_text("Error: it broke").last.is_visible(), "what was found is not left folded"
    assert heard.complaints == []


def test_j_and_k_go_from_turn_to_turn_and_t_opens_tools(web: Served, open_tab: Tabs) -> None:
    tab, heard = open_tab()
    settled(tab, f"{web.home}/s/1")
    tab.keyboard.press("j")
    assert tab.evaluate("location.hash") == "#t1"
    tab.keyboard.press("j")
    assert tab.evaluate("location.hash") == "#t2"
    tab.keyboard.press("k")
    assert tab.evaluate("location.hash") == "#t1"
    assert not tab.get_by_text("Error: it broke").last.is_visible()
    tab.keyboard.press("t")
    assert tab.locator("[data-turns] details:not([open], .child)").count() == 0
    assert tab.locator(".call pre").first.is_visible()
    tab.keyboard.press("t")
    assert tab.locator("[data-turns] details[open]").count() == 0
    tab.keyboard.press("Shift+G")
    tab.wait_for_selector("#t4.at")
    tab.keyboard.press("g")
    tab.keyboard.press("g")
    tab.wait_for_selector("#t1.at")
    assert heard.complaints == []


def test_lines_of_the_list_are_reached_by_keys(web: Served, open_tab: Tabs) -> None:
    tab, _ = open_tab()
    settled(tab, f"{web.home}/sessions")
    tab.keyboard.press("j")
    assert tab.evaluate("document.activeElement.className") == "title"
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/s/1")


def test_a_session_is_starred_and_given_a_title(own: Served, open_tab: Tabs) -> None:
    tab, heard = open_tab()
    settled(tab, f"{own.home}/s/1")
    tab.keyboard.press("s")
    tab.wait_for_selector("#star[aria-pressed=true]")
    tab.get_by_text("Title and note").click()
    tab.get_by_label("Your title").fill("The parser, again")
    tab.get_by_label("Note").fill("<b>look</b> at it")
    tab.get_by_role("button", name="Save").click()
    tab.wait_for_selector("h1:has-text('The parser, again')")
    store = own.taken.store
    marks = marks_of(store, store.session(1)[0])
    assert (marks.title, marks.star, marks.note) == ("The parser, again", True, "<b>look</b> at it")
    tab.goto(f"{own.home}/sessions?starred=1")
    assert tab.locator(".line a.title").all_inner_texts() == ["★ The parser, again"]
    assert heard.complaints == []


def test_a_session_is_restored_by_a_button_and_its_proofs_lead_to_turns(own: Served, open_tab: Tabs) -> None:
    tab, heard = open_tab()
    settled(tab, f"{own.home}/s/1/restore")
    tab.get_by_role("button", name="Restore").click()
    tab.wait_for_selector(".statements")
    tab.locator(".proofs a").first.click()
    tab.wait_for_url("**/s/1?turn=*")
    assert heard.complaints == []


def test_verify_and_examine_tell_what_they_found(own: Served, open_tab: Tabs) -> None:
    tab, heard = open_tab(390)
    settled(tab, f"{own.home}/health")
    tab.get_by_role("button", name="Self-test").click()
    tab.wait_for_selector("#examined")
    tab.get_by_role("button", name="Verify").click()
    tab.get_by_text("The archive is whole").wait_for()
    assert heard.complaints == []


def test_the_list_and_an_open_session_follow_what_is_written(own: Served, open_tab: Tabs) -> None:
    tab, heard = open_tab()
    settled(tab, f"{own.home}/sessions")
    reader, _ = open_tab()
    settled(reader, f"{own.home}/s/1")
    history = own.taken.history
    whole = history.file().read_bytes() + history.turn("a fifth question", "five")
    own.taken.take_in(whole)
    own.taken.take_in(history.turn("something brand new", "yes", sid=OTHER), sid=OTHER)
    tab.get_by_text("something brand new").wait_for(timeout=60_000)
    reader.locator("#t5").get_by_text("a fifth question").wait_for(timeout=60_000)
    assert heard.complaints == []


OTHER = "77777777-2222-4333-8444-555555555555"


#: The turns on the page: are they in one piece, the first, the last, and how many elements they take.
TURNS = """() => {
  const ids = [...document.querySelectorAll('[data-turns] > .chunk > .turn')].map((one) => Number(one.id.slice(1)));
  return [ids.every((id, at) => !at || id === ids[at - 1] + 1), ids[0], ids.at(-1), document.querySelectorAll('[data-turns] *').length];
}"""


def test_a_long_session_is_read_in_one_go_in_both_directions(own: Served, open_tab: Tabs) -> None:
    history = own.taken.history
    sid = "33333333-2222-4333-8444-555555555555"
    answer = "answer **{}**\n\n" + "- a line with `code` and *words*\n" * 12
    pieces = [history.turn(f"question {n}", answer.replace("{}", str(n)), sid=sid) for n in range(1, 401)]
    number = own.taken.take_in(*pieces, sid=sid).id
    tab, heard = open_tab()
    settled(tab, f"{own.home}/s/{number}#t200")
    tab.wait_for_selector("#t200.at")
    assert tab.locator("#t200").evaluate("(one) => Math.round(one.getBoundingClientRect().top) < 300")
    tab.mouse.move(700, 600)
    while not tab.locator("#t400").count():
        tab.mouse.wheel(0, 6_000)
        tab.wait_for_timeout(30)
        in_one_piece, _, _, elements = tab.evaluate(TURNS)
        assert in_one_piece and elements < 12_000
    while not tab.locator("#t1").count():
        tab.mouse.wheel(0, -6_000)
        tab.wait_for_timeout(30)
        in_one_piece, _, _, elements = tab.evaluate(TURNS)
        assert in_one_piece and elements < 12_000
    assert not tab.locator("#t400").count(), "what is far away is dropped"
    tab.keyboard.press("Shift+G")
    tab.wait_for_selector("#t400.at")
    tab.keyboard.press("k")
    tab.wait_for_selector("#t399.at")
    tab.locator("#outline a[aria-current]").get_by_text("question 399").wait_for()
    tab.keyboard.press("/")
    tab.keyboard.type("question 77")
    tab.locator(".matches mark", has_text="question 77").wait_for()
    tab.keyboard.press("Enter")
    tab.locator("#t77.at .wanted").wait_for()
    tab.keyboard.press("Escape")
    tab.locator(".minimap a").first.click(force=True)
    tab.wait_for_selector("#t1.at")
    tab.get_by_label("Jump to turn").last.fill("150")
    tab.get_by_label("Jump to turn").last.press("Enter")
    tab.wait_for_selector("#t150.at")
    tab.go_back()
    assert heard.complaints == []


def test_a_session_shows_the_commands_that_continue_it(web: Served, open_tab: Tabs) -> None:
    tab, heard = open_tab(1920)
    settled(tab, f"{web.home}/s/1")
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.get_by_text("Resume", exact=True).click()
    tab.get_by_label("Copy the command for Codex").first.click()
    tab.get_by_text("Command copied").wait_for()
    assert tab.evaluate("navigator.clipboard.readText()").endswith("--in codex")
    tab.keyboard.press("Escape")
    assert not tab.locator(".sheet").first.is_visible()
    tab.locator(".details-side").get_by_text("Failed calls").wait_for()
    with tab.expect_download() as saved:
        tab.get_by_text("Share", exact=True).click()
        tab.get_by_text("Markdown", exact=True).click()
    assert saved.value.suggested_filename.endswith(".md")
    assert heard.complaints == []


def test_light_and_dark_can_be_chosen_and_stay(web: Served, open_tab: Tabs) -> None:
    tab, _ = open_tab()
    settled(tab, web.home)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(paper)
    tab.locator("#theme").click()
    dark = tab.evaluate(paper)
    assert light != dark
    settled(tab, f"{web.home}/sessions")
    assert tab.evaluate(paper) == dark


def test_everything_can_be_read_without_script(web: Served, browser: object) -> None:
    from playwright.sync_api import Browser

    assert isinstance(browser, Browser)
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(f"{web.home}/s/1")
    assert tab.locator("#t2 .said.prompt").inner_text().strip().startswith("change the parser")
    tab.goto(f"{web.home}/search?q=question")
    assert tab.locator("mark").count()
    context.close()


def test_hostile_transcripts_do_nothing_on_any_page(tmp_path_factory: pytest.TempPathFactory, open_tab: Tabs) -> None:
    with served(tmp_path_factory.mktemp("hostile")) as made:
        write_hostile(made.taken.history)
        made.taken.take_in(made.taken.history.turn("calm", "words"))
        rows, _ = made.taken.store.sessions(SessionFilter(kinds=SESSION_KINDS), 500)
        tab, heard = open_tab()
        shared = [
            "/",
            "/sessions?all=1",
            "/search?q=pwned",
            "/search?q=window&in=tool_output",
            "/paths",
            "/costs",
            "/health",
        ]
        for path in (*(f"/s/{session.id}" for session, _ in some(rows, 12)), *shared):
            settled(tab, made.home + path)
            tab.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            for kind in ("mouseover", "focus", "toggle", "click"):
                tab.evaluate(HOVER, kind)
            assert tab.evaluate("window.pwned") is None, path
        assert heard.complaints == []
        assert heard.outside(made.home) == []


HOVER = """(kind) => {
  const stay = (event) => event.preventDefault();
  document.addEventListener('click', stay, {capture: true});
  for (const one of document.querySelectorAll('main *:not(button)')) one.dispatchEvent(new Event(kind, {bubbles: kind !== 'click'}));
  document.removeEventListener('click', stay, {capture: true});
}"""
