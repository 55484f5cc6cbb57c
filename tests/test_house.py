"""The figures of `scripts/house.py`, on trees small enough to count by hand."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from scripts import house


def write_tree(root: Path, files: dict[str, str]) -> dict[str, house.Module]:
    """Write a package `shop` and parse it. Every folder gets an `__init__.py`."""
    for name, text in {"__init__.py": "", **files}.items():
        path = root / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(dedent(text), "utf-8")
    return house.read_modules(root / "shop")


def test_importers_are_found_wherever_the_import_is(tmp_path: Path) -> None:
    modules = write_tree(
        tmp_path,
        {
            "till.py": "",
            "price.py": "from shop import till\nfrom shop.price import own_name",
            "bill.py": """
                from typing import TYPE_CHECKING
                if TYPE_CHECKING:
                    from shop.price import Price
                """,
            "order.py": """
                def add_item():
                    import shop.till
                    from .price import Price
                """,
        },
    )
    assert house.find_importers(modules) == {
        "shop.till": {"shop.price", "shop.order"},
        "shop.price": {"shop.bill", "shop.order"},
    }


def test_an_import_through_a_package_counts_for_the_module_that_defines_the_name(tmp_path: Path) -> None:
    modules = write_tree(
        tmp_path,
        {
            "stock/__init__.py": "from shop.stock.shelf import Shelf as Rack\n__all__ = ['Rack']",
            "stock/shelf.py": "class Shelf: ...",
            "order.py": "from shop.stock import Rack",
        },
    )
    assert house.find_importers(modules) == {"shop.stock.shelf": {"shop.order"}}


def test_a_package_that_uses_what_it_imports_is_an_importer(tmp_path: Path) -> None:
    modules = write_tree(
        tmp_path,
        {"pages/__init__.py": "from shop.pages import home\nPAGES = [home.draw]", "pages/home.py": "def draw(): ..."},
    )
    assert house.find_importers(modules) == {"shop.pages.home": {"shop.pages"}}


def test_a_class_name_is_a_duplicate_when_it_is_public_and_at_the_top_of_two_modules(tmp_path: Path) -> None:
    modules = write_tree(
        tmp_path,
        {
            "a.py": "class Bill: ...\nclass _Row: ...\nclass Outer:\n    class Inner: ...",
            "b.py": "class Bill: ...\nclass _Row: ...\nclass Inner: ...",
        },
    )
    assert house.find_duplicate_classes(modules) == {"Bill": ["shop.a", "shop.b"]}


@pytest.mark.parametrize("name", ["counted", "_said", "__told", "rewritten", "made"])
def test_a_participle_alone_is_no_name_for_a_function(name: str) -> None:
    assert house.is_bare_participle(name)


@pytest.mark.parametrize("name", ["feed", "_embed", "count_sold", "is_counted", "find_said", "count", "__init__"])
def test_other_names_of_functions_are_fine(name: str) -> None:
    assert not house.is_bare_participle(name)


def test_participles_are_found_among_methods_and_inner_functions(tmp_path: Path) -> None:
    text = """\
        class Till:
            def opened(self):
                async def _sold(): ...
                def _counted(): ...
        """
    found = house.find_participles(write_tree(tmp_path, {"till.py": text}))
    assert found == ["shop.till:2 opened", "shop.till:3 _sold", "shop.till:4 _counted"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("shop.asking", True), ("shop.sqlite_opening", True), ("shop.saved", True), ("shop.ranking", False),
     ("shop.tui.feed", False), ("shop.asking.order", False)],
)  # fmt: skip
def test_modules_are_named_by_nouns(name: str, expected: bool) -> None:
    assert house.has_verb_ending(name) is expected


def test_the_figures_of_a_small_tree(tmp_path: Path) -> None:
    modules = write_tree(
        tmp_path,
        {
            "stock/__init__.py": '"""What is there."""\ndef count_items(): ...',
            "stock/inner/shelf.py": "x = 1\n" * 70,
            "lazy/__init__.py": "def __getattr__(name): ...",
            "order.py": '"""Whatever."""\nfrom shop.stock.inner import shelf',
        },
    )
    figures = {name: figure.value for name, figure in house.measure_tree(modules).items()}
    assert figures == {
        "files": 6, "packages": 2, "lines": 75, "median lines": 36, "max lines": 70, "under 60 lines": 1,
        "one importer": 1, "duplicate classes": 0, "-ing/-ed modules": 0, "bare participles": 0,
        "__init__ with definitions": 1, 'docstrings with "What"': 1,
    }  # fmt: skip


def test_every_missed_bar_is_named(tmp_path: Path) -> None:
    tree = house.measure_tree(write_tree(tmp_path, {"a.py": "class Bill: ...", "b.py": "class Bill: ..."}))
    touched = {"loop": ["a.py"] * 45, "page": ["a.py"] * 45}
    assert house.find_misses(tree, touched) == ["duplicate classes: 1 > 0", "files touched by page: 45 > 44.25"]
