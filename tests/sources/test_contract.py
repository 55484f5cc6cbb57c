"""What the contract offers to every format: folders by platform, and the search for files below a root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.toolkit.file_search import find_files, sniff_files


def put(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def pick(entry: os.DirEntry[str]) -> SourceCandidate | None:
    return SourceCandidate(Path(entry.path)) if entry.name.endswith(".x") else None


def names(root: Path, **options: object) -> list[str]:
    return [str(found.path.relative_to(root)) for found in find_files(root, pick, **options)]  # type: ignore[arg-type]


def test_files_come_in_order_of_their_names_and_before_those_of_deeper_folders(tmp_path: Path) -> None:
    put(tmp_path, "b.x", "a.x", "a.y", "z/a.x", "c/d/a.x", "c/b.x")
    assert names(tmp_path) == ["a.x", "b.x", "c/b.x", "c/d/a.x", "z/a.x"]


def test_skipped_folders_deeper_ones_and_links_are_not_entered(tmp_path: Path) -> None:
    put(tmp_path, "skip/a.x", "1/a.x", "1/2/a.x", "1/2/3/a.x")
    (tmp_path / "link").symlink_to(tmp_path / "1")
    assert names(tmp_path, skipped=("skip",), deepest=2) == ["1/a.x", "1/2/a.x"]


def test_a_folder_with_a_closing_file_is_not_searched_further(tmp_path: Path) -> None:
    put(tmp_path, "session/end.x", "session/deep/a.x", "other/a.x", "other/deep/a.x")
    assert names(tmp_path, closed_by="end.x") == ["other/a.x", "other/deep/a.x", "session/end.x"]


def test_an_error_does_not_stop_the_search_and_is_raised_at_its_end(tmp_path: Path) -> None:
    put(tmp_path, "a/bad.x", "a/deep/a.x", "b/a.x")

    def refuse(entry: os.DirEntry[str]) -> SourceCandidate | None:
        if entry.name == "bad.x":
            raise PermissionError(entry.path)
        return pick(entry)

    found = []
    with pytest.raises(PermissionError, match=r"bad\.x"):
        for candidate in find_files(tmp_path, refuse):
            found.append(candidate.path.relative_to(tmp_path))
    assert Path("b/a.x") in found


def test_files_are_recognised_by_suffix_and_content_outside_of_hidden_folders(tmp_path: Path) -> None:
    put(tmp_path, "b.md", "a.md", "a.txt", "in/c.log", ".hidden/a.md")
    (tmp_path / "a.md").write_text("other")

    def sniff(path: Path, head: bytes) -> SourceCandidate | None:
        return SourceCandidate(path) if head == b"x" else None

    found = [candidate.path.relative_to(tmp_path) for candidate in sniff_files(tmp_path, sniff, ".md", ".log")]
    assert found == [Path("b.md"), Path("in/c.log")]


def test_a_missing_root_is_told_to_who_asks_only(tmp_path: Path) -> None:
    failures: list[OSError] = []
    assert list(sniff_files(tmp_path / "none", lambda path, head: None, ".md")) == []
    assert list(sniff_files(tmp_path / "none", lambda path, head: None, ".md", onerror=failures.append)) == []
    assert [type(failure) for failure in failures] == [FileNotFoundError]


@pytest.mark.parametrize(
    ("platform", "env", "expected"),
    [
        ("linux", {}, "/home/ada/.config"),
        ("linux", {"XDG_CONFIG_HOME": "/conf"}, "/conf"),
        ("darwin", {"XDG_CONFIG_HOME": "/conf"}, "/home/ada/Library/Application Support"),
        ("win32", {}, "/home/ada/AppData/Roaming"),
        ("win32", {"APPDATA": "/roaming"}, "/roaming"),
    ],
)
def test_settings_are_where_the_platform_keeps_them(platform: str, env: dict[str, str], expected: str) -> None:
    assert SearchPlaces(Path("/home/ada"), env, platform).config_folder() == Path(expected)


def test_a_tilde_is_the_home_folder() -> None:
    places = SearchPlaces(Path("/home/ada"), {}, "linux")
    assert places.expand("~/x/y") == Path("/home/ada/x/y")
    assert places.expand("/x/~/y") == Path("/x/~/y")
