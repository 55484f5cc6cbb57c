"""The same search with vectors of a model on this machine, to see what meaning adds. Left out where no model is named."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

from benchmarks.figures import say
from benchmarks.recall.archive import Archive
from benchmarks.recall.baselines import Ask
from benchmarks.recall.questions import Place
from everturn.llm.embedder import Embedder, LocalEmbedder, open_embedder, read_embedder_config
from everturn.retrieval.meaning import MeaningSearch, make_all_vectors
from tests.retrieval.held_vectors import HeldVectors


@dataclass(frozen=True)
class Model:
    """A model by its name or folder, how many numbers its vectors have, and the weights to try."""

    name: str
    dimensions: int
    weights: tuple[float, ...]


def with_meaning(archive: Archive, model: Model) -> dict[str, Ask]:
    """Embed what was said in an archive; one method for each weight. What it costs is said."""
    embedder, vectors = _embedder(model), HeldVectors()
    begun, made = time.process_time(), 0
    for portion in make_all_vectors(archive.store, archive.sources, embedder, vectors, str):
        made += portion.vectors
    say(f"{made:,} vectors of {embedder.dimensions} numbers made in {time.process_time() - begun:.0f} CPU s")
    asked: dict[str, Ask] = {}
    for weight in model.weights:
        asked[f"with meaning × {weight:g}"] = partial(_ask, archive, MeaningSearch(embedder, vectors, str, weight))
    return asked


def _embedder(model: Model) -> Embedder:
    """The table of `everturn[meaning]` by the name `static`, else a model on this machine."""
    if model.name != "static":
        return LocalEmbedder(model.name, model.dimensions)
    return open_embedder(read_embedder_config({"kind": "static"}), {})


def _ask(archive: Archive, meaning: MeaningSearch, text: str, scope: str, until: int | None) -> list[Place]:
    return archive.ask(text, scope, until, meaning)
