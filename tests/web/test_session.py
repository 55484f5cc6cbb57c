"""The page of a session: what stands in place, what is fetched when it is wanted, turns longer than a page."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from html import unescape
from typing import Any

from everturn.capture.policy import Policy
from tests.capture.history import SID
from tests.export.test_page import PIXEL
from tests.web.server import Served

SHOWN = {"type": "image", "source": {"type": "base64", "media_type": "text/html", "data": PIXEL}}


def calls(web: Served, count: int, size: int = 0) -> Iterator[bytes]:
    """A turn of so many calls."""
    archive = web.taken
    yield archive.history.line("user", "go")
    for number in range(count):
        yield archive.use("Bash", f"c{number}", command=f"echo {number}")
        yield archive.back(f"c{number}", f"{number}!" + "x" * size)


def test_a_turn_longer_than_a_page_goes_on_on_the_next_one(web: Served) -> None:
    web.taken.take_in(*calls(web, 900), web.taken.history.turn("then", "done"))
    path, seen, pages = "/s/1", list[str](), 0
    while path:
        answer = web.ask(path)
        assert answer.status == 200 and len(answer.body) < 200_000
        seen += re.findall(r'<code class="about">echo (\d+)</code>', answer.text)
        following = re.search(r'<a href="(/s/1\?turn=1[^"]*)#t1">go on reading', answer.text)
        path, pages = unescape(following[1]) if following else "", pages + 1
        assert pages == 1 or "Turn 1 from its beginning" in answer.text
    assert seen == [str(number) for number in range(900)]
    assert pages > 2
    assert "Turns 2 and on" in answer.text


def test_a_turn_is_reached_also_behind_one_that_fills_the_page(web: Served) -> None:
    archive = web.taken
    long = [part.replace(b'"go"', b'"second"') for part in calls(web, 300, 100)]
    archive.take_in(*calls(web, 900), *long, archive.history.turn("third", "done"))
    text = web.ask("/s/1?turn=2").text
    assert 'id="t2"' in text and 'id="t1"' not in text
    assert "?before=1" in text


def test_pictures_are_asked_for_one_by_one_and_are_what_their_bytes_say(web: Served) -> None:
    archive = web.taken
    archive.take_in(
        archive.history.line("user", [SHOWN, {"type": "text", "text": "what is it"}]),
        archive.use("Read", "a", file_path="x.png"),
        archive.back("a", [SHOWN]),
    )
    addresses = re.findall(r'<img class="picture" src="([^"]+)"', web.ask("/s/1").text)
    assert len(addresses) == 2
    assert addresses[0] in web.ask("/s/1/m/1").text
    for address in addresses:
        answer = web.ask(address)
        assert (answer.status, answer.headers["content-type"]) == (200, "image/png")
        assert answer.body == b64decode(PIXEL)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert web.ask(address, If_None_Match=answer.headers["etag"]).status == 304
    for wrong in ("/s/1/m/1/picture/0000000000000000", "/s/1/m/2/picture/x", "/s/1/m/99/picture/x"):
        assert web.ask(wrong).status == 404


def test_every_call_leads_to_the_message_that_holds_it_and_the_one_with_its_result(web: Served) -> None:
    web.taken.take_in(*calls(web, 1))
    text = web.ask("/s/1").text
    assert '<a href="/s/1/m/2" class="record" title="this message as captured">this call as captured</a>' in text
    assert '<a href="/s/1/m/3" class="record" title="this message as captured">its result as captured</a>' in text
    assert "echo 0" in web.ask("/s/1/m/2").text and "0!" in web.ask("/s/1/m/3").text


def test_a_subagent_is_put_in_place_with_anchors_of_its_own(full: Served) -> None:
    text = full.ask("/s/1").text
    (address,) = re.findall(r'<details class="child" data-inside="([^"]+)"><summary>', text)
    number = re.match(r"/s/(\d+)\?within=1$", address)
    assert number and f'href="/s/{number[1]}"' in text, "it is linked, too"
    part = full.ask(f"{address}&part=1").text
    assert f'id="s{number[1]}-t1"' in part
    assert 'id="t1"' not in part and "End of the session" not in part


def test_the_strip_is_coloured_by_kind_of_work(full: Served) -> None:
    drawn = full.ask("/s/1/map").text
    assert {"edit", "read", "shell", "talk", "failed"} <= set(re.findall(r'<path class="(\w+)"', drawn))


def test_a_session_of_which_only_the_structure_was_kept_has_pages_too(web: Served) -> None:
    archive = web.taken
    archive.take_in(*calls(web, 3), *[archive.history.turn("words", "more")] * 4, policy=Policy(mode="structure"))
    for path in ("/", "/sessions", "/s/1", "/s/1/map", "/s/1/m/1", "/s/1/lineage", "/s/1/restore", "/search?q=words"):
        answer = web.ask(path)
        assert answer.status == 200, path
        assert "echo 0" not in answer.text and ">more<" not in answer.text
    assert "Only the structure of this session was kept" in web.ask("/s/1").text
    assert 'class="shell"' in web.ask("/s/1/map").text
    assert web.done(web.change("/api/restore?session=@last"))["state"] in ("done", "failed")


def test_what_is_captured_is_called_by_the_name_people_know(full: Served) -> None:
    text = full.ask("/s/1").text
    assert "<li>Claude Code" in text
    assert SID in text


def test_a_command_stands_as_it_was_typed(web: Served) -> None:
    archive: Any = web.taken
    typed = "<command-name>/clear</command-name>\n            <command-message>clear</command-message>\n <command-args></command-args>"
    archive.take_in(archive.history.line("user", typed), archive.history.turn("go", "yes"))
    assert '<pre class="plain">/clear</pre>' in web.ask("/s/1").text
