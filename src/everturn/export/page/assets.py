"""The look and the keys of the page, as they stand in the package."""

from __future__ import annotations

from pathlib import Path

STYLE = Path(__file__).with_name("style.css").read_text("utf-8")
SCRIPT = Path(__file__).with_name("page.js").read_text("utf-8")
