"""Is the right turn found, and first? Question sets asked through the real search core, beside LIKE and plain FTS5.

Sets: LoCoMo, devmembench, BEAM-100K and RealMem, where they lie beside the checkout; *agent*, made from transcripts with known
answers. Each is taken into an archive as `everturn add` does it. A figure below that of plain FTS5 is a missed bar. One set
alone: `python -m benchmarks.recall --set agent`.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Every set that is there."""
    from benchmarks.recall.sets import SETS, figures_for

    for name in SETS:
        yield from figures_for(name, corpora.folder / "recall")
