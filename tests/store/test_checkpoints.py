"""Checkpoints and lists of frameworks: the same on every engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everturn.errors import Conflict, NotAnArchive
from everturn.store.checkpoints import Channel, GraphCheckpoint, PendingWrite
from everturn.store.contract import open_store
from everturn.store.kept import ItemOwner
from everturn.store.sql_store import SqlStore


@pytest.fixture
def kept(store_url: str) -> Iterator[SqlStore]:
    opened = open_store(store_url)
    assert isinstance(opened, SqlStore)
    yield opened
    opened.close()


def checkpoint(name: str, parent: str = "", thread: str = "t", run: str = "") -> GraphCheckpoint:
    return GraphCheckpoint(thread, "", name, parent, run, "json", b"{}", "json", b"{}", 1)


def write(value: bytes, idx: int = 0, task: str = "task", channel: str = "ch") -> PendingWrite:
    return PendingWrite("t", "", "1", task, idx, "", channel, "json", value)


def put(store: SqlStore, row: GraphCheckpoint, *channels: Channel) -> None:
    with store.write():
        store.put_checkpoint(row, channels)


def count(store: SqlStore, table: str) -> int:
    row = store.driver.one(f'SELECT COUNT(*) FROM "{table}"')
    assert row is not None
    return int(row[0])


def test_a_value_is_stored_once_however_many_checkpoints_have_it(kept: SqlStore) -> None:
    put(kept, checkpoint("1"), Channel("a", "1", ("bytes", b"\x00 large")))
    digest = kept.checkpoint_channels("t", "", "1")["a"][1]
    put(kept, checkpoint("2", "1"), Channel("a", "1", digest=digest), Channel("b", "1", ("bytes", b"\x00 large")))
    assert count(kept, "checkpoint_value") == 1
    assert kept.checkpoint_values("t", "", "2") == {"a": ("bytes", b"\x00 large"), "b": ("bytes", b"\x00 large")}


def test_a_value_goes_with_the_last_checkpoint_that_has_it(kept: SqlStore) -> None:
    put(kept, checkpoint("1"), Channel("a", "1", ("bytes", b"x")))
    put(kept, checkpoint("2", "1"), Channel("a", "1", ("bytes", b"x")))
    with kept.write():
        kept.delete_checkpoints("t", [("", "1")])
    assert kept.checkpoint_values("t", "", "2") == {"a": ("bytes", b"x")}
    with kept.write():
        kept.delete_checkpoints("t", [("", "2")])
    assert count(kept, "checkpoint_value") == 0


def test_a_damaged_value_is_an_error_and_not_a_gap(kept: SqlStore) -> None:
    put(kept, checkpoint("1"), Channel("a", "1", ("bytes", b"x")))
    with kept.write():
        kept.driver.run('UPDATE "checkpoint_value" SET "data"=?', (b"y",))
    with pytest.raises(NotAnArchive, match="'a' at checkpoint 1"):
        kept.checkpoint_values("t", "", "1")


def test_the_newest_checkpoint_is_found_and_the_list_is_newest_first(kept: SqlStore) -> None:
    for name in ("1", "3", "2"):
        put(kept, checkpoint(name))
    newest = kept.checkpoint("t", "")
    assert newest is not None and newest.id == "3"
    assert [row.id for row in kept.checkpoints("t", before="3")] == ["2", "1"]
    assert kept.checkpoint("t", "other") is None


def test_the_same_writes_again_change_nothing(kept: SqlStore) -> None:
    for _ in range(2):
        with kept.write():
            kept.put_checkpoint_writes([write(b"1"), write(b"2", 1)])
    assert [row.data for row in kept.checkpoint_writes("t", "", "1")] == [b"1", b"2"]


def test_a_task_that_ran_again_replaces_all_it_wrote(kept: SqlStore) -> None:
    with kept.write():
        kept.put_checkpoint_writes([write(b"1"), write(b"2", 1)])
        kept.put_checkpoint_writes([write(b"other")])
    assert [row.data for row in kept.checkpoint_writes("t", "", "1")] == [b"other"]


def test_writes_that_others_went_on_from_are_not_replaced_without_a_word(kept: SqlStore) -> None:
    put(kept, checkpoint("1"))
    with kept.write():
        kept.put_checkpoint_writes([write(b"1")])
    put(kept, checkpoint("2", "1"))
    with pytest.raises(Conflict), kept.write():
        kept.put_checkpoint_writes([write(b"late")])
    assert [row.data for row in kept.checkpoint_writes("t", "", "1")] == [b"1"]


def test_the_newest_of_a_slot_counts_whatever_else_is_in_the_batch(kept: SqlStore) -> None:
    with kept.write():
        kept.put_checkpoint_writes([write(b"old error", -1, channel="error"), write(b"1", 1)])
        kept.put_checkpoint_writes([write(b"new error", -1, channel="error"), write(b"1", 1)])
    assert [row.data for row in kept.checkpoint_writes("t", "", "1")] == [b"new error", b"1"]


def test_a_copy_of_a_thread_lives_on_without_the_original(kept: SqlStore) -> None:
    put(kept, checkpoint("1"), Channel("a", "1", ("bytes", b"x")))
    with kept.write():
        kept.put_checkpoint_writes([write(b"1")])
        kept.copy_thread("t", "copy")
        kept.delete_thread("t")
    assert kept.checkpoint("t", "") is None
    assert kept.checkpoint_values("copy", "", "1") == {"a": ("bytes", b"x")}
    assert len(kept.checkpoint_writes("copy", "", "1")) == 1


def test_checkpoints_are_found_by_their_run(kept: SqlStore) -> None:
    put(kept, checkpoint("1", run="r"))
    put(kept, checkpoint("1", thread="u", run="r"))
    put(kept, checkpoint("2"))
    assert sorted(kept.checkpoints_of_runs(["r", "", "none"])) == [("t", "", "1"), ("u", "", "1")]


def test_items_keep_their_order_and_a_key_is_there_once(kept: SqlStore) -> None:
    with kept.write():
        assert kept.add_items("f", "o", [("a", b"1"), ("", b"2"), ("a", b"3")], 5) == [1, 2, 1]
        assert kept.add_items("f", "o", [("a", b"4"), ("", b"5")], 6) == [1, 3]
    assert [(item.n, item.data) for item in kept.items("f", "o")] == [(1, b"1"), (2, b"2"), (3, b"5")]
    assert [item.n for item in kept.items("f", "o", last=2)] == [2, 3]
    assert [item.n for item in kept.items("f", "o", after=1, until=2)] == [2]
    assert kept.items("f", "other") == [] and kept.items("other", "o") == []


def test_a_list_is_erased_with_the_name_it_is_kept_under(kept: SqlStore) -> None:
    with kept.write():
        kept.add_items("f", "o", [("", b"1")], 5)
        kept.set_item_owner(ItemOwner("f", "o", "", "", b"", 1))
        kept.add_items("f", "other", [("", b"1")], 5)
        kept.drop_lists("o")
    assert kept.items("f", "o") == [] and kept.item_owner("f", "o") is None
    assert len(kept.items("f", "other")) == 1


def test_an_owner_is_replaced_only_by_who_knows_its_revision(kept: SqlStore) -> None:
    first, second = ItemOwner("f", "o", "1", "s", b"", 1), ItemOwner("f", "o", "2", "s", b"", 2)
    with kept.write():
        kept.set_item_owner(first, expected="")
    with pytest.raises(Conflict), kept.write():
        kept.set_item_owner(second, expected="")
    with kept.write():
        kept.set_item_owner(second, expected="1")
    with pytest.raises(Conflict), kept.write():
        kept.delete_item_owner("f", "o", expected="1")
    assert kept.item_owners("f", "s") == [second] and kept.item_owners("f", "none") == []
