"""A table of tokens as an embedder: a tiny one of our own, and the installed one."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from everturn.errors import BadAnswer, BadConfig, ModelRefused
from everturn.llm.embedder import open_embedder, read_embedder_config
from everturn.llm.static_vectors import StaticEmbedder, StaticFiles, find_static_files

WORDS = {"[UNK]": (0.0, 0.0), "boat": (1.0, 0.0), "ship": (0.5, 0.5), "bread": (-1.0, 2.0)}


def make_files(folder: Path, dtype: str = "F16", rows: int = len(WORDS), **header: object) -> StaticFiles:
    """Write a table with one vector per word, and a tokenizer that splits at spaces."""
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    tokenizer = {"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "added_tokens": []}), "utf-8")
    numbers = b"".join(struct.pack("<2e", *vector) for vector in list(WORDS.values())[:rows])
    tensor = {"dtype": dtype, "shape": [rows, 2], "data_offsets": [0, len(numbers)], **header}
    head = json.dumps({"embedding.weight": tensor}).encode()
    (folder / "table.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + numbers)
    return StaticFiles("tiny", folder / "table.safetensors", folder / "tokenizer.json")


needs_extra = pytest.mark.needs("module:numpy", "module:tokenizers")


@needs_extra
def test_the_vector_of_a_text_is_the_mean_of_its_tokens(tmp_path: Path) -> None:
    embedder = StaticEmbedder(make_files(tmp_path))

    assert (embedder.name, embedder.dimensions, embedder.where) == ("tiny", 2, "")
    assert embedder.embed(["boat ship", "bread", "", "boat boat bread"]) == [
        [0.75, 0.25], [-1.0, 2.0], [0.0, 0.0], pytest.approx([1 / 3, 2 / 3]),
    ]  # fmt: skip
    assert embedder.embed([]) == [] and embedder.embed([""]) == [[0.0, 0.0]]
    assert embedder.sent == 0


@needs_extra
def test_a_lone_surrogate_is_no_mistake(tmp_path: Path) -> None:
    assert StaticEmbedder(make_files(tmp_path)).embed(["\ud800", "boat"])[1] == [1.0, 0.0]


@needs_extra
def test_a_tokenizer_of_another_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadAnswer, match="does not match"):
        StaticEmbedder(make_files(tmp_path, rows=2)).embed(["bread"])


@needs_extra
def test_a_damaged_tokenizer_or_a_table_that_is_too_short_is_refused(tmp_path: Path) -> None:
    files = make_files(tmp_path)
    files.tokenizer.write_text("{}", "utf-8")
    with pytest.raises(ModelRefused, match="cannot be read"):
        StaticEmbedder(files).embed(["boat"])
    files = make_files(tmp_path, shape=[4000, 2])
    with pytest.raises(ModelRefused, match="cannot be read"):
        StaticEmbedder(files).embed(["boat"])


@pytest.mark.parametrize("header", [{"dtype": "F32"}, {"shape": [4]}, {"shape": None}, {"shape": [0, 2]}])
def test_a_table_of_another_kind_is_refused_at_once(tmp_path: Path, header: dict[str, object]) -> None:
    with pytest.raises(ModelRefused, match="not a table of vectors"):
        StaticEmbedder(make_files(tmp_path, **header))  # type: ignore[arg-type]


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    files = make_files(tmp_path)
    for content in (b"", b"\xff" * 100):
        files.table.write_bytes(content)
        with pytest.raises(ModelRefused, match="not a table of vectors"):
            StaticEmbedder(files)
    files.table.unlink()
    with pytest.raises(ModelRefused):
        StaticEmbedder(files)


def test_without_the_extra_there_are_no_files_and_the_section_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("everturn.llm.static_vectors.find_spec", lambda name: None)
    assert find_static_files() is None
    with pytest.raises(BadConfig, match=r"everturn\[meaning\]"):
        open_embedder(read_embedder_config({"kind": "static"}), {})


@pytest.mark.parametrize("more", [{"model": "x"}, {"dimensions": 3}, {"base_url": "https://x"}, {"key_env": "X"}])
def test_a_static_section_takes_no_model(more: dict[str, object]) -> None:
    with pytest.raises(BadConfig, match="endpoint or local"):
        read_embedder_config({"weight": 0.3, **more})


@needs_extra
@pytest.mark.needs("module:wordllama")
def test_the_installed_table_knows_what_is_alike_without_a_network_and_without_importing_its_package() -> None:
    code = (
        "import sys, socket\n"
        "def refuse(*args): raise AssertionError('network')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse\n"
        "from everturn.llm.static_vectors import StaticEmbedder, find_static_files\n"
        "from everturn.retrieval.nearness import Nearness\n"
        "from everturn.store.vector_file import pack_vectors\n"
        "files = find_static_files(); embedder = StaticEmbedder(files)\n"
        "assert embedder.dimensions == 256\n"
        "query, near, far = embedder.embed(['The dog barked at the cat', 'A puppy growls at a kitten', 'Quarterly tax law'])\n"
        "near, far = (Nearness(query, 0, []).cosine(one) for one in pack_vectors([near, far]))\n"
        "assert near > far + 0.2, (near, far)\n"
        "assert 'wordllama' not in sys.modules\n"
    )
    env = {"PYTHONPATH": os.pathsep.join(sys.path), "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=env)
    assert (done.returncode, done.stderr) == (0, "")
