"""Several copies of one file: records that a later one has lost come from an earlier one, in their old places."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from everturn.resume.diagnosis import merge_copies
from everturn.sources.contract import CheckedRecord, SourceCandidate, all_sources
from everturn.sources.toolkit.json_lines import storable
from everturn.sources.toolkit.record_check import close_json, order_records, split
from tests import broken
from tests.sources.goldens import ODD_VALUES, with_odd_value


def pieces(words: str, copy: int = 0) -> list[CheckedRecord]:
    return [CheckedRecord({}, word.encode(), place, 1, copy) for place, word in enumerate(words)]


def words(found: list[CheckedRecord]) -> str:
    return b"".join(piece.raw for piece in found).decode()


def test_what_is_gone_from_the_middle_comes_back_there() -> None:
    assert words(merge_copies(pieces("abcdef"), pieces("abefgh", 1))) == "abcdefgh"


def test_what_is_gone_from_the_end_comes_back_there() -> None:
    assert words(merge_copies(pieces("abcdef"), pieces("ab", 1))) == "abcdef"


def test_a_file_with_nothing_in_common_stands_behind_the_old_one() -> None:
    assert words(merge_copies(pieces("abc"), pieces("xy", 1))) == "abcxy"


def test_a_record_that_is_there_twice_stays_there_twice() -> None:
    assert words(merge_copies(pieces("aba"), pieces("abac", 1))) == "abac"


def test_records_that_are_alike_do_not_lead_astray() -> None:
    assert words(merge_copies(pieces("a-b-c-d-e-"), pieces("a-d-e-", 1))) == "a-b-c-d-e-"


def test_a_record_that_has_moved_is_not_there_twice() -> None:
    assert words(merge_copies(pieces("abcd"), pieces("acdb", 1))) == "acdb"


@given(st.text("abc", max_size=12), st.integers(0, 12), st.integers(0, 12))
def test_one_hole_is_filled_also_among_records_that_are_alike(whole: str, start: int, size: int) -> None:
    assert words(merge_copies(pieces(whole), pieces(whole[:start] + whole[start + size :], 1))) == whole


@given(st.text("abcd", max_size=10), st.text("abcd", max_size=10))
def test_everything_of_both_copies_is_there_and_the_newer_one_in_its_order(older: str, newer: str) -> None:
    found = merge_copies(pieces(older), pieces(newer, 1))
    assert words([piece for piece in found if piece.copy == 1]) == newer
    assert Counter(words(found)) == Counter(older) | Counter(newer)


@given(st.text("abcdefgh", max_size=12), st.data())
def test_a_copy_that_only_lost_records_gets_them_all_back_in_order(whole: str, data: st.DataObject) -> None:
    whole = "".join(dict.fromkeys(whole))
    kept = "".join(one for one in whole if data.draw(st.booleans()))
    assert words(merge_copies(pieces(whole), pieces(kept, 1))) == whole


@given(st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=10))
def test_any_parents_give_an_order_with_every_record_once(parents: list[int | None]) -> None:
    given_ = pieces("abcdefghij"[: len(parents)])
    named = [one if one is not None and one < len(parents) else None for one in parents]
    found = order_records(given_, named.__getitem__, [])
    assert sorted(words(found)) == sorted(words(given_))


@given(st.integers(1, 400), st.sampled_from(broken.AGENTS))
def test_a_record_cut_anywhere_is_closed_or_given_up(cut: int, agent: str) -> None:
    for line in broken.whole(agent).lines:
        found = close_json(line[:cut])
        assert found is None or isinstance(found, dict)


@given(st.integers(0, 5_000), st.sampled_from(broken.AGENTS), st.binary(max_size=40))
def test_every_byte_is_in_a_record_or_in_a_finding(at: int, agent: str, stray: bytes) -> None:
    data = broken.whole(agent).data
    at %= len(data)
    data = data[:at] + stray + data[at:]
    read = split(data)
    named = [(one.start, one.start + one.size) for one in read.pieces]
    named += [(one.start, one.start + one.size) for one in read.flaws]
    bare = bytearray(data)
    for start, end in named:
        bare[start:end] = b" " * (end - start)
    assert not bytes(bare).replace(b"\xef\xbb\xbf", b"").strip()


def test_the_order_of_a_sound_file_is_not_changed() -> None:
    for agent in broken.AGENTS:
        case, check = broken.whole(agent), all_sources()[agent].check
        assert check is not None
        read = split(case.data)
        checked = check(SourceCandidate(Path(case.name), "main", broken.SESSION[agent]), read.pieces)
        assert checked.pieces == read.pieces
        assert checked.flaws == []


def test_a_check_takes_records_of_any_shape() -> None:
    dice = Random(3)
    for agent in broken.AGENTS:
        case, check = broken.whole(agent), all_sources()[agent].check
        assert check is not None
        read = split(case.data).pieces
        for _ in range(300):
            one = dice.randrange(len(read))
            odd = storable(with_odd_value(read[one].value, dice.choice(ODD_VALUES), dice))
            changed = [
                *read[:one],
                CheckedRecord(odd, b"{}", read[one].start, 2, is_torn=dice.random() < 0.5),
                *read[one + 1 :],
            ]
            check(SourceCandidate(Path(case.name), "main", broken.SESSION[agent]), changed)
