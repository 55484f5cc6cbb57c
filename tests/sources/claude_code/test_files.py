"""Finding transcripts, and recognizing one by its content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from everturn.sources.claude_code import SOURCE
from everturn.sources.claude_code.program import retention
from everturn.sources.contract import SearchPlaces, SourceCandidate
from tests.sources.claude_code.reading import SAMPLES, samples
from tests.sources.goldens import CORPUS, put

SID = "0b5e7c1a-3f7d-4c55-9a3e-6f1d2b8c9e10"
RECORD = b'{"parentUuid":null,"sessionId":"%s","cwd":"/home/ada","type":"user","message":{"content":"x"},"uuid":"u"}\n'


def places(home: Path, platform: str = "linux", extra: tuple[Path, ...] = (), **env: str) -> SearchPlaces:
    return SearchPlaces(home, env, platform, {"claude_code": extra} if extra else {})


def listing(root: Path) -> dict[str, tuple[str, str, str]]:
    return {
        str(found.path.relative_to(root)): (found.kind, found.native_id, found.parent) for found in SOURCE.find(root)
    }


def test_roots_are_the_usual_folders_that_exist(tmp_path: Path) -> None:
    assert SOURCE.roots(places(tmp_path)) == []
    put(tmp_path / ".claude" / "projects" / "p" / f"{SID}.jsonl")
    put(tmp_path / ".config" / "claude" / "projects" / "p" / f"{SID}.jsonl")
    for platform in ("linux", "darwin", "win32"):
        assert SOURCE.roots(places(tmp_path, platform)) == [tmp_path / ".claude", tmp_path / ".config" / "claude"]
    (tmp_path / "xdg" / "claude").mkdir(parents=True)
    moved = places(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "xdg"))
    assert SOURCE.roots(moved) == [tmp_path / ".claude", tmp_path / "xdg" / "claude"]


@pytest.mark.parametrize(("platform", "separator"), [("linux", ":"), ("darwin", ","), ("win32", ";"), ("win32", ",")])
def test_the_environment_may_name_several_folders(tmp_path: Path, platform: str, separator: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    value = f"{one}{separator} ~/two {separator}{tmp_path / 'missing'}"
    assert SOURCE.roots(places(tmp_path, platform, CLAUDE_CONFIG_DIR=value)) == [one, two]


def test_a_folder_with_a_comma_in_its_name_is_one_folder(tmp_path: Path) -> None:
    odd = tmp_path / "a,b:c"
    odd.mkdir()
    assert SOURCE.roots(places(tmp_path, CLAUDE_CONFIG_DIR=str(odd))) == [odd]


def test_a_root_counts_once_whatever_leads_to_it(tmp_path: Path) -> None:
    real = tmp_path / ".claude"
    (real / "projects").mkdir(parents=True)
    (tmp_path / "link").symlink_to(real)
    given = (tmp_path / "link", real / "projects", real)
    assert SOURCE.roots(places(tmp_path, extra=given, CLAUDE_CONFIG_DIR=str(real))) == [tmp_path / "link"]


def test_every_layout_is_found_with_its_ids(tmp_path: Path) -> None:
    slug = tmp_path / "projects" / "-home-ada"
    put(slug / f"{SID}.jsonl")
    put(slug / "agent-7f3a91c2.jsonl")
    put(slug / SID / "subagents" / "agent-a1.jsonl")
    put(slug / SID / "subagents" / "agent-a1.meta.json")
    put(slug / SID / "subagents" / "workflows" / "wf_1" / "agent-b2.jsonl")
    put(slug / SID / "tool-results" / "toolu_01X.txt")
    put(slug / SID / "tool-results" / "b7.json")
    for other in ("sessions-index.json", "memory/MEMORY.md", "notes.jsonl", "tool-results/x.txt"):
        put(slug / other)
    for side in (
        "history.jsonl",
        "plans/calm.md",
        "plans/calm.txt",
        "paste-cache/ab12.txt",
        "paste-cache/sub/cd34.txt",
    ):
        put(tmp_path / side)
    put(tmp_path / "todos" / f"{SID}-agent-{SID}.json")
    put(tmp_path / "todos" / "notes.json")
    put(tmp_path / "tasks" / SID / "1.json")
    put(tmp_path / "tasks" / SID / ".lock")
    put(tmp_path / "file-history" / SID / "0123456789abcdef@v2")
    put(tmp_path / "file-history" / SID / "notes.txt")
    put(tmp_path / "file-history" / "elsewhere" / "0123456789abcdef@v1")
    at = "projects/-home-ada/"
    copy = f"file-history/{SID}/0123456789abcdef@v2"
    sides = {"plans/calm.md", "paste-cache/ab12.txt", "history.jsonl"}
    tasks, todos = f"tasks/{SID}/1.json", f"todos/{SID}-agent-{SID}.json"
    assert listing(tmp_path) == {
        "history.jsonl": ("container", "history.jsonl", ""),
        "plans/calm.md": ("meta", "plans/calm.md", ""),
        "paste-cache/ab12.txt": ("meta", "paste-cache/ab12.txt", ""),
        tasks: ("meta", f"{SID}/tasks/1.json", SID),
        todos: ("meta", f"{SID}/todos/{SID}-agent-{SID}.json", SID),
        at + "memory/MEMORY.md": ("meta", "memory/-home-ada/MEMORY.md", ""),
        copy: ("backup", f"{SID}/file-history/0123456789abcdef@v2", SID),
        at + f"{SID}.jsonl": ("main", SID, ""),
        at + "agent-7f3a91c2.jsonl": ("subagent", "agent-7f3a91c2", ""),
        at + f"{SID}/subagents/agent-a1.jsonl": ("subagent", f"{SID}/agent-a1", SID),
        at + f"{SID}/subagents/agent-a1.meta.json": ("meta", f"{SID}/agent-a1.meta", SID),
        at + f"{SID}/subagents/workflows/wf_1/agent-b2.jsonl": ("subagent", f"{SID}/agent-b2", SID),
        at + f"{SID}/tool-results/toolu_01X.txt": ("output", f"{SID}/tool-results/toolu_01X.txt", SID),
        at + f"{SID}/tool-results/b7.json": ("output", f"{SID}/tool-results/b7.json", SID),
    }
    inside = set(listing(tmp_path)) - {copy, tasks, todos, *sides}
    assert set(listing(tmp_path / "projects")) == {name.removeprefix("projects/") for name in inside}
    for name in (copy, tasks, todos, at + "memory/MEMORY.md"):
        assert SOURCE.sniff(tmp_path / name, b"anything") == SourceCandidate(tmp_path / name, *listing(tmp_path)[name])
    assert SOURCE.sniff(tmp_path / "repository" / "memory" / "MEMORY.md", b"anything") is None


def test_any_folder_with_transcripts_can_be_a_root(tmp_path: Path) -> None:
    put(tmp_path / "backup" / f"2026-01-16-{SID}.jsonl")
    put(tmp_path / "backup" / "renamed.jsonl", RECORD % SID.encode() * 2)
    put(tmp_path / "backup" / "other.jsonl", b'{"type":"session_meta","payload":{}}\n')
    assert listing(tmp_path) == {
        f"backup/2026-01-16-{SID}.jsonl": ("main", SID, ""),
        "backup/renamed.jsonl": ("main", SID, ""),
    }


def test_folders_behind_links_are_not_entered_except_projects(tmp_path: Path) -> None:
    put(tmp_path / "outside" / f"{SID}.jsonl")
    root = tmp_path / "root"
    (root / "projects").mkdir(parents=True)
    (root / "projects" / "loop").symlink_to(root)
    (root / "projects" / "away").symlink_to(tmp_path / "outside")
    assert listing(root) == {}
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "projects").symlink_to(tmp_path / "outside")
    assert set(listing(moved)) == {f"projects/{SID}.jsonl"}
    (root / "projects" / "file").mkdir()
    (root / "projects" / "file" / f"{SID}.jsonl").symlink_to(tmp_path / "outside" / f"{SID}.jsonl")
    (root / "projects" / "file" / "agent-gone.jsonl").symlink_to(tmp_path / "nowhere")
    assert set(listing(root)) == {f"projects/file/{SID}.jsonl"}


@pytest.mark.skipif(os.name == "nt", reason="folders are closed by other means on Windows")
def test_a_folder_that_cannot_be_listed_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "projects" / "a" / f"{SID}.jsonl")
    closed = put(tmp_path / "projects" / "b" / f"{SID}.jsonl").parent
    scandir = os.scandir

    def guarded(path: str) -> object:  # root may list anything, so permissions alone would not show it
        if path == str(closed):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found: list[SourceCandidate] = []
    with pytest.raises(PermissionError) as failure:
        found.extend(SOURCE.find(tmp_path))
    assert failure.value.filename == str(closed)
    assert [one.path.parent.name for one in found] == ["a"]


def test_a_transcript_is_known_by_its_content_wherever_it_lies(tmp_path: Path) -> None:
    sniff = SOURCE.sniff
    head = RECORD % SID.encode()
    assert sniff(Path("/x/y.jsonl"), head) == SourceCandidate(Path("/x/y.jsonl"), "main", SID)
    assert sniff(Path(f"/x/{SID.upper()}.jsonl"), RECORD % b"else") == SourceCandidate(
        Path(f"/x/{SID.upper()}.jsonl"), "main", SID
    )
    assert sniff(Path("/x/y.jsonl"), RECORD % b"a" + 2 * (RECORD % b"b")) == SourceCandidate(
        Path("/x/y.jsonl"), "main", "b"
    )
    assert sniff(Path("/x/y.jsonl"), b'{"type":"summary","summary":"s","leafUuid":"l"}\n') == SourceCandidate(
        Path("/x/y.jsonl"), "main", "y"
    )
    flat = sniff(Path("/x/agent-a1.jsonl"), head)
    assert flat == SourceCandidate(Path("/x/agent-a1.jsonl"), "subagent", f"{SID}/agent-a1", SID)
    for name in ("tool-results/toolu_1.txt", "subagents/agent-a1.meta.json"):
        kept = sniff(Path(f"/x/{SID}/{name}"), b"whatever")
        assert kept is not None
        assert kept.kind in ("output", "meta")


def test_a_first_line_longer_than_the_head_is_known_too() -> None:
    head = (RECORD % SID.encode())[:-20] + b"A" * 70_000
    assert SOURCE.sniff(Path("/x/y.jsonl"), head[:65536]) == SourceCandidate(Path("/x/y.jsonl"), "main", SID)
    assert SOURCE.workspace(head[:65536]) == "/home/ada"


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"hello\n",
        b"\0\0\0",
        b'{"type":"user","content":"of another client"}\n',
        b'{"type":"message","id":"1","message":{"role":"user"}}\n',
        b'{"type":"system","subtype":"init","session_id":"s"}\n{"type":"assistant","message":{},"session_id":"s"}\n',
        b'{"type":"user.message","data":{},"id":"1","parentId":null}\n',
        b'{"sessionId":"s","projectHash":"h"}\n{"id":"1","type":"user","content":"hi"}\n',
    ],
)
def test_files_of_others_are_not_ours(head: bytes) -> None:
    assert SOURCE.sniff(Path("/x/y.jsonl"), head) is None


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no real transcripts beside the checkout")
def test_no_real_file_of_another_format_is_taken_for_ours() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    others = [path for path in files if not str(path.relative_to(CORPUS)).startswith("claude-code")]
    assert others
    for path in others:
        with path.open("rb") as file:
            assert SOURCE.sniff(path, file.read(65536)) is None, path


@pytest.mark.parametrize(
    "path", [path for path in samples() if path.stem != "broken-lines"], ids=lambda path: path.stem
)
def test_the_workspace_is_where_the_session_began(path: Path) -> None:
    head = path.read_bytes()
    assert SOURCE.workspace(head) in ("/home/ada/tidewatch", "/home/ada/elsewhere")
    assert SOURCE.workspace(head[:10]) == ""


def test_retention_is_what_the_settings_say(tmp_path: Path) -> None:
    assert retention(tmp_path).days == 30
    put(tmp_path / "settings.json", b'{"cleanupPeriodDays": 99999, "model": "opus"}')
    said = retention(tmp_path / "projects")
    assert (said.days, said.said_by) == (99999, f"{tmp_path / 'settings.json'}: cleanupPeriodDays")
    put(tmp_path / "settings.local.json", b'{"cleanupPeriodDays": 7}')
    assert retention(tmp_path).days == 7
    for odd in (b'{"cleanupPeriodDays": "soon"}', b"{", b"\xff", b'{"cleanupPeriodDays": -1}', b"[]"):
        put(tmp_path / "settings.local.json", odd)
        assert retention(tmp_path).days == 99999
    assert SOURCE.retention is retention


def test_samples_lie_beside_what_is_expected_of_them() -> None:
    assert {path.stem for path in samples()} == {
        path.name.removesuffix(".expected.json") for path in SAMPLES.glob("*.json")
    }
