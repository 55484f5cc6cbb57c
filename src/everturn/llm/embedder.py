"""Embedders: texts become vectors, by a table or a model on this machine, or by an endpoint with the common interface.

    [meaning]
    kind = "endpoint"                     # or local, or static
    base_url = "http://127.0.0.1:11434/v1"
    model = "all-minilm"                  # local: the name of a model on this machine, or a folder; static: none
    dimensions = 384                      # static: none
    key_env = "EMBEDDINGS_KEY"            # environment variable with the key, if the server needs one
    weight = 0.25                         # of meaning, where words weigh 1
    enabled = true                        # false: words alone

Without the section the kind is `static` where its extra is installed (`llm.static_vectors`). The section is validated when
it is used (`read_embedder_config`). Nothing is imported, sent or loaded before `embed` is called, and a model on this
machine is never downloaded. Requests follow the rules of `http_backend`: encrypted except to this machine, no redirects, no
proxy, one retry of a transient failure. All kinds raise only `ModelError` and its subclasses.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from everturn.errors import BadAnswer, BadConfig, ModelBusy, ModelError, ModelRefused, ModelUnreachable
from everturn.llm import http_answer, http_backend, protocol
from everturn.llm.static_vectors import static_embedder
from everturn.model.conversation import prepared

_TOO_MANY = 429


class Embedder(Protocol):
    """A model that gives each text a vector; similar meanings get similar directions."""

    name: str  # vectors of different names are never compared
    dimensions: int
    where: str  # the address texts are sent to; "" when they stay on this machine
    sent: int  # texts that were sent

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order. Raise ModelError."""


class EmbedderConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The `[meaning]` section."""

    kind: Literal["endpoint", "local", "static"] = "static"
    model: str = ""
    dimensions: int = 0
    base_url: str = ""
    key_env: str = ""
    weight: float = 0.25
    enabled: bool = True


def read_embedder_config(section: Mapping[str, Any]) -> EmbedderConfig:
    """Validate the section. Raise BadConfig, which names the key."""
    known = EmbedderConfig.__struct_fields__
    for unknown in sorted(set(section) - set(known)):
        raise BadConfig(f"meaning.{unknown}", f"unknown key; known keys are {', '.join(known)}")
    try:
        config = msgspec.convert(dict(section), prepared(EmbedderConfig), strict=True)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        key = f"meaning.{where.rstrip('`')}" if where else "meaning"
        raise BadConfig(key, what[:1].lower() + what[1:].replace("`", "")) from None
    for key, why in _config_mistakes(config):
        raise BadConfig(f"meaning.{key}", why)
    return config


def open_embedder(config: EmbedderConfig, env: Mapping[str, str], timeout: float = 30.0) -> Embedder:
    """Return the embedder of a section. Send and load nothing yet. Raise BadConfig, ModelRefused."""
    if config.kind == "static":
        return static_embedder()
    if config.kind == "local":
        return LocalEmbedder(config.model, config.dimensions)
    key = env.get(config.key_env, "") if config.key_env else ""
    if config.key_env and not key.strip():
        raise BadConfig("meaning.key_env", f"the environment variable {config.key_env} is not set")
    return EndpointEmbedder(config.base_url, config.model, config.dimensions, key, timeout)


class EndpointEmbedder:
    """`POST {base}/embeddings` to any server with the common interface."""

    def __init__(self, base: str, name: str, dimensions: int, key: str = "", timeout: float = 30.0, batch: int = 64):
        """Take a `base` such as `https://host/v1`. Raise ModelRefused for any other address."""
        self.name, self.dimensions, self.sent = name, dimensions, 0
        self._key, self._batch = key, max(1, batch)
        self._patience = http_backend.Patience(timeout, timeout, 3 * timeout, tries=2, pause=0.2, longest_pause=5.0)
        if fault := _address_fault(base):
            raise ModelRefused(name, fault)
        parts = urlsplit(base)
        self.where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = []
        for start in range(0, len(texts), self._batch):
            batch_texts = list(texts[start : start + self._batch])
            vectors += self._read_vectors(
                self._post({"model": self.name, "input": batch_texts}, len(batch_texts)), len(batch_texts)
            )
        return vectors

    def _post(self, request: dict[str, Any], texts: int) -> bytes:
        key = self._key.strip()
        if not key.isascii() or not key.isprintable():
            raise ModelRefused(self.name, "the API key or the address contains a character that cannot be sent")
        headers = {"accept": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        body, url = _encode_request(request), f"{self.where}/embeddings"
        self.sent += texts  # counted even if it fails or is interrupted: some of it may have arrived
        try:
            status, answer = http_backend.post(self.name, url, body, headers, self._patience)
        except ModelError:  # raised before there was a connection
            self.sent -= texts
            raise
        except http_answer.ConnectionLost as lost:
            self.sent -= 0 if lost.was_open else texts
            why = lost.why if lost.again else f"no answer within {self._patience.read:g} s"
            raise ModelUnreachable(self.name, why) from None
        except protocol.GarbledAnswer as garbled:
            raise BadAnswer(self.name, f"the answer cannot be read: {garbled}") from None
        return self._check_status(status, answer)

    def _check_status(self, status: int, body: bytes) -> bytes:
        if status == 200:
            return body
        if status == _TOO_MANY:
            raise ModelBusy(self.name, "the server is busy")
        if status >= 500:
            raise ModelUnreachable(self.name, f"the server failed with status {status}")
        raise ModelRefused(
            self.name, f"the server answered with status {status}"
        )  # without its message, which may repeat the texts

    def _read_vectors(self, body: bytes, count: int) -> list[list[float]]:
        """Return the vectors in the order of the texts, however the server ordered them."""
        try:
            given = msgspec.json.decode(body, type=prepared(_Answer)).data
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise BadAnswer(self.name, "the answer is not a list of vectors") from None
        by_place = {one.index: one.embedding for one in given}
        if len(given) != count or by_place.keys() != set(range(count)):
            raise BadAnswer(self.name, f"the server returned {len(given)} vectors for {count} texts")
        return _check_sizes(self.name, self.dimensions, [by_place[number] for number in range(count)])


Run = Callable[[list[str]], Iterable[Iterable[float]]]


def _fastembed(package: Any, model: str) -> Run:
    run: Run = package.TextEmbedding(model_name=model, local_files_only=True).embed
    return run


def _sentence_transformers(package: Any, model: str) -> Run:
    loaded = package.SentenceTransformer(model, local_files_only=True)
    return lambda texts: loaded.encode(texts, show_progress_bar=False)


#: Packages that run models, in order of preference.
RUNNERS: dict[str, Callable[[Any, str], Run]] = {
    "fastembed": _fastembed,
    "sentence_transformers": _sentence_transformers,
}


class LocalEmbedder:
    """A model on this machine, run by the first installed package."""

    where = ""
    sent = 0

    def __init__(self, model: str, dimensions: int, packages: Sequence[str] = tuple(RUNNERS)) -> None:
        self._model, self._packages = model, packages
        self._package = next((name for name in packages if importlib.util.find_spec(name)), "")
        # Two packages may run one model with different exactness: their vectors are not compared.
        self.name = f"{self._package}:{model}" if self._package else model
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if not texts:
            return []
        run = self._run
        try:
            made = [[float(number) for number in vector] for vector in run(list(texts))]
        except Exception as failure:
            raise BadAnswer(self.name, f"{self._package} failed: {type(failure).__name__}") from failure
        if len(made) != len(texts):
            raise BadAnswer(self.name, f"the model returned {len(made)} vectors for {len(texts)} texts")
        return _check_sizes(self.name, self.dimensions, made)

    @cached_property
    def _run(self) -> Run:
        if not self._package:
            names = " nor ".join(self._packages)
            why = f"neither {names} is installed; run `pip install {self._packages[0]}` or use an endpoint"
            raise ModelUnreachable(self.name, why)
        try:
            return RUNNERS[self._package](importlib.import_module(self._package), self._model)
        except Exception as failure:
            why = f"{self._package} cannot load the model from this machine: {type(failure).__name__}"
            raise ModelRefused(self.name, why) from failure


class _Vector(Struct):
    embedding: list[float]
    index: int = 0


class _Answer(Struct):
    data: list[_Vector]


def _config_mistakes(config: EmbedderConfig) -> Iterator[tuple[str, str]]:
    is_static = config.kind == "static"
    for key in ("model", "dimensions", "base_url", "key_env"):
        if is_static and getattr(config, key):
            yield key, "static vectors have no such setting; set kind to endpoint or local"
    if not is_static and not config.model:
        yield "model", "name a model"
    if not is_static and config.dimensions < 1:
        yield "dimensions", "set the number of dimensions of the model"
    if not 0 <= config.weight <= 10:
        yield "weight", "must be a number from 0 to 10"
    if config.kind == "endpoint" and (fault := _address_fault(config.base_url)):
        yield "base_url", fault


def _address_fault(base: str) -> str:
    """Return why texts may not be sent to an address, or "". The rule of models: https, or this machine."""
    try:
        parts = urlsplit(base)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https"):
        return f"{base!r} is not an http or https address"
    if parts.scheme == "http" and not http_backend.is_loopback(host):
        return f"{host} is not this machine, so the address must begin with https://"
    return ""


def _encode_request(config: dict[str, Any]) -> bytes:
    """Encode the request. Lone surrogates, which transcripts contain, become question marks."""
    try:
        return msgspec.json.encode(config)
    except UnicodeEncodeError:
        texts = [text.encode("utf-8", "replace").decode() for text in config["input"]]
        return msgspec.json.encode({**config, "input": texts})


def _check_sizes(name: str, dimensions: int, vectors: list[list[float]]) -> list[list[float]]:
    for vector in vectors:
        if len(vector) != dimensions:
            raise BadAnswer(name, f"a vector has {len(vector)} dimensions, but {dimensions} are configured")
        if not all(map(math.isfinite, vector)):
            raise BadAnswer(name, "a vector contains a value that is not a number")
    return vectors
