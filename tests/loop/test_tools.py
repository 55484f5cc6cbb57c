"""Tools: callable, typed, with models as arguments; durable steps and sleeps; typed answers."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pydantic
import pytest

from everturn.errors import ToolIdempotencyError, UsageError
from everturn.loop.async_loop import AsyncLoop
from everturn.loop.journal import Journal
from everturn.loop.loop import Loop, Outcome
from everturn.loop.records import IntendedCall
from everturn.loop.tools import Tool, ToolContext, tool
from everturn.store.contract import Store
from tests.loop.scripted_model import Model, calls, says


@dataclass
class Address:
    street: str
    number: int = 1


class Country(pydantic.BaseModel):
    code: str


class Order(pydantic.BaseModel):
    item: str
    count: int = pydantic.Field(gt=0)
    to: Country


class Odd:
    """A type that no schema describes."""


def test_an_argument_that_cannot_be_described_is_named_in_one_sentence() -> None:
    def look(thing: Odd) -> str:
        return str(thing)

    with pytest.raises(
        UsageError, match=r"tool look: an argument cannot be described to a model: .*Odd.* is not supported"
    ) as told:
        tool(look)
    assert "\n" not in str(told.value)


def test_a_tool_is_called_like_its_function() -> None:
    @tool
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    @tool
    def who(context: ToolContext, a: int) -> str:
        """Tell."""
        return f"{context.session}{a}"

    without: Tool = who  # a type checker wants the context; at run time it may be left out
    assert (add(1), add(1, b=5), without(a=3), who(ToolContext("c", "s"), 3)) == (3, 6, "3", "s3")


def test_arguments_may_be_dataclasses_and_pydantic_models() -> None:
    @tool
    def send(order: Order, address: Address, more: list[Order] | None = None) -> str:
        """Send."""
        return f"{order.count} {order.item} to {order.to.code}, {address.street} {address.number}, {len(more or [])}"

    given = {"item": "jam", "count": 2, "to": {"code": "FR"}}
    checked = send.validate_arguments({"order": given, "address": {"street": "Rue"}, "more": [given]})
    assert isinstance(checked["order"], Order) and isinstance(checked["address"], Address)
    assert send(**checked) == "2 jam to FR, Rue 1, 1"
    with pytest.raises(ValueError, match="count"):
        send.validate_arguments({"order": {**given, "count": 0}, "address": {"street": "x"}})
    text = msgspec.json.encode(send.parameters).decode()
    names = {one.split('"')[0] for one in text.split('"$ref":"#/$defs/')[1:]}
    assert names and names <= set(send.parameters["$defs"])  # every reference leads somewhere
    assert all("$defs" not in one for one in send.parameters["$defs"].values())


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="no option 'polcy'; did you mean 'policy'"):
        tool(polcy="ask")  # type: ignore[call-overload]


def test_a_pydantic_result_is_shown_as_json(archive: Store) -> None:
    @tool
    def give() -> Order:
        """Give."""
        return Order(item="jam", count=1, to=Country(code="FR"))

    model = Model([calls(("a", "give")), says("ok")])
    with Journal.open(archive, "s") as journal:
        Loop(model, [give]).run(journal, "go")
    assert model.asked[1].messages[-1].parts[0].text == '{"item":"jam","count":1,"to":{"code":"FR"}}'


def after_a_crash(archive: Store, one: Tool, first: Any) -> tuple[str, Model]:
    """Begin a call, do `first` in its context, die, and resume."""
    model = Model([calls(("a", one.name)), says("ok")])
    with Journal.open(archive, "s") as journal:
        journal.accept("go")
        journal.response(model.replies[0])
        journal.intend([IntendedCall("a", one.name)])
        from everturn.loop.tools import make_idempotency_key

        key = make_idempotency_key("s", journal.past.response, "a")
        first(ToolContext("a", "s", idempotency_key=key, steps=journal))
    with Journal.open(archive, "s") as journal:
        outcome = Loop(Model([says(""), says("ok")]), [one]).resume(journal)
        return journal.past.messages[2].parts[0].text + outcome.state, model


def test_a_step_that_was_done_is_not_done_again(archive: Store) -> None:
    done: list[str] = []

    def reserve() -> str:
        done.append("reserve")
        return f"number {len(done)}"

    @tool(policy="retry")
    def book(context: ToolContext) -> str:
        """Book."""
        return context.step("reserve", reserve)

    text, _ = after_a_crash(archive, book, lambda context: context.step("reserve", reserve))
    assert (text, done) == ("number 1done", ["reserve"])


def test_a_step_that_may_run_only_once_is_in_doubt_after_a_crash(archive: Store) -> None:
    with Journal.open(archive, "s") as journal:
        journal.state("step/pay", {"begun": True})
        with pytest.raises(ToolIdempotencyError):
            journal.step("pay", lambda: 1, once=True)
        journal.state("step/pay", {"value": 7})
        assert journal.step("pay", lambda: 1, once=True) == 7


def test_a_step_whose_value_is_no_json_is_refused_and_the_journal_goes_on(archive: Store) -> None:
    with Journal.open(archive, "s") as journal:
        with pytest.raises(UsageError, match=r"step odd: its value cannot be recorded as JSON: .*object"):
            journal.step("odd", object)
        assert journal.step("odd", lambda: 1) == 1


def test_a_time_to_sleep_until_has_a_time_zone(archive: Store) -> None:
    with Journal.open(archive, "s") as journal:
        journal.sleep_until(datetime(2020, 1, 1, tzinfo=UTC))
        with pytest.raises(UsageError, match="has no time zone"):
            journal.sleep_until(datetime(2020, 1, 1))  # noqa: DTZ001
        with pytest.raises(UsageError, match="'tomorrow' is no time"):
            journal.sleep_until("tomorrow")  # type: ignore[arg-type]


def test_a_sleeper_wakes_at_the_time_that_was_recorded_first(archive: Store) -> None:
    slept: list[int] = []

    @tool(policy="retry")
    def later(context: ToolContext) -> str:
        """Wait."""
        context.sleep_until(9_999_999_999_999)  # the first attempt said: at once
        return "awake"

    text, _ = after_a_crash(archive, later, lambda context: context.sleep_until(1))
    assert text == "awakedone" and slept == []


def test_an_asynchronous_step(archive: Store) -> None:
    @tool
    async def work(context: ToolContext) -> str:
        """Work."""

        async def part() -> str:
            return "part"

        return await context.astep("one", part) + await context.astep("one", part)

    model = Model([calls(("a", "work")), says("ok")])
    with Journal.open(archive, "s") as journal:
        Loop(model, [work]).run(journal, "go")
    assert model.asked[1].messages[-1].parts[0].text == "partpart"


@pytest.mark.parametrize("kind", [Order, msgspec.defstruct("Plan", [("item", str), ("count", int)]), Address])
def test_a_typed_answer_is_asked_for_checked_and_corrected_once(archive: Store, kind: Any) -> None:
    right = '{"street": "Rue"}' if kind is Address else '{"item": "jam", "count": 2, "to": {"code": "FR"}}'
    model = Model([says("No idea."), says(f"Here:\n```json\n{right}\n```")])
    with Journal.open(archive, "s") as journal:
        outcome = Loop(model, output=kind).run(journal, "go")
    assert outcome.state == "done" and isinstance(outcome.output, kind) and outcome.error is None
    assert "schema" in model.asked[0].system and "not the output asked for" in model.asked[1].messages[-1].parts[0].text
    with Journal.open(archive, "s") as journal:  # restored typed, without another request
        assert Loop(model, output=kind).resume(journal).output == outcome.output
    assert len(model.asked) == 2


def test_an_answer_that_is_wrong_twice_says_so(archive: Store) -> None:
    with Journal.open(archive, "s") as journal:
        outcome = Loop(Model([says("No."), says("Still no.")]), output=Address).run(journal, "go")
    assert outcome.output is None and "not the output asked for" in str(outcome.error)


def test_a_loop_names_what_is_no_tool_and_what_comes_twice() -> None:
    def price(item: str) -> int:
        return 9

    @tool(name="price")
    def other(item: str) -> int:
        """Tell."""
        return 8

    with pytest.raises(UsageError, match=r"price is no tool; decorate it with @tool"):
        Loop(Model([]), [price])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"two tools have the name price"):
        Loop(Model([]), [tool(price), other])


def test_an_empty_message_is_not_taken(archive: Store) -> None:
    with Journal.open(archive, "s") as journal:
        with pytest.raises(UsageError, match="the message is empty"):
            Loop(Model([])).run(journal, " ")
        assert journal.past.messages == []


async def _types(journal: Journal, outcome: Outcome, model: Model) -> None:
    """Never run: `make types` checks that good lines pass and that each mistake is found (an unused ignore is an error)."""

    @tool
    def price(item: str) -> int:
        return 9

    @tool(policy="retry")
    async def reserve(item: str, count: int = 1) -> str:
        return "reserved"

    total: int = price("jam") + price(item="honey")
    text: str = await reserve("jam", count=total)
    loop = AsyncLoop(model, [price, reserve], decide=lambda call: call.name == "pay")
    async with aclosing(loop.stream(journal, text)) as events:
        async for event in events:
            assert event.kind == "done" and outcome.state == "paused" and outcome.waiting[0].why == "approval"
    price(3)  # type: ignore[arg-type]
    price(itme="jam")  # type: ignore[call-arg]
    name: str = price("jam")  # type: ignore[assignment]
    tool(polcy="retry")  # type: ignore[call-overload]
    tool(policy="retyr")  # type: ignore[call-overload]
    AsyncLoop(model, [price], decid=name)  # type: ignore[call-arg]
    assert outcome.state == "finished"  # type: ignore[comparison-overlap]
