"""axe-core finds nothing to complain about on any page, at each width, in both colour schemes."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import WIDTHS, Tabs, settled
from tests.needs import is_installed

if not is_installed("module:starlette") or not is_installed("module:uvicorn"):
    pytest.skip("needs starlette and uvicorn, which are not installed", allow_module_level=True)

from tests.browser.test_web import PAGES
from tests.export.pages import page
from tests.web.server import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.needs("module:axe_playwright_python")]

LOOKS = tuple(product(WIDTHS, ("light", "dark")))
ALL = (*PAGES, "/sessions?q=nothing-like-it", "/search?q=nothing-like-it", "/s/1/files")


def complaints(tab: Page) -> list[str]:
    """What axe-core says about a page: rule, and the first places."""
    from axe_playwright_python.sync_playwright import Axe

    found: dict[str, Any] = Axe().run(tab).response
    return [
        f"{one['id']}: {[node['html'][:160] for node in one['nodes'][:3]]} {one['nodes'][0]['failureSummary']}"
        for one in found["violations"]
    ]


@pytest.mark.few(2)
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_axe_finds_nothing_on_the_pages(web: Served, open_tab: Tabs, width: int, scheme: str) -> None:
    tab, _ = open_tab(width, scheme)
    found = {}
    for path in ALL:
        settled(tab, web.home + path)
        found[path] = complaints(tab)
    settled(tab, f"{web.home}/s/1")
    tab.keyboard.press("?")
    found["help"] = complaints(tab)
    said = [f"{path}: {one}" for path, ones in found.items() for one in ones]
    assert not said, "\n".join(said)


def test_axe_finds_nothing_in_an_exported_page(web: Served, open_tab: Tabs, tmp_path: Path) -> None:
    store = web.taken.store
    file = tmp_path / "page.html"
    file.write_text(page(store, store.session(1)[0], context=True), "utf-8")
    for scheme in ("light", "dark"):
        tab, _ = open_tab(1280, scheme)
        tab.goto(file.as_uri())
        assert complaints(tab) == []


def test_axe_would_complain(open_tab: Tabs) -> None:
    tab, _ = open_tab(1280, "light")
    tab.set_content("<html><body><img src='x.png'><p style='color:#ccc'>pale</p></body></html>")
    assert {one.partition(":")[0] for one in complaints(tab)} >= {"image-alt", "color-contrast"}
