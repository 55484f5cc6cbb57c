"""Errors, retries and server-sent events of an HTTP answer, before a wire format reads it.

A server's message is passed on because it says what to do ("prompt is too long"), but shortened, redacted, and never with
a part of the key.

`ServerEventStream` follows the WHATWG rules: lines end with CR, LF or both, a BOM at the start and comments are skipped,
several `data` lines are joined, an empty line ends an event.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from everturn.errors import BadAnswer, ModelBusy, ModelError, ModelRefused, ModelUnreachable
from everturn.llm.protocol import Reply, WireFailure
from everturn.secrets.redaction import redact_text

_LONGEST = 200  # characters of a server's message
_KEY_PART = 8  # consecutive characters of a key that must not be shown

#: Messages for a status.
_REFUSALS = {
    400: "the server rejected the request as invalid",
    401: "the server rejected the API key",
    402: "the server requires payment",
    403: "the server does not permit this request",
    404: "the server does not know this address or model",
    413: "the request is too large for the server",
    422: "the server rejected the request as invalid",
}
#: Codes sent with 429 where waiting does not help.
_SPENT = {"insufficient_quota", "billing_hard_limit_reached", "billing_error"}


class RetryableFailure(Exception):
    """A failed attempt that may be retried.

    `after` is the pause the server asks for, in seconds; `cut` is the part of the answer that arrived.
    """

    def __init__(self, error: ModelError, after: float | None = None, cut: Reply | None = None) -> None:
        self.error, self.after, self.cut = error, after, cut
        super().__init__(str(error))


class ConnectionLost(Exception):
    """The connection failed. `again`: a retry may help; `was_open`: part of the request may have been sent."""

    def __init__(
        self, why: str, again: bool = True, kind: type[ModelError] = ModelUnreachable, was_open: bool = True
    ) -> None:
        self.why, self.again, self.kind, self.was_open = why, again, kind, was_open
        super().__init__(why)

    def as_error(self, name: str) -> Exception:
        """Return the error for the caller, if nothing had arrived yet."""
        error = self.kind(name, self.why)
        return RetryableFailure(error) if self.again else error


def refusal_error(name: str, status: int, failure: WireFailure | None, key: str) -> ModelError:
    """Return the error for a status; 0 means an error within the stream."""
    detail = _failure_text(failure, key)
    kind = failure.kind if failure is not None else ""
    if 300 <= status < 400:
        return ModelRefused(name, f"the server answered with a redirect ({status}), which is not followed")
    if status in (429, 503, 529) and kind not in _SPENT:
        return ModelBusy(name, f"the server is busy ({status}){detail}")
    if status >= 500 or status == 408:
        return ModelUnreachable(name, f"the server failed with status {status}{detail}")
    why = _REFUSALS.get(
        status, f"the server answered with status {status}" if status else "the server stopped with an error"
    )
    return ModelRefused(name, f"{why}{detail}")


def check_answer(name: str, content_type: str, encoding: str) -> None:
    """Raise `BadAnswer` for an answer of an unexpected type or encoding."""
    if content_type not in ("text/event-stream", "application/json"):
        shown = re.sub(r"[^\w./+-]", "", content_type)[:60] or "of an unknown type"
        raise BadAnswer(name, f"the answer is {shown}, not an event stream or JSON; check base_url")
    if encoding.lower() not in ("", "identity"):
        raise BadAnswer(name, "the answer is compressed, which was not requested")


def retry_pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds the server asks to wait. A date is measured by the server's own clock."""
    if (seconds := _parse_seconds(headers.get("retry-after-ms", ""))) is not None:
        return seconds / 1000
    text = headers.get("retry-after", "")
    if (seconds := _parse_seconds(text)) is not None:
        return seconds
    try:
        return max(0.0, (parsedate_to_datetime(text) - parsedate_to_datetime(headers["date"])).total_seconds())
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


def _parse_seconds(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text.strip()) else None


def _failure_text(failure: WireFailure | None, key: str) -> str:
    if failure is None:
        return ""
    kind = failure.kind if re.fullmatch(r"[\w.-]{1,60}", failure.kind) else ""
    sentence = "".join(char if char.isprintable() else " " for char in redact_text(failure.says))
    sentence = " ".join(sentence.split())[:_LONGEST].rstrip(".")
    shown = [text for text in (kind, sentence) if text and not _is_showing_key(text, key)]
    return f": {', '.join(shown)}" if shown else ""


def _is_showing_key(text: str, key: str) -> bool:
    size = min(_KEY_PART, len(key))
    return size > 0 and any(key[at : at + size] in text for at in range(len(key) - size + 1))


_END = re.compile(rb"\r\n|\r|\n")


class ServerEventStream:
    """Splits a byte stream into the data of its events. The work grows with the bytes, however long a line is.

    The names of events are skipped: the wire formats repeat them in the data.
    """

    def __init__(self) -> None:
        self._unfinished: list[bytes] = []  # of the unfinished line
        self._data: list[str] = []
        self._is_first = True

    def feed(self, data: bytes) -> list[str]:
        """Return the events that are complete with these bytes."""
        waits = self._unfinished and self._unfinished[-1].endswith(b"\r")
        if not waits and not _END.search(data):
            self._unfinished += [data] if data else []
            return []
        lines, rest = _split_lines(b"".join([*self._unfinished, data]))
        self._unfinished = [rest] if rest else []
        return [event for line in lines for event in self._add_line(line)]

    def last(self) -> list[str]:
        """Return the event whose empty line is missing at the end of the stream. It may be incomplete."""
        return self.feed(b"\n\n\n")

    def _add_line(self, line: bytes) -> list[str]:
        text = line.decode("utf-8", "replace")
        if self._is_first:
            text, self._is_first = text.removeprefix("\ufeff"), False
        if not text:
            data, self._data = self._data, []
            return ["\n".join(data)] if data else []
        field, _, value = text.partition(":")
        if field == "data":
            self._data.append(value.removeprefix(" "))
        return []


def _split_lines(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the whole lines and the rest. A CR at the very end waits: an LF may follow."""
    lines, start = [], 0
    for end in _END.finditer(data):
        if end.group() == b"\r" and end.end() == len(data):
            break
        lines.append(data[start : end.start()])
        start = end.end()
    return lines, data[start:]
