"""Text of a transcript stays text on the page: checked by a parser and by an HTML sanitiser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import nh3
import pytest

from everturn.sessions.lookup import resolve_session
from everturn.store.contract import Store, open_store
from tests.capture.history import History, run
from tests.export.pages import ATTRIBUTES, TAGS, Seen, page
from tests.hostile import TRICKS, write_hostile


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, dict[str, str]]]:
    history = History(tmp_path_factory.mktemp("hostile") / "agent")
    made = write_hostile(history)
    store = open_store("memory:")
    run(store, history)
    yield store, made
    store.close()


def shown(hostile: tuple[Store, dict[str, str]], trick: str) -> str:
    store, made = hostile
    return page(store, resolve_session(store, made[trick]), context=True)


def test_there_are_fifty_tricks() -> None:
    assert len(TRICKS) >= 50


@pytest.mark.few(12)
@pytest.mark.parametrize("trick", TRICKS)
def test_nothing_but_our_own_elements_is_on_the_page(hostile: tuple[Store, dict[str, str]], trick: str) -> None:
    seen = Seen(shown(hostile, trick))
    assert seen.wrong == []
    assert (seen.count("script"), seen.count("style"), seen.count("h1")) == (1, 1, 1)
    store, made = hostile
    assert len(seen.classes("turn")) == resolve_session(store, made[trick]).n_turns


@pytest.mark.few(12)
@pytest.mark.parametrize("trick", TRICKS)
def test_a_cleaner_of_html_has_nothing_to_take_away(hostile: tuple[Store, dict[str, str]], trick: str) -> None:
    body = shown(hostile, trick).partition("<body>")[2].partition("<script>")[0]
    cleaned = nh3.clean(
        body,
        tags=TAGS - {"script", "style", "html", "head", "body"},
        attributes={"*": ATTRIBUTES | {"viewBox", "preserveAspectRatio"}},
        url_schemes={"http", "https", "mailto", "data"},
        link_rel=None,
    )
    before, after = Seen(body), Seen(cleaned)
    assert [tag for tag, _ in after.elements] == [tag for tag, _ in before.elements]
    assert re.sub(r"\s+", "", after.text) == re.sub(r"\s+", "", before.text)


@pytest.mark.parametrize("trick", ["bidi override", "bidi in a name", "hidden words", "terminal", "half a pair"])
def test_what_hides_or_reorders_is_made_visible(hostile: tuple[Store, dict[str, str]], trick: str) -> None:
    text = shown(hostile, trick)
    bad = {char for char in text if not char.isprintable() and char not in "\n\t"}
    assert bad - {"\u200c", "\u200d"} == set()


def test_hidden_words_can_be_seen(hostile: tuple[Store, dict[str, str]]) -> None:
    text = Seen(shown(hostile, "hidden words")).text
    assert "plain⟨U+E0064⟩⟨U+E006F⟩" in text
    assert "pass⟨U+200B⟩word" in text


def test_a_link_says_where_it_leads(hostile: tuple[Store, dict[str, str]]) -> None:
    text = Seen(shown(hostile, "homoglyph link")).text
    assert "bank.com (pwned.invalid)" in text
    assert "xn--pple-43d.com" in text


def test_a_long_word_does_not_fill_the_page(hostile: tuple[Store, dict[str, str]]) -> None:
    text = shown(hostile, "one long word")
    assert len(text) < 600_000
    assert "characters left out" in text


def test_broken_bytes_do_not_hide_what_stands_around_them(hostile: tuple[Store, dict[str, str]]) -> None:
    assert "broken" in Seen(shown(hostile, "broken bytes")).text
