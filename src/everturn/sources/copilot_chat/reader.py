"""Read the document of a chat: each request gives a prompt, what the model sent, results, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Message, TokenUsage, fingerprint
from everturn.sources.copilot_chat.files import WINDOW_FOLDER
from everturn.sources.copilot_chat.message import (
    INVOCATIONS,
    answer_message,
    attachments_message,
    error_message,
    interrupt_message,
    part_kind,
    prompt_message,
    result_message,
    round_message,
)
from everturn.sources.toolkit.json_document import (
    Damage,
    DocumentItem,
    DocumentReader,
    DocumentState,
    Element,
    decode_item,
    elements,
)
from everturn.sources.toolkit.line_reader import add, listing, mapping
from everturn.sources.toolkit.values import count, milliseconds, unknown_message, word

_CANCELLED = 2  # a value of `modelState`
_ANSWERED = ("response", "result")


class CopilotChatReader(DocumentReader[DocumentState]):
    key = "requests"
    kind = DocumentState

    def _read_item(self, item: DocumentItem, value: Any) -> None:
        if item.key:
            title = word(value) if item.key in ("customTitle", "computedTitle") else ""
            folder = word(value) if item.key == WINDOW_FOLDER else ""
            self._tally.session(self._name).learn(title=title, title_rank=1 if title else 0, workspace=folder)
            self._tally.count("(about)", "known")
            return
        messages = list(_Request(item.raw, value).messages())
        known = bool(messages) or any(key in value for key in ("message", *_ANSWERED))
        if not known:
            messages = [replace(unknown_message(value), size=len(item.raw))]
        for number, message in enumerate(_with_totals(messages, value)):
            self._add(message, item, word(value.get("requestId")) or str(self._state.index), number)
        self._tally.count("request" if known else "?", "message" if known else "unknown")
        self._state.index += 1

    def _add(self, message: Message, item: DocumentItem, request: str, number: int) -> None:
        """Add a message whose range counts from the start of its request."""
        raw = item.raw[message.start : message.start + message.size]
        mark = blake2b(raw, digest_size=8).hexdigest()
        identity = fingerprint(f"{self._name}/{request}/{number}", mark)
        message = replace(message, start=item.start + message.start, fingerprint=identity)
        add(self._tally, self._tally.session(self._name), message)


class _Request:
    """One request, with the byte ranges of its parts."""

    def __init__(self, raw: bytes, value: dict[str, Any]) -> None:
        self._raw, self._value = raw, value
        self._members = _elements_of(raw, 0)
        self._id = word(value.get("responseId")) or word(value.get("requestId"))
        metadata = mapping(mapping(value.get("result")).get("metadata"))
        self._model = word(metadata.get("resolvedModel")) or word(value.get("modelId")).removeprefix("copilot/")
        self._asked = milliseconds(value.get("timestamp"))
        answered = milliseconds(value.get("responseTimestamp"))
        self._answered = answered if answered[0] is not None else self._asked
        self._responses = 0

    def messages(self) -> Iterator[Message]:
        """Yield the messages in order."""
        attached = mapping(self._value.get("variableData"))
        if listing(attached.get("variables")):
            yield self._add_time(attachments_message(attached), self._members["variableData"])
        prompt = prompt_message(self._value.get("message"))
        if prompt.blocks:
            if self._value.get("isSystemInitiated") is True:
                prompt = replace(prompt, origin="injected", starts_turn=False)
            request = word(self._value.get("requestId"))
            yield self._add_time(replace(prompt, native_id=request), self._members["message"])
        rounds = self._rounds()
        yield from self._read_rounds(rounds) if rounds else self._read_parts(self._parts())
        yield from self._ending()

    # --- what the model sent ---
    def _rounds(self) -> list[tuple[Element, dict[str, Any]]]:
        held = self._follow("result", "metadata", "toolCallRounds")
        found = [(one, decode_item(one.cut(self._raw))[0]) for one in _list_of(self._raw, held)]
        rounds = [(one, value) for one, value in found if isinstance(value, dict) and "toolCalls" in value]
        return rounds if any(round_message(value).blocks for _, value in rounds) else []

    def _read_rounds(self, rounds: list[tuple[Element, dict[str, Any]]]) -> Iterator[Message]:
        """Yield each round, followed by the results of its calls; then what only the answer as shown has."""
        results = self._results()
        has_text = any(word(value.get("response")) for _, value in rounds)
        last: Message | None = None
        for place, value in rounds:
            last = self._response(round_message(value), place)
            yield last
            for block in last.blocks:
                if block.call is not None and block.call.call_id in results:
                    one = results.pop(block.call.call_id)
                    yield self._add_time(result_message(decode_item(b"{" + one.cut(self._raw) + b"}")[0]), one)
        parts = self._parts()
        for part in parts:
            if mapping(part[1]).get("subAgentInvocationId"):
                yield from self._run([part])
        called = [number for number, (_, part) in enumerate(parts) if part_kind(part) in INVOCATIONS]
        if not has_text or (called and last is not None and any(block.call for block in last.blocks)):
            yield from self._read_parts(parts[called[-1] + 1 if called else 0 :])

    def _results(self) -> dict[str, Element]:
        """Return the result of each call with its key."""
        held = self._follow("result", "metadata", "toolCallResults")
        found: dict[str, Element] = {}
        if held is None or self._raw[held.start : held.start + 1] != b"{":
            return found
        end = held.start + 1
        for one in _elements_of(self._raw, held.start).values():
            start = self._raw.find(b'"', end)
            end = one.start + one.size
            value, _ = decode_item(b"{" + self._raw[start:end] + b"}")
            if isinstance(value, dict) and len(value) == 1:
                found[next(iter(value))] = Element(one.key, start, end - start)
        return found

    # --- the answer as it was shown ---
    def _parts(self) -> list[tuple[Element, Any]]:
        return [(one, decode_item(one.cut(self._raw))[0]) for one in _list_of(self._raw, self._members.get("response"))]

    def _read_parts(self, parts: list[tuple[Element, Any]]) -> Iterator[Message]:
        """Yield a message for each run of parts: texts and thoughts, then calls."""
        run: list[tuple[Element, Any]] = []
        for one in parts:
            if (
                run
                and part_kind(run[-1][1]) in INVOCATIONS
                and part_kind(one[1]) in ("", "markdownContent", "thinking")
            ):
                yield from self._run(run)
                run = []
            run.append(one)
        yield from self._run(run)

    def _run(self, run: list[tuple[Element, Any]]) -> Iterator[Message]:
        if run and (message := answer_message([part for _, part in run])).blocks:
            start, last = run[0][0].start, run[-1][0]
            yield self._response(message, Element("", start, last.start + last.size - start))

    # --- how it ended ---
    def _ending(self) -> Iterator[Message]:
        failure = self._follow("result", "errorDetails")
        details = mapping(mapping(self._value.get("result")).get("errorDetails"))
        if failure is not None and word(details.get("message")):
            yield self._add_time(error_message(details), failure)
        if self._value.get("isCanceled") is True:
            yield self._add_time(interrupt_message(), self._members["isCanceled"])
        elif mapping(self._value.get("modelState")).get("value") == _CANCELLED:
            yield self._add_time(interrupt_message(), self._members["modelState"])

    def _response(self, message: Message, place: Element) -> Message:
        self._responses += 1
        name = f"{self._id}/{self._responses}"
        return self._add_time(replace(message, provider_id=name, model=self._model), place)

    def _add_time(self, message: Message, place: Element) -> Message:
        at, precision = self._asked if message.role == "user" else self._answered
        if message.at is not None:
            at, precision = self._answered = message.at, message.precision  # what follows has no time of its own
        return replace(message, at=at, precision=precision, start=place.start, size=place.size)

    def _follow(self, *keys: str) -> Element | None:
        found, members = None, self._members
        for key in keys:
            if (found := members.get(key)) is None:
                return None
            members = _elements_of(self._raw, found.start)
        return found


def _with_totals(messages: list[Message], request: dict[str, Any]) -> list[Message]:
    """Give the last response of a request its tokens and the time it took, which the client reports as a whole."""
    last = next((number for number in reversed(range(len(messages))) if messages[number].origin == "model"), None)
    if last is not None:
        took = count(mapping(mapping(request.get("result")).get("timings")).get("totalElapsed"))
        messages[last] = replace(messages[last], usage=_usage(request), reported_ms=took)
    return messages


def _usage(request: dict[str, Any]) -> TokenUsage | None:
    totals = [mapping(one) for one in listing(request.get("modelTotals"))]
    given, cached, output = (
        sum(count(one.get(key)) or 0 for one in totals) for key in ("inputTokens", "cachedTokens", "outputTokens")
    )
    if not given and not output:
        metadata = mapping(mapping(request.get("result")).get("metadata"))
        given = count(request.get("promptTokens")) or count(metadata.get("promptTokens")) or 0
        output = count(request.get("completionTokens")) or count(metadata.get("outputTokens")) or 0
        cached = 0
    return TokenUsage(max(given - cached, 0), output, cached) if given or output else None


def _elements_of(raw: bytes, at: int) -> dict[str, Element]:
    """Return the members of the object that starts at `at`, by key; none if there is no object."""
    found: dict[str, Element] = {}
    try:
        for one in elements(raw, at) if raw[at : at + 1] == b"{" else ():
            found[one.key] = one
    except Damage:
        pass
    return found


def _list_of(raw: bytes, held: Element | None) -> list[Element]:
    """Return the elements of a list."""
    try:
        return list(elements(raw, held.start)) if held is not None and raw[held.start : held.start + 1] == b"[" else []
    except Damage:
        return []
