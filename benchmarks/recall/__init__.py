"""Is the right turn found, and first? Question sets asked through the real search core, beside LIKE and plain FTS5.

Sets: LoCoMo, devmembench, BEAM-100K and RealMem, where they lie beside the checkout; *agent*, made from transcripts with known
answers; *own*, our questions about these transcripts; *times*, made up, about when something was said and by whom. Each is taken
into an archive as `everturn add` does it. A figure below that of plain FTS5 is a missed bar. Parts that judge the text a model
gets from the recall tool: *answers*, the own questions within a budget; *inside*, made-up decisions asked for from within their
session. One alone: `python -m benchmarks.recall --set agent`.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Every set that is there."""
    from benchmarks.recall.sets import PARTS, SETS, figures_for

    for name in (*SETS, *PARTS):
        yield from figures_for(name, corpora.folder / "recall")
