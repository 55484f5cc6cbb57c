"""The wheel has every file that the source tree has, and runs from a folder where nothing else of everturn is."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
UV = Path(sys.executable).with_name("uv")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked as an installer does."""
    if not UV.exists():
        pytest.skip("needs uv, which is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    command = [str(UV), "build", "--wheel", "-o", str(folder), str(ROOT)]
    for more in (["--offline"], []):
        built = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
        if built.returncode == 0:
            break
    else:
        pytest.skip(f"the build backend cannot be fetched here: {built.stderr[-200:]}")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


def test_no_file_is_missing(installed: Path) -> None:
    source = ROOT / "src" / "everturn"
    files = {one.relative_to(source) for one in source.rglob("*") if one.is_file() and "__pycache__" not in one.parts}
    assert {str(one) for one in files if not (installed / "everturn" / one).is_file()} == set()


def test_it_runs_where_nothing_else_of_everturn_is(installed: Path, tmp_path: Path) -> None:
    env = {
        **os.environ,
        "PYTHONPATH": str(installed),
        "HOME": str(tmp_path),
        "EVERTURN_HOME": str(tmp_path / "archive"),
    }

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "everturn", *words]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)

    where = [sys.executable, "-c", "import everturn; print(everturn.__file__)"]
    found = subprocess.run(where, env=env, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert found.startswith(str(installed))
    begun = run()  # archives a sample where there is no history
    assert begun.returncode == 0, begun.stderr
    sample = str(tmp_path / "archive" / "sample.db")
    for words in (("sessions",), ("search", "the"), ("show", "@last"), ("export", "@last", "--as", "html")):
        done = run(*words, "--db", sample)
        assert done.returncode == 0 and done.stdout, done.stderr
