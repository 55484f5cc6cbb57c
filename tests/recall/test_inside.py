"""Recall from within a session: the answer comes first, never the question or the echo of an earlier recall.

Archives are made from seeds: a decision is made in some session, much else is said, somebody recalls it a few times, and
then it is asked again from within a live, compacted, resumed or forked session.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest

from everturn.model.archive import Session
from everturn.recall.tool import ConversationRecall, RecallAnswer
from everturn.sources.contract import all_sources
from everturn.store.contract import open_store
from tests.recall.archives import Archive

SUBJECTS = (
    ("Redis TTL", "300 seconds", "because the cookie lives that long"),
    ("retry limit of the uploader", "7 attempts", "more only hides the outage"),
    ("name of the release branch", "release-candidate", "the pipeline expects it"),
    ("port of the metrics exporter", "9464", "the other one is taken by the proxy"),
    ("log format of the worker", "logfmt", "the dashboards parse it"),
    ("timezone of the invoices", "Europe/Vienna", "accounting asked for it"),
    ("batch size of the importer", "512 rows", "larger ones time out"),
)
QUESTIONS = ("What did we decide about the {}?", "what was the {} again?", "Which {} did we choose and why?")
NOISE = (
    "rename the helper in cart.py", "why is the build red", "write a test for the parser", "update the readme",
    "what does this worker do", "look at the importer module", "the proxy is slow today", "explain the release notes",
    "show the metrics page", "format the invoices table", "retry the failed job", "which uploader library is this",
)  # fmt: skip
KINDS = ("live", "compacted", "resumed", "forked", "continued", "elsewhere")


@dataclass
class Inside:
    """One archive, the session that asks, and what is right."""

    archive: Archive
    rng: random.Random
    subject: tuple[str, str, str]
    ids: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = (str(UUID(int=self.rng.getrandbits(128), version=4)) for _ in range(1000))

    @property
    def question(self) -> str:
        return self.rng.choice(QUESTIONS).format(self.subject[0])

    def noise(self, sid: str, n: int) -> list[bytes]:
        turns = [self.rng.choice(NOISE) for _ in range(n)]
        return [self.archive.history.turn(ask, f"I did: {ask}. It took a while.", sid) for ask in turns]

    def decision(self, sid: str) -> bytes:
        """The turn that holds the answer, in the words of the person or of the model."""
        name, value, why = self.subject
        if self.rng.random() < 0.5:
            return self.archive.history.turn(f"For the {name} use {value}, {why}. Please write it down.", "Done.", sid)
        return self.archive.history.turn(
            "go on with the next item of the list", f"The {name} is now {value}: {why}.", sid
        )

    def recall_session(self) -> None:
        """A session that was nothing but a recall, by one of the ways there are."""
        sid, way, line = next(self.ids), self.rng.randrange(3), self.archive.history.line
        asked, call = self.question, f"toolu_{self.archive.history.n}"
        prompt = asked if way else f"<command-message>recall</command-message>\n<command-name>/recall</command-name>\n<command-args>{asked}</command-args>"  # fmt: skip
        if way == 1:
            use = self.archive.use("mcp__everturn__conversation_recall", call, action="search", query=asked)
        else:
            use = self.archive.use("Bash", call, command=f"everturn search '{asked}'")
        echo = f"1 matching turn: {asked} … For the {self.subject[0]} use {self.subject[1]}"
        answer = [{"type": "text", "text": f"About the {self.subject[0]}: you asked what we decided."}]
        self.archive.take_in(
            line("user", prompt, sid), use.replace(SID_BYTES, sid.encode()),
            self.archive.back(call, echo).replace(SID_BYTES, sid.encode()), line("assistant", answer, sid), sid=sid,
        )  # fmt: skip

    def asking(self, kind: str) -> Session:
        """Make the session that asks; its last turn is the question."""
        history, sid = self.archive.history, next(self.ids)
        line, decision = history.line, self.decision
        if kind in ("elsewhere", "continued", "forked"):
            old = next(self.ids)
            said = [*self.noise(old, 3), decision(old), *self.noise(old, 3)]
            self.archive.take_in(*said, sid=old)
            inherited = b"".join(said).replace(old.encode(), sid.encode()) if kind == "forked" else b""
            link = line("user", f"This continues session {old}.", sid, isMeta=True) if kind == "continued" else b""
            pieces = [inherited, link, *self.noise(sid, 2)]
        else:
            pieces = [*self.noise(sid, 3), decision(sid), *self.noise(sid, 3)]
        if kind in ("compacted", "resumed"):
            mark = line("system", "", sid, subtype="compact_boundary")
            summary = line("user", "Summary: several small tasks were done.", sid, isCompactSummary=True)
            pieces += [mark, summary, *self.noise(sid, 2 if kind == "compacted" else 6)]
        asked = self.question
        pieces.append(line("user", asked, sid))
        self.asked = asked
        return self.archive.take_in(*pieces, sid=sid)


SID_BYTES = b"11111111-2222-4333-8444-555555555555"


def ask(tmp_path: Path, kind: str, seed: int) -> tuple[Inside, RecallAnswer]:
    store = open_store("memory:")
    made = Inside(
        Archive(store, tmp_path / f"{kind}{seed}"), random.Random(f"{kind} {seed}"), SUBJECTS[seed % len(SUBJECTS)]
    )
    for other in made.rng.sample([one for one in SUBJECTS if one != made.subject], 3):
        sid = next(made.ids)
        said = f"For the {other[0]} use {other[1]}, {other[2]}."
        made.archive.take_in(*made.noise(sid, 2), made.archive.history.turn(said, "Done.", sid), sid=sid)
    for _ in range(made.rng.randrange(4)):
        made.recall_session()
    session = made.asking(kind)
    for _ in range(made.rng.randrange(3)):
        made.recall_session()
    answer = ConversationRecall(store, all_sources(), session, now=1_772_500_000_000).answer(
        {"action": "search", "query": made.asked if made.rng.random() < 0.6 else made.subject[0]}
    )
    store.close()
    return made, answer


def quoted_turns(answer: RecallAnswer) -> list[tuple[tuple[int, int], str]]:
    """The matching turns of an answer in order, each with its text; turns beside them belong to the one before."""
    matching = {(entry.session, entry.turn) for entry in answer.entries if entry.is_match}
    turns: dict[tuple[int, int], str] = {}
    last = (0, 0)
    for entry in answer.entries:
        last = (entry.session, entry.turn) if (entry.session, entry.turn) in matching else last
        turns[last] = turns.get(last, "") + f"\n{entry.head} {entry.text}"
    return list(turns.items())


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_among_the_first_three_turns_and_no_echo_is_above_it(tmp_path: Path, kind: str) -> None:
    found = echoes = 0
    seeds = range(20)
    for seed in seeds:
        made, answer = ask(tmp_path, kind, seed)
        texts = [text for _, text in quoted_turns(answer)]
        is_answer = [made.subject[1] in text and "everturn" not in text for text in texts]
        place = is_answer.index(True) if True in is_answer else len(texts)
        found += place < 3
        echoes += any(made.asked in text or "everturn" in text or "you asked what" in text for text in texts[:place])
    assert (found >= 0.95 * len(seeds), echoes) == (True, 0), f"{found} of {len(seeds)} found, {echoes} below an echo"
