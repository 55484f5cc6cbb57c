"""Sessions that SpecStory saved: sections, tools inside them, other threads, the older forms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from everturn.derive.artifacts import touched_files
from everturn.derive.turns import grow_session
from everturn.model.archive import JournalTail, SessionGrowth
from everturn.sources.contract import SearchPlaces, SourceCandidate, all_sources
from everturn.sources.recognition import weigh_claims, winner
from everturn.sources.specstory import SOURCE
from everturn.sources.specstory.message import build, parse_mark, tool_blocks
from everturn.sources.toolkit.values import milliseconds
from tests.sources.goldens import (
    Whole,
    assert_claims_only,
    assert_keeps_promises,
    assert_same_in_pieces,
    corpus,
    found_for,
    ingest,
    read,
    readings,
)

FOLDER = Path(__file__).parent / "samples"
SAMPLES = sorted(FOLDER.glob("*.md"))
NEWER = "0c0ffee0-1111-4222-8333-444444444444"


def sample(name: str) -> Whole:
    ((_, _, whole),) = readings(SOURCE, FOLDER / f"{name}.md")
    return whole


def rows(whole: Whole, native_id: str) -> SessionGrowth:
    return grow_session(JournalTail(), whole.messages[native_id])[0]


def test_marks_inside_what_a_tool_printed_begin_nothing() -> None:
    whole = sample("newer")
    assert whole.texts("prompt")[0] == "the lamp is too bright\n\n---\n\nand this line is below a rule of mine"
    assert "_**User (2020-01-01 00:00:00Z)**_\n\n```not the end" in whole.texts("tool_output")[0]


def test_tools_are_calls_with_their_results() -> None:
    growth = rows(sample("newer"), NEWER)
    assert [(call.name, call.kind, call.status, call.exit_status) for call in growth.calls] == [
        ("Read", "read", "ok", None), ("Bash", "shell", "error", 2), ("Edit", "edit", "ok", None),
        ("exec_command", "shell", "ok", 0), ("shell", "shell", "ok", None),
    ]  # fmt: skip
    touched = [(artifact.action, artifact.path) for artifact in growth.artifacts]
    assert touched == [("read", "./src/lamp.py"), ("edited", "/home/ann/lamp/src/lamp.py")]
    calls = [block.call for message in sample("newer").all() for block in message.blocks if block.call]
    assert [call.command for call in calls if call.kind == "shell"] == [
        "make test",
        "make test\ngit add -A",
        "make lint",
    ]


def test_what_is_said_up_to_a_call_is_one_step() -> None:
    growth = rows(sample("newer"), NEWER)
    assert [step.n_calls for step in growth.steps] == [2, 3]


def test_only_what_a_human_typed_is_a_prompt() -> None:
    whole = sample("newer")
    said = [(m.origin, m.kind) for m in whole.messages[NEWER] if m.role == "user"]
    assert said == [
        ("human", "text"), ("system", "interrupt"), ("human", "command"), ("injected", "context"),
        ("system", "output"), ("injected", "context"),
    ]  # fmt: skip


def test_another_thread_is_a_session_of_its_own() -> None:
    whole = sample("newer")
    child = f"{NEWER}/sidechain-1"
    assert whole.facts[child] == {"kind": "sidechain", "parent": NEWER}
    assert [link.relation for link in whole.links[child]] == ["subagent_of"]
    assert [(link.relation, link.native_id) for link in whole.links[NEWER]] == [("spawned", child)]
    assert [(m.origin, m.role) for m in whole.messages[child]] == [("agent", "user"), ("model", "assistant")]


def test_the_oldest_form_is_read_item_by_item() -> None:
    whole = sample("oldest")
    growth = rows(whole, "oldest")
    assert whole.facts["oldest"]["title"] == "Painting the fence"
    assert [(call.name, call.kind) for call in growth.calls] == [
        ("read_file", "read"), ("codebase_search", "search"), ("run_terminal_cmd", "shell"), ("edit_file", "edit"),
    ]  # fmt: skip
    assert (len(growth.turns), len(growth.steps)) == (2, 6)
    assert whole.texts("prompt") == ["paint the fence @fence.md\n\nlike this:\n\n_**User**_", "thanks"]


def test_the_form_between_is_read_too() -> None:
    growth = rows(sample("older-cli"), "44444444-aaaa-bbbb-cccc-000000000006")
    assert [(call.name, call.kind, call.status) for call in growth.calls] == [
        ("Read", "read", "ok"),
        ("Bash", "shell", "ok"),
    ]
    cursor = rows(sample("cursor"), "7648a3a8-0000-4000-8000-000000000000")
    assert [(artifact.action, artifact.path) for artifact in cursor.artifacts] == [
        ("read", "pkg/sync.go"),
        ("edited", "pkg/sync.go"),
    ]


def test_two_files_of_one_session_share_their_messages(tmp_path: Path) -> None:
    data = (FOLDER / "newer.md").read_bytes()
    for name in ("2026-05-01.md", "2026-05-01-lamp.md"):
        (tmp_path / name).write_bytes(data)
    with ingest("specstory", tmp_path / "2026-05-01.md", tmp_path / "2026-05-01-lamp.md") as taken:
        one, other = sorted(taken.store.sessions_of("specstory", NEWER), key=lambda session: session.id)
        assert (one.n_inherited, other.n_inherited) == (0, other.n_messages)
        assert taken.hits("dimmer now") == [NEWER]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_file_that_got_longer_is_read_on(path: Path) -> None:
    data = path.read_bytes()
    found, whole = found_for(SOURCE, path, data), read(SOURCE, found_for(SOURCE, path, data), data)
    for message in whole.all():
        grown = read(SOURCE, found, data, [message.start], [True])
        assert grown.messages == whole.messages


def test_sessions_are_found_in_the_projects_of_named_folders(tmp_path: Path) -> None:
    history = tmp_path / "code" / "lamp" / ".specstory" / "history"
    history.mkdir(parents=True)
    (history / "a.md").write_bytes((FOLDER / "newer.md").read_bytes())
    (history / "notes.md").write_text("# notes\n")
    (tmp_path / "code" / "b.md").write_bytes((FOLDER / "newer.md").read_bytes())
    assert SOURCE.roots(SearchPlaces(tmp_path, {}, "linux")) == []
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux", {"specstory": (tmp_path / "code",)}))
    assert list(SOURCE.find(root)) == [SourceCandidate(history / "a.md", "main", NEWER)]
    whole = read(SOURCE, SourceCandidate(history / "a.md", "main", NEWER), (history / "a.md").read_bytes())
    assert whole.facts[NEWER]["workspace"] == str(tmp_path / "code" / "lamp")


def test_a_saved_session_is_known_by_its_content() -> None:
    path = Path("/x/y.md")
    assert SOURCE.sniff(path, b"<!-- Generated by SpecStory -->\n\n# A (2025-01-01 00:00:00)\n") == SourceCandidate(
        path, "main", "y"
    )
    for other in (b"", b"# Notes\n", b"## 2025-07-10\n\ntext\n", b"x <!-- Generated by SpecStory -->"):
        assert SOURCE.sniff(path, other) is None


def test_a_saved_session_is_searched_in_the_archive() -> None:
    with ingest("specstory", FOLDER / "oldest.md") as taken:
        assert taken.hits("fence is green") == ["oldest"]
        assert taken.hits("bun test") == ["oldest"]


@pytest.mark.few(12)
@pytest.mark.parametrize("path", corpus("specstory"))
def test_a_real_session_is_read_whole(path: Path) -> None:
    ((found, data, whole),) = readings(SOURCE, path)
    assert_keeps_promises(SOURCE, data, whole, lines=False)
    assert_same_in_pieces(SOURCE, found, data, 7, stopping=False)
    assert whole.problems == []
    bare = re.compile(
        rb"^<tool-use [^>\n]+><details>\r?\n<summary>Tool use: \*\*\w+\*\*</summary>\s+</details></tool-use>", re.M
    )
    tools = sum(line.startswith(b"<tool-use ") for line in data.splitlines()) - len(bare.findall(data))
    calls = [block.call for message in whole.all() for block in message.blocks if block.call]
    assert len(calls) >= tools
    with ingest("specstory", path) as taken:
        assert taken.report.sessions + taken.report.subagents == len(whole.messages)


def test_only_saved_sessions_are_taken_for_them() -> None:
    assert_claims_only(SOURCE, "specstory")


@pytest.mark.parametrize(
    ("element", "touched"),
    [
        (
            '<tool-use data-tool-type="write" data-tool-name="apply_patch"><details>\n<summary>Tool use: **apply_patch**</summary>\n'
            "**Update: `src/lamp.py`**\n\n```diff\n@@\n-a\n+b\n```\n\n**Add: `docs/a b.md`**\n\n```diff\n+new\n```\n\n**Delete: `old.py`**\n"
            "</details></tool-use>",
            [("edited", "src/lamp.py"), ("created", "docs/a b.md"), ("deleted", "old.py")],
        ),
        (
            '<tool-use data-tool-type="write" data-tool-name="create_file"><details>\n<summary>Tool use: **create_file**</summary>\n\n'
            "**Input:**\n\n- content:\n\n```\n`first` line\n- path: `inside`\n```\n\n- filePath: `c:\\Dev\\my lamp\\lamp.json`\n\n</details></tool-use>",
            [("created", "c:\\Dev\\my lamp\\lamp.json")],
        ),
        (
            '<tool-use data-tool-type="generic" data-tool-name="replace_string_in_file"><details>\n'
            "<summary>Tool use: **replace_string_in_file**</summary>\n\n**Input:**\n\n- filePath: `src/lamp.cs`\n- newString:\n\n```\n`x`\n```\n"
            "</details></tool-use>",
            [("edited", "src/lamp.cs")],
        ),
        (
            '<tool-use data-tool-type="write" data-tool-name="edit_file_v2">\n\n<details><summary>Tool use: **edit_file_v2** • Edit file: '
            "/home/ann/my lamp/a.py</summary>\n\n</details>\n\n</tool-use>",
            [("edited", "/home/ann/my lamp/a.py")],
        ),
        (
            '<tool-use data-tool-type="write" data-tool-name="Edit"><details>\n<summary>Tool use: **Edit**</summary>\n\n```text\n'
            "The file C:\\Users\\Ann B\\lamp.py has been updated successfully. (file state is current)\n```\n</details></tool-use>",
            [("edited", "C:\\Users\\Ann B\\lamp.py")],
        ),
        (
            '<tool-use data-tool-type="write" data-tool-name="search_replace"><details>\n<summary>Tool use: **search_replace** • Edit file: '
            "a.py</summary>\nThe string to replace was not found in the file.\n</details></tool-use>",
            [],
        ),
        (
            "Tool use: **MultiEdit** `./a.py`\n\nError:\n\n```\nNo changes to make: old_string and new_string are exactly the same.\n```\n",
            [],
        ),
    ],
)
def test_the_files_of_a_call_are_found_in_each_of_its_forms(element: str, touched: list[tuple[str, str]]) -> None:
    call, result = tool_blocks(element)
    assert call.call is not None
    assert result.result is not None
    assert touched_files(call.call, result.result, result.text) == touched


def _calls(text: str) -> list[tuple[str, str, str]]:
    message = build(parse_mark(text.partition("\n")[0]), text)
    return [(one.call.kind, one.call.path, one.call.command) for one in message.blocks if one.call is not None]


def test_items_of_the_older_form_that_name_their_tool_are_calls() -> None:
    edit = "<details><summary>Edit file: src/lamp.py</summary>\n\n**Chunk 1**\nLines added: 1\n\n```diff\n+ on\n```\n\n</details>"
    assert _calls(f"---\n\n{edit}\n") == [("edit", "src/lamp.py", "")]
    assert _calls(f"---\n\nTool use: **search_replace**\n\n\n{edit}\n") == [("edit", "src/lamp.py", "")]
    think = "<think><details><summary>Thought Process</summary>Look.</details></think>"
    shell = "Tool use: **run_terminal_cmd**\n\n```bash\ngit status\n```\n\n```\nclean\n```"
    assert _calls(f"---\n\n{think}\n\n{shell}\n") == [("shell", "", "git status")]
    assert _calls("---\n\nRead file: undefined\n") == [("read", "", "")]


def _tool(name: str, body: str, summary: str = "") -> str:
    head = f'<tool-use data-tool-type="write" data-tool-name="{name}"><details>'
    return f"{head}\n<summary>Tool use: **{name}**{summary}</summary>\n{body}\n</details></tool-use>\n"


@pytest.mark.parametrize(
    ("name", "body", "paths"),
    [
        ("edit_file_v2", 'Parameters:\n\n```json\n{\n  "relativeWorkspacePath": "C:\\\\shop\\\\lamp.py"\n}\n```', ["C:\\shop\\lamp.py"]),
        ("replace", "Path: `/shop/lamp.kt`\n\n```diff\n+ `on`\n```", ["/shop/lamp.kt"]),
        ("apply_patch", "Output:\n```\nSuccess. Updated the following files:\nM app/lamp.kt\nM app/fence.kt\n```", ["app/lamp.kt", "app/fence.kt"]),
        ("search_replace", "```diff\n`not/this.py` and\n```", ["web/lamp.ts"]),
        (
            "multi_replace_string_in_file",
            "- replacements:\n\n```\n[map[explanation:On filePath:/my shop/[id]/lamp.ex newString:on oldString:off] "
            "map[explanation:Off filePath:/my shop/fence.ex newString:x oldString:y]]\n```",
            ["/my shop/[id]/lamp.ex", "/my shop/fence.ex"],
        ),
    ],
)  # fmt: skip
def test_the_files_of_an_edit_are_found_where_the_tool_names_them(name: str, body: str, paths: list[str]) -> None:
    text = "_**Agent (model auto)**_\n\n" + _tool(name, body, " • Edit file: web/lamp.ts" * (name == "search_replace"))
    blocks = build(parse_mark(text.partition("\n")[0]), text).blocks
    touched = touched_files(blocks[0].call, blocks[1].result, "")  # type: ignore[arg-type]
    assert touched == [("edited", path) for path in paths]


def test_the_bare_name_of_the_tool_after_its_call_is_no_second_call() -> None:
    edit, bare = _tool("edit_file_v2", "", " • Edit file: src/lamp.py"), _tool("edit_file_v2", "")
    head = "_**Agent (model auto)**_\n\n"
    assert _calls(head + edit + bare + edit + bare) == [("edit", "src/lamp.py", "")] * 2
    assert _calls(head + _tool("delete_file", "") + _tool("delete_file", "")) == [("delete", "", "")]
    assert _calls(head + edit + _tool("write", "")) == [("edit", "src/lamp.py", ""), ("create", "", "")]


@pytest.mark.parametrize(
    "why", ["The string to replace was not found in the file.", "Incorrect tool arguments", "Status: **loading**"]
)
def test_an_edit_of_which_only_an_error_is_left_has_failed(why: str) -> None:
    text = "_**Agent (model auto)**_\n\n" + _tool("edit_file_v2", why)
    (result,) = (one.result for one in build(parse_mark(text.partition("\n")[0]), text).blocks if one.result)
    assert result.is_error


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_command_and_its_output_are_a_call_whatever_ends_the_lines(end: str) -> None:
    lines = ("---", "", "```bash", "rm lamp.py", "rm fence.py", "```", "", "```", "$ rm lamp.py", "$", "```", "")
    assert _calls(end.join(lines)) == [("shell", "", "rm lamp.py\nrm fence.py")]
    tag = '<tool-use data-tool-type="shell" data-tool-name="run_terminal_cmd">'
    newer = ("_**Agent (model auto)**_", "", tag, "```bash", "rm lamp.py", "rm fence.py", "```", "</tool-use>", "")
    assert _calls(end.join(newer)) == [("shell", "", "rm lamp.py\nrm fence.py")]


def test_tools_of_copilot_have_their_kinds_and_linked_files() -> None:
    head = '_**Agent (model auto)**_\n\n<tool-use data-tool-type="unknown" data-tool-name="copilot_{}">\n<details>\n'
    tail = "\n</details>\n</tool-use>\n"
    read = (
        "<summary>Tool use: **copilot_readFile** • Reading [](file:///c%3A/shop/a%20b.py#1-1), lines 1 to 9</summary>"
    )
    assert _calls(f"{head.format('readFile')}{read}{tail}") == [("read", "file:///c:/shop/a b.py", "")]
    for name, kind in (("replaceString", "edit"), ("createFile", "create"), ("findTextInFiles", "search")):
        assert _calls(f"{head.format(name)}<summary>Tool use: **copilot_{name}**</summary>{tail}") == [(kind, "", "")]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_empty_fence_is_an_edit_that_names_no_file(end: str) -> None:
    text = f"_**Assistant**_{end}{end}Now the lamp:{end}```{end}{end}```{end}Done.{end}```{end}{end}```{end}"
    assert _calls(text) == [("edit", "", ""), ("edit", "", "")]
    message = build(parse_mark("_**Assistant**_"), text)
    assert len({one.call.call_id for one in message.blocks if one.call is not None}) == 2
    assert _calls("_**Assistant**_\n\n```py\nx = 1\n```\n") == []


def test_a_file_from_before_the_comments_is_read_with_its_title_and_time() -> None:
    text = "## SpecStory\n\n## A lamp for the hall (2025/1/2 9:05:07)\n\n_**User**_\n\nhang a lamp\n\n---\n\n_**Assistant**_\n\nDone.\n"
    path = Path("hall-lamp.md")
    assert [name for name, source in all_sources().items() if source.sniff(path, text.encode())] == ["specstory"]
    whole = read(SOURCE, found_for(SOURCE, path, text.encode()), text.encode())
    assert whole.texts("prompt") == ["hang a lamp"]
    notice = whole.all()[0]
    assert (notice.kind, notice.at) == ("notice", milliseconds("2025-01-02 09:05:07")[0])


def test_a_session_that_shows_a_terminal_is_still_a_saved_session() -> None:
    screen = "".join(f"\n⏺ Bash(make {n})\n  ⎿  done {n}\n\n╭───╮\n│ > {n} │\n╰───╯\n" for n in range(9))
    text = f"<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n# 2026-04-19 09:33:07Z\n\n_**User**_\n{screen}\n\x1b[2J\x1b[H\n"
    claims = weigh_claims(all_sources().values(), Path("a.md"), text.encode(), every=True)
    assert {claim.source.name for claim in claims} >= {"specstory", "terminal"}
    assert (found := winner(claims)) is not None and found.source is all_sources()["specstory"]
