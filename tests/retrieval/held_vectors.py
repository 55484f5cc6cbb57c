"""Vectors in a file of their own, for tests and benchmarks."""

from __future__ import annotations

import shutil
import weakref
from pathlib import Path
from tempfile import mkdtemp

from everturn.store.vector_file import VectorFile


class HeldVectors(VectorFile):
    """Vectors whose file goes away with them."""

    def __init__(self) -> None:
        folder = mkdtemp()
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        super().__init__(Path(folder) / "some.vectors")
