"""`everturn sessions`: the newest first, a page at a time."""

from __future__ import annotations

import re

import pytest

from everturn import clock
from everturn.capture.policy import Policy
from everturn.text.times import iso
from tests.capture.history import OTHER, SID
from tests.cli.desk import ACTIVE, HOSTILE, KEY, Desk
from tests.recall.archives import AGENT


def two(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn("fix the walrus", "done"))
    history = desk.archive.history
    desk.take_in(history.turn("feed\nthe zebra", "fed", OTHER, cwd="/srv/zoo/cage"), sid=OTHER)


def test_sessions_are_listed_newest_first(desk: Desk) -> None:
    two(desk)
    code, out, err = desk.run("sessions")
    head, first, second = out.splitlines()
    assert head.split() == ["TITLE", "FOLDER", "AGENT", "TURNS", "CALLS", "FAILED", "ACTIVE", "SESSION"]
    assert first.startswith("feed the zebra  zoo/cage  Claude Code  ") and first.endswith("  99999999")
    assert second.startswith("fix the walrus  ann/shop  Claude Code  ") and second.endswith("  11111111")
    assert (code, err) == (0, "")


def test_the_list_can_be_narrowed(desk: Desk) -> None:
    two(desk)

    def names(*words: str) -> list[str]:
        return [item["id"] for item in desk.json("sessions", *words)["items"]]

    assert names("WALRUS") == [SID]
    assert names("the", "zebra") == [OTHER]
    assert names("zebra", "the") == []
    assert names("--workspace", "zoo") == [OTHER]
    assert names("--agent", AGENT) == [OTHER, SID]
    assert names("--agent", "gemini") == []
    for wrong, said in (("clod_code", "did you mean claude_code?"), ("zzzz", "known agents are")):
        code, _, err = desk.run("sessions", "--agent", wrong)
        assert code == 2 and said in err
    assert names("--agent", "Claude Code") == names("--agent", "claude") == names("--agent", "claude_code") != []
    assert names("--until", "2026-03-01T10:00:03Z") == [SID]
    assert names("--since", "2026-03-01T10:00:03Z") == [OTHER]
    assert names("--since", "2026-03-02") == []


def test_a_list_says_how_to_go_on(desk: Desk) -> None:
    two(desk)
    _, out, err = desk.run("sessions", "--limit", "1")
    assert "99999999" in out and "11111111" not in out
    said, _, cursor = err.strip().rpartition(" ")
    assert said == "1 of 2 sessions; for more, add --after"
    _, out, err = desk.run("sessions", "--limit", "1", "--after", cursor)
    assert "11111111" in out and "99999999" not in out and err == ""


def test_all_has_subagents_and_older_editions(desk: Desk) -> None:
    archive = desk.archive
    archive.subagent("abc1234", archive.helper("abc1234", "user", "look around"))
    data = archive.history.turn("one", "uno")
    desk.take_in(data, archive.history.turn("two", "dos"))
    desk.take_in(data)
    assert len(desk.json("sessions")["items"]) == 1
    _, out, _ = desk.run("sessions", "--all")
    kinds = {line.split()[-1]: re.findall("older version|subagent", line) for line in out.splitlines()[1:]}
    assert "agent-abc1234" in kinds and kinds["agent-abc1234"] == ["subagent"]
    assert sum("older version" in line for line in out.splitlines()) == 1


def test_json_has_the_facts(desk: Desk) -> None:
    two(desk)
    answer = desk.json("sessions", "--limit", "1")
    assert (answer["schema"], bool(answer["next"])) == ("everturn/sessions@1", True)
    (item,) = answer["items"]
    assert (item["id"], item["short"], item["counts"]["turns"], item["workspace"]) == (
        OTHER,
        "99999999",
        1,
        "/srv/zoo/cage",
    )
    assert item["ended"] == "2026-03-01T10:00:04Z"


def test_an_empty_archive_says_what_to_do(desk: Desk) -> None:
    code, out, err = desk.run("sessions")
    assert (code, out) == (3, "")
    assert err == "everturn: there are no sessions in the archive; run `everturn sync`\n"


def test_a_filter_that_fits_nothing_says_so(desk: Desk) -> None:
    two(desk)
    code, out, err = desk.run("sessions", "unicorn")
    assert (code, out) == (3, "") and "no session matches" in err and err.count("\n") == 1


@pytest.mark.parametrize("words", [["--since", "someday"], ["--after", "x"], ["--limit", "0"], ["--limit", "many"]])
def test_a_mistake_is_one_sentence(desk: Desk, words: list[str]) -> None:
    code, out, err = desk.run("sessions", *words)
    assert (code, out) == (2, "") and err.startswith("everturn: ") and err.count("\n") == 1


def test_what_a_transcript_holds_does_not_reach_the_terminal(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn(f"{HOSTILE} {KEY}", "x", cwd=f"/home/{HOSTILE}"))
    for words in (["sessions"], ["sessions", "--json"]):
        _, out, err = desk.run(*words)
        assert not ACTIVE & set(out + err) and KEY not in out
    assert KEY in desk.run("sessions", "--reveal")[1]


def test_a_secret_is_masked_before_the_line_is_cut(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn("x" * 88 + f" {KEY}", "ok"))
    assert KEY[:6] not in desk.run("sessions")[1]


def test_a_session_of_which_only_the_structure_was_kept_is_listed(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn("secret walrus", "ok"), policy=Policy("structure"))
    _, out, _ = desk.run("sessions")
    assert "(only its structure was kept)" in out and "walrus" not in out


def test_it_runs_as_a_program(desk: Desk) -> None:
    two(desk)
    done = desk.process("sessions", "--workspace", "shop")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"11111111" in done.stdout and b"99999999" not in done.stdout


def test_a_terminal_gets_a_table_that_fits(desk: Desk) -> None:
    two(desk)
    done = desk.process("sessions", FORCE_COLOR="1", COLUMNS="90")
    assert done.returncode == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout.decode()).splitlines()
    assert max(map(len, lines)) <= 90 and "\x1b[" in done.stdout.decode()


def test_running_sessions_are_listed_with_their_running_subagents_and_open_calls(desk: Desk) -> None:
    assert desk.run("sessions", "--live")[0] == 3
    archive, now = desk.archive, iso(clock.now())
    old = archive.history.turn("long ago", "done", OTHER)
    pieces = [
        archive.history.line("user", "do it"),
        archive.use("Task", "a", "m1", prompt="look for it"),
        archive.use("Task", "b", "m1", prompt="count it"),
        archive.back("b", "counted"),
    ]
    for name, task in (("walrus", "look for it"), ("otter", "count it")):
        archive.subagent(name, _at(now, archive.helper(name, "user", task)))
    desk.take_in(old, sid=OTHER)
    desk.take_in(_at(now, *pieces))
    (item,) = desk.json("sessions", "--live")["items"]
    assert item["id"] == SID
    assert [child["id"].rpartition("-")[2] for child in item["children"]] == ["walrus"]
    assert [call["name"] for call in item["open_calls"]] == ["Task"]
    code, out, _ = desk.run("sessions", "--live")
    assert code == 0 and "↳ " in out and "no result yet" in out and "long ago" not in out


def _at(time: str, *pieces: bytes) -> bytes:
    return re.sub(rb'"timestamp": "[^"]*"', f'"timestamp": "{time}"'.encode(), b"".join(pieces))
