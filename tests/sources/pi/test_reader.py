"""Where sessions are found, and how one is known by its content."""

from __future__ import annotations

from pathlib import Path

from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.pi import SOURCE
from tests.sources.goldens import put

SID = "d703a1a9-0000-4000-8000-00000000000b"
HEADER = b'{"type":"session","version":3,"id":"%s","timestamp":"2026-05-04T15:00:00.000Z","cwd":"/x"}\n'


def listing(root: Path) -> dict[str, str]:
    return {str(found.path.relative_to(root)): found.native_id for found in SOURCE.find(root)}


def test_roots_are_the_usual_folder_and_what_is_named_each_once(tmp_path: Path) -> None:
    assert SOURCE.roots(SearchPlaces(tmp_path, {}, "linux")) == []
    usual, named = tmp_path / ".pi" / "agent", tmp_path / "named"
    usual.mkdir(parents=True)
    named.mkdir()
    assert SOURCE.roots(SearchPlaces(tmp_path, {}, "darwin")) == [usual]
    given = SearchPlaces(tmp_path, {"PI_CODING_AGENT_DIR": "~/named"}, "linux", {"pi": (usual,)})
    assert SOURCE.roots(given) == [usual, named]


def test_sessions_are_found_by_name_where_they_belong_and_by_content_elsewhere(tmp_path: Path) -> None:
    name = f"2026-05-04T15-00-00-000Z_{SID}.jsonl"
    put(tmp_path / "agent" / "sessions" / "--home-ada--" / name)
    put(tmp_path / "agent" / "sessions" / "--home-ada--" / "odd.jsonl", HEADER % b"odd")
    put(tmp_path / "agent" / "sessions" / "--home-ada--" / "other.jsonl", b'{"type":"note"}\n')
    put(tmp_path / "agent" / "auth.jsonl", HEADER % b"no")
    (tmp_path / "agent" / "sessions" / "loop").symlink_to(tmp_path)
    at = "sessions/--home-ada--/"
    assert listing(tmp_path / "agent") == {at + name: SID, at + "odd.jsonl": "odd"}
    put(tmp_path / "backup" / name)  # named like one of ours, but it is none
    put(tmp_path / "backup" / "renamed.jsonl", HEADER % SID.encode())
    assert listing(tmp_path / "backup") == {"renamed.jsonl": SID}


def test_a_session_is_known_by_its_first_line() -> None:
    path = Path("/x/y.jsonl")
    assert SOURCE.sniff(path, HEADER % SID.encode()) == SourceCandidate(path, "main", SID)
    assert SOURCE.workspace(HEADER % SID.encode()) == "/x"
    for other in (b"", b"text", b"[]", b'{"type":"session","id":"x"}\n', b'{"type":"message","message":{}}\n'):
        assert SOURCE.sniff(path, other) is None
        assert SOURCE.workspace(other) == ""
    assert SOURCE.sniff(path, b'{"type":"message"}\n' + HEADER % b"x") is None
