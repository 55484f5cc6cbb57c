"""One name for each file."""

from __future__ import annotations

import pytest

from everturn.derive.paths import is_by_tools, is_scratch, local_path, same_case


@pytest.mark.parametrize(
    ("path", "workspace", "name"),
    [
        ("/home/ann/shop/src/a.py", "/home/ann/shop", "src/a.py"),
        ("/home/ann/shop/src/a.py", "/home/ann/shop/", "src/a.py"),
        ("./src/../src/a.py", "/home/ann/shop", "src/a.py"),
        ("file:///home/ann/shop/a%20b.py", "/home/ann/shop", "a b.py"),
        ("~/shop/a.py", "/home/ann/shop", "a.py"),
        ("/home/ann/shopping/a.py", "/home/ann/shop", "/home/ann/shopping/a.py"),
        ("/home/ann/shop/.worktrees/fix/src/a.py", "/home/ann/shop", "src/a.py"),
        ("/home/ann/.agent/worktrees/12/shop/src/a.py", "/home/ann/shop", "src/a.py"),
        ("/home/ann/shop/src/a.py", "/home/ann/shop/.agent/worktrees/fix", "src/a.py"),
        ("D:\\work\\shop\\src\\a.py", "D:\\work\\shop", "src/a.py"),
        ("d:/Work/shop/src/a.py", "D:\\work\\shop", "src/a.py"),
        ("/d/work/shop/src/a.py", "D:\\work\\shop", "src/a.py"),
        ("/mnt/d/work/shop/src/a.py", "D:\\work\\shop", "src/a.py"),
        ("src\\a.py", "D:\\work\\shop", "src/a.py"),
        ("file:///D:/work/shop/a.py", "D:\\work\\shop", "a.py"),
        ("/d/work/shop/a.py", "/home/ann/shop", "/d/work/shop/a.py"),
        ("a\\ b/c.py", "/home/ann/shop", "a\\ b/c.py"),
        ("", "", ""),
    ],
)
def test_a_file_has_one_name(path: str, workspace: str, name: str) -> None:
    assert local_path(path, workspace) == name


def test_drives_do_not_tell_upper_from_lower_case() -> None:
    assert same_case("Src/A.py", "C:\\shop") == same_case("src/a.py", "C:\\shop")
    assert same_case("Src/A.py", "/shop") != same_case("src/a.py", "/shop")


def test_temporary_folders_are_known() -> None:
    assert is_scratch("/tmp/a.txt")
    assert is_scratch("C:\\Users\\ann\\AppData\\Local\\Temp\\a.txt")
    assert not is_scratch("/home/ann/tmp/a.txt")


@pytest.mark.parametrize(
    "path", ["web/next-env.d.ts", "package-lock.json", "web/tsconfig.tsbuildinfo", "node_modules/a.js", "src\\a.pyc"]
)
def test_what_tools_write_is_known(path: str) -> None:
    assert is_by_tools(path)


def test_what_is_written_beside_it_is_not_taken_for_it() -> None:
    assert not any(map(is_by_tools, ("next-env.ts", "package.json", "src/lock.py", "class.py", "a.class.ts")))
