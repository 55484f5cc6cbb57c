"""Every page: what stands on it, that secrets do not, and that a mistake is one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import pytest

from everturn.model.vocabulary import SESSION_KINDS
from everturn.secrets.rules import use_own_patterns
from everturn.sessions.lookup import Marks, marks_of
from everturn.store.contract import SessionFilter
from everturn.web.addresses import PAGES
from tests.hostile import TRICKS, write_hostile
from tests.web.server import Served, fill, served

KEY = "ghp_" + "k8Jx2mQ9vR4tY7wZ1aB5cD3eF6gH0iLpN2sU"
ALL = (
    "/", "/home/overview", "/home/spending", "/home/open", "/home/calendar", "/home/safety", "/sessions", "/sessions?q=question", "/sessions?starred=1", "/sessions?all=1",
    "/s/1", "/s/1?turn=2", "/s/1?after=2", "/s/1?before=2", "/s/1/map", "/s/1/find?q=question", "/s/1/details", "/s/1/m/2", "/s/1/restore", "/s/1/lineage", "/s/1/files", "/search",
    "/search?q=question", "/search?q=question&in=prompt&in=answer", "/search?agent=claude_code", "/paths", "/paths/tools", "/paths/found",
    "/paths/struggles", "/paths/tool?tool=Bash", "/costs", "/costs/total", "/costs/by?by=agent", "/health",
)  # fmt: skip


class Parsed(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that is only read from, for all tests."""
    with served(tmp_path_factory.mktemp("web")) as made:
        fill(made)
        yield made


@pytest.mark.parametrize("path", ALL)
def test_every_page_can_be_drawn_whole_and_in_part(read: Served, path: str) -> None:
    whole = read.ask(path)
    assert whole.status == 200, whole.text[:2000]
    assert whole.headers["content-type"] == "text/html; charset=utf-8"
    assert "<main" in whole.text and read.site.token in whole.text
    part = read.ask(path + ("&" if "?" in path else "?") + "part=1")
    assert part.status == 200
    assert "<main" not in part.text and read.site.token not in part.text


def test_the_users_own_patterns_are_masked_on_every_page(tmp_path: Path) -> None:
    with served(tmp_path) as made:
        fill(made)
        assert "third question" in made.ask("/s/1").text
        use_own_patterns((r"third [a-z]+", r"change the [a-z]+"))
        try:
            pages = {path: made.ask(path).text for path in ALL}
        finally:
            use_own_patterns(())
    assert [path for path, text in pages.items() if "third question" in text or "change the parser" in text] == []
    assert "[REDACTED:user_pattern" in pages["/s/1"]


def test_no_page_has_been_forgotten_here() -> None:
    patterns = {
        re.sub(r"\{[a-z]+(?::(int|path))?\}", lambda found: "[0-9]+" if found[1] == "int" else ".+", one.path)
        for one in PAGES
    }
    tried = {
        path.partition("?")[0] for path in (*ALL, "/session/@last", "/s/1/m/1/picture/x", "/s/1/files/1", "/s/1/export")
    }  # pictures and exports: test_session, lines of a file: test_files
    assert {one for one in patterns if not any(re.fullmatch(one, path) for path in tried)} == set()


@pytest.mark.parametrize("path", ALL)
def test_no_page_has_a_style_a_handler_or_a_script_within(read: Served, path: str) -> None:
    for tag, attributes in Parsed(read.ask(path).text).tags:
        assert tag != "style" and "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert tag != "script" or str(attributes.get("src", "")).startswith("/static/")
        for name in ("href", "src", "action"):
            value = attributes.get(name) or "/"
            assert value.startswith(("/", "#", "data:image/")) and not value.startswith("//"), (tag, value)


def test_the_same_page_is_not_sent_twice(read: Served) -> None:
    first = read.ask("/sessions")
    assert read.ask("/sessions", If_None_Match=first.headers["etag"]).status == 304
    file = read.ask("/static/web.css")
    assert read.ask("/static/web.css", If_None_Match=file.headers["etag"]).status == 304


def test_a_session_is_found_by_any_of_its_names(read: Served) -> None:
    for name in ("@last", "11111111", "11111111-2222-4333-8444-555555555555"):
        answer = read.ask(f"/session/{name}?turn=2")
        assert (answer.status, answer.headers["location"]) == (303, "/s/1?turn=2#t2")
    assert read.ask("/session/nobody").status == 404


def test_a_page_begins_at_the_turn_that_is_wanted(read: Served) -> None:
    text = read.ask("/s/1?turn=4").text
    assert 'id="t4"' in text and 'id="t3"' not in text
    assert "?before=3" in text
    assert read.ask("/s/1?turn=5").status == 404


def test_a_message_is_shown_with_its_evidence(read: Served) -> None:
    row = next(read.taken.store.messages(1, 1, 1))
    text = read.ask("/s/1/m/2").text
    version = read.taken.store.session(1)[0].version
    record = read.taken.store.read_raw(version, row.start, row.size)
    assert sha256(record).hexdigest() in text
    assert f"{row.start:,} to {row.start + row.size:,}" in text
    assert read.taken.history.file().name in text


def test_secrets_are_masked_everywhere(web: Served) -> None:
    archive = web.taken
    archive.take_in(
        archive.history.turn(f"use {KEY} please", f"I use {KEY}"),
        archive.use("Bash", "a", command=f"curl -H 'Authorization: Bearer {KEY}'"),
        archive.back("a", f"token {KEY}"),
    )
    full = web
    full.change("/api/marks?session=@last", title=f"title {KEY}", note=f"note {KEY}")
    full.done(full.change("/api/restore?session=@last"))
    api = ("/api/sessions", "/api/show?session=@last&tools=yes", "/api/search?q=token", "/api/restored?session=@last")
    records = tuple(f"/api/record?session=@last&message={n}" for n in range(1, 5))
    pages = [path for path in ALL if "turn=2" not in path and "tool=" not in path]
    for path in (*pages, "/search?q=token", "/s/1/m/1", "/s/1/m/3", *api, *records):
        answer = full.ask(path)
        assert answer.status == 200, path
        assert KEY.encode() not in answer.body, path
    assert "REDACTED" in full.ask("/s/1").text


def test_a_mistake_is_one_sentence(read: Served) -> None:
    for path, words in (
        ("/sessions?since=whenever", "is not a time"),
        ("/sessions?after=x", "&#39;x&#39;"),
        ("/s/1?turn=x", "is not a number"),
        ("/costs/by?by=weather", "is not valid; use one of"),
        ("/search?in=nowhere", "is not valid; use one of"),
        ("/sessions?q=" + "x" * 3000, "too long"),
    ):
        answer = read.ask(path)
        assert answer.status == 400, path
        assert words in answer.text and "Traceback" not in answer.text
    assert read.ask("/nothing").status == 404
    assert "no call of a tool" in read.ask("/paths/tool?tool=Nobody").text


def test_half_a_filter_is_told_while_one_types(read: Served) -> None:
    answer = read.ask("/search?q=question+since:whenever&part=1")
    assert answer.status == 200
    assert "is not a time" in answer.text


def test_titles_stars_and_notes_are_kept_and_shown(full: Served) -> None:
    answer = full.change("/api/marks?session=number:1", title="  The  parser ", star=True, note="look again\n")
    assert answer.status == 200
    store = full.taken.store
    session = store.session(1)[0]
    assert marks_of(store, session) == Marks("The parser", True, "look again")
    for path in ("/", "/sessions", "/sessions?starred=1", "/s/1", "/search?q=question"):
        assert "The parser" in full.ask(path).text, path
    assert "The parser" in full.ask("/sessions?starred=1&q=QUESTION&agent=claude_code&since=10y").text
    for filters in ("q=nothing-of-the-kind", "agent=codex", "workspace=/elsewhere", "until=2001-01-01"):
        assert "The parser" not in full.ask(f"/sessions?starred=1&{filters}").text
    full.change("/api/marks?session=@last", star=False)
    assert marks_of(store, session) == Marks("The parser", False, "look again")
    assert "The parser" not in full.ask("/sessions?starred=1").text
    full.change("/api/marks?session=@last", title="", note="")
    assert store.kept("mark") == []
    assert full.change("/api/marks?session=@last", title="x" * 301).status == 400


def test_a_rebuild_leaves_marks_alone(full: Served) -> None:
    full.change("/api/marks?session=@last", title="mine")
    store = full.taken.store
    session = store.session(1)[0]
    with store.write():
        store.drop_derived(session.version)
    assert marks_of(store, session).title == "mine"


def test_a_session_is_restored_while_one_watches(full: Served) -> None:
    assert full.ask("/api/restored?session=@last").status == 404
    assert full.done(full.change("/api/restore?session=@last"))["state"] == "done"
    text = full.ask("/s/1/restore").text
    assert "statements agree with the record" in text and "without a model" in text
    assert re.search(r'href="/s/1\?turn=\d+&amp;message=\d+#m\d+"', text)
    assert full.ask("/api/restored?session=@last").json["items"][0]["turns"] == 4


def test_a_model_is_asked_only_where_it_is_configured_and_confirmed(full: Served) -> None:
    assert "is configured" in full.change("/api/restore?session=@last", model="big").json["error"]
    full.site.models, full.site.open_model = ("big",), lambda store, session, model: pytest.fail("asked")
    assert "confirmed" in full.change("/api/restore?session=@last", model="big").json["error"]
    assert "workspace needs a model" in full.change("/api/restore?session=@last", workspace="/").json["error"]
    other = full.change("/api/restore?session=@last", model="big", confirmed=True, workspace="/")
    assert "no other" in other.json["error"]


def test_health_is_proven_on_demand(full: Served) -> None:
    assert full.done(full.change("/api/examine"))["state"] == "done"
    assert full.done(full.change("/api/verify"))["state"] == "done"
    text = full.ask("/health").text
    assert "wrote, read back and found a test message" in text and "The archive is whole" in text


def test_what_is_not_in_the_archive_is_told_at_home(full: Served) -> None:
    assert "all in the archive" in full.ask("/home/safety").text
    full.site.forget()
    with full.taken.history.file().open("ab") as file:
        file.write(full.taken.history.turn("new", "newer"))
    assert "not yet fully in the archive" in full.ask("/home/safety").text


def test_the_list_follows_the_archive(full: Served) -> None:
    before = full.ask("/sessions?part=1")
    full.taken.take_in(full.taken.history.turn("brand new words", "yes"), sid="77777777-2222-4333-8444-555555555555")
    after = full.ask("/sessions?part=1", If_None_Match=before.headers["etag"])
    assert after.status == 200
    assert "brand new words" in after.text


def test_relatives_are_linked_and_drawn(read: Served) -> None:
    text = read.ask("/s/1/lineage").text
    child = next(one for one in read.taken.store.sessions_like("11111111", 10) if one.kind != "main")
    assert f'href="/s/{child.id}"' in text and 'class="tie subagent"' in text
    assert f'href="/s/{child.id}"' in read.ask("/s/1").text
    assert "No related sessions" not in read.ask(f"/s/{child.id}/lineage").text


def test_an_archive_without_sessions_has_pages_too(web: Served) -> None:
    for path in (
        "/",
        "/home/calendar",
        "/home/safety",
        "/sessions",
        "/search?q=x",
        "/paths/tools",
        "/costs/total",
        "/health",
    ):
        assert web.ask(path).status == 200, path
    assert web.ask("/s/1").status == 404


@pytest.mark.slow
def test_hostile_words_stay_words_on_every_page(web: Served) -> None:
    write_hostile(web.taken.history)
    web.taken.take_in(web.taken.history.turn("calm", "words"))
    numbers = [session.id for session, _ in web.taken.store.sessions(SessionFilter(kinds=SESSION_KINDS), 500)[0]]
    assert len(numbers) >= len(TRICKS) >= 50
    for number in numbers[::10]:
        assert web.done(web.change(f"/api/restore?session=number:{number}"))["state"] == "done"
    web.change(f"/api/marks?session=number:{numbers[0]}", title=TRICKS["svg"], star=True, note=TRICKS["script"])
    parts = ("", "?within=1&part=1", "/map", "/m/1", "/lineage", "/restore")
    paths = [f"/s/{number}{part}" for number in numbers for part in parts]
    shared = ("/", "/home/safety", "/sessions?all=1", "/sessions?starred=1", "/search?q=window", "/search?q=pwned",
              "/paths/tools", "/paths/found", "/paths/struggles", "/costs/by?by=model", "/costs/by?by=workspace", "/health",
              f"/search?{urlencode({'q': TRICKS['svg'], 'workspace': TRICKS['script']})}",
              f"/sessions?{urlencode({'q': TRICKS['script']})}", f"/costs?{urlencode({'workspace': TRICKS['svg']})}")  # fmt: skip
    for path in (*paths, *shared):
        answer = web.ask(path)
        assert answer.status == 200, path
        for tag, attributes in Parsed(answer.text).tags:
            assert tag not in ("iframe", "object", "embed", "style", "base", "video", "audio"), path
            assert tag != "script" or str(attributes.get("src")).startswith("/static/")
            assert not [name for name in attributes if name.startswith("on") or name == "style"], path
            assert not str(attributes.get("href", "")).strip().lower().startswith(("javascript", "data", "vbscript")), (
                path
            )


def test_a_restored_session_that_is_filled_again_is_drawn_again(web: Served) -> None:
    number = fill(web)
    first = web.ask(f"/s/{number}/map").text
    web.taken.take_in(web.taken.history.file().read_bytes() + web.taken.history.turn("fifth", "five"))
    assert web.ask(f"/s/{number}/map").text != first
