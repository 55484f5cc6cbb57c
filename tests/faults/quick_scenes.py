"""Which scenes are slow. Not in `scenes`: the processes that are struck have no need of pytest."""

from __future__ import annotations

import pytest

from tests.faults.scenes import SCENES

#: `make test` looks at the one that has something of all of them.
QUICK_SCENES = [name if name == "rewritten" else pytest.param(name, marks=pytest.mark.slow) for name in SCENES]
