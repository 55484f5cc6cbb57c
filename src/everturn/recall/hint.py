"""A hint for a prompt that refers to something out of view: searched first, and only where the search is sure.

`find_hint` searches the archive for the subject of the prompt. It is sure of a turn if

- the turn is not in the view of the model, and is no echo of a search;
- the quoted text holds at least two words of the subject, and `SURE_SHARE` of them by weight: a word weighs more the rarer it is,
  and one that is nowhere in the archive weighs most;
- one of the words it holds is rare: in at most `RARE` messages of the archive.

Otherwise there is no hint. A hint names the session and the turn it quotes.

`hint_for_prompt` does this for a prompt of which the session and the folder are known: for `everturn recall hint`, and for
programs that answer hooks (`capture.hook_answer`).
"""

from __future__ import annotations

from typing import NamedTuple

from everturn.clock import Clock
from everturn.derive.references import HINT, subject_words
from everturn.model.archive import Session
from everturn.recall.answer import RecallRequest
from everturn.recall.quotation import QuoteOptions, QuoteParts, SearchQuotation
from everturn.recall.search_action import SearchAction, find_turns
from everturn.recall.turn_quote import TurnMatch
from everturn.recall.windows import QueryWords
from everturn.retrieval.query import parse_query
from everturn.sessions.secrets import archive_cleaner
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store
from everturn.text.printable import Clean, printable

#: The share of the subject that a turn must hold, by the weight of the words.
SURE_SHARE = 0.75
#: Messages of the archive that a rare word is in, at most.
RARE = 50
#: Tokens of a hint.
HINT_TOKENS = 600
_FEWEST = 2  # words of the subject
_MOST_WORDS = 12
_TRIED = 3  # turns
_MAX_PROMPT = 100_000  # characters


class HintPrompt(NamedTuple):
    """A prompt, the id of its session and the folder of that; both may be empty or unknown."""

    text: str
    session: str
    workspace: str


def hint_for_prompt(store: Store, prompt: HintPrompt, clean: Clean, clock: Clock) -> str:
    """Return the hint for a prompt; "" if the search is not sure."""
    from everturn.recall.tool import ConversationRecall

    own, turns_in_view = _prompt_session(store, prompt)
    recall = ConversationRecall(store, all_sources(), own, clean, clock, turns_in_view=turns_in_view)
    return recall.hint(prompt.text[:_MAX_PROMPT])


def hint_for_hook(store: Store, prompt: HintPrompt, clock: Clock) -> str:
    """Return the same, ready to be given to a model: masked, without control characters."""
    return printable(hint_for_prompt(store, prompt, archive_cleaner(store), clock), keep="\n\t")


def _prompt_session(store: Store, prompt: HintPrompt) -> tuple[Session | None, int | None]:
    """Return the session of a prompt; before it is archived, the last one of its folder, of which no turn is in view."""
    found = [one for one in store.sessions_like(prompt.session) if one.state == "current"] if prompt.session else []
    if found or not prompt.workspace:
        return (found[0] if found else None), None
    rows, _ = store.sessions(SessionFilter(workspace=prompt.workspace), 1)
    return (rows[0][0] if rows else None), 0


def find_hint(request: RecallRequest, prompt: str) -> str:
    """Return the hint for a prompt that refers to something out of view; "" if the search is not sure."""
    subject = subject_words(prompt)[:_MOST_WORDS]
    if len(subject) < _FEWEST:
        return ""
    text = " ".join(subject)
    found = find_turns(request, SearchAction(text, parse_query(text), _TRIED, False))
    counts = request.store.count_words(list(subject))
    words = QueryWords(subject, {word: counts.get(word, 0) for word in subject})
    for match in found.turns[:_TRIED]:
        if not match.is_behind and (hint := _quote(request, match, words, counts)):
            return hint
    return ""


def _quote(request: RecallRequest, match: TurnMatch, words: QueryWords, counts: dict[str, int]) -> str:
    quotation = SearchQuotation(request, [match], words, QuoteOptions(1))
    where = f"session {quotation.short(match)}, turn {max(match.turn, 0) + 1}"
    lead = f"{HINT}\n[everturn: it may be {where}, found by the words {', '.join(words.words)}:]"
    answer = quotation.write(QuoteParts(lambda shown: lead, lambda shown, left: []), HINT_TOKENS)
    held = words.find_words(
        "\n".join(f"{entry.head} {entry.text}" for entry in answer.entries if entry.turn == match.turn)
    )
    total = words.weigh(range(len(words.words)))
    is_rare = any(0 < counts.get(words.words[number], 0) <= RARE for number in held)
    is_sure = len(held) >= _FEWEST and words.weigh(held) >= SURE_SHARE * total and is_rare
    return answer.text if is_sure else ""
