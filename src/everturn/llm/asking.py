"""The one way to a model: redacted on the way out, within a budget, with a receipt for every request.

An `Asker` without a backend never sends anything. What would go over the budget is not sent (`OverBudget`). Every request
that was sent leaves a receipt, also one that failed; where the provider did not count tokens, they are estimated and the
receipt says so. What a model thought aloud is taken out of its answer and kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct, structs

from everturn.derive.tokens import estimate_tokens
from everturn.errors import BadAnswer, ModelBusy, ModelError, ModelRefused, ModelUnreachable, OverBudget
from everturn.llm import Backend, ChatMessage, ChatPart, Delta, ModelRequest, Receipt, Reply, ReplyTokens
from everturn.llm.cleaning import Clean, clean_request
from everturn.llm.reasoning import Sieve, split_thoughts, thought_words
from everturn.llm.wire import encode_json

#: An answer that may have fewer tokens than this is not worth asking for, unless the caller wants no more.
_LEAST = 256

_STOPS: dict[type[ModelError], str] = {
    ModelUnreachable: "unreachable",
    ModelBusy: "busy",
    ModelRefused: "refused",
    BadAnswer: "garbled",
}


class AskBudget(Struct, frozen=True):
    """What may be spent in all; None: no limit."""

    requests: int | None = None
    input: int | None = None  # tokens, those read from a cache too
    output: int | None = None
    tokens: int | None = None  # of both together


class Asker:
    """Asks one model for one piece of work.

    `clean` takes secrets out of a text, `clock` gives ms UTC, `on_receipt` gets every receipt as it is made.
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
    def spent(self) -> ReplyTokens:
        """All receipts together."""
        used = [receipt.usage for receipt in self.receipts]
        source = "api" if all(one.source == "api" for one in used) else "estimate"
        return ReplyTokens(
            sum(one.input for one in used),
            sum(one.output for one in used),
            sum(one.cache_read for one in used),
            sum(one.cache_write for one in used),
            source,
        )

    def ask(self, request: ModelRequest, purpose: str) -> Reply:
        """The whole reply, without what the model thought in its text."""
        sending = self._prepare_request(request, purpose)
        try:
            reply = sending.backend.ask(sending.request)
        except ModelError as error:
            self._failed(sending, error)
            raise
        return self._record_reply(sending, reply)

    def stream(self, request: ModelRequest, purpose: str) -> Iterator[Delta]:
        """The reply piece by piece. Stopping early leaves a receipt as well."""
        sending = self._prepare_request(request, purpose)
        sieve, said, done = Sieve(), "", False
        try:
            for delta in sending.backend.stream(sending.request):
                said += delta.text
                if delta.reply is not None:
                    done = True
                    yield from _text_deltas(sieve.last())
                    yield structs.replace(delta, reply=self._record_reply(sending, delta.reply))
                elif delta.kind == "text":
                    yield from _text_deltas(sieve.feed(delta.text))
                else:
                    yield delta
        except ModelError as error:
            done = True
            self._failed(sending, error)
            raise
        finally:
            if not done:
                usage = ReplyTokens(sending.size, estimate_tokens(said) if said else 0, source="estimate")
                self._receipt(sending, usage, 1, "closed")

    # before -----------------------------------------------------------------------------------------------------------

    def _prepare_request(self, request: ModelRequest, purpose: str) -> _SentRequest:
        if self.backend is None:
            raise ModelRefused("(none)", "no model was named, and without that nothing is sent")
        clean = clean_request(request, self._clean)
        size = request_tokens(clean)
        most = self._most(size, clean.max_tokens)
        return _SentRequest(self.backend, structs.replace(clean, max_tokens=most), purpose, size, self._clock())

    def _most(self, size: int, wanted: int) -> int:
        """How many tokens the answer may have; raises `OverBudget` when there is nothing left for it."""
        budget, spent = self.budget, self.spent
        told = spent.input + spent.cache_read + spent.cache_write
        if budget.requests is not None and len(self.receipts) >= budget.requests:
            self._over(f"{budget.requests} requests were allowed and made")
        if budget.input is not None and told + size > budget.input:
            self._over(f"about {told + size} tokens would be sent where {budget.input} are allowed")
        left = [wanted]
        if budget.output is not None:
            left.append(budget.output - spent.output)
        if budget.tokens is not None:
            left.append(budget.tokens - told - spent.output - size)
        if min(left) < min(wanted, _LEAST):
            self._over(f"of the tokens allowed {max(0, min(left))} are left for an answer")
        return min(left)

    def _over(self, why: str) -> None:
        raise OverBudget(self.backend.name if self.backend else "(none)", why)

    # after ------------------------------------------------------------------------------------------------------------

    def _record_reply(self, sending: _SentRequest, reply: Reply) -> Reply:
        usage = reply.usage
        if usage.source != "api" or not (usage.input or usage.output or usage.cache_read or usage.cache_write):
            usage = _estimate_usage(usage, sending.size, reply)
        elif reply.stop == "cut":  # the provider counts the output at the end, which did not come
            usage = structs.replace(usage, output=max(usage.output, _size_of_answer(reply)), source="estimate")
        self._receipt(sending, usage, reply.tries, reply.stop, reply.model)
        return structs.replace(reply, usage=usage, message=without_thoughts(reply.message))

    def _failed(self, sending: _SentRequest, error: ModelError) -> None:
        """What was refused costs nothing; what got lost may have been read."""
        may_cost = isinstance(error, ModelUnreachable | BadAnswer)
        stop = _STOPS.get(type(error), "refused")
        self._receipt(sending, ReplyTokens(sending.size if may_cost else 0, source="estimate"), error.tries, stop)

    def _receipt(self, sending: _SentRequest, usage: ReplyTokens, tries: int, stop: str, model: str = "") -> None:
        name = model or sending.request.model or sending.backend.model
        took = self._clock() - sending.at
        made = Receipt(sending.backend.name, name, sending.purpose, usage, tries, sending.at, took, stop)
        self.receipts.append(made)
        if self._on_receipt is not None:
            self._on_receipt(made)


class _SentRequest(Struct, frozen=True):
    """A request on its way."""

    backend: Backend
    request: ModelRequest
    purpose: str
    size: int  # tokens, estimated
    at: int


def request_tokens(request: ModelRequest) -> int:
    """About how many tokens a request has."""
    parts = [part for message in request.messages for part in message.parts]
    texts = [request.system, *(part.text for part in parts)]
    texts += [encode_json(part.arguments) for part in parts if part.kind == "call"]
    texts += [f"{tool.name} {tool.description} {encode_json(tool.parameters)}" for tool in request.tools]
    return sum(map(estimate_tokens, filter(None, texts))) + 4 * len(request.messages)


def without_thoughts(message: ChatMessage) -> ChatMessage:
    """The message with what was thought aloud in parts of its own; sent back to its provider it is still the same."""
    parts: list[ChatPart] = []
    for part in message.parts:
        is_first = not any(one.kind == "text" for one in parts)
        thought, answer = split_thoughts(part.text) if part.kind == "text" and is_first else ("", part.text)
        if not thought:
            parts.append(part)
            continue
        is_bare = isinstance(part.raw, str)  # a text that is no block can be cut in two
        parts.append(ChatPart("thinking", thought_words(thought), raw=thought if is_bare else None))
        parts.append(structs.replace(part, text=answer, raw=answer if is_bare else None))
    return structs.replace(message, parts=tuple(parts))


def _text_deltas(text: str) -> list[Delta]:
    return [Delta("text", text)] if text else []


def _estimate_usage(usage: ReplyTokens, size: int, reply: Reply) -> ReplyTokens:
    return ReplyTokens(usage.input or size, usage.output or _size_of_answer(reply), source="estimate")


def _size_of_answer(reply: Reply) -> int:
    texts = [part.text for part in reply.message.parts]
    texts += [encode_json(part.arguments) for part in reply.message.parts if part.kind == "call"]
    return sum(map(estimate_tokens, filter(None, texts)))
