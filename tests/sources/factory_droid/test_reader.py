"""Where sessions are found, and how one is known by its content."""

from __future__ import annotations

from pathlib import Path

from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.factory_droid import SOURCE

SAMPLES = Path(__file__).parent / "samples"
SID = "0fac0000-0000-4000-8000-00000000000a"
CHILD = "0fac0000-0000-4000-8000-00000000000b"
HEADER = b'{"type":"session_start","id":"s","title":"t","cwd":"/x"}\n'


def test_roots_are_the_usual_folder_and_what_is_named_each_once(tmp_path: Path) -> None:
    assert SOURCE.roots(SearchPlaces(tmp_path, {}, "linux")) == []
    usual, named = tmp_path / ".factory", tmp_path / "named"
    usual.mkdir()
    named.mkdir()
    assert SOURCE.roots(SearchPlaces(tmp_path, {}, "linux")) == [usual]
    given = SearchPlaces(tmp_path, {}, "linux", {"factory_droid": (named, usual)})
    assert SOURCE.roots(given) == [named, usual]


def test_sessions_and_subagents_are_found_by_their_header(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "-home-ada-quay"
    folder.mkdir(parents=True)
    for name in ("session", "subagent"):
        (folder / f"{name}.jsonl").write_bytes((SAMPLES / f"{name}.jsonl").read_bytes())
    (folder / "session.settings.json").write_text("{}")
    (folder / "other.jsonl").write_text('{"type":"note"}\n')
    (tmp_path / "history.jsonl").write_bytes(HEADER)
    assert [(found.kind, found.native_id, found.parent) for found in SOURCE.find(tmp_path)] == [
        ("main", SID, ""),
        ("subagent", CHILD, SID),
    ]
    assert [found.native_id for found in SOURCE.find(folder)] == [SID, CHILD]


def test_a_session_is_known_by_its_first_line() -> None:
    path = Path("/x/y.jsonl")
    assert SOURCE.sniff(path, HEADER) == SourceCandidate(path, "main", "s")
    assert SOURCE.workspace(HEADER) == "/x"
    for other in (b"", b"text", b"[]", b'{"type":"session_start","id":"x"}\n', b'{"type":"message","message":{}}\n'):
        assert SOURCE.sniff(path, other) is None
        assert SOURCE.workspace(other) == ""
    assert SOURCE.sniff(path, b'{"type":"message"}\n' + HEADER) is None
