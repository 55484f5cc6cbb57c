"""Files that commands change without naming them: manifests, folders, and those of fixers, which are staged afterwards."""

from __future__ import annotations

import pytest

from everturn.derive.file_book import fixes_unnamed_files, noted_files
from everturn.derive.file_commands import command_touches, made_folders, staged_files


def test_files_staged_after_a_fixer_are_named_by_git_add() -> None:
    assert fixes_unnamed_files("bun run lint:fix 2>&1 | tail -5", "Checked 277 files. Fixed 5 files.")
    assert fixes_unnamed_files("npx prettier --write .", "3 files reformatted")
    assert not fixes_unnamed_files("bun run lint:fix", "Checked 277 files. No fixes applied.")
    assert not fixes_unnamed_files("bun test", "Fixed 5 files")
    assert staged_files("cd shop && git add src/a.ts \\\n  src/b.ts && git commit -m x") == ["src/a.ts", "src/b.ts"]
    assert (
        staged_files("git add -A") == staged_files("git add . && git status") == staged_files("git add src/*.ts") == []
    )


@pytest.mark.parametrize(
    ("command", "file"),
    [("npm i -D lamp", "package.json"), ("cd web && bun add lamp", "web/package.json"), ("npm init -y", "package.json"), ("uv add rich", "pyproject.toml"),
     ("cargo add serde", "Cargo.toml"), ("yarn remove lamp", "package.json"), ("npm install", ""), ("npm ci", ""), ("yarn", ""), ("npm i -g lamp", ""),
     ("npm install --legacy-peer-deps", ""), ("pnpm --filter web add lamp", ""), ("npm init vite@latest", ""), ("go build ./...", "")],
)  # fmt: skip
def test_a_package_manager_notes_what_it_adds_in_its_manifest(command: str, file: str) -> None:
    assert command_touches(command, "") == ([("edited", file)] if file else [])


def test_folders_are_made_by_their_names() -> None:
    assert made_folders("cd a && mkdir -p x/{b,c} -m 755 y/ && mkdir node_modules /tmp/z\nls") == [
        "a/x/b",
        "a/x/c",
        "a/y",
    ]
    assert made_folders('mkdir -p "$HOME/x"; echo mkdir z') == []


@pytest.mark.parametrize(
    ("command", "folders"),
    [
        ("cd zoo && git clone --depth 1 https://x/ann/lamps.git", ["zoo/lamps"]),
        ("git clone git@x:ann/lamps ~/tools/lamps/ && ls", ["~/tools/lamps"]),
        ("git clone https://x/ann/lamps /tmp/lamps", []),
        ("git clone --mirror $URL", []),
    ],
)
def test_a_clone_makes_a_folder(command: str, folders: list[str]) -> None:
    assert made_folders(command) == folders


def test_a_client_may_change_a_file_by_itself() -> None:
    assert noted_files("No git repo found\nAdded .agent*, .env to .gitignore\nModel: m") == [".gitignore"]
    assert noted_files("Add .agent* to .gitignore (recommended)? y") == []
