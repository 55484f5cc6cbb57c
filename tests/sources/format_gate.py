"""The gate for a new format: it needs samples, a golden and the generic contract tests.

`gaps(formats, tests)` lists what a tree of format packages lacks, one sentence each; an empty list opens the gate. The tests of
`test_format_contract.py` are for every format with goldens, except those in its set OWN: these have such tests in their folder.
"""

from __future__ import annotations

import ast
from pathlib import Path

#: Checks of `tests.sources.goldens` that every format passes in a test of its own.
CONTRACT = ("assert_golden", "assert_keeps_promises", "assert_survives")
SHARED = "test_format_contract.py"


def gaps(formats: Path, tests: Path) -> list[str]:
    """Return what the format packages in one folder lack in the folder of tests that mirrors it."""
    names = sorted(path.parent.name for path in formats.glob("*/__init__.py") if _defines_source(path))
    single = sorted(path.stem for path in formats.glob("*.py") if _defines_source(path))
    return [gap for name in [*names, *single] for gap in _format_gaps(name, tests / name)]


def _defines_source(module: Path) -> bool:
    """Return whether a module assigns `SOURCE` at its top level, with or without a type."""
    for node in ast.parse(module.read_text("utf-8")).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "SOURCE" for target in targets):
            return True
    return False


def _format_gaps(name: str, tests: Path) -> list[str]:
    files = [path for path in (tests / "samples").rglob("*") if path.is_file()]
    goldens = [path for path in files if path.name.endswith(".expected.json")]
    found = []
    if len(files) == len(goldens):
        found.append(f"{name}: no sample in {tests.name}/samples")
    if not goldens:
        found.append(f"{name}: no golden (*.expected.json) in {tests.name}/samples")
    called = set().union(*map(_called_in_tests, tests.glob("test_*.py")))
    if goldens and (shared := tests.parent / SHARED).exists() and name not in _formats_left_out(shared):
        called |= _called_in_tests(shared)
    return found + [f"{name}: no test calls {check}" for check in CONTRACT if check not in called]


def _formats_left_out(module: Path) -> set[str]:
    """Return the set OWN of a module of tests."""
    for node in ast.parse(module.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "OWN":
            return set(ast.literal_eval(node.value))
    return set()


def _called_in_tests(module: Path) -> set[str]:
    """Return the names of the functions that the test functions of a module call."""
    functions = [
        node
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    called = [node.func for function in functions for node in ast.walk(function) if isinstance(node, ast.Call)]
    names = {name.id for name in called if isinstance(name, ast.Name)}
    return names | {name.attr for name in called if isinstance(name, ast.Attribute)}
