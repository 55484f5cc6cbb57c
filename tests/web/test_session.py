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
from tests.web.test_pages import KEY

SHOWN = {"type": "image", "source": {"type": "base64", "media_type": "text/html", "data": PIXEL}}


def calls(web: Served, count: int, size: int = 0) -> Iterator[bytes]:
    """A turn of so many calls."""
    archive = web.taken
    yield archive.history.line("user", "go")
    for number in range(count):
        yield archive.use("Bash", f"c{number}", command=f"echo {number}")
        yield archive.back(f"c{number}", f"{number}!" + "x" * size)


def shown_calls(text: str) -> list[int]:
    return [int(number) for number in re.findall(r'<code class="about">echo (\d+)</code>', text)]


def walk(web: Served, path: str, side: str) -> Iterator[str]:
    """The pages from this one to an end of the session."""
    while path:
        answer = web.ask(path)
        assert answer.status == 200 and len(answer.body) < 250_000, path
        yield answer.text
        path = unescape(re.findall(rf'data-{side}="([^"]*)"', answer.text)[0])


def test_all_of_a_session_is_reached_forwards_and_backwards_whatever_the_length_of_its_turns(web: Served) -> None:
    archive = web.taken
    second = [part.replace(b'"go"', b'"second"') for part in calls(web, 300, 100)]
    archive.take_in(*calls(web, 900), *second, archive.history.turn("third", "done"))
    expected = [*range(900), *range(300)]
    forwards = list(walk(web, "/s/1", "behind"))
    assert [number for page in forwards for number in shown_calls(page)] == expected
    assert 'id="t3"' in forwards[-1] and "End of the session" in forwards[-1]
    backwards = list(walk(web, "/s/1?turn=3&part=1", "before"))
    assert [number for page in reversed(backwards) for number in shown_calls(page)] == expected
    assert 'id="t1"' in backwards[-1]
    for page in (*forwards, *backwards):
        names = re.findall(r' id="([tm][\d-]+)"', page)
        assert len(names) == len(set(names)), "each turn and message has one place"


def test_a_link_to_a_message_begins_where_it_is_shown(web: Served) -> None:
    web.taken.take_in(*calls(web, 900))
    for message in (2, 700, 701, 1801):
        page = web.ask(f"/s/1?turn=1&message={message}&part=1").text
        assert f'id="m{message}"' in page, "a result is found with its call"
    assert web.ask("/s/1?turn=2").status == 404


def test_the_outline_names_each_turn_with_failures_and_edits(full: Served) -> None:
    entries = full.ask("/api/outline?session=number:1").json["items"]
    assert [one["words"] for one in entries] == [
        "first question", "change the parser", "third question", "fourth question",
    ]  # fmt: skip
    assert [one["turn"] for one in entries if one["errors"]] == [one["turn"] for one in entries if one["edits"]] == [2]
    page = full.ask("/api/outline?session=number:1&first=2&last=3").json
    assert ([one["turn"] for one in page["items"]], page["next"]) == ([2, 3], "4")


def test_words_are_found_in_one_session_in_the_order_of_the_conversation(full: Served) -> None:
    full.taken.take_in(full.taken.history.turn("another question", "no", sid=OTHER), sid=OTHER)
    text = full.ask("/s/1/find?q=question").text
    assert re.findall(r"turn=(\d)&amp;message=\d+#m\d+", text) == ["1", "3", "4"]
    assert "another" not in text
    assert full.ask("/s/1/find?q=fourth+question").text.count("<mark>fourth question</mark>") == 1
    assert "No match" in full.ask("/s/1/find?q=nowhere").text
    assert full.ask("/s/1/find?q=since:whenever").status == 200


OTHER = "77777777-2222-4333-8444-555555555555"


def test_a_session_names_the_commands_that_continue_it(full: Served) -> None:
    text = full.ask("/s/1").text
    assert f'data-copy="everturn resume {SID}"' in text
    assert f'data-copy="everturn resume {SID} --in codex"' in text
    assert f'data-copy="everturn handoff {SID} --in codex"' in text


def test_details_name_files_failures_and_subagents(full: Served) -> None:
    text = full.ask("/s/1/details").text
    assert "/s/1/files/1" in text and "Failed calls" in text and "Subagents" in text


def test_a_session_is_saved_as_a_file_with_secrets_masked(full: Served) -> None:
    full.taken.take_in(full.taken.history.turn(f"use {KEY}", "no"))
    for form, beginning in (("html", "<!doctype html>"), ("md", "# "), ("json", "{")):
        answer = full.ask(f"/s/1/export?as={form}")
        assert answer.text.startswith(beginning) and KEY not in answer.text
        assert answer.headers["content-disposition"] == f'attachment; filename="{SID}.{form}"'
    assert full.ask("/s/1/export?as=pdf").status == 400


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
