"""The short text a model gets: the agreed keys, safe strings, never over its budget."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.derive.decision_states import DecisionState
from everturn.derive.file_book import FileState
from everturn.derive.session_state import FailureState, SessionState
from everturn.derive.state_yaml import BUDGET, as_yaml, prune_state
from everturn.text.tokens import fits_tokens

FULL = SessionState(
    id="abc123",
    workspace="/home/user/project",
    model="model-1",
    turn_count=47,
    total_tokens=124500,
    files={"src/auth.py": FileState("src/auth.py", "edited", 11, 3), "tests/test_auth.py": FileState("tests/test_auth.py", "created", 14, 4, made=True)},
    decisions=(DecisionState("Using JWT for authentication", 4, 1, "marker"), DecisionState("PostgreSQL over SQLite for prod", 7, 2, "marker")),
    current_focus="Implementing refresh token rotation",
    errors=(FailureState("pytest", "ImportError: jwt module", 12, 9, resolved_by=13, resolved_seq=12, between=("requirements.txt",)),),
)  # fmt: skip

EXPECTED = """\
session:
  id: "abc123"
  workspace: "/home/user/project"
  model: "model-1"
  turn_count: 47
  total_tokens: 124500

files_touched:
  - path: "src/auth.py"
    action: "edited"
    turn: 12
  - path: "tests/test_auth.py"
    action: "created"
    turn: 15

key_decisions:
  - "Using JWT for authentication (turn 5)"
  - "PostgreSQL over SQLite for prod (turn 8)"

current_focus: "Implementing refresh token rotation"

errors_resolved:
  - "pytest: ImportError: jwt module — fixed by changing requirements.txt (turn 14)"
"""


def read(text: str) -> dict[str, Any]:
    """The YAML that we write, read back: two levels, lists of strings or of maps, strings as in JSON."""
    found: dict[str, Any] = {}
    key = ""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        entry = re.fullmatch(r"( *)(- )?(?:(\w+):)? ?(.*)", line)
        assert entry, line
        depth, item, name, value = len(entry[1]), entry[2], entry[3], entry[4]
        if depth == 0:
            key, found[name] = name, json.loads(value) if value else None
        elif item:
            found[key] = [*(found[key] or []), {name: json.loads(value)} if name else json.loads(value)]
        elif depth == 4:
            found[key][-1][name] = json.loads(value)
        else:
            found[key] = {**(found[key] or {}), name: json.loads(value)}
    return found


def test_the_text_has_the_agreed_shape() -> None:
    assert as_yaml(prune_state(FULL)) == EXPECTED


def test_an_empty_state_has_every_key() -> None:
    assert read(as_yaml(prune_state(SessionState("s")))) == {
        "session": {"id": "s", "workspace": "", "model": "", "turn_count": 0, "total_tokens": 0},
        "files_touched": [], "key_decisions": [], "current_focus": "", "errors_resolved": [],
    }  # fmt: skip


def many(n: int, width: int = 20, pinned: int = 0) -> SessionState:
    return SessionState(
        id="s",
        files={f"{'f' * width}{k}": FileState(f"{'f' * width}{k}", "edited", k, k) for k in range(n)},
        constraints=tuple(DecisionState(f"pin {'p ' * width}{k}", k, k, "pin", pinned=True) for k in range(pinned)),
        decisions=tuple(DecisionState(f"decision {'d ' * width}{k}", k, k, "marker") for k in range(n)),
        errors=tuple(FailureState(f"make {k}", "e " * width, k, k, resolved_by=k, resolved_seq=k) for k in range(n)),
        current_focus="focus " * 30,
    )


def test_a_view_holds_the_latest_and_the_state_all() -> None:
    state = many(30)
    view = prune_state(state)
    assert [len(view.files_touched), len(view.key_decisions), len(view.errors_resolved)] == [20, 10, 5]
    assert view.files_touched[-1]["turn"] == 30
    assert len(state.files) == len(state.decisions) == 30


def test_what_is_pinned_is_never_pruned() -> None:
    view = prune_state(many(30, pinned=12))
    assert [one for one in view.key_decisions if one.startswith("pin")] == view.key_decisions[:12]
    assert len(view.key_decisions) == 22


def test_only_what_was_changed_and_only_what_was_resolved_is_shown() -> None:
    state = SessionState(
        "s",
        files={"a": FileState("a", "read", 0, 0)},
        errors=(FailureState("make", "", 0, 1), FailureState("rm", "", 0, 1, "rejected", resolved_by=1)),
    )
    view = prune_state(state)
    assert view.files_touched == []
    assert view.errors_resolved == []


@pytest.mark.parametrize("pinned", [0, 5, 40, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("width", [5, 60, 400])
@pytest.mark.parametrize("budget", [BUDGET, 300])
def test_the_text_is_never_over_its_budget(width: int, pinned: int, budget: int) -> None:
    text = as_yaml(prune_state(many(100, width, pinned)), budget)
    assert text and fits_tokens(text, budget)
    assert read(text)["session"]["id"] == "s"


def test_pins_outlive_everything_else_where_room_is_short() -> None:
    shown = read(as_yaml(prune_state(many(100, 60, pinned=8)), 400))["key_decisions"]
    assert sum(one.startswith("pin") for one in shown) == 8


def test_there_is_no_text_without_room_for_the_session() -> None:
    assert as_yaml(prune_state(FULL), 5) == ""


@pytest.mark.slow
@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_words_of_a_transcript_stay_strings(words: str) -> None:
    state = SessionState(
        words, words, words,
        files={words: FileState(words, "edited", 0, 0)},
        decisions=(DecisionState(words, 0, 0, "marker"),),
        current_focus=words,
        errors=(FailureState(words, words, 0, 0, resolved_by=0, between=(words,)),),
    )  # fmt: skip
    text = as_yaml(prune_state(state))
    found = read(text)
    assert list(found) == ["session", "files_touched", "key_decisions", "current_focus", "errors_resolved"]
    assert list(found["session"]) == ["id", "workspace", "model", "turn_count", "total_tokens"]
    assert len(found["files_touched"]) == len(found["key_decisions"]) == len(found["errors_resolved"]) == 1
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", text)
