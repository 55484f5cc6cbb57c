"""Files that lost nothing and yet open nowhere: other encodings and layouts, and what providers refuse in a history."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from everturn.resume.diagnosis import Diagnosis, diagnose_session
from everturn.resume.handoff import NativeOptions
from everturn.resume.repair import copies_of_file, plan_repair
from everturn.sources.contract import SearchPlaces, all_sources
from tests.capture.history import SID, History

SOURCES = all_sources()
NOW = 1_800_000_000_000
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0"
WHOLE = PNG + zlib.compress(b"x") + b"\0\0\0\0IEND\xaeB`\x82"


def told(history: History, call: str = "toolu_1") -> bytes:
    """A session whose words have backslashes in them."""
    return (
        history.line("user", "where is it?")
        + history.line(
            "assistant", [{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "dir C:\\Users"}}]
        )
        + history.line("user", [{"type": "tool_result", "tool_use_id": call, "content": "C:\\Users\\ann and more"}])
        + history.line("assistant", [{"type": "text", "text": "It is in C:\\Users\\ann."}])
    )


def pictured(history: History, data: bytes | str) -> bytes:
    shown = data if isinstance(data, str) else base64.b64encode(data).decode()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": shown}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "shot"}, picture]}
    return (
        history.line("user", [{"type": "text", "text": "look"}, picture])
        + history.line("assistant", [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "x"}}])
        + history.line("user", [result])
        + history.line("assistant", [{"type": "text", "text": "seen"}])
    )


def repaired(folder: Path, data: bytes) -> tuple[str, list[str], list[str]]:
    """The state, the kinds of the findings, and the words of the new session."""
    path = folder / "projects" / "-home-ann-shop" / f"{SID}.jsonl"
    path.write_bytes(data)
    places = SearchPlaces(folder / "home", {}, "linux")
    with diagnose_session(copies_of_file(SOURCES, path), places, NOW) as found:
        return found.state, [one.kind for one in found.findings], written(found, places)


def written(found: Diagnosis, places: SearchPlaces) -> list[str]:
    source = found.patient.source
    options = NativeOptions(source, places, "0" * 32, NOW, places.home / "ours", is_repair=True)
    lines = plan_repair(found, SOURCES, options).content.splitlines()
    return [json.dumps(body["content"]) for line in lines if (body := json.loads(line).get("message"))]


def indented(data: bytes) -> bytes:
    return b"\n".join(json.dumps(json.loads(line), indent=2).encode() for line in data.splitlines())


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "utf16": lambda data: data.decode().encode("utf-16"),
    "pretty_printed": indented,
    "array": lambda data: json.dumps([json.loads(line) for line in data.splitlines()]).encode(),
    "prefix": lambda data: b"".join(b"2026-03-01 INFO out: " + line for line in data.splitlines(keepends=True)),
}


@pytest.mark.parametrize("form", FORMS)
def test_another_form_is_one_finding_and_loses_nothing(tmp_path: Path, form: str) -> None:
    data = told(History(tmp_path))
    sound = repaired(tmp_path, data)
    assert sound[:2] == ("sound", [])
    assert repaired(tmp_path, FORMS[form](data)) == ("mendable", [form], sound[2])


def test_utf_16_without_a_mark_is_known_too(tmp_path: Path) -> None:
    data = told(History(tmp_path))
    for encoding in ("utf-16-le", "utf-16-be"):
        assert repaired(tmp_path, data.decode().encode(encoding))[:2] == ("mendable", ["utf16"])


def test_backslashes_that_were_not_escaped_lose_no_record(tmp_path: Path) -> None:
    data = told(History(tmp_path))
    sound = repaired(tmp_path, data)[2]
    state, kinds, words = repaired(tmp_path, data.replace(b"\\\\Users", b"\\Users").replace(b"\\\\ann", b"\\ann"))
    assert (state, set(kinds), words) == ("mendable", {"escape"}, sound)


def test_an_array_that_breaks_off_loses_only_what_is_torn(tmp_path: Path) -> None:
    data = FORMS["array"](told(History(tmp_path)))
    state, kinds, words = repaired(tmp_path, data[: data.index(b"It is in") + 5])
    assert state == "lossy" and sorted(kinds) == ["array", "torn"] and len(words) >= 3


def test_words_before_one_record_may_be_part_of_another_and_count_as_lost(tmp_path: Path) -> None:
    first, *rest = told(History(tmp_path)).splitlines(keepends=True)
    state, kinds, _ = repaired(tmp_path, first + b"tail of something " + b"".join(rest))
    assert state == "lossy" and "damaged" in kinds


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"no picture at all", "its bytes are no picture"),
        ("@@@", "it is no Base64"),
        (PNG, "it breaks off"),
        (WHOLE.replace(b"\0\0\0\1\0\0\0\1", b"\0\0\x40\0\0\0\0\1"), "it is 16,384 x 1 pixels large"),
        (PNG + b"0" * 4_500_000 + b"IEND", "it has 5.7 MB, more than 5"),
    ],
    ids=["other bytes", "no Base64", "torn", "too wide", "too large"],
)
def test_a_picture_that_providers_refuse_is_replaced_by_a_sentence(tmp_path: Path, data: bytes | str, why: str) -> None:
    state, kinds, words = repaired(tmp_path, pictured(History(tmp_path), data))
    assert (state, kinds) == ("mendable", ["bad_image", "bad_image"])
    assert sum(f"providers refuse it: {why}" in one for one in words) == 2
    assert not any('"image"' in one for one in words) and "shot" in "".join(words)


def test_a_picture_that_is_whole_stays(tmp_path: Path) -> None:
    state, kinds, words = repaired(tmp_path, pictured(History(tmp_path), WHOLE))
    assert (state, kinds) == ("sound", []) and sum('"image"' in one for one in words) == 2


def test_a_call_id_that_providers_refuse_becomes_another(tmp_path: Path) -> None:
    state, kinds, words = repaired(tmp_path, told(History(tmp_path), "call:1|fc 1"))
    assert (state, kinds) == ("mendable", ["bad_call_id"]) and not any("call:1" in one for one in words)
