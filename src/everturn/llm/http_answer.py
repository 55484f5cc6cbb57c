"""What a server's answer means before it is read: refused, busy, broken, lost, and how long to wait.

A server's own sentence is passed on because it says what to do ("prompt is too long"), but never with a piece of the key
in it, never with what looks like a secret, and cut short.

Server-sent events: bytes as they arrive, split anywhere, become events.

Follows the WHATWG rules for the stream: lines end with CR, LF or both, a BOM at the start is skipped, comments are skipped,
several `data` lines are joined, an empty line ends an event.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from msgspec import Struct

from everturn.errors import BadAnswer, ModelBusy, ModelError, ModelRefused, ModelUnreachable
from everturn.llm.protocol import Reply, WireFailure
from everturn.secrets.redaction import redact_text

_LONGEST = 200  # characters of a server's own sentence
_PIECE = 8  # characters of a key that must not be seen together

#: What a status means, for people.
_REFUSALS = {
    400: "it says the request is wrong",
    401: "it does not accept the key",
    402: "it wants to be paid first",
    403: "it does not allow this",
    404: "it knows no such address or model",
    413: "the request is too large for it",
    422: "it says the request is wrong",
}
#: Said with 429, yet waiting does not help.
_SPENT = {"insufficient_quota", "billing_hard_limit_reached", "billing_error"}


class RetryableFailure(Exception):
    """A try that failed in a way that may pass.

    `after` is what the server asks to wait, in seconds; `cut` the part of an answer that came.
    """

    def __init__(self, error: ModelError, after: float | None = None, cut: Reply | None = None) -> None:
        self.error, self.after, self.cut = error, after, cut
        super().__init__(str(error))


class ConnectionLost(Exception):
    """The connection failed; `again`: asking again may help."""

    def __init__(self, why: str, again: bool = True, kind: type[ModelError] = ModelUnreachable) -> None:
        self.why, self.again, self.kind = why, again, kind
        super().__init__(why)

    def passing(self, name: str) -> Exception:
        """The same for the caller, when nothing had come yet."""
        error = self.kind(name, self.why)
        return RetryableFailure(error) if self.again else error


def refusal_of(name: str, status: int, said: WireFailure | None, key: str) -> ModelError:
    """The error for a status (0: told within the stream)."""
    words = _failure_text(said, key)
    kind = said.kind if said is not None else ""
    if 300 <= status < 400:
        return ModelRefused(name, f"it answers {status}, a redirect, and those are not followed")
    if status in (429, 503, 529) and kind not in _SPENT:
        return ModelBusy(name, f"it is busy ({status}){words}")
    if status >= 500 or status == 408:
        return ModelUnreachable(name, f"the server failed with status {status}{words}")
    why = _REFUSALS.get(status, f"it answers {status}" if status else "it stopped with an error")
    return ModelRefused(name, f"{why}{words}")


def check_answer(name: str, content_type: str, encoding: str) -> None:
    """Raise `BadAnswer` for an answer of a kind that was not asked for."""
    if content_type not in ("text/event-stream", "application/json"):
        shown = re.sub(r"[^\w./+-]", "", content_type)[:60] or "of no kind"
        raise BadAnswer(name, f"the answer is {shown} where events or JSON were promised; is base_url right?")
    if encoding.lower() not in ("", "identity"):
        raise BadAnswer(name, "the answer is packed although that was not asked for")


def pause_of(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait, however it says so. A date is measured by the server's own clock."""
    if (given := _parse_seconds(headers.get("retry-after-ms", ""))) is not None:
        return given / 1000
    text = headers.get("retry-after", "")
    if (given := _parse_seconds(text)) is not None:
        return given
    try:
        return max(0.0, (parsedate_to_datetime(text) - parsedate_to_datetime(headers["date"])).total_seconds())
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


def _parse_seconds(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text.strip()) else None


def _failure_text(said: WireFailure | None, key: str) -> str:
    if said is None:
        return ""
    kind = said.kind if re.fullmatch(r"[\w.-]{1,60}", said.kind) else ""
    sentence = "".join(char if char.isprintable() else " " for char in redact_text(said.says))
    sentence = " ".join(sentence.split())[:_LONGEST].rstrip(".")
    shown = [text for text in (kind, sentence) if text and not _is_showing_key(text, key)]
    return f": {', '.join(shown)}" if shown else ""


def _is_showing_key(text: str, key: str) -> bool:
    """Whether a piece of the key can be read in the text."""
    size = min(_PIECE, len(key))
    return size > 0 and any(key[at : at + size] in text for at in range(len(key) - size + 1))


_END = re.compile(rb"\r\n|\r|\n")


class ServerEvent(Struct, frozen=True):
    """One event: its type and its data."""

    name: str
    data: str


class ServerEventStream:
    """Reads one stream piece by piece. The work follows the bytes, however long a line is."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the line that has not ended
        self._name = ""
        self._data: list[str] = []
        self._is_first = True

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that are complete with this piece."""
        waits = self._pieces and self._pieces[-1].endswith(b"\r")
        if not waits and not _END.search(data):
            self._pieces += [data] if data else []
            return []
        lines, rest = _split_lines(b"".join([*self._pieces, data]))
        self._pieces = [rest] if rest else []
        return [event for line in lines for event in self._line(line)]

    def last(self) -> list[ServerEvent]:
        """At the end of a stream: the event whose empty line did not come. It may be half of one."""
        return self.feed(b"\n\n\n")

    def _line(self, line: bytes) -> list[ServerEvent]:
        text = line.decode("utf-8", "replace")
        if self._is_first:
            text, self._is_first = text.removeprefix("\ufeff"), False
        if not text:
            return self._ended()
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return []

    def _ended(self) -> list[ServerEvent]:
        name, data = self._name, self._data
        self._name, self._data = "", []
        return [ServerEvent(name or "message", "\n".join(data))] if data else []


def _split_lines(data: bytes) -> tuple[list[bytes], bytes]:
    """Whole lines, and what may still grow. A CR at the very end waits: an LF may follow."""
    lines, start = [], 0
    for end in _END.finditer(data):
        if end.group() == b"\r" and end.end() == len(data):
            break
        lines.append(data[start : end.start()])
        start = end.end()
    return lines, data[start:]
