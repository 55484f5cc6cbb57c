"""Requests that providers accepted, recorded by somebody else: refused by our validator, changed by a round trip, files lost.

    python -m benchmarks.recorded FOLDER

FOLDER holds VCR cassettes (YAML with `interactions`), such as the folder `tests` of a checkout of pydantic-ai. Needs PyYAML.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, exact, show
from everturn.llm import anthropic_messages, chat_completions, responses
from everturn.llm.attachments import attachment_block, attachments
from everturn.llm.history_repair import repair_history
from everturn.llm.history_rules import certain_violations
from everturn.llm.protocol import ModelRequest, Wire

WIRES: dict[str, Wire] = {
    "https://api.anthropic.com/v1/messages": anthropic_messages,
    "https://api.openai.com/v1/chat/completions": chat_completions,
    "https://api.openai.com/v1/responses": responses,
}
_BLOCKS = {"image", "document", "image_url", "file", "input_image", "input_file"}


def accepted(folder: Path) -> Iterator[tuple[str, Wire, dict[str, Any]]]:
    """Yield (file, wire, body) of every accepted request."""
    import yaml  # type: ignore[import-untyped, unused-ignore]

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for path in sorted(folder.rglob("*.yaml")):
        data = path.read_bytes()
        if b"api.anthropic.com" not in data and b"api.openai.com" not in data:
            continue
        for one in (yaml.load(data, loader) or {}).get("interactions", ()):
            request = one["request"]
            wire = WIRES.get(request.get("uri", "").partition("?")[0].rstrip("/"))
            if wire is None or one["response"]["status"]["code"] != 200:
                continue
            body = request.get("parsed_body") or json.loads(request.get("body") or "null")
            if isinstance(body, dict):
                yield path.name, wire, body


def figures(folder: Path) -> Iterator[Figure]:
    """All of it."""
    refused, changed, counts = [], [], Counter[str]()
    sent, whole = Counter[str](), Counter[str]()
    for name, wire, body in accepted(folder):
        counts[wire.WIRE] += 1
        refused += [f"{name}: {one.rule}" for one in certain_violations(wire.WIRE, body)][:1]
        given = body.get("input" if wire is responses else "messages")
        if not isinstance(given, list):
            continue
        messages = list(map(wire.message, given))
        changed += [name] if [back for one in messages for back in wire.history(one)] != given else []
        for other in [one for one in WIRES.values() if one is not wire]:
            found = [file for one in messages for part in one.parts for file in attachments(part)]
            whole[other.WIRE] += sum(_is_block(attachment_block(other.WIRE, file)) for file in found)
            made = other.body(ModelRequest(repair_history(messages, wire=other.WIRE).messages))
            sent[other.WIRE] += sum(_is_block(one) for one in _blocks(made))
    note = ", ".join(f"{n} {wire}" for wire, n in counts.items())
    yield exact("recorded requests that we would refuse", refused, note)
    yield exact("recorded histories that a round trip changes", changed, note)
    for target in [wire.WIRE for wire in WIRES.values()]:
        note = f"of {whole[target]} with bytes or an address that this format takes"
        yield Figure(
            f"images and files that do not cross to {target}", whole[target] - sent[target], "lost", 0, note=note
        )


def _is_block(block: dict[str, Any]) -> bool:
    return block.get("type") in _BLOCKS and not ("file_id" in block or "url" in block)


def _blocks(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object inside a request that may be a block; the source of a block is none."""
    for one in value if isinstance(value, list) else []:
        if isinstance(one, dict):
            yield one
            for inner in one.values():
                yield from _blocks(inner)
    for inner in value.values() if isinstance(value, dict) else []:
        yield from _blocks(inner)


if __name__ == "__main__":
    for figure in figures(Path(sys.argv[1])):
        show(figure, "--json" in sys.argv)
