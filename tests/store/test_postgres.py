"""What is particular to PostgreSQL. What it has in common with the others is in test_contract.py."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.errors import (
    Busy,
    EverturnError,
    MigrationNeeded,
    NewerArchive,
    NoArchive,
    NoSpace,
    NotAnArchive,
    UsageError,
)
from everturn.model.archive import IndexRow, MessageRow, Session, SessionGrowth, SessionText, SourceFile, Version
from everturn.model.vocabulary import FIELDS
from everturn.store import derived, postgres, postgres_driver, postgres_search, sql, sql_store, word_lists
from everturn.store.contract import IndexQuery, SessionFilter, Store, migrate_store, open_store
from everturn.store.people import People
from everturn.store.postgres import PostgresStore, open_postgres, parse_address
from everturn.store.postgres_driver import PostgresDriver
from everturn.store.visibility import prepare_readers, release, restrict

Texts = tuple[str | None, ...]

numbers = count(1)
OWN_CODE = {**os.environ, "PYTHONPATH": str(Path(postgres.__file__).parents[2])}


@pytest.fixture
def store(postgres_archive: str) -> Iterator[PostgresStore]:
    opened = open_postgres(postgres_archive)
    yield opened
    opened.close()


@pytest.fixture
def new_store(postgres_url: str) -> Iterator[PostgresStore]:
    """An archive that no other test gets: for plans, which depend on what was in it before, and for damage."""
    opened = open_postgres(postgres_url)
    yield opened
    opened.close()


def new_session(store: Store, name: str, documents: list[Texts]) -> int:
    """A session whose messages have these texts."""
    with store.write():
        source = store.add_file(SourceFile(machine="here", path=name))
        version = store.add_version(Version(source=source))
        session = store.open_session(Session(agent="test", native_id=name, version=version)).id
        messages = [MessageRow(seq=seq, role="user", origin="human", kind="text") for seq in range(len(documents))]
        index = [IndexRow(seq, texts) for seq, texts in enumerate(documents)]
        store.append(session, SessionGrowth(messages, [], [], [], [], [], index, []))
    return session


def in_prompt(text: str) -> Texts:
    return (text, *[None] * (len(FIELDS) - 1))


def found(store: Store, session: int, query: IndexQuery) -> set[int]:
    asked = IndexQuery(query.groups, query.without, query.fields, session=session, limit=100_000)
    return {hit.seq for hit in store.search(asked)}


# the same hits as SQLite ------------------------------------------------------------------------------------------


@contextmanager
def small_lists() -> Iterator[None]:
    """Segments of a few entries, lists of a few places: so that small archives have several of everything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_lists, "SEGMENT", 8)
        patch.setattr(word_lists, "MERGED", ((0, 49, 3), (50, 199, 3)))
        patch.setattr(word_lists, "FIRST", 8)
        patch.setattr(word_lists, "AT_ONCE", 20)
        patch.setattr(word_lists, "LARGEST", 150)
        patch.setattr(word_lists, "PAGES", 60)
        yield


def everywhere(store: Store, query: IndexQuery) -> dict[tuple[int, int], dict[tuple[str, ...], float]]:
    """What each matching entry of the whole archive holds of the required phrases."""
    found = store.candidates(query)
    phrases = {phrase for group in query.groups for phrase in group}
    return {
        (entry.session, entry.seq): {
            found.phrases[number]: round(share, 6) for number, share in entry.held if found.phrases[number] in phrases
        }
        for entry in found.entries
    }


@pytest.fixture(scope="module")
def both(postgres_server: str) -> Iterator[tuple[Store, Store]]:
    sign = "&" if "?" in postgres_server else "?"
    url = f"{postgres_server}{sign}schema=test_both_{random.getrandbits(60)}"
    stores = open_store("memory:"), open_store(url)
    yield stores
    for store in stores:
        store.close()
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f'DROP SCHEMA "{parse_address(url).schema}" CASCADE')


WORDS = ("a", "b", "ab", "abc", "x9", "会", "话", "é", "e")
SEPARATORS = (" ", "_", ".", "\n", "—", "\0", "")

texts = st.lists(st.sampled_from(WORDS + SEPARATORS), max_size=12).map("".join) | st.text(max_size=8)
documents = st.lists(st.tuples(*[st.none() | texts] * len(FIELDS)), min_size=1, max_size=6)
phrases = st.tuples(
    st.lists(st.sampled_from(("a", "b", "ab", "abc", "x9", "会", "话", "e")), min_size=1, max_size=3), st.booleans()
).map(lambda made: (*made[0][:-1], made[0][-1] + "*" * made[1]))
queries = st.builds(
    IndexQuery,
    groups=st.lists(st.lists(phrases, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3).map(tuple),
    without=st.lists(phrases, max_size=2).map(tuple),
    fields=st.lists(st.sampled_from(FIELDS), max_size=3, unique=True).map(tuple),
)


@settings(max_examples=150)
@given(documents, st.lists(queries, min_size=1, max_size=8))
def test_any_words_find_what_they_find_in_sqlite(
    both: tuple[Store, Store], documents: list[Texts], queries: list[IndexQuery]
) -> None:
    name = f"session {next(numbers)}"
    with small_lists():
        sqlite, server = ((store, new_session(store, name, documents)) for store in both)
        for query in queries:
            assert found(*server, query) == found(*sqlite, query), query
        assert everywhere(server[0], queries[0]) == everywhere(sqlite[0], queries[0]), queries[0]


@settings(max_examples=60)
@given(documents, st.lists(queries, min_size=1, max_size=4), st.integers(1, 12))
def test_a_part_of_the_lists_finds_nothing_wrong_and_says_whether_it_is_all(
    both: tuple[Store, Store], documents: list[Texts], queries: list[IndexQuery], listed: int
) -> None:
    name = f"part {next(numbers)}"
    with small_lists(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_search, "LISTED", listed)
        patch.setattr(postgres_search, "REQUIRED", 2 * listed)
        patch.setattr(postgres_search, "REACH", 3 * listed)
        sqlite, server = ((store, new_session(store, name, documents))[0] for store in both)
        for query in queries:
            matching = {(entry.session, entry.seq) for entry in sqlite.candidates(query).entries}
            gathered = server.candidates(query, most=5)
            entries = {(entry.session, entry.seq) for entry in gathered.entries}
            assert entries <= matching, query
            assert entries == matching or not gathered.complete, query


def test_long_texts_of_common_words_find_what_they_find_in_sqlite(both: tuple[Store, Store]) -> None:
    chance = random.Random(7)
    vocabulary = [f"w{number}" for number in range(40)] + ["the"] * 20
    long = [[chance.choice(vocabulary) for _ in range(chance.randint(100, 20_000))] for _ in range(12)]
    sqlite, server = (
        (store, new_session(store, "long", [in_prompt(" ".join(words)) for words in long])) for store in both
    )
    hits = 0
    for _ in range(300):
        words = chance.choice(long)
        at, length = chance.randrange(len(words)), chance.choice((1, 2, 3, 4, 30))
        phrase = words[at : at + length]
        if chance.random() < 0.3:
            chance.shuffle(phrase)
        query = IndexQuery(groups=((tuple(phrase),),))
        expected = found(*sqlite, query)
        assert found(*server, query) == expected, query
        hits += len(expected)
    assert hits > 300


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(" ".join(f"{number}{'я' * 700}" for number in range(3000)), id="many long words"),
        pytest.param("я" * 3_000_000, id="one endless word"),
        pytest.param("0 " * 100_000, id="one word again and again"),
        pytest.param(" ".join(f"x{number}" for number in range(300_000)), id="many different words"),
    ],
)
def test_no_text_is_too_much_for_a_row(store: PostgresStore, text: str) -> None:
    session = new_session(store, "much", [in_prompt(f"{text} needle point")])
    assert found(store, session, IndexQuery(groups=((("needle", "point"),),))) == {0}
    assert found(store, session, IndexQuery(groups=(((text.split(maxsplit=1)[0],),),))) == {0}


# lists of words ---------------------------------------------------------------------------------------------------


def with_lists(store: PostgresStore, monkeypatch: pytest.MonkeyPatch, name: str = "listed") -> int:
    """A session with a word in all of its messages, of which a few hold it more often; of the word, only the best are read."""
    monkeypatch.setattr(postgres_search, "LISTED", 20)
    monkeypatch.setattr(postgres_search, "REQUIRED", 40)
    texts = [f"walrus {'walrus ' * 5 * (number % 10 == 0)} other words of message {number}" for number in range(60)]
    with small_lists():
        return new_session(store, name, [in_prompt(text) for text in texts])


def rows_of_index(store: PostgresStore) -> int:
    tables = ("entry_text", "word_segment", "word_list", "word_list_rest", "unlisted_entry")
    return sum(store.driver.all(f'SELECT COUNT(*) FROM "{name}"')[0][0] for name in tables)


@pytest.mark.parametrize("word", ["walrus", "walr*"])
def test_of_a_common_word_the_best_entries_are_found(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    session = with_lists(store, monkeypatch)
    found = store.candidates(IndexQuery((), optional=((word,),)), most=6)
    entries = {(entry.session, entry.seq) for entry in found.entries}
    assert entries >= {(session, 10 * n) for n in range(6)} and len(entries) < 30
    assert found.counts == (60.0,) and not found.complete
    fresh = new_session(store, "fresh", [in_prompt("walrus " * 7)])
    found = store.candidates(IndexQuery((), optional=((word,), ("missing",))), most=100)
    assert fresh in {entry.session for entry in found.entries}, "what is in no list yet"
    assert found.counts == (61.0, 0.0)


def test_a_phrase_of_common_words_is_found_where_neither_word_is_at_its_best(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_search, "LISTED", 20)
    monkeypatch.setattr(postgres_search, "REQUIRED", 40)
    texts = [f"red and much more text {number}" + " blue" * (number % 2) for number in range(60)]
    texts[7] = "a red blue house " + "with very much text around it " * 20
    with small_lists():
        session = new_session(store, "colours", [in_prompt(text) for text in texts])
    found = store.candidates(IndexQuery(((("red", "blue"),),)), most=2)
    assert [(entry.session, entry.seq) for entry in found.entries] == [(session, 7)]


def test_the_lists_forget_entries_and_sessions(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    session = with_lists(store, monkeypatch)
    with small_lists():
        other = new_session(store, "other", [in_prompt(f"walrus and zebra {number}") for number in range(9)])
    with store.write():
        store.index.remove(session, [0, 10])
    found = store.candidates(IndexQuery((), optional=(("walrus",),)))
    kept = {(session, seq) for seq in range(60)} - {(session, 0), (session, 10)} | {(other, seq) for seq in range(9)}
    assert {(entry.session, entry.seq) for entry in found.entries} == kept and found.counts == (67.0,)
    assert store.vocabulary("zeb", 10) == ["zebra"] and store.count_words(["zebra", "walrus"]) == {
        "zebra": 9,
        "walrus": 67,
    }
    with store.write():
        store.delete_file(2)
    assert store.vocabulary("zeb", 10) == [] and store.count_words(["zebra", "walrus"]) == {"walrus": 58}
    with store.write():
        store.delete_file(1)
    assert rows_of_index(store) == 0


def test_a_search_in_the_middle_of_a_transaction_finds_what_it_has_added(store: PostgresStore) -> None:
    with store.write():
        session = new_session(store, "half", [in_prompt("walrus")])
        assert [hit.session for hit in store.search(IndexQuery(groups=((("walrus",),),)))] == [session]
        assert store.count_words(["walrus"]) == {"walrus": 1}


def test_who_reads_for_a_person_finds_and_counts_only_what_that_person_may_see(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = {name: with_lists(store, monkeypatch, name) for name in ("ann", "bob")}
    with store.write():
        store.set_setting("shared", "yes")
        store.driver.run('UPDATE "source_file" SET "owner"="path"')
        for name in sessions:
            People(store).add_person(name, "member", 1)
    prepare_readers(store)
    for name, session in sessions.items():
        restrict(store, name)
        for word in ("walrus", "walr*"):
            found = store.candidates(IndexQuery((), optional=((word,),)), most=6)
            assert {entry.session for entry in found.entries} == {session} and found.counts <= (60.0,)
        keys = [one << 24 for one in sessions.values()]
        stems = store.driver.all('SELECT "session" FROM "read_visible_stems"(?::bigint[])', [keys])
        assert stems == [(session,)], "of keys that were guessed too"
        for budget in (0, 1, 59, 60, 61, 119, 120):  # none of them tells that others have the word too
            lists = 'SELECT "key">>24, "n" FROM "read_visible_lists"(?::text[],?::text[],?,200) WHERE "o">0'
            assert set(store.driver.all(lists, [["walru"], [None], budget])) == {(session, 1)}
        with pytest.raises(EverturnError, match="does not let us"):
            store.driver.all('SELECT * FROM "visible_sessions"()')
        release(store)


@pytest.mark.parametrize("is_limited", [False, True])
def test_a_search_reads_no_table_as_a_whole(
    new_store: PostgresStore, monkeypatch: pytest.MonkeyPatch, is_limited: bool
) -> None:
    with_lists(new_store, monkeypatch)
    prepare_readers(new_store)
    if is_limited:
        restrict(new_store, "ann")
    plans: list[str] = []

    def explained(statement: str, params: Sequence[Any] = ()) -> list[Any]:
        plans.extend(str(line) for (line,) in driver_all(f"EXPLAIN {statement}", params))
        return driver_all(statement, params)

    driver_all = new_store.driver.all_by_index
    monkeypatch.setattr(new_store.driver, "all_by_index", explained)
    new_store.candidates(
        IndexQuery(((("walrus",),),), optional=(("other",), ("messag*",)), sessions=SessionFilter()), most=6
    )
    release(new_store)
    given = {
        "read_lists": ("'{walru}'::text[]", "'{NULL}'::text[]", "20::bigint", "500::bigint"),
        "read_visible_stems": ("'{1}'::bigint[]",),
    }
    for name, values in given.items():  # the plans of functions are not part of the statement's
        [(body,)] = driver_all("SELECT prosrc FROM pg_proc WHERE proname=? LIMIT 1", [name])
        for number, value in enumerate(values, 1):
            body = body.replace(f"${number}", value)
        plans += [str(line) for (line,) in driver_all(f"EXPLAIN {body}")]
    text = "\n".join(plans)
    for index in ("entry_text_pkey", "word_list_pkey", "word_list_rest_pkey"):
        assert f"using {index}" in text, text
    read_all = [
        plan
        for plan, condition in pairwise(plans)
        if re.search(r"using (entry_text|word_list|word_list_rest|message)_pkey", plan)
        and "Index Cond" not in condition
    ]
    assert read_all == [], text
    whole = [
        plan
        for plan in plans
        if "Seq Scan" in plan and re.search(r"on (\w+\.)?(entry_text|word_list|message|call)", plan)
    ]
    assert whole == [], text


def test_owners_of_messages_are_found_by_index(new_store: PostgresStore) -> None:
    new_session(new_store, "some", [in_prompt(f"message {number}") for number in range(50)])
    prints = list(range(64))
    with new_store.write():
        sql = f"EXPLAIN {derived._OWNERS.format(','.join('?' * len(prints)))}"
        plan = new_store.driver.all(sql, [1, *prints, "test", 0, "", ""])
    assert any("message_fingerprint" in line for (line,) in plan), plan


def test_an_older_archive_keeps_its_words(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = sql_store.known_migrations("postgres")
    with monkeypatch.context() as patch:
        patch.setattr(sql_store, "known_migrations", lambda engine: known[:19])
        old = open_postgres(postgres_url)
        with old.write():
            old.driver.run("""INSERT INTO "source_file" VALUES (1,'f','m','','p','','','','full','',1,'',0,0,0)""")
            rows: list[tuple[Any, ...]] = [(1, seq, 0, 0, "walru:1,3 other:2", 3) for seq in range(-1, 30)]
            rows += [(1, 40, 1, 0, "first:1 second:2", 2), (1, 40, 1, 1, "again:1,2,63 second:64 third:65", 65)]
            rows += [(1, 40, 4, 0, "output:1", 1)]
            old.driver.copy('"search_row" ("session","seq","field","part","tsv","size")', rows)
        old.close()
    with small_lists():
        store = open_postgres(postgres_url)
    assert store.driver.all('SELECT * FROM "unlisted_entry"') == []
    found = store.candidates(IndexQuery(((("walrus", "other", "walrus"),),)))
    assert {entry.seq for entry in found.entries} == set(range(-1, 30))
    wanted = {
        ("first", "second", "third"): {40},
        ("third", "output"): set(),
        ("again",): set(),
        ("walrus", "other", "x"): set(),
    }
    for phrase, seqs in wanted.items():
        assert {entry.seq for entry in store.candidates(IndexQuery(((phrase,),))).entries} == seqs, phrase
    store.close()


# text that PostgreSQL cannot hold ---------------------------------------------------------------------------------


def test_nul_and_lone_surrogates_are_replaced_in_text_and_kept_in_bytes(store: PostgresStore) -> None:
    session = new_session(store, "odd", [in_prompt("left\0right \ud800lone")])
    with store.write():
        store.set_text(SessionText(session=session, title="a\0b", summary="c\ud800d"))
        store.append_raw(1, 0, b"a\0b")
    text = store.session(session)[1]
    assert text.title == "a\ufffdb"
    assert text.summary.strip("cd").strip("\ufffd") == ""
    assert store.read_raw(1, 0, 10) == b"a\0b"
    assert found(store, session, IndexQuery(groups=((("left", "right", "lone"),),))) == {0}
    assert found(store, session, IndexQuery(groups=((("a", "b", "c", "d"),),))) == {-1}


def test_capitals_of_every_language_are_the_same(store: PostgresStore) -> None:
    session = new_session(store, "capitals", [])
    with store.write():
        store.set_text(SessionText(session=session, title="ÉCOLE 100% Привет"))
    for wanted in ("école", "École 100%", "ПРИВЕТ"):
        assert store.count_sessions(SessionFilter(text=wanted)) == 1, wanted
    assert store.count_sessions(SessionFilter(text="ecole")) == 0


# the schema -------------------------------------------------------------------------------------------------------


def columns(store: PostgresStore, table: str) -> list[str]:
    sql = "SELECT column_name FROM information_schema.columns WHERE table_schema=? AND table_name=? ORDER BY ordinal_position"
    return [str(row[0]) for row in store.driver.all(sql, [store.driver.schema, table])]


def test_the_columns_are_the_fields_of_the_structs(store: PostgresStore) -> None:
    for table in (thing for thing in vars(sql).values() if isinstance(thing, sql.Table)):
        there = columns(store, table.name)
        assert tuple(there[: len(table.columns)]) == table.columns, table.name


def test_the_session_leads_every_key_of_what_belongs_to_it(store: PostgresStore) -> None:
    first_key = """
        SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid=i.indrelid AND a.attnum=i.indkey[0]
        WHERE i.indisprimary AND i.indrelid=CAST(? AS regclass)
    """
    for name in [*(table.name for table in sql.OF_SESSION), "entry_text"]:
        assert store.driver.all(first_key, [f'"{store.driver.schema}"."{name}"']) == [("session",)], name


def test_health_sees_missing_bytes(store: PostgresStore) -> None:
    new_session(store, "whole", [])
    with store.write():
        store.append_raw(1, 0, b"bytes")
    assert store.check().problems == []
    with store.write():
        store.driver.run('DELETE FROM "blob"')
    assert len(store.check().problems) == 1


def test_archives_in_one_database_do_not_see_each_other(store: PostgresStore, postgres_archive: str) -> None:
    other = open_store(f"{postgres_archive}_other")
    new_session(store, "mine", [in_prompt("word")])
    assert other.count_sessions(SessionFilter()) == 0
    other.close()
    with store.write():
        store.driver.run(f'DROP SCHEMA "{store.driver.schema}_other" CASCADE')


def test_sizes_add_up(store: PostgresStore) -> None:
    sizes = store.sizes()
    assert set(sizes) == {"raw", "index", "rest", "total"}
    assert sizes["total"] == sizes["raw"] + sizes["index"] + sizes["rest"] > 0


# several at once --------------------------------------------------------------------------------------------------


def at_once(number: int, work: Callable[[], None]) -> None:
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_eight_processes_make_one_archive_and_count_without_losing_one(postgres_url: str) -> None:
    def add_up() -> None:
        store = open_store(postgres_url)
        for _ in range(25):
            add_one(store)
        store.close()

    at_once(8, add_up)
    store = open_store(postgres_url)
    assert store.setting("count") == "200"
    store.close()


@pytest.mark.parametrize("create", [True, False])
def test_an_archive_is_opened_while_its_creator_commits(
    postgres_archive: str, monkeypatch: pytest.MonkeyPatch, create: bool
) -> None:
    """Its tables are listed already, and this connection still believes that there is no such schema."""
    ask, write = postgres._applied_migrations, PostgresDriver.write
    lock_taken: list[bool] = []

    def ask_too_early(driver: PostgresDriver) -> sql_store.Applied:
        if not lock_taken:
            raise NotAnArchive(driver.url, 'relation "schema_migrations" does not exist')
        return ask(driver)

    @contextmanager
    def write_and_learn(driver: PostgresDriver) -> Iterator[None]:
        with write(driver):
            lock_taken.append(True)
            yield

    monkeypatch.setattr(postgres, "_applied_migrations", ask_too_early)
    monkeypatch.setattr(PostgresDriver, "write", write_and_learn)
    store = open_store(postgres_archive, create=create, upgrade=False)
    assert lock_taken == [True]
    assert store.setting("key") == ""
    store.close()


def test_an_archive_that_another_process_creates_first_is_used_as_it_is(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one creates it between our look and our lock."""
    ask = postgres._applied_so_far

    def ask_and_lose(driver: PostgresDriver) -> sql_store.Applied:
        seen = ask(driver)
        monkeypatch.setattr(postgres, "_applied_so_far", ask)
        open_store(postgres_url).close()
        return seen

    monkeypatch.setattr(postgres, "_applied_so_far", ask_and_lose)
    store = open_store(postgres_url, upgrade=False)
    assert store.check().problems == []
    store.close()


def test_an_archive_appears_whole(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can open one that has only some of its tables, also when its creator fails at the last step."""
    steps = (*sql_store.known_migrations("postgres"), sql_store.Migration(99, "broken", "SELECT 1/0", "abc"))
    with monkeypatch.context() as patch, pytest.raises(psycopg.errors.DivisionByZero):
        patch.setattr(sql_store, "known_migrations", lambda engine: steps)
        open_store(postgres_url)
    with pytest.raises(NoArchive):
        open_store(postgres_url, create=False)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_writers_take_turns_whatever_the_isolation_of_the_server(postgres_archive: str, level: str) -> None:
    strict = f"{postgres_archive}&options=-c%20default_transaction_isolation%3D{level.replace(' ', '%5C%20')}"
    first, second = open_store(strict), open_store(strict)
    waiting = threading.Thread(target=add_one, args=[second])
    with first.write():
        waiting.start()
        wait_for_waiter(first, waiting)
        first.set_setting("count", "1")
    waiting.join()
    assert first.setting("count") == "2"
    first.close()
    second.close()


def add_one(store: Store) -> None:
    with store.write():
        store.set_setting("count", str(int(store.setting("count") or 0) + 1))


def wait_for_waiter(store: Store, waiting: threading.Thread) -> None:
    """Until the thread waits for the lock that this connection holds."""
    assert isinstance(store, PostgresStore)
    sql = """
        SELECT 1 FROM pg_locks held JOIN pg_locks wanted USING (locktype, database, classid, objid)
        WHERE held.pid=pg_backend_pid() AND locktype='advisory' AND held.granted AND NOT wanted.granted
    """
    while store.driver.one(sql) is None:
        assert waiting.is_alive()


def test_a_reader_does_not_wait_for_a_writer(store: PostgresStore, postgres_archive: str) -> None:
    reader = open_store(postgres_archive)
    with store.write():
        store.set_setting("key", "new")
        assert reader.setting("key") == ""
    assert reader.setting("key") == "new"
    reader.close()


def test_a_writer_that_waits_too_long_says_that_the_archive_is_busy(
    store: PostgresStore, postgres_archive: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_driver, "LOCK_SECONDS", 0.05)
    other = open_store(postgres_archive)
    with store.write(), pytest.raises(Busy), other.write():
        pass
    with other.write():
        other.set_setting("key", "now")
    other.close()
    assert store.setting("key") == "now"


def test_rows_are_streamed_while_other_statements_run(store: PostgresStore) -> None:
    new_session(store, "rows", [in_prompt("word")] * 2500)
    rows = store.driver.each('SELECT "seq" FROM "message" ORDER BY "seq"')
    assert next(rows) == (0,)
    with store.write():
        store.driver.run('DELETE FROM "message"')
    assert [row[0] for row in rows] == list(range(1, 2500))


def test_rows_asked_for_in_a_transaction_can_be_read_after_it(store: PostgresStore) -> None:
    new_session(store, "rows", [in_prompt("word")] * 3)
    with store.write():
        rows = store.driver.each('SELECT "seq" FROM "message" ORDER BY "seq"')
        assert next(rows) == (0,)
    assert list(rows) == [(1,), (2,)]


def test_a_stream_of_rows_that_is_given_up_ends_its_transaction(store: PostgresStore) -> None:
    new_session(store, "rows", [in_prompt("word")] * 2500)
    rows = store.driver.each('SELECT "seq" FROM "message" ORDER BY "seq"')
    next(rows)
    assert isinstance(rows, Generator)
    rows.close()
    assert store.driver.connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    with store.write():
        store.set_setting("key", "value")
    assert store.setting("key") == "value"


def test_nothing_of_a_transaction_is_left_in_its_connection(store: PostgresStore, postgres_server: str) -> None:
    """A pooler may give each transaction another connection: settings, cursors and locks must end with it."""
    settings = "SELECT name, setting FROM pg_settings WHERE source='session' ORDER BY name"
    with psycopg.connect(postgres_server, client_encoding="utf8", application_name="everturn") as fresh:
        usual = fresh.execute(settings).fetchall()
    new_session(store, "pooled", [in_prompt("word")] * 1100)
    rows = store.driver.each('SELECT "seq" FROM "message"')
    next(rows)
    with store.reading():
        assert store.search(IndexQuery(groups=((("word",),),)))
    with store.driver.connection.cursor() as cursor:
        assert cursor.execute(settings).fetchall() == usual
        assert cursor.execute("SELECT name FROM pg_cursors").fetchall() == []
        held = "SELECT 1 FROM pg_locks WHERE locktype='advisory' AND pid=pg_backend_pid()"
        assert cursor.execute(held).fetchall() == []
    assert len(list(rows)) == 1099


# clients that stop ------------------------------------------------------------------------------------------------

_STOP_IN_TRANSACTION = """
import os, signal, sys
from everturn.store.contract import open_store
store = open_store(sys.argv[1])
with store.write():
    store.set_setting("count", "stopped")
    os.kill(os.getpid(), signal.SIGSTOP)
"""
_STOP_IN_COPY = """
import os, signal, sys
from everturn.store.contract import open_store
store = open_store(sys.argv[1])
def rows():
    for number in range(20_000):
        yield f"key {number}", "stopped"
    os.kill(os.getpid(), signal.SIGSTOP)
with store.write():
    store.driver.copy('"setting" ("key","value")', rows())
"""


@pytest.mark.parametrize("program", [_STOP_IN_TRANSACTION, _STOP_IN_COPY], ids=["in a transaction", "in a COPY"])
def test_a_stopped_client_does_not_keep_the_others_waiting(
    store: PostgresStore, postgres_archive: str, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(postgres_driver, "STALLED_SECONDS", 0.2)
    stopped = subprocess.Popen([sys.executable, "-c", program, postgres_archive], env=OWN_CODE)
    try:
        _, status = os.waitpid(stopped.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        with store.write():
            store.set_setting("count", "1")
        assert store.setting("count") == "1"
        assert store.setting("key 1") == ""
    finally:
        stopped.kill()
        stopped.wait()


@pytest.mark.slow
def test_eight_processes_create_one_archive(postgres_url: str) -> None:
    program = "import sys; from everturn.store.contract import open_store; open_store(sys.argv[1]).close()"
    started = [
        subprocess.Popen([sys.executable, "-c", program, postgres_url], stderr=subprocess.PIPE, env=OWN_CODE)
        for _ in range(8)
    ]
    failures = [error for process in started if (error := process.communicate()[1])]
    assert failures == []


# a shared archive -------------------------------------------------------------------------------------------------


def test_a_shared_archive_is_migrated_by_its_administrator_only(
    store: PostgresStore, postgres_archive: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = sql_store.known_migrations("postgres")
    with store.write():
        store.set_setting("shared", "yes")
    steps = (*known, sql_store.Migration(99, "later", 'CREATE TABLE "later" ("x" text)', "abc"))
    monkeypatch.setattr(sql_store, "known_migrations", lambda engine: steps)
    for upgrade in (True, False):
        with pytest.raises(MigrationNeeded, match=rf"schema {known[-1].number}, .* needs schema 99; .*admin migrate"):
            open_store(postgres_archive, upgrade=upgrade)
    migrate_store(postgres_archive).close()
    opened = open_store(postgres_archive, upgrade=False)
    assert opened.check(quick=True).schema == 99
    opened.close()


# erasing ----------------------------------------------------------------------------------------------------------


def test_nothing_deleted_is_left_in_the_files_of_the_server(store: PostgresStore) -> None:
    folder = Path(str(store.driver.all("SHOW data_directory")[0][0]))
    try:
        list((folder / "base").iterdir())
    except OSError as why:
        pytest.skip(f"the files of the server cannot be looked at: {why}")
    canary = f"canary{random.getrandbits(60):x}"

    def left() -> bool:
        store.driver.script("CHECKPOINT")
        return any(canary.encode() in file.read_bytes() for file in (folder / "base").rglob("*") if file.is_file())

    session = new_session(store, "erased", [in_prompt(f"the {canary} sings")])
    with store.write():
        store.set_text(SessionText(session=session, title=canary, workspace=f"/{canary}"))
    assert left()
    with store.write():
        store.delete_file(1)
    store.scrub()
    assert not left()
    assert store.check().problems == []


def test_a_backup_is_left_to_the_server(store: PostgresStore) -> None:
    with pytest.raises(UsageError, match="pg_dump"):
        store.backup("copy.dump")


# one clear sentence -----------------------------------------------------------------------------------------------


def in_database(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(EverturnError, match="cannot open") as caught:
        open_store("postgresql://someone:secret@127.0.0.1:1/nowhere?connect_timeout=2")
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_database_that_is_not_there_is_one_sentence(postgres_server: str) -> None:
    with pytest.raises(EverturnError, match=r"nowhere_at_all.*does not exist") as caught:
        open_store(in_database(postgres_server, "nowhere_at_all"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["postgresql://h/d?schema=a-b", "postgresql://h/d?schema=", "postgresql://h/d?schema=%22x"]
)
def test_a_schema_name_that_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="schema"):
        open_store(url)


def test_an_unknown_word_in_the_url_is_one_sentence() -> None:
    with pytest.raises(EverturnError, match="cannot open"):
        open_store("postgresql://127.0.0.1:1/d?nonsense=1")


@pytest.mark.parametrize(
    ("url", "conninfo", "shown", "schema"),
    [
        ("postgresql://h/d", "postgresql://h/d", "postgresql://h/d", "everturn"),
        ("postgres://u:p@h:5/d?schema=x", "postgres://u:p@h:5/d", "postgres://u@h:5/d?schema=x", "x"),
        (
            "postgresql://u:p%40@/d?host=/tmp&password=q",
            "postgresql://u:p%40@/d?host=/tmp&password=q",
            "postgresql://u@/d?host=/tmp",
            "everturn",
        ),
        ("postgresql:///d", "postgresql:///d", "postgresql:///d", "everturn"),
    ],
)
def test_a_url_is_taken_apart(url: str, conninfo: str, shown: str, schema: str) -> None:
    assert parse_address(url) == (conninfo, shown, schema)


def test_without_the_driver_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("everturn.store.postgres_driver", "everturn.store.postgres_index"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(EverturnError, match=r"pip install 'everturn\[postgres\]'"):
        open_store("postgresql://127.0.0.1/d")


def test_an_archive_that_is_not_there_is_not_made_unless_asked(postgres_url: str, postgres_server: str) -> None:
    with pytest.raises(NoArchive, match="everturn sync"):
        open_store(postgres_url, create=False)
    with psycopg.connect(postgres_server) as connection:
        schemas = connection.execute(
            "SELECT 1 FROM pg_namespace WHERE nspname=%s", [parse_address(postgres_url).schema]
        )
        assert schemas.fetchall() == []


def test_an_old_server_is_refused(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "OLDEST", 1000)
    with pytest.raises(EverturnError, match="needs version 1000 or newer"):
        open_store(postgres_url)


def test_a_database_in_another_encoding_is_refused(postgres_server: str) -> None:
    name = f"test_ascii_{random.getrandbits(60)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
        try:
            with pytest.raises(EverturnError, match="SQL_ASCII"):
                open_store(in_database(postgres_server, name))
        finally:
            connection.execute(f"DROP DATABASE {name}")


def test_a_newer_archive_is_left_alone(new_store: PostgresStore, postgres_url: str) -> None:
    new_store.driver.run("INSERT INTO schema_migrations VALUES (9999, 'later', '', 0)")
    with pytest.raises(NewerArchive, match="9999"):
        open_store(postgres_url)


def test_a_schema_we_do_not_know_is_left_alone(new_store: PostgresStore, postgres_url: str) -> None:
    new_store.driver.run("UPDATE schema_migrations SET checksum='another'")
    with pytest.raises(NotAnArchive, match="schema step 1"):
        open_store(postgres_url)


def test_tables_of_somebody_else_are_left_alone(postgres_url: str, postgres_server: str) -> None:
    schema = parse_address(postgres_url).schema
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{schema}" CREATE TABLE "session" ("theirs" text)')
        with pytest.raises(NotAnArchive, match="already exists"):
            open_store(postgres_url)
        there = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname=%s", [schema]).fetchall()
        assert there == [("session",)]


def test_a_role_without_rights_is_one_sentence(postgres_url: str, postgres_server: str) -> None:
    role = f"test_role_{random.getrandbits(60)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        try:
            with pytest.raises(EverturnError, match="permission denied"):
                open_store(f"{postgres_url}&options=-c%20role%3D{role}")
        finally:
            connection.execute(f"DROP ROLE {role}")


def test_a_lost_connection_is_one_sentence_and_keeps_nothing_half_written(
    store: PostgresStore, postgres_server: str
) -> None:
    def write_and_lose() -> None:
        with store.write():
            store.set_setting("key", "half")
            with psycopg.connect(postgres_server, autocommit=True) as connection:
                connection.execute("SELECT pg_terminate_backend(%s)", [store.driver.connection.info.backend_pid])
            store.set_setting("key", "more")

    with pytest.raises(EverturnError, match="nothing half-written was kept"):
        write_and_lose()
    with psycopg.connect(postgres_server) as connection:
        assert (
            connection.execute(f'SELECT * FROM "{store.driver.schema}"."setting" WHERE "key" = %s', ["key"]).fetchall()
            == []
        )
    with pytest.raises(EverturnError):
        store.setting("key")


def test_a_full_disk_is_one_sentence(store: PostgresStore) -> None:
    full = "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
    with pytest.raises(NoSpace), store.write():
        store.set_setting("key", "half")
        store.driver.script(full)
    assert store.setting("key") == ""
    with store.write():
        store.set_setting("key", "whole")
    assert store.setting("key") == "whole"


def test_a_name_too_long_for_an_index_is_one_sentence(store: PostgresStore) -> None:
    endless = "".join(map(chr, random.Random(1).choices(range(0x4E00, 0x9FFF), k=5000)))
    with pytest.raises(EverturnError, match="too long"), store.write():
        store.add_file(SourceFile(machine="here", path=endless))
