"""Is the answer in what a model gets? Our own questions asked through `conversation_recall`, within a budget of tokens.

Each question is asked with the action `search`, without a current session. The answer is present when the words that the
readers quoted from one of its messages are in the returned text: white space makes no difference, and 60 % of the quoted
characters in one run are enough. What one call of the tool costs is measured along the way, with the default budget.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from math import ceil
from pathlib import Path

from benchmarks.figures import Figure, say
from benchmarks.recall.archive import NOW, Archive, text_of
from benchmarks.recall.metrics import percentile
from benchmarks.recall.own import FORMS, HALVES, OwnPlaces, OwnQuestion, corpus_archive, own_questions
from everturn.cli.main import GC_THRESHOLD
from everturn.recall.tool import ConversationRecall
from everturn.sessions.messages import Records

#: Budget in tokens → at least this share of the answers, in percent.
BARS = {1_000: 75.0, 2_000: 85.0}
_DEFAULT_BUDGET = 2_000
_SLOWEST = 100.0  # CPU milliseconds of one call, p95
_ENOUGH = 0.6  # of the quoted characters


def answers(folder: Path) -> Iterator[Figure]:
    """The share of questions whose answer is returned, by half, form and budget."""
    archive = corpus_archive(folder)
    if archive is None:
        return
    gc.set_threshold(*GC_THRESHOLD)  # as in the server that answers
    with closing(archive):
        questions = own_questions()
        quotes = _quotes(archive, questions)
        costs: list[float] = []  # of each call with the default budget, in CPU milliseconds
        for half in HALVES:
            asked = [one for one in questions if one.half == half and quotes[one.id]]
            for form in FORMS:
                for budget, bar in BARS.items():
                    say(f"  {len(asked):,} {form} within {budget:,} tokens")
                    share = _share(archive, asked, form, budget, quotes, costs)
                    title = f"answers {half} {form}: present in {budget:,} tokens"
                    yield Figure(title, share, "%", bar, at_least=True, note=f"{len(asked)} questions")
        note = f"{len(costs)} calls of conversation_recall, {_DEFAULT_BUDGET:,} tokens"
        yield Figure("answers: one call, median", percentile(costs, 0.5), "CPU-ms", note=note)
        yield Figure("answers: one call, p95", percentile(costs, 0.95), "CPU-ms", _SLOWEST, note=note)


def is_present(quote: str, text: str) -> bool:
    """Whether enough of the quoted words is in a text in one run; both without white space."""
    size = ceil(len(quote) * _ENOUGH)
    return any(quote[at : at + size] in text for at in range(len(quote) - size + 1))


def squeezed(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


def _share(
    archive: Archive,
    asked: Sequence[OwnQuestion],
    form: str,
    budget: int,
    quotes: dict[str, list[str]],
    costs: list[float],
) -> float:
    recall = ConversationRecall(archive.store, archive.sources, None, now=NOW, budget=budget)
    present = 0
    for one in asked:
        begun = time.process_time()
        told = recall.answer({"action": "search", "query": one.text(form)}).text
        if budget == _DEFAULT_BUDGET:
            costs.append((time.process_time() - begun) * 1000)
        text = squeezed(told)
        present += any(is_present(quote, text) for quote in quotes[one.id])
    return 100 * present / len(asked) if asked else 0.0


def _quotes(archive: Archive, questions: Sequence[OwnQuestion]) -> dict[str, list[str]]:
    """The quoted words of each question's answers, without white space."""
    places = OwnPlaces(archive, questions)
    found: dict[str, list[str]] = {}
    for one in questions:
        records = Records(archive.store, archive.sources, places.session(one))
        found[one.id] = []
        for answer in one.answers:
            if answer.quote is not None:
                start, size = answer.quote
                text = text_of(records.message(places.row(one, answer))).encode("utf-8", "surrogatepass")
                found[one.id].append(squeezed(text[start : start + size].decode("utf-8", "replace")))
    return found
