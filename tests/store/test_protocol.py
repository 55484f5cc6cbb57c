"""Every method of the `Store` protocol is exercised by the contract tests, which run on every engine."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from everturn.store import contract

HERE = Path(__file__).parent
#: The contract tests, and the helpers that call the store for them.
CONTRACT_TESTS = [HERE / "building.py", *sorted(HERE.glob("test_contract*.py"))]


def protocol_methods() -> set[str]:
    """Return the public methods of the protocol."""
    tree = ast.parse(Path(contract.__file__).read_text("utf-8"))
    (store,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Store")
    names = (node.name for node in store.body if isinstance(node, ast.FunctionDef))
    return {name for name in names if not name.startswith("_")}


def store_names(tree: ast.Module) -> set[str]:
    """Return the names that hold a store: parameters annotated as one, and results of `open_store`."""
    names = {
        node.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) and node.annotation is not None and ast.unparse(node.annotation) == "Store"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and "open_store(" in ast.unparse(node.value):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
            names |= {node.optional_vars.id} if "open_store(" in ast.unparse(node.context_expr) else set()
    return names


def called_methods(tree: ast.Module) -> Iterator[str]:
    """Yield the methods that are called on a store."""
    names = store_names(tree)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and ast.unparse(node.func.value) in names
        ):
            yield node.func.attr


def test_every_method_of_a_store_has_a_contract_test() -> None:
    called = {name for path in CONTRACT_TESTS for name in called_methods(ast.parse(path.read_text("utf-8")))}
    assert protocol_methods() - called == set(), "write a test for it in tests/store/test_contract*.py"


def test_the_gate_sees_a_call_on_a_store_and_no_other_call() -> None:
    tree = ast.parse("def test(store: Store) -> None:\n    store.files()\n    rows.append(1)\n    other.census()\n")
    assert set(called_methods(tree)) == {"files"}
    assert {"files", "scrub", "unmatched_hook_calls"} <= protocol_methods()
