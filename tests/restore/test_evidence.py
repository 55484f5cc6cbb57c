"""A quote really stands in the message it is given for, and no excerpt ends within a secret."""

from __future__ import annotations

from pathlib import Path

from everturn.restore.evidence import Proofs
from everturn.store.contract import Store
from tests.recall.archives import Archive
from tests.restore.shop import SOURCES

KEY = "AKIA" + "Q7XW2MZP4RTY5LNB"


def proofs(store: Store, folder: Path, *words: str) -> Proofs:
    archive = Archive(store, folder / "agent")
    session = archive.take_in(*(archive.history.turn(one, "fine") for one in words))
    return Proofs(store, SOURCES, session)


def test_a_quote_stands_there_blanks_aside(store: Store, tmp_path: Path) -> None:
    found = proofs(store, tmp_path, "first line\n   second   line").evidence(0, "first line second line")
    assert found is not None and found.quote == "first line second line" and found.size > 0


def test_of_an_excerpt_that_was_cut_the_beginning_is_quoted(store: Store, tmp_path: Path) -> None:
    found = proofs(store, tmp_path, "a rather long request that goes on").evidence(0, "a rather long request…")
    assert found is not None and found.quote == "a rather long request"


def test_of_an_excerpt_that_was_made_printable_only_what_stands_there_is_quoted(store: Store, tmp_path: Path) -> None:
    found = proofs(store, tmp_path, "a request with a bell\x07 in it").evidence(0, "a request with a bell␇ in it")
    assert found is not None and found.quote == "a request with a bell"


def test_words_that_do_not_stand_there_are_not_quoted(store: Store, tmp_path: Path) -> None:
    found = proofs(store, tmp_path, "a request").evidence(0, "something else entirely")
    assert found is not None and found.quote == ""


def test_without_a_message_there_is_no_evidence(store: Store, tmp_path: Path) -> None:
    assert proofs(store, tmp_path, "a request").evidence(99, "a") is None


def test_a_quote_cannot_reach_from_one_piece_into_the_next(store: Store, tmp_path: Path) -> None:
    archive = Archive(store, tmp_path / "agent")
    blocks = [{"type": "text", "text": "the end of one"}, {"type": "text", "text": "the start of another"}]
    session = archive.take_in(archive.history.line("user", blocks))
    found = Proofs(store, SOURCES, session).evidence(0, "end of one the start of another")
    assert found is not None and found.quote == ""


def test_an_excerpt_that_ends_within_a_secret_is_cut_before_it(store: Store, tmp_path: Path) -> None:
    text = f"please use the key {KEY} for the upload"
    found = proofs(store, tmp_path, text)
    assert found.whole(0, f"please use the key {KEY[:9]}…") == "please use the key…"
    assert found.whole(0, "please use the…") == "please use the…"
    assert found.whole(0, text) == text


def test_of_an_excerpt_that_cannot_be_found_again_the_last_word_goes(store: Store, tmp_path: Path) -> None:
    assert proofs(store, tmp_path, "words").whole(0, "other words secr…") == "other words…"
