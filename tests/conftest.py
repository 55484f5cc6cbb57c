"""What every test stands on: a home folder that is nobody's, and a PostgreSQL server that is real."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from tests.quick import QUICK, choose_few, try_fewer_examples
from tests.ready_archives import ServerArchives, copy_new_archives

#: The same examples in every run, without a time limit: a test that fails now and then is a bug of its own.
#: `pytest --hypothesis-profile=random` looks further.
settings.register_profile("steady", derandomize=True, deadline=None, database=None, max_examples=60)
settings.register_profile("random", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("steady")

_archives = count(1)

#: Tests of archives that are being made, and of what may go wrong then.
MAKING = ("faults/", "cli/test_schema_upgrade.py", "store/test_sqlite.py", "store/test_sqlite_open.py")


def pytest_configure() -> None:
    """Take Ctrl-C as usual: a shell without job control ignores it for what runs in the background, and for its children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_itemcollected(item: pytest.Item) -> None:
    if QUICK:
        try_fewer_examples(getattr(item, "obj", None))


@pytest.hookimpl(trylast=True)  # of the cases that are left when `-m` and `-k` have chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = choose_few(items) if QUICK else set()
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_collection() -> None:
    gc.disable()  # everything that is collected stays


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # ten thousand tests stay until the end: nobody needs to look at them for garbage again and again
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


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


@pytest.fixture(scope="module", autouse=True)
def copied_archives(request: pytest.FixtureRequest) -> Iterator[None]:
    """A new archive is a copy of one that was made before."""
    with pytest.MonkeyPatch.context() as patch:
        if not str(request.path.relative_to(Path(__file__).parent)).startswith(MAKING):
            copy_new_archives(patch)
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


@pytest.fixture(scope="session")
def server_archives(postgres_server: str) -> Iterator[ServerArchives]:
    with closing(ServerArchives(postgres_server)) as archives:
        yield archives


@pytest.fixture
def postgres_archive(server_archives: ServerArchives) -> Iterator[str]:
    """The URL of an archive that is there and empty: much cheaper than one that does not exist yet."""
    with server_archives.one() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an archive that does not exist yet, in a schema of its own."""
    import psycopg

    schema = f"test_{os.getpid()}_{next(_archives)}"
    yield f"{postgres_server}{'&' if '?' in postgres_server else '?'}schema={schema}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
