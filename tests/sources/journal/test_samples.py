"""Each sample is for one thing; what is expected of it stands beside it. `UPDATE_EXPECTED=1` writes that anew."""

from __future__ import annotations

from pathlib import Path

from everturn.loop.records import OUTCOMES, parse_record
from everturn.model.conversation import Link
from everturn.sources.contract import SourceCandidate
from everturn.sources.journal import SOURCE
from everturn.sources.journal.reader import is_known, view
from tests.sources.goldens import assert_claims_only, ingest, readings

SAMPLES = Path(__file__).parent / "samples"
EVERY = SAMPLES / "every-record.jsonl"
SID = "5e55-0001"


def test_of_the_real_files_of_others_none_is_claimed() -> None:
    assert_claims_only(SOURCE, "journal")


def test_every_type_of_record_that_is_written_is_known_and_shown_once() -> None:
    types = set()
    for line in EVERY.read_bytes().splitlines()[:-1]:
        record = parse_record(line, SID)
        types.add(type(record).__struct_config__.tag)
    from everturn.loop.records import Record

    assert types == {kind.__struct_config__.tag for kind in Record.__args__}
    assert all(is_known(str(kind)) for kind in types)


def test_what_became_of_a_call_is_told_by_its_class() -> None:
    told = {}
    for outcome in OUTCOMES:
        message = view(b'{"type":"result","call_id":"x","text":"?","is_error":true,"outcome":"%s"}' % outcome.encode())
        assert message is not None
        assert message.blocks[0].result is not None
        told[outcome] = message.blocks[0].result.error_class
    assert told["in_doubt"] == told["interrupted"] == "interrupted"
    assert (told["denied"], told["timeout"], told["not_started"]) == ("rejected", "timeout", "cancelled")


def test_a_journal_that_was_exported_is_a_session_with_all_that_belongs_to_it() -> None:
    with ingest("journal", EVERY) as taken:
        (row,) = taken.store.sessions_of("journal", SID)
        assert (row.n_turns, row.n_steps, row.n_calls, row.n_errors, row.model) == (1, 2, 3, 2, "model-1")
        assert taken.store.session(row.id)[1].title == "Tide tables"
        assert taken.store.turns(row.id)[0].interrupted == 1
        assert [call.status for call in taken.store.calls(row.id)] == ["ok", "error", "error"]
        for words in ("gauge say", "harbour master", "in doubt", "two places", "lighthouse", "asleep", "tide tables"):
            assert taken.hits(words) == [SID], words


def test_where_it_goes_on_from_is_a_link() -> None:
    ((_, _, whole),) = readings(SOURCE, EVERY)
    assert whole.links[SID] == [Link("continues", "5e55-0000")]


def test_exported_journals_are_found_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.jsonl").write_bytes(EVERY.read_bytes())
    (tmp_path / "b.jsonl").write_bytes(b'{"type":"session","id":"x"}\n')
    assert list(SOURCE.find(tmp_path)) == [SourceCandidate(tmp_path / "deep" / "a.jsonl", "main", SID, "5e55-0000")]
    assert SOURCE.workspace(EVERY.read_bytes()) == "/home/ada/harbour"
    for other in (b"", b"text", b'{"journal":', b'{"journal":true,"type":"note"}', b'{"journal":"1","type":"session"}'):
        assert SOURCE.sniff(tmp_path / "c.jsonl", other) is None
        assert SOURCE.workspace(other) == ""
