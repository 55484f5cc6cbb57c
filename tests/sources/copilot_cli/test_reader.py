"""Where sessions are found, and how one is known by its content."""

from __future__ import annotations

import json
from pathlib import Path

from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.copilot_cli import SOURCE
from tests.sources.goldens import put

SAMPLES = Path(__file__).parent / "samples"
SID = "378ab881-0000-4000-8000-00000000000a"
OTHER = "378ab881-0000-4000-8000-00000000000b"
START = b'{"type":"session.start","data":{"sessionId":"%s","cwd":"/x"},"id":"1","timestamp":"t","parentId":null}\n'


def places(home: Path, extra: tuple[Path, ...] = (), **env: str) -> SearchPlaces:
    return SearchPlaces(home, env, "linux", {"copilot_cli": extra} if extra else {})


def listing(root: Path) -> dict[str, str]:
    return {str(found.path.relative_to(root)): found.native_id for found in SOURCE.find(root)}


def test_roots_are_the_usual_folders_and_what_is_named_each_once(tmp_path: Path) -> None:
    assert SOURCE.roots(places(tmp_path)) == []
    usual, named, older = tmp_path / ".copilot", tmp_path / "named", tmp_path / "state" / ".copilot"
    for folder in (usual, named, older):
        folder.mkdir(parents=True)
    assert SOURCE.roots(places(tmp_path)) == [usual]
    given = places(tmp_path, (usual,), COPILOT_HOME="~/named", XDG_STATE_HOME=str(tmp_path / "state"))
    assert SOURCE.roots(given) == [usual, named, older]


def test_both_layouts_are_found_and_the_agents_own_files_are_not(tmp_path: Path) -> None:
    state = tmp_path / "session-state"
    put(state / SID / "events.jsonl")
    put(state / SID / "files" / "data.jsonl", START % OTHER.encode())
    put(state / SID / "workspace.yaml")
    put(state / f"{OTHER}.jsonl", START % OTHER.encode())
    put(state / "notes.jsonl", b'{"type":"note"}\n')
    put(tmp_path / "logs" / "x.jsonl", START % OTHER.encode())
    (state / "loop").symlink_to(tmp_path)
    assert listing(tmp_path) == {f"session-state/{SID}/events.jsonl": SID, f"session-state/{OTHER}.jsonl": OTHER}


def test_a_session_is_known_by_its_content_wherever_it_lies() -> None:
    path = Path("/x/y.jsonl")
    assert SOURCE.sniff(path, START % SID.encode()) == SourceCandidate(path, "main", SID)
    long = b'{"type":"session.start","data":{"sessionId":"%s","x":"' % SID.encode() + b"y" * 70_000
    assert SOURCE.sniff(path, long) == SourceCandidate(path, "main", SID)
    cut = b'{"type":"hook.start","data":{},"id":"1","timestamp":"t","parentId":"0"}\n'
    assert SOURCE.sniff(Path(f"/x/{SID}/events.jsonl"), cut) == SourceCandidate(
        Path(f"/x/{SID}/events.jsonl"), "main", SID
    )
    for other in (b"", b"text", b"[]", b'{"type":"user","data":{}}\n', b'{"type":"user.message","data":{}}\n'):
        assert SOURCE.sniff(path, other) is None


def test_the_working_folder_is_read_from_the_beginning() -> None:
    assert SOURCE.workspace((SAMPLES / "turn.jsonl").read_bytes()) == "/home/ada/harbour"
    assert SOURCE.workspace(b"{}\n") == ""


def test_the_state_stays_bounded_however_much_there_is_to_remember() -> None:
    lines = []
    for n in range(5000):
        call = {"toolCallId": f"call_{n}", "name": "view", "arguments": {}}
        said = {"messageId": f"m{n}", "content": "", "toolRequests": [call]}
        lines.append(json.dumps({"type": "assistant.message", "agentId": f"agent-{n}", "data": said}))
    reader = SOURCE.reader(SourceCandidate(Path("events.jsonl"), "main", SID), b"")
    reader.feed("\n".join(lines).encode(), 0, True)
    assert len(reader.state()) < 200_000
