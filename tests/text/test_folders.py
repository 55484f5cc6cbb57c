"""Working folders as filters: paths and names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.text.folders import folder_filter, resolve_folder


@pytest.mark.parametrize(
    ("wanted", "folder", "is_match"),
    [
        ("/x/t12", "/x/t12", True),
        ("/x/t12", "/x/t12/src", True),
        ("/x/t12/", "/x/t12", True),
        ("/x/t12", "/x/t12/", True),
        ("/x/t12", "/x/t12b", False),
        ("/x/t12", "/y/x/t12", False),
        ("/x/T12", "/x/t12", False),
        ("/", "/x", True),
        ("/", "", False),
        ("t12", "/x/t12/src", True),
        ("T12", "/x/t12", True),
        ("t12", "/x/t12b", False),
        ("t12", "/x/at12", False),
        ("x/t12", "/home/x/t12/src", True),
        ("x/t12", "/x/y/t12", False),
        ("t12/", "t12", True),
        ("t_2", "/x/t12", False),
        ("%", "/x/t12", False),
        ("C:\\shop", "c:/shop/src", True),
        ("c:/shop", "C:\\shop", True),
        ("C:\\shop", "C:\\shopping", False),
        ("shop\\src", "C:\\shop\\src\\a", True),
        ("\\\\server\\share", "//server/share/a", True),
        (".claude", "/home/ann/.claude/x", True),
    ],
)
def test_a_folder_is_compared_as_a_path(wanted: str, folder: str, is_match: bool) -> None:
    assert folder_filter(resolve_folder(wanted)).matches(folder) is is_match


def test_typed_folders_are_resolved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve_folder("~/shop/", home="/home/ann") == "/home/ann/shop"
    assert resolve_folder("~", home="/home/ann") == "/home/ann"
    assert resolve_folder("~/team/shop") == "team/shop", "a name where the home folder is not known"
    assert resolve_folder(".") == str(tmp_path)
    assert resolve_folder("./a/../b") == str(tmp_path / "b")
    assert resolve_folder("..", "/srv/shop/src") == "/srv/shop"
    assert resolve_folder("/a//b/./c") == "/a/b/c"
    assert resolve_folder("C:\\a\\..\\b") == "C:/b"
    assert [resolve_folder(name) for name in ("", "shop", "team/shop", "~ann", ".config")] == [
        "", "shop", "team/shop", "~ann", ".config",
    ]  # fmt: skip


NAMES = st.text(st.sampled_from("abT12_%-. é"), min_size=1, max_size=4).filter(lambda name: name.strip(". ") != "")
PATHS = st.lists(NAMES, min_size=1, max_size=4)


@given(PATHS, st.text(st.sampled_from("abT12_%-. é\\"), min_size=1, max_size=3))
def test_a_longer_name_is_another_folder(parts: list[str], more: str) -> None:
    path = "/" + "/".join(parts)
    assert folder_filter(path).matches(path) and folder_filter(path).matches(f"{path}/{more}")
    if not more.startswith("\\"):
        assert not folder_filter(path).matches(path + more)


@given(PATHS, PATHS)
def test_a_name_matches_whole_names_only(parts: list[str], names: list[str]) -> None:
    lower = [part.lower() for part in parts]
    wanted = [name.lower() for name in names]
    there = any(lower[at : at + len(wanted)] == wanted for at in range(len(lower)))
    assert folder_filter("/".join(names)).matches("/" + "/".join(parts)) is there
