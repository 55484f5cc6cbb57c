"""The identical bytes come back, whatever became of the source."""

from __future__ import annotations

import pytest

from everturn.capture.policy import Policy
from everturn.errors import NothingFound
from everturn.export.original import raw_bytes, read_original
from everturn.secrets.redaction import redact_bytes
from everturn.sessions.lookup import resolve_session
from tests.capture.history import SID
from tests.recall.archives import Archive


def bytes_of(archive: Archive, number: int | None = None) -> bytes:
    return b"".join(
        raw_bytes(archive.store, read_original(archive.store, resolve_session(archive.store, SID), number).version.id)
    )


def test_a_file_comes_back_byte_for_byte(archive: Archive) -> None:
    odd = b'{"broken\n\x00\x00\x00\n\xff\xfe not utf-8\r\n\n' + archive.history.turn("会话", "\x1b[2J") + b'{"torn'
    archive.take_in(archive.history.turn("ask", "reply"), odd)
    assert bytes_of(archive) == archive.history.file().read_bytes()


def test_a_file_of_many_chunks_comes_back_in_pieces(archive: Archive) -> None:
    session = archive.take_in(*(archive.history.turn(f"ask {n}", f"{n} " * 5000) for n in range(200)))
    pieces = list(raw_bytes(archive.store, session.version))
    assert len(pieces) > 3
    assert b"".join(pieces) == archive.history.file().read_bytes()


def test_every_version_comes_back_also_when_the_source_is_gone(archive: Archive) -> None:
    first = archive.history.turn("keep", "yes") + archive.history.turn("second", "zebra")
    archive.take_in(first)
    second = first[: first.index(b"\n") + 1]
    archive.take_in(second)
    archive.history.file().unlink()
    archive.take_in()
    assert (bytes_of(archive, 1), bytes_of(archive, 2), bytes_of(archive)) == (first, second, second)
    notes = read_original(archive.store, resolve_session(archive.store, SID), 1).notes
    assert "version 1 of 2: the file was truncated since" in notes
    assert any("source itself is gone" in note for note in notes)


def test_an_unknown_version_is_answered_with_those_there_are(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("ask", "reply"))
    size = archive.history.file().stat().st_size
    with pytest.raises(NothingFound, match=rf"has no version 7; there are: 1 \(first, {size} bytes\)"):
        read_original(archive.store, session, 7)


def test_a_file_that_holds_several_sessions_says_so(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.turn("ask", "reply"), archive.history.line("user", "side question", isSidechain=True)
    )
    assert read_original(archive.store, session).notes == ["the file holds 2 sessions; this is the whole file"]


def test_what_was_never_kept_cannot_come_back(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("ask", "reply"), policy=Policy("structure"))
    with pytest.raises(NothingFound, match="mode `structure`"):
        read_original(archive.store, session)


def test_bytes_kept_before_a_change_of_mode_still_come_back(archive: Archive) -> None:
    data = archive.history.turn("ask", "reply")
    archive.take_in(data)
    archive.history.grow(archive.history.turn("more", "yes"))
    session = archive.take_in(policy=Policy("structure"))
    assert session.mode == "structure"
    assert bytes_of(archive, 1) == data


def test_bytes_that_were_redacted_when_stored_are_said_not_to_be_identical(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("ask", "reply"), policy=Policy("redacted", redact=redact_bytes))
    assert any("not identical" in note for note in read_original(archive.store, session).notes)
