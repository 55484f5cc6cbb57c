"""A transcript written for Claude Code: where its own program looks, one record for each block, in one chain."""

from __future__ import annotations

import json
from pathlib import Path

from everturn.model.conversation import Block, CallEnd, CallStart, Message
from everturn.sources.claude_code.program import place, slug, write
from everturn.sources.contract import NewSession, SearchPlaces

NEW = NewSession("11111111-2222-4333-8444-555555555555", "/home/ann/shop", 1_800_000_000_000, "Till (from Other)", "m")


def test_the_folder_of_a_workspace_is_named_as_the_client_names_it() -> None:
    assert slug("/home/ann/my_shop.v2") == "-home-ann-my-shop-v2"
    assert slug("C:\\Users\\ann") == "C--Users-ann"
    assert slug("/tmp/é😀x") == "-tmp----x"  # counted in UTF-16: two for the smiley
    assert slug("/tmp/e\u0301") == slug("/tmp/é")


def test_a_long_name_is_cut_and_gets_the_hash_that_the_client_gives_it() -> None:
    # Math.abs of a hash of 32 bits, in base 36, as computed by JavaScript.
    assert slug("/" + "a" * 250) == "-" + "a" * 199 + "-feo44x"


def test_it_lies_where_the_client_looks() -> None:
    home = Path("/home/ann")
    usual = place(SearchPlaces(home, {}, "linux"), NEW)
    moved = place(SearchPlaces(home, {"CLAUDE_CONFIG_DIR": "/elsewhere"}, "linux"), NEW)
    assert usual == home / ".claude/projects/-home-ann-shop" / f"{NEW.id}.jsonl"
    assert moved == Path("/elsewhere/projects/-home-ann-shop") / f"{NEW.id}.jsonl"


def records(*messages: Message) -> list[dict[str, object]]:
    found = write(SearchPlaces(Path("/"), {}, "linux"), NEW, messages)
    return [json.loads(line) for line in found.splitlines()]


def test_an_answer_is_one_record_for_each_block_and_all_of_them_are_one_chain() -> None:
    calls = tuple(Block("call", call=CallStart(name, "Bash", "shell", input={"command": name})) for name in "ab")
    results = tuple(Block("result", f"out {name}", result=CallEnd(name, name == "b")) for name in "ab")
    found = records(
        Message("user", "human", blocks=(Block("text", "go"),)),
        Message("assistant", "model", blocks=(Block("text", "well"), *calls)),
        Message("tool", "tool", "result", blocks=results),
    )
    said, rest = found[:6], found[6:]
    assert [one["type"] for one in said] == ["user", "assistant", "assistant", "assistant", "user", "user"]
    assert [one["parentUuid"] for one in said] == [None, *(one["uuid"] for one in said[:-1])]
    assert len({one["message"]["id"] for one in said[1:4]}) == 1  # type: ignore[index]
    assert [one["message"]["content"][0]["is_error"] for one in said[4:]] == [False, True]  # type: ignore[index]
    assert [one["type"] for one in rest] == ["custom-title", "last-prompt"]
    assert rest[1]["leafUuid"] == said[-1]["uuid"]


def test_an_image_of_a_result_stands_in_it_without_empty_words() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,QQ=="}
    result = Block("result", "", result=CallEnd("a"), data={"content": [image]})
    (record, *_) = records(Message("tool", "tool", "result", blocks=(result,)))
    content = record["message"]["content"][0]["content"]  # type: ignore[index]
    assert content == [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}}]
