"""The yardstick of the restore benchmark: what it reads from raw records, and how it measures a document."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.restore.citations import resolves
from benchmarks.restore.constraints import hashed, sentences
from benchmarks.restore.measuring import Score, commits, edited_files, failing_commands, open_items, total
from benchmarks.restore.truth import Call, Truth, blocks, items, local, tags, truth_of
from everturn.restore.document import Evidence


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in records)


def shell(command: str, failed: bool, output: str = "") -> Call:
    return Call(0, "Bash", {"command": command}, output, failed)


def test_calls_and_results_are_read_from_blocks() -> None:
    data = lines(
        {"message": {"role": "assistant", "content": [
            {"type": "tool_use", "id": "1", "name": "Edit", "input": {"file_path": "/w/a.py"}},
            {"type": "tool_use", "id": "2", "name": "Edit", "input": {"file_path": "/w/b.py"}},
        ]}},
        {"message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": "ok"},
            {"type": "tool_result", "tool_use_id": "2", "content": "no", "is_error": True},
        ]}},
    )  # fmt: skip
    assert truth_of(blocks(data), "/w").edited == {"a.py": 1}


def test_patches_and_exit_codes_are_read_from_items() -> None:
    patch = "apply_patch <<'E'\n*** Begin Patch\n*** Update File: x/y.py\n*** End Patch\nE"
    calls = [
        {"type": "function_call", "call_id": "1", "name": "shell", "arguments": json.dumps({"command": ["bash", "-lc", patch]})},
        {"type": "function_call_output", "call_id": "1", "output": json.dumps({"output": "ok", "metadata": {"exit_code": 0}})},
        {"type": "function_call", "call_id": "2", "name": "shell", "arguments": json.dumps({"command": ["bash", "-lc", "make"]})},
        {"type": "function_call_output", "call_id": "2", "output": json.dumps({"output": "no", "metadata": {"exit_code": 2}})},
    ]  # fmt: skip
    truth = truth_of(items(lines(*({"type": "response_item", "payload": one} for one in calls))), "")
    assert truth.edited == {"x/y.py": 1} and truth.failing == {"make": 1}


def test_calls_are_read_from_tags_with_the_offsets_of_their_messages() -> None:
    messages = [
        {"role": "user", "content": "ü go"},
        {"role": "assistant", "content": "<write_to_file><path>a.py</path></write_to_file>"},
        {"role": "user", "content": "saved"},
    ]
    data = json.dumps(messages, ensure_ascii=False).encode()
    (call,) = tags(data)
    assert call.given == {"path": "a.py"} and call.failed is False
    assert data[call.at :].startswith(b'{"role": "assistant"')


@pytest.mark.parametrize(
    ("calls", "failing"),
    [
        ([shell("make", True)], {"make": 1}),
        ([shell("make", True), shell("make", True)], {"make": 2}),
        ([shell("make", True), shell("cd x && make 2>&1", False)], {}),
        ([shell("make", True), shell("make | tail", False)], {"make": 1}),
        ([shell("make", False), shell("make", True)], {"make": 1}),
        ([shell("grep x y", True)], {}),
        ([shell("make", True, "The user doesn't want to proceed")], {}),
        ([shell('git commit -m "a"', True), shell('git commit -m "b"', False)], {}),
    ],
)
def test_a_command_fails_until_it_went_well(calls: list[Call], failing: dict[str, int]) -> None:
    assert truth_of(calls, "").failing == failing


def test_the_last_plan_counts() -> None:
    plan = [{"content": "one", "status": "completed"}, {"content": "two", "status": "pending"}]
    assert truth_of([Call(0, "TodoWrite", {"todos": plan}, "", False)], "").open_items == ["two"]


def test_commits_are_read_from_what_was_printed() -> None:
    assert truth_of([shell("git commit -m x", False, "[main abc1234] subject\n 1 file")], "").commits == {
        "abc1234": "subject"
    }


def test_a_path_is_seen_from_the_workspace() -> None:
    assert local("C:\\W\\a\\b.py", "c:\\w") == "a/b.py" and local("./a.py", "") == "a.py"


DOCUMENT = """# SESSION SUMMARY

## Artifacts referenced or created
- `a.py` edited ×3 [t1 #1]
- `ghost.py` edited [t1 #1]

## Still failing
- `make test` failed 2 times, last in turn 3: error [t3 #4]

## Plan items open
- [ ] write the docs [t1 #2]

## Commits
- `abc1234` a subject [t1 #3]
"""


def test_a_document_is_held_against_the_truth() -> None:
    truth = Truth()
    truth.edited.update({"src/a.py": 3, "b.py": 1})
    truth.failing.update({"make test": 2})
    truth.commits, truth.open_items = {"abc1234": "a subject", "fff0000": "x"}, ["write the docs"]
    files = edited_files(DOCUMENT, truth)
    assert (files.recall, files.precision) == (0.75, 0.75) and files.missing == ["b.py"] and files.wrong == ["ghost.py"]
    assert failing_commands(DOCUMENT, truth, ["make test"]).recall == 1
    assert (commits(DOCUMENT, truth).recall, commits(DOCUMENT, truth).precision) == (0.5, 1)
    assert open_items(DOCUMENT, truth).precision == 1


def test_scores_add_up_and_nothing_has_no_share() -> None:
    assert total([Score(1, 2), Score(1, 2)]).recall == 0.5
    assert total([]).recall is None and total([]).precision is None


def test_a_citation_resolves_only_where_its_words_stand() -> None:
    data = lines({"text": "never\n push"}, {"args": json.dumps({"cmd": "make"})})
    first, second = data.index(b"\n") + 1, len(data)
    assert resolves(data, Evidence(1, 0, 0, start=0, size=first, quote="never push"))
    assert resolves(data, Evidence(1, 0, 0, start=first, size=second - first, quote="make"))
    assert not resolves(data, Evidence(1, 0, 0, start=0, size=first, quote="make"))
    assert not resolves(data, Evidence(1, 0, 0, start=second, size=10, quote=""))


def test_a_labelled_sentence_is_known_by_its_words() -> None:
    assert sentences("One. Two!\nthree") == ["One.", "Two!", "three"]
    assert hashed("Never  push.") == hashed("never push") != hashed("always push")
