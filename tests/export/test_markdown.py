"""A page for people, on which whatever a transcript holds stays in its place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from everturn.capture.policy import Policy
from everturn.export.markdown import as_markdown
from everturn.model.archive import Session
from everturn.secrets.redaction import redact_text
from everturn.sessions.lookup import resolve_session
from everturn.sources.contract import all_sources
from tests.capture.history import SID
from tests.recall.archives import Archive

KEY = "AKIA" + "Q7XW2MZP4RTY5LNB"
HOSTILE = [
    "```\nunclosed",
    "~~~~\nunclosed",
    "````md\n```\ninner\n```\n````",
    "## Turn 99 · 2026-01-01 00:00",
    "Turn 98\n-------",
    "<!-- never closed",
    "<script>\nalert(1)",
    "- list\n\n  ```\n  in it",
    "> quote\n```",
    "    indented\n\n## Turn 97",
    "`" * 50,
    "[a]: http://evil\n\n# x",
    "\x1b[2J\x1b]0;x\x07\r\n## Turn 96",
    "\u2028## Turn 95\x85## Turn 94\x0b## Turn 93",
]


def page(archive: Archive, session: Session, **wanted: Any) -> str:
    return "".join(as_markdown(archive.store, all_sources(), session, **wanted))


def headings(text: str) -> list[str]:
    """Return the headings that a Markdown reader sees on the page itself, not within its content."""
    tokens = MarkdownIt("commonmark").parse(text)
    return [tokens[n + 1].content for n, one in enumerate(tokens) if one.type == "heading_open" and one.level == 0]


def test_a_turn_is_a_heading_with_its_time(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("ask", "reply"), archive.history.turn("again", "yes"))
    assert headings(page(archive, session)) == [
        "ask",
        "Turn 1 · 2026-03-01 10:00 · 1s",
        "Turn 2 · 2026-03-01 10:00 · 1s",
    ]


def test_it_reads_as_a_conversation(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", "list\nthem"),
        archive.use("Bash", "t1", command="ls `pwd`"),
        archive.back("t1", "a.py\nb.py"),
        archive.history.line("assistant", [{"type": "text", "text": "two files"}]),
    )
    body = page(archive, session).partition("## Turn 1")[2].partition("\n\n")[2]
    assert body == (
        "**User**\n\n> list\n> them\n\n- `Bash` · ok, 1s · `` ls `pwd` ``\n\n```\na.py\nb.py\n```\n\n"
        "**Agent**\n\n> two files\n\n"
    )


def test_facts_stand_on_top(archive: Archive) -> None:
    head = page(archive, archive.take_in(archive.history.turn("ask", "reply"))).partition("## Turn 1")[0]
    for fact in (f"- Session: `{SID}`", "- Workspace: `/home/ann/shop`", "- Turns: 1", ", version 1\n"):
        assert fact in head


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_leaves_its_place(archive: Archive, text: str) -> None:
    session = archive.take_in(
        archive.history.line("user", text),
        archive.use("Bash", "t1", command=text),
        archive.back("t1", text),
        archive.history.line("assistant", [{"type": "text", "text": text}]),
        archive.history.turn("the end", "really"),
    )
    shown = page(archive, session, thinking=True, context=True)
    assert [line[:7] for line in headings(shown)][1:] == ["Turn 1 ", "Turn 2 "]
    assert len(headings(shown)) == 3
    assert not set("\x1b\x07\r\x85\u2028\x0b") & set(shown)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from("`~#>-= \n\t<!|*_[]()a1\\"), max_size=60))
def test_no_text_whatsoever_leaves_its_place(archive: Archive, text: str) -> None:
    session = archive.take_in(
        archive.history.line("user", f"x{text}"),
        archive.use("Bash", "t1", command=text),
        archive.back("t1", text),
        archive.history.line("assistant", [{"type": "text", "text": text}]),
        archive.history.turn("the end", "really"),
    )
    shown = page(archive, session)
    assert [line[:7] for line in headings(shown)][1:] == ["Turn 1 ", "Turn 2 "]


def test_thinking_and_context_are_there_when_asked_for(archive: Archive) -> None:
    thought = {"type": "thinking", "thinking": "deep thought", "signature": "x"}
    session = archive.take_in(
        archive.history.line("user", "ask"),
        archive.history.line("user", [{"type": "text", "text": "body of a skill"}], isMeta=True),
        archive.history.line("assistant", [thought]),
    )
    shown = page(archive, session)
    assert "deep thought" not in shown and "body of a skill" not in shown
    assert "**Thinking**\n\n> deep thought" in page(archive, session, thinking=True)
    assert "**Context**\n\n> body of a skill" in page(archive, session, context=True)


def test_secrets_are_taken_out(archive: Archive) -> None:
    session = archive.take_in(archive.history.tool_turn(f"key {KEY}", f"echo {KEY}", f"{KEY} printed"))
    assert KEY not in page(archive, session, clean=redact_text)
    assert KEY in page(archive, session)


def test_what_happened_is_marked_where_it_happened(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.turn("go", "going"),
        archive.history.line("system", "", subtype="compact_boundary"),
        b"not json\n",
        archive.history.line("user", [{"type": "text", "text": "[Request interrupted by user]"}]),
    )
    shown = page(archive, session)
    marks = ["> going", "compacted here.*", "*Could not be read: not valid JSON", "*Interrupted by the user.*"]
    assert [shown.index(mark) for mark in marks] == sorted(shown.index(mark) for mark in marks)


def test_subagents_are_named_with_their_turn(archive: Archive) -> None:
    archive.subagent("abc1234", archive.helper("abc1234", "user", "look around"))
    session = archive.take_in(
        archive.history.line("user", "please"),
        archive.use("Task", "t1", prompt="look around"),
        archive.back("t1", "seen", agentId="abc1234"),
    )
    assert f"- Subagent: `{SID}/agent-abc1234`, started in turn 1\n" in page(archive, session)
    child = page(archive, resolve_session(archive.store, "agent-abc"))
    assert f"- Subagent: of `{SID}`\n" in child and "**Agent's request**\n\n> look around" in child


def test_a_session_without_words_says_so(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("secret", "yes"), policy=Policy("structure"))
    shown = page(archive, session)
    assert "there are no words to show" in shown and "## Turn 1" in shown and "secret" not in shown
