"""Names of files in words, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.derive.artifacts import (
    announced_file,
    edited_file,
    find_mentions,
    listed_changes,
    makes_new_file,
    named_files,
    stated_deletions,
    told_files,
)
from everturn.model.conversation import CallStart


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("see src/foo/bar.py, please", "src/foo/bar.py"),
        ("./a/b.test.ts(3,4): error TS2322", "./a/b.test.ts"),
        ("src/main.rs:12:5", "src/main.rs"),
        ("in `config.json`", "config.json"),
        ('"k/z.yaml": 1', "k/z.yaml"),
        (r"C:\work\shop\login.py", r"C:\work\shop\login.py"),
        ("modified:   docker/Dockerfile", "docker/Dockerfile"),
        ("writer_test.go", "writer_test.go"),
        ("go.mod and go.sum", "go.mod"),
        ("add it to .gitignore", ".gitignore"),
        ("/home/ann/shop/README.md.", "/home/ann/shop/README.md"),
    ],
)
def test_a_name_of_a_file_is_found(text: str, name: str) -> None:
    assert name in find_mentions(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.com/docs/page.html",
        "mail ann@example.md about it",
        "call numpy.sum or os.path.c",
        "self.ui.update(theme.json())",
        "node_modules/left-pad/index.js",
        "version 1.2.3",
        "only .py files",
        "object.method.name",
    ],
)
def test_what_only_looks_like_one_is_not(text: str) -> None:
    assert not find_mentions(text)


def test_how_often_a_name_stands_there_is_counted() -> None:
    assert find_mentions("a/b.py b.py a/b.py") == {"a/b.py": 2, "b.py": 1}


def test_of_a_long_text_both_ends_are_looked_at() -> None:
    found = find_mentions(f"first/one.py {'x ' * 50_000} last/one.py")
    assert set(found) == {"first/one.py", "last/one.py"}


@given(st.text(max_size=400))
def test_no_text_does_harm(text: str) -> None:
    assert all(name in text for name in find_mentions(text))


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("Now let's update the package.json file and add the scripts:", "package.json"),
        ("Next I modify `src/cli.ts` to import `src/git.ts`.", "src/cli.ts"),
        ("I add the command to src/cli.ts:", "src/cli.ts"),
        ("Write it to a file called `notes.md` in the root", "notes.md"),
        ("Let's create a script that starts the app:", ""),
        ("Let's change the launcher so that it runs app.py directly", None),
        ("The tests pass now.", None),
        ("Next, I create the definitions of the lamps, `Lamps.xml`, which names them.", "Lamps.xml"),
        ("First `a.ts` was read.\n\nI'll add the method to the class in `LampCore.cs`, like in `b.ts`.", "LampCore.cs"),
        ("Make sure that tests (`**/*.test.ts`, `setup.ts`) are seen.", None),
        ("I update `@notes.md` now.", "notes.md"),
        ("I will not change `a.ts`.", None),
        ("", None),
    ],
)
def test_the_file_that_is_changed_next_is_announced(text: str, file: str | None) -> None:
    assert announced_file(text) == file


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("Ich aktualisiere jetzt `src/lampe.py`:", "src/lampe.py"),
        ("Je vais modifier le fichier `src/lampe.py` :", "src/lampe.py"),
        ("Voy a actualizar `src/lampara.py`:", "src/lampara.py"),
        ("次に`src/lamp.py`を修正します：", "src/lamp.py"),
        ("现在我需要修改`pom.xml`文件：", "pom.xml"),
        ("现在查看`pom.xml`文件：", None),
    ],
)
def test_a_file_is_announced_in_every_language(text: str, file: str | None) -> None:
    assert announced_file(text) == file


@pytest.mark.parametrize(
    "line",
    [
        "I have updated `lamp.txt`.",
        "`lamp.txt` was updated.",
        "Ich habe `lamp.txt` geändert.",
        "In der Datei wurde ergänzt: `lamp.txt`",
        "J'ai modifié `lamp.txt`.",
        "He actualizado `lamp.txt` y nada más; modificado `lamp.txt`",
        "`lamp.txt` を修正しました。",
        "我已在 `lamp.txt` 中添加了以下配置：",
    ],
)
def test_an_answer_says_in_every_language_that_it_changed_a_file(line: str) -> None:
    assert named_files(line) == ["lamp.txt"]


@pytest.mark.parametrize(
    "line",
    [
        "The output will land in `out/lamps.csv`.",
        "See `docs/lamp.md`.",
        "I read `docs/lamp.md` against `docs/brief.md`.",
        "Then open `build/report.html` in your browser.",
        "`https://lamps.example/plugins.json` is fetched",
        "Ich habe `docs/lamp.md` nicht geändert.",
        "没有修改 `docs/lamp.md`",
        "Unchanged is `docs/lamp.md`.",
    ],
)
def test_a_file_that_an_answer_only_refers_to_was_not_changed(line: str) -> None:
    assert named_files(line) == []


def test_an_edit_without_a_file_is_of_the_announced_one_and_of_those_that_the_answer_names() -> None:
    answer = (
        "I created two rules:\n1. `a.mdc`: commands\n2. `b.mdc`: modules\nand changed `src/cli.ts`, see `docs/x.md`."
    )
    assert told_files([("", 3), ("cli.ts", 5)], (answer, 9), (), False, ()) == {
        "src/cli.ts": 9,
        "a.mdc": 9,
        "b.mdc": 9,
    }
    noted = told_files([("cli.ts", 5)], (answer, 9), ("lib/cli.ts",), True, ())
    assert noted == {"src/cli.ts": 9}
    assert told_files([("cli.ts", 5)], ("Done.", 9), ("lib/cli.ts",), True, ()) == {}


def test_an_edit_is_of_the_file_announced_or_read_or_the_only_one_named() -> None:
    def edit(lines: str) -> CallStart:
        return CallStart("1", "edit_file", "edit", input={"asked": f"```diff\n{lines}\n```"})

    old, new = edit("  lamp\n- off\n+ on"), edit("- \n+ lamp\n+ on")
    assert edited_file(old, "Now I change `a.ts`:", "b.ts") == "a.ts"
    assert edited_file(old, "**Step 1: the lamp (`a.ts`)**", "b.ts") == "b.ts"
    assert edited_file(new, "Now the service for the lamps:", "b.ts") == ""
    assert edited_file(new, "**Step 1: the new lamp (`a.ts`)**", "b.ts") == "a.ts"
    assert edited_file(old, "", "") == edited_file(old, "See `a.ts` and `b.ts`.", "") == ""
    assert not makes_new_file(old) and makes_new_file(new)


@pytest.mark.parametrize(
    "heading",
    ["### Files changed", "**Modified files:**", "修改的文件：", "### 新增的文件", "## Geänderte Dateien – neue", "**Fichiers modifiés :**",
     "### Archivos creados", "変更したファイル：", "### Созданные файлы:", "Arquivos criados:", "**수정된 파일**"],
)  # fmt: skip
def test_the_files_below_a_heading_that_says_so_were_changed(heading: str) -> None:
    items = "- ✅ `src/lamp.py` - on\n2. **`VERSION.txt`**: 2\n| `docs/lamp.md` | new |\n- see `other.py`\n"
    found = listed_changes(f"Done.\n\n{heading}\n\n{items}\nThe rest:\n- `tests/a.py`")
    assert [path for _, path in found] == ["src/lamp.py", "VERSION.txt", "docs/lamp.md"]


@pytest.mark.parametrize(
    "heading",
    [
        "### Files to change",
        "Files that will be created:",
        "需要修改的文件：",
        "### Relevant files",
        "Files not changed:",
        "変更予定のファイル：",
    ],
)
def test_a_list_of_what_is_to_come_tells_of_no_change(heading: str) -> None:
    assert listed_changes(f"{heading}\n- `src/lamp.py`\n") == []


def test_a_new_file_of_a_list_is_created() -> None:
    report = "### New files\n- `src/a.py`\n### Files created/updated\n- `src/b.py` - new\n- `VERSION` - 1.2\n### No files changed\n- `c.py`\n"
    assert listed_changes(report) == [("created", "src/a.py"), ("created", "src/b.py"), ("edited", "VERSION")]


@pytest.mark.parametrize(
    "line",
    ["- 已删除 `lamp.py` 调试组件", "Deleted `lamp.py`.", "- ❌ `lamp.py` - Eliminado", "`lamp.py` を削除しました。 `lamp.py` 削除", "- **`lamp.py`** removed",
     "`lamp.py` wurde gelöscht", "J'ai supprimé `lamp.py`"],
)  # fmt: skip
def test_an_answer_says_which_file_a_call_without_a_name_deleted(line: str) -> None:
    assert stated_deletions(line, 1) == ["lamp.py"]
    assert stated_deletions(line, 0) == []


@pytest.mark.parametrize(
    "line",
    ["Removed the lamp from `lamp.py`.", "**`lamp.py`** — Removed the theme", "`lamp.py` was not deleted", "Removed `light()` in `lamp.py`", "删除 3 行后，`lamp.py` 正常"],
)  # fmt: skip
def test_what_was_removed_from_a_file_does_not_delete_it(line: str) -> None:
    assert stated_deletions(line, 3) == []
