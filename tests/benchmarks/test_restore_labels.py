"""The yardstick of the sections of a document: labels as places, what counts as the same, and claims about stories."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.restore.__main__ import main
from benchmarks.restore.claims import KINDS, claims, stories
from benchmarks.restore.ends import ASIDE, aside_figures
from benchmarks.restore.labels import (
    HALVES,
    LABELS,
    NAMED,
    SPOKEN,
    LabelledItem,
    LabelledSession,
    Place,
    archive_labelled,
    find_marked,
    labelled_sessions,
    mark,
    sentence_around,
)
from benchmarks.restore.learn import SENTENCES, TURNS, UNITS, Row, cross_validated, learn
from benchmarks.restore.match import (
    bare_command,
    content_words,
    same_commit,
    same_hash,
    same_path,
    says_goal,
    says_item,
)
from benchmarks.restore.measuring import Score
from benchmarks.restore.sections import interval, restored_sessions
from benchmarks.restore.trial import is_confirmed, summary_text
from everturn.model.archive import Session
from everturn.restore.document import Document, DocumentSection, Evidence, Statement
from tests.capture.history import SID, History

SESSION = Session(agent="claude_code", native_id="s", version=1, kind="main")
RULE = "Never push to main without asking me first."


def labelled(**more: object) -> LabelledSession:
    return LabelledSession(SESSION, "open", (), (), {}, **more)  # type: ignore[arg-type]


def statement(text: str, *messages: int) -> Statement:
    return Statement(text, tuple(Evidence(1, 0, one) for one in messages))


def item(message: int, quote: str, *commands: str, sentence: str = "") -> LabelledItem:
    return LabelledItem((Place(message, quote, sentence or quote),), True, commands)


def label(seq: int, text: str, quote: str) -> list[object]:
    start = text.encode().index(quote.encode())
    return [seq, start, len(quote.encode()), mark(quote)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus of one session, and its labels beside it."""
    history = History(tmp_path / "agent")
    first = f"Please give the shop a cart — größer als jetzt. {RULE}"
    answer = "I added the cart. Next step: write the tests."
    history.write(history.turn(first, answer))
    folder = tmp_path / "corpus" / "claude-code"
    folder.mkdir(parents=True)
    history.file().rename(folder / f"{SID}.jsonl")
    sections: dict[str, list[object]] = {key: [] for key in (*SPOKEN, *NAMED)}
    sections["constraints"] = [{"readers": "AB", "places": [label(0, first, RULE)]}]
    sections["next_steps"] = [
        {"readers": "AB", "places": [label(1, answer, "write the tests")]},
        {"readers": "A", "places": [[1, 0, 5, mark("other")]]},  # words that are no longer there
    ]
    sections["key_phrases"] = [{"readers": "AB", "places": [label(0, first, "push to  main".replace("  ", " "))]}]
    goal = {"places": [label(0, first, "give the shop a cart")], "evolved": []}
    entry = {"id": SID, "file": f"claude-code/{SID}.jsonl", "half": "open", "goal": goal, "sections": sections}
    (tmp_path / "labels.json").write_text(json.dumps([entry]))
    return tmp_path


def test_labels_are_read_back_as_words(corpus: Path) -> None:
    labels, root = corpus / "labels.json", corpus / "corpus"
    store = archive_labelled(corpus / "archive", HALVES, labels, root)
    (one,) = labelled_sessions(store, HALVES, labels, root)
    assert one.goal[0].quote == "give the shop a cart" and one.goal[0].message == 0
    assert one.sections["constraints"][0].words == RULE
    assert one.sections["next_steps"][0].places[0].sentence == "Next step: write the tests."
    assert one.lost == 1
    (restored,) = restored_sessions(store, HALVES, labels, root)
    store.close()
    for name in ("goal", "constraints", "next_steps", "key_phrases"):
        assert (restored.scores[name].found, restored.scores[name].all) == (1, 1), name
    assert restored.scores["constraints"].precision == 1


def test_a_place_is_found_again_where_the_text_before_it_has_changed() -> None:
    assert find_marked(b"so keep it small", 3, 4, mark("keep")) == 3
    assert find_marked(b"and so keep it small", 3, 4, mark("keep")) == 7
    assert find_marked(b"gone", 3, 4, mark("keep")) is None


def test_the_sentence_of_a_place_ends_at_full_stops_and_lines() -> None:
    text = "First. We use Redis for the cache. Last\nline"
    at = text.index("Redis")
    assert sentence_around(text.encode(), at, 5) == "We use Redis for the cache"
    assert sentence_around(text.encode(), text.index("Last"), 4) == "Last"


def test_a_statement_must_cite_the_message_and_share_the_words() -> None:
    wanted = item(4, "never push to main")
    assert says_item(statement("Never push to main, please", 4), wanted, labelled())
    assert not says_item(statement("Never push to main, please", 5), wanted, labelled())
    assert not says_item(statement("Keep the tests green", 4), wanted, labelled())
    assert says_item(statement("Never push to main", 5), wanted, labelled(pairs={5: {4, 5}}))  # the call and its result


def test_a_statement_within_the_sentence_of_a_quote_matches() -> None:
    wanted = item(
        1, "write the integration tests for the gateway", sentence="Next: docs, and write the integration tests"
    )
    assert says_item(statement("next in the plan: docs", 1), wanted, labelled())


def test_a_failure_matches_by_its_command() -> None:
    wanted = item(9, "2 failed", "cd /w && FOO=1 pytest -q tests 2>&1 | tail -5")
    assert says_item(statement("`pytest -q tests` failed in turn 2", 30), wanted, labelled())
    assert says_item(statement("`pytest…` failed", 30), wanted, labelled(commands={30: ("pytest -q tests",)}))
    assert not says_item(statement("`make lint` failed in turn 2", 30), wanted, labelled())


def test_commands_are_compared_without_what_surrounds_them() -> None:
    assert bare_command("cd x && npm test 2>&1 | tail -3") == "npm test"
    assert bare_command("timeout 60 go test ./...") == "go test ./..."
    assert bare_command("make a; make b") == "make a && make b"


def test_goals_paths_and_hashes() -> None:
    places = [Place(0, "add refresh tokens to the login", "")]
    assert says_goal([statement("Please add refresh tokens to the login and nothing else", 0)], places, labelled())
    assert not says_goal([statement("Please add refresh tokens to the login", 1)], places, labelled())
    assert not says_goal([statement("hello there", 0)], places, labelled())
    assert same_path("/home/ann/shop/src/a.py", "./src/a.py") and not same_path("src/a.py", "src/ba.py")
    assert not same_path("", "a.py")
    assert same_path(r"d:\shop\a.py", "D:/shop/a.py") and not same_path("shop/a.py", "shop/A.py")
    assert same_hash("1a2b3c4", "1a2b3c4d5e") and not same_hash("", "1a2b3c4")
    shown = Statement("`1a2b3c4` Count otters")
    assert same_commit(shown, "1A2B3C4D") and same_commit(shown, "Count otters")
    assert not same_commit(shown, "Count walruses") and not same_commit(shown, "")


def test_words_of_other_scripts_are_compared_sign_by_sign() -> None:
    assert content_words("更新 the file") == {"更", "新", "file"}


def test_the_interval_is_that_of_sessions() -> None:
    scores = [Score(1, 1)] * 10 + [Score(0, 1)] * 10
    low, high = map(float, re.findall(r"\d\.\d+", interval(scores, lambda one: one.recall)))
    assert low < 0.5 < high and low > 0.1
    assert interval([Score()], lambda one: one.recall) == "95 %: –"


def test_misses_of_a_part_that_is_only_measured_are_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.restore.__main__.READABLE", ("open",))
    with pytest.raises(SystemExit):
        main(["--misses", "decisions", "--half", "held"])
    assert "only measured" in capsys.readouterr().err


def test_the_labels_hold_places_and_no_words() -> None:
    entries = json.loads(LABELS.read_text())
    assert Counter(one["half"] for one in entries) == {
        "held": 39,
        "open": 38,
        "fresh": 28,
        "fresh-check": 14,
        "blind": 22,
    }
    for one in entries:
        assert set(one) == {"id", "file", "half", "goal", "sections"}
        assert set(one["sections"]) == {*SPOKEN, *NAMED}
        items = [entry for found in one["sections"].values() for entry in found]
        assert all(set(entry) <= {"readers", "places", "commands", "taken_back"} for entry in items)
        assert all(entry["readers"] in ("A", "B", "AB", "N") for entry in items)
        places = [place for entry in items for place in (*entry["places"], *entry.get("commands", []))]
        for seq, start, size, hashed in (*places, *one["goal"]["places"], *one["goal"]["evolved"]):
            assert seq >= 0 and start >= 0 and size > 0 and re.fullmatch("[0-9a-f]{8}", hashed)


def test_claims_are_many_of_every_kind_and_always_the_same() -> None:
    made = [claim for story in stories() for claim in claims(story)]
    kinds = Counter(claim.kind for claim in made)
    assert kinds.pop("") >= 80 and set(kinds) == set(KINDS) and min(kinds.values()) >= 10 and kinds.total() >= 80
    assert made == [claim for story in stories() for claim in claims(story)]


def test_a_claim_is_confirmed_only_where_it_is_shown_as_verified() -> None:
    claim = claims(stories()[0])[0]
    assert f"- {claim.sentence}\n" in summary_text([claim])

    def document(verified: bool) -> Document:
        shown = Statement(claim.text, verified=verified, label="model")
        return Document(1, sections=(DocumentSection(claim.section, (shown,)),))

    assert is_confirmed(document(True), claim) and not is_confirmed(document(False), claim)


def test_nothing_is_learnt_from_the_repositories_that_were_set_aside() -> None:
    aside, *learnt = (json.loads(path.read_text("utf-8")) for path in (ASIDE, SENTENCES, UNITS, TURNS))
    own = {one["from"].partition("@")[0].replace("/", "+").lower() for one in aside}
    labels = [one for one in json.loads(LABELS.read_text("utf-8")) if one["half"] != "unseen"]
    others = {one["file"].split("/")[1].lower() for part in (*learnt, labels) for one in part}
    assert len(own) >= 15 and len(aside) == 133 and not own & others
    assert sum("guide" in one for one in aside) == 67
    assert sum(len(one["constraints"]) for one in aside) > 100 < sum(len(one["read"]) for one in aside)


@pytest.mark.parametrize("path", [UNITS, TURNS])
def test_marks_of_messages_hold_no_words(path: Path) -> None:
    known = {"file", "id", "from", "prompts", "answers", "turns"}
    words = {"person", "between", "end"}
    for one in json.loads(path.read_text("utf-8")):
        assert set(one) <= known and len(set(one) - {"file", "id", "from"}) >= 1
        marks = [found for key in ("prompts", "answers", "turns") for found in strings(one.get(key, []))]
        assert all(len(found) == 8 or found in words for found in marks)


def strings(given: object) -> list[str]:
    if isinstance(given, str):
        return [given]
    return [found for one in given for found in strings(one)] if isinstance(given, list) else []


def test_weights_are_learnt_from_words_that_several_repositories_use() -> None:
    rows = [
        Row("rules", f"shop-{number % 8}", f"message {number}", "", ["never", "push", "="] if number % 2 else ["open", "push", "="], number % 2, 1)
        for number in range(160)
    ]  # fmt: skip
    rows.append(Row("rules", "shop-1", "once", "", ["seldom", "="], 1.0, 1))
    learnt = learn(rows)
    assert learnt["never"] > 0.5 > -0.5 > learnt["open"] and "seldom" not in learnt
    odds = cross_validated(rows, rows)
    assert all((one.label == 1) == (value > 0) for one, value in zip(rows, odds, strict=True) if one.message != "once")


def test_documents_of_sessions_set_aside_are_held_against_the_marks(corpus: Path) -> None:
    nobody = [1, mark("nobody said this")]
    task = [0, mark("Please give the shop a cart — größer als jetzt.")]
    entry = {
        "file": f"claude-code/{SID}.jsonl", "id": SID, "read": [[0, 0, 1], [1, 0, 1]], "constraints": [[0, mark(RULE)], task],
        "constraints?": [], "open": [[1, mark("Next step: write the tests.")], nobody], "open?": [], "failing": [], "failing?": [],
    }  # fmt: skip
    guided = entry | {"guide": 1, "commands": []}
    for one, name in ((entry, "no guide"), (guided, "guide")):
        (corpus / "aside.json").write_text(json.dumps([one]))
        figures = {
            one.name: one.value for one in aside_figures(corpus / "corpus", corpus / name, corpus / "aside.json")
        }
        assert figures["marks whose words are no longer found"] == 1
        assert figures[f"{name}: constraints, precision"] == 1 and figures[f"{name}: constraints, recall"] == 0.5
        told = f"{name}: open questions and next steps"
        assert figures[f"{told}, precision"] == figures[f"{told}, recall"] == 1
