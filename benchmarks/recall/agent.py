"""Questions about agents' own sessions, made from transcripts, with known answers.

*Titles*: the query is a title or a summary line that a person or a client gave a session, the answer the session. These
lines are taken out of the transcripts before they are taken in. Titles of the same words name several sessions, and so does
the title of one of many sessions that were started with the same prompt; any of them is right, and where they are too many
the title asks for nothing in particular and is left out. *Exact strings*: some words in a row from a prompt, a command or a tool's output that stand in one session
only, asked for as they stand and in quotes. The transcripts lie beside the checkout; where there are none, made-up ones are
used. Which strings are chosen is decided by a seed.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from benchmarks.processes import ROOT
from benchmarks.recall.archive import Archive, Document
from benchmarks.recall.questions import Place, Question
from benchmarks.recall.titles import without_titles
from everturn.text.terms import terms

CORPUS = ROOT.parent / "shared" / "corpus"
#: Conversations of agents; recordings of their screens would tell the same ones again.
FORMATS = "claude-code codex opencode-export copilot-cli gemini cline pi specstory openai-messages".split()
SEED = 20260301
PER_KIND = 100
KINDS = ("prompt", "command", "output")
_WORDS = (4, 8)  # of an exact string
_SHORTEST, _LONGEST = 20, 200  # characters of it
_LONG = 80  # characters: no longer a title
_SEVERAL = 5  # sessions that one title may name
_SAME = 200  # characters: sessions that begin alike so far were started by the same program


def transcripts(folder: Path) -> dict[Path, list[str]]:
    """Write what is taken in into a folder, without titles; the titles of each file."""
    found: dict[Path, list[str]] = {}
    for name in FORMATS if CORPUS.is_dir() else []:
        for path in sorted(one for one in (CORPUS / name).rglob("*") if one.is_file()):
            data, given = without_titles(path)
            target = folder / path.relative_to(CORPUS).parent / _neutral(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            found[target.resolve()] = given
    if not found:
        from tests.transcripts import write_history

        write_history(folder, seed=1, sessions=40, turns=12)
    return found


def titles(archive: Archive, given: dict[Path, list[str]]) -> list[Question]:
    """One question for each different title."""
    named: dict[frozenset[str], set[str]] = defaultdict(set)
    wording: dict[frozenset[str], str] = {}
    alike = _begun_alike(archive)
    for session, _ in archive.sessions:
        for title in given.get(archive.path(session), ()) if session.kind in ("main", "subagent") else ():
            words = frozenset(terms(title))
            if len(words) > 1:
                named[words] |= {session.native_id, *alike.get(session.native_id, ())}
                wording.setdefault(words, title)
    return [
        Question(wording[words], frozenset(sessions), group="title" if len(wording[words]) < _LONG else "summary")
        for words, sessions in named.items()
        if len(sessions) <= _SEVERAL
    ]


def exact_strings(documents: Iterable[Document], wanted: int = PER_KIND, seed: int = SEED) -> list[Question]:
    """Strings that stand in one session only, as many of each kind; each asked for as it stands and in quotes."""
    texts = list(documents)
    chance = random.Random(seed)
    pieces = {kind: _pieces(texts, kind) for kind in KINDS}
    places = _Places(texts)
    questions: list[Question] = []
    for kind in KINDS:
        candidates = chance.sample(pieces[kind], len(pieces[kind]))
        chosen = (text for line in candidates if (text := some_words(line, chance)))
        alone = ((text, found) for text in chosen if _one_session(found := places.of(text)))
        for text, found in islice(alone, wanted):
            right = frozenset({found[0][0]}), frozenset(found)
            questions.append(Question(text, *right, group=f"{kind}, as it stands"))
            questions.append(Question(f'"{text}"', *right, group=f"{kind}, in quotes"))
    return questions


def some_words(line: str, chance: random.Random) -> str:
    """A few words in a row that ask for themselves, also in quotes; "" when the line has none that say enough."""
    words = line.split()
    if len(words) < _WORDS[0]:
        return ""
    n = chance.randint(_WORDS[0], min(_WORDS[1], len(words)))
    start = chance.randint(0, len(words) - n)
    text = " ".join(words[start : start + n])
    enough = len(text) >= _SHORTEST and len(set(terms(text))) >= _WORDS[0]
    plain = '"' not in text and text.isprintable() and not any(word.startswith("-") or word == "OR" for word in words)
    return text if enough and plain and len(text) <= _LONGEST else ""


def _begun_alike(archive: Archive) -> dict[str, set[str]]:
    """The sessions that begin like a session."""
    groups: dict[str, set[str]] = defaultdict(set)
    for session, _ in archive.sessions:
        start = archive.store.session(session.id)[1].first_prompt[:_SAME]
        if len(start) == _SAME:
            groups[start].add(session.native_id)
    return {name: group for group in groups.values() for name in group}


def _one_session(places: list[Place]) -> bool:
    return len({session for session, _ in places}) == 1


class _Places:
    """Where words stand in a row, as far as an index can tell: signs and case make no difference."""

    def __init__(self, documents: list[Document]) -> None:
        self._texts: dict[str, list[tuple[Place, str]]] = defaultdict(list)
        for one in documents:
            self._texts[one.place[0]].append((one.place, f" {' '.join(terms(one.text))} "))
        self._joined = {session: "\n".join(text for _, text in held) for session, held in self._texts.items()}

    def of(self, text: str) -> list[Place]:
        """The messages; of more than two sessions only those of two."""
        needle = f" {' '.join(terms(text))} "
        sessions = []
        for session, joined in self._joined.items():
            if needle in joined:
                sessions.append(session)
                if len(sessions) > 1:
                    break
        return [place for session in sessions for place, held in self._texts[session] if needle in held]


def _pieces(documents: list[Document], kind: str) -> list[str]:
    """Lines of that kind, each once."""
    return list(dict.fromkeys(line.strip() for one in documents for line in _lines(one, kind)))


def _lines(document: Document, kind: str) -> Iterator[str]:
    message = document.message
    for block in message.blocks:
        if kind == "command" and block.call is not None:
            yield from block.call.command.splitlines()
        elif kind == "prompt" and block.field == "prompt" and message.origin == "human":
            yield from block.text.splitlines()
        elif kind == "output" and block.field == "tool_output":
            yield from block.text.splitlines()[:50]


def _neutral(path: Path) -> str:
    """Some files are named after their title."""
    return f"{path.stem[:17]}.md" if path.suffix == ".md" and not _is_id(path.stem) else path.name


def _is_id(stem: str) -> bool:
    return len(stem) == 36 and stem.count("-") == 4
