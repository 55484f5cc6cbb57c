"""Embedders against a real server on this machine, and the package that may not be there."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everturn.errors import BadAnswer, BadConfig, ModelBusy, ModelRefused, ModelUnreachable
from everturn.llm.embedder import EndpointEmbedder, LocalEmbedder, open_embedder, read_embedder_config
from tests.json_server import JsonServer
from tests.waiting import PATIENCE

Answer = Callable[[dict[str, Any]], tuple[int, Any]]


def lengths(asked: dict[str, Any]) -> tuple[int, Any]:
    """A vector of a text's length and its number of words, given in the wrong order."""
    vectors = [{"index": n, "embedding": [len(text), len(text.split())]} for n, text in enumerate(asked["input"])]
    return 200, {"object": "list", "data": vectors[::-1], "model": asked["model"]}


class Server(JsonServer):
    """Answers as it is told and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Answer = lengths
        self.asked: list[tuple[str, str | None, dict[str, Any]]] = []

    def reply(self, path: str, key: str | None, asked: Any) -> tuple[int, Any]:
        self.asked.append((path, key, asked))
        return self.answer(asked)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    with server.running():
        yield server


def test_vectors_come_in_the_order_of_the_texts_however_they_are_batched(server: Server) -> None:
    embedder = EndpointEmbedder(server.base, "small", 2, key="k-123", batch=2)

    assert embedder.embed(["a b c", "dd", "e e"]) == [[5, 3], [2, 1], [3, 2]]
    assert [(path, key) for path, key, _ in server.asked] == [("/v1/embeddings", "Bearer k-123")] * 2
    assert [asked["input"] for _, _, asked in server.asked] == [["a b c", "dd"], ["e e"]]


def test_nothing_is_sent_for_no_texts_or_before_texts_are_given(server: Server) -> None:
    assert EndpointEmbedder(server.base, "small", 2).embed([]) == []
    assert server.asked == []


def test_no_key_is_sent_when_none_is_configured(server: Server) -> None:
    EndpointEmbedder(server.base, "small", 2).embed(["a"])

    assert server.asked[0][1] is None


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, ModelRefused), (404, ModelRefused), (302, ModelRefused), (429, ModelBusy), (503, ModelUnreachable)],
)
def test_a_refusal_is_told_by_its_kind_and_never_repeats_the_texts(
    server: Server, status: int, error: type[Exception]
) -> None:
    server.answer = lambda asked: (status, {"error": {"message": f"bad: {asked['input']}"}})

    with pytest.raises(error) as told:
        EndpointEmbedder(server.base, "small", 2).embed(["open sesame"])
    assert "sesame" not in str(told.value)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"\xff",
        {"data": []},
        {"data": [{"index": 1, "embedding": [1, 2]}]},
        {"data": [{"index": 0, "embedding": [1, 2]}, {"index": 0, "embedding": [1, 2]}]},
        {"data": [{"index": 0, "embedding": [1, 2, 3]}]},
        {"data": [{"index": 0, "embedding": ["one", "two"]}]},
        {"data": [{"index": 0, "embedding": [1, None]}]},
        b'{"data": [{"index": 0, "embedding": [1, 1e999]}]}',
    ],
)
def test_an_answer_that_is_not_what_was_promised_is_told(server: Server, body: Any) -> None:
    server.answer = lambda asked: (200, body)

    with pytest.raises(BadAnswer):
        EndpointEmbedder(server.base, "small", 2).embed(["a"])


def test_a_server_that_does_not_answer_in_time_is_given_up(server: Server) -> None:
    given_up = threading.Event()

    def answer_afterwards(asked: dict[str, Any]) -> tuple[int, Any]:
        given_up.wait(PATIENCE)
        return lengths(asked)

    server.answer = answer_afterwards

    with pytest.raises(ModelUnreachable, match="within"):
        EndpointEmbedder(server.base, "small", 2, timeout=0.05).embed(["a"])
    given_up.set()


def test_a_server_that_is_not_there_is_told(server: Server) -> None:
    base = server.base
    server.server_close()

    with pytest.raises(ModelUnreachable):
        EndpointEmbedder(base, "small", 2, timeout=PATIENCE).embed(["a"])


@pytest.mark.parametrize("base", ["", "file:///etc/passwd", "ftp://host/v1", "host/v1", "http://"])
def test_what_is_no_address_is_refused_before_anything_is_sent(base: str) -> None:
    with pytest.raises(ModelRefused, match="address"):
        EndpointEmbedder(base, "small", 2)


def test_a_key_that_cannot_be_sent_is_told_without_being_shown(server: Server) -> None:
    for key in ("secret\nkey", "secret→key"):
        with pytest.raises(ModelRefused) as told:
            EndpointEmbedder(server.base, "small", 2, key=key).embed(["a"])
        assert "secret" not in str(told.value)


def test_what_was_sent_is_counted_also_when_the_answer_is_bad(server: Server) -> None:
    embedder = EndpointEmbedder(server.base.replace("127", "ann:pw@127"), "small", 2, batch=2)
    server.answer = lambda asked: lengths(asked) if len(asked["input"]) == 2 else (500, {})
    with pytest.raises(ModelUnreachable):
        embedder.embed(["a", "b", "c"])

    assert embedder.sent == 3
    assert embedder.where == server.base.rstrip("/") and "pw" not in embedder.where


def test_half_a_surrogate_pair_is_no_obstacle(server: Server) -> None:
    assert EndpointEmbedder(server.base, "small", 2).embed(["a\ud83d b"]) == [[4, 2]]


# local ----------------------------------------------------------------------------------------------------------------
@pytest.fixture
def packages(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A folder for packages of models; real ones of these names are not seen."""
    for name in ("fastembed", "sentence_transformers"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *(path for path in sys.path if "site-packages" not in path)])
    importlib.invalidate_caches()
    yield tmp_path
    for name in ("fastembed", "sentence_transformers"):
        sys.modules.pop(name, None)


FASTEMBED = """
loaded = []
class TextEmbedding:
    def __init__(self, model_name, local_files_only):
        assert local_files_only
        if model_name == 'unknown': raise ValueError(model_name)
        loaded.append(model_name)
    def embed(self, texts):
        return ([len(text), 1] for text in texts)
"""
TRANSFORMERS = """
class SentenceTransformer:
    def __init__(self, name, local_files_only):
        assert local_files_only
    def encode(self, texts, show_progress_bar):
        return [[2, len(text)] for text in texts]
"""


def test_a_package_that_is_not_installed_is_told_with_what_to_do(packages: Any) -> None:
    embedder = LocalEmbedder("some/model", 2)

    with pytest.raises(ModelUnreachable, match="pip install"):
        embedder.embed(["a"])


def test_a_local_model_is_loaded_once_and_its_vectors_are_checked(packages: Any) -> None:
    (packages / "fastembed.py").write_text(FASTEMBED, "utf-8")
    embedder = LocalEmbedder("known", 2)

    assert embedder.embed(["abc"]) == [[3.0, 1.0]]
    assert embedder.embed(["a", "ab"]) == [[1.0, 1.0], [2.0, 1.0]]
    assert (embedder.where, embedder.sent) == ("", 0)
    assert sys.modules["fastembed"].loaded == ["known"]
    for wrong, error in ((LocalEmbedder("known", 3), BadAnswer), (LocalEmbedder("unknown", 2), ModelRefused)):
        with pytest.raises(error):
            wrong.embed(["abc"])


def test_the_package_that_is_installed_runs_the_model_and_is_part_of_its_name(packages: Any) -> None:
    (packages / "sentence_transformers.py").write_text(TRANSFORMERS, "utf-8")
    second = LocalEmbedder("known", 2)
    assert (second.name, second.embed(["abc"])) == ("sentence_transformers:known", [[2.0, 3.0]])
    (packages / "fastembed.py").write_text(FASTEMBED, "utf-8")
    importlib.invalidate_caches()
    assert LocalEmbedder("known", 2).name == "fastembed:known"


# the section of the config --------------------------------------------------------------------------------------------
GOOD = {"kind": "endpoint", "base_url": "http://127.0.0.1:1/v1", "model": "small", "dimensions": 2}


def test_a_section_becomes_an_embedder() -> None:
    assert read_embedder_config(GOOD).weight == 0.25
    assert open_embedder(read_embedder_config(GOOD), {}).where == "http://127.0.0.1:1/v1"
    local = open_embedder(
        read_embedder_config({"kind": "local", "model": "some/model", "dimensions": 2, "weight": 1}), {}
    )
    assert (local.where, local.dimensions) == ("", 2)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("kind", "cloud"), ("model", ""), ("dimensions", 0), ("dimensions", "2"), ("weight", -1), ("weight", "much")),
        *(("base_url", "example.org"), ("base_url", "http://[::1/v1"), ("modle", "small")),
    ],
)
def test_a_mistake_in_the_section_is_told_with_its_key(key: str, value: Any) -> None:
    with pytest.raises(BadConfig, match=rf"meaning\.{key}"):
        read_embedder_config({**GOOD, key: value})


def test_a_section_without_what_is_needed_is_told() -> None:
    with pytest.raises(BadConfig, match="model"):
        read_embedder_config({"kind": "local", "dimensions": 2})


def test_the_key_comes_from_the_environment_alone(server: Server) -> None:
    wanted = read_embedder_config({**GOOD, "base_url": server.base, "key_env": "THE_KEY"})
    with pytest.raises(BadConfig, match="THE_KEY"):
        open_embedder(wanted, {})
    open_embedder(wanted, {"THE_KEY": "k-9"}).embed(["a"])

    assert server.asked[0][1] == "Bearer k-9"
