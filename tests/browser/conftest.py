"""A real browser for tests that look at pages: one for the tests of a file, and a tab that hears everything for each.

Skipped where there is no Chromium or no Playwright. A test gets `tab`, and at its end nothing may have gone wrong in it: no
complaint on the console, no error of a script, no request for anything that does not belong to the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from shutil import which
from typing import TYPE_CHECKING

import pytest

from tests.needs import is_installed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.web.server import Served

PROGRAM = "chromium"
WIDTHS = (390, 1280, 1920)
NOW = 1_772_359_500_000  # 2026-03-01T10:05:00Z, minutes after the sessions: they go on

#: Opens a tab, with what it will be heard to say.
Tabs = Callable[..., "tuple[Page, Heard]"]


@dataclass
class Heard:
    """What a tab complained of and asked for, in the order it came."""

    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def outside(self, *homes: str) -> list[str]:
        """Requests that lead elsewhere than to what begins so, and are no data within the page."""
        return [url for url in self.requests if not url.startswith((*homes, "data:", "blob:", "about:"))]


def settled(tab: Page, address: str) -> None:
    """Go there and wait for what comes in later. Not by `wait_for_function`: the pages allow no `eval`."""
    tab.goto(address)
    while tab.locator("[aria-busy]").count():
        tab.wait_for_timeout(20)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that is only read from."""
    from tests.web.server import fill, served

    with served(tmp_path_factory.mktemp("web")) as made:
        fill(made)
        yield made


@pytest.fixture
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose archive a test changes."""
    from tests.web.server import fill, served

    with served(tmp_path_factory.mktemp("own"), clock=lambda: NOW) as made:
        fill(made)
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window. Not for the whole run: Playwright keeps an event loop running as long as it is there."""
    if not is_installed(PROGRAM) or not is_installed("module:playwright"):
        pytest.skip("needs chromium and playwright, which are not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=which(PROGRAM), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield opened
        opened.close()


@pytest.fixture
def open_tab(browser: Browser) -> Iterator[Callable[..., tuple[Page, Heard]]]:
    """Makes tabs of a width and a colour scheme, with nothing of earlier ones in them."""
    contexts = []

    def make(width: int = 1440, scheme: str = "light") -> tuple[Page, Heard]:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        context.set_default_timeout(60_000)
        contexts.append(context)
        page, heard = context.new_page(), Heard()
        page.on(
            "console", lambda said: heard.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: heard.complaints.append(str(error)))
        page.on("request", lambda request: heard.requests.append(request.url))
        return page, heard

    yield make
    for context in contexts:
        context.close()
