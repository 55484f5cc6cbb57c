"""Conversations saved as Markdown: read, written, and read again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.derive.turns import grow_session
from everturn.model.archive import JournalTail
from everturn.model.conversation import Block, CallStart, Link, Message, SessionFacts, SessionPart, TokenUsage
from everturn.sources.chat_markdown import SOURCE
from everturn.sources.chat_markdown.message import END, START, guard_text, unguard_text
from everturn.sources.contract import SearchPlaces, SourceCandidate, abilities
from everturn.text.times import iso
from tests.sources.goldens import Whole, assert_claims_only, found_for, ingest, read, readings

FOLDER = Path(__file__).parent / "samples"
SAMPLES = sorted(FOLDER.glob("*.md"))


def sample(name: str) -> Whole:
    ((_, _, whole),) = readings(SOURCE, FOLDER / f"{name}.md")
    return whole


def part_of(text: str) -> SessionPart:
    data = text.encode()
    found = SOURCE.sniff(Path("x.md"), data)
    assert found is not None
    (part,) = SOURCE.reader(found, b"").feed(data, 0, True).parts
    return part


def written(part: SessionPart) -> str:
    assert SOURCE.write is not None
    return SOURCE.write(part)


def test_a_query_is_a_turn_and_a_restoration_is_none() -> None:
    whole = sample("restored")
    growth, _ = grow_session(JournalTail(), whole.messages["session_3"])
    assert [turn.starter for turn in growth.turns] == ["none", "human", "human"]
    assert growth.n_prompts == 2
    assert [(step.tokens_in, step.tokens_out) for step in growth.steps] == [(89, 67), (123, 222), (0, 0)]
    assert [turn.reported_ms for turn in growth.turns] == [2100, 3200, 1000]


def test_a_session_continues_the_one_it_was_resumed_from() -> None:
    assert [(link.relation, link.native_id) for link in sample("restored").links["session_3"]] == [
        ("continues", "session_2")
    ]
    name = "till_bot_20251230_112153"
    assert [link.native_id for link in sample("plain").links[name]] == ["till_bot_20251229_080000"]
    only_path = (FOLDER / "plain.md").read_text().replace("**Resumed From:** till_bot_20251229_080000\n", "")
    assert [link.native_id for link in part_of(only_path).links] == ["till_bot_20251229_080000"]


def test_headings_only_give_the_time_and_midnight_comes_in_between() -> None:
    whole = sample("plain")
    asked = [iso(message.at) for message in whole.all() if message.starts_turn]
    assert asked == ["2025-12-30T23:59:58Z", "2025-12-31T00:00:10Z", "2025-12-31T00:00:30Z"]


def test_marks_that_are_quoted_are_words() -> None:
    whole = sample("restored")
    assert whole.texts("prompt")[0].endswith(
        "## Query 2 (11:11:11)\n**You:** no\n\n<!-- SESSION_SUMMARY_START -->\nfake\n<!-- SESSION_SUMMARY_END -->"
    )
    assert whole.texts("answer")[1] == "Done.\n\n---\n\nMore after a rule."


@pytest.mark.parametrize(
    ("name", "summary"),
    [
        ("restored", "**Background Context:** We discussed auth.\n\n**Pending:**\n- tests"),
        ("twice", "second"),
        ("unpaired", ""),
        ("plain", ""),
    ],
)
def test_the_last_summary_that_is_well_formed_counts(name: str, summary: str) -> None:
    assert part_of((FOLDER / f"{name}.md").read_text()).facts.summary == summary


def test_marks_that_do_not_pair_are_told() -> None:
    whole = sample("unpaired")
    assert [problem.kind for problem in whole.problems] == ["unpaired"]
    assert "hi\n\n<!-- SESSION_SUMMARY_END -->" in whole.texts("answer")


def test_a_summary_before_a_later_query_is_not_the_summary() -> None:
    text = (FOLDER / "restored.md").read_text()
    text += "\n---\n\n## Query 3 (00:20:00)\n**You:** one more\n\n**Simple Sally:** sure\n"
    assert part_of(text).facts.summary == ""
    assert [m.blocks[0].text for m in part_of(text).messages if m.starts_turn][-1] == "one more"


# the way back -----------------------------------------------------------------------------------------------------------
def test_a_file_of_the_layout_is_written_back_as_it_was() -> None:
    text = (FOLDER / "restored.md").read_text()
    text = text.replace("\nand quote this:\n\n## Query 2 (11:11:11)\n**You:** no\n", "\nand quote this.\n")
    text = text.replace("\n<!-- SESSION_SUMMARY_START -->\nfake\n<!-- SESSION_SUMMARY_END -->\n", "", 1)
    assert written(part_of(text)) == text


WORDS = st.lists(
    st.sampled_from(
        ["word", "## Query 2 (10:00:00)", "## Session Restored (10:00:00)", "---", "**You:** x", "**Bot:** y", "\\**Bot:** y",
         "*Time: 1s*", "*Time: 3.2s | Tokens: 3 (in: 1, out: 2)*", "<!-- SESSION_SUMMARY_START -->", "\\\\---",
         "<!-- SESSION_SUMMARY_END -->", "**Session ID:** z", "# Bot Conversation", "```", "", "  indented", "\\## Query 3 (1)"]
    ), min_size=1, max_size=8,
).map("\n".join).map(str.strip).filter(bool)  # fmt: skip


@given(asked=st.lists(WORDS, min_size=1, max_size=4), answers=st.lists(WORDS, min_size=4, max_size=4), summary=WORDS)
@settings(max_examples=100)
def test_whatever_is_said_is_read_again_from_what_is_written(
    asked: list[str], answers: list[str], summary: str
) -> None:
    messages = []
    for number, (prompt, answer) in enumerate(zip(asked, answers, strict=False)):
        at = 1_767_100_000_000 + number * 60_000
        block = Block("text", prompt, "prompt")
        messages.append(Message("user", "human", "text", at, "s", blocks=(block,), starts_turn=True))
        blocks = (Block("text", answer, "answer"),)
        messages.append(Message("assistant", "model", blocks=blocks, usage=TokenUsage(number, 7), reported_ms=1500))
    facts = SessionFacts(workspace="/home/ann/till", agent_name="Bot", summary=summary)
    part = SessionPart("s-1", facts, messages, [Link("continues", "s-0")])
    again = part_of(written(part))
    spoken = [message for message in again.messages if message.kind == "text"]
    assert [(m.role, m.blocks[0].text, m.usage, m.reported_ms) for m in spoken] == [
        (m.role, m.blocks[0].text, m.usage, m.reported_ms) for m in messages
    ]
    assert [m.at for m in spoken if m.starts_turn] == [m.at for m in messages if m.starts_turn]
    assert (again.native_id, again.links) == ("s-1", [Link("continues", "s-0")])
    assert (again.facts.agent_name, again.facts.workspace, again.facts.summary) == ("Bot", "/home/ann/till", summary)
    assert written(again) == written(part)


@given(text=WORDS)
@settings(max_examples=100)
def test_a_guard_can_always_be_taken_off(text: str) -> None:
    assert unguard_text(guard_text(text, "Bot")) == text


def test_the_session_of_another_agent_is_written_with_its_calls_as_lines() -> None:
    call = CallStart("c", "Read", "read", "till.py")
    part = SessionPart(
        "other",
        SessionFacts(),
        [
            Message("user", "human", blocks=(Block("text", "look", "prompt"),), starts_turn=True),
            Message("user", "human", blocks=(Block("text", "please", "prompt"),), starts_turn=True),
            Message("user", "injected", "context", blocks=(Block("text", "hidden", "meta"),)),
            Message("assistant", "model", blocks=(Block("thinking", "hm", "thinking"), Block("call", "", call=call))),
            Message("tool", "tool", "result", blocks=(Block("result", "secret", "tool_output"),)),
            Message("assistant", "model", blocks=(Block("text", "Found it.", "answer"),)),
        ],
    )
    text = written(part)
    assert "**You:** look\n\nplease\n\n**Agent:** [tool: Read till.py]\n\nFound it.\n" in text
    assert not any(word in text for word in ("hidden", "hm", "secret"))
    assert "write" in abilities(SOURCE)


# pieces, damage, places -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_file_that_got_longer_is_read_on(path: Path) -> None:
    data = path.read_bytes()
    found = found_for(SOURCE, path, data)
    whole = read(SOURCE, found, data)
    for message in whole.all()[1:]:
        assert read(SOURCE, found, data, [message.start], [True]).messages == whole.messages


def test_an_answer_that_is_still_written_is_read_on() -> None:
    data = (FOLDER / "restored.md").read_bytes()
    found = found_for(SOURCE, FOLDER / "restored.md", data)
    for words in (b"and quote", b"After a rule", b"Ready to"):
        cut = data.find(words) if words in data else data.find(words.lower())
        grown = read(SOURCE, found, data, [cut], [True])
        for field in ("prompt", "answer"):
            joined = "".join("".join(grown.texts(field)).split())
            assert joined == "".join("".join(read(SOURCE, found, data).texts(field)).split())


def test_conversations_are_found_at_home_and_in_named_folders(tmp_path: Path) -> None:
    usual, named = tmp_path / "agent-conversations", tmp_path / "more"
    inside = tmp_path / "project" / ".chat-sessions"
    for folder in (usual, named, inside):
        folder.mkdir(parents=True)
        (folder / "a.md").write_bytes((FOLDER / "twice.md").read_bytes())
        (folder / "b.md").write_text("# Notes of a Conversation\n")
    roots = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux", {"chat_markdown": (named, usual)}, working=inside.parent))
    assert roots == [named, usual, inside]
    assert [one for root in roots for one in SOURCE.find(root)] == [
        SourceCandidate(named / "a.md", "main", "twice"),
        SourceCandidate(usual / "a.md", "main", "twice"),
        SourceCandidate(inside / "a.md", "main", "twice"),
    ]
    assert SOURCE.workspace((FOLDER / "restored.md").read_bytes()) == "/home/ann/agents/simple_sally"
    assert SOURCE.workspace((FOLDER / "plain.md").read_bytes()) == "C:\\agents\\till"


def test_a_conversation_is_searched_in_the_archive() -> None:
    with ingest("chat_markdown", FOLDER / "restored.md") as taken:
        assert taken.hits("rate limiter") == ["session_3"]
        (session,) = taken.store.sessions_of("chat_markdown", "session_3")
        assert taken.store.session(session.id)[1].summary.startswith("**Background Context:**")


@pytest.mark.parametrize("marks", [(END, START), (START,), (END,)], ids=["turned", "no end", "no start"])
def test_marks_that_do_not_pair_are_a_problem_and_no_summary(marks: tuple[str, ...]) -> None:
    text = written(SessionPart("s", SessionFacts(agent_name="Bot"), []))
    text += "\n".join(["", marks[0], "**Background Context:** Initial session.", *marks[1:], ""])
    result = read(SOURCE, SourceCandidate(Path("x.md"), native_id="s"), text.encode())
    assert [problem.kind for problem in result.problems] == ["unpaired"]
    assert not any("summary" in facts for facts in result.facts.values())


def test_each_answer_is_read_with_the_agent_that_gave_it() -> None:
    messages = []
    for name in ("Sally", "Olly", "Sally"):
        messages.append(
            Message("user", "human", blocks=(Block("text", "**Olly:** said so", "prompt"),), starts_turn=True)
        )
        messages.append(Message("assistant", "model", blocks=(Block("text", f"I am {name}", "answer"),), speaker=name))
    again = part_of(written(SessionPart("s", SessionFacts(agent_name="Sally"), messages)))
    spoken = [one for one in again.messages if one.kind == "text"]
    assert [(one.speaker, one.blocks[0].text) for one in spoken] == [
        (one.speaker, one.blocks[0].text) for one in messages
    ]


def test_nothing_else_is_taken_for_a_conversation() -> None:
    assert_claims_only(SOURCE)
