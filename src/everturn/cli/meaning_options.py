"""Search by meaning in commands: the `[meaning]` section of the config, its model, the file of vectors.

Texts are sent only by `everturn sync --meaning`, and by a search once vectors exist; both only while the config has the
section.
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
    from everturn.llm.embedder import Embedder
    from everturn.retrieval.meaning import MeaningSearch
    from everturn.store.contract import Store
    from everturn.store.vector_file import VectorFile

_ID = "archive_id"
_PATIENCE = 5.0  # seconds a search waits for a vector


def for_search(cx: frame.CommandContext, store: Store) -> MeaningSearch | None:
    """Open the search by meaning; None without vectors. A mistake in the config is a warning and does not stop a search."""
    if not cx.settings.meaning:
        return None
    path = vectors_path(cx, store)
    if path is None or not path.exists():
        return None
    from everturn.llm.embedder import open_embedder, read_embedder_config
    from everturn.retrieval.meaning import MeaningSearch
    from everturn.sessions.secrets import archive_cleaner

    try:
        config = read_embedder_config(cx.settings.meaning)
        embedder = open_embedder(config, os.environ, _PATIENCE)
        return MeaningSearch(embedder, _open_file(path, create=False), archive_cleaner(store), config.weight)
    except EverturnError as error:
        cx.out.warn(f"the order follows words alone: {error}")
        return None


def for_searches(cx: frame.CommandContext) -> Callable[[Store], MeaningSearch | None]:
    """Return `for_search` for a server: it opens with the first search that finds vectors, and stays open."""
    found: list[MeaningSearch] = []

    def meaning(store: Store) -> MeaningSearch | None:
        if not found and (opened := for_search(cx, store)) is not None:
            found.append(opened)
        return found[0] if found else None

    return meaning


def embedder_of(cx: frame.CommandContext) -> Embedder:
    """Return the model of the section. Raises BadConfig when the section is missing or wrong."""
    from everturn.llm.embedder import open_embedder, read_embedder_config

    if not cx.settings.meaning:
        why = "the config has no such section: nothing is sent to any model without it (docs/search.md shows one)"
        raise BadConfig("meaning", why)
    return open_embedder(read_embedder_config(cx.settings.meaning), os.environ)


def open_vectors(cx: frame.CommandContext, store: Store) -> VectorFile:
    """Open the vectors of the archive; create the file if there is none."""
    from everturn.clock import new_id

    path = vectors_path(cx, store)
    if path is None and cx.settings.db.startswith("postgres"):
        with store.write():
            if not store.setting(_ID):
                store.set_setting(_ID, new_id())
        path = vectors_path(cx, store)
    if path is None:
        raise BadConfig("db", "an archive in memory has no vectors")
    return _open_file(path, create=True)


def existing_vectors(cx: frame.CommandContext, store: Store) -> VectorFile | None:
    """Open the vectors of the archive; None without any. Raises BadVectors."""
    path = vectors_path(cx, store)
    return _open_file(path, create=False) if path is not None and path.exists() else None


def vectors_to_erase(cx: frame.CommandContext, store: Store) -> VectorFile | None:
    """Open the vectors for erasing. A file that cannot be read is deleted, as its content is unknown."""
    try:
        return existing_vectors(cx, store)
    except NotAnArchive:
        path = vectors_path(cx, store)
        assert path is not None
        path.unlink()
        cx.out.warn(f"{path} could not be read and was deleted; `everturn sync --meaning` makes vectors again")
        return None


def vectors_path(cx: frame.CommandContext, store: Store) -> Path | None:
    """Return the path of the vectors, whether they exist or not; None for an archive in memory."""
    from everturn.store.vector_file import vectors_place

    db = cx.settings.db
    return vectors_place(db, cx.settings.data, store.setting(_ID) if db.startswith("postgres") else "")


def say_if_there(cx: frame.CommandContext, store: Store, what: str) -> None:
    """Print a message about the vectors, if there are any."""
    path = vectors_path(cx, store)
    if path is not None and path.exists():
        cx.out.say(what)


def _open_file(path: Path, create: bool) -> VectorFile:
    from everturn.store.vector_file import VectorFile

    file = VectorFile(path, create)
    context = click.get_current_context(silent=True)
    if context:  # a thread of a server has none: its files are closed with the process
        context.call_on_close(file.close)
    return file
