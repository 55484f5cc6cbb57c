"""Conversations with speaker headings: the forms of headings, tools and thoughts, and documents that are none."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.derive.turns import grow_session
from everturn.model.archive import JournalTail, SessionGrowth
from everturn.sessions.state import session_state
from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.headed_markdown import SOURCE
from everturn.sources.headed_markdown.header import parse_header, read_time
from everturn.sources.headed_markdown.layout import find_heading
from tests.sources.goldens import (
    Whole,
    assert_claims_only,
    assert_golden,
    assert_keeps_promises,
    assert_same_in_pieces,
    assert_survives,
    damaged,
    found_for,
    ingest,
    read,
    readings,
    shown,
)

FOLDER = Path(__file__).parent / "samples"
SAMPLES = sorted(FOLDER.glob("*.md"))
PIECES = [piece for path in SAMPLES for piece in path.read_bytes().splitlines(keepends=True)]


def sample(name: str) -> Whole:
    ((_, _, whole),) = readings(SOURCE, FOLDER / f"{name}.md")
    return whole


def rows(whole: Whole) -> SessionGrowth:
    (messages,) = whole.messages.values()
    return grow_session(JournalTail(), messages)[0]


def is_claimed(text: str) -> bool:
    return SOURCE.sniff(Path("/x/y.md"), text.encode()) is not None


def whole_of(text: str) -> Whole:
    return read(SOURCE, SourceCandidate(Path("y.md"), native_id="y"), text.encode())


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_reads_as_expected(path: Path) -> None:
    ((_, data, whole),) = readings(SOURCE, path)
    assert SOURCE.sniff(path, data) is not None
    assert_keeps_promises(SOURCE, data, whole, lines=False)
    assert_golden(path, shown(whole))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_byte_belongs_to_a_section(path: Path) -> None:
    ((_, data, whole),) = readings(SOURCE, path)
    assert b"".join(data[m.start : m.start + m.size] for m in whole.all()) == data


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_a_sample_reads_the_same_in_any_pieces(path: Path, seed: int) -> None:
    data = path.read_bytes()
    assert_same_in_pieces(SOURCE, found_for(SOURCE, path, data), data, seed, stopping=False)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_file_that_got_longer_is_read_on(path: Path) -> None:
    data = path.read_bytes()
    found = found_for(SOURCE, path, data)
    whole = read(SOURCE, found, data)
    for message in whole.all():
        assert read(SOURCE, found, data, [message.start], [True]).messages == whole.messages


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_line_ends_of_windows_and_a_byte_order_mark_change_nothing(path: Path) -> None:
    data = path.read_bytes()
    changed = b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")
    found = found_for(SOURCE, path, data)
    assert SOURCE.sniff(path, changed) == found
    texts = [text.replace("\r", "").removeprefix("\ufeff") for text in read(SOURCE, found, changed).texts()]
    assert texts == read(SOURCE, found, data).texts()


@given(seed=st.integers(0, 2**64))
@settings(max_examples=300)
def test_no_damage_stops_the_reader(seed: int) -> None:
    data = damaged(PIECES, random.Random(seed), most=40)
    SOURCE.sniff(Path("x.md"), data)
    assert_survives(SOURCE, SourceCandidate(Path("x.md"), native_id="x"), data, lines=False)
    if data:
        assert_same_in_pieces(SOURCE, SourceCandidate(Path("x.md"), native_id="x"), data, seed, stopping=False)


def test_a_heading_inside_a_fence_is_text() -> None:
    whole = sample("session-log")
    assert [text for text in whole.texts("prompt") if "## Assistant" in text]
    assert "## What I changed" in whole.texts("answer")[1]


def test_only_what_a_person_typed_is_a_prompt() -> None:
    whole = sample("session-log")
    assert [(m.origin, m.kind) for m in whole.all() if m.role == "user"] == [
        ("injected", "context"), ("human", "text"), ("system", "interrupt"), ("human", "text"), ("human", "command"),
        ("injected", "context"),
    ]  # fmt: skip
    assert len(rows(whole).turns) == 3
    assert sample("turns").texts("prompt")[1:] == ["Thanks", "One more"]


def test_calls_have_their_input_and_results() -> None:
    calls = [(call.name, call.kind, call.status, call.exit_status) for call in rows(sample("icons")).calls]
    assert calls == [
        ("view", "read", "ok", None),
        ("bash", "shell", "error", 1),
        ("sql", "other", "ok", None),
        ("glob", "search", "ok", None),
    ]
    starts = [block.call for message in sample("icons").all() for block in message.blocks if block.call]
    assert [(call.path, call.command) for call in starts] == [
        ("/home/ann/fence/plan.md", ""),
        ("", "open-can \\\n  --green"),
        ("", ""),
        ("", ""),
    ]
    assert starts[3].input["input"] == '"paints/**/*"'
    assert starts[2].input["query"] == "insert into paints values ('green')"
    statuses = [(call.name, call.status) for call in rows(sample("turns")).calls]
    assert statuses == [("exec_command", "ok"), ("update_plan", "ok")]


def test_a_result_in_the_section_of_the_person_answers_its_call() -> None:
    whole = sample("results")
    assert [message.origin for message in whole.all()] == ["system", "human", "model", "tool", "model"]
    growth = rows(whole)
    assert len(growth.turns) == 1
    statuses = [(call.name, call.status) for call in growth.calls]
    assert statuses[:2] == [("Bash", "ok"), ("Read", "ok")]
    assert [(artifact.action, artifact.path) for artifact in growth.artifacts][:1] == [
        ("read", "/home/ann/birds/plan.md")
    ]


def test_asides_about_what_the_agent_did_are_calls_also_below_a_prompt() -> None:
    whole = sample("stated-asides")
    assert whole.texts("prompt") == ["Dig a pool for the otters.", "push it"]
    assert whole.texts("answer")[0].endswith(":0:0-0:0).\n\n*This is only emphasis.*")
    growth = rows(whole)
    assert [(call.name, call.kind, call.status, call.error_class) for call in growth.calls] == [
        ("read_file", "read", "ok", ""),
        ("edit_file", "edit", "ok", ""),
        ("run_command", "shell", "ok", ""),
        ("checked_command_status", "other", "ok", ""),
        ("run_command", "shell", "error", "rejected"),
    ]
    assert [(one.action, one.path) for one in growth.artifacts] == [
        ("read", "c:/Users/ann/My Zoo/zoo.py"),
        ("edited", "depth.txt"),
    ]


def test_an_edit_that_names_no_file_means_the_one_that_the_answer_links() -> None:
    with ingest("headed_markdown", FOLDER / "stated-asides.md") as taken:
        (session,) = taken.store.sessions_of("headed_markdown", "stated-asides")
        state = session_state(taken.store, {"headed_markdown": SOURCE}, session)
        changed = [one.path for one in state.files.values() if one.action != "read"]
        assert changed == ["depth.txt", "C:/Users/ann/My Zoo/pool.py"]


def test_a_list_of_actions_has_calls_and_another_list_is_text() -> None:
    whole = sample("stated-actions")
    assert whole.texts("answer") == ["I dig it now.", "- Created File: `pool.py`"]
    assert [(one.action, one.path) for one in rows(whole).artifacts] == [
        ("read", "zoo.py"),
        ("created", "pool.py"),
        ("edited", "src/zoo.py"),
    ]


def test_text_that_only_mentions_a_tool_stays_text() -> None:
    whole = whole_of("## User\n\nwhich tools?\n\n## Assistant\n\n### Tool: Bash\n\nIt runs commands.\n")
    assert whole.texts("answer") == ["### Tool: Bash\n\nIt runs commands."]


def test_thoughts_are_thinking() -> None:
    assert sample("web-export").texts("thinking") == [
        "The person did not name a place. Frost matters most.",
        "Basil is more tender.",
    ]
    assert sample("icons").texts("thinking") == ["***Looking for the paint***"]


def test_the_model_is_named_as_its_heading_names_it() -> None:
    assert {message.speaker for message in sample("web-export").all() if message.origin == "model"} == {"ChatGPT"}
    assert {message.speaker for message in sample("session-log").all()} == {""}
    assert {message.model for message in sample("turns").all() if message.origin == "model"} == {"gpt-5.3-codex"}
    whole = whole_of("## User\n\nhi\n\n## Assistant (claude-sonnet-4-5)\n\nhello\n")
    assert whole.all()[1].model == "claude-sonnet-4-5"


def test_the_beginning_gives_title_session_time_and_folder() -> None:
    head = parse_header((FOLDER / "web-export.md").read_text().partition("####")[0])
    assert (head.title, head.link) == (
        "Growing tomatoes",
        "https://chatgpt.com/c/0a1b2c3d-1111-4222-8333-444455556666",
    )
    assert head.session == "0a1b2c3d-1111-4222-8333-444455556666"
    assert SOURCE.workspace((FOLDER / "turns.md").read_bytes()) == "/home/ann/clock"
    assert SOURCE.workspace(b"") == ""
    assert sample("bold-names-2026-05-04").all()[0].precision == "day"
    assert parse_header("# Session Log 2026-05-02-101500\n").title == ""


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-05-02-101500-session-1a2b3c4d", (1777716900000, "s")),
        ("chat-2026-05-02-1a2b3c4d", (1777680000000, "day")),
        ("x__2026-05-02T10-15-00-250Z", (1777716900250, "ms")),
        ("2026/5/2 10:15:00", (1777716900000, "s")),
        ("2026-05-02 10:15", (1777716900000, "min")),
        ("5/2/2026, 10:15:00 AM", (1777716900000, "s")),
        ("5/2/2026, 10:15:00 PM", (1777760100000, "s")),
        ("31/5/2026 10:15:00", (1780222500000, "s")),
        ("5/2/2026 10:15:00", (None, "")),
        ("2026-99-02", (None, "")),
        ("2026-05-02 99:15:00", (1777680000000, "day")),
        ("no date", (None, "")),
    ],
)
def test_a_time_has_the_precision_it_is_written_with(text: str, time: tuple[int | None, str]) -> None:
    assert read_time(text) == time


@pytest.mark.parametrize(
    "line",
    [
        "## User", "### Human", "# Assistant", "## Claude", "#### You:", "#### ChatGPT:", "**You**:", "**User:** text", "**user**",
        "## 👤 User", "## 🤖 Claude", "## **User**", "## Claude Code", "### GPT-4o", "## Assistant (gpt-5)",
        "## User (2026-05-01 10:00)", "### GitHub Copilot", "##### You said:", "## Prompt:", "## User ##", "### ✅ `bash`",
        "#### Tool: exec_command", "### Claude Opus 4.5",
    ],
)  # fmt: skip
def test_a_speaker_is_known(line: str) -> None:
    assert find_heading(line) is not None


@pytest.mark.parametrize(
    "line",
    [
        "## User Guide", "## Users", "User:", "- **User:** text", "## Claude Setup", "## Agent Instructions", "**User** text",
        "## Prompt", "## Response", "_**User**_", "## `name`", "### ✅ Done", "#User", "## Human-in-the-loop", "**Note:** text",
        "> **User:** quoted", "## Reasoning", "## Ann",
    ],
)  # fmt: skip
def test_a_role_is_not_guessed(line: str) -> None:
    assert find_heading(line) is None


TALK = "## User\n\nhi\n\n## Assistant\n\nhello\n"


@pytest.mark.parametrize(
    "text",
    [
        TALK,
        "# USER\n\nhi\n\n# ASSISTANT\n\nhello\n\n# USER\n\nbye\n",
        "### Human\nhi\n### Claude\nhello\n",
        TALK + "\n## Plan\n\n## Steps\n\n" + TALK,
        "## System\n\nBe kind.\n\n" + TALK,
        "**user**\n\nhi\n\n**ChatGPT**\n\nhello\n",
        "# Chat\n\n**Human:** hi\n\n**AI:** hello\n\n**Human:** bye\n",
        "## 👤 User\n\nhi\n\n## ✅ `bash`\n\n$ ls\n\n```\na\n```\n",
    ],
)
def test_a_conversation_is_known_by_its_headings(text: str) -> None:
    assert is_claimed(text)
    assert rows(whole_of(text)).turns


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Guide\n\n## User\n\nA user logs in.\n\n## Agent\n\nAn agent works.\n\n## Server\n\nIt serves.\n",
        "# Roles\n\n## Install\n\n## Usage\n\n## User\n\nx\n\n## Assistant\n\ny\n\n## Licence\n\n## Links\n",
        "# How a log looks\n\n```markdown\n" + TALK + "```\n",
        "# Tutorial\n\n" + "Some prose.\n\n" * 80 + TALK,
        "## User\n\nhi\n\n## User\n\nanyone?\n",
        "## Assistant\n\nhello\n",
        "# Log\n\n**Human:** Ann\n**Agent:** Codex\n**Started:** 7:28\n\n## Done\n\n- all\n",
        "# Log\n\n**Agent:** Codex\n\n**Human:** Ann\n\n## Done\n\n- all\n",
        "# Demo\n\n## Scene 1\n\nA door.\n\n"
        + "Prose.\n" * 20
        + "\n**User:** open\n\n**Agent:** done\n\n**User:** thanks\n",
        "# User\nuser = 1\n# Paths\npath = 2\n# Agent\nagent = 3\n# Keys\nkey = 4\n",
        "| User | Assistant |\n|---|---|\n",
        "<!-- Generated by SpecStory -->\n\n" + TALK,
        "# Zoo\n\n**Session ID:** ses_1\n\n---\n\n" + TALK,
        '{"text": "## User\\n\\n## Assistant"}\n',
    ],
)
def test_a_document_is_no_conversation(text: str) -> None:
    assert not is_claimed(text)


def test_formats_with_a_layout_of_their_own_come_first() -> None:
    assert SOURCE.rank < -1


def test_two_exports_of_a_conversation_share_their_messages(tmp_path: Path) -> None:
    text = (FOLDER / "web-export.md").read_text()
    (tmp_path / "a.md").write_text(text)
    (tmp_path / "a (1).md").write_text(text + "\n#### You:\nAnd parsley?\n")
    with ingest("headed_markdown", tmp_path / "a.md", tmp_path / "a (1).md") as taken:
        sessions = taken.store.sessions_of("headed_markdown", "0a1b2c3d-1111-4222-8333-444455556666")
        assert sorted(session.n_inherited for session in sessions)[0] == 0
        assert taken.hits("last frost") == ["0a1b2c3d-1111-4222-8333-444455556666"]


def test_conversations_are_found_below_named_folders(tmp_path: Path) -> None:
    (tmp_path / "chats").mkdir()
    (tmp_path / "chats" / "a.md").write_text(TALK)
    (tmp_path / "chats" / "notes.md").write_text("# notes\n")
    assert SOURCE.roots(SearchPlaces(tmp_path, {}, "linux")) == []
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux", {"headed_markdown": (tmp_path / "chats",)}))
    assert list(SOURCE.find(root)) == [SourceCandidate(tmp_path / "chats" / "a.md", "main", "a")]


def test_a_long_file_without_a_form_is_one_notice() -> None:
    whole = whole_of("prose\n" * 20_000)
    assert [(message.kind, message.size) for message in whole.all()] == [("notice", 120_000)]


def test_no_file_of_the_corpus_is_taken_for_one() -> None:
    assert_claims_only(SOURCE)
