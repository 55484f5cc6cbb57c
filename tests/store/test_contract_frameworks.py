"""The contract of a store: erasing what frameworks keep beside sessions, and the time of the server."""

from __future__ import annotations

from everturn.clock import now
from everturn.model.archive import FILE, FrameworkData, SourceFile
from everturn.store.checkpoints import Channel, GraphCheckpoint
from everturn.store.contract import Store
from everturn.store.kept import ItemOwner
from everturn.store.sql_store import SqlStore

HOUR = 3_600_000


def fill(store: Store, *owners: str) -> SqlStore:
    """Write for each owner a thread of checkpoints and a list of two items with its row."""
    assert isinstance(store, SqlStore)
    with store.write():
        for owner in owners:
            row = GraphCheckpoint(owner, "", "1", "", "", "json", b"{}", "json", b"{}", 1)
            store.put_checkpoint(row, [Channel("c", "1", ("bytes", b"value of " + owner.encode()))])
            store.add_items("list", owner, [("k1", b"first of " + owner.encode()), ("k2", b"second")], 1)
            store.set_item_owner(ItemOwner("list", owner, "1", "", b"about " + owner.encode(), 1))
    return store


def threads(store: SqlStore) -> set[str]:
    return {row[0] for row in store.driver.all('SELECT DISTINCT "thread" FROM "checkpoint_channel"')}


def keys(store: SqlStore, owner: str) -> list[str]:
    return [item.key for item in store.items("list", owner)]


def test_a_thread_is_deleted_with_its_values_and_no_other(store: Store) -> None:
    kept = fill(store, "a", "b")
    with store.write():
        store.delete_thread("a")
        store.delete_thread("missing")
    assert threads(kept) == {"b"}
    assert kept.checkpoint_values("a", "", "1") == {}
    assert kept.checkpoint_values("b", "", "1") == {"c": ("bytes", b"value of b")}


def test_threads_are_deleted_by_their_content(store: Store) -> None:
    kept = fill(store, "a", "b", "c")
    with store.write():
        assert store.drop_threads(lambda data: b"value of b" in data) == 1
        assert store.drop_threads(lambda data: b"value of b" in data) == 0
    assert threads(kept) == {"a", "c"}


def test_the_lists_of_an_owner_are_deleted(store: Store) -> None:
    kept = fill(store, "a", "b")
    with store.write():
        store.drop_lists("a")
    assert (keys(kept, "a"), keys(kept, "b")) == ([], ["k1", "k2"])
    assert kept.item_owner("list", "a") is None
    assert kept.item_owner("list", "b") is not None


def test_items_and_rows_of_lists_are_deleted_by_their_content(store: Store) -> None:
    kept = fill(store, "a", "b")
    with store.write():
        assert store.drop_list_items(lambda data: data in (b"first of a", b"about b")) == 2
    assert (keys(kept, "a"), keys(kept, "b")) == (["k2"], ["k1", "k2"])
    assert kept.item_owner("list", "a") is not None
    assert kept.item_owner("list", "b") is None


def test_data_of_a_framework_is_erased_as_named(store: Store) -> None:
    kept = fill(store, "a", "b")
    with store.write():
        store.add_file(SourceFile(format="agent", path="large/result"))
        store.erase_framework_data(FrameworkData("", "a"))
        store.erase_framework_data(FrameworkData("list", "a", "k1"))
        store.erase_framework_data(FrameworkData("list", "b"))
        store.erase_framework_data(FrameworkData(FILE, "large/result"))
        store.erase_framework_data(FrameworkData(FILE, "missing"))
    assert threads(kept) == {"b"}
    assert (keys(kept, "a"), keys(kept, "b")) == (["k2"], [])
    assert kept.item_owner("list", "b") is None
    assert store.file("", "large/result") is None


def test_a_server_has_a_time_and_a_file_has_none(store: Store) -> None:
    time = store.server_time()
    if store.url.startswith("postgres"):
        assert time is not None
        assert abs(time - now()) < HOUR
    else:
        assert time is None
