"""Turn by turn without a model: eight fields for each turn."""

from __future__ import annotations

from everturn.model.archive import Session
from everturn.restore.evidence import Proofs
from everturn.restore.turns import FIELDS, TurnEntry, TurnReport, as_items, as_text, report_turn
from everturn.secrets.redaction import redact_text
from everturn.sessions.state import session_facts
from everturn.store.contract import Store
from tests.restore.shop import SOURCES


def turns(store: Store, session: Session) -> list[TurnReport]:
    proofs = Proofs(store, SOURCES, session)
    return [report_turn(facts, "/home/ann/shop", proofs) for facts in session_facts(store, SOURCES, session)]


def test_every_turn_has_the_eight_fields(store: Store, session: Session) -> None:
    blocks = list(as_text(turns(store, session), redact_text))
    assert len(blocks) == 3
    for number, block in enumerate(blocks, 1):
        assert block.startswith(f"TURN SUMMARY\nTurn number: {number}\n")
        assert all(f"\n{label}:" in f"\n{block}" for label in FIELDS.values())


def test_the_fields_say_what_the_turn_says(store: Store, session: Session) -> None:
    first, second, third = as_text(turns(store, session), redact_text)
    assert "User request summary: Please add refresh tokens to the login. Never push to main. [t1 #1]" in first
    assert "Agent response summary: I added refresh tokens to src/login.py. [t1 #6]" in first
    assert "Artifacts modified: `src/login.py` edited [t1 #4]" in first
    assert "Constraints/assumptions added: Never push to main. [t1 #1]" in first
    assert (
        "Key outcomes: `pytest -q tests/test_login.py` failed: E AssertionError: expected 401, got 500 [t2 #8]"
        in second
    )
    assert "- decided: We decided to store tokens in PostgreSQL, not Redis. [t3 #11]" in third
    assert "- next: Next step: fix the failing login test. [t3 #12]" in third
    assert "Open questions after this turn: Should old tokens expire? [t3 #12]" in third


def test_a_field_a_turn_says_nothing_about_says_so(store: Store, session: Session) -> None:
    assert "Open questions after this turn: Not explicitly stated" in next(as_text(turns(store, session), redact_text))


def test_programs_get_the_same_fields(store: Store, session: Session) -> None:
    items = list(as_items(turns(store, session), redact_text))
    assert [set(one) for one in items] == [set(FIELDS)] * 3
    assert items[0]["constraints"] == [{"text": "Never push to main.", "message": 1}]


def test_a_long_field_is_cut_and_says_so() -> None:
    many = TurnReport(0, {"outcomes": tuple(TurnEntry(f"outcome {n}", n) for n in range(30))})
    (text,) = as_text([many], redact_text)
    assert "- outcome 11 [t1 #12]" in text and "outcome 12 " not in text and "(+18 not shown)" in text


def test_what_rests_on_no_message_cites_none() -> None:
    one = TurnReport(4, {"outcomes": (TurnEntry("said without proof (unverified: why)"),)})
    assert "Key outcomes: said without proof (unverified: why)\n" in next(as_text([one], redact_text))
    assert next(as_items([one], redact_text))["outcomes"] == [
        {"text": "said without proof (unverified: why)", "message": None}
    ]
