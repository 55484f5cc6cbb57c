"""Types that several threads decode to at once: msgspec alone ends the process (a segmentation fault)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import everturn
from tests.waiting import PATIENCE

SOURCE = Path(everturn.__file__).parent

#: Threads that decode to new structs at the same moment, again and again. Without `prepared` this does not survive one round in ten.
RACE = """
import sys, threading, types
import msgspec
from everturn.model.conversation import prepared

sys.setswitchinterval(1e-6)
chain = [f"class C{n}(msgspec.Struct):\\n    one: 'C{n + 1} | None' = None\\n    many: 'list[C{n + 1}]' = []\\n" for n in range(12)]
source = "import msgspec\\n" + "".join(chain) + "class C12(msgspec.Struct):\\n    number: int = 1\\n"
for round in range(60):
    module = types.ModuleType(f"round{round}")
    sys.modules[module.__name__] = module
    exec(source, module.__dict__)
    together, wrong = threading.Barrier(4), []

    def decode(kind):
        together.wait()
        try:
            assert msgspec.convert({"one": {"many": [{}]}}, prepared(kind)).one.many
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=decode, args=[getattr(module, f"C{n % 3}")]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
print("decoded")
"""


def test_threads_that_decode_to_a_new_struct_at_once_all_get_it() -> None:
    env = {"PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", RACE], capture_output=True, text=True, timeout=PATIENCE, check=False, env=env
    )
    assert (done.returncode, done.stdout) == (0, "decoded\n"), done.stderr


def unprepared(tree: ast.AST) -> list[int]:
    """The lines on which a function decodes to a struct that may not be prepared."""
    found = []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                name = ast.unparse(call.func)
                kinds = [word.value for word in call.keywords if word.arg == "type"]
                kinds += call.args[1:2] if name == "msgspec.convert" else []
                if name in ("msgspec.convert", "msgspec.json.decode", "msgspec.msgpack.decode"):
                    found += [
                        kind.lineno
                        for kind in kinds
                        if not ast.unparse(kind).startswith("prepared(") and ast.unparse(kind) not in PLAIN
                    ]
    return sorted(set(found))


#: Types without structs, and a union that a decoder of its module has prepared.
PLAIN = ("dict[str, Any]", "Raw", "Record")
#: Read in the first thread, before there are others.
FIRST_THREAD = ("config_file.py",)


@pytest.mark.parametrize("line", ["msgspec.convert(x, Kind)", "msgspec.json.decode(x, type=Kind)"])
def test_what_is_not_prepared_is_seen(line: str) -> None:
    assert unprepared(ast.parse(f"def f(x):\n    return {line}")) == [2]
    assert unprepared(ast.parse(f"def f(x):\n    return {line.replace('Kind', 'prepared(Kind)')}")) == []


def test_no_function_decodes_to_a_struct_that_is_not_prepared() -> None:
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if path.name not in FIRST_THREAD and (lines := unprepared(ast.parse(path.read_text("utf-8"))))
    }
    assert found == {}
