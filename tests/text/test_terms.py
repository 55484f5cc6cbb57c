"""The analysis of text, held against the tokenizer that SQLite really uses."""

from __future__ import annotations

import sys
from collections.abc import Callable

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.text.terms import each_term, fold, humps, index_text, terms

Tokens = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def fts5() -> Tokens:
    """What FTS5 puts into its index for a text, in order."""
    database = apsw.Connection(":memory:")
    database.execute(
        """CREATE VIRTUAL TABLE doc USING fts5(text, content='', tokenize='unicode61 remove_diacritics 0');
           CREATE VIRTUAL TABLE word USING fts5vocab(doc, instance);"""
    )

    def tokens(text: str) -> list[str]:
        database.execute("INSERT INTO doc(doc) VALUES ('delete-all')")
        database.execute("INSERT INTO doc(rowid, text) VALUES (1, ?)", (text,))
        return [row[0] for row in database.execute("SELECT term FROM word ORDER BY offset")]

    return tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parse_json_line", ["parse", "json", "line"]),
        ("src/auth.py", ["src", "auth", "py"]),
        ("会话", ["会", "话"]),
        ("の会話を再開", ["の", "会", "話", "を", "再", "開"]),
        ("세션 복원", ["세", "션", "복", "원"]),
        ("HTTPServer2", ["httpserver2"]),
        ("mix会话mix", ["mix", "会", "话", "mix"]),
        ("Café CAFE\u0301", ["cafe", "cafe"]),
        ("ﬁle Ｗｉｄｅ ①", ["file", "wide", "1"]),
        ("Σίσυφος ΣΊΣΥΦΟΣ", ["σισυφοσ", "σισυφοσ"]),
        ("İstanbul Straße", ["istanbul", "straße"]),
        ("it’s — done…", ["it", "s", "done"]),
        ("\u1112\u1161\u11ab", ["한"]),  # a Hangul syllable in pieces, as macOS writes file names
        ("ｶﾞ が", ["ガ", "が"]),
        ("soft\u00adhyphen zero\u200bwidth", ["softhyphen", "zero", "width"]),
        ("हिन्दी", ["हनद"]),
        ("\ue0a0 main 🚀", ["main"]),
        ("", []),
        ("—", []),
    ],
)
def test_words_become_these_terms(text: str, expected: list[str], fts5: Tokens) -> None:
    assert terms(text) == expected
    assert fts5(fold(text)) == expected


def test_plain_ascii_is_not_copied() -> None:
    text = "def parse_json_line(line): ..."
    assert fold(text) is text


def test_what_no_database_takes_as_text_separates(fts5: Tokens) -> None:
    text = "left\0right \ud800lone\udfff é\0é"
    folded = fold(text)
    folded.encode()
    assert "\0" not in folded
    assert terms(text) == fts5(folded) == ["left", "right", "lone", "e", "e"]


@pytest.mark.slow
def test_every_character_there_is_means_the_same_to_fts5(fts5: Tokens) -> None:
    block = 0x1000
    for first in range(0, sys.maxunicode + 1, block):
        # Above plane 3 there are no letters, only planes that look alike: one block of each plane will do.
        if first < 0x40000 or first % 0x10000 == 0:
            text = " ".join(map(chr, range(first, first + block)))
            assert terms(text) == fts5(fold(text)), f"block {first:#x}"


def test_what_is_replaced_before_folding_only_separates() -> None:
    for point in range(0x2000, 0x3000):
        text = f"é{chr(point)}é"
        assert fold(text).split() == text.encode("ascii", "everturn.fold").decode().split(), f"{point:#x}"


@given(st.text())
def test_any_text_gives_the_terms_fts5_makes(fts5: Tokens, text: str) -> None:
    assert terms(text) == fts5(fold(text))


@given(st.text(alphabet=st.sampled_from("aZ9_-. \n\0é\u0301ÅςΣ会话がカ\u3099한ﬁ½—’\u00ad\u200b\u200d\ud800🚀")))
def test_difficult_neighbours_give_the_terms_fts5_makes(fts5: Tokens, text: str) -> None:
    assert terms(text) == fts5(fold(text))


@given(st.text())
def test_folding_twice_changes_no_term(text: str) -> None:
    assert terms(fold(text)) == terms(text)
    assert list(each_term(text)) == terms(text)


@given(st.text(), st.text())
def test_a_break_between_texts_keeps_their_terms_apart(left: str, right: str) -> None:
    assert terms(f"{left}\n{right}") == terms(left) + terms(right)


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        ("JsonParser", ("json", "parser")),
        ("parseJSONLine", ("parse", "json", "line")),
        ("HTTPServer2", ("http", "server2")),
        ("sha256Sum", ("sha256", "sum")),
        ("parser", ()),
        ("Parser", ()),
        ("README", ()),
        ("aGVsbG8gd29ybGQ", ()),
        ("x" * 50 + "Y" * 50, ()),
    ],
)
def test_a_compound_name_has_these_pieces(name: str, pieces: tuple[str, ...]) -> None:
    assert humps(name) == pieces


def test_the_pieces_of_names_stand_behind_the_text_each_name_once() -> None:
    text = "the JsonParser and another JsonParser, parse_json and getApfel()"
    assert index_text(text).splitlines() == [fold(text), "json parser", "get apfel"]
    assert index_text("plain words, snake_case and GIT") == "plain words, snake_case and GIT"


def test_data_longer_than_any_prose_is_not_searched_for_names() -> None:
    text = "x " * 200_000 + "JsonParser"
    assert index_text(text) == text
