"""Texts become vectors: by an endpoint that speaks the common embeddings interface, or by a model on this machine.

    [meaning]
    kind = "endpoint"                     # or local
    base_url = "http://127.0.0.1:11434/v1"
    model = "all-minilm"                  # local: a name that is on this machine already, or a folder
    dimensions = 384
    key_env = "EMBEDDINGS_KEY"            # where the key is, if it wants one
    weight = 0.5                          # of meaning, where words weigh 1

What the section says is checked when it is used (`read_embedder_config`). Nothing is imported, sent or loaded before `embed` is
called, and a model of kind `local` is never fetched from anywhere. Both raise `ModelError` and its kinds, never anything
else that a server or a package can cause.
"""

from __future__ import annotations

import http.client
import importlib
import importlib.util
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from everturn.errors import BadAnswer, BadConfig, ModelBusy, ModelRefused, ModelUnreachable

_MOST_BYTES = 64 << 20  # of one answer
_TOO_MANY = 429


class Embedder(Protocol):
    """A model that gives each text a vector; texts of like meaning get like directions."""

    name: str  # of the model; vectors of different names are never compared
    dimensions: int
    where: str  # the address texts are sent to; "" when they stay on this machine
    sent: int  # how many were

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text, in their order. Raises ModelError."""


class EmbedderConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What the section says."""

    kind: Literal["endpoint", "local"]
    model: str
    dimensions: int
    base_url: str = ""
    key_env: str = ""
    weight: float = 0.5


def read_embedder_config(section: Mapping[str, Any]) -> EmbedderConfig:
    """The section, checked. Raises BadConfig, which names the key."""
    known = EmbedderConfig.__struct_fields__
    for stranger in sorted(set(section) - set(known)):
        raise BadConfig(f"meaning.{stranger}", f"there is no such key, known are {', '.join(known)}")
    try:
        found = msgspec.convert(dict(section), EmbedderConfig, strict=True)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        key = f"meaning.{where.rstrip('`')}" if where else "meaning"
        raise BadConfig(key, what[:1].lower() + what[1:].replace("`", "")) from None
    for key, why in _config_mistakes(found):
        raise BadConfig(f"meaning.{key}", why)
    return found


def open_embedder(wanted: EmbedderConfig, env: Mapping[str, str], timeout: float = 30.0) -> Embedder:
    """The embedder of a section. Nothing is sent or loaded yet. Raises BadConfig."""
    if wanted.kind == "local":
        return LocalEmbedder(wanted.model, wanted.dimensions)
    key = env.get(wanted.key_env, "") if wanted.key_env else ""
    if wanted.key_env and not key.strip():
        raise BadConfig("meaning.key_env", f"the environment has no {wanted.key_env}")
    return EndpointEmbedder(wanted.base_url, wanted.model, wanted.dimensions, key, timeout)


class EndpointEmbedder:
    """`POST {base}/embeddings` of any server that speaks the common interface."""

    def __init__(self, base: str, name: str, dimensions: int, key: str = "", timeout: float = 30.0, batch: int = 64):
        """`base` as in `https://host/v1`; raises ModelRefused when it is no such address."""
        self.name, self.dimensions, self.sent = name, dimensions, 0
        self._key, self._timeout, self._batch = key, timeout, max(1, batch)
        if not _is_address(base):
            raise ModelRefused(name, f"{base!r} is no http or https address")
        parts = urlsplit(base)
        self._secure, self._host, self._path = parts.scheme == "https", parts.netloc.rpartition("@")[2], parts.path
        self.where = f"{parts.scheme}://{self._host}{self._path.rstrip('/')}"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See `Embedder`."""
        found: list[list[float]] = []
        for start in range(0, len(texts), self._batch):
            some = list(texts[start : start + self._batch])
            found += self._read_vectors(self._post({"model": self.name, "input": some}, len(some)), len(some))
        return found

    def _post(self, wanted: dict[str, Any], texts: int) -> bytes:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            connection = kind(self._host, timeout=self._timeout)
            try:
                connection.connect()
                self.sent += texts  # whatever becomes of it from here on, some of it may have arrived
                path = f"{self._path.rstrip('/')}/embeddings"
                connection.request("POST", path, _encode_request(wanted), headers)
                response = connection.getresponse()
                return self._check_status(response.status, response.read(_MOST_BYTES))
            finally:
                connection.close()
        except TimeoutError:
            raise ModelUnreachable(self.name, f"no answer within {self._timeout:g} s") from None
        except ValueError:  # whose words would show the key
            raise ModelRefused(self.name, "its key or its address has a character that cannot be sent") from None
        except (OSError, http.client.HTTPException) as failure:
            raise ModelUnreachable(self.name, str(failure) or type(failure).__name__) from None

    def _check_status(self, status: int, body: bytes) -> bytes:
        if status == 200:
            return body
        if status == _TOO_MANY:
            raise ModelBusy(self.name, "the server asks to come back later")
        if status >= 500:
            raise ModelUnreachable(self.name, f"the server failed with status {status}")
        raise ModelRefused(self.name, f"the server says {status}")  # not its words: they may repeat the texts

    def _read_vectors(self, body: bytes, wanted: int) -> list[list[float]]:
        """The vectors in the order of the texts, however the server ordered them."""
        try:
            given = msgspec.json.decode(body, type=_Answer).data
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise BadAnswer(self.name, "the answer is no list of vectors") from None
        by_place = {one.index: one.embedding for one in given}
        if len(given) != wanted or by_place.keys() != set(range(wanted)):
            raise BadAnswer(self.name, f"{len(given)} vectors for {wanted} texts")
        return _check_sizes(self.name, self.dimensions, [by_place[number] for number in range(wanted)])


Run = Callable[[list[str]], Iterable[Iterable[float]]]


def _fastembed(package: Any, model: str) -> Run:
    run: Run = package.TextEmbedding(model_name=model, local_files_only=True).embed
    return run


def _sentence_transformers(package: Any, model: str) -> Run:
    loaded = package.SentenceTransformer(model, local_files_only=True)
    return lambda texts: loaded.encode(texts, show_progress_bar=False)


#: Packages that run models, in the order in which they are looked for.
RUNNERS: dict[str, Callable[[Any, str], Run]] = {
    "fastembed": _fastembed,
    "sentence_transformers": _sentence_transformers,
}


class LocalEmbedder:
    """A model on this machine, run by the first of the packages that is installed."""

    where = ""
    sent = 0

    def __init__(self, model: str, dimensions: int, packages: Sequence[str] = tuple(RUNNERS)) -> None:
        self._model, self._packages = model, packages
        self._package = next((name for name in packages if importlib.util.find_spec(name)), "")
        # Two packages may run one model with different exactness: their vectors are not compared.
        self.name = f"{self._package}:{model}" if self._package else model
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See `Embedder`."""
        if not texts:
            return []
        run = self._run
        try:
            made = [[float(number) for number in vector] for vector in run(list(texts))]
        except Exception as failure:
            raise BadAnswer(self.name, f"{self._package} failed: {type(failure).__name__}") from failure
        if len(made) != len(texts):
            raise BadAnswer(self.name, f"{len(made)} vectors for {len(texts)} texts")
        return _check_sizes(self.name, self.dimensions, made)

    @cached_property
    def _run(self) -> Run:
        if not self._package:
            names = " nor ".join(self._packages)
            why = f"neither {names} is installed: `pip install {self._packages[0]}`, or use an endpoint"
            raise ModelUnreachable(self.name, why)
        try:
            return RUNNERS[self._package](importlib.import_module(self._package), self._model)
        except Exception as failure:
            why = f"{self._package} cannot load it from this machine: {type(failure).__name__}"
            raise ModelRefused(self.name, why) from failure


class _Vector(Struct):
    embedding: list[float]
    index: int = 0


class _Answer(Struct):
    data: list[_Vector]


def _config_mistakes(wanted: EmbedderConfig) -> Iterator[tuple[str, str]]:
    if not wanted.model:
        yield "model", "say which model"
    if wanted.dimensions < 1:
        yield "dimensions", "say how many numbers a vector of this model has"
    if not 0 <= wanted.weight <= 10:
        yield "weight", "is a number from 0 to 10"
    if wanted.kind == "endpoint" and not _is_address(wanted.base_url):
        yield "base_url", f"{wanted.base_url!r} is no http or https address"


def _is_address(base: str) -> bool:
    try:
        parts = urlsplit(base)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _encode_request(wanted: dict[str, Any]) -> bytes:
    """Half surrogates, which transcripts do have, become question marks."""
    try:
        return msgspec.json.encode(wanted)
    except UnicodeEncodeError:
        texts = [text.encode("utf-8", "replace").decode() for text in wanted["input"]]
        return msgspec.json.encode({**wanted, "input": texts})


def _check_sizes(name: str, dimensions: int, vectors: list[list[float]]) -> list[list[float]]:
    for wrong in _vector_faults(dimensions, vectors):
        raise BadAnswer(name, wrong)
    return vectors


def _vector_faults(dimensions: int, vectors: list[list[float]]) -> Iterator[str]:
    for vector in vectors:
        if len(vector) != dimensions:
            yield f"a vector of {len(vector)} numbers where {dimensions} were configured"
        elif not all(map(math.isfinite, vector)):
            yield "a vector with a number that is none"
