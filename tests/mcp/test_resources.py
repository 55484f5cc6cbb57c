"""Sessions as resources, prompts for people, and ids completed from their beginning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everturn.errors import NothingFound
from everturn.mcp.archive import parse_handle, session_handle
from everturn.mcp.rpc import RpcError
from everturn.mcp.server import McpServer, Peer
from tests.capture.history import OTHER, SID
from tests.recall.archives import Archive


def ask(offers: McpServer, method: str, **params: Any) -> dict[str, Any]:
    return offers.answer(Peer(), method, params)


def code(offers: McpServer, method: str, **params: Any) -> int:
    """The number of the error that a request must get."""
    with pytest.raises(RpcError) as caught:
        ask(offers, method, **params)
    return caught.value.code


@pytest.fixture
def taken_in(archive: Archive) -> Archive:
    archive.take_in(*(archive.history.turn(f"request {n}.", f"reply {n}.") for n in range(1, 6)))
    archive.take_in(archive.history.turn("another", "reply", OTHER), sid=OTHER)
    return archive


@pytest.mark.parametrize("id", ["plain", "parent/agent-7", "with blanks %2F", "ünïcode", "a?b#c", "\ud83d"])
def test_a_handle_leads_back_to_its_id(id: str) -> None:
    expected = id.replace("\ud83d", "?")
    assert parse_handle(session_handle(id)) == (expected, None, None)
    assert parse_handle(f"{session_handle(id)}/turns/3-5") == (expected, 3, 5)


@pytest.mark.parametrize(
    "uri", ["", "everturn://", "everturn://session/", "file:///x", "everturn://session/a/turns/x-y"]
)
def test_what_is_no_handle_names_nothing(uri: str) -> None:
    with pytest.raises(NothingFound):
        parse_handle(uri)


def test_every_session_is_a_resource_and_can_be_read(offers: McpServer, taken_in: Archive) -> None:
    listed = ask(offers, "resources/list")["resources"]
    assert [one["uri"] for one in listed] == [f"everturn://session/{OTHER}", f"everturn://session/{SID}"]
    (content,) = ask(offers, "resources/read", uri=listed[1]["uri"])["contents"]
    assert content["uri"] == listed[1]["uri"] and content["mimeType"] == "text/plain"
    assert "request 1." in content["text"] and "reply 5." in content["text"]


def test_turns_are_read_by_their_template(offers: McpServer, taken_in: Archive) -> None:
    first, turns = ask(offers, "resources/templates/list")["resourceTemplates"]
    assert first["uriTemplate"] == "everturn://session/{id}"
    uri = turns["uriTemplate"].format(id=SID, first=2, last=3)
    text = ask(offers, "resources/read", uri=uri)["contents"][0]["text"]
    assert [n for n in range(1, 6) if f"request {n}." in text] == [2, 3]


def test_a_resource_that_is_not_there_is_told_by_its_number(offers: McpServer, taken_in: Archive) -> None:
    assert code(offers, "resources/read", uri="everturn://session/zzzz") == -32002
    assert code(offers, "resources/read", uri="file:///etc/passwd") == -32002
    assert code(offers, "resources/read") == -32602
    assert code(offers, "resources/list", cursor="made up") == -32602
    assert code(offers, "prompts/get", name="handoff", arguments={"session": "zzzz"}) == -32602


def test_a_long_list_of_resources_comes_in_pages(offers: McpServer, archive: Archive) -> None:
    sids = [f"{number:08d}-2222-4333-8444-555555555555" for number in range(53)]
    for sid in sids:
        archive.history.write(archive.history.turn("question", "answer", sid), sid)
    archive.take_in(sid=sids[0])
    first = ask(offers, "resources/list")
    second = ask(offers, "resources/list", cursor=first["nextCursor"])
    assert "nextCursor" not in second
    uris = [one["uri"] for one in first["resources"] + second["resources"]]
    assert uris == [session_handle(sid) for sid in reversed(sids)]


def test_the_prompts_say_what_they_take(offers: McpServer) -> None:
    prompts = {one["name"]: one for one in ask(offers, "prompts/list")["prompts"]}
    assert [one["required"] for one in prompts["recall"]["arguments"]] == [True]
    assert [one["required"] for one in prompts["handoff"]["arguments"]] == [False]


def test_the_prompt_to_look_something_up_holds_the_question(offers: McpServer) -> None:
    got = ask(offers, "prompts/get", name="recall", arguments={"question": "why {this}?"})
    (message,) = got["messages"]
    assert message["role"] == "user" and "why {this}?" in message["content"]["text"]


def test_the_prompt_to_go_on_holds_the_end_of_the_session(offers: McpServer, taken_in: Archive) -> None:
    text = ask(offers, "prompts/get", name="handoff", arguments={"session": SID[:8]})["messages"][0]["content"]["text"]
    assert "reply 5." in text and "not instructions" in text
    newest = ask(offers, "prompts/get", name="handoff")["messages"][0]["content"]["text"]
    assert "another" in newest


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recall", {}),
        ("recall", {"question": " "}),
        ("recall", {"question": 7}),
        ("handoff", {"colour": "red"}),
        ("x", {}),
    ],
)
def test_a_prompt_that_is_asked_for_wrongly_is_refused(offers: McpServer, name: str, arguments: dict[str, Any]) -> None:
    assert code(offers, "prompts/get", name=name, arguments=arguments) == -32602


@pytest.mark.parametrize(
    ("reference", "argument"),
    [
        ({"type": "ref/prompt", "name": "handoff"}, "session"),
        ({"type": "ref/resource", "uri": "everturn://session/{id}"}, "id"),
        ({"type": "ref/resource", "uri": "everturn://session/{id}/turns/{first}-{last}"}, "id"),
    ],
)
def test_an_id_is_completed_from_its_beginning(
    offers: McpServer, taken_in: Archive, reference: dict[str, str], argument: str
) -> None:
    def values(typed: str) -> list[str]:
        asked = {"ref": reference, "argument": {"name": argument, "value": typed}}
        found: list[str] = ask(offers, "completion/complete", **asked)["completion"]["values"]
        return found

    assert values(SID[:3]) == [SID]
    assert values("") == [OTHER, SID]
    assert values("zzz") == []


def test_what_has_nothing_to_complete_is_completed_with_nothing(offers: McpServer, db: Path) -> None:
    other = {"ref": {"type": "ref/prompt", "name": "recall"}, "argument": {"name": "question", "value": "a"}}
    assert ask(offers, "completion/complete", **other)["completion"]["values"] == []
    missing = {"ref": {"type": "ref/prompt", "name": "handoff"}, "argument": {"name": "session", "value": "a"}}
    assert ask(offers, "completion/complete", **missing)["completion"]["values"] == []
    assert not db.exists()
    assert code(offers, "completion/complete", ref={}, argument=7) == -32602
    assert code(offers, "completion/complete", ref={}, argument={}) == -32602
