"""Files of fixers that name none: those that are staged by name afterwards."""

from __future__ import annotations

from everturn.derive.version_control import fixes_unnamed_files, staged_files


def test_files_staged_after_a_fixer_are_named_by_git_add() -> None:
    assert fixes_unnamed_files("bun run lint:fix 2>&1 | tail -5", "Checked 277 files. Fixed 5 files.")
    assert fixes_unnamed_files("npx prettier --write .", "3 files reformatted")
    assert not fixes_unnamed_files("bun run lint:fix", "Checked 277 files. No fixes applied.")
    assert not fixes_unnamed_files("bun test", "Fixed 5 files")
    assert staged_files("cd shop && git add src/a.ts \\\n  src/b.ts && git commit -m x") == ["src/a.ts", "src/b.ts"]
    assert (
        staged_files("git add -A") == staged_files("git add . && git status") == staged_files("git add src/*.ts") == []
    )
