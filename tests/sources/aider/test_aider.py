"""The history file of aider: many sessions in one text, told apart by how lines begin and end."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.derive.commits import find_commits
from everturn.derive.turns import grow_session
from everturn.model.archive import JournalTail
from everturn.sources.aider import SOURCE
from everturn.sources.aider.reader import build, view
from everturn.sources.contract import SearchPlaces, SourceCandidate
from tests.sources.goldens import (
    Whole,
    assert_claims_only,
    assert_keeps_promises,
    assert_same_in_pieces,
    corpus,
    ingest,
    read,
    readings,
)

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.md"))
FIRST, SECOND = "2025-03-01_09-00-00", "2025-03-01_09-00-00-2"


def sample(name: str) -> tuple[bytes, Whole]:
    path = Path(__file__).parent / "samples" / f"{name}.md"
    ((_, data, whole),) = readings(SOURCE, path, SourceCandidate(path))
    return data, whole


def test_each_start_is_a_session_named_after_its_time() -> None:
    assert list(sample("sessions")[1].messages) == [FIRST, SECOND]
    undated, dated = sample("older")[1].messages
    assert undated.startswith("undated-")
    assert dated == "2023-06-10_10-00-00"


def test_headings_and_quotations_of_the_model_are_its_own() -> None:
    _, whole = sample("sessions")
    answers = whole.texts("answer")
    assert "#### Why\n\n> the old note said so" in answers[0]
    assert whole.texts("prompt") == [
        "/add till.py", "make the till add up\n  and keep the names\n  \nthanks", "rename it", "!make test",
        "explain the shop", "explain the shop", "write a readme",
    ]  # fmt: skip


def test_each_edit_is_paired_with_what_became_of_it() -> None:
    _, whole = sample("sessions")
    growth, _ = grow_session(JournalTail(), whole.messages[FIRST])
    edits = [call for call in growth.calls if call.kind != "other"]
    assert [(call.kind, call.status, call.error_class, call.turn) for call in edits] == [
        ("edit", "ok", "", 0), ("create", "ok", "", 0), ("edit", "error", "not_found", 1), ("edit", "ok", "", 1),
    ]  # fmt: skip
    assert [(call.name, call.status) for call in growth.calls if call.kind == "other"] == [("git_commit", "ok")]
    touched = [(artifact.action, artifact.path) for artifact in growth.artifacts]
    assert touched == [("edited", "till.py"), ("created", "tests/test_till.py"), ("edited", "till.py")]
    whole_file, _ = grow_session(JournalTail(), whole.messages[SECOND])
    assert [(a.action, a.path) for a in whole_file.artifacts] == [("edited", "README.md")]
    older, _ = grow_session(JournalTail(), sample("older")[1].messages["2023-06-10_10-00-00"])
    assert [call.status for call in older.calls] == ["ok", "ok"]


def test_an_edit_that_was_never_applied_does_not_take_the_result_of_a_later_one() -> None:
    block = "a.py\n```\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```\n"
    text = f"# aider chat started at 2025-01-01 00:00:00\n\n> Aider v1  \n\n#### one  \n\n{block}\n#### two  \n\n{block}\n> Applied edit to src/a.py  \n"
    whole = read(SOURCE, SourceCandidate(Path("x")), text.encode())
    growth, _ = grow_session(JournalTail(), whole.all())
    assert [(call.turn, call.status) for call in growth.calls] == [(0, "open"), (1, "ok")]


def test_tokens_are_those_of_the_response_before() -> None:
    _, whole = sample("sessions")
    growth, _ = grow_session(JournalTail(), whole.messages[FIRST])
    first = growth.steps[0]
    assert (first.tokens_in, first.tokens_out, first.tokens_cache_read) == (3300, 123, 1250)
    assert {step.model for step in growth.steps} == {"anthropic/claude-3-7-sonnet"}
    assert len(growth.steps) == 3


def test_an_interrupt_and_an_error_in_the_models_place_are_what_they_are() -> None:
    _, whole = sample("sessions")
    kinds = [
        (m.kind, m.role) for m in whole.messages[FIRST] if m.kind in ("interrupt", "shell") or m.origin == "system"
    ]
    assert ("interrupt", "system") in kinds
    assert ("notice", "assistant") in kinds
    assert ("shell", "user") in kinds


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=60)
def test_a_file_that_grows_gives_the_same_turns_and_words(path: Path, seed: int) -> None:
    data, dice = path.read_bytes(), random.Random(seed)
    cuts = sorted(dice.sample(range(len(data)), 6))
    grown, whole = (
        read(SOURCE, SourceCandidate(path), data, cuts, [True] * 6),
        read(SOURCE, SourceCandidate(path), data),
    )
    assert list(grown.messages)[-1] == list(whole.messages)[-1]
    for field in ("prompt", "answer"):
        assert "".join("".join(grown.texts(field)).split()) == "".join("".join(whole.texts(field)).split())


def test_half_a_line_waits_for_the_rest() -> None:
    data = b"# aider chat started at 2025-01-01 00:00:00\n\n> Aider v1  \n\n#### do"
    whole = read(SOURCE, SourceCandidate(Path("x")), data)
    assert whole.consumed == data.rfind(b"\n") + 1
    assert [(p.kind, p.provisional) for p in whole.tail] == [("torn_tail", True)]
    again = read(SOURCE, SourceCandidate(Path("x")), data + b" it  \n", [len(data)], [True])
    assert again.texts("prompt") == ["do it"]


def test_history_files_are_found_below_named_folders_and_at_home(tmp_path: Path) -> None:
    name = ".aider.chat.history.md"
    for folder in ("home", "code/shop", "code/node_modules/x"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).write_bytes(SAMPLES[0].read_bytes())
    (tmp_path / "code/link").symlink_to(tmp_path / "home")
    places = SearchPlaces(tmp_path / "home", {}, "linux", {"aider": (tmp_path / "code",)})
    roots = SOURCE.roots(places)
    assert roots == [tmp_path / "code", tmp_path / "home" / name]
    found = [one.path for root in roots for one in SOURCE.find(root)]
    assert found == [tmp_path / "code/shop" / name, tmp_path / "home" / name]
    named = SearchPlaces(tmp_path, {"AIDER_CHAT_HISTORY_FILE": "~/code/shop/" + name}, "linux")
    assert SOURCE.roots(named) == [tmp_path / "code/shop" / name]


def test_a_history_is_known_by_its_content() -> None:
    path = Path("/x/notes.md")
    assert SOURCE.sniff(path, b"\n# aider chat started at 2025-03-01 09:00:00\n\n") == SourceCandidate(path)
    for other in (b"", b"# Notes\n\n# aider chat started at x\n", b"#### heading\n", b"{}"):
        assert SOURCE.sniff(path, other) is None
    usual = Path("/x/.aider.chat.history.md")
    assert SOURCE.sniff(usual, b"#### a prompt\n") == SourceCandidate(usual)


def test_a_history_is_searched_in_the_archive(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    path.write_bytes((Path(__file__).parent / "samples" / "sessions.md").read_bytes())
    with ingest("aider", path) as taken:
        assert (taken.report.sessions, taken.report.problems) == (2, 0)
        assert taken.hits("keep the names") == [FIRST]
        assert taken.hits("write a readme") == [SECOND]


@pytest.mark.parametrize("path", corpus("aider"))
def test_a_real_history_is_read_whole(path: Path) -> None:
    ((found, data, whole),) = readings(SOURCE, path)
    assert_keeps_promises(SOURCE, data, whole, lines=False)
    assert_same_in_pieces(SOURCE, found, data, 7, stopping=False)
    assert len(whole.texts("prompt")) == data.count(b"\n#### ")
    with ingest("aider", path) as taken:
        assert taken.report.sessions == len(whole.messages)


def test_only_histories_are_taken_for_histories() -> None:
    assert_claims_only(SOURCE, "aider")


def test_a_commit_of_aider_is_a_commit_of_the_session() -> None:
    lines = "> Committing till.py before applying edits.  \n> Commit 1a2b3c4 fix: count the coins  \n> You can use /undo.  \n"
    message = view(f"{lines}> Commit 5d6e7f8 feat: add a lamp  \n".encode())
    assert message is not None
    starts = [block.call for block in message.blocks if block.call is not None]
    results = [block.text for block in message.blocks if block.result is not None]
    found = [find_commits(start, output, True) for start, output in zip(starts, results, strict=True)]
    assert [(one.hash, one.subject) for few in found for one in few] == [
        ("1a2b3c4", "fix: count the coins"), ("5d6e7f8", "feat: add a lamp"),
    ]  # fmt: skip


def test_a_result_without_blanks_at_its_end_is_one_line() -> None:
    block = "a.py\n```\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```\n"
    text = f"# aider chat started at 2025-01-01 00:00:00\n\n> Aider v1  \n\n#### one  \n\n{block}\n> Tokens: 1 sent.  \n> Applied edit to a.py\n\n{block}\n> Applied edit to a.py  \n"
    growth, _ = grow_session(JournalTail(), read(SOURCE, SourceCandidate(Path("x")), text.encode()).all())
    assert [call.status for call in growth.calls] == ["ok", "ok"]


def _passed_on(answer: str, prompt: str) -> list[tuple[str, bool]]:
    lines = ["# aider chat started at 2025-03-01 09:00:00", "", "#### add a login page  ", "", answer, ""]
    lines += ["> Tokens: 2.1k sent, 300 received.  ", ""]
    lines += [f"#### {line}  ".replace("####   ", "####  ") for line in prompt.splitlines()]
    lines += ["", "The page is there.", ""]
    data = "\n".join(lines).encode()
    cut = data.index(b"\n\n> Tokens") + 2  # the state of the reader is stored between the two
    read_once, in_pieces = (read(SOURCE, SourceCandidate(Path("x")), data, *how) for how in ((), ([cut], [True])))
    said = [(one.origin, one.starts_turn) for one in read_once.all() if one.role == "user"]
    assert said == [(one.origin, one.starts_turn) for one in in_pieces.all() if one.role == "user"]
    return said


PLAN = "Let us add a page with two fields and a button.\n\n1. **login.html**: the form\n2. `login.py`: the check\n\n    return ok"


@pytest.mark.parametrize("plan", [PLAN, f"{PLAN}\n\n{PLAN * 40}"], ids=["short", "long"])
def test_the_plan_that_aider_passes_from_architect_to_editor_is_not_the_words_of_a_person(plan: str) -> None:
    assert _passed_on(plan, plan) == [("human", True), ("agent", False)]


def test_a_person_who_types_something_else_or_little_is_a_person() -> None:
    assert _passed_on(PLAN, "Let us add a page with three fields and no button.") == [("human", True)] * 2
    assert _passed_on("yes", "yes") == [("human", True)] * 2


@pytest.mark.parametrize("end", ["\n", "\r\r\n"])
def test_a_message_of_several_lines_on_the_command_line_is_not_an_answer(end: str) -> None:
    given = (
        f"> /bin/aider --architect --message {end}   1. Read the list.{end}   2. Write the page.  \n> Aider v0.86.2  \n"
    )
    prompt = "####   1. Read the list.  \n####   2. Write the page.  \n"
    text = (
        f"# aider chat started at 2025-01-01 00:00:00\n\n{given}\n{prompt}\nThe page is there.\n\n> Tokens: 1 sent.  \n"
    )
    messages = read(SOURCE, SourceCandidate(Path("x")), text.encode()).all()
    assert [one.origin for one in messages] == ["system", "human", "model", "model"]


def test_a_route_with_signs_in_its_name_is_a_file() -> None:
    block = "```tsx\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n"
    for path in ("app/routes/lamps.$name.tsx", "app\\routes\\($locale).lamps.tsx", "pages/#1,2.md"):
        blocks = build("model", f"\nHere:\n\n{path}\n{block}").blocks
        assert [one.call.path for one in blocks if one.call is not None] == [path]
