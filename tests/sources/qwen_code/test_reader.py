"""Where sessions are found, and how one is known by its content."""

from __future__ import annotations

from pathlib import Path

from everturn.sources.contract import SearchPlaces, SourceCandidate, all_sources, read_beginning
from everturn.sources.qwen_code import SOURCE
from everturn.sources.recognition import weigh_claims, winner

SAMPLES = Path(__file__).parent / "samples"
SID = "5b1f0c9e-0000-4000-8000-000000000001"
#: The least that a session can be: one prompt, outside a repository.
PROMPT = (
    b'{"uuid":"u","parentUuid":null,"sessionId":"s","timestamp":"2026-06-02T09:00:00.000Z","type":"user","cwd":"/x",'
    b'"version":"0.18.2","message":{"role":"user","parts":[{"text":"hello"}]}}\n'
)


def test_roots_are_the_usual_folder_and_what_is_named_each_once(tmp_path: Path) -> None:
    assert SOURCE.roots(SearchPlaces(tmp_path, {}, "linux")) == []
    usual, named = tmp_path / ".qwen", tmp_path / "named"
    usual.mkdir()
    named.mkdir()
    assert SOURCE.roots(SearchPlaces(tmp_path, {}, "linux")) == [usual]
    given = SearchPlaces(tmp_path, {"QWEN_HOME": "~/named"}, "linux", {"qwen_code": (usual,)})
    assert SOURCE.roots(given) == [usual, named]


def test_sessions_and_their_subagents_are_found(tmp_path: Path) -> None:
    project = tmp_path / "projects" / "-home-ada-harbour"
    (project / "chats").mkdir(parents=True)
    (project / "subagents" / SID).mkdir(parents=True)
    (project / "chats" / f"{SID}.jsonl").write_bytes((SAMPLES / "session.jsonl").read_bytes())
    (project / "chats" / "other.jsonl").write_text('{"type":"note"}\n')
    agent = "agent-explore-7f3c.jsonl"
    (project / "subagents" / SID / agent).write_bytes((SAMPLES / agent).read_bytes())
    (tmp_path / "outside.jsonl").write_bytes(PROMPT)
    assert [(found.kind, found.native_id, found.parent) for found in SOURCE.find(tmp_path)] == [
        ("main", SID, ""),
        ("subagent", f"{SID}/explore-7f3c", SID),
    ]
    assert [found.native_id for found in SOURCE.find(project / "chats")] == [SID]


def test_a_session_is_known_by_its_records() -> None:
    path = Path("/x/y.jsonl")
    assert SOURCE.sniff(path, PROMPT) == SourceCandidate(path, "main", "s")
    assert SOURCE.workspace(PROMPT) == "/x"
    for other in (b"", b"text", b"[]", b"{}\n", PROMPT.replace(b'"parts"', b'"content"')):
        assert SOURCE.sniff(path, other) is None
        assert SOURCE.workspace(other) == ""


def test_claude_code_claims_a_session_with_less_evidence(tmp_path: Path) -> None:
    (tmp_path / "least.jsonl").write_bytes(PROMPT)
    for path in [tmp_path / "least.jsonl", *SAMPLES.glob("*.jsonl")]:
        best = winner(weigh_claims(all_sources().values(), path, read_beginning(path)))
        assert best is not None
        assert best.source is SOURCE
