"""Evaluations that ask through an asker, and those whose provider binds an answer to what stood before it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from everturn.errors import ModelRefused, OverBudget, PrefixChanged, UsageError
from everturn.evaluation.evaluate import Adapter, TextPrompt, evaluate
from everturn.evaluation.recorder import enable_conversation_recording
from everturn.evaluation.session import EvaluationSession
from everturn.evaluation.snapshot import Snapshot
from everturn.llm.asker import AskBudget as Spending
from everturn.llm.asker import Asker
from everturn.llm.history_repair import NO_RECORD
from everturn.loop.conversation import ConversationMessage, ConversationState
from everturn.loop.tools import tool
from tests.llm.asking_models import backend as over_http
from tests.llm.asking_models import ticking
from tests.loop.scripted_model import Model, calls, says
from tests.model_server import ModelServer
from tests.model_wires import Call, Says

SECRET = "hunter" * 4
PROMPT = TextPrompt("reviews", "v1", f"my word is {SECRET}", "be exact")


@tool(read_only=True)
def read() -> str:
    """Read."""
    return f"the file says {SECRET}"


def hidden(text: str) -> str:
    return text.replace(SECRET, "[hidden]")


@dataclass
class Bound(Model):
    """A model whose provider binds its answers to what stood before them."""

    bound: bool = True


def recorded(model: Model) -> ConversationState:
    """An evaluation, as a snapshot of it gives it back."""
    session = EvaluationSession()
    enable_conversation_recording(session)
    evaluate(model, PROMPT, session=session, tools=[read])
    again = EvaluationSession()
    enable_conversation_recording(again)
    again.mutate().rollback(Snapshot.from_json(session.snapshot().to_json()))
    state = again.query(ConversationState).latest()
    assert state is not None
    return state


def test_with_an_asker_secrets_stay_here_and_every_request_leaves_a_receipt() -> None:
    with ModelServer([Says(calls=(Call("read"),)), Says("it does", tokens=(12, 3))], strict=True) as server:
        model = over_http(server, "chat")
        asker = Asker(model, Spending(), hidden, ticking())
        response = Adapter(model, [read], asker=asker).evaluate(PROMPT, session=EvaluationSession())
    assert response.text == "it does"
    assert all(SECRET not in asked.text and "[hidden]" in asked.text for asked in server.asked)
    assert [(one.purpose, one.stop) for one in asker.receipts] == [("evaluate", "calls"), ("evaluate", "end")]
    assert response.state.turns[0].tool_messages[0].content.endswith(SECRET)  # what is recorded is what was said


def test_the_budget_of_the_asker_holds_and_one_without_a_model_sends_nothing() -> None:
    model = Model([calls(("a", "read")), says("no")])
    once = Asker(model, Spending(requests=1), hidden, ticking())
    with pytest.raises(OverBudget):
        evaluate(model, PROMPT, session=EvaluationSession(), tools=[read], asker=once)
    assert len(model.asked) == 1
    with pytest.raises(ModelRefused, match="no model was named"):
        evaluate(model, PROMPT, session=EvaluationSession(), asker=Asker(None, Spending(), hidden, ticking()))
    with pytest.raises(UsageError, match="give the one of this backend"):
        evaluate(Model([]), PROMPT, session=EvaluationSession(), asker=once)
    assert len(model.asked) == 1


def test_what_stood_before_an_answer_is_known_to_a_snapshot() -> None:
    model = Bound([calls(("a", "read")), says("ok"), says("more")])
    state = recorded(model)
    asked = replace(state, unanswered=(ConversationMessage("user", "and?"),))
    with pytest.raises(PrefixChanged) as raised:
        evaluate(model, PROMPT, session=EvaluationSession(), resume_from=asked)
    assert (raised.value.changed, len(model.asked)) == (["tools"], 2)
    assert evaluate(model, PROMPT, session=EvaluationSession(), tools=[read], resume_from=asked).text == "more"


def test_a_state_that_says_nonsense_there_is_taken_as_one_that_says_nothing() -> None:
    model = Bound([says("ok"), says("more")])
    state = recorded(model)
    turn = replace(state.turns[0], provider_payload={"sent": {"prefix": 7}})
    asked = replace(state, turns=(turn,), unanswered=(ConversationMessage("user", "and?"),))
    assert evaluate(model, PROMPT, session=EvaluationSession(), resume_from=asked).text == "more"


def test_a_call_that_was_left_behind_in_an_earlier_turn_is_in_doubt_and_no_other_turn_gets_its_result() -> None:
    model = Model([calls(("a", "read"), ("b", "read")), says("ok"), says("more")])
    state = recorded(model)
    turn = replace(state.turns[0], tool_messages=state.turns[0].tool_messages[:1])
    asked = replace(state, turns=(turn, state.turns[1]), unanswered=(ConversationMessage("user", "and?"),))
    response = evaluate(model, PROMPT, session=EvaluationSession(), tools=[read], resume_from=asked)
    told = {part.call_id: (part.text, part.is_error) for part in model.asked[-1].messages[2].parts}
    assert told == {"a": (f"the file says {SECRET}", False), "b": (NO_RECORD, True)}
    assert [len(one.tool_messages) for one in response.state.turns] == [1, 0, 0]
