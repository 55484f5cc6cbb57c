"""Where secrets stand: every byte of a file is gone through, each place told once, and nothing of a secret with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.sessions.secrets import SecretPlace, archive_cleaner, find_archive_secrets, make_key
from everturn.sources.contract import all_sources
from everturn.store.contract import open_store
from tests.capture.history import SID, sessions
from tests.recall.archives import Archive
from tests.secrets.secret_vectors import PASSWORD, TOKENS, pem

TOKEN = TOKENS["github_token"][0]
OTHER = TOKENS["npm_token"][0]


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    store = open_store("memory:")
    yield Archive(store, tmp_path)
    store.close()


def found(archive: Archive, key: bytes = b"key") -> list[SecretPlace]:
    return list(find_archive_secrets(archive.store, all_sources(), sessions(archive.store), key))


def test_a_place_says_session_turn_message_field_and_bytes(archive: Archive) -> None:
    line = archive.history.line("user", f"first {TOKEN}")
    answer = archive.history.line("assistant", [{"type": "text", "text": f"so {OTHER}"}])
    session = archive.take_in(line, answer)
    first, second = found(archive)
    assert (first.kind, first.session.native_id, first.turn, first.message) == ("github_token", SID, 0, 0)
    assert (first.field, second.field, second.message) == ("prompt", "answer", 1)
    assert line[first.start : first.start + first.size].decode() == TOKEN
    assert answer[second.start : second.start + second.size].decode() == OTHER
    assert first.session == session


def test_no_part_of_a_secret_is_in_a_place(archive: Archive) -> None:
    archive.take_in(archive.history.turn(f"first {TOKEN}", f"password={PASSWORD}"))
    told = repr([(place.kind, place.digest, place.field) for place in found(archive)])
    assert not any(TOKEN[at : at + 5] in told for at in range(4, len(TOKEN) - 5)) and PASSWORD not in told


def test_equal_secrets_have_equal_digests_wherever_and_however_they_are_written(archive: Archive) -> None:
    key = pem()
    archive.take_in(archive.history.turn(key, json.dumps({"key": key})), archive.history.turn(TOKEN, f"again {TOKEN}"))
    digests = [(place.kind, place.digest) for place in found(archive)]
    assert len(digests) == 4 and len(set(digests)) == 2
    assert {digest for _, digest in digests}.isdisjoint(place.digest for place in found(archive, b"another key"))


def test_what_is_no_message_is_gone_through_too(archive: Archive) -> None:
    snapshot = json.dumps({"type": "file-history-snapshot", "messageId": "m", "snapshot": {"text": TOKEN}}).encode()
    broken = f'{{"type":"user","torn {OTHER}\n'.encode()
    archive.take_in(archive.history.turn("a", "b"), snapshot + b"\n", broken)
    assert {(place.kind, place.field) for place in found(archive)} == {("github_token", "file"), ("npm_token", "file")}


def test_title_workspace_and_branch_are_gone_through(archive: Archive) -> None:
    more = {"cwd": f"/home/{TOKEN}", "gitBranch": f"fix-{OTHER}"}
    archive.take_in(archive.history.turn("a", "b", **more))
    assert {place.field for place in found(archive)} == {"record", "workspace", "branch"}


def test_several_sessions_of_one_file_tell_each_place_once(archive: Archive) -> None:
    inside = archive.history.line("user", f"side {OTHER}", isSidechain=True, agentId="abc")
    archive.take_in(archive.history.turn(f"main {TOKEN}", "b"), inside)
    every = archive.store.sessions_in(sessions(archive.store)[0].version)
    places = list(find_archive_secrets(archive.store, all_sources(), every, b"key"))
    assert sorted(place.kind for place in places) == ["github_token", "npm_token"]


def test_a_long_file_is_gone_through_in_stretches(archive: Archive) -> None:
    many = b"".join(archive.history.turn(f"{TOKEN} {'word ' * 2000}", "b") for _ in range(300))
    archive.take_in(many)
    done: list[int] = []
    places = list(find_archive_secrets(archive.store, all_sources(), sessions(archive.store), b"key", done.append))
    assert len(places) == 300 and len({place.message for place in places}) == 300
    assert len(done) >= 3 and done[-1] == len(many)


def test_the_key_is_made_once_and_stays(archive: Archive) -> None:
    assert archive_cleaner(archive.store)(TOKEN) == "[REDACTED:github_token]"
    key = make_key(archive.store)
    assert make_key(archive.store) == key and len(key) == 64
    assert archive_cleaner(archive.store).key == key
    assert archive_cleaner(archive.store)(TOKEN).startswith("[REDACTED:github_token:")
