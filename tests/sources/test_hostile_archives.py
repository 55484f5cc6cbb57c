"""Archives that want to do harm: bombs, depth, cycles, links and names. Memory stays bounded, and each is told."""

# ruff: noqa: PLW0108 -- large samples are made when they are written
from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from everturn.store.contract import open_store

MOST_MEMORY = 300 << 20
#: Runs the command and says how much memory it had at most.
MEASURED = """
import atexit, runpy, sys
atexit.register(lambda: sys.stderr.write(open("/proc/self/status").read()))
sys.argv[0] = "everturn"
runpy.run_module("everturn", run_name="__main__")
"""
#: These are not unpacked, and the report says why.
BOMBS = {"zeros.zip", "one-string.zip", "unfinished-string.zip", "many-members.zip", "two-bombs.zip"}


def chat(name: str = "c1", text: str = "hello", **more: Any) -> dict[str, Any]:
    """A conversation as ChatGPT exports it."""
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": [text]}, "create_time": 1.0}
    mapping: dict[str, Any] = {"a": {"id": "a", "message": {"id": "a", **message}, "parent": None, "children": []}}
    return {
        "id": name,
        "conversation_id": name,
        "title": "t",
        "create_time": 1.0,
        "mapping": mapping,
        "current_node": "a",
        **more,
    }


def deep(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + closing * depth


def zipped(*members: tuple[str, bytes], level: int = 9) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
            for name, data in members:
                archive.writestr(name, data)

    return make


def written(data: bytes | str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(data if isinstance(data, bytes) else data.encode())

    return make


def patched(member: bytes, at: int, form: str, value: int) -> Callable[[Path], None]:
    """A zip file whose directory lies: a number at an offset of the first entry is replaced."""

    def make(path: Path) -> None:
        zipped(("conversations.json", member))(path)
        data = bytearray(path.read_bytes())
        entry = data.find(b"PK\x01\x02")
        struct.pack_into(form, data, entry + at, value)
        path.write_bytes(data)

    return make


def linked(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("conversations.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")


CHATS = json.dumps([chat()]).encode()


def after_chat(rest: bytes | str) -> bytes:
    """An export that begins like any other and goes on with something else."""
    return CHATS[:-1] + b"," + (rest if isinstance(rest, bytes) else rest.encode())


_WIDE = 5_000_000  # values
_DEPTHS = (100, 900, 980, 1000, 5000, 100_000)
SAMPLES: dict[str, Callable[[Path], None]] = {
    # bombs
    "zeros.zip": lambda path: zipped(("conversations.json", after_chat(b" " * 200_000_000 + b"1]")))(path),
    "one-string.zip": lambda path: zipped(("conversations.json", after_chat(b'{"mapping":{},"title":"' + b"a" * 150_000_000 + b'"}]')))(path),
    "unfinished-string.zip": lambda path: zipped(("conversations.json", after_chat(b'{"mapping":{},"title":"' + b"a" * 150_000_000)))(path),
    "object-bomb.zip": lambda path: zipped(("conversations.json", b'{"conversations":[' + b"1," * 50_000_000 + b"1]}"))(path),
    "wide.zip": lambda path: zipped(("conversations.json", after_chat(b'{"mapping":[' + b"[]," * _WIDE + b"[]]}]")))(path),
    "two-bombs.zip": lambda path: zipped(("conversations.json", CHATS), ("conversations-2.json", b"[" + b"0," * 60_000_000 + b"0]"))(path),
    "many-members.zip": lambda path: zipped(*((f"conversations-{n}.json", b"[]") for n in range(3000)))(path),
    "nested.zip": zipped(("conversations.json.zip", b"PK\x03\x04" + bytes(1000)), ("conversations.json", CHATS)),
    "same-name.zip": zipped(("conversations.json", CHATS), ("a/conversations.json", CHATS), ("b/conversations.json", CHATS)),
    # directories that lie
    "small-size.zip": lambda path: patched(after_chat(b" " * 5_000_000 + b"1]"), 24, "<L", 3)(path),
    "large-size.zip": patched(CHATS, 24, "<L", 0xFFFFFFF0),
    "negative-offset.zip": patched(CHATS, 42, "<L", 0xFFFFFFF0),
    "other-method.zip": patched(CHATS, 10, "<H", 99),
    "locked.zip": patched(CHATS, 8, "<H", 1),
    "wrong-checksum.zip": patched(CHATS, 16, "<L", 0),
    "long-name-field.zip": patched(CHATS, 28, "<H", 0xFFFF),
    "torn.zip": lambda path: (zipped(("conversations.json", CHATS * 1))(path), path.write_bytes(path.read_bytes()[:-30]))[0],
    "only-magic.zip": written(b"PK\x03\x04"),
    "only-end.zip": written(b"PK\x05\x06" + bytes(18)),
    "garbage.zip": written(b"PK\x03\x04" + bytes(range(256)) * 40),
    # links and names
    "link.zip": linked,
    "up.zip": zipped(("../../conversations.json", CHATS)),
    "absolute.zip": zipped(("/etc/conversations.json", CHATS)),
    "control.zip": zipped(("\x1b]0;owned\x07/conversations.json", CHATS)),
    "long-name.zip": zipped(("a" * 5000 + "/conversations.json", CHATS)),
    "folder.zip": zipped(("conversations.json/", b""), ("conversations-1.json", CHATS)),
    # cycles
    "cycle.json": written(json.dumps([chat(mapping={
        "a": {"id": "a", "message": None, "parent": "b", "children": ["b"]},
        "b": {"id": "b", "message": None, "parent": "a", "children": ["a"]},
    })])),
    "self-parent.json": written(json.dumps([chat(mapping={"a": {"id": "a", "message": None, "parent": "a", "children": ["a"]}})])),
    "missing-parent.json": written(json.dumps([chat(mapping={"a": {"id": "a", "message": None, "parent": "z", "children": []}})])),
    "long-chain.json": written(json.dumps([chat(mapping={
        str(n): {"id": str(n), "message": None, "parent": str(n - 1) if n else None, "children": [str(n + 1)]} for n in range(20_000)
    }, current_node="19999")])),
    "odd-types.json": written(json.dumps([chat(mapping={"a": {"id": [], "message": 3, "parent": {}, "children": None}})])),
    "repeated.json": written(json.dumps([chat()] * 2000)),
    # numbers and text
    "huge-number.json": written(after_chat('{"mapping":{},"create_time":' + "9" * 100_000 + "}]")),
    "exponent.json": written(after_chat('{"mapping":{},"create_time":1e999999}]')),
    "nan.json": written(after_chat('{"mapping":{},"create_time":NaN}]')),
    "surrogate.json": written(after_chat('{"mapping":{},"title":"\\ud800"}]')),
    "nul.json": written(after_chat(b'{"mapping":{},"title":"\x00\x00"}]')),
    "not-utf8.json": written(after_chat(b'{"mapping":{},"title":"\xff\xfe"}]')),
    "torn.json": written(json.dumps([chat()])[:-40]),
    "keys.json": written('[{"mapping":{' + ",".join(f'"{n}":null' for n in range(200_000)) + "}}]"),
    # depth
    **{f"deep-{n}.json": written(after_chat('{"mapping":{},"title":' + deep(n) + "}]")) for n in _DEPTHS},
    **{f"deep-object-{n}.json": written(after_chat('{"mapping":' + deep(n, '{"a":', "}").replace(":}", ":1}", 1) + "}]")) for n in _DEPTHS},
    **{f"deep-{n}.zip": zipped(("conversations.json", after_chat('{"mapping":{},"title":' + deep(n) + "}]"))) for n in _DEPTHS},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of a process from /proc")
def test_each_is_told_and_memory_is_bounded(tmp_path: Path) -> None:
    assert len(SAMPLES) >= 50
    paths: dict[str, str] = {}
    for name, make in SAMPLES.items():
        place = tmp_path / "given" / name.replace(".", "-")
        place.mkdir(parents=True)
        path = place / ("conversations.json" if name.endswith(".json") else name)
        make(path)
        paths[str(path)] = name
    env = {**os.environ, "EVERTURN_HOME": str(tmp_path / "home"), "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    words = [sys.executable, "-c", MEASURED, "add", *paths, "--as", "chatgpt", "--json"]
    ran = subprocess.run(words, env=env, capture_output=True, check=False, timeout=1200)
    peak = int(ran.stderr.decode().rpartition("VmHWM:")[2].split()[0]) * 1024
    assert b"Traceback" not in ran.stderr, ran.stderr.decode()[-2000:]
    report = json.loads(ran.stdout)["report"]
    told = dict((*report["failed"], *report["skipped"]))
    with closing(open_store(str(tmp_path / "home" / "archive.db"))) as store:
        stored = {file.path for file, _ in store.files()}
    assert [name for path, name in paths.items() if path not in told and path not in stored] == []
    bombs = [path for path, name in paths.items() if name in BOMBS]
    assert len(bombs) == len(BOMBS) and [path for path in bombs if not told.get(path)] == []
    assert peak <= MOST_MEMORY, f"{peak >> 20} MB"
