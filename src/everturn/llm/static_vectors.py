"""The embedder of the extra `everturn[meaning]`: a table with one vector per token. It needs no server, no download, no GPU.

The vector of a text is the mean of the vectors of its tokens. The table and the tokenizer are two files of the installed
package `wordllama`. They are read by their paths: the package itself is never imported, because it may ask a server for
files. The table is mapped into memory, so that only the rows in use are read.

Nothing is imported or read before `embed` is called, except for the header of the table, which says its dimensions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from everturn.errors import BadAnswer, BadConfig, ModelRefused

PACKAGE = "wordllama"
#: Modules that the embedder imports.
NEEDED = ("numpy", "tokenizers")
_TABLE = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"
_LONGEST_HEADER = 1_000_000


class StaticFiles(Struct, frozen=True):
    """A table in the safetensors format, its tokenizer, and the name that their vectors have."""

    name: str
    table: Path
    tokenizer: Path


def find_static_files() -> StaticFiles | None:
    """Return the files of the installed extra; None if a part of it is missing. Imports nothing."""
    if not all(map(find_spec, NEEDED)):
        return None
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        found = StaticFiles(f"{PACKAGE}-256", Path(folder, _TABLE), Path(folder, _TOKENIZER))
        if found.table.is_file() and found.tokenizer.is_file():
            return found
    return None


def static_embedder() -> StaticEmbedder:
    """Return the embedder of the extra. Raise BadConfig without it."""
    if (files := find_static_files()) is None:
        raise BadConfig("meaning.kind", 'static vectors are not installed; run `pip install "everturn[meaning]"`')
    return StaticEmbedder(files)


class StaticEmbedder:
    """Vectors from a table of tokens. Raises ModelRefused if its files cannot be read."""

    where = ""
    sent = 0

    def __init__(self, files: StaticFiles) -> None:
        self._files = files
        self.name = files.name
        self._offset, (self._tokens, self.dimensions) = self._read_header()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        tokenizer, table, numpy = self._model
        encoded = tokenizer.encode_batch_fast([_encodable(text) for text in texts], add_special_tokens=False)
        ids = [one.ids for one in encoded]
        if not any(ids):
            return [[0.0] * self.dimensions for _ in texts]
        # Each row in use is converted once: most tokens of a batch occur in several texts.
        used, places = numpy.unique(
            numpy.concatenate([numpy.asarray(one, numpy.int64) for one in ids]), return_inverse=True
        )
        if used[-1] >= self._tokens:
            raise BadAnswer(self.name, "the tokenizer does not match the table of vectors")
        rows = table[used].astype(numpy.float32)
        vectors, start = [], 0
        for one in ids:
            end = start + len(one)
            vectors.append(rows[places[start:end]].mean(0).tolist() if one else [0.0] * self.dimensions)
            start = end
        return vectors

    @cached_property
    def _model(self) -> tuple[Any, Any, Any]:
        """Return the tokenizer, the table and numpy."""
        import numpy
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self._files.tokenizer))
            tokenizer.no_padding()
            tokenizer.no_truncation()
            shape = (self._tokens, self.dimensions)
            table = numpy.memmap(self._files.table, numpy.dtype("<f2"), "r", offset=self._offset, shape=shape)
        except Exception as failure:  # tokenizers raises Exception itself
            raise ModelRefused(self.name, f"its files cannot be read: {type(failure).__name__}") from failure
        return tokenizer, table, numpy

    def _read_header(self) -> tuple[int, tuple[int, int]]:
        """Return where the numbers of the table start, and its shape."""
        try:
            with self._files.table.open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                tensor = json.loads(file.read(min(length, _LONGEST_HEADER)))[_TENSOR]
            tokens, dimensions = map(int, tensor["shape"])
            if tensor["dtype"] != "F16" or tokens < 1 or dimensions < 1:
                raise ValueError(tensor["dtype"])
            return 8 + length + int(tensor["data_offsets"][0]), (tokens, dimensions)
        except (OSError, ValueError, KeyError, TypeError) as failure:
            why = f"{self._files.table.name} is not a table of vectors: {type(failure).__name__}"
            raise ModelRefused(self.name, why) from failure


def _encodable(text: str) -> str:
    """Replace lone surrogates, which transcripts contain."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
