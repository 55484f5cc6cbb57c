"""Sessions as one HTML file that needs nothing else: to be read anywhere, kept, or mailed.

The style sheet is in the file; its policy forbids everything else, including any script but ours. Subagents are folded
where they were started. `clean` removes secrets but cannot look into pictures, so these are embedded on request only. The
file says which of this was done. It is written in parts: one turn and a line for each is held in memory.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import count

from msgspec.structs import replace

from everturn.export.page.head import MinimapEntry, draw_minimap, head_html, list_turns, title_of
from everturn.export.page.markup import SCRIPT, STYLE, Html, PageLook, element
from everturn.export.page.turn import child_html, turn_html, words_of
from everturn.model.archive import Session, SessionText
from everturn.sessions.lineage import Lineage, Relative, lineage
from everturn.sessions.lookup import marks_of
from everturn.sessions.messages import Passage, Sources, TurnView, passages, read_turns
from everturn.store.contract import Store
from everturn.text.printable import one_line

_DEEPEST = 8  # sessions within sessions
_WORDS = 70


def as_html(
    store: Store,
    sources: Sources,
    sessions: Sequence[Session],
    clean: Callable[[str], str] | None = None,
    context: bool = False,
    pictures: bool = False,
    alone: bool = False,
) -> Iterator[str]:
    """Yield the parts of the file. `pictures` embeds them as they are: secrets in them cannot be removed.

    With `alone`, no other session is mentioned or shown: neither subagents nor forks nor what it was made from.
    """
    look = PageLook(context=context, titles={name: source.title for name, source in sources.items()})
    look = replace(look, clean=clean or look.clean, largest=look.largest if pictures else 0)
    writer = _PageWriter(store, sources, len(sessions) > 1, alone)
    titles = [title_of(one, _session_text(store, one), look) for one in sessions]
    yield _page_start(titles[0] if titles else Html("Sessions"))
    yield "<main>\n"
    for session in sessions:
        yield from writer.session(session, look, level=1)
    yield "</main>\n"
    yield list_turns(writer.entries)
    shown = "pictures are shown as they were" if pictures else "pictures are left out"
    masked = f"Secrets that were recognised are masked; {shown}."
    note = masked if clean is not None else "Nothing is masked: this file may hold secrets."
    yield Html(f"<footer>{element('p', note)}</footer>\n<script>{SCRIPT}</script>\n</body>\n</html>\n")


class _PageWriter:
    """The state of the file: which sessions are in it, and the list of turns."""

    def __init__(self, store: Store, sources: Sources, several: bool, alone: bool) -> None:
        self._store, self._sources, self._several, self._alone = store, sources, several, alone
        self._numbers = count(1)
        self._written: dict[int, str] = {}  # the anchor of each session
        self.entries: list[MinimapEntry] = []

    def session(self, session: Session, look: PageLook, level: int) -> Iterator[str]:
        is_first = not self._written
        name = f"s{next(self._numbers)}"
        self._written[session.id] = name
        relatives = Lineage([], [], [], []) if self._alone else lineage(self._store, session)
        text = _session_text(self._store, session)
        look = replace(
            look,
            anchor="t" if is_first else f"{name}-t",
            workspace=text.workspace.rstrip("/\\"),
            children=relatives.children_by_call(),
            inside=lambda one: self._write_child(one, look, level),
            to_session=self._anchor_address,
        )
        if self._several and level == 1:
            self.entries.append(MinimapEntry(0, title_of(session, text, look), address=f"#{name}"))
        yield f'<article id="{name}">\n'
        yield head_html(session, text, relatives, look, is_nested=level > 1)
        turns = self._store.turns(session.id)
        if len(turns) > 1:
            yield draw_minimap(turns, lambda number: f"#{look.anchor}{number}", self._store.work(session.id))
        before = None
        for view in read_turns(self._store, session):
            passages_of_turn = passages(self._store, self._sources, session, view, results=True)
            yield from turn_html(
                view, self._list_turn(passages_of_turn, view, look) if level == 1 else passages_of_turn, look, before
            )
            before = view.turn
        for one in relatives.children:
            if one.call is None:
                yield from child_html(one, look)
        yield "</article>\n"

    def _write_child(self, one: Relative, look: PageLook, level: int) -> Iterator[str]:
        if one.session is None or one.session.id in self._written or level >= _DEEPEST:
            yield element("p", "Its turns are elsewhere in this file, or were left out.", class_="note")
        else:
            yield from self.session(one.session, look, level + 1)

    def _anchor_address(self, one: Relative) -> str:
        name = self._written.get(one.session.id, "") if one.session is not None else ""
        return f"#{name}" if name else ""

    def _list_turn(self, passages_of_turn: Iterator[Passage], view: TurnView, look: PageLook) -> Iterator[Passage]:
        """Yield the passages, and add the first prompt to the list of turns."""
        words, is_command = "", True
        for passage in passages_of_turn:
            if passage.kind == "prompt" and is_command and passage.row is not None:
                words = words if words and passage.row.kind == "command" else words_of(passage)
                is_command = passage.row.kind == "command"
            yield passage
        where = f"{look.anchor}{view.turn.idx + 1}"
        self.entries.append(
            MinimapEntry(
                view.turn.idx + 1, one_line(look.clean(words), _WORDS) or "…", bool(view.turn.n_errors), f"#{where}"
            )
        )


def _session_text(store: Store, session: Session) -> SessionText:
    """Return the texts of a session, with the title a person gave it. A person's note stays private."""
    text = store.session(session.id)[1]
    return replace(text, title=marks_of(store, session).title or text.title)


def _page_start(title: Html) -> Html:
    allowed = f"style-src '{_csp_digest(STYLE)}'; script-src '{_csp_digest(SCRIPT)}'"
    policy = f"default-src 'none'; {allowed}; img-src data:; base-uri 'none'; form-action 'none'"
    return Html(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="robots" content="noindex">\n'
        f'<link rel="icon" href="data:,">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n'
    )


def _csp_digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
