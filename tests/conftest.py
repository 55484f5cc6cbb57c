"""What every test stands on: a home folder that is nobody's, and a PostgreSQL server that is real."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import settings

from tests.quick import QUICK, try_fewer_examples

#: The same examples in every run, without a time limit: a test that fails now and then is a bug of its own.
#: `pytest --hypothesis-profile=random` looks further.
settings.register_profile("steady", derandomize=True, deadline=None, database=None)
settings.register_profile("random", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("steady")

_archives = count(1)


def pytest_itemcollected(item: pytest.Item) -> None:
    if QUICK:
        try_fewer_examples(getattr(item, "obj", None))


@pytest.fixture(scope="session", autouse=True)
def nobodys_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test can touch the home folder, the agents' folders or the archive of whoever runs it."""
    home = tmp_path_factory.mktemp("home")
    folders = {
        "HOME": home,
        "USERPROFILE": home,
        "APPDATA": home / "AppData" / "Roaming",
        "LOCALAPPDATA": home / "AppData" / "Local",
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_DATA_HOME": home / ".local" / "share",
        "XDG_STATE_HOME": home / ".local" / "state",
        "XDG_CACHE_HOME": home / ".cache",
        "XDG_RUNTIME_DIR": home / ".run",
        "CLAUDE_CONFIG_DIR": home / ".claude",
        "EVERTURN_HOME": home / "everturn",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            # PG… would steer which server is used, EVERTURN_… which archive; EVERTURN_TEST_… is meant for us.
            if name.startswith(("PG", "EVERTURN_")) and not name.startswith("EVERTURN_TEST_"):
                patch.delenv(name)
        for name, folder in folders.items():
            patch.setenv(name, str(folder))
        yield


@pytest.fixture(scope="session")
def postgres_server(nobodys_home: None) -> Iterator[str]:
    """The URL of a PostgreSQL server: the one named by EVERTURN_TEST_POSTGRES, else one of our own."""
    named = os.environ.get("EVERTURN_TEST_POSTGRES", "")
    if named == "skip":
        pytest.skip("EVERTURN_TEST_POSTGRES=skip")
    if named:
        yield named
        return
    from tests.postgres_server import running

    with running() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an archive that does not exist yet, in a schema of its own."""
    import psycopg

    schema = f"test_{os.getpid()}_{next(_archives)}"
    yield f"{postgres_server}{'&' if '?' in postgres_server else '?'}schema={schema}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
