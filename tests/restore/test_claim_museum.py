"""Statements of a model about a session in several languages, each false one wrong in another way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.restore.check import check_sentence
from everturn.restore.claim_language import find_language, spoken_languages
from everturn.restore.document import AGREES, CONTRADICTED, NOT_CHECKED, QUOTED
from everturn.restore.grounds import Ground
from everturn.sessions.state import session_state
from everturn.store.contract import open_store
from tests.restore.museum import FALSE, TRUE, museum
from tests.restore.shop import SOURCES


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    store = open_store("memory:")
    session = museum(store, Path(tmp_path_factory.mktemp("museum")) / "agent")
    yield Ground(store, SOURCES, session, session_state(store, SOURCES, session), str)
    store.close()


@pytest.mark.parametrize("line", TRUE.strip().splitlines())
def test_a_true_statement_is_kept(ground: Ground, line: str) -> None:
    key, _, sentence = line.partition("|")
    checked = check_sentence(ground, key, sentence)
    assert checked.reasons == ()
    assert checked.statement.check in (QUOTED, AGREES)


@pytest.mark.parametrize("line", [line for lines in FALSE.values() for line in lines.strip().splitlines()])
def test_a_false_statement_is_not_confirmed(ground: Ground, line: str) -> None:
    key, _, sentence = line.partition("|")
    checked = check_sentence(ground, key, sentence)
    assert not checked.holds
    assert checked.statement.check in (NOT_CHECKED, CONTRADICTED)


def test_answers_and_refusals_are_words_of_the_person(ground: Ground) -> None:
    assert ground.answers == {6: "answer", 10: "refusal"}
    assert [row.seq for row, _ in ground.spoken][:4] == [0, 4, 6, 8]


@pytest.mark.parametrize(("text", "language"), [
    ("The agent keeps the files in the archive", "en"),
    ("Der Agent legt die Dateien nicht im Archiv ab", "de"),
    ("L'agent garde les fichiers dans les archives", "fr"),
    ("El agente guarda los archivos en la carpeta", "es"),
    ("O agente não guarda os arquivos na pasta", "pt"),
    ("ファイルは保存されました", "ja"),
    ("文件已保存到 archive 目录", "zh"),
    ("파일이 저장되었습니다", "ko"),
    ("`src/app.py` build", ""),
])  # fmt: skip
def test_the_language_of_a_text_is_found(text: str, language: str) -> None:
    assert find_language(text) == language


def test_a_short_message_may_be_in_two_languages() -> None:
    assert spoken_languages("Run the tests. Keine neuen Tabellen anlegen, bitte nicht.") == {"en", "de"}
