"""A prompt answered, and taken up again where it was left."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from everturn.errors import (
    BadAnswer,
    ConversationStateMismatch,
    ModelRefused,
    ModelUnreachable,
    OverBudget,
    ToolIdempotencyError,
    UsageError,
)
from everturn.evaluation.evaluate import Adapter, PromptResponse, RenderedPrompt, TextPrompt, evaluate
from everturn.evaluation.main_loop import Checkpoint, FileCheckpointHandler, MainLoop
from everturn.evaluation.recorder import enable_conversation_recording, settle
from everturn.evaluation.session import EvaluationSession
from everturn.evaluation.snapshot import Snapshot
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, Reply
from everturn.loop.conversation import ConversationMessage, ConversationState, StartedCall, model_message
from everturn.loop.loop import Budget
from everturn.loop.settlement import IN_DOUBT_RESULT
from everturn.loop.tools import NotDone, ReconciledResult, Tool, ToolContext, tool
from tests.llm.asking_models import backend as over_http
from tests.loop.scripted_model import Model, calls, says
from tests.model_server import ModelServer
from tests.model_wires import Call, Says

PROMPT = TextPrompt("reviews", "v1", "review it", "be exact")


@dataclass
class Tools:
    """Tools that remember what was asked of them: call, whether it is known to be a further attempt, which one."""

    ran: list[tuple[str, bool, int]] = field(default_factory=list)

    def make(self, **hints: Any) -> Tool:
        @tool(name="act", **hints)
        def act(context: ToolContext, on: str = "") -> str:
            self.ran.append((context.call_id, context.is_resume, context.attempt))
            return f"{context.call_id} done"

        return act


def recording() -> EvaluationSession:
    session = EvaluationSession()
    enable_conversation_recording(session)
    return session


def latest(session: EvaluationSession) -> ConversationState:
    state = session.query(ConversationState).latest()
    assert state is not None
    return state


def copied(session: EvaluationSession) -> EvaluationSession:
    """What another process would have: the session through its JSON."""
    other = recording()
    other.mutate().rollback(Snapshot.from_json(session.snapshot().to_json()))
    return other


def cut_short(started: tuple[str, ...] = ("a", "b"), done: tuple[str, ...] = ("a",)) -> EvaluationSession:
    """The session of a process that died while the calls a, b and c were running."""
    session = recording()
    evaluate(
        Model([calls(("a", "act"), ("b", "act"), ("c", "act")), says("ok")]),
        PROMPT,
        session=session,
        tools=[Tools().make()],
    )
    state = latest(session)
    turn = replace(
        state.turns[0],
        started=tuple(map(StartedCall, started)),
        tool_messages=tuple(one for one in state.turns[0].tool_messages if one.tool_call_id in done),
    )
    session.mutate(ConversationState).seed(replace(state, turns=(turn,)))
    return copied(session)


def resumed(session: EvaluationSession, tools: list[Tool], model: Model | None = None) -> PromptResponse:
    model = model or Model([says("?"), says("ok")])
    return evaluate(model, PROMPT, session=session, tools=tools, resume_from=latest(session))


def told(session: EvaluationSession) -> dict[str | None, str]:
    return {one.tool_call_id: one.content for one in latest(session).turns[0].tool_messages}


# fresh ----------------------------------------------------------------------------------------------------------------
def test_a_prompt_is_answered_and_everything_is_recorded() -> None:
    session, mine = recording(), Tools()
    model = Model([calls(("a", "act"), ("b", "act")), says("all well")])
    response = evaluate(model, PROMPT, session=session, tools=[mine.make()])
    state = latest(session)
    assert (response.prompt_name, response.text, response.turns) == ("reviews:v1", "all well", 2)
    assert response.state == state and response.evaluation_id == state.evaluation_id
    assert (state.prompt_ns, state.prompt_key, state.system_message.content) == ("reviews", "v1", "be exact")
    assert [one.content for one in state.turns[0].user_messages] == ["review it"]
    assert told(session) == {"a": "a done", "b": "b done"}
    assert [turn.turn_number for turn in state.turns] == [1, 2]
    payload = dict(state.turns[1].provider_payload or {})
    assert payload.pop("sent")["prefix"]["count"] == 3
    assert payload == {
        "model": "", "stop": "end",
        "usage": {"input": 100, "output": 10, "cache_read": 0, "cache_write": 0, "source": "api"},
    }  # fmt: skip
    assert (model.asked[0].system, [tool.name for tool in model.asked[0].tools]) == ("be exact", ["act"])
    assert not any(is_resume for _, is_resume, _ in mine.ran)


def test_without_recording_nothing_is_left_in_the_session() -> None:
    session = EvaluationSession()
    assert evaluate(Model([says("hello")]), PROMPT, session=session).text == "hello"
    assert session.query(ConversationState).all() == ()


def test_a_prompt_without_words_and_a_tool_that_must_wait_are_refused() -> None:
    with pytest.raises(UsageError, match="no words"):
        evaluate(Model([says("x")]), TextPrompt("n", "k", ""), session=EvaluationSession())
    with pytest.raises(UsageError, match="approval"):
        evaluate(Model([says("x")]), PROMPT, session=EvaluationSession(), tools=[Tools().make(approval=True)])


def test_every_message_is_saved_before_it_is_acted_upon() -> None:
    session = recording()
    saves: list[tuple[int, int, int]] = []
    seen: list[tuple[int, int, int]] = []

    def shape() -> tuple[int, int, int]:
        state = latest(session)
        turn = state.turns[-1] if state.turns else None
        return (len(state.turns), len(turn.started) if turn else 0, len(turn.tool_messages) if turn else 0)

    @tool
    def look() -> str:
        """What is saved while a tool runs."""
        seen.append(saves[-1])
        return "seen"

    model = Model([calls(("a", "look")), says("ok")])
    evaluate(model, PROMPT, session=session, tools=[look], saved=lambda: saves.append(shape()))
    assert seen == [(1, 1, 0)]
    assert saves == [(0, 0, 0), (1, 1, 0), (1, 1, 1), (2, 0, 0)]


def test_an_answer_that_breaks_off_and_a_budget_that_is_spent_are_errors() -> None:
    with pytest.raises(BadAnswer, match="cut off"):
        evaluate(Model([says("half", "cut")]), PROMPT, session=EvaluationSession())
    session = recording()
    model = Model([calls(("a", "act")), says("ok")])
    with pytest.raises(OverBudget):
        evaluate(model, PROMPT, session=session, tools=[Tools().make()], budget=Budget(requests=1))
    assert resumed(session, [Tools().make()], model).text == "ok"


# resumed --------------------------------------------------------------------------------------------------------------
class Unrendered:
    """A prompt that must not be rendered."""

    ns, key = "reviews", "v1"

    def render(self) -> RenderedPrompt:
        """It would have changed since."""
        raise AssertionError("rendered again")


def test_a_resumed_prompt_is_not_rendered_and_sends_what_was_said() -> None:
    first = Model([calls(("a", "act"), ("b", "act")), says("ok")])
    session = recording()
    evaluate(first, PROMPT, session=session, tools=[Tools().make()])
    state = latest(session)
    session.mutate(ConversationState).seed(replace(state, turns=state.turns[:1]))
    other, second = copied(session), Model(first.replies)
    again = evaluate(second, Unrendered(), session=other, tools=[Tools().make()], resume_from=latest(other))
    assert again.text == "ok"
    assert second.asked == [first.asked[1]]


def test_another_prompt_is_a_mismatch() -> None:
    state = latest(cut_short())
    for prompt in (TextPrompt("reviews", "v2", "x"), TextPrompt("other", "v1", "x")):
        with pytest.raises(ConversationStateMismatch, match="Cannot resume with mismatched prompt") as failure:
            evaluate(Model([]), prompt, session=EvaluationSession(), resume_from=state)
        assert "clear the checkpoint" in failure.value.resolution
    assert issubclass(ConversationStateMismatch, ValueError)


def test_a_finished_conversation_is_answered_without_asking() -> None:
    session = recording()
    evaluate(Model([says("done")]), PROMPT, session=session)
    assert resumed(copied(session), [], Model([])).text == "done"


def test_completed_calls_are_not_run_again_and_the_rest_is() -> None:
    session, mine = cut_short(started=("a",), done=("a",)), Tools()
    assert resumed(session, [mine.make()]).text == "ok"
    assert sorted(mine.ran) == [("b", False, 1), ("c", False, 1)]
    assert told(session) == {"a": "a done", "b": "b done", "c": "c done"}


@pytest.mark.parametrize("hint", ["read_only", "idempotent"])
def test_a_call_in_doubt_runs_again_when_its_tool_says_that_this_is_safe(hint: str) -> None:
    session, mine = cut_short(), Tools()
    resumed(session, [mine.make(**{hint: True})])
    assert sorted(mine.ran) == [("b", True, 2), ("c", False, 1)]


def test_a_call_in_doubt_that_may_not_run_again_is_an_error_after_all_others_ran() -> None:
    session, mine = cut_short(), Tools()
    with pytest.raises(ToolIdempotencyError, match=r"act \(b\)") as failure:
        resumed(session, [mine.make()])
    assert failure.value.calls == {"b": "act"}
    assert mine.ran == [("c", False, 1)]
    again = copied(session)
    with pytest.raises(ToolIdempotencyError):
        resumed(again, [mine.make()])
    assert mine.ran == [("c", False, 1)]
    settle(again, "b", "it was done by hand")
    assert resumed(again, [mine.make()]).text == "ok"
    assert told(again)["b"] == "it was done by hand"
    assert mine.ran == [("c", False, 1)]


def test_the_model_is_told_the_truth_about_a_call_that_failed_in_doubt() -> None:
    session, mine = cut_short(), Tools()
    resumed(session, [mine.make(policy="fail")])
    assert told(session)["b"] == IN_DOUBT_RESULT
    assert {one.tool_call_id: one.is_error for one in latest(session).turns[0].tool_messages} == {
        "a": False, "b": True, "c": False,
    }  # fmt: skip


def test_a_tool_can_find_out_or_undo() -> None:
    found = cut_short()
    resumed(found, [Tools().make(reconcile=lambda context, arguments: ReconciledResult("it is there"))])
    assert told(found)["b"] == "it is there"
    absent, mine = cut_short(), Tools()
    resumed(absent, [mine.make(reconcile=lambda context, arguments: NotDone())])
    assert ("b", True, 2) in mine.ran
    undone = cut_short()
    resumed(undone, [Tools().make(policy="compensate", compensate=lambda context, arguments: "taken back")])
    assert "undone" in told(undone)["b"] and "taken back" in told(undone)["b"]


def test_a_call_has_the_same_key_in_every_attempt() -> None:
    keys: list[str] = []

    @tool(name="act", idempotent=True)
    def act(context: ToolContext) -> str:
        """Note the key."""
        keys.append(context.idempotency_key)
        return "ok"

    session = recording()
    model = Model([calls(("a", "act")), calls(("a", "act")), says("ok")])
    evaluate(model, PROMPT, session=session, tools=[act])
    state = latest(session)
    assert len(set(keys)) == 2  # the same id in another response is another call
    last = replace(state.turns[1], tool_messages=())
    session.mutate(ConversationState).seed(replace(state, turns=(state.turns[0], last)))
    resumed(copied(session), [act], model)
    assert keys[2] == keys[1]


def test_what_the_provider_sent_goes_back_to_it_unchanged_after_a_restart() -> None:
    parts = (
        ChatPart("thinking", "hm", raw={"type": "thinking", "thinking": "hm", "signature": "c2ln"}),
        ChatPart("opaque", raw={"type": "redacted_thinking", "data": "ZW5j"}),
        ChatPart(
            "call",
            "",
            "a",
            "act",
            {"on": "x"},
            raw={"type": "tool_use", "id": "a", "name": "act", "input": {"on": "x"}},
        ),
    )
    message = ChatMessage("assistant", parts, "msg_1", "messages", {"stop_sequence": None})
    session = recording()
    with pytest.raises(OverBudget):
        evaluate(
            Model([Reply(message, "calls")]), PROMPT, session=session, tools=[Tools().make()], budget=Budget(requests=1)
        )
    model = Model([says("?"), says("ok")])
    resumed(copied(session), [Tools().make()], model)
    assert model.asked[0].messages[1] == message


@pytest.mark.parametrize("wire", ["messages", "chat"])
def test_a_real_request_is_accepted_after_a_restart(wire: str) -> None:
    script = [Says("looking", (Call("act", {"on": "x"}, "a"), Call("act", {"on": "y"}, "b"))), Says("all well")]
    session = recording()
    with ModelServer(script, strict=True) as server:
        asked = over_http(server, wire)
        with pytest.raises(OverBudget):
            evaluate(asked, PROMPT, session=session, tools=[Tools().make()], budget=Budget(requests=1))
        other = copied(session)
        response = evaluate(asked, PROMPT, session=other, tools=[Tools().make()], resume_from=latest(other))
    assert response.text == "all well"
    assert [json.dumps(one.body).count("done") for one in server.asked] == [0, 2]


# requests -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Review:
    id: str
    text: str = "review it"


class Reviews(MainLoop[Review]):
    def create_prompt(self, request: Review) -> TextPrompt:
        """What to ask."""
        return TextPrompt("reviews", "v1", request.text)


@dataclass
class Noted:
    """Checkpoints in memory, with a note of what was done."""

    kept: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def load(self, request: Review) -> Checkpoint | None:
        """See `CheckpointHandler`."""
        text = self.kept.get(request.id)
        return Checkpoint(Snapshot.from_json(text)) if text is not None else None

    def save(self, request: Review, snapshot: Snapshot) -> None:
        """See `CheckpointHandler`."""
        self.kept[request.id] = snapshot.to_json()
        self.notes.append("save")

    def clear(self, request: Review) -> None:
        """See `CheckpointHandler`."""
        self.kept.pop(request.id, None)
        self.notes.append("clear")


class Down(Model):
    """A model that cannot be reached any more after some requests."""

    def stream(self, request: ModelRequest) -> Any:
        """See `llm.Backend`."""
        if len(self.asked) >= len(self.replies):
            raise ModelUnreachable("model", "no connection")
        return super().stream(request)


def test_a_checkpoint_is_saved_at_every_step_and_cleared_at_the_end() -> None:
    noted = Noted()
    adapter = Adapter(Model([calls(("a", "act")), says("ok")]), [Tools().make()])
    assert Reviews(adapter, checkpoint_handler=noted).execute(Review("r1")).text == "ok"
    assert noted.notes == ["save"] * 4 + ["clear"]
    assert noted.kept == {}


def test_a_request_that_failed_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    handler, mine = FileCheckpointHandler(tmp_path), Tools()
    script = [calls(("a", "act")), says("ok")]
    with pytest.raises(ModelUnreachable):
        Reviews(Adapter(Down(script[:1]), [mine.make()]), checkpoint_handler=handler).execute(Review("r1"))
    model = Model(script)
    assert Reviews(Adapter(model, [mine.make()]), checkpoint_handler=handler).execute(Review("r1")).text == "ok"
    assert mine.ran == [("a", False, 1)]
    assert len(model.asked) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_loop_without_a_handler_does_the_same_without_checkpoints() -> None:
    assert Reviews(Adapter(Model([says("ok")]))).execute(Review("r1")).text == "ok"


def test_a_state_written_by_hand_can_be_resumed() -> None:
    state = ConversationState(
        "e", "reviews", "v1", ConversationMessage("system", "s"), unanswered=(ConversationMessage("user", "hello"),)
    )
    model = Model([says("hi")])
    assert evaluate(model, PROMPT, session=EvaluationSession(), resume_from=state).text == "hi"
    assert model.asked[0].messages == (model_message(state.unanswered[0]),)


@dataclass(frozen=True)
class Verdict:
    """A typed answer."""

    good: bool
    why: str = ""


def test_a_typed_answer_is_asked_for_corrected_once_and_restored_typed(tmp_path: Path) -> None:
    prompt = TextPrompt("reviews", "v2", "review it", "be exact", Verdict)
    model = Model([says("It is good."), says('{"good": true, "why": "short"}')])
    session = recording()
    response = evaluate(model, prompt, session=session)
    assert response.output == Verdict(True, "short")
    assert model.asked[0].system.startswith("be exact") and model.asked[0].system.count("schema") == 1
    other = EvaluationSession()
    again = evaluate(model, prompt, session=other, resume_from=latest(session))
    assert again.output == Verdict(True, "short") and len(model.asked) == 2
    with pytest.raises(BadAnswer, match="not the output asked for"):
        evaluate(Model([says("No."), says("Never.")]), prompt, session=recording())


def test_a_refusal_is_an_error_and_a_truncated_answer_says_so() -> None:
    with pytest.raises(ModelRefused):
        evaluate(Model([says("I will not.", "refusal")]), PROMPT, session=recording())
    assert evaluate(Model([says("and so", "length")]), PROMPT, session=recording()).is_truncated
