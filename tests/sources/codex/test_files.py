"""Finding rollouts, recognizing one by its content, and compressed ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from everturn.sources.codex import SOURCE
from everturn.sources.codex.files import decompress_head
from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.toolkit.zstd_data import zstd_module
from tests.sources.goldens import ingest, put, read, readings

SAMPLES = Path(__file__).parent / "samples"
SID = "01999c1a-0000-7000-8000-0000000000a1"
OTHER = "01999c1a-0000-7000-8000-0000000000b2"
NAME = f"rollout-2026-03-01T10-00-00-{SID}.jsonl"


def packed(data: bytes) -> bytes:
    return bytes(zstd_module().compress(data))


def places(home: Path, extra: tuple[Path, ...] = (), **env: str) -> SearchPlaces:
    return SearchPlaces(home, env, "linux", {"codex": extra} if extra else {})


def listing(root: Path) -> dict[str, tuple[str, str]]:
    return {str(found.path.relative_to(root)): (found.kind, found.native_id) for found in SOURCE.find(root)}


def test_roots_are_the_usual_folder_and_what_is_named_each_once(tmp_path: Path) -> None:
    assert SOURCE.roots(places(tmp_path)) == []
    usual, named = tmp_path / ".codex", tmp_path / "named"
    usual.mkdir()
    named.mkdir()
    assert SOURCE.roots(places(tmp_path)) == [usual]
    assert SOURCE.roots(places(tmp_path, (usual,), CODEX_HOME="~/named")) == [usual, named]
    assert SOURCE.roots(places(tmp_path, CODEX_HOME=str(usual))) == [usual]


def test_every_layout_is_found_with_its_id(tmp_path: Path) -> None:
    day = tmp_path / "sessions" / "2026" / "03" / "01"
    put(day / NAME)
    put(day / NAME.replace(SID, OTHER).replace(".jsonl", ".jsonl.zst"))
    put(day / f"{NAME}.zst")  # being packed: the plain one counts
    put(tmp_path / "archived_sessions" / NAME.replace("03-01", "02-01"))
    for other in ("history.jsonl", "session_index.jsonl", "auth.json", "log/codex-tui.log", "sessions/notes.txt"):
        put(tmp_path / other)
    at = "sessions/2026/03/01/"
    assert listing(tmp_path) == {
        at + NAME: ("main", SID),
        at + NAME.replace(SID, OTHER) + ".zst": ("container", OTHER),
        "archived_sessions/" + NAME.replace("03-01", "02-01"): ("main", SID),
    }


def test_any_folder_with_rollouts_can_be_a_root_and_links_are_not_followed(tmp_path: Path) -> None:
    data = (SAMPLES / "new-era.jsonl").read_bytes()
    put(tmp_path / "backup" / "renamed.jsonl", data)
    put(tmp_path / "backup" / "packed.jsonl.zst", packed(data))
    put(tmp_path / "backup" / "other.jsonl", b'{"type":"user","message":{}}\n')
    (tmp_path / "backup" / "loop").symlink_to(tmp_path)
    (tmp_path / "backup" / NAME).symlink_to(tmp_path / "nowhere")
    assert listing(tmp_path) == {"backup/renamed.jsonl": ("main", SID), "backup/packed.jsonl.zst": ("container", SID)}


@pytest.mark.skipif(os.name == "nt", reason="folders are closed by other means on Windows")
def test_a_folder_that_cannot_be_listed_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = put(tmp_path / "sessions" / "a" / NAME).parent
    put(tmp_path / "sessions" / "b" / NAME)
    scandir = os.scandir

    def guarded(path: str) -> object:  # root may list anything, so permissions alone would not show it
        if path == str(closed):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found: list[SourceCandidate] = []
    with pytest.raises(PermissionError):
        found.extend(SOURCE.find(tmp_path))
    assert [one.path.parent.name for one in found] == ["b"]


def test_a_rollout_is_known_by_its_content_wherever_it_lies() -> None:
    path = Path("/x/y.jsonl")
    meta = b'{"timestamp":"2026-03-01T10:00:00.000Z","type":"session_meta","payload":{"id":"%s","x":"' % SID.encode()
    assert SOURCE.sniff(path, meta + b"long" * 20_000) == SourceCandidate(path, "main", SID)
    assert SOURCE.sniff(path, b'{"id":"%s","timestamp":"t","instructions":null}\n' % SID.encode()) == SourceCandidate(
        path, "main", SID
    )
    cut = b'{"timestamp":"t","type":"event_msg","payload":{"type":"task_started"}}\n'
    assert SOURCE.sniff(Path(f"/x/{NAME}"), cut) == SourceCandidate(Path(f"/x/{NAME}"), "main", SID)
    for other in (
        b"", b"text\n", b"[1]\n", b'{"type":"session_meta"}\n', b'{"type":"message","role":"user","content":"x"}\n',
        b'{"id":"1","timestamp":"t","instructions":"","more":1}\n', b'{"role":"user","content":"x"}\n',
    ):  # fmt: skip
        assert SOURCE.sniff(path, other) is None


def test_the_working_folder_is_read_from_the_beginning() -> None:
    for name, folder in (("new-era", "/home/ada/harbour"), ("old-era", "/home/ada/pier")):
        assert SOURCE.workspace((SAMPLES / f"{name}.jsonl").read_bytes()) == folder
    assert SOURCE.workspace(b'{"timestamp":"t","type":"session_meta","payload":{"cwd":"C:\\\\Users\\\\ada","x":"') == (
        "C:\\Users\\ada"
    )
    assert SOURCE.workspace(b"{}\n") == ""


def test_a_compressed_rollout_reads_like_the_plain_one(tmp_path: Path) -> None:
    data = (SAMPLES / "new-era.jsonl").read_bytes()
    path = put(tmp_path / f"{NAME}.zst", packed(data))
    ((found, lines, whole),) = readings(SOURCE, path)
    assert (lines, found.native_id, found.path.name) == (data, SID, f"{NAME}.zst#{NAME}")
    assert whole.messages == read(SOURCE, found, data).messages
    with ingest("codex", path) as taken:
        assert taken.hits("reads it") == [SID]


def test_a_compressed_rollout_that_breaks_off_gives_what_can_be_read(tmp_path: Path) -> None:
    zstd = zstd_module()
    data = (SAMPLES / "new-era.jsonl").read_bytes()
    half = len(data) // 2
    frames = bytes(zstd.compress(data[:half])) + bytes(zstd.compress(data[half:]))[:40]
    ((_, lines, whole),) = readings(SOURCE, put(tmp_path / f"{NAME}.zst", frames))
    assert data.startswith(lines)
    assert len(lines) >= half
    assert whole.texts("prompt")[0] == "How high is the tide, and who reads it?"


def test_a_compressed_file_that_gives_nothing_is_said_to_be_damaged(tmp_path: Path) -> None:
    path = put(tmp_path / f"{NAME}.zst", b"\x28\xb5\x2f\xfd" + b"\xff" * 40)
    assert SOURCE.sniff(path, path.read_bytes()) is None
    assert SOURCE.unpack is not None
    with pytest.raises(OSError, match="damaged"):
        list(SOURCE.unpack(SourceCandidate(path, "container", SID), path))


def test_compressed_files_of_others_are_not_ours(tmp_path: Path) -> None:
    assert SOURCE.sniff(tmp_path / "x.zst", packed(b"just some text")) is None
    assert decompress_head(b"no zstd") == b""
