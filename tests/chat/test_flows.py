"""Whole conversations through real processes: talking, leaving, compacting, taking up again."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from everturn.chat.earlier_sessions import erase_saved
from everturn.sessions.lineage import ancestors
from everturn.sources.contract import all_sources
from tests.chat.program import Desk, Model, is_restoration, is_summary_request, last_words, words_of
from tests.model_server import Answer, Asked, ModelServer, broken
from tests.model_wires import Call, Says


def test_what_was_said_is_in_the_archive_and_the_way_out_tells_it(desk: Desk) -> None:
    ran = desk.chat("hello", "and now?", "exit")
    assert ran.code == 0 and ran.out == "Assistant: answer 1\nAssistant: answer 2\n"
    (session,) = desk.sessions()
    assert [one.blocks[0].text for one in desk.messages(session) if one.origin in ("human", "model")] == [
        "hello", "answer 1", "and now?", "answer 2",
    ]  # fmt: skip
    told = f"Goodbye!\n✓ Conversation saved successfully!\n  Session ID: {session.native_id}\n  Queries: 2\n  Tokens: 243\n"
    assert "📝 Generating session summary... ✓\n⚠️ Summary checked" in ran.err and f"\n{told}" in ran.err


def test_looking_around_leaves_no_session_behind(desk: Desk) -> None:
    ran = desk.chat("", "/help", "sessions", "/state", "/tokens", "/recall hello", "/nonsense")
    assert ran.code == 0 and "/compact" in ran.out and "No earlier sessions" in ran.out
    assert "there is no command /nonsense" in ran.err and ran.err.endswith("Goodbye!\n")
    assert desk.sessions() == [] and desk.server.asked == []


def test_a_summary_is_asked_for_out_of_band(desk: Desk) -> None:
    desk.chat("never use an ORM")
    asked = desk.server.asked[-1]
    assert is_summary_request(asked) and len(asked.body["messages"]) == 1
    assert "**You:** never use an ORM" in last_words(asked) and "**Assistant:** answer 1" in last_words(asked)
    desk.chat("go on", words=("--resume",))
    assert not any("progressive session summary" in words for words in words_of(desk.server.asked[-2]))


@pytest.mark.few(1)
@pytest.mark.parametrize("queries", [1, 5, 20])
def test_compacting_goes_on_in_a_child_that_begins_with_the_summary(desk: Desk, queries: int) -> None:
    ran = desk.chat(*(f"question {n}" for n in range(queries)), "compact", "and on", "/tokens")
    parent, child = desk.sessions()
    counts = f"{queries} quer{'y' if queries == 1 else 'ies'}"
    assert f"💾 Saved session: {parent.native_id} ({counts}, " in ran.err
    assert "🔄 Starting new session with summary..." in ran.err
    assert "Assistant: I have reviewed our previous conversation. Ready to continue!\n" in ran.out
    restoration = next(one for one in desk.server.asked if is_restoration(one))
    assert f"Previous session summary (Session ID: {parent.native_id}, {counts}, " in last_words(restoration)
    assert "- use token buckets" in last_words(restoration) and "tools" not in restoration.body
    assert (parent.n_prompts, child.n_prompts) == (queries, 1)
    assert "Total Queries: 1\nRestoration: 156 tokens (in: 89, out: 67)\n" in ran.out
    store = desk.store()
    assert [(one.relation, one.native_id) for one in ancestors(store, child)] == [("continues", parent.native_id)]
    store.close()


def test_compacting_three_times_makes_a_chain_and_only_the_last_summary_is_told(desk: Desk) -> None:
    ran = desk.chat("one", "compact", "two", "compact", "three", "compact", "four")
    assert ran.code == 0
    sessions = desk.sessions()
    assert [one.n_prompts for one in sessions] == [1, 1, 1, 1]
    store = desk.store()
    assert [one.native_id for one in ancestors(store, sessions[3])] == [one.native_id for one in sessions[2::-1]]
    store.close()
    restorations = [last_words(one) for one in desk.server.asked if is_restoration(one)]
    for number, words in enumerate(restorations, 1):
        assert re.findall(r"- topic (\d)", words) == [str(number)]
    assert f"This session was resumed from: {sessions[1].native_id}" in restorations[2]
    summaries = [last_words(one) for one in desk.server.asked if is_summary_request(one)]
    assert "Condense this previous summary to 1-2 sentences:" in summaries[1] and "- topic 1" in summaries[1]
    assert "- topic 1" not in summaries[2] and "- topic 2" in summaries[2]


def test_recall_reaches_the_whole_lineage(desk: Desk) -> None:
    ran = desk.chat("the password of the cellar is xylophone", "compact", "two", "compact", "/recall xylophone")
    assert "the password of the cellar is xylophone" in ran.out


def test_resume_compact_resume_is_one_chain(desk: Desk) -> None:
    desk.chat("first")
    ran = desk.chat("second", "compact", "third", words=("--resume",))
    first, child = desk.sessions()
    assert f"Resuming session {first.native_id} (1 turn in archive)…" in ran.err
    assert (first.n_prompts, child.n_prompts) == (2, 1)
    ran = desk.chat("fourth", words=("--resume", child.native_id[:8]))
    assert f"Resuming session {child.native_id} (2 turns in archive)…" in ran.err
    assert words_of(desk.server.asked[-2])[-1] == "fourth" and "third" in words_of(desk.server.asked[-2])
    assert [one.n_prompts for one in desk.sessions()] == [2, 2]


def test_resume_in_the_chat_restores_by_summary(desk: Desk) -> None:
    desk.chat("work on the parser")
    ran = desk.chat("sessions", "resume 1", "go on")
    old, new = desk.sessions()
    assert (
        "📋 Loading session...\n✓ Found: Assistant - " in ran.err and "(1 query, 121 tokens)\n🔄 Restoring" in ran.err
    )
    assert ran.out.startswith("  1. 20") and "work on the parser" in ran.out
    heading, context = desk.saved[-1].read_text().split("---")[1].strip().split("\n")[:2]
    assert re.fullmatch(r"## Session Restored \(\d\d:\d\d:\d\d\)", heading)
    assert context == f"**Context:** Resumed from {old.native_id} (1 query, 121 tokens)"
    assert f"**Previous Session:** {desk.saved[0]}" in desk.saved[-1].read_text()
    assert new.n_prompts == 1 and old.n_prompts == 1


def test_a_name_nobody_has_is_told_and_the_conversation_goes_on(desk: Desk) -> None:
    ran = desk.chat("hello", "/resume nosuch", "still here")
    assert "⚠️ Session nosuch not found; this conversation goes on. /sessions lists those of this workspace" in ran.err
    assert desk.sessions()[0].n_prompts == 2
    ran = desk.chat("x", words=("--resume", "nosuch"))
    assert ran.code == 3 and "Session not found: nosuch" in ran.err


def test_several_sessions_are_told_by_their_summaries(desk: Desk) -> None:
    desk.chat("about apples")
    desk.chat("about pears")
    ran = desk.chat("both", words=("--resume", "1", "--resume", "2"))
    words = next(last_words(one) for one in desk.server.asked if is_restoration(one))
    assert "continuing several previous conversations" in words
    assert sorted(re.findall(r"- topic (\d)", words)) == ["1", "2"]
    assert "exact: several sessions cannot be one conversation → summary" in ran.err


def test_words_that_begin_like_a_command_are_words(desk: Desk) -> None:
    desk.chat("compact the list, please", "resume the work on #4", "/etc/hosts looks wrong", "# Notes for today")
    assert words_of(desk.server.asked[3]) == [
        "compact the list, please", "resume the work on #4", "/etc/hosts looks wrong", "# Notes for today",
    ]  # fmt: skip


def test_a_backslash_goes_on_in_the_next_line(desk: Desk) -> None:
    desk.chat("first line\\", "second line")
    assert words_of(desk.server.asked[0]) == ["first line\nsecond line"]


def test_the_state_is_in_the_system_prompt_and_pins_stay_through_compaction(desk: Desk) -> None:
    desk.chat("/pin never use an ORM", "hello", "compact", "next")
    last = desk.server.asked[-2]
    (system,) = words_of(last, "system")
    assert (
        "## Session State\n\nsession:" in system
        and f'- "never use an ORM (turn 1 of {desk.sessions()[0].native_id[:8]})"' in system
    )
    assert 'current_focus: "next"' in system and "conversation_recall" in system


def test_a_provider_that_binds_thoughts_to_the_words_before_gets_the_same_words_again(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Says:
        return Says(f"answer {asked.number}", thinking="let me see")

    with ModelServer(answer, strict=True) as server:
        desk = Desk(tmp_path, server, kind="anthropic")
        desk.chat("one", "DECISION: use a trie", "three", words=("--new", "--no-summary"))
        desk.chat("four", words=("--resume", "--no-summary"))
        bodies = [one.body for one in server.asked]
    assert len(bodies) == 4 and len({json.dumps(body["system"]) for body in bodies}) == 1
    told = [json.dumps(body["messages"])[:-1] for body in bodies]
    blocks = [[block for one in body["messages"] for block in _blocks(one)] for body in bodies]
    for earlier, later in pairwise(blocks):
        assert later[: len(earlier)] == earlier
    assert "use a trie (turn 2)" in told[2].replace('\\\\"', "") and "## Session State" in told[3]
    assert desk.sessions()[0].n_prompts == 4


def _blocks(message: dict[str, Any]) -> list[Any]:
    content = message["content"]
    found = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [{key: value for key, value in one.items() if key != "cache_control"} for one in found]


def test_a_pointer_to_what_is_out_of_view_gets_a_hint_that_nobody_typed(tmp_path: Path) -> None:
    with ModelServer(Model()) as server:
        desk = Desk(tmp_path, server, window=6000)
        lines = ["the zebra cache must be flushed at midnight"]
        lines += [f"filler {n} " + "blah " * 250 for n in range(12)]
        desk.chat(*lines, "do it like we discussed with the zebra cache")
        asked = server.asked[-2]
        hints = [words for words in words_of(asked) if words.startswith("[System: The user may be referencing earlier")]
        assert len(hints) == 1 and "turn 1, found by the words zebra, cache" in hints[0]
        assert [words for words in words_of(asked) if "must be flushed" in words] == hints
        injected = [
            one for one in desk.messages(desk.sessions()[0]) if one.origin == "injected" and one.kind == "context"
        ]
        assert any("[System: The user may be" in block.text for one in injected for block in one.blocks)
        assert desk.sessions()[0].n_prompts == 14


def test_a_pointer_to_what_the_archive_does_not_hold_gets_no_hint(tmp_path: Path) -> None:
    with ModelServer(Model()) as server:
        desk = Desk(tmp_path, server, window=6000)
        desk.chat("the zebra cache must be flushed", "do it like we discussed with the walrus invoices")
        assert not [
            words for asked in server.asked for words in words_of(asked) if words.startswith("[System: The user")
        ]


def test_the_model_can_recall_without_anybody_being_asked(tmp_path: Path) -> None:
    script = Model()

    def answer(asked: Asked) -> Says:
        if last_words(asked) == "what was the code?":
            return Says(calls=(Call("conversation_recall", {"action": "search", "query": "code"}),))
        if asked.body["messages"][-1]["role"] == "tool":
            return Says("it is 4711" if "4711" in last_words(asked) else "lost")
        return script(asked)

    with ModelServer(answer) as server:
        desk = Desk(tmp_path, server)
        assert "it is 4711" in desk.chat("the code is 4711", "what was the code?").out


@pytest.mark.parametrize("words", [("--tools", "none"), ("--tools", "read"), ("--tools", "all")])
def test_the_model_is_offered_the_tools_of_the_level(desk: Desk, words: tuple[str, ...]) -> None:
    desk.chat("hi", words=("--new", *words))
    names = [tool["function"]["name"] for tool in desk.server.asked[0].body.get("tools", ())]
    looking = ["read_file", "list", "search"]
    changing = ["write_file", "edit_file", "shell"]
    wanted = {
        "none": ["conversation_recall"],
        "read": [*looking, "conversation_recall"],
        "all": [*looking, *changing, "conversation_recall"],
    }
    assert names == wanted[words[1]]


def test_without_a_terminal_nothing_is_changed(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Says:
        if asked.body["messages"][-1]["role"] == "tool":
            return Says(f"told: {last_words(asked)[:30]}")
        return Says(calls=(Call("write_file", {"path": "a.txt", "content": "x"}),))

    with ModelServer(answer) as server:
        desk = Desk(tmp_path, server)
        ran = desk.chat("write it", words=("--new", "--no-summary"))
        assert ran.out.startswith("Assistant: told: ") and "denied" in ran.out and not list(desk.workspace.iterdir())


# what goes wrong ------------------------------------------------------------------------------------------------------


def test_a_summary_that_fails_is_tried_once_more_and_then_left(tmp_path: Path) -> None:
    script = Model()
    with ModelServer(lambda asked: broken() if is_summary_request(asked) else script(asked)) as server:
        desk = Desk(tmp_path, server)
        ran = desk.chat("important words")
        assert sum(map(is_summary_request, server.asked)) == 2
        assert "⚠️ Summary generation failed - session saved without a summary by the model" in ran.err
        assert ran.code == 0 and "✓ Conversation saved successfully!" in ran.err
        assert "important words" in desk.saved[0].read_text()


def test_a_summary_that_fails_once_is_made_by_the_retry(tmp_path: Path) -> None:
    script, seen = Model(), []

    def answer(asked: Asked) -> Says | Answer:
        if is_summary_request(asked):
            seen.append(asked)
            return broken() if len(seen) == 1 else script(asked)
        return script(asked)

    with ModelServer(answer) as server:
        desk = Desk(tmp_path, server)
        ran = desk.chat("words")
        assert len(seen) == 2 and "trying once more\n✓" in ran.err and "- topic 1" in desk.saved[0].read_text()


def test_a_summary_that_takes_too_long_is_left_behind(tmp_path: Path) -> None:
    script = Model()
    with ModelServer(lambda asked: Says("late", wait=60) if is_summary_request(asked) else script(asked)) as server:
        desk = Desk(tmp_path, server)
        ran = desk.chat("words", words=("--new", "--summary-timeout", "0.2"))
        assert "(timed out after 0.2 s)" in ran.err and ran.code == 0


def test_compacting_without_a_summary_by_the_model_uses_the_mechanical_one(tmp_path: Path) -> None:
    script = Model()
    with ModelServer(lambda asked: Says("no marks") if is_summary_request(asked) else script(asked)) as server:
        desk = Desk(tmp_path, server)
        desk.chat("fix the zebra", "compact", "go on")
        words = next(last_words(one) for one in server.asked if is_restoration(one))
        assert "**Topics Discussed:**\n- fix the zebra" in words and len(desk.sessions()) == 2


def test_no_summary_asks_no_model(desk: Desk) -> None:
    desk.chat("one", "compact", "two", words=("--new", "--no-summary"))
    assert not any(map(is_summary_request, desk.server.asked)) and len(desk.sessions()) == 2


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("fault", "patience"),
    [(broken(), "60"), (Says("odd", wait=60), "1"), (Says(""), "60")],
    ids=["fails", "late", "empty"],
)
def test_an_acknowledgment_that_fails_is_late_or_empty_does_not_stop_anybody(
    tmp_path: Path, fault: Says | Answer, patience: str
) -> None:
    script = Model()
    with ModelServer(lambda asked: fault if is_restoration(asked) else script(asked)) as server:
        desk = Desk(tmp_path, server)
        ran = desk.chat("one", "compact", "two", words=("--new", "--summary-timeout", patience))
        assert "answer 2" in ran.out and [one.n_prompts for one in desk.sessions()] == [1, 1]
        assert words_of(server.asked[-2])[0].startswith("CONTEXT RESTORATION")


def test_a_model_that_fails_is_a_sentence_and_retry_asks_again(tmp_path: Path) -> None:
    script, seen = Model(), []

    def answer(asked: Asked) -> Says | Answer:
        seen.append(asked)
        return broken() if len(seen) == 1 else script(asked)

    with ModelServer(answer) as server:
        desk = Desk(tmp_path, server)
        ran = desk.chat("hello", "/retry")
        assert "everturn: model scripted: the server failed with status 500" in ran.err and "answer 1" in ran.out
        assert desk.sessions()[0].n_prompts == 1


def test_an_answer_that_breaks_off_is_asked_for_once_more(tmp_path: Path) -> None:
    script, seen = Model(), []

    def answer(asked: Asked) -> Says:
        seen.append(asked)
        return Says("one two three four five", cut_after=4) if len(seen) == 1 else script(asked)

    with ModelServer(answer) as server:
        desk = Desk(tmp_path, server)
        ran = desk.chat("hello")
        assert "the answer was cut off; asking again" in ran.err and "answer 1" in ran.out


@pytest.mark.parametrize(
    ("stop", "told"),
    [("length", "reached the model's limit of tokens"), ("refusal", "declined to answer"), ("end", "")],
)
def test_an_answer_that_is_not_whole_is_told(tmp_path: Path, stop: str, told: str) -> None:
    with ModelServer(lambda asked: Says("as far as", stop=stop)) as server:
        ran = Desk(tmp_path, server).chat("hello", words=("--no-summary",))
    assert ran.code == 0 and "as far as" in ran.out
    assert [sign for sign in ("limit of tokens", "declined to answer") if sign in ran.err] == [
        sign for sign in ("limit of tokens", "declined to answer") if sign in told
    ]


def test_a_full_window_is_told_once_for_each_threshold(tmp_path: Path) -> None:
    used = iter([700, 810, 820, 910, 960, 970])

    def answer(asked: Asked) -> Says:
        return Says("fine", tokens=(next(used) * 10, 0))

    with ModelServer(answer) as server:
        desk = Desk(tmp_path, server, window=10_000)
        ran = desk.chat(*"abcdef", words=("--new", "--no-summary"))
        told = [line for line in ran.err.splitlines() if line.startswith("⚠️  Context")]
        assert [re.findall(r"\d+%", line)[0] for line in told] == ["81%", "91%", "96%"]


def test_a_budget_is_kept(desk: Desk) -> None:
    ran = desk.chat("one", "two", words=("--new", "--budget", "200"))
    assert "of the budget are left" in ran.err or "would be sent" in ran.err
    assert ran.code == 0


# resuming in other ways -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_strategy_can_be_asked_for(desk: Desk) -> None:
    desk.chat("about the parser")
    (old,) = desk.sessions()
    for strategy, told in (
        ("exact", "Resuming session"),
        ("window", "Resuming session"),
        ("summary", "🔄 Restoring context..."),
        ("document", "🔄 Restoring context..."),
    ):
        ran = desk.run("resume", old.native_id, "--strategy", strategy, typed="go on\n")
        assert ran.code == 0 and told in ran.err
    words = [last_words(one) for one in desk.server.asked if is_restoration(one)]
    assert "Previous session summary" in words[0] and "Previous session document" in words[1]
    assert "# SESSION SUMMARY" in words[1] and "about the parser" in words[1]


def test_a_history_that_does_not_fit_falls_to_the_window_and_says_why(tmp_path: Path) -> None:
    with ModelServer(Model()) as server:
        desk = Desk(tmp_path, server, window=6000)
        desk.chat(*("word " * 400 for _ in range(12)), words=("--new", "--no-summary"))
        ran = desk.chat("still there?", words=("--resume", "--no-summary"))
        assert "exact: it has more than the 3,000 tokens that fit → window\n" in ran.err


def test_another_prompt_is_a_mismatch_unless_forced(desk: Desk) -> None:
    desk.chat("hello")
    (desk.folder / "prompt.txt").write_text("Be a pirate.")
    other = ("--resume", "--system", str(desk.folder / "prompt.txt"))
    ran = desk.chat("again", words=other)
    assert ran.code == 1 and "Session created with the system prompt " in ran.err and "--force" in ran.err
    ran = desk.chat("again", words=(*other, "--force"))
    assert ran.code == 0 and "exact: the system prompt has changed → window" in ran.err
    assert words_of(desk.server.asked[-2], "system")[0].startswith("Be a pirate.")


def test_a_missing_summary_is_made_when_it_is_needed(desk: Desk) -> None:
    desk.chat("words", words=("--new", "--no-summary"))
    ran = desk.run("resume", "@last", "--strategy", "summary", typed="go on\n")
    assert "📝 No summary yet: generating it now... ✓" in ran.err and "🔄 Restoring context..." in ran.err


def test_a_summary_that_cannot_be_made_is_told_with_what_is_used_instead(tmp_path: Path) -> None:
    script = Model()
    with ModelServer(lambda asked: broken() if is_summary_request(asked) else script(asked)) as server:
        desk = Desk(tmp_path, server)
        desk.chat("words")
        ran = desk.run("resume", "@last", "--strategy", "summary", typed="go on\n")
        assert "⚠️ Session can't be resumed (no summary), starting fresh with the session itself" in ran.err
        assert "Resuming session" in ran.err and desk.sessions()[0].n_prompts == 2


def test_a_forgotten_parent_is_told_and_the_child_is_whole(desk: Desk) -> None:
    desk.chat("one", "compact", "two")
    parent, child = desk.sessions()
    assert desk.run("forget", parent.native_id, "--yes").code == 0
    ran = desk.chat("three", words=("--resume", child.native_id))
    assert f"⚠️ Parent session {parent.native_id} not found; this session itself is complete" in ran.err
    assert "two" in words_of(desk.server.asked[-2])


@pytest.mark.slow
def test_a_session_of_another_program_is_told_by_its_summary_or_a_document(desk: Desk) -> None:
    folder = desk.folder / "others"
    folder.mkdir()
    text = """# Sally Conversation

**Session ID:** {name}
**Date:** 2025-12-30T14:30:22.123456
**Agent:** Sally
**Total Queries:** 1

---

## Query 1 (14:30:45)
**You:** build the limiter

**Sally:** done

*Time: 3.2s | Tokens: 345 (in: 123, out: 222)*

---
{summary}"""
    block = "\n<!-- SESSION_SUMMARY_START -->\n**Background Context:** Initial session.\n- old topic\n{end}\n"
    good = block.format(end="<!-- SESSION_SUMMARY_END -->")
    (folder / "good.md").write_text(text.format(name="good", summary=good))
    (folder / "torn.md").write_text(text.format(name="torn", summary=block.format(end="")))
    (folder / "none.md").write_text(text.format(name="none", summary=""))
    assert desk.run("add", str(folder)).code == 0
    ran = desk.run("resume", "good", "--no-summary", "--force", typed="go on\n")
    assert "exact: the session was held by another program" in ran.err
    assert "- old topic" in next(last_words(one) for one in desk.server.asked if is_restoration(one))
    ran = desk.run("resume", "torn", "--no-summary", "--force", typed="go on\n")
    assert (
        "⚠️ Session can't be resumed (invalid summary format), starting fresh from a document made from its records"
        in ran.err
    )
    ran = desk.run("resume", "none", "--no-summary", "--force", typed="go on\n")
    assert "⚠️ Session can't be resumed (no summary), starting fresh from a document made from its records" in ran.err
    assert "build the limiter" in last_words([one for one in desk.server.asked if is_restoration(one)][-1])


def test_a_chain_is_written_as_one_document(desk: Desk) -> None:
    desk.chat("one", "compact", "two", "compact", "three")
    target = desk.folder / "chain.md"
    assert desk.run("resume", "@last", "--chain", str(target)).code == 0
    text = target.read_text()
    assert [text.index(f"**You:** {word}") for word in ("one", "two", "three")] == sorted(
        text.index(f"**You:** {word}") for word in ("one", "two", "three")
    )


def test_with_json_the_answers_are_data(desk: Desk) -> None:
    ran = desk.run("chat", "--new", "--json", "--no-summary", typed="hello\n")
    found = json.loads(ran.out)
    assert found["schema"] == "everturn/chat@1" and found["session"] == desk.sessions()[0].native_id
    assert [one["text"] for one in found["items"]] == ["answer 1"]


def test_the_saved_file_reads_back_as_the_same_conversation(tmp_path: Path, model: Model, held_by: str) -> None:
    with ModelServer(model) as server:
        desk = Desk(tmp_path, server, held_by=held_by)
        tricky = "**Resumed From:** nowhere <!-- SESSION_SUMMARY_START --> x <!-- SESSION_SUMMARY_END -->"
        desk.chat(tricky, "## Query 7 (10:00:00)", "compact", "after")
        parent, child = desk.sessions()
        texts = [path.read_bytes() for path in desk.saved]
        assert all(path.stat().st_mode & 0o777 == 0o600 for path in desk.saved)
        assert (desk.home / "chats").stat().st_mode & 0o777 == 0o700
        source = next(one for one in all_sources().values() if one.saves_chats)
        parts = []
        for path, data in zip(desk.saved, texts, strict=True):
            found = source.sniff(path, data)
            assert found is not None
            (part,) = source.reader(found, b"").feed(data, 0, True).parts
            parts.append(part)
        assert [part.native_id for part in parts] == [parent.native_id, child.native_id]
        prompts = [block.text for one in parts[0].messages if one.starts_turn for block in one.blocks]
        assert prompts == [tricky, "## Query 7 (10:00:00)"]
        assert "- topic 1" in parts[0].facts.summary and [link.native_id for link in parts[1].links] == [
            parent.native_id
        ]


def test_what_was_saved_of_a_session_can_be_erased(desk: Desk) -> None:
    desk.chat("one", "compact", "two")
    parent, child = desk.sessions()
    assert erase_saved(desk.home / "chats", parent.native_id) == 1 and erase_saved(desk.home / "nowhere", "x") == 0
    assert [child.native_id in path.read_text() for path in desk.saved] == [True]


def test_no_markdown_is_saved_when_it_is_not_wanted(desk: Desk) -> None:
    desk.chat("hello", words=("--new", "--no-save"))
    assert not (desk.home / "chats").exists()
