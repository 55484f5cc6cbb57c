"""Real transcripts of many agents as pages: every one is well formed and holds nothing but our own elements."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, open_store
from tests.capture.history import ticking
from tests.export.pages import Seen, page
from tests.quick import QUICK, some

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="no transcripts in ../shared/corpus beside the checkout")
def test_every_session_of_every_agent_is_well_formed(tmp_path: Path) -> None:
    store = open_store("memory:")
    places = SearchPlaces(tmp_path, {}, "linux", {})
    paths = sorted((path for path in CORPUS.glob("*/**/*") if path.is_file()), key=lambda path: path.stat().st_size)
    chosen = some(paths[: len(paths) * 3 // 4], 60) if QUICK else (CORPUS,)
    add_paths(SyncJob(store, all_sources(), places, Policy(), "box", "ann", clock=ticking()), chosen)
    rows, _ = store.sessions(SessionFilter(), limit=1000)
    assert len({row.agent for row, _ in rows}) > 5
    for row, _ in some(rows, 40):
        seen = Seen(page(store, row, context=True))
        assert seen.wrong == [], row.native_id
        assert len(seen.classes("turn")) >= row.n_turns
    store.close()
