"""Our own questions about the agents' sessions beside the checkout, labelled by two readers.

`own_questions.json` holds questions that a person would ask weeks later, each as a sentence and as keywords, and the messages
that answer it: by the file below `../shared/corpus`, the record in it (`start`, `size` in bytes) and the quoted place in the text
of the message (`quote`: offset and size in UTF-8 bytes). No text of the sessions is in it. An answer counts when both readers
named it, or one of them and a third person agreed.

Questions are asked over everything below `../shared/corpus`. A hit is strict: only a message that answers by itself counts.
The record beside it (the call of a result, the prompt of an answer) does not. A message that a session inherited is indexed
where it was first written, so it counts there.

The questions are in two halves. *open*: look at what goes wrong there. *held*: only its figures are looked at, so that they stay
honest; `--misses` does not show them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.processes import Failed
from benchmarks.recall.agent import CORPUS
from benchmarks.recall.archive import Archive
from benchmarks.recall.questions import Place, Question
from everturn.model.archive import MessageRow, Session
from everturn.store.contract import open_store

QUESTIONS = Path(__file__).with_name("own_questions.json")
HALVES = ("open", "held")
FORMS = ("sentences", "keywords")


@dataclass(frozen=True)
class OwnAnswer:
    """A message that answers a question."""

    message: int  # its seq when the question was written down
    start: int
    size: int
    quote: tuple[int, int] | None  # None where the words stand in the record and not in the text


@dataclass(frozen=True)
class OwnQuestion:
    """A question with its answers."""

    id: str
    half: str
    kind: str
    sentence: str
    keywords: str
    file: str
    session: str
    answers: tuple[OwnAnswer, ...]

    def text(self, form: str) -> str:
        """As it is asked."""
        return self.sentence if form == "sentences" else self.keywords


def own_questions(path: Path = QUESTIONS) -> list[OwnQuestion]:
    """All of them, the open half first."""
    return [_question(one) for one in json.loads(path.read_text("utf-8"))]


def corpus_archive(folder: Path, corpus: Path = CORPUS) -> Archive | None:
    """Everything below the corpus in an archive, made once for a folder; None where there is no corpus."""
    if not corpus.is_dir():
        return None
    db = folder / "corpus.db"
    return Archive(open_store(str(db))) if db.exists() else Archive.of(corpus, db)


class OwnPlaces:
    """Where the answers stand in an archive of the corpus."""

    def __init__(self, archive: Archive, questions: Iterable[OwnQuestion], corpus: Path = CORPUS) -> None:
        wanted = {one.session for one in questions}
        self._archive = archive
        self._sessions = {
            (str(archive.path(session).relative_to(corpus.resolve())), session.native_id): session
            for session, _ in archive.sessions
            if session.native_id in wanted
        }
        self._rows = {session.id: self._by_start(session) for session in self._sessions.values()}

    def session(self, question: OwnQuestion) -> Session:
        """The session that is asked about. Raises Failed."""
        found = self._sessions.get((question.file, question.session))
        if found is None:
            raise Failed(f"{question.file} has no session {question.session}; is the corpus complete?")
        return found

    def row(self, question: OwnQuestion, answer: OwnAnswer) -> MessageRow:
        """The message of an answer, by its record. Raises Failed."""
        rows = self._rows[self.session(question).id].get((answer.start, answer.size), [])
        if not rows:
            raise Failed(f"{question.file} has no message at byte {answer.start}; did the file or its reader change?")
        return next((row for row in rows if row.seq == answer.message), rows[0])

    def asked(self, question: OwnQuestion, form: str) -> Question:
        """The question with what is right."""
        places = {place for answer in question.answers for place in self._indexed(question, answer)}
        sessions = {question.session, *(session for session, _ in places)}
        return Question(question.text(form), frozenset(sessions), frozenset(places), group=question.kind)

    def _indexed(self, question: OwnQuestion, answer: OwnAnswer) -> Iterator[Place]:
        row = self.row(question, answer)
        if not row.inherited:
            yield question.session, row.seq
        elif row.fingerprint is not None:
            for session, _ in self._archive.sessions:
                for one in self._archive.store.messages(session.id):
                    if one.fingerprint == row.fingerprint and not one.inherited:
                        yield session.native_id, one.seq

    def _by_start(self, session: Session) -> dict[tuple[int, int], list[MessageRow]]:
        found: dict[tuple[int, int], list[MessageRow]] = {}
        for row in self._archive.store.messages(session.id):
            found.setdefault((row.start, row.size), []).append(row)
        return found


def _question(one: dict[str, Any]) -> OwnQuestion:
    answers = tuple(
        OwnAnswer(given["message"], given["start"], given["size"], tuple(given["quote"]) if given["quote"] else None)
        for given in one["answers"]
    )
    return OwnQuestion(
        one["id"], one["half"], one["kind"], one["sentence"], one["keywords"], one["file"], one["session"], answers
    )
