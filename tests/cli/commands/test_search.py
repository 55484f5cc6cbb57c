"""`everturn search`: matches grouped by session, marked, and how to get there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.capture.history import OTHER, SID
from tests.cli.desk import ACTIVE, HOSTILE, KEY, Desk
from tests.recall.archives import AGENT


def two(desk: Desk) -> None:
    history = desk.archive.history
    desk.take_in(
        history.turn("fix the walrus", "the walrus is fixed"), history.tool_turn("again", "grep walrus", "none")
    )
    desk.take_in(history.turn("feed the zebra", "not the walrus?", OTHER, cwd="/srv/zoo"), sid=OTHER)


def test_matches_are_grouped_by_session_and_marked(desk: Desk) -> None:
    two(desk)
    code, out, err = desk.run("search", "walrus")
    assert (code, err) == (0, "")
    groups = {group.split("  ")[0]: group.splitlines() for group in out.split("\n\n")}
    assert set(groups) == {"11111111", "99999999"}
    head, facts, *matches = groups["11111111"]
    assert head == "11111111  fix the walrus"
    assert facts == f"  {AGENT} · 2026-03-01 · ann/shop"
    assert sorted(matches) == [
        "  turn 1 #1 prompt 2026-03-01 10:00  fix the «walrus»",
        "  turn 1 #2 answer 2026-03-01 10:00  the «walrus» is fixed",
        "  turn 2 #4 tool input 2026-03-01 10:00  Bash grep «walrus»",
    ]


def test_the_turn_of_a_match_can_be_shown(desk: Desk) -> None:
    two(desk)
    item = desk.json("search", "grep walrus")["items"][0]
    _, out, _ = desk.run("show", item["session"], "--turn", str(item["turn"]))
    assert "grep walrus" in out


def test_json_says_where_each_match_is(desk: Desk) -> None:
    two(desk)
    answer = desk.json("search", "zebra")
    (item,) = answer["items"]
    assert (answer["schema"], answer["next"], answer["note"]) == ("everturn/search@1", None, None)
    assert (answer["notes"], answer["scope"]) == ([], "everything")
    assert (item["before"], item["after"]) == ([], [])
    assert (item["session"], item["agent"], item["workspace"]) == (OTHER, AGENT, "/srv/zoo")
    assert (item["turn"], item["message"], item["role"], item["origin"], item["field"]) == (
        1,
        1,
        "user",
        "human",
        "prompt",
    )
    assert (item["at"], item["snippet"], item["spans"]) == ("2026-03-01T10:00:06Z", "feed the zebra", [[9, 14]])


def test_the_search_can_be_narrowed(desk: Desk) -> None:
    two(desk)

    def found(*words: str) -> set[tuple[str, int]]:
        return {(item["session"][:1], item["message"]) for item in desk.json("search", "walrus", *words)["items"]}

    assert found() == {("1", 1), ("1", 2), ("1", 4), ("9", 2)}
    assert found("--session", SID[:4]) == {("1", 1), ("1", 2), ("1", 4)}
    assert found("--session", "@last") == {("9", 2)}
    assert found("--workspace", "ZOO") == {("9", 2)}
    assert found("--in", "answer") == {("1", 2), ("9", 2)}
    assert found("--in", "prompt", "--in", "tool_input") == {("1", 1), ("1", 4)}
    assert found("--role", "human") == {("1", 1)}
    assert found("--role", "user") == {("1", 1)}
    assert found("--role", "assistant") == {("1", 2), ("1", 4), ("9", 2)}
    assert found("--since", "2026-03-01T10:00:04Z") == {("1", 4), ("9", 2)}
    assert found("--until", "2026-03-01T10:00:02Z") == {("1", 1)}
    assert found("--agent", "gemini") == set()


def test_filters_may_stand_among_the_words(desk: Desk) -> None:
    two(desk)

    def found(*words: str) -> set[tuple[str, int]]:
        return {(item["session"][:1], item["message"]) for item in desk.json("search", *words)["items"]}

    assert found("walrus tool:Bash") == {("1", 4)}
    assert found("walrus", "in:answer", "workspace:zoo") == {("9", 2)}
    assert found("walrus -session:1111 role:assistant") == {("9", 2)}
    assert found(r"/fix(ed)?$/") == {("1", 2)}


def test_the_current_folder_is_a_filter(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two(desk)
    here = "88888888-2222-4333-8444-555555555555"
    monkeypatch.chdir(tmp_path)
    desk.take_in(desk.archive.history.turn("walrus here", "ok", here, cwd=str(Path.cwd())), sid=here)
    assert {item["session"] for item in desk.json("search", "walrus", "--here")["items"]} == {here}
    assert desk.run("search", "zebra", "--here")[0] == 3
    answer = desk.json("search", "zebra", "--here", "--widen")
    assert (answer["scope"], len(answer["items"]), len(answer["notes"])) == ("everything", 1, 1)
    assert desk.run("search", "x", "--here", "--workspace", "y")[0] == 2


def test_a_session_can_be_searched_with_its_lineage(desk: Desk) -> None:
    two(desk)
    archive = desk.archive
    archive.subagent("abc1234", archive.helper("abc1234", "user", "count the unicorns"))
    archive.take_in()
    assert desk.run("search", "unicorns", "--session", SID)[0] == 3
    answer = desk.json("search", "unicorns", "--session", SID, "--lineage")
    assert ([item["kind"] for item in answer["items"]], answer["scope"]) == (["subagent"], "lineage")
    code, _, err = desk.run("search", "unicorns", "--lineage")
    assert code == 2 and "add --session @last" in err


def test_the_turns_beside_a_match_can_be_shown(desk: Desk) -> None:
    history = desk.archive.history
    desk.take_in(
        history.turn(f"before {KEY}", "a"), history.turn("the walrus", "b"), history.turn(f"{HOSTILE} after", "c")
    )
    _, out, _ = desk.run("search", "walrus", "--context", "1")
    lines = out.splitlines()[2:]
    assert [line.split("  ")[1].strip() or line.split("  ")[2] for line in lines] == [
        "turn 1 user",
        "turn 2 #3 prompt 2026-03-01 10:00",
        "turn 3 user",
    ]
    assert "[REDACTED" in lines[0] and KEY not in out and not ACTIVE & set(out)
    (item,) = desk.json("search", "walrus", "--context", "2")["items"]
    assert [one["turn"] for one in (*item["before"], *item["after"])] == [1, 3]
    assert item["before"][0]["role"] == "user" and KEY not in str(item)


def test_a_look_through_the_text_itself_is_told(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn("x => y", "ok"))
    code, out, err = desk.run("search", "=>")
    assert code == 0 and "«=>»" in out
    assert err == "everturn: the index does not contain these words; searched the text itself in all 2 messages\n"


def test_a_search_says_how_to_go_on(desk: Desk) -> None:
    two(desk)
    _, out, err = desk.run("search", "walrus", "--limit", "3")
    assert out.count("«walrus»") == 3
    said, _, cursor = err.strip().rpartition(" ")
    assert said == "for more matches, add --after"
    _, out, err = desk.run("search", "walrus", "--limit", "3", "--after", cursor)
    assert (out.count("«walrus»"), err) == (1, "")
    assert desk.run("search", "zebra", "--after", cursor)[0] == 2


def test_some_of_the_words_are_better_than_none_and_it_says_so(desk: Desk) -> None:
    two(desk)
    code, out, err = desk.run("search", "zebra", "unicorn")
    assert (code, err) == (0, "everturn: no message contains all the words; these contain some of them\n")
    assert "«zebra»" in out


def test_nothing_found_is_exit_3_with_a_hint(desk: Desk) -> None:
    two(desk)
    code, out, err = desk.run("search", "unicorn")
    assert (code, out) == (3, "") and "nothing found; try fewer or other words" in err and err.count("\n") == 1
    code, out, err = desk.run("search", "unicorn", "--role", "human")
    assert (code, out) == (3, "") and "remove a filter" in err
    assert desk.json("search", "unicorn")["items"] == []


@pytest.mark.parametrize(
    "words",
    [
        *([], ["-walrus"], ["***"], ["x", "--in", "nowhere"], ["x", "--role", "nobody"], ["x", "--since", "someday"]),
        *(
            ["x turn:left"],
            ["x role:nobody"],
            ["/(/"],
            ["/" + "x" * 201 + "/"],
            ["x", "--context", "9"],
            ["tool:Bash -walrus"],
        ),
    ],
)
def test_a_mistake_is_one_sentence(desk: Desk, words: list[str]) -> None:
    code, out, err = desk.run("search", *words)
    assert (code, out) == (2, "") and err.startswith("everturn: ") and err.count("\n") == 1


def test_an_unknown_session_is_exit_3(desk: Desk) -> None:
    assert desk.run("search", "x", "--session", "nope")[0] == 3


def test_nothing_a_transcript_holds_acts_on_the_terminal(desk: Desk) -> None:
    history = desk.archive.history
    title = b'{"type":"custom-title","customTitle":"walrus \\u001b[2J\\u009b1A","sessionId":"%s"}\n' % SID.encode()
    desk.take_in(history.turn(f"walrus {HOSTILE} walrus", f"{HOSTILE}walrus", cwd=f"/x/{HOSTILE}"), title)
    for words in (["search", "walrus"], ["search", "walrus", "--json"]):
        code, out, err = desk.run(*words)
        assert code == 0 and not ACTIVE & set(out + err)


def test_secrets_are_masked_unless_revealed(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn(f"walrus {KEY}", "ok"))
    for words in (["search", "walrus"], ["search", "walrus", "--json"], ["search", KEY]):
        assert KEY not in desk.run(*words)[1]
        assert KEY in desk.run(*words, "--reveal")[1].replace("«", "").replace("»", "")


def test_what_only_an_older_edition_says_is_marked_as_such(desk: Desk) -> None:
    history = desk.archive.history
    first = history.turn("keep", "yes")
    desk.take_in(first, history.turn("cut out", "zebra"))
    desk.take_in(first)
    assert "older version" in desk.run("search", "zebra")[1]
    assert "older version" not in desk.run("search", "keep")[1]


def test_it_runs_as_a_program_and_marks_matches_in_bold(desk: Desk) -> None:
    two(desk)
    plain = desk.process("search", "zebra")
    assert (plain.returncode, plain.stderr) == (0, b"") and "«zebra»".encode() in plain.stdout
    coloured = desk.process("search", "zebra", FORCE_COLOR="1")
    assert b"\x1b[1;33mzebra\x1b[0m" in coloured.stdout


@pytest.mark.parametrize("words", [
    ["walrus", "-zebra"], ["walrus", "-zebra", "--limit", "5"], ["-zebra", "walrus"], ["--limit", "5", "walrus -zebra"],
    ["walrus", "--", "-zebra"], ["--limit=5", "walrus", "-zebra"], ["walrus", "-halt", "-zebra"],
])  # fmt: skip
def test_a_word_with_a_minus_is_unwanted_wherever_it_stands(desk: Desk, words: list[str]) -> None:
    two(desk)
    history = desk.archive.history
    desk.take_in(history.turn("walrus and zebra", "a walrus is no zebra", "third"), sid="third")
    database = ["--db", str(desk.db)]
    found = {item["session"] for item in json.loads(desk.run("--json", *database, "search", *words)[1])["items"]}
    assert found == {SID, OTHER}


def test_an_option_that_is_not_there_is_still_a_mistake(desk: Desk) -> None:
    assert desk.run("search", "walrus", "--limt", "5")[0] == 2
    code, out, _ = desk.run("search", "walrus", "-h")
    assert code == 0 and "Examples:" in out


def test_an_id_that_is_shown_can_be_typed(desk: Desk) -> None:
    for number in range(3):
        name = f"2025-04-0{number}-of-many"
        desk.take_in(desk.archive.history.turn(f"word{number}", "done", name), sid=name)
    short = desk.run("search", "word1")[1].split()[0]
    assert desk.run("show", short)[0] == 0


def test_nothing_found_with_a_filter_among_the_words_says_to_leave_it_out(desk: Desk) -> None:
    two(desk)
    assert "remove a filter" in desk.run("search", "walrus agent:gemini")[2]
    assert "remove a filter" not in desk.run("search", "giraffe")[2]


def test_matches_with_the_same_text_are_shown_once(desk: Desk) -> None:
    desk.take_in(*(desk.archive.history.turn("the walrus", f"answer {n}") for n in range(3)))
    _, out, _ = desk.run("search", "walrus")
    assert out.count("«walrus»") == 1 and "    and 2 more like it: turn " in out
    _, out, _ = desk.run("search", "walrus", "--no-collapse")
    assert out.count("«walrus»") == 3 and "more like it" not in out
    [item] = desk.json("search", "walrus")["items"]
    assert len(item["similar"]) == 2 and set(item["similar"][0]) == {"session", "turn", "message", "at"}
    newest = desk.json("search", "walrus", "--sort", "time", "--no-collapse")["items"]
    assert [one["turn"] for one in newest] == [3, 2, 1] and all(one["at"] for one in newest)


def test_a_question_is_understood_unless_it_is_literal(desk: Desk) -> None:
    two(desk)
    question = "what did I say about the walrus on 2026-03-01".split()
    answer = desk.json("search", *question)
    assert (
        answer["notes"][0]
        == "looked first at what you said, 1 March 2026; literal:yes searches for the words as they are"
    )
    assert answer["items"][0]["origin"] == "human"
    _, _, err = desk.run("search", *question)
    assert "looked first at what you said, 1 March 2026" in err
    for literal in (desk.json("search", "--literal", *question), desk.json("search", *question, "literal:yes")):
        assert not any("looked first" in note for note in literal["notes"])


def test_notes_and_tasks_of_an_agent_are_found_and_follow_the_rules_of_their_project(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = desk.archive.history
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(history.root))
    history.write(history.turn("hello", "hi"))
    private = history.root / "projects" / "-home-ann-private"
    private.mkdir()
    (private / f"{OTHER}.jsonl").write_bytes(history.turn("secret", "hi", OTHER, cwd="/home/ann/private"))
    for folder, text in ((history.project, "the walrus is Postgres"), (private, "the walrus is private")):
        (folder / "memory").mkdir()
        (folder / "memory" / "MEMORY.md").write_text(f"# Notes\n\n{text}\n")
    tasks = history.root / "tasks" / SID
    tasks.mkdir(parents=True)
    (tasks / "1.json").write_text('{"id":"1","subject":"feed the walrus","status":"pending"}')
    (tmp_path / "config.toml").write_text('[[workspace]]\npath = "/home/ann/private"\nmode = "off"\n')
    assert desk.run("sync")[0] == 0
    found = desk.json("search", "walrus")["items"]
    assert {one["session"] for one in found} == {f"memory/{history.project.name}/MEMORY.md", f"{SID}/tasks/1.json"}
    assert "feed the walrus" in desk.run("show", f"{SID}/tasks/1.json", "--context")[1]
    assert desk.run("forget", SID, "--yes")[0] == 0
    assert [one["session"][:6] for one in desk.json("search", "walrus")["items"]] == ["memory"]
