"""The one way to a model: redacted, within a budget, with a receipt for every request.

An `Asker` without a backend sends nothing. A request beyond the budget is not sent (`OverBudget`). Every request that was
sent leaves a receipt, a failed one too. Tokens that the provider did not count are estimated, and the receipt says so.

Redaction covers every text of a request, in verbatim blocks too. Names, ids and signatures stay. A block that its provider
signed or sealed cannot be changed in part: one that holds a secret is left out whole.

Thoughts that a model writes at the start of its answer are moved into a part of their own. Later marks are more likely
part of the answer. Known marks: `<think>…</think>`, `<thinking>…</thinking>`, `<reasoning>…</reasoning>`, `Thinking...` …
`...done thinking.`, and a closing tag alone at its line end, which remains when a server puts the opening tag into the
prompt. A thought without an end is the whole answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct, structs

from everturn.errors import BadAnswer, ModelBusy, ModelError, ModelRefused, ModelUnreachable, OverBudget
from everturn.llm.protocol import (
    Backend,
    ChatMessage,
    ChatPart,
    Delta,
    ModelRequest,
    Receipt,
    Reply,
    ReplyTokens,
    ToolSpec,
    drop_lone_surrogates,
    encode_json,
    sum_usage,
)
from everturn.text.printable import plural
from everturn.text.tokens import estimate_tokens

Clean = Callable[[str], str]

#: Members of a provider's block that are not text. In nested objects every member is.
_NO_TEXTS = {"type", "id", "name", "call_id", "tool_use_id", "tool_call_id", "signature", "data", "encrypted_content"}


def clean_request(request: ModelRequest, clean: Clean) -> ModelRequest:
    clean = _without_lone_surrogates(clean)
    return structs.replace(
        request,
        messages=tuple(_clean_message(message, clean) for message in request.messages),
        system=clean(request.system),
        tools=tuple(_clean_tool(tool, clean) for tool in request.tools),
        extra=_clean_deep(request.extra, clean),
    )


def _clean_message(message: ChatMessage, clean: Clean) -> ChatMessage:
    parts = tuple(cleaned for part in message.parts if (cleaned := _clean_part(part, clean)) is not None)
    raw = _clean_block(message.raw, clean) if isinstance(message.raw, dict) else message.raw
    return structs.replace(message, parts=parts, raw=raw)


def _clean_tool(tool: ToolSpec, clean: Clean) -> ToolSpec:
    return ToolSpec(tool.name, clean(tool.description), _clean_deep(tool.parameters, clean))


def _clean_part(part: ChatPart, clean: Clean) -> ChatPart | None:
    text, raw = clean(part.text), _clean_block(part.raw, clean)
    if part.kind == "call":
        return _clean_call(part, clean)
    if text == part.text and raw == part.raw:
        return part
    if part.kind in ("thinking", "opaque") and part.raw is not None and not isinstance(part.raw, str):
        return None
    return structs.replace(part, text=text, raw=raw)


def _clean_call(part: ChatPart, clean: Clean) -> ChatPart:
    """Rebuild a call whose arguments hold a secret: its own text might no longer be JSON."""
    cleaned = _clean_arguments(part.arguments, clean)
    return part if cleaned == part.arguments else structs.replace(part, arguments=cleaned, raw=None)


def _clean_arguments(given: Any, clean: Clean) -> Any:
    """Clean each text by itself, since the whole has escaped line ends; then the whole, since names reveal secrets too."""
    values = _clean_deep(given, clean)
    if isinstance(values, str) or values is None:
        return values
    try:
        return json.loads(clean(json.dumps(values, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return values


def _without_lone_surrogates(clean: Clean) -> Clean:
    """Also replace lone surrogates, which transcripts contain and which cannot be sent."""
    return lambda text: clean(text if text.isascii() else drop_lone_surrogates(text))


def _clean_block(raw: Any, clean: Clean) -> Any:
    if not isinstance(raw, dict):
        return _clean_deep(raw, clean)
    return {name: value if name in _NO_TEXTS else _clean_deep(value, clean) for name, value in raw.items()}


def _clean_deep(value: Any, clean: Clean) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name) if isinstance(name, str) else name: _clean_deep(one, clean) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_clean_deep(one, clean) for one in value]
    return value


_TAGS = "think|thinking|thought|reasoning"
_OPEN_TAG = re.compile(rf"\s*<({_TAGS})>", re.I)
_THINKING_LINE = re.compile(r"\s*thinking\.\.\.[ \t]*\n", re.I)
_DONE_LINE = re.compile(r"(?:\.\.\.)?done thinking\.?[ \t]*\n*", re.I)
_ONLY_CLOSED = re.compile(rf"\A(?:(?!<(?:{_TAGS})>|```).)*?</({_TAGS})>[ \t]*(?:\n|\Z)", re.I | re.S)
_STARTS = ("<think>", "<thinking>", "<thought>", "<reasoning>", "thinking...\n")


def split_thoughts(text: str) -> tuple[str, str]:
    """Split a text into thoughts and answer. Together they are the text."""
    end = 0
    while (after := _thought_end(text, end)) is not None and after > end:
        end = after
    if end == 0 and (closed := _ONLY_CLOSED.match(text)):
        end = closed.end()
    while end and end < len(text) and text[end].isspace():
        end += 1
    return text[:end], text[end:]


def thought_words(thought: str) -> str:
    """Return a thought without its marks."""
    bare = re.sub(rf"</?(?:{_TAGS})>|\A\s*thinking\.\.\.|(?:\.\.\.)?done thinking\.?", "", thought, flags=re.I)
    return bare.strip()


class ThoughtFilter:
    """Holds thoughts back from a streamed answer.

    A closing tag without an opening one is recognised only in the whole reply.
    """

    def __init__(self) -> None:
        self._held = ""
        self._is_open = True  # the answer may still begin with a thought
        self._end_sign = ""  # a character that must come before the open thought can end

    def feed(self, text: str) -> str:
        """Return the text that is certainly part of the answer."""
        if not self._is_open:
            return text
        self._held += text
        if self._end_sign not in text:
            return ""
        self._is_open, self._end_sign = _may_be_thought(self._held), _open_tag_sign(self._held)
        return "" if self._is_open else split_thoughts(self._held)[1]

    def last(self) -> str:
        """Return the text that was held back and is part of the answer."""
        held, self._held = self._held if self._is_open else "", ""
        return split_thoughts(held)[1]


def _thought_end(text: str, start: int) -> int | None:
    """Return the end of a thought that begins here, or None."""
    if opened := _OPEN_TAG.match(text, start):
        closed = re.compile(rf"</{opened[1]}>", re.I).search(text, opened.end())
        return closed.end() if closed else len(text)
    if _THINKING_LINE.match(text, start) and (done := _DONE_LINE.search(text, start)):
        return done.end()
    return None


def _may_be_thought(text: str) -> bool:
    """Whether more text is needed to decide."""
    answer = split_thoughts(text)[1]
    rest = answer.lstrip().lower()
    return not rest or bool(_THINKING_LINE.match(answer)) or any(start.startswith(rest) for start in _STARTS)


def _open_tag_sign(text: str) -> str:
    opened = _OPEN_TAG.match(text)
    return ">" if opened and f"</{opened[1]}>".lower() not in text.lower() else ""


#: The smallest limit of an answer that is worth a request, unless the caller asks for less.
_LEAST = 256

_STOPS: dict[type[ModelError], str] = {
    ModelUnreachable: "unreachable", ModelBusy: "busy", ModelRefused: "refused", BadAnswer: "garbled",
}  # fmt: skip


class AskBudget(Struct, frozen=True):
    """Limits on all requests together; None means no limit."""

    requests: int | None = None
    input: int | None = None  # tokens, those read from a cache too
    output: int | None = None
    tokens: int | None = None  # of both together


class Asker:
    """Sends the requests of one job to one model.

    `clean` removes secrets from a text, `clock` returns ms UTC, `on_receipt` is called with every receipt.
    """

    def __init__(
        self,
        backend: Backend | None,
        budget: AskBudget,
        clean: Clean,
        clock: Callable[[], int],
        on_receipt: Callable[[Receipt], None] | None = None,
    ) -> None:
        self.backend, self.budget = backend, budget
        self.receipts: list[Receipt] = []
        self._clean, self._clock, self._on_receipt = clean, clock, on_receipt

    @property
    def tokens_spent(self) -> ReplyTokens:
        used = [receipt.usage for receipt in self.receipts]
        source = "api" if all(one.source == "api" for one in used) else "estimate"
        return sum_usage(used, source)

    def ask(self, request: ModelRequest, purpose: str) -> Reply:
        """Return the whole reply. Its text has no thoughts."""
        sent = self._prepare_request(request, purpose)
        try:
            reply = sent.backend.ask(sent.request)
        except ModelError as error:
            self._record_failure(sent, error)
            raise
        return self._record_reply(sent, reply)

    def stream(self, request: ModelRequest, purpose: str) -> Iterator[Delta]:
        """Stream the reply. Stopping early leaves a receipt too."""
        sent = self._prepare_request(request, purpose)
        thoughts, text, done = ThoughtFilter(), "", False
        try:
            for delta in sent.backend.stream(sent.request):
                text += delta.text
                if delta.reply is not None:
                    done = True
                    yield from _text_deltas(thoughts.last())
                    yield structs.replace(delta, reply=self._record_reply(sent, delta.reply))
                elif delta.kind == "text":
                    yield from _text_deltas(thoughts.feed(delta.text))
                else:
                    yield delta
        except ModelError as error:
            done = True
            self._record_failure(sent, error)
            raise
        finally:
            if not done:
                usage = ReplyTokens(sent.size, estimate_tokens(text) if text else 0, source="estimate")
                self._add_receipt(sent, usage, 1, "closed")

    def _prepare_request(self, request: ModelRequest, purpose: str) -> _SentRequest:
        if self.backend is None:
            raise ModelRefused("(none)", "no model was named, so nothing is sent")
        clean = clean_request(request, self._clean)
        size = request_tokens(clean)
        most = self._answer_limit(size, clean.max_tokens)
        return _SentRequest(self.backend, structs.replace(clean, max_tokens=most), purpose, size, self._clock())

    def _answer_limit(self, size: int, requested: int) -> int:
        """Return how many tokens the answer may have. Raise `OverBudget` if none are left."""
        budget, spent = self.budget, self.tokens_spent
        sent_tokens = spent.input + spent.cache_read + spent.cache_write
        if budget.requests is not None and len(self.receipts) >= budget.requests:
            self._raise_over_budget(f"the limit of {plural(budget.requests, 'request')} is reached")
        if budget.input is not None and sent_tokens + size > budget.input:
            self._raise_over_budget(f"about {sent_tokens + size:,} tokens would be sent; the limit is {budget.input:,}")
        left = [requested]
        if budget.output is not None:
            left.append(budget.output - spent.output)
        if budget.tokens is not None:
            left.append(budget.tokens - sent_tokens - spent.output - size)
        if min(left) < min(requested, _LEAST):
            self._raise_over_budget(f"only {plural(max(0, min(left)), 'token')} of the budget are left for an answer")
        return min(left)

    def _raise_over_budget(self, why: str) -> None:
        raise OverBudget(self.backend.name if self.backend else "(none)", why)

    def _record_reply(self, sent: _SentRequest, reply: Reply) -> Reply:
        usage = reply.usage
        if usage.source != "api" or not (usage.input or usage.output or usage.cache_read or usage.cache_write):
            usage = ReplyTokens(usage.input or sent.size, usage.output or _reply_tokens(reply), source="estimate")
        elif reply.stop == "cut":  # the provider counts the output at the end, which is missing
            usage = structs.replace(usage, output=max(usage.output, _reply_tokens(reply)), source="estimate")
        self._add_receipt(sent, usage, reply.tries, reply.stop, reply.model)
        return structs.replace(reply, usage=usage, message=without_thoughts(reply.message))

    def _record_failure(self, sent: _SentRequest, error: ModelError) -> None:
        """Add a receipt. A refused request costs nothing; a lost one may have been read."""
        may_cost = isinstance(error, ModelUnreachable | BadAnswer)
        stop = _STOPS.get(type(error), "refused")
        self._add_receipt(sent, ReplyTokens(sent.size if may_cost else 0, source="estimate"), error.tries, stop)

    def _add_receipt(self, sent: _SentRequest, usage: ReplyTokens, tries: int, stop: str, model: str = "") -> None:
        name = model or sent.request.model or sent.backend.model
        took = self._clock() - sent.at
        receipt = Receipt(sent.backend.name, name, sent.purpose, usage, tries, sent.at, took, stop)
        self.receipts.append(receipt)
        if self._on_receipt is not None:
            self._on_receipt(receipt)


class _SentRequest(Struct, frozen=True):
    backend: Backend
    request: ModelRequest
    purpose: str
    size: int  # tokens, estimated
    at: int


def request_tokens(request: ModelRequest) -> int:
    parts = [part for message in request.messages for part in message.parts]
    texts = [request.system, *(part.text for part in parts)]
    texts += [encode_json(part.arguments) for part in parts if part.kind == "call"]
    texts += [f"{tool.name} {tool.description} {encode_json(tool.parameters)}" for tool in request.tools]
    return sum(map(estimate_tokens, filter(None, texts))) + 4 * len(request.messages)


def without_thoughts(message: ChatMessage) -> ChatMessage:
    """Move thoughts into parts of their own. Its provider still gets the same message."""
    parts: list[ChatPart] = []
    for part in message.parts:
        is_first = not any(one.kind == "text" for one in parts)
        thought, answer = split_thoughts(part.text) if part.kind == "text" and is_first else ("", part.text)
        if not thought:
            parts.append(part)
            continue
        is_bare = isinstance(part.raw, str)  # only plain text can be split
        parts.append(ChatPart("thinking", thought_words(thought), raw=thought if is_bare else None))
        parts.append(structs.replace(part, text=answer, raw=answer if is_bare else None))
    return structs.replace(message, parts=tuple(parts))


def _text_deltas(text: str) -> list[Delta]:
    return [Delta("text", text)] if text else []


def _reply_tokens(reply: Reply) -> int:
    texts = [part.text for part in reply.message.parts]
    texts += [encode_json(part.arguments) for part in reply.message.parts if part.kind == "call"]
    return sum(map(estimate_tokens, filter(None, texts)))
