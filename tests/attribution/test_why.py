"""`everturn why`, as a person asks it."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from everturn.store.contract import Store
from tests.attribution.conftest import Run
from tests.planted_repository import Line, PlantedRepository, Session, tell_story
from tests.planted_score import score_story


def plant(story: PlantedRepository, client: str = "claude") -> Session:
    """One session that asks, gets a go-ahead, edits, tests, and commits."""
    session = story.agent(client)
    story.prompt(session, "Add a function that rounds prices to src/price.py, please")
    story.say(session, "I would add round_price with a limit. My plan is to write src/price.py. Shall I go ahead?")
    story.prompt(session, "go ahead")
    story.say(session, "Writing the rounding helper first.")
    story.write(
        session,
        "src/price.py",
        ["def round_price(value, limit):", "    return round(value, limit)", "", "LIMIT_OF_PRICES = 2"],
    )
    if client == "claude":
        story.call(session, "Bash", {"command": "python -m pytest tests -q"}, "3 passed in 0.10s")
    story.session_commit(session, "Round prices")
    story.save_transcripts()
    return session


def ask(run: Run, story: PlantedRepository, target: str, *more: str) -> dict[str, Any]:
    code, out, err = run("why", target, "-C", str(story.root), "--json", *more)
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_a_line_names_its_turn_and_the_request_behind_a_go_ahead(
    story: PlantedRepository, run: Run, client: str
) -> None:
    session = plant(story, client)
    run("sync")
    item = ask(run, story, "src/price.py:1")["items"][0]
    assert (item["level"], item["session"], item["turn"]) == ("replayed", session.id, 2)
    assert item["asked"].startswith("Add a function that rounds prices")
    assert item["asked_from"] == {"session": session.id, "turn": 1}
    assert item["go_ahead"] == "go ahead" and "price" in item["approves"]
    assert item["said_before"] == "Writing the rounding helper first."
    assert item["evidence"]["size"] > 0
    code, out, _ = run("why", "src/price.py:1", "-C", str(story.root))
    assert code == 0 and "REPLAYED" in out and "said just before" in out and "because" not in out
    if client == "claude":
        assert item["tests"][0]["verdict"] == "passed" and "then ran" in out


def test_a_command_of_the_client_is_no_request(story: PlantedRepository, run: Run) -> None:
    session = story.agent("claude")
    story.prompt(session, "Add the limits of all prices to src/limit.py")
    story.say(session, "I would write them into one file. Shall I?")
    story.prompt(
        session,
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>",
    )
    story.prompt(session, "yes, lets get this going")
    story.write(session, "src/limit.py", ["LIMIT_OF_PRICES = 2", "LIMIT_OF_ORDERS = 7"])
    story.prompt(session, "Now write a page about the limits for the customers")
    story.commit("Limits")
    story.save_transcripts()
    run("sync")
    item = ask(run, story, "src/limit.py:1")["items"][0]
    assert item["asked"].startswith("Add the limits") and item["go_ahead"] == "yes, lets get this going"


def test_lines_of_others_have_no_answer_and_say_which_kind(story: PlantedRepository, run: Run) -> None:
    plant(story)
    story.human_edit("src/price.py")
    story.commit("By hand")
    story.human_file("src/new.py", 5)
    story.commit("A new file by hand")
    run("sync")
    truth = story.truth()["src/price.py"]
    for answer, line in zip(ask(run, story, "src/price.py")["items"], truth, strict=True):
        if line.text.strip():
            assert bool(answer["level"]) == (line.writer is not None), line
            assert answer["level"] or answer["silence"] == "not_this_line"
    assert {item["silence"] for item in ask(run, story, "src/new.py")["items"]} == {"no_session"}
    assert {item["silence"] for item in ask(run, story, "src/legacy.py")["items"]} == {"before_archive"}


def test_a_bracket_that_git_may_have_mixed_up_has_no_answer(story: PlantedRepository, run: Run) -> None:
    session = story.agent("claude")
    story.prompt(session, "write the first function")
    written = ["function one() {", "  firstCallOfOne();", "}", "lastLineOfFile();"]
    story.write(session, "src/one.js", written)
    story.session_commit(session, "One")
    lines = story.lines("src/one.js")
    lines[2:2] = [Line(text, None) for text in ("}", "function byHand() {", "  secondCallByHand();")]
    story.save("src/one.js")
    story.commit("By hand")
    story.save_transcripts()
    run("sync")
    items = ask(run, story, "src/one.js")["items"]
    assert [bool(item["level"]) for item in items] == [True, True, False, False, False, False, True]
    assert "ambiguous" in {items[2]["silence"], items[5]["silence"]}
    for item in items:  # a line alone has the answer that it has in its file
        alone = ask(run, story, f"src/one.js:{item['line']}")["items"][0]
        assert (alone["level"], alone["silence"]) == (item["level"], item["silence"])


def test_a_file_that_the_agent_copied_from_what_it_read_is_not_its_own(story: PlantedRepository, run: Run) -> None:
    session = story.agent("codex")
    story.prompt(session, "add a limit to the file that I just wrote")
    story.human_file("src/mine.py", 12)
    story.rewrite(session, "src/mine.py")
    story.commit("Mine, with a limit")
    story.save_transcripts()
    run("sync")
    for answer, line in zip(ask(run, story, "src/mine.py")["items"], story.truth()["src/mine.py"], strict=True):
        assert not answer["level"] or line.writer is not None


@pytest.mark.parametrize("is_edited", [False, True], ids=["reformatted", "edited"])
@pytest.mark.parametrize("is_seen", [False, True], ids=["at the end", "between two sessions"])
def test_a_line_keeps_its_writer_only_where_nothing_but_the_format_changed(
    story: PlantedRepository, run: Run, is_edited: bool, is_seen: bool
) -> None:
    session = story.agent("claude")
    story.prompt(session, "add the totals")
    story.write(session, "src/total.py", ["def total(prices):", "  weight_of_all = sum(prices)", "", "LAST_OF_ALL = 1"])
    lines = story.lines("src/total.py")
    lines[1] = Line("    weight_of_all = sum(prices)", None)
    if is_edited:
        lines.insert(1, Line("    if prices:", None))
    story.save("src/total.py")
    if is_seen:
        later = story.agent("claude")
        story.prompt(later, "write it again, with one more limit")
        story.write(later, "src/total.py", [*(line.text for line in lines), "LIMIT_OF_ALL = 2"])
    story.commit("Totals")
    story.save_transcripts()
    run("sync")
    items = {one["text"].strip(): one for one in ask(run, story, "src/total.py")["items"]}
    assert items["LAST_OF_ALL = 1"]["session"] == items["def total(prices):"]["session"] == session.id
    changed = items["weight_of_all = sum(prices)"]
    assert changed["session"] == (None if is_edited else session.id)
    assert changed["silence"] == ("not_this_line" if is_edited else None)


def test_uncommitted_lines_have_answers_too(story: PlantedRepository, run: Run) -> None:
    session = plant(story)
    story.prompt(session, "one more limit")
    story.patch(session, "src/price.py", 3, 1, ["LIMIT_OF_PRICES = 2", "LIMIT_OF_ORDERS = 7"])
    story.save_transcripts()
    run("sync")
    item = ask(run, story, "src/price.py:5")["items"][0]
    assert (item["commit"], item["session"], item["turn"]) == (None, session.id, 3)


def test_a_patch_that_a_script_of_codex_applied_is_an_edit(story: PlantedRepository, run: Run) -> None:
    session = story.agent("codex")
    story.prompt(session, "Write the rates with a script, please")
    before, moved = story.text("src/base.py"), "src/rates.py"
    lines = story.lines("src/base.py")
    lines.insert(0, Line("BASE_RATE_OF_TAX = 19", (session.id, 0)))
    story.trees[story.root][moved] = [Line("OTHER_RATE_OF_TAX = 7", (session.id, 0))]
    story.save("src/base.py")
    story.save(moved)
    first = before.splitlines()[0]
    changes = {
        str(story.root / "src/base.py"): {"type": "update", "unified_diff": f"@@ -1 +1,2 @@\n+{lines[0].text}\n {first}\n", "move_path": None},
        str(story.root / moved): {"type": "add", "content": "OTHER_RATE_OF_TAX = 7\n"},
    }  # fmt: skip
    call = {"name": "exec", "call_id": "call_of_script_1", "input": "await tools.apply_patch(made(rates))"}
    event = {
        "type": "patch_apply_end",
        "call_id": "exec-4d1c",
        "stdout": "Success.",
        "success": True,
        "changes": changes,
    }
    story._codex(session, "response_item", type="custom_tool_call", **call)
    story._codex(session, "event_msg", **event)
    story._codex(session, "response_item", type="custom_tool_call_output", call_id="call_of_script_1", output="Done")
    failed = {
        **event,
        "call_id": "exec-4d1d",
        "success": False,
        "changes": {"src/never.py": {"type": "add", "content": "x"}},
    }
    story._codex(session, "event_msg", **failed)
    story.tick()
    story.commit("Rates")
    story.save_transcripts()
    run("sync")
    for target in ("src/base.py:1", f"{moved}:1"):
        item = ask(run, story, target)["items"][0]
        assert (item["level"], item["session"], item["tool"]) == ("replayed", session.id, "apply_patch")
    _, document, _ = run("restore", session.id)
    changed = document.partition("## Artifacts referenced or created")[2].partition("##")[0]
    assert "src/base.py" in changed and moved in changed and "never.py" not in changed


def test_a_commit_and_a_range_list_the_turns(story: PlantedRepository, run: Run) -> None:
    session = plant(story)
    run("sync")
    code, out, _ = run("why", "HEAD", "-C", str(story.root))
    assert code == 0 and f"{session.id} · turn 2" in out and "replayed 100 %" in out
    assert ask(run, story, "HEAD~1..HEAD")["items"][0]["text"] == "def round_price(value, limit):"
    assert ask(run, story, "HEAD")["commits"][0]["sessions"] == [session.id]
    _, out, _ = run("show", session.id)  # … and back: from the turn to its commit
    assert f"↳ commit {story.head()[:7]} Round prices" in out
    shown = json.loads(run("show", session.id, "--json")[1])["items"][1]["passages"]
    commits = [one["commits"] for one in shown if "commits" in one]
    assert commits == [[{"commit": story.head()[:7], "subject": "Round prices", "url": None}]]
    _, out, _ = run("restore", session.id)
    assert re.search(rf"- `{story.head()[:7]}` Round prices \[t2 #\d+\]", out)


def test_porcelain_is_that_of_git_with_our_headers(story: PlantedRepository, run: Run) -> None:
    session = plant(story)
    run("sync")
    code, out, _ = run("why", "src/price.py", "-C", str(story.root), "--porcelain")
    assert code == 0
    heads = [line for line in out.splitlines() if line[:40] == story.head()]
    blamed = story.git("blame", "--line-porcelain", "src/price.py").splitlines()
    assert [line.split()[:3] for line in heads] == [line.split()[:3] for line in blamed if line[:40] == story.head()]
    assert f"everturn-session {session.id}" in out and "everturn-level replayed" in out
    own = [line for line in out.splitlines() if not line.startswith("everturn-")]
    assert own == [line for line in blamed if not line.startswith(("previous ", "boundary"))]
    assert [line for line in out.splitlines() if line.startswith("\t")] == [
        line for line in blamed if line.startswith("\t")
    ]


def test_older_equal_text_is_only_shown_when_asked_for(story: PlantedRepository, run: Run) -> None:
    session = plant(story)
    lines = story.lines("src/price.py")
    taken = lines.pop(3)
    story.save("src/price.py")
    story.commit("Take it away")
    story.tick(4000)
    lines.append(type(taken)(taken.text, None))
    story.save("src/price.py")
    story.commit("Typed again by hand")
    run("sync")
    last = len(lines)
    assert ask(run, story, f"src/price.py:{last}")["items"][0]["level"] is None
    item = ask(run, story, f"src/price.py:{last}", "--old")["items"][0]
    assert item["level"] is None and item["same_text"][0]["session"] == session.id
    told = f"same text earlier   claude_code · {session.id} · turn 2   src/price.py  {last}"
    assert told in run("why", "src/price.py", "-C", str(story.root), "--old")[1]
    assert "same text earlier" not in run("why", "src/price.py", "-C", str(story.root))[1]


def test_another_session_that_wrote_the_same_text_is_named_too(story: PlantedRepository, run: Run) -> None:
    text = "TOTAL_OF_PRICES = sum(prices.values())"
    sessions = []
    for request in ("add the total", "add it again, it was lost"):
        session = story.agent("claude")
        story.prompt(session, request)
        anchor = story.lines("src/base.py")[2].text
        story.patch(session, "src/base.py", 2, 1, [anchor, text, f"# for {request}"])
        sessions.append(session)
        if len(sessions) == 1:  # a person takes it away again, and nobody commits
            del story.lines("src/base.py")[3:5]
            story.save("src/base.py")
    story.commit("Total")
    story.save_transcripts()
    run("sync")
    item = ask(run, story, "src/base.py:4")["items"][0]
    assert (item["text"], item["session"]) == (text, sessions[1].id)
    assert [one["session"] for one in item["alternatives"]] == [sessions[0].id]
    assert ask(run, story, "src/base.py:5")["items"][0]["alternatives"] == []
    assert "also wrote this text" in run("why", "src/base.py:4", "-C", str(story.root))[1]
    assert "1 line that another session wrote too" in run("why", "HEAD", "-C", str(story.root))[1]
    porcelain = run("why", "src/base.py:4", "-C", str(story.root), "--porcelain")[1]
    assert f"everturn-also claude_code {sessions[0].id} 1" in porcelain


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("src/price.py:99", "has 4 lines"),
        ("src/price.py:3-1", "lines count from 1"),
        ("src/none.py:3", "there is no file"),
        ("loose.txt", "not tracked by git"),
        ("picture.bin", "binary"),
        ("src", "is a folder"),
        ("nosuchcommit", "neither a file nor a commit"),
        ("nosuchfile.py", "neither a file nor a commit"),
        ("nosuch..HEAD", "there is no commit"),
        ("HEAD..HEAD", "no commits of its own"),
    ],
)
def test_bad_input_gets_one_sentence(story: PlantedRepository, run: Run, target: str, words: str) -> None:
    plant(story)
    (story.root / "picture.bin").write_bytes(b"\0\1\2" * 100)
    story.commit("A picture")
    (story.root / "loose.txt").write_text("loose\n")
    run("sync")
    code, out, err = run("why", target, "-C", str(story.root))
    assert code in (2, 3) and not out
    assert words in err.lower() and len(err.strip().splitlines()) == 1


def test_no_repository_and_a_shallow_clone_are_told(story: PlantedRepository, run: Run, tmp_path: Path) -> None:
    story.human_file("src/more.py", 3)
    story.commit("More")
    plant(story)
    run("sync")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.py").write_text("a = 1\n")
    code, _, err = run("why", "a.py", "-C", str(tmp_path / "elsewhere"))
    assert code == 2 and "not in a git repository" in err
    for depth, share in (
        ("1", "replayed 0 %"),
        ("2", "replayed 100 %"),
    ):  # where it ends, git shows every line as added
        clone = tmp_path / depth / "shop"
        subprocess.run(["git", "clone", "-q", "--depth", depth, f"file://{story.root}", str(clone)], check=True)
        code, out, _ = run("why", "src/price.py", "-C", str(clone))
        assert code == 0 and "shallow clone" in out and share in out
    story.git("worktree", "add", "-q", "--detach", str(tmp_path / "detached"))
    assert "REPLAYED" in run("why", "src/price.py:1", "-C", str(tmp_path / "detached"))[1]
    subprocess.run(["git", "clone", "-q", "--bare", str(story.root), str(tmp_path / "bare")], check=True)
    code, out, _ = run("why", "HEAD", "-C", str(tmp_path / "bare"))
    assert code == 0 and "3 lines" in out
    for target in ("src/price.py", "src/price.py:1"):
        code, _, err = run("why", target, "-C", str(tmp_path / "bare"))
        assert code == 2 and "no working tree" in err
    story.root.rename(tmp_path / "moved")  # the worktree is cut off from its repository
    code, _, err = run("why", "src/price.py:1", "-C", str(tmp_path / "detached"))
    assert code == 2 and len(err.strip().splitlines()) == 1


def test_a_hostile_repository_runs_nothing(story: PlantedRepository, run: Run, tmp_path: Path) -> None:
    plant(story)
    mark, evil = tmp_path / "mark", tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch '{mark}'\ncat\n")
    evil.chmod(evil.stat().st_mode | stat.S_IXUSR)
    (story.root / ".gitattributes").write_text("*.py diff=evil filter=evil\n")
    story.commit("Attributes")
    for key in ("core.fsmonitor", "diff.evil.textconv", "diff.evil.command", "diff.external", "filter.evil.clean",
                "filter.evil.smudge", "gpg.program", "core.pager", "core.sshCommand"):  # fmt: skip
        story.git("config", key, str(evil))
    story.git("config", "log.showSignature", "true")
    os.utime(story.root / "src/price.py")
    mark.unlink(missing_ok=True)
    run("sync")
    for target in ("src/price.py:1", "src/price.py", "HEAD", "HEAD~2..HEAD"):
        assert run("why", target, "-C", str(story.root))[0] == 0
    assert not mark.exists()


def test_forget_drops_the_edits_and_rebuild_makes_them_again(story: PlantedRepository, run: Run, store: Store) -> None:
    session = plant(story)
    run("sync")
    number = store.sessions_like(session.id)[0].id
    before = store.edits_of_session(number)
    assert before
    assert run("rebuild")[0] == 0
    assert store.edits_of_session(number) == before
    assert run("forget", session.id, "--yes")[0] == 0
    assert store.edits_of_file(["price.py"]) == []
    assert ask(run, story, "src/price.py:1")["items"][0]["level"] is None


def test_a_secret_in_a_request_is_masked(story: PlantedRepository, run: Run) -> None:
    key = "AKIA" + "Q7XW2MZP4RTY5LNB"
    session = story.agent("claude")
    story.prompt(session, f"write the client for the service with the key {key} into src/client.py")
    story.write(session, "src/client.py", ["client = connect_to_service()"])
    story.commit("Client")
    story.save_transcripts()
    run("sync")
    for more in ((), ("--json",), ("--porcelain",)):
        code, out, _ = run("why", "src/client.py:1", "-C", str(story.root), *more)
        assert code == 0 and key not in out


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "seed", [3, pytest.param(12, marks=pytest.mark.slow), pytest.param(13, marks=pytest.mark.slow)]
)
def test_planted_histories_are_answered_and_not_wrong(tmp_path: Path, run: Run, store: Store, seed: int) -> None:
    """Amended, rebased, squashed, picked, merged, formatted and renamed work of interleaved sessions and a person."""
    story = tell_story(tmp_path / "place", seed)
    run("sync")
    score = score_story(story, store)
    assert score.archived > 300
    assert score.right >= 0.95 * score.archived, score.missed_lines[:5]
    assert score.wrong <= max(0.003 * score.answered, 1), score.wrong_lines[:5]
    assert score.right_turn == score.right
