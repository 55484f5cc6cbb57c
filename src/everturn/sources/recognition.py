"""Which format a file has. Every source that recognises it makes a claim; the claim with the most evidence wins.

The evidence of a claim is the content: how many of the fields that only this format has (`Source.fields`) the file shows.
A claim of a JSON format on a file that does not begin like JSON is buried: a document that quotes a transcript is not one,
so a buried claim loses to every other. A tie is never guessed: neither source gets the file, and the caller reports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from everturn.sources.contract import Source, SourceCandidate

_MARK = b"\xef\xbb\xbf"
_DATABASE = b"SQLite format 3\0"
#: A field of a JSON object. Inside a string its quotes would be escaped, so quoted JSON does not match.
_FIELD = re.compile(rb'"([A-Za-z_][A-Za-z0-9_.-]{0,60})"\s{0,20}:')
_SPEAKER = re.compile(
    rb'"(?:role|type|sender|author|speaker|from)"\s{0,20}:\s{0,20}"'
    rb'(user|human|assistant|model|agent|ai|bot|gpt|USER|ASSISTANT|User|Assistant)"'
)
_PERSON = frozenset((b"user", b"human", b"USER", b"User"))
_HEADING = re.compile(
    rb"^(?:#{1,4} |\*\*|_\*\*)?(User|Human|You|Assistant|Claude|ChatGPT|Copilot|Cursor|Gemini|Agent|AI)(?:\*\*)?:?(?:\*\*)?[ \t]*\r?$",
    re.MULTILINE,
)
_PERSON_HEADINGS = frozenset((b"User", b"Human", b"You"))


class SourceClaim(NamedTuple):
    """One source's claim on a file."""

    source: Source
    found: SourceCandidate
    score: int  # number of its own fields that the file shows
    buried: bool  # the file does not begin like this format
    reason: str

    @property
    def weight(self) -> tuple[int, bool, int]:
        """Return the order of claims: the highest wins."""
        return self.source.rank, not self.buried, self.score


def weigh_claims(sources: Iterable[Source], path: Path, head: bytes, every: bool = False) -> list[SourceClaim]:
    """Return the claims on a file with these first bytes, the best first.

    Sources are asked in the order of the evidence they can have. Without `every`, asking ends when no other source can
    reach the best claim: the winner, and whether there is one, are the same.
    """
    fields = fields_in(head)
    bounds = [((source.rank, True, len(_seen_fields(source, fields))), source) for source in sources]
    claims: list[SourceClaim] = []
    for bound, source in sorted(bounds, key=lambda one: one[0], reverse=True):
        if not every and claims and max(claim.weight for claim in claims) > bound:
            break
        if (found := source.sniff(path, head)) is not None:
            claims.append(_weigh(source, found, head, fields))
    return sorted(claims, key=lambda claim: claim.weight, reverse=True)


def winner(claims: list[SourceClaim]) -> SourceClaim | None:
    """Return the best claim; None if there is none, or if two are equally good."""
    return claims[0] if claims and not tied(claims) else None


def tied(claims: list[SourceClaim]) -> list[SourceClaim]:
    """Return the claims that share the first place; empty if one of them wins."""
    first = [claim for claim in claims if claim.weight == claims[0].weight]
    return first if len(first) > 1 else []


def describe_tie(claims: list[SourceClaim]) -> str:
    """Return why a file with tied claims is not read, and what to do."""
    return f"looks like {' and '.join(claim.source.name for claim in tied(claims))}; say which with --as NAME"


def fields_in(head: bytes) -> frozenset[str]:
    """Return the names of the JSON fields in the first bytes of a file."""
    return frozenset(name.decode() for name in set(_FIELD.findall(head)))


def resembles_transcript(head: bytes) -> bool:
    """Return whether a file that no source reads looks like a conversation of a person and a model.

    Source code and documents that show how messages look are not meant: objects count in JSON and in databases only.
    """
    is_data = _begins_like_json(head) or head.startswith(_DATABASE)
    for pattern, people in (*([(_SPEAKER, _PERSON)] if is_data else []), (_HEADING, _PERSON_HEADINGS)):
        speakers = set(pattern.findall(head))
        if speakers & people and speakers - people:
            return True
    return False


def _weigh(source: Source, found: SourceCandidate, head: bytes, fields: frozenset[str]) -> SourceClaim:
    seen = _seen_fields(source, fields)
    buried = bool(source.fields) and bool(fields) and not _begins_like_json(head)
    if seen:
        reason = f"{len(seen)} of {len(source.fields)} fields: {', '.join(seen)}"
    else:
        reason = "the form of its first bytes"
    if buried:
        reason += "; but the file does not begin with a record"
    return SourceClaim(source, found, len(seen), buried, reason)


def _seen_fields(source: Source, fields: frozenset[str]) -> list[str]:
    return [name for name in source.fields if name in fields]


def _begins_like_json(head: bytes) -> bool:
    return head.removeprefix(_MARK).lstrip(b" \t\r\n\0")[:1] in (b"{", b"[")
