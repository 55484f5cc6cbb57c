"""Exports of chat services: walked session by session, and split into threads."""

from __future__ import annotations

import io
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.sources.toolkit import chat_export
from everturn.sources.toolkit.chat_export import conversations, line, read_export_head, threads


def test_the_path_to_the_leaf_is_live_and_the_rest_are_branches() -> None:
    parents = {"r": None, "a": "r", "b": "a", "x": "a", "y": "x", "z": "a", "lost": "nowhere"}
    assert threads(parents, "b") == (["r", "a", "b"], [["x", "y"], ["z"], ["lost"]])
    assert threads(parents, None) == ([], [["r", "a", "b", "x", "y", "z"], ["lost"]])
    assert threads({}, "b") == ([], [])


@given(st.dictionaries(st.integers(0, 9), st.none() | st.integers(0, 12)), st.integers(0, 12))
def test_every_message_is_in_one_thread_even_if_they_go_in_circles(parents: dict[int, int | None], leaf: int) -> None:
    path, branches = threads(parents, leaf)
    assert sorted(path + [one for branch in branches for one in branch]) == sorted(parents)


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_a_file_is_walked_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(chat_export, "_PIECE", piece)
    path = tmp_path / "conversations.json"
    path.write_text('[{"a": 1}, {"b": [2, "]"]}, 3]\n')
    assert [value for value, _ in conversations(path)] == [{"a": 1}, {"b": [2, "]"]}, 3]
    path.write_text('[{"a": 1}, {"b": [2')
    assert list(conversations(path)) == [({"a": 1}, b""), (None, b', {"b": [2')]
    path.write_text('{"conversations": [{"a": 1}]}')
    assert list(conversations(path)) == [({"a": 1}, b"")]
    path.write_text("\ufeff {broken")
    assert [value for value, _ in conversations(path)] == [None]


def test_a_damaged_zip_is_said_to_be_damaged(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", '[{"a": "' + "x" * 5000 + '"}]')
    data = bytearray(packed.getvalue())
    data[60:70] = bytes(10)
    path = tmp_path / "x.zip"
    path.write_bytes(data)
    with pytest.raises(OSError, match="damaged"):
        list(conversations(path))
    path.write_bytes(data[:80])
    with pytest.raises(OSError, match="damaged"):
        read_export_head(path, bytes(data[:80]))


def test_any_value_becomes_one_line() -> None:
    for value in ({"a": 2**70}, [1.5, None, "x\ny"], {"a": "é"}):
        assert line(value).count(b"\n") == 1
