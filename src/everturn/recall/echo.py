"""Echoes: what is in the archive only because somebody searched it.

A search finds its own question: in the prompt that asked it, in the call that ran it, in the answers of earlier searches.
None of these answers it. Three kinds are recognised, from the records alone:

    a recall call    of the tool, of another tool of our server, or of a shell command such as `everturn search …`, with its
                     result
    a recall turn    its prompt is `/recall …`, or names the tool; or it did hardly anything but recall calls
    a question       a prompt with nearly the same words as the query and few others, that asks for something past

A prompt that asks for something new ("how should we …?") with the same words is no echo: its turn may be the one that
answered it first. Nor is one that asks nothing: it may be what was copied into the query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from everturn.model.archive import Call, MessageRow, Session, SessionText
from everturn.recall.asking_session import AskingSession
from everturn.retrieval.attempts import HiddenHits
from everturn.retrieval.query import STOP_WORDS
from everturn.sessions.messages import Records, Sources
from everturn.store.contract import Store
from everturn.store.index import stem_word
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.sentences import split_sentences
from everturn.text.terms import terms

#: A question is the same as the query if each holds this share of the words of the other.
SAME_QUESTION = 0.6
#: Calls of a turn that are read to see whether it did anything but recall.
_CALLS_READ = 8
_PROMPT = 4000  # characters of a prompt

_COMMAND = lazy_pattern(
    r"(?:^|[;&|(\s/])everturn(?:\.exe)?(?:\s+-{1,2}\S+)*\s+(?:search|recall|show|sessions|restore|mcp)\b"
)
_RECALL_PROMPT = lazy_pattern(
    r"^\s*(?:<command-[^>]*>[^<]*</command-[^>]*>\s*)*(?:<command-name>\s*)?[/$#](?:[\w-]+:)?recall\b"
    r"|^Look in the archive of conversations for:|\bconversation_recall\b"
)
#: What a record holds that matches it.
_RECALL_SIGNS = (b"recall", b"Look in the archive")
_ASKS = lazy_pattern(
    r"^(?:(?:and|but|so|ok(?:ay)?|hey|please|again|now)\W+)*(?:what|which|when|where|who|whose|whom|why|how|did|do|does|is|are|was|"
    r"were|can|could|should|would|will|have|has|had|remember|recall|remind|find|search|look\s+up|tell|show)\b",
    re.IGNORECASE,
)
#: A question about what to do, not about what was done.
_ASKS_FOR_NEW = lazy_pattern(
    r"\b(?:should|shall|could|would|can|may|might|must|will|want\s+to|need\s+to|do\s+you\s+think|what\s+if|how\s+about|what\s+about|let\s+us|"
    r"let['’]s)\b",
    re.IGNORECASE,
)
_ASKS_BACK = lazy_pattern(
    r"\b(?:did|was|were|had|decided|agreed|settled|chose|again|earlier|before|previously|last|remember|recall|remind|said)\b",
    re.IGNORECASE,
)


class EchoFinder:
    """Recognises echoes of one query. Each call and turn is read once."""

    def __init__(self, store: Store, sources: Sources, words: str) -> None:
        self._store, self._sources = store, sources
        self._asked = content_stems(words)
        self._calls: dict[tuple[int, int], list[Call]] = {}
        self._turns: dict[tuple[int, int], bool] = {}
        self._records: dict[int, Records] = {}
        self.recalled: set[int] = set()  # sessions with a turn of recall

    def is_echo(self, session: Session, row: MessageRow) -> bool:
        """Whether a message only asks or repeats."""
        return self.is_question(session, row) or self.is_recall_turn(session, row.turn)

    def is_recall_call(self, session: Session, row: MessageRow) -> bool:
        """Whether a message is a recall call or its result."""
        calls = [call for call in self._turn_calls(session, row.turn) if row.seq in (call.seq, call.result_seq)]
        return bool(calls) and any(self._is_recall(session, call) for call in calls)

    def is_recall_turn(self, session: Session, turn: int) -> bool:
        if (session.id, turn) not in self._turns:
            found = self._has_recall_prompt(session, turn) or self._only_recalls(session, turn)
            self._turns[session.id, turn] = found
            self.recalled |= {session.id} if found else set()
        return self._turns[session.id, turn]

    def is_recall_session(self, session: Session, text: SessionText) -> bool:
        """Whether a session was nothing but a recall; for a match in its title."""
        if _RECALL_PROMPT.search(text.first_prompt):
            return session.n_turns <= 2
        return 0 < session.n_turns <= 3 and all(self.is_recall_turn(session, turn) for turn in range(session.n_turns))

    def is_question(self, session: Session, row: MessageRow) -> bool:
        """Whether a message is a prompt that asks the same as the query."""
        if row.origin not in ("human", "agent") or row.role != "user":
            return False
        return is_same_question(self._asked, self.text(session, row))

    def is_echo_turn(self, session: Session, turn: int) -> bool:
        """Whether a turn only asks or repeats."""
        prompts = self._prompts(session, turn)
        return self.is_recall_turn(session, turn) or any(self.is_question(session, row) for row in prompts)

    def recall_rows(self, session: Session) -> Iterator[tuple[int, int]]:
        """Yield the recall calls of a session, their results, and the prompts of turns that did little else."""
        for turn in [turn for turn, kind, _ in self._store.work(session.id) if kind == "recall"]:
            for call in self._turn_calls(session, turn):
                if call.kind == "recall":
                    yield from ((session.id, seq) for seq in (call.seq, call.result_seq) if seq is not None)
            if self.is_recall_turn(session, turn):
                yield from ((session.id, row.seq) for row in self._prompts(session, turn))

    def text(self, session: Session, row: MessageRow) -> str:
        """Return the beginning of what a message says."""
        message = self._message_records(session).message(row)
        return "\n".join(block.text for block in message.blocks if block.text)[:_PROMPT]

    def _has_recall_prompt(self, session: Session, turn: int) -> bool:
        found = (row for row in self._prompts(session, turn) if self._holds(session, row, _RECALL_SIGNS))
        return any(_RECALL_PROMPT.search(self.text(session, row)) for row in found)

    def _holds(self, session: Session, row: MessageRow, signs: Iterable[bytes]) -> bool:
        """Whether the record of a message holds one of the signs: without any it need not be parsed."""
        record = self._message_records(session).record(row)
        return any(sign in record for sign in signs)

    def _prompts(self, session: Session, turn: int) -> list[MessageRow]:
        """Return what was asked at the beginning of a turn. What clients insert there names our tools in every session."""
        found = self._store.turns(session.id, turn, turn)
        rows = self._store.messages(session.id, found[0].first_seq, found[0].first_seq + 2) if found else ()
        return [row for row in rows if row.role == "user" and row.turn == turn and row.origin in ("human", "agent")]

    def _only_recalls(self, session: Session, turn: int) -> bool:
        calls = self._turn_calls(session, turn)
        if not calls or len(calls) > _CALLS_READ:
            return len(calls) > _CALLS_READ and all(call.kind == "recall" for call in calls)
        # What the kinds of the calls decide needs no reading.
        possible = [call for call in calls if call.kind == "shell" or _is_named_recall(call)]
        if len(possible) * 2 <= len(calls) or any(call.kind in ("edit", "create", "delete") for call in calls):
            return False
        return sum(self._is_recall(session, call) for call in possible) * 2 > len(calls)

    def _is_recall(self, session: Session, call: Call) -> bool:
        if _is_named_recall(call):
            return True
        if call.kind != "shell":
            return False
        row = next(self._store.messages(session.id, call.seq, call.seq), None)
        if row is None or not self._holds(session, row, (b"everturn",)):
            return False
        start = self._message_records(session).start(call)
        return start is not None and is_recall_command(start.command)

    def _turn_calls(self, session: Session, turn: int) -> list[Call]:
        if (session.id, turn) not in self._calls:
            self._calls[session.id, turn] = self._store.calls(session.id, turn)
        return self._calls[session.id, turn]

    def _message_records(self, session: Session) -> Records:
        if session.id not in self._records:
            self._records[session.id] = Records(self._store, self._sources, session, until=0)
        return self._records[session.id]


class HiddenEchoes(HiddenHits):
    """The messages that a recall skips: the turn that asks, recall calls, what clients inserted, and echoes of a search.

    With `only_echoes`, echoes are all that is shown.
    """

    def __init__(
        self, finder: EchoFinder, asker: AskingSession | None, injected: bool, only_echoes: bool = False
    ) -> None:
        self._finder, self._injected, self._only_echoes = finder, injected, only_echoes
        self.echoes = 0  # passed over
        self.others = 0  # that are never shown
        self.unranked = asker.asking | _family_recalls(finder, asker) if asker else frozenset()

    def hides(self, session: Session, row: MessageRow) -> bool:
        if (row.origin == "injected" and not self._injected) or self._finder.is_recall_call(session, row):
            self.others += 1
            return True
        is_echo = self._finder.is_echo(session, row)
        self.echoes += is_echo
        return is_echo is not self._only_echoes


def _family_recalls(finder: EchoFinder, asker: AskingSession) -> frozenset[tuple[int, int]]:
    """Return what was recalled in the sessions around the one that asks, as far as the records say so by themselves."""
    return frozenset(key for session in asker.relatives for key in finder.recall_rows(session))


def _is_named_recall(call: Call) -> bool:
    """Whether the name of a call says that it is a recall."""
    return call.kind == "recall" or "everturn" in call.name.lower()


def is_recall_command(command: str) -> bool:
    """Whether a shell command searches or reads the archive."""
    return _COMMAND.search(command) is not None


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that say something about its subject."""
    return frozenset(stem_word(term) for term in terms(text) if term not in STOP_WORDS)


def is_same_question(asked: frozenset[str], prompt: str) -> bool:
    """Whether a prompt, or one sentence of it, asks again for the words of a query and for few others.

    A prompt whose other sentences hold half of the words, too, says more than the question.
    """
    if not asked or not prompt.strip():
        return False
    sentences = [sentence.text for sentence in split_sentences(prompt)] or [prompt]
    same = [text for text in sentences if _is_near(asked, text)]
    if not same:
        return False
    others = frozenset().union(*(content_stems(text) for text in sentences if text not in same))
    return len(asked & others) * 2 < len(asked)


def _is_near(asked: frozenset[str], sentence: str) -> bool:
    return _asks_back(sentence) and _share(asked, content_stems(sentence)) >= SAME_QUESTION


def _asks_back(sentence: str) -> bool:
    """Whether a sentence is a question, but not for something new."""
    if _ASKS_FOR_NEW.search(sentence) and not _ASKS_BACK.search(sentence):
        return False
    return sentence.rstrip().endswith("?") or _ASKS.match(sentence.strip()) is not None


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the smaller of the shares that each holds of the other."""
    common = len(one & other)
    return min(common / len(one), common / len(other)) if one and other else 0.0
