"""The work of a page follows the page, not the archive: counted questions, rows and bytes, never a clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from everturn.store.contract import Store, open_store
from tests.recall.archives import put
from tests.web.server import Served, served

LONG = "22222222-2222-4333-8444-555555555555"


class Counting:
    """A driver that counts what is asked of it and what it gives."""

    def __init__(self, driver: Any, n: Counter[str]) -> None:
        self._driver, self._n = driver, n

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def all(self, sql: str, params: Any = ()) -> Any:
        rows = self._driver.all(sql, params)
        self._n["questions"] += 1
        self._n["rows"] += len(rows)
        return rows

    def one(self, sql: str, params: Any = ()) -> Any:
        self._n["questions"] += 1
        self._n["rows"] += 1
        return self._driver.one(sql, params)

    def each(self, sql: str, params: Any = ()) -> Any:
        self._n["questions"] += 1
        for row in self._driver.each(sql, params):
            self._n["rows"] += 1
            yield row


@contextmanager
def counted(folder: Path) -> Iterator[tuple[Served, Counter[str]]]:
    n: Counter[str] = Counter()

    def opened(url: str) -> Store:
        store: Any = open_store(url, create=False)
        store.driver = Counting(store.driver, n)
        made: Store = store
        return made

    with served(folder, opened) as made:
        yield made, n


def cost(made: Served, n: Counter[str], path: str) -> tuple[int, int, int]:
    """Questions, rows and bytes of a page; what is held for a while is not asked for again."""
    made.ask(path)
    n.clear()
    answer = made.ask(path)
    assert answer.status == 200, path
    return n["questions"], n["rows"], len(answer.body)


def costs(folder: Path, sessions: int, turns: int) -> dict[str, tuple[int, int, int]]:
    folder.mkdir()
    with counted(folder) as (made, n):
        store = made.taken.store
        for number in range(sessions):
            put(store, f"{number:08d}-0000-4000-8000-000000000000", ended=1_700_000_000_000 + number, n_turns=3)
        history = made.taken.history
        pieces = [history.turn(f"question {number:06d}", f"answer {number:06d}") for number in range(turns)]
        number = made.taken.take_in(*pieces, sid=LONG).id
        paths = {
            "home": "/",
            "sessions": "/sessions",
            "next page": "/sessions?after=1700000000060.30",
            "sessions api": "/api/sessions?limit=50",
            "first turns": f"/s/{number}",
            "middle": f"/s/{number}?turn={turns // 2}",
            "last turn": f"/s/{number}?turn={turns}",
            "record": f"/s/{number}/m/{turns}",
            "lineage": f"/s/{number}/lineage",
            "restore": f"/s/{number}/restore",
            "search": "/search?q=question",
        }
        return {name: cost(made, n, path) for name, path in paths.items()}


@pytest.mark.slow
def test_no_page_grows_with_the_archive_or_the_session(tmp_path: Path) -> None:
    small, large = costs(tmp_path / "small", 120, 120), costs(tmp_path / "large", 2_000, 1_500)
    for name, (questions, rows, size) in large.items():
        if name != "search":  # how much is worth ranking is bounded, but not by so few
            # Where a stretch of bytes or a page of an index happens to begin makes a question more or less.
            assert questions <= small[name][0] + 3 and rows <= small[name][1] + 3, name
        assert size < 1.1 * small[name][2] + 500, name
        assert size < 1_000_000


@pytest.mark.slow
def test_the_strip_of_all_turns_is_read_once_and_does_not_grow(tmp_path: Path) -> None:
    with counted(tmp_path) as (made, n):
        history = made.taken.history
        sizes = []
        for turns in (300, 1_500):
            sid = f"{turns:08d}-2222-4333-8444-555555555555"
            number = made.taken.take_in(*[history.turn("q", "a", sid=sid) for _ in range(turns)], sid=sid).id
            questions, rows, size = cost(made, n, f"/s/{number}/map")
            assert (questions, rows) <= (2, 2)
            sizes.append(size)
        assert sizes[1] < 1.2 * sizes[0]


def test_one_huge_turn_does_not_make_a_huge_page(tmp_path: Path) -> None:
    with counted(tmp_path) as (made, _):
        archive = made.taken
        pieces = [archive.history.line("user", "go " + "x" * 300_000)]
        for number in range(200):
            pieces += [
                archive.use("Bash", f"c{number}", command="cat big"),
                archive.back(f"c{number}", "line\n" * 5_000),
            ]
        number = archive.take_in(*pieces, archive.history.turn("then", "done")).id
        answer = made.ask(f"/s/{number}")
        assert answer.status == 200 and len(answer.body) < 1_000_000
        assert "/m/" in answer.text  # where the whole of what was cut is
        assert len(made.ask(f"/s/{number}/m/1").body) < 1_000_000
