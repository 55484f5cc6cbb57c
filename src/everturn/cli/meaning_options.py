"""Search by meaning in commands: the `[meaning]` section of the config, its model, the file of vectors.

Without the section the static vectors of the extra `everturn[meaning]` are used, if it is installed: `sync` and `add` then
make the vectors of what is new, for a share of their time. Every other model is asked only because of the section: by
`everturn sync --meaning`, and by a search once vectors exist.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everturn.cli import frame
from everturn.clock import new_id
from everturn.errors import BadConfig, EverturnError, NotAnArchive

if TYPE_CHECKING:
    from everturn.llm.embedder import Embedder
    from everturn.retrieval.meaning import MeaningSearch
    from everturn.store.contract import Store
    from everturn.store.vector_file import VectorFile

_ID = "archive_id"
_PATIENCE = 5.0  # seconds a search waits for a vector
#: CPU seconds that a run spends on vectors: a share of what it took so far, or a little.
_SHARE = 0.1
_LITTLE = 0.5


def for_search(cx: frame.CommandContext, store: Store) -> MeaningSearch | None:
    """Open the search by meaning; None without vectors. A mistake in the config is a warning and does not stop a search."""
    if not is_wanted(cx):
        return None
    path = vectors_path(cx, store)
    if path is None or not path.exists():
        return None
    from everturn.llm.embedder import open_embedder, read_embedder_config
    from everturn.retrieval.meaning import WEIGHT, MeaningSearch
    from everturn.sessions.secrets import archive_cleaner

    try:
        config = read_embedder_config(cx.settings.meaning) if cx.settings.meaning else None
        if config is None or config.kind == "static":
            weight = WEIGHT if config is None else config.weight
            return MeaningSearch(_static_embedder(), _open_file(path, create=False), str, weight, is_default=True)
        embedder = open_embedder(config, os.environ, _PATIENCE)
        return MeaningSearch(embedder, _open_file(path, create=False), archive_cleaner(store), config.weight)
    except EverturnError as error:
        cx.out.warn(f"ranked by words only: {error}")
        return None


def for_searches(cx: frame.CommandContext) -> Callable[[Store], MeaningSearch | None]:
    """Return `for_search` for a server: it opens with the first search that finds vectors, and stays open."""
    found: list[MeaningSearch] = []

    def meaning(store: Store) -> MeaningSearch | None:
        if not found and (opened := for_search(cx, store)) is not None:
            found.append(opened)
        return found[0] if found else None

    return meaning


def is_wanted(cx: frame.CommandContext) -> bool:
    """Whether searches may follow meaning: by the section of the config, or by the extra that is installed."""
    if cx.settings.meaning:
        return cx.settings.meaning.get("enabled", True) is not False
    return has_static_vectors()


def has_static_vectors() -> bool:
    """Whether the extra `everturn[meaning]` is installed."""
    from everturn.llm.static_vectors import find_static_files

    return find_static_files() is not None


def make_new_vectors(cx: frame.CommandContext, store: Store) -> None:
    """Make static vectors of what has none, the newest first, within the time of this run. The next run goes on.

    What fails here fails nothing else: vectors are made again.
    """
    if not _makes_by_itself(cx):
        return
    from everturn.retrieval.meaning import make_all_vectors, pending_sessions

    begun = time.process_time()
    until = begun + max(_LITTLE, _SHARE * begun)
    try:
        embedder, made = _static_embedder(), 0
        if not pending_sessions(store, embedder, existing_vectors(cx, store)):
            return
        vectors = open_vectors(cx, store)
        with cx.out.progress("vectors") as step:
            for portion in make_all_vectors(store, cx.sources, embedder, vectors, str):
                made += portion.vectors
                step(made, portion.session.native_id)
                if time.process_time() >= until:
                    return
    except EverturnError as error:
        cx.out.warn(f"no vectors were made: {error}")


def _makes_by_itself(cx: frame.CommandContext) -> bool:
    """Whether vectors are made without being asked for: static ones, for an archive that can have some."""
    section = cx.settings.meaning
    is_static = section.get("kind", "static") == "static" and section.get("enabled", True) is not False
    return is_static and not cx.settings.db.startswith("memory") and has_static_vectors()


def _static_embedder() -> Embedder:
    from everturn.llm.static_vectors import static_embedder

    # The tokenizer would start threads, and warn when a process with threads starts another one.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return static_embedder()


def embedder_of(cx: frame.CommandContext) -> Embedder:
    """Return the model of the section, or the static one. Raises BadConfig without any, or when the section is wrong."""
    if not cx.settings.meaning and has_static_vectors():
        return _static_embedder()
    from everturn.llm.embedder import open_embedder, read_embedder_config

    if not cx.settings.meaning:
        why = (
            "the config has no such section, and static vectors are not installed: `pip install everturn[meaning]`, "
            "or name a model (docs/search.md shows how)"
        )
        raise BadConfig("meaning", why)
    config = read_embedder_config(cx.settings.meaning)
    if not config.enabled:
        raise BadConfig("meaning.enabled", "is false: no vectors are made or used")
    return _static_embedder() if config.kind == "static" else open_embedder(config, os.environ)


def open_vectors(cx: frame.CommandContext, store: Store) -> VectorFile:
    """Open the vectors of the archive; create the file if there is none."""
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
