"""The ground of a check: the text and facts of a session, and the citations, quotations and names in a statement.

`Ground` reads text from the raw layer and compares it with whitespace and typographic quotes normalised, nothing else.
The result of a call belongs to the call: a model that reads both may cite either. Only a few turns are held in memory.

    The user forbade pushing: "never push to main" [t3 #12]      (turn 3)      [turn 3, message 12]      [t3 #12, #15; t4]

`read_citations` separates a statement from its citations. Numbers are 1-based in text and 0-based in a `Citation`.
`find_named_things` finds what can be looked up: files, commands and other code, commits, numbers. It looks nothing up.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from math import log

from msgspec import Struct

from everturn.derive.session_state import SessionState
from everturn.model.archive import Artifact, Call, MessageRow, Session
from everturn.model.conversation import CallStart
from everturn.restore.evidence import has_quote, normalise_quotes, words_of
from everturn.sessions.messages import Records, Sources
from everturn.store.contract import Store
from everturn.text.printable import Clean
from everturn.text.statement_words import LANGUAGE_WORDS
from everturn.text.terms import index_text, terms

_CACHED_MESSAGES = 256  # messages
_CACHED_TURNS = 4
_SHORT_OUTPUT = 3_000  # characters
_LONGEST = 4_000_000  # characters of a turn that are compared
#: Kinds of calls that do nothing outside their files, and kinds of messages that nobody wrote.
_QUIET_KINDS = frozenset(("read", "edit", "create", "delete", "search", "plan"))
_HEARSAY = frozenset(("summary", "compaction"))
_ENDING = re.compile(r"(?<=...)(?:ations?|ings?|ions?|ers?|ed|es|ly|en|em|ar|[ao]s?|s|e)$")
_KANA = re.compile(r"[\u3041-\u309f的了是在和也就都而及与着被把]")  # characters of grammar


class Fact(Struct, frozen=True):
    """A fact of the session state, and the message it rests on."""

    text: str
    turn: int
    seq: int
    path: str = ""


class TurnWords(Struct, frozen=True):
    text: str
    stems: frozenset[str]


class Ground:
    """One session, up to the message that its state covers."""

    def __init__(self, store: Store, sources: Sources, session: Session, state: SessionState, clean: Clean) -> None:
        self.session, self.state = session, state
        self._store, self._clean = store, clean
        self._records = Records(store, sources, session, until=0)
        self._texts: OrderedDict[int, str] = OrderedDict()
        self._turns: OrderedDict[int, TurnWords] = OrderedDict()
        self._calls: dict[int, list[Call]] = {}
        for call in store.calls(session.id):
            self._calls.setdefault(call.seq, []).append(call)
        self._bounds = {one.idx: (one.first_seq, one.last_seq) for one in store.turns(session.id)}
        self._artifacts: dict[int, list[Artifact]] = {}
        for one in store.artifacts(session.id):
            self._artifacts.setdefault(one.turn, []).append(one)
        self.facts = list(_state_facts(state))

    def has_turn(self, turn: int) -> bool:
        """Whether the turn exists and is covered."""
        return 0 <= turn < self.state.turn_count and turn in self._bounds

    def row(self, seq: int) -> MessageRow | None:
        """Return the message if it is covered."""
        if not 0 <= seq <= self.state.covers:
            return None
        return next(self._store.messages(self.session.id, seq, seq), None)

    def rows(self, turn: int) -> list[MessageRow]:
        first, last = self._bounds[turn]
        return list(self._store.messages(self.session.id, first, last))

    def with_results(self, row: MessageRow) -> list[MessageRow]:
        """Return a message and those with the results of its calls."""
        results = {call.result_seq for call in self._calls.get(row.seq, ())} - {None, row.seq}
        return [row, *filter(None, (self.row(seq) for seq in sorted(filter(None, results))))]

    def with_calls(self, row: MessageRow) -> list[MessageRow]:
        """Return a message and those with the calls whose results it holds."""
        return [*filter(None, (self.row(seq) for seq in self._callers.get(row.seq, ()) if seq != row.seq)), row]

    @cached_property
    def _callers(self) -> dict[int, list[int]]:
        """The messages with the calls whose results each message holds."""
        found: dict[int, list[int]] = {}
        for seq in sorted(self._calls):
            for result in {call.result_seq for call in self._calls[seq]} - {None}:
                found.setdefault(result or 0, []).append(seq)
        return found

    def text(self, row: MessageRow) -> str:
        if row.seq not in self._texts:
            self._texts[row.seq] = normalise_quotes(words_of(self._records.message(row)))
            if len(self._texts) > _CACHED_MESSAGES:
                self._texts.popitem(last=False)
        return self._texts[row.seq]

    def speech(self, row: MessageRow) -> str:
        """Return what a person or the model says in a message, line by line, without what it gives to tools."""
        if row.seq in self.answers:
            said = self.text(row)
            return said if self.answers[row.seq] == "answer" else said.partition("the user said:")[2]
        if row.origin not in ("human", "model"):
            return ""
        blocks = self._records.message(row).blocks
        lines = (line for one in blocks if one.kind == "text" for line in one.text.splitlines())
        return "\n".join(filter(None, map(normalise_quotes, lines)))

    def printed(self, row: MessageRow) -> str:
        """Return what the calls of a message printed, or those whose result it is, line by line; not what they read, nor long output."""
        calls = (call for calls in self._calls.values() for call in calls if row.seq in (call.seq, call.result_seq))
        results = (self._records.result(call) for call in calls if call.kind not in _QUIET_KINDS)
        texts = [one.text for one in results if one is not None and len(one.text) <= _SHORT_OUTPUT]
        return "\n".join(filter(None, (normalise_quotes(line) for text in texts for line in text.splitlines())))

    def words(self, turn: int) -> TurnWords:
        if turn not in self._turns:
            text = "\n".join(self.text(row) for row in self.rows(turn))[:_LONGEST]
            self._turns[turn] = TurnWords(text, stems(text))
            if len(self._turns) > _CACHED_TURNS:
                self._turns.popitem(last=False)
        return self._turns[turn]

    def weight(self, stem: str) -> float:
        """Return how significant a word is. One that occurs in many turns says little about any of them."""
        turns = self._turn_counts.get(stem, 0)
        return log((len(self._bounds) + 1) / (max(turns, 1) + 0.5)) + 0.05

    def knows(self, stem: str) -> bool:
        """Whether a word occurs in the session."""
        return stem in self._turn_counts

    @cached_property
    def _turn_counts(self) -> Counter[str]:
        """The number of turns in which each word occurs. Reads the session once."""
        found: Counter[str] = Counter()
        for turn in self._bounds:
            found.update(self.words(turn).stems)
        return found

    def quotes(self, row: MessageRow, quote: str) -> bool:
        """Whether a message contains a quote. A quote with a redaction mark is compared with the masked text."""
        text = self.text(row)
        return has_quote(quote, text) or (
            "[REDACTED" in quote and has_quote(quote, normalise_quotes(self._clean(text)))
        )

    def touches(self, turn: int, path: str) -> list[tuple[str, int]]:
        """Return what was done to a file in a turn: (action, message), in order."""
        found = [(one.action, one.seq) for one in self._artifacts.get(turn, ()) if same_file(path, one.path)]
        by_subagents = (one for one in self.state.files.values() if one.by and one.turn == turn)
        return found + [(one.action, one.seq) for one in by_subagents if same_file(path, one.path)]

    def actions(self, turn: int) -> set[str]:
        """Return what was done to files in a turn."""
        return {one.action for one in self._artifacts.get(turn, ())}

    def calls(self) -> Iterator[tuple[Call, CallStart, str]]:
        """Yield the covered calls with what they were given and what they printed, in order."""
        for seq in sorted(self._calls):
            row = self.row(seq)
            blocks = self._records.message(row).blocks if row is not None else ()
            for call in self._calls[seq]:
                start = blocks[call.idx].call if call.idx < len(blocks) else None
                if start is not None and start.kind not in _QUIET_KINDS:
                    result = self._records.result(call)
                    yield self._records.with_status(call), start, result.text if result is not None else ""

    @cached_property
    def spoken(self) -> list[tuple[MessageRow, str]]:
        """Return the messages of people in order, each with its text."""
        rows = self._store.messages(self.session.id, 0, self.state.covers)
        return [(row, self.text(row)) for row in list(rows) if self.is_person(row) and row.kind not in _HEARSAY]

    def is_person(self, row: MessageRow) -> bool:
        """Whether a person speaks in a message: writes it, answers a question of the agent or refuses a call."""
        return row.origin == "human" or row.seq in self.answers

    @cached_property
    def answers(self) -> dict[int, str]:
        """The results of calls that a person decided, by message: `answer` to a question, or `refusal`."""
        calls = (call for calls in self._calls.values() for call in calls if call.result_seq is not None)
        kinds = ((call.result_seq or 0, self._answer_kind(call)) for call in calls)
        return {seq: kind for seq, kind in kinds if kind}

    def _answer_kind(self, call: Call) -> str:
        if call.error_class == "rejected":
            return "refusal"
        return "answer" if call.kind == "ask" and call.status == "ok" else ""

    def has_unnamed(self, kind: str) -> bool:
        """Whether a call of a kind is recorded without the file it was about, as in some transcripts."""
        named = {one.seq for artifacts in self._artifacts.values() for one in artifacts}
        return any(call.kind == kind and seq not in named for seq, calls in self._calls.items() for call in calls)

    @cached_property
    def has_changes(self) -> bool:
        """Whether a call changed a file."""
        return any(call.kind in ("edit", "create", "delete") for calls in self._calls.values() for call in calls)

    def turns_of(self, path: str) -> list[int]:
        return sorted(turn for turn in self._bounds if self.touches(turn, path))


def same_file(name: str, path: str) -> bool:
    """Whether a name, perhaps without its folders, means a path."""
    name, path = name.replace("\\", "/").removeprefix("./").removeprefix("~/"), path.replace("\\", "/")
    return name == path or path.endswith(f"/{name.lstrip('/')}") or (path.count("/") > 0 and name.endswith(f"/{path}"))


def stems(text: str) -> frozenset[str]:
    """Return the significant words of a text without their endings. Names with digits stay as they are."""
    return frozenset(_stem(one) for one in terms(index_text(text)) if _is_significant(one))


def all_stems(text: str) -> frozenset[str]:
    """Return the words of a text without their endings, but articles, pronouns and who speaks."""
    return frozenset(
        _stem(one)
        for one in terms(index_text(text))
        if one not in _SMALL_WORDS
        and not _KANA.fullmatch(one)
        and (len(one) > 2 or not one.isascii() or (one.isdigit() and len(one) > 1))
    )


@lru_cache(65_536)
def _stem(term: str) -> str:
    if any(map(str.isdigit, term)):
        return term
    if term in _IRREGULAR:
        return _IRREGULAR[term][:8]
    bare = _ENDING.sub("", term)
    if bare.endswith("i") and bare != term:
        return f"{bare[:-1]}y"[:8]  # queries, query
    return (bare[:-1] if bare[-2:-1] == bare[-1:] and bare.isascii() else bare)[:8]  # running, run


#: Participles that do not end in "ed" and their verbs, as stems.
_IRREGULAR = dict(
    pair.split(":")
    for pair in "shown:show written:writ chosen:choos chose:choos taken:tak given:giv kept:keep built:build sent:send made:mak known:know hidden:hid "
    "broken:break begun:begin driven:driv drawn:draw grown:grow grew:grow held:hold found:find told:tell left:leav ran:run wrote:writ broke:break "
    "stuck:stick lost:los spent:spend bound:bind split:split thrown:throw threw:throw seen:see saw:see understood:understand".split()
)


def _is_significant(term: str) -> bool:
    if not term.isascii():
        return term not in _IDLE_WORDS
    return (len(term) >= 4 or (len(term) >= 2 and any(map(str.isdigit, term)))) and term not in _IDLE_WORDS


def _state_facts(state: SessionState) -> Iterator[Fact]:
    texts: Iterable[tuple[str, int, int]] = (
        *((one.text, one.turn, one.seq) for one in state.requests),
        *((one.text, one.turn, one.seq) for one in (*state.decisions, *state.constraints)),
        *((one.text, one.turn, one.seq) for one in state.plan),
        *((one.text, one.turn, one.seq) for one in state.questions),
        *((one.text, one.turn, one.seq) for one in state.next_steps),
        *((one.command, one.turn, one.seq) for one in state.commands),
        *((f"{one.hash} {one.subject}", one.turn, one.seq) for one in state.commits),
        *((f"{one.what} {one.text}", one.last_turn, one.last_seq) for one in state.errors),
    )
    yield from (Fact(*one) for one in texts if one[2] >= 0)
    yield from (Fact(one.path, one.turn, one.seq, one.path) for one in state.files.values())


#: Words of any report, which say nothing about what happened in a session.
_IDLE_WORDS = frozenset(
    "about above added adding adds after again agent agents already also another answer answered appear appears asked "
    "asking assistant because been before being below both called change changed changes changing could create "
    "created creates creating current currently delete deleted does doing done during each edit edited editing either "
    "else every file files first folder from further have having here into issue item just last later like made make "
    "makes many modified more most much must named need needed needs next none once only other over person please "
    "quote quoted read reading remove removed removing request requested requests said says second session should "
    "since some started state stated states step steps still such task than that their them then there these they "
    "thing things this those three through time times touch touched turn turns twice under until update updated "
    "updating upon used user users uses using very want wanted wants went were what when where whether which while "
    "will with within without work would write writing written wrote your nothing nobody "
    "choice chose chosen decided decision decisions final finally goal live lives rather result results "
    "wurde wurden worden werden sind haben nutzer benutzer anwender utilisateur usuario fichier archivo datei fueron".split()
).union(*LANGUAGE_WORDS.values())


#: Words that never tell two phrases apart.
_SMALL_WORDS = frozenset(
    "the and for are was were has have had been being this that these those its his her their our your you they them she "
    "user users agent assistant person human says said say told tell asks asked ask wants wanted want insists requires required "
    "allows allowed permits demands demanded states stated explicitly please now then also very just must should shall will would can "
    "could may might does did done always whenever all any some each from into onto with within about there here which who what "
    "when where how why not but use used uses using bitte der die das den dem des ein eine einen einem soll sollen sollte muss mussen darf durfen werden wird wurde wurden sein haben hat und oder ist sind war wir ich sie auf für mit "
    "von zum zur les des une est sont pour dans avec sur que qui los las una con por para del".split()
)


_MOST_CITATIONS = 40  # citations of one statement that are checked
_WIDEST_RANGE = 20  # turns of a range


class Citation(Struct, frozen=True):
    """A cited turn, message, or both. 0-based; -1 for a number written as 0."""

    turn: int | None = None
    message: int | None = None


class StatementCitations(Struct, frozen=True):
    text: str  # without its citations
    citations: tuple[Citation, ...] = ()
    quotes: tuple[str, ...] = ()


class NamedThings(Struct, frozen=True):
    """Things in a statement that can be looked up."""

    files: tuple[str, ...] = ()
    code: tuple[str, ...] = ()  # in backticks, not a file
    commits: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


def read_citations(statement: str) -> StatementCitations:
    """Separate a statement from its citations. A turn named in the sentence counts if there is no other citation."""
    found: list[Citation] = []

    def take_citations(match: re.Match[str]) -> str:
        citations = list(_parse_citations(match[1]))
        found.extend(citations)
        return "" if citations else match[0]

    text = " ".join(_BRACKETS.sub(take_citations, statement).split())
    citations = found or map(Citation, turns_named(text))
    return StatementCitations(text, tuple(dict.fromkeys(citations))[:_MOST_CITATIONS], tuple(_find_quotes(statement)))


def turns_named(text: str) -> list[int]:
    """Return the turns that a sentence names, 0-based."""
    return [int(number) - 1 for number in _IN_PROSE.findall(text)]


def find_named_things(text: str) -> NamedThings:
    """Return the files, code, commits and numbers of a statement without its citations."""
    spans = [span.strip() for span in _CODE.findall(text) if span.strip()]
    prose = hide_quotes(_CODE.sub(" ", text))  # quotations are looked up as a whole
    files = [span for span in spans if _is_path(span)]
    words = (found[0].rstrip(".") for found in _PATH.finditer(prose) if prose[found.end() : found.end() + 1] != "…")
    files += [word for word in words if _is_path(word)]
    commits = [found for found in _HASH.findall(prose) if re.search(r"\d", found) and re.search(r"[a-f]", found)]
    without = _PATH.sub(lambda found: " " if _is_path(found[0].rstrip(".")) else found[0], prose)
    return NamedThings(
        tuple(dict.fromkeys(files)),
        tuple(dict.fromkeys(span for span in spans if span not in files)),
        tuple(dict.fromkeys(commits)),
        tuple(dict.fromkeys(_NUMBER.findall(_IN_PROSE.sub(" ", without)))),
    )


def hide_quotes(text: str) -> str:
    """Blank out the quotations of a statement."""
    for pattern in _QUOTES:
        text = pattern.sub(" ", text)
    return text


def hide_names(text: str) -> str:
    """Blank out the code, quotations, files, hashes and turns that a statement names."""
    prose = hide_quotes(_CODE.sub(" ", text))
    prose = _PATH.sub(lambda found: " " if _is_path(found[0].rstrip(".")) else found[0], prose)
    return _HASH.sub(lambda found: " " if re.search(r"[a-f]", found[0]) else found[0], _IN_PROSE.sub(" ", prose))


# --- citations ---
_BRACKETS = re.compile(r"\s*[\[(（【⟦]([^\[\]()（）【】⟦⟧]{1,200})[\])）】⟧]")
_IN_PROSE = re.compile(r"\bturns?\s+(?:number\s+|no\.?\s*)?#?(\d{1,9})\b", re.IGNORECASE)
_CITATION_TOKEN = re.compile(
    r"(?P<turn>\bt(?:urns?)?\.?\s*(?:number\s*)?#?\s*(?=\d))|(?P<message>(?:\bm(?:sgs?|essages?)?\.?\s*)?#\s*(?=\d)|\bm(?:sgs?|essages?)?\.?\s*(?=\d))"
    r"|(?P<number>\d{1,9})|(?P<to>\s*[-–—]\s*|\s+to\s+)|(?P<between>[\s,;:&/+]+|\band\b|\bund\b|\bin\b|\bof\b)"
    r"|(?P<lead>\b(?:evidence|sources?|see|refs?|cf|citations?|from|quote)\b\.?:?)",
    re.IGNORECASE,
)


def _parse_citations(inside: str) -> Iterator[Citation]:
    """Yield the citations in brackets that hold nothing else. A message belongs to the turn before it."""
    numbers = list(_expand_ranges(inside))
    turn: int | None = None
    for at, (kind, number) in enumerate(numbers, 1):
        if kind == "message":
            yield Citation(turn, number)
        else:
            turn = number
            if at == len(numbers) or numbers[at][0] != "message":
                yield Citation(turn)


def _expand_ranges(inside: str) -> Iterator[tuple[str, int]]:
    """Yield (turn or message, number), with ranges expanded."""
    kind, last, is_range = "", 0, False
    for what, number in _tokenise_citation(inside):
        if what in ("turn", "message"):
            kind = what
        elif what == "to":
            is_range = True
        elif what == "number":
            between = range(last + 1, min(number, last + _WIDEST_RANGE)) if is_range else ()
            yield from ((kind, one) for one in between)
            yield kind, number
            last, is_range = number, False


def _tokenise_citation(inside: str) -> list[tuple[str, int]]:
    """Return the tokens, numbers 0-based; empty if there is other text, or no number with a mark."""
    found: list[tuple[str, int]] = []
    at = 0
    while at < len(inside):
        match = _CITATION_TOKEN.match(inside, at)
        if match is None or not match[0]:
            return []
        name = match.lastgroup or ""
        found.append((name, int(match[0]) - 1 if name == "number" else 0))
        at = match.end()
    first = next((name for name, _ in found if name in ("turn", "message", "number")), "number")
    return [] if first == "number" or not any(name == "number" for name, _ in found) else found


# --- named things ---
_CODE = re.compile(r"`([^`\n]{1,400})`")
_QUOTES = (
    re.compile(r'(?<![\w\\])"([^"\n]{2,600})"(?!\w)'),
    re.compile(r"[“„]([^“”„\n]{2,600})[”“]"),
    re.compile(r"«\s?([^«»\n]{2,600}?)\s?»"),
    re.compile(r"「([^「」\n]{2,600})」"),
    re.compile(r"『([^『』\n]{2,600})』"),
)
_NAME = r"[\w.@+-]*[\w@+-]"
_PATH = re.compile(rf"(?<![\w/.@:~-])(?:~?/|\.{{1,2}}/|[A-Za-z]:\\)?{_NAME}(?:[/\\]{_NAME})*/?")
_EXTENSION = re.compile(r"(?:^|[/\\])?[\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,9}$")
_ABBREVIATION = re.compile(r"(?:[a-z]\.){1,3}[a-z]?\.?|v?\d+(?:\.\d+)*|etc|vs", re.IGNORECASE)
_HASH = re.compile(r"(?<![\w/.-])[0-9a-f]{7,40}(?![\w/.-])")
_NUMBER = re.compile(r"(?<![\w.,#-])(?=\S\S)\d+(?:[.,]\d+)*(?!\w)")


def _find_quotes(statement: str) -> Iterator[str]:
    prose = _CODE.sub(" ", statement)
    for pattern in _QUOTES:
        yield from (found.strip() for found in pattern.findall(prose))


def _is_path(word: str) -> bool:
    if " " in word or "://" in word or _ABBREVIATION.fullmatch(word) or not re.search(r"[A-Za-z]", word):
        return False
    if word.startswith(("/", "./", "../", "~/")) and len(word) > 2:
        return True
    if re.match(r"\.[\w-]+/.", word):  # in a hidden folder
        return True
    return bool(_EXTENSION.search(word))
