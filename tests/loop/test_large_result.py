"""Large results are kept whole, sent in part, and forgotten with their session."""

from __future__ import annotations

import re
from pathlib import Path

from everturn.capture.writer import ArchiveWriter, rebuild_archive
from everturn.loop.execution import LARGE, read_large_result
from everturn.loop.journal import Journal, open_archive
from everturn.loop.loop import Loop
from everturn.loop.tools import tool
from everturn.maintenance.forget import forget_sessions
from everturn.maintenance.verify import verify_archive
from everturn.sources.contract import all_sources
from tests.loop.scripted_model import Model, calls, says

WHOLE = "".join(f"line {n} é \U0001f41d\n" for n in range(LARGE // 8)) + "\ud800 the end"


@tool
def read() -> str:
    """Read a lot."""
    return WHOLE


def test_a_large_result_is_kept_whole_and_sent_in_part(tmp_path: Path) -> None:
    store = open_archive(str(tmp_path / "archive.db"))
    model = Model([calls(("a", "read")), says("ok")])
    with Journal.open(store, "s") as journal:
        assert Loop(model, [read]).run(journal, "go").state == "done"
    told = model.asked[1].messages[-1].parts[0].text
    assert told.startswith("line 0 ") and told.endswith("the end") and len(told) < 40_000
    (name,) = re.findall(r"in the archive as (\S+)", told)
    assert "".join(read_large_result(store, name)) == WHOLE
    with Journal.open(store, "s") as journal:
        assert Loop(model, [read]).resume(journal).text == "ok"
    assert verify_archive(store, "", lambda *numbers: None).wrong == []
    rebuild_archive(ArchiveWriter(store, "", "", 1), all_sources(), lambda *numbers: None)
    assert "".join(read_large_result(store, name)) == WHOLE

    (session,) = store.sessions_of("journal", "s")
    forget_sessions(ArchiveWriter(store, "", "", 1), all_sources(), [session])
    assert store.files() == [] and list(read_large_result(store, name)) == []
    store.close()
