"""What the tests of failures share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.faults.scenes import shrink_pieces


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose files never reach a disk, where there is one: a process fails there as elsewhere, only faster."""
    memory = "/dev/shm"
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read and store in pieces as small as `victim` does."""
    shrink_pieces(monkeypatch.setattr)


@pytest.fixture
def traceable() -> None:
    """Some containers have strace and forbid its use."""
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"strace may not be used here: {tried.stderr.strip().splitlines()[-1:]}")
