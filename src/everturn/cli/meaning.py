"""What commands share about meaning: the section of the config, the model it names, the file of vectors.

Nothing is sent anywhere but by `everturn sync --meaning`, and by a search once vectors were made that way; both only while
the config has the section.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everturn.cli import frame
from everturn.errors import BadConfig, EverturnError, NotAnArchive

if TYPE_CHECKING:
    from everturn.llm.embedding import Embedder
    from everturn.recall.meaning import Meaning
    from everturn.store import Store
    from everturn.store.vectors import VectorFile

_ID = "archive_id"
_PATIENCE = 5.0  # seconds a search waits for a vector


def for_search(cx: frame.Context, store: Store) -> Meaning | None:
    """What a search needs; None where there are no vectors. A mistake in the config does not stop a search."""
    path = place(cx, store)
    if not cx.settings.meaning or path is None or not path.exists():
        return None
    from everturn.llm.embedding import described, open_embedder
    from everturn.recall.meaning import Meaning
    from everturn.recall.secrets import cleaner

    try:
        wanted = described(cx.settings.meaning)
        embedder = open_embedder(wanted, os.environ, _PATIENCE)
        return Meaning(embedder, _opened(path, create=False), cleaner(store), wanted.weight)
    except EverturnError as error:
        cx.out.warn(f"the order follows words alone: {error}")
        return None


def for_searches(cx: frame.Context) -> Callable[[Store], Meaning | None]:
    """The same for a server that answers many: opened with the first search that finds vectors there."""
    found: list[Meaning] = []

    def meaning(store: Store) -> Meaning | None:
        if not found and (opened := for_search(cx, store)) is not None:
            found.append(opened)
        return found[0] if found else None

    return meaning


def embedder_of(cx: frame.Context) -> Embedder:
    """The model of the section. Raises BadConfig when there is no section, or it is wrong."""
    from everturn.llm.embedding import described, open_embedder

    if not cx.settings.meaning:
        why = "the config has no such section: nothing is sent to any model without it (docs/search.md shows one)"
        raise BadConfig("meaning", why)
    return open_embedder(described(cx.settings.meaning), os.environ)


def to_fill(cx: frame.Context, store: Store) -> VectorFile:
    """The vectors of the archive, made if need be."""
    from everturn.clock import new_id

    path = place(cx, store)
    if path is None and cx.settings.db.startswith("postgres"):
        with store.write():
            if not store.setting(_ID):
                store.set_setting(_ID, new_id())
        path = place(cx, store)
    if path is None:
        raise BadConfig("db", "an archive in memory has no vectors")
    return _opened(path, create=True)


def there(cx: frame.Context, store: Store) -> VectorFile | None:
    """The vectors of the archive, where there are any. Raises BadVectors."""
    path = place(cx, store)
    return _opened(path, create=False) if path is not None and path.exists() else None


def to_erase_from(cx: frame.Context, store: Store) -> VectorFile | None:
    """The same for erasing: a file that cannot be read goes as a whole, as nobody knows what it holds."""
    try:
        return there(cx, store)
    except NotAnArchive:
        path = place(cx, store)
        assert path is not None
        path.unlink()
        cx.out.warn(f"{path} could not be read and was deleted; `everturn sync --meaning` makes vectors again")
        return None


def place(cx: frame.Context, store: Store) -> Path | None:
    """Where they are, or would be."""
    from everturn.store.vectors import vectors_place

    db = cx.settings.db
    return vectors_place(db, cx.settings.data, store.setting(_ID) if db.startswith("postgres") else "")


def say_if_there(cx: frame.Context, store: Store, what: str) -> None:
    """Tell what becomes of the vectors, to those who have some."""
    path = place(cx, store)
    if path is not None and path.exists():
        cx.out.say(what)


def _opened(path: Path, create: bool) -> VectorFile:
    from everturn.store.vectors import VectorFile

    file = VectorFile(path, create)
    context = click.get_current_context(silent=True)
    if context:  # there is none in the threads of a server, whose files are let go of with its process
        context.call_on_close(file.close)
    return file
