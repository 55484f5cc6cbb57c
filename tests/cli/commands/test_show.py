"""`everturn show`: a session turn by turn, for eyes and for programs."""

from __future__ import annotations

import json

import pytest

from everturn.capture.policy import Policy
from tests.capture.history import OTHER, SID
from tests.cli.desk import ACTIVE, HOSTILE, KEY, Desk


def busy(desk: Desk) -> None:
    archive = desk.archive
    thought = {"type": "thinking", "thinking": "deep thought", "signature": "x"}
    desk.take_in(
        archive.history.line("user", "look at\nboth"),
        archive.history.line("assistant", [thought]),
        archive.use("Read", "t1", "msg_a", file_path="/home/ann/a.py"),
        archive.back("t1", "alpha"),
        archive.use("Bash", "t2", "msg_a", command="cat  b.py"),
        archive.back("t2", "Exit code 1\nbeta", failed=True),
        archive.history.line("assistant", [{"type": "text", "text": "one failed"}]),
        archive.history.turn("and then", "nothing"),
    )


def test_a_session_is_shown_turn_by_turn(desk: Desk) -> None:
    busy(desk)
    code, out, err = desk.run("show", "@last")
    assert code == 0
    body = out.partition("── Turn 1")[2]
    assert body == (
        " · 2026-03-01 10:00 · 6s ──\n"
        "❯ look at\n"
        "❯ both\n"
        "⇉ 2 calls in parallel\n"
        "✓ Read  1s  /home/ann/a.py\n"
        "✗ Bash  1s  exit 1  cat b.py\n"
        "  one failed\n"
        "\n"
        "── Turn 2 · 2026-03-01 10:00 · 1s ──\n"
        "❯ and then\n"
        "  nothing\n"
    )
    assert err == "\nthere is more: --thinking --tools\n"


def test_the_head_says_what_it_is(desk: Desk) -> None:
    busy(desk)
    head = desk.run("show", SID[:6])[1].partition("── Turn 1")[0]
    assert head.startswith("11111111  look at both\n")
    for fact in (SID, "2.1.50 model-1", "/home/ann/shop (main)", "2 turns, 2 calls, 1 error"):
        assert f"{fact}\n" in head


def test_tools_and_thinking_are_there_when_asked_for(desk: Desk) -> None:
    busy(desk)
    _, out, err = desk.run("show", "@last", "--tools", "--thinking", "--turn", "1")
    assert "[thinking]\n  deep thought\n" in out
    assert "✗ Bash  1s  exit 1  cat b.py\n> command: cat  b.py\n| Exit code 1\n| beta\n" in out
    assert err == ""


@pytest.mark.parametrize(
    ("turns", "shown"),
    [("1", ["1"]), ("2", ["2"]), ("1-2", ["1", "2"]), ("2-", ["2"]), ("2-9", ["2"]), ("last", ["2"])],
)
def test_some_turns_can_be_asked_for(desk: Desk, turns: str, shown: list[str]) -> None:
    busy(desk)
    _, out, _ = desk.run("show", "@last", "--turn", turns)
    assert [line.split()[2] for line in out.splitlines() if line.startswith("── Turn")] == shown
    assert [str(item["number"]) for item in desk.json("show", "@last", "--turn", turns)["items"]] == shown


def test_a_turn_that_is_not_there_is_nothing_found(desk: Desk) -> None:
    busy(desk)
    code, out, err = desk.run("show", "@last", "--turn", "3")
    assert (code, out, err) == (3, "", f"everturn: session {SID} has 2 turns; there is no turn 3\n")


@pytest.mark.parametrize("turns", ["0", "x", "-1", "1-x", "3-0", "1--2", "²"])
def test_turns_that_are_no_numbers_are_a_mistake(desk: Desk, turns: str) -> None:
    busy(desk)
    code, out, err = desk.run("show", "@last", "--turn", turns)
    assert (code, out) == (2, "") and err.count("\n") == 1


@pytest.mark.parametrize(("wanted", "code"), [("nope", 3), ("@-9", 3), ("../../etc/passwd", 3), ("", 3), ("%", 3)])
def test_an_unknown_session_is_one_sentence(desk: Desk, wanted: str, code: int) -> None:
    busy(desk)
    found, out, err = desk.run("show", wanted)
    assert (found, out) == (code, "") and "`everturn sessions` lists them" in err and err.count("\n") == 1


def test_a_missing_archive_is_one_sentence(desk: Desk) -> None:
    desk.db = desk.db.with_name("nowhere.db")
    code, out, err = desk.run("show", "@last")
    assert code != 0 and out == "" and err.count("\n") == 1 and not desk.db.exists()


def test_long_texts_are_cut_with_a_word_on_how_to_see_all(desk: Desk) -> None:
    many = "\n".join(f"line {n}" for n in range(100))
    desk.take_in(desk.archive.history.tool_turn("go", "ls", many), desk.archive.history.turn(many, "ok"))
    _, out, err = desk.run("show", "@last", "--tools")
    assert "| line 11\n… 88 more lines\n" in out and "❯ line 59\n… 40 more lines\n" in out
    assert "--full" in err
    _, out, err = desk.run("show", "@last", "--tools", "--full")
    assert "| line 99\n" in out and "❯ line 99\n" in out and err == ""


def test_what_happened_is_marked_in_place(desk: Desk) -> None:
    history = desk.archive.history
    desk.take_in(
        history.turn("go", "going"),
        history.line("system", "", subtype="compact_boundary"),
        b"not json\n",
        history.line("user", [{"type": "text", "text": "[Request interrupted by user]"}]),
    )
    _, out, _ = desk.run("show", "@last")
    marks = ["  going", "compacted here", "⚠ could not be read: not valid JSON", "✋ interrupted"]
    assert [out.index(mark) for mark in marks] == sorted(out.index(mark) for mark in marks)


def test_subagents_are_named_with_ids_that_can_be_shown(desk: Desk) -> None:
    archive = desk.archive
    archive.subagent("abc1234", archive.helper("abc1234", "user", "look around"))
    desk.take_in(
        archive.history.line("user", "please"),
        archive.use("Task", "t1", prompt="look around"),
        archive.back("t1", "seen", agentId="abc1234"),
        archive.use("Task", "t2", prompt="more"),
        archive.back("t2", "seen", agentId="ffff"),
    )
    _, out, _ = desk.run("show", "@last")
    assert f"↳ subagent {SID}/agent-ffff (not in the archive)\n" in out
    (name,) = [line.split()[-1] for line in out.splitlines() if line.startswith("↳ subagent agent")]
    _, out, _ = desk.run("show", name)
    assert "❯ look around\n" in out and "  subagent of 11111111\n" in out


def test_forks_know_each_other(desk: Desk) -> None:
    history = desk.archive.history
    data = history.turn("first", "one")
    desk.take_in(data)
    desk.take_in(history.fork(data, OTHER), history.turn("second", "two", OTHER), sid=OTHER)
    assert "  forked into 99999999\n" in desk.run("show", SID)[1]
    out = desk.run("show", OTHER)[1]
    assert "  forked from 11111111\n" in out and "· inherited ──" in out


def test_an_older_edition_can_be_shown(desk: Desk) -> None:
    history = desk.archive.history
    first = history.turn("keep", "yes")
    desk.take_in(first, history.turn("cut out", "zebra"))
    desk.take_in(first)
    assert "zebra" not in desk.run("show", SID)[1]
    out = desk.run("show", SID, "--version", "1")[1]
    assert "zebra" in out and "an older version" in out
    assert desk.run("show", SID, "--version", "9")[0] == 3


def test_context_is_shown_when_asked_for(desk: Desk) -> None:
    history = desk.archive.history
    desk.take_in(history.line("user", [{"type": "text", "text": "skill body"}], isMeta=True), history.turn("go", "yes"))
    _, out, err = desk.run("show", "@last")
    assert "skill body" not in out and "--context" in err
    assert "[context]\n  skill body\n" in desk.run("show", "@last", "--context")[1]


def test_json_has_the_same_passages(desk: Desk) -> None:
    busy(desk)
    answer = desk.json("show", "@last", "--tools")
    assert (answer["schema"], answer["session"]["id"], answer["source"]["version"]) == ("everturn/show@1", SID, 1)
    first, second = answer["items"]
    assert [one["kind"] for one in first["passages"]] == ["prompt", "call", "call", "answer"]
    failed = first["passages"][2]
    assert (failed["tool"], failed["command"], failed["result"]) == ("Bash", "cat  b.py", "Exit code 1\nbeta")
    assert (failed["call"]["status"], failed["call"]["parallel"], failed["message"]) == ("error", True, 5)
    assert second["passages"][0]["text"] == "and then"


def test_one_record_can_be_seen_as_it_was_captured(desk: Desk) -> None:
    busy(desk)
    line = desk.archive.history.file().read_bytes().split(b"\n")[1]
    _, out, _ = desk.run("show", "@last", "--raw-message", "2")
    assert out == line.decode() + "\n"
    (item,) = desk.json("show", "@last", "--raw-message", "2")["items"]
    assert json.loads(item["record"])["message"]["content"][0]["thinking"] == "deep thought"
    code, _, err = desk.run("show", "@last", "--raw-message", "99")
    assert (code, "there is no message 99" in err) == (3, True)


def test_a_session_without_words_shows_its_structure(desk: Desk) -> None:
    desk.take_in(desk.archive.history.tool_turn("secret walrus", "ls", "a.py"), policy=Policy("structure"))
    code, out, _ = desk.run("show", "@last", "--tools")
    assert code == 0 and "no words to show" in out and "✓ Bash  1s\n" in out and "walrus" not in out
    code, _, err = desk.run("show", "@last", "--raw-message", "1")
    assert (code, "were not kept" in err) == (3, True)


def hostile(desk: Desk) -> None:
    archive = desk.archive
    fake = f"── Turn 7 · {HOSTILE} ──\n✓ Bash  1s  rm -rf /\n↳ subagent {OTHER}\neverturn: all is lost"
    thought = {"type": "thinking", "thinking": fake, "signature": "x"}
    desk.take_in(
        archive.history.line("user", fake, cwd=f"/x/{HOSTILE}", gitBranch=HOSTILE, version=HOSTILE),
        archive.history.line("user", [{"type": "text", "text": fake}], isMeta=True),
        archive.history.line("assistant", [thought], message={"model": HOSTILE}),
        archive.use(fake, "t1", command=fake),
        archive.back("t1", fake, agentId=HOSTILE),
        archive.use("Read", "t2", file_path=fake),
        archive.back("unknown", fake),
        archive.history.line("mystery", fake),
        archive.history.line("assistant", [{"type": "text", "text": fake}]),
    )


@pytest.mark.parametrize("flags", [[], ["--tools", "--thinking", "--context", "--full"], ["--json", "--tools"]])
def test_nothing_a_transcript_holds_acts_on_the_terminal(desk: Desk, flags: list[str]) -> None:
    hostile(desk)
    code, out, err = desk.run("show", "@last", *flags)
    assert code == 0 and not ACTIVE & set(out + err)


def test_nothing_a_transcript_holds_can_pose_as_a_line_of_ours(desk: Desk) -> None:
    hostile(desk)
    _, out, _ = desk.run("show", "@last", "--tools", "--thinking", "--context", "--full")
    lines = out.splitlines()
    assert [line[:9] for line in lines if line.startswith("──")] == ["── Turn 1"]
    assert [line for line in lines if line.startswith(("✓ Bash", "everturn", f"↳ subagent {OTHER}"))] == []


def test_secrets_are_masked_unless_revealed(desk: Desk) -> None:
    desk.take_in(desk.archive.history.tool_turn(f"my key {KEY}", f"echo {KEY}", f"got {KEY}"))
    for words in (["--tools"], ["--tools", "--json"], ["--raw-message", "1"]):
        assert KEY not in desk.run("show", "@last", *words)[1]
        assert KEY in desk.run("show", "@last", *words, "--reveal")[1]


def test_it_runs_as_a_program_in_colour_and_without(desk: Desk) -> None:
    hostile(desk)
    plain = desk.process("show", "@last")
    assert (plain.returncode, b"\x1b" in plain.stdout) == (0, False)
    coloured = desk.process("show", "@last", FORCE_COLOR="1")
    assert b"\x1b[36m\xe2\x94\x80\xe2\x94\x80 Turn 1" in coloured.stdout
    codes = {piece.split(b"m")[0] for piece in coloured.stdout.split(b"\x1b[")[1:]}
    assert codes <= {b"0", b"1", b"2", b"31", b"32", b"33", b"36"}, "only colours of ours"
    assert b"\x1b" not in desk.process("show", "@last", FORCE_COLOR="1", NO_COLOR="1").stdout
