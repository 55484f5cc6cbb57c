"""`conversation_recall`: four actions, one form of answer, nothing a model passes can break it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everturn.capture.policy import Policy
from everturn.model.archive import Session
from everturn.recall.answer import as_call
from everturn.recall.schema import INSTRUCTION, SCHEMA
from everturn.recall.tool import ConversationRecall, anthropic_tool, openai_tool
from everturn.sessions.lookup import resolve_session
from everturn.sources.contract import all_sources
from everturn.store.contract import Store
from tests.capture.history import OTHER, SID
from tests.recall.archives import Archive

THIRD = "55555555-2222-4333-8444-555555555555"


def tool(store: Store, session: Session | None = None, **more: Any) -> ConversationRecall:
    return ConversationRecall(store, all_sources(), session, now=1_772_000_000_000, **more)


def body(text: str) -> str:
    """What stands between the two lines of the frame."""
    lines = text.split("\n")
    first = next(n for n, line in enumerate(lines) if line.startswith("----- quoted from the archive"))
    last = next(n for n, line in enumerate(lines) if line.startswith("----- end of the quotation"))
    return "\n".join(lines[first + 1 : last])


def talk(archive: Archive, *asks: str, sid: str = SID, **more: Any) -> Session:
    turns = (archive.history.turn(ask, f"answer to {ask}", sid, **more) for ask in asks)
    return archive.take_in(*turns, sid=sid)


# the schema -----------------------------------------------------------------------------------------------------------
def test_the_schema_is_the_published_one() -> None:
    assert SCHEMA["required"] == ["action"]
    assert list(SCHEMA["properties"]) == ["action", "query", "tool_name", "start_turn", "end_turn", "limit"]
    assert SCHEMA["properties"]["action"]["enum"] == ["search", "range", "tool_calls", "summary"]
    types = {name: one["type"] for name, one in SCHEMA["properties"].items()}
    integers = {"start_turn", "end_turn", "limit"}
    assert types == {name: "integer" if name in integers else "string" for name in SCHEMA["properties"]}


def test_the_tool_has_the_form_of_each_api() -> None:
    assert openai_tool()["function"]["parameters"] is anthropic_tool()["input_schema"] is SCHEMA
    assert openai_tool()["type"] == "function"
    assert openai_tool()["function"]["name"] == anthropic_tool()["name"] == "conversation_recall"
    assert json.loads(json.dumps(openai_tool())) == openai_tool()


def test_the_instruction_names_the_tool_the_state_and_the_two_habits() -> None:
    for words in (
        "conversation_recall",
        "session state",
        "instead of asking the user to repeat",
        "search before you guess",
    ):
        assert words in INSTRUCTION


# search ---------------------------------------------------------------------------------------------------------------
def test_a_match_comes_with_the_turns_before_and_after(archive: Archive) -> None:
    session = talk(archive, "zero", "one", "fix the walrus", "three", "four")
    text = tool(archive.store, session)(action="search", query="walrus")
    assert text.startswith("1 matching turn in this session, best first:\n")
    assert body(text) == "[Session 11111111] 2026-03-01 · this session\n" + "\n".join(
        f"[Turn {number}] {who}:\n  {said}"
        for number, ask in ((3, "fix the walrus"), (2, "one"), (4, "three"))
        for who, said in (("user", ask), ("assistant", f"answer to {ask}"))
    )


def test_the_very_words_come_before_other_prompts_and_these_before_tool_output(archive: Archive) -> None:
    filler = [archive.history.turn(f"filler {n}", "fine") for n in range(3)]
    session = archive.take_in(
        archive.history.tool_turn("look", "cat notes", "walrus eats fish"),
        *filler,
        archive.history.turn("fish for the walrus", "yes"),
        *filler,
        archive.history.turn("give the walrus fish that we know and like", "no"),
    )
    answer = tool(archive.store, session).answer({"action": "search", "query": "walrus fish"})
    assert [entry.turn + 1 for entry in answer.entries if entry.is_match] == [9, 5, 1]


def test_a_match_in_tool_output_is_told_with_its_call_and_the_lines_around_it(archive: Archive) -> None:
    output = "\n".join(f"line {n}" if n != 700 else "the walrus stands here" for n in range(1000))
    session = archive.take_in(archive.history.tool_turn("look", "cat big.txt", output))
    told = body(tool(archive.store, session)(action="search", query="walrus"))
    assert '[Turn 1, message 2] tool:Bash(command="cat big.txt")\n  … ' in told and told.endswith(" …")
    assert "the walrus stands here" in told and "line 699" in told and "line 100\n" not in told


def test_the_search_covers_the_session_its_workspace_and_everything_and_says_where_a_turn_is(archive: Archive) -> None:
    talk(archive, "feed the zebra", sid=OTHER)
    talk(archive, "ride the camel", sid=THIRD, cwd="/srv/zoo")
    session = talk(archive, "fix the walrus")
    recall = tool(archive.store, session)
    assert "in this session, best first" in recall(action="search", query="walrus")
    near = recall(action="search", query="zebra")
    assert "in other sessions of the same workspace" in near
    assert "[Session 99999999] 2026-03-01 · same workspace\n" in near
    far = recall(action="search", query="camel")
    assert "in the whole archive" in far and "[Session 55555555] 2026-03-01 · zoo\n" in far
    both = body(recall(action="search", query="zebra camel"))
    assert both.index("[Session 99999999]") < both.index("[Session 55555555]")


def test_a_session_that_started_others_finds_their_words(archive: Archive) -> None:
    archive.subagent("a1", archive.helper("a1", "user", "look for the walrus"))
    session = archive.take_in(
        archive.history.turn("go", "yes"), archive.use("Task", "t1", prompt="look for the walrus", description="x"),
        archive.back("t1", "found it", agentId="a1"),
    )  # fmt: skip
    text = tool(archive.store, session)(action="search", query="look for the walrus", limit=5)
    assert "tool:Task" in text
    archive.subagent("a1", archive.helper("a1", "user", "look for the narwhal"))
    session = archive.take_in()
    text = tool(archive.store, session)(action="search", query="narwhal")
    assert "the sessions that this session came from or started" in text.split("\n")[0]


def test_a_subagent_does_not_find_the_question_it_was_started_with(archive: Archive) -> None:
    asked = "what did we decide about the walrus pool?"
    archive.take_in(archive.history.turn("the walrus pool gets salt water", "noted", OTHER), sid=OTHER)
    archive.take_in(
        archive.history.turn("good morning", "hello"), archive.history.line("user", asked),
        archive.use("Task", "t1", prompt=asked, description="x"),
    )  # fmt: skip
    archive.subagent("a1", archive.helper("a1", "user", asked))
    archive.take_in()
    text = tool(archive.store, resolve_session(archive.store, "agent-a1"))(action="search", query=asked)
    assert "salt water" in text and asked not in body(text)


def test_an_earlier_recall_is_not_quoted_beside_a_match(archive: Archive) -> None:
    asked = "what did we decide about the walrus pool?"
    line, said = archive.history.line, [{"type": "text", "text": "I looked it up."}]
    session = archive.take_in(
        archive.history.turn("the walrus pool gets salt water", "noted"), line("user", asked),
        archive.use("mcp__everturn__conversation_recall", "r1", action="search", query=asked), archive.back("r1", "x"),
        line("assistant", said), archive.history.turn("go on", "done"), line("user", asked),
    )  # fmt: skip
    text = tool(archive.store, session)(action="search", query="walrus pool decision", limit=1)
    assert "salt water" in text and asked not in body(text)


def test_a_session_is_named_in_the_query(archive: Archive) -> None:
    talk(archive, "feed the zebra", sid=OTHER)
    session = talk(archive, "zebra here")
    recall = tool(archive.store, session)
    text = recall(action="search", query="session:9999 zebra")
    assert "in session 99999999" in text.split("\n")[0] and "zebra here" not in text
    assert 'conversation_recall(action="range", start_turn=1, end_turn=1, query="session:99999999")' in text
    assert "feed the zebra" in recall(action="range", start_turn=1, query="session:99999999")
    assert 'id: "99999999' in recall(action="summary", query='session:"99999999"')


def test_what_the_client_put_in_is_left_out_unless_asked_for(archive: Archive) -> None:
    context = [{"type": "text", "text": "reminder about the walrus"}]
    session = archive.take_in(archive.history.turn("go", "yes"), archive.history.line("user", context, isMeta=True))
    recall = tool(archive.store, session)
    answer = recall.answer({"action": "search", "query": "walrus"})
    assert answer.status == "nothing" and "role:injected" in answer.text
    assert "reminder about" in recall(action="search", query="walrus role:injected")
    assert "reminder" not in recall(action="range", start_turn=1)


def test_an_earlier_recall_is_no_answer(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.turn("go", "yes"),
        archive.use("mcp__everturn__conversation_recall", "t1", action="search", query="walrus"),
        archive.back("t1", "nothing about any walrus"),
    )
    answer = tool(archive.store, session).answer({"action": "search", "query": "walrus"})
    assert answer.status == "nothing" and "earlier recalls" in answer.text


def test_more_matches_can_be_asked_for(archive: Archive) -> None:
    session = talk(archive, *(f"walrus {n}" for n in range(30)))
    recall = tool(archive.store, session)
    text = recall(action="search", query="walrus", limit=3)
    assert text.startswith("3 matching turns of more")
    assert text.endswith('conversation_recall(action="search", query="walrus", limit=6)')
    assert recall(action="search", query="walrus", limit=6).startswith("6 matching turns of more")


def test_a_title_that_matches_leads_to_its_session(archive: Archive) -> None:
    title = b'{"type":"custom-title","customTitle":"Walrus migration","sessionId":"%s"}\n' % SID.encode()
    archive.take_in(archive.history.turn("go", "yes"), title)
    text = tool(archive.store)(action="search", query="walrus")
    assert "[Session 11111111] 2026-03-01 · shop · Walrus migration\n" in body(text) and "  go" in body(text)


def test_nothing_found_is_said_in_words(archive: Archive) -> None:
    answer = tool(archive.store, talk(archive, "one")).answer({"action": "search", "query": "unicorn"})
    assert answer.status == "nothing" and "Nothing in the archive matches 'unicorn'" in answer.text


# range ----------------------------------------------------------------------------------------------------------------
def test_a_range_has_both_its_ends_in_order(archive: Archive) -> None:
    session = talk(archive, "one", "two", "three", "four")
    text = tool(archive.store, session)(action="range", start_turn=2, end_turn=3)
    assert text.startswith("Turns 2 to 3 of 4 of this session:\n")
    assert body(text) == (
        "[Turn 2] user:\n  two\n\n[Turn 2] assistant:\n  answer to two\n\n"
        "[Turn 3] user:\n  three\n\n[Turn 3] assistant:\n  answer to three"
    )


def test_a_call_stands_with_its_arguments_and_its_result(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", "read it"),
        archive.use("read_file", "t1", path='src/"auth".py', limit=3),
        archive.back("t1", "import jwt\n\nx = 1\n"),
        archive.use("Bash", "t2", command="false"),
        archive.back("t2", "boom", failed=True),
        archive.use("Write", "t3", path="a.txt", content="first\nsecond"),
    )
    told = body(tool(archive.store, session)(action="range", start_turn=1))
    assert '[Turn 1] tool:read_file(path="src/\\"auth\\".py", limit=3)\n  import jwt\n\n  x = 1' in told
    assert '[Turn 1] tool:Bash(command="false")\n  [failed: ' in told and "\n  boom" in told
    assert 'content="first second")\n  content =\n    first\n    second\n  [no result was recorded]' in told


@pytest.mark.parametrize(
    ("asked", "words", "status"),
    [
        ({}, "this session has 3 turns", "mistake"),
        ({"start_turn": 0, "end_turn": 2}, "start_turn=1, end_turn=2", "mistake"),
        ({"start_turn": 3, "end_turn": 1}, "start_turn=1, end_turn=3", "mistake"),
        ({"start_turn": 9}, "There is no turn 9: this session has 3 turns", "nothing"),
        ({"start_turn": 1, "query": "message:x"}, "message:7-12", "mistake"),
        ({"start_turn": 1, "query": "message:99"}, "nothing was said there, message 99", "nothing"),
        ({"start_turn": 1, "query": "session:nope"}, "no session 'nope'", "nothing"),
    ],
)
def test_a_wrong_range_is_answered_with_the_right_one(
    archive: Archive, asked: dict[str, Any], words: str, status: str
) -> None:
    answer = tool(archive.store, talk(archive, "a", "b", "c")).answer({"action": "range", **asked})
    assert words in answer.text and answer.status == status


def test_a_range_that_ends_too_late_ends_with_the_session(archive: Archive) -> None:
    text = tool(archive.store, talk(archive, "a", "b"))(action="range", start_turn=2, end_turn=99)
    assert text.startswith("Turn 2 of 2 ") and "  b" in body(text)


# tool_calls -----------------------------------------------------------------------------------------------------------
def test_calls_of_a_tool_come_newest_first(archive: Archive) -> None:
    session = archive.take_in(*(archive.history.tool_turn(f"go {n}", f"run {n}", f"out {n}") for n in range(5)))
    recall = tool(archive.store, session)
    text = recall(action="tool_calls", tool_name="bash", limit=2)
    assert text.startswith("2 of 5 calls of Bash in this session, newest first:")
    assert body(text) == '[Turn 5] tool:Bash(command="run 4")\n  out 4\n\n[Turn 4] tool:Bash(command="run 3")\n  out 3'
    assert text.endswith('- 3 older calls: conversation_recall(action="tool_calls", tool_name="bash", limit=4)')
    assert recall(action="tool_calls", tool_name="shell").startswith("5 calls of Bash")


def test_an_unknown_tool_is_answered_with_those_there_are(archive: Archive) -> None:
    recall = tool(archive.store, archive.take_in(archive.history.tool_turn("go", "run", "out")))
    for name in ("Grep", None):
        answer = recall.answer({"action": "tool_calls", "tool_name": name})
        assert "Bash (1)" in answer.text and answer.status == ("nothing" if name else "mistake")
    assert "called no tools" in tool(archive.store, talk(archive, "x", sid=OTHER))(action="tool_calls", tool_name="a")


# summary --------------------------------------------------------------------------------------------------------------
def test_a_summary_is_the_state_and_the_figures(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.turn("start here", "ok"), archive.history.line("user", "now write it"),
        archive.use("Write", "t1", file_path="/home/ann/shop/a.py", content="x"), archive.back("t1", "done"),
    )  # fmt: skip
    told = body(tool(archive.store, session)(action="summary"))
    for words in (
        'current_focus: "now write it"',
        "files_touched:",
        "turns: 2",
        "tool calls: 1 (0 failed)",
        "tools: Write 1",
    ):
        assert words in told


def test_a_secret_is_not_in_a_summary_not_even_the_half_that_was_cut(archive: Archive) -> None:
    key = "AKIA" + "Q7XW2MZP4RTY5LNB"
    for before in range(70, 100, 5):
        session = talk(archive, "x" * before + " " + key)
        assert key[:8] not in tool(archive.store, session)(action="summary")


# no session, no words -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("action", ["range", "tool_calls", "summary"])
def test_without_a_session_the_newest_ones_are_named(archive: Archive, action: str) -> None:
    assert tool(archive.store).answer({"action": action, "start_turn": 1}).text == "The archive holds no sessions yet."
    talk(archive, "fix the walrus")
    answer = tool(archive.store).answer({"action": action, "start_turn": 1})
    assert answer.status == "mistake" and "session:ID in query" in answer.text
    assert "[Session 11111111] claude_code · 2026-03-01 · ann/shop · fix the walrus" in body(answer.text)


def test_a_session_of_which_only_the_structure_was_kept_says_so(archive: Archive) -> None:
    session = archive.take_in(archive.history.tool_turn("walrus", "run", "out"), policy=Policy("structure"))
    recall = tool(archive.store, session)
    for asked in ({"action": "range", "start_turn": 1}, {"action": "tool_calls", "tool_name": "Bash"}):
        answer = recall.answer(asked)
        assert answer.status == "nothing" and "mode structure" in answer.text and "walrus" not in answer.text
    answer = recall.answer({"action": "search", "query": "walrus"})
    assert answer.status == "nothing" and "mode structure" in answer.text
    text = recall(action="summary")
    assert "mode structure" in text and "tool calls: 1" in text and "walrus" not in text


def test_a_session_that_grew_is_read_as_it_is_now(archive: Archive) -> None:
    session = talk(archive, "one")
    recall = tool(archive.store, session)
    archive.history.grow(archive.history.turn("two", "yes"))
    archive.take_in()
    assert "  two" in recall(action="range", start_turn=2)


def ascii_start(value: object) -> str:
    return ascii(value)[:12]


# mistakes of a model --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "action is missing"),
        ({"action": "find"}, "action must be one of search, range, tool_calls, summary"),
        ({"action": 3}, "action must be a string"),
        ({"action": "search"}, "give query"),
        ({"action": "search", "query": ["x"]}, "query must be a string"),
        ({"action": "range", "start_turn": "3"}, "start_turn must be a whole number"),
        ({"action": "range", "start_turn": True}, "start_turn must be a whole number"),
        ({"action": "range", "start_turn": 1.5}, "start_turn must be a whole number"),
        ({"action": "search", "query": "x", "limit": 0}, "limit must be between 1 and 50"),
        ({"action": "search", "query": "x", "limit": 10**9}, "limit must be between 1 and 50"),
        ({"action": "search", "query": "x", "turn": 3}, "there is no argument 'turn'"),
        ({"action": "search", "query": "turn:x walrus"}, "is not valid"),
        ({"action": "search", "query": "/(/ x"}, "is not closed"),
        ({"action": "search", "query": "-walrus"}, "no word to search for"),
        ("not json", "not valid JSON"),
        ("[1]", "must be a JSON object"),
        (None, "must be a JSON object"),
    ],
    ids=ascii_start,
)
def test_a_mistake_is_answered_in_words(archive: Archive, arguments: Any, words: str) -> None:
    answer = tool(archive.store, talk(archive, "one")).answer(arguments)
    assert words in answer.text and answer.status == "mistake"


def test_arguments_may_be_json_text_and_null_is_nothing(archive: Archive) -> None:
    recall = tool(archive.store, talk(archive, "one"))
    asked = {"action": "range", "start_turn": 1.0, "end_turn": None, "query": None}
    assert recall.call(json.dumps(asked)) == recall.call(asked) == recall(action="range", start_turn=1)


@pytest.mark.parametrize(
    "query", ["\x00", "\ud800 walrus", '"', "a" * 100_000, "((((", "session:", "%' OR 1=1 --", "🚀"], ids=ascii_start
)
def test_any_query_gets_an_answer(archive: Archive, query: str) -> None:
    recall = tool(archive.store, talk(archive, "one"))
    for action in ("search", "range", "tool_calls", "summary"):
        answer = recall.answer({"action": action, "query": query, "start_turn": 1, "tool_name": query})
        assert answer.text and len(answer.text) < 40_000


def test_a_call_is_spelled_so_that_it_can_be_made() -> None:
    assert as_call({"action": "search", "query": 'say "hi" \\ all', "limit": 4}) == (
        'conversation_recall(action="search", query="say \\"hi\\" \\\\ all", limit=4)'
    )
