"""What the model gets to see: all of it while it fits, and nothing that its provider would not take any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from benchmarks.durable.scene import invalid
from everturn.errors import PrefixChanged
from everturn.llm import responses
from everturn.llm.http_backend import Endpoint, HttpBackend
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, Reply
from everturn.loop import records
from everturn.loop.context import RECALLED, STATE, Sizes
from everturn.loop.journal import Journal
from everturn.loop.journal_state import JournalState
from everturn.loop.loop import Loop
from everturn.loop.model_request import RequestView, prepare_request
from everturn.loop.tools import tool
from everturn.store.contract import Store
from tests.llm.asking_models import backend as over_http
from tests.loop.scripted_model import Model, calls, says
from tests.model_server import ModelServer
from tests.model_wires import Call, Says


@tool(read_only=True)
def look(at: str = "") -> str:
    """Look."""
    return f"{at} " + "word " * 300


@dataclass
class Bound(Model):
    """A model whose provider binds its answers to what stood before them."""

    bound: bool = True


def thinks(text: str, *parts: ChatPart) -> Reply:
    """An answer with a sealed thought."""
    thought = ChatPart("thinking", "hm", raw={"type": "thinking", "thinking": "hm", "signature": f"sealed {text}"})
    return Reply(ChatMessage("assistant", (thought, ChatPart("text", text), *parts)), "calls" if parts else "end")


def texts(request: ModelRequest) -> list[str]:
    return ["".join(part.text for part in message.parts) for message in request.messages]


def written(store: Store, kind: type[records.Record]) -> list[Any]:
    lines = store.read_raw(1, 0, 1 << 24).splitlines()
    return [record for record in (records.parse_record(line, "") for line in lines) if isinstance(record, kind)]


# what fits ------------------------------------------------------------------------------------------------------------
def test_what_fits_is_sent_as_it_is_also_a_text_that_takes_most_of_the_room(archive: Store) -> None:
    model = Model([says("first"), calls(("a", "look")), says("second")], window=12_000)
    journal = Journal.open(archive)
    loop = Loop(model, [look], "be exact")
    outcome = [loop.run(journal, text) for text in ("long " * 2_500, "short")][-1]
    assert [request.messages for request in model.asked[1:]] == [
        tuple(journal.past.messages[:3]), tuple(journal.past.messages[:5]),
    ]  # fmt: skip
    assert [(request.system, request.tools, request.max_tokens) for request in model.asked] == [
        ("be exact", (look.spec,), 4096)
    ] * 3
    assert outcome.said == ()


def test_what_does_not_fit_is_left_out_from_the_oldest_on_and_no_exchange_is_parted(archive: Store) -> None:
    class Forgetful(Model):
        def stream(self, request: ModelRequest) -> Any:
            return Model.stream(
                Model([calls((f"c{len(self.asked)}", "look", {"at": "here"}))], self.asked), _bare(request)
            )

    model = Forgetful([], window=3_000)
    journal = Journal.open(archive)
    outcome = Loop(model, [look]).run(journal, "go")
    assert outcome.state == "over_budget" and outcome.requests == 100
    assert len(journal.past.messages) == 201  # nothing is lost
    last = prepare_request(journal.past, model, RequestView(), 100)
    assert 0 < len(last.request.messages) < 30
    assert last.request.messages[0].role == "user" and last.request.messages[-1] is journal.past.messages[-1]
    assert invalid(last.request.messages) == []
    assert "earlier messages of this session are not shown here" in last.request.system
    assert any("not in view" in sentence for sentence in outcome.said)


def _bare(request: ModelRequest) -> ModelRequest:
    return ModelRequest(tuple(one for one in request.messages if one.role != "assistant"))


def test_the_answer_has_its_room_too(archive: Store) -> None:
    journal = Journal.open(archive)
    for number in range(20):
        journal.accept(f"{number} " + "word " * 100)
        journal.response(says("yes"))
    journal.accept("and now?")
    few, many = (
        prepare_request(journal.past, Model([], window=4_000), RequestView(reserve=100), answer)
        for answer in (100, 1_900)
    )
    assert len(many.request.messages) < len(few.request.messages)


def test_each_message_is_counted_once_in_a_session(archive: Store) -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    journal, model = Journal.open(archive), Model([says(f"answer {n}") for n in range(9)])
    journal.past.sizes = Sizes(count)
    for number in range(9):
        Loop(model).run(journal, f"question {number}")
    said = [text for text in counted if text.startswith(("question", "answer"))]
    assert len(said) == len(set(said)) == 17  # the last answer was not sent


# what comes with it ---------------------------------------------------------------------------------------------------
def test_state_and_what_was_recalled_come_with_the_system_prompt(archive: Store) -> None:
    model = Model([says("one"), says("two")])
    view = RequestView(
        system=lambda past: f"{past.system} and kind", state=lambda past: f"messages: {len(past.messages)}",
        recalled=lambda past: "we chose blue",
    )  # fmt: skip
    journal = Journal.open(archive)
    for word in ("go", "on"):
        Loop(model, system="be exact", view=view).run(journal, word)
    assert model.asked[1].system.startswith(
        f"be exact and kind\n\n{STATE}\n\nmessages: 3\n\n{RECALLED}\n\nwe chose blue"
    )
    assert texts(model.asked[1]) == ["go", "one", "on"]
    assert [one.sent.changed for one in written(archive, records.ResponseRecord)] == [
        (),
        ("system",),
    ]  # told, not refused


def test_a_provider_that_binds_its_answers_gets_the_state_as_a_message_that_stays(store: Store) -> None:
    model, state = Bound([says("one"), calls(("a", "look")), says("two"), says("three")]), ["blue"]
    journal, view = Journal.open(store, "s1"), RequestView(state=lambda past: state[-1])
    Loop(model, [look], "be exact", view=view).run(journal, "go")
    Loop(model, [look], "be exact", view=view).run(journal, "on")  # the state is the same: it is not told again
    journal = Journal.open(store, "s1", force=True)
    state.append("red")
    Loop(model, [look], "be exact", view=view).run(journal, "again")
    blue, red = f"{STATE}\n\nblue", f"{STATE}\n\nred"
    seen = [text if not text.startswith(" word") else "…" for text in texts(model.asked[-1])]
    assert seen == ["go", blue, "one", "on", "", "…", "two", "again", red]
    for before, after in zip(model.asked, model.asked[1:], strict=False):
        assert after.messages[: len(before.messages)] == before.messages
        assert (after.system, after.tools) == (before.system, before.tools)
    assert all(not one.sent.changed for one in written(store, records.ResponseRecord))
    rows = [row for row in store.messages(1) if row.origin == "injected"]
    assert [(row.role, row.kind) for row in rows] == [("system", "context")] * 2
    assert Journal.open(store, "s1", force=True).past.history == [*model.asked[-1].messages, journal.past.messages[-1]]


def test_words_that_were_put_in_while_calls_were_open_stand_behind_their_results(archive: Store) -> None:
    journal = Journal.open(archive, "s1")
    journal.accept("go")
    journal.response(calls(("a", "look")))
    journal.inject("hurry", "hint")
    journal.result("a", "seen")
    journal.inject("please", "hint")
    wanted = ["user", "assistant", "tool", "user", "user"]
    for past in (journal.past, Journal.open(archive, "s1", force=True).past):
        assert [message.role for message in past.history] == wanted
        assert [message.parts[0].text for message in past.history[3:]] == ["hurry", "please"]


# what stood before ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("system", "tools", "changed"),
    [("be quick", [look], ["system"]), ("be exact", [], ["tools"]), ("be quick", [], ["system", "tools"])],
)
def test_a_changed_beginning_is_refused_before_anything_is_sent(
    store: Store, system: str, tools: list[Any], changed: list[str]
) -> None:
    model = Bound([calls(("a", "look")), says("one"), says("two")])
    Loop(model, [look], "be exact").run(Journal.open(store, "s1"), "go")
    journal = Journal.open(store, "s1", force=True)
    with pytest.raises(PrefixChanged, match=", ".join(changed)) as raised:
        Loop(model, tools, system).run(journal, "on")
    assert (raised.value.changed, len(model.asked)) == (changed, 2)
    journal.setup("be exact", [look.spec])
    assert Loop(model, [look], "be exact").resume(journal).text == "two"
    assert texts(model.asked[-1])[-1] == "on"  # it had been taken


def test_messages_that_are_not_the_same_are_refused_too(archive: Store) -> None:
    model = Model([says("one"), says("two")])
    view, journal = RequestView(bound=True), Journal.open(archive)
    Loop(model, view=view).run(journal, "go")
    with pytest.raises(PrefixChanged) as raised:
        Loop(model, view=view, assemble=lambda past: ModelRequest((past.messages[-1],))).run(journal, "on")
    assert (raised.value.changed, len(model.asked)) == (["messages"], 1)


def test_a_bound_session_is_never_cut_but_what_is_too_long_is_said(archive: Store) -> None:
    model, journal = Bound([says("ok"), says("well")], window=2_000), Journal.open(archive)
    Loop(model).run(journal, "word " * 2_000)
    outcome = Loop(model).run(journal, "on")
    assert len(model.asked[-1].messages) == 3
    assert "tokens too long, and nothing may be left out" in outcome.said[0]


def test_sealed_thoughts_go_back_until_something_before_them_has_changed(archive: Store) -> None:
    call = ChatPart("call", call_id="a", name="look", arguments={})
    model = Model([thinks("one"), thinks("two", call), thinks("three"), thinks("four")])
    journal = Journal.open(archive)
    for _ in range(2):
        Loop(model, [look], "be exact").run(journal, "go")
    assert [_thoughts(request) for request in model.asked] == [0, 1, 2]
    Loop(model, [look], "be quick").run(journal, "on")
    assert _thoughts(model.asked[-1]) == 0
    assert texts(model.asked[-1])[1:4:2] == ["one", "two"]
    assert sum(part.kind == "thinking" for one in journal.past.messages for part in one.parts) == 4


def _thoughts(request: ModelRequest) -> int:
    return sum(part.kind == "thinking" for message in request.messages for part in message.parts)


@pytest.mark.parametrize("wire", ["messages", "chat", "responses"])
def test_what_is_compared_is_what_goes_over_the_wire(archive: Store, wire: str) -> None:
    script = [Says("let me see", (Call("look", {"at": "x"}),), thinking="hm"), Says("one"), Says("two")]
    with ModelServer(script, strict=True) as server:
        model = over_http(server, wire) if wire != "responses" else _over_responses(server)
        journal, view = Journal.open(archive), RequestView(bound=True)
        for word in ("go", "on"):
            outcome = Loop(model, [look], "be exact", view=view).run(journal, word)
        with pytest.raises(PrefixChanged):
            Loop(model, [], "be exact", view=view).run(journal, "more")
    assert (outcome.text, len(server.asked), server.surplus) == ("two", 3, 0)
    sent = [one.sent for one in written(archive, records.ResponseRecord)]
    assert {one.wire for one in sent} == {model.wire} and [one.changed for one in sent] == [()] * 3
    assert [one.prefix.count for one in sent] == sorted(one.prefix.count for one in sent)


def _over_responses(server: ModelServer) -> HttpBackend:
    return HttpBackend("test", "scripted", responses, Endpoint(server.base))


def test_another_provider_is_not_held_to_what_the_first_one_was_sent(archive: Store) -> None:
    with ModelServer([Says("one")]) as server:
        journal = Journal.open(archive)
        Loop(over_http(server, "messages"), view=RequestView(bound=True)).run(journal, "go")
    with ModelServer([Says("two")]) as server:
        assert Loop(over_http(server, "chat"), view=RequestView(bound=True)).run(journal, "on").text == "two"


def test_a_history_that_providers_refuse_is_mended_in_what_is_sent_only(archive: Store) -> None:
    """An answer that was cut within a thought: without mending, the session could never be gone on with."""
    thought = ChatPart("thinking", "hm", raw={"type": "thinking", "thinking": "hm", "signature": "s"})
    half = Reply(ChatMessage("assistant", (thought,), wire="anthropic_messages", raw={"type": "message"}), "length")
    journal = Journal.open(archive)
    journal.accept("go")
    journal.response(half)
    with ModelServer([Says("ok")], strict=True) as server:
        outcome = Loop(over_http(server, "messages")).run(journal, "on")
    assert outcome.text == "ok" and len(outcome.said) == 1 and "thinking" in outcome.said[0]
    assert [message.role for message in journal.past.messages] == ["user", "assistant", "user", "assistant"]


def test_the_request_of_an_empty_session_can_be_made() -> None:
    made = prepare_request(JournalState("s1"), Model([]), RequestView(), 100)
    assert (made.request.messages, made.said) == ((), ())
