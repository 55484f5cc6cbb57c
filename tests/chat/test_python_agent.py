"""Agents written in Python, of every shape that frameworks have."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from everturn.chat.python_agent import load_agent, text_of
from everturn.errors import MissingPath, ModelRefused, UsageError
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest

SHAPES = {
    "a function": "def agent(text):\n    return 'said ' + text",
    "a function that gives a mapping": "def agent(text):\n    return {'content': [{'text': 'said '}, {'text': text}]}",
    "a generator": "def agent(text):\n    yield 'said '\n    yield text",
    "a coroutine": "async def agent(text):\n    return 'said ' + text",
    "a stream": "class A:\n    def stream(self, text):\n        yield {'data': 'said '}\n        yield {'delta': {'text': text}}\nagent = A()",
    "an asynchronous stream": (
        "class A:\n    async def stream_async(self, text):\n        yield {'init': True}\n        yield {'data': 'said '}\n"
        "        yield {'data': text}\nagent = A()"
    ),
    "a maker": "def create_agent():\n    return lambda text: 'said ' + text",
}


def asked(*texts: str) -> ModelRequest:
    roles = ("user", "assistant")
    return ModelRequest(tuple(ChatMessage(roles[n % 2], (ChatPart("text", text),)) for n, text in enumerate(texts)))


def written(folder: Path, source: str, name: str = "agent.py") -> str:
    (folder / name).write_text(source)
    return str(folder / name)


@pytest.mark.parametrize("shape", SHAPES)
def test_whatever_its_shape_its_words_are_the_answer(tmp_path: Path, shape: str) -> None:
    agent = load_agent(written(tmp_path, SHAPES[shape]))
    assert agent.ask(asked("hello")).text == "said hello"
    assert agent.path == str(tmp_path / "agent.py") and agent.takes_tools is False


@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        ("text", "text"), ({"data": "a"}, "a"), ({"delta": {"text": "a"}}, "a"), (SimpleNamespace(delta="a"), "a"),
        (SimpleNamespace(message=SimpleNamespace(content=[{"text": "a"}, {"text": "b"}])), "ab"), ({"event": 1}, ""),
        (None, ""), (7, ""), (b"x", ""),
    ],
)  # fmt: skip
def test_one_extractor_knows_all_events(event: Any, wanted: str) -> None:
    assert text_of(event) == wanted


def test_it_is_told_what_was_said_before_only_when_it_cannot_know(tmp_path: Path) -> None:
    agent = load_agent(written(tmp_path, "def agent(text):\n    return text"))
    first = agent.ask(asked("one", "two", "three")).text
    assert "user: one" in first and "assistant: two" in first and first.endswith("three")
    assert agent.ask(asked("one", "two", "three", "four", "five")).text == "five"


def test_running_totals_are_taken_by_differences(tmp_path: Path) -> None:
    source = (
        "class A:\n    def __init__(self):\n        self.usage = {'input': 0, 'output': 0}\n"
        "    def __call__(self, text):\n        self.usage = {'input': self.usage['input'] + 100, 'output': self.usage['output'] + 7}\n"
        "        return text\nagent = A()"
    )
    agent = load_agent(written(tmp_path, source))
    used = [agent.ask(asked("x")).usage for _ in range(3)]
    assert [(one.input, one.output) for one in used] == [(100, 7)] * 3


def test_its_name_comes_from_itself_or_its_file(tmp_path: Path) -> None:
    assert load_agent(written(tmp_path, "def agent(t): return t", "simple_sally.py")).name == "Simple Sally"
    assert load_agent(written(tmp_path, "AGENT_NAME = 'Bob'\ndef agent(t): return t", "b.py")).name == "Bob"


COUNTING = "class A:\n    said = 0\n    def __call__(self, text):\n        self.said += 1\n        return f'{self.said}: {text}'\n"


@pytest.mark.parametrize("ending", ["agent = A()", "def create_agent():\n    return A()"], ids=["an object", "a maker"])
def test_a_second_one_knows_nothing_of_the_first(tmp_path: Path, ending: str) -> None:
    agent = load_agent(written(tmp_path, COUNTING + ending))
    assert [agent.ask(asked("x")).text for _ in range(2)] == ["1: x", "2: x"]
    other = agent.another()
    assert [other.ask(asked("y")).text for _ in range(2)] == ["1: y", "1: y"]
    assert agent.ask(asked("x")).text == "3: x"


@pytest.mark.parametrize("ending", ["agent = A()", "def create_agent():\n    return A()"], ids=["an object", "a maker"])
def test_each_session_has_an_agent_of_its_own(tmp_path: Path, ending: str) -> None:
    agent = load_agent(written(tmp_path, COUNTING + ending))
    agent.enter("one", lambda **asked: "")
    assert agent.ask(asked("a")).text == "1: a" and agent.ask(asked("a", "1: a", "b")).text == "2: b"
    agent.enter("two", lambda **asked: "")
    assert agent.ask(asked("c")).text == "1: c"
    agent.enter("one", lambda **asked: "")
    told = agent.ask(asked("a", "1: a", "b", "2: b", "d")).text
    assert told.startswith("1: The conversation so far:") and "user: b" in told and told.endswith("d")


def test_an_agent_that_failed_is_replaced_by_one_that_is_told_the_history(tmp_path: Path) -> None:
    source = "class A:\n    said = 0\n    def __call__(self, text):\n        self.said += 1\n        return text + str(1 / ('bad' not in text[-3:]))\nagent = A()"
    agent = load_agent(written(tmp_path, source))
    agent.ask(asked("a"))
    with pytest.raises(ModelRefused):
        agent.ask(asked("a", "a", "bad"))
    assert "assistant: a" in agent.ask(asked("a", "a", "bad", "", "c")).text


def test_what_an_agent_takes_by_name_it_gets_with_every_message(tmp_path: Path) -> None:
    source = "def agent(text, system='', history=(), recall=None):\n    return f'{text}|{system}|{len(history)}|{recall(action=\"x\")}'"
    agent = load_agent(written(tmp_path, source))
    agent.enter("one", lambda **asked: f"recalled {asked['action']}")
    request = replace(asked("a", "b", "c"), system="Be brief.")
    assert agent.takes_recall and agent.ask(request).text == "c|Be brief.|2|recalled x"


def test_a_maker_may_take_the_recall(tmp_path: Path) -> None:
    source = "def create_agent(recall):\n    return lambda text: recall(action='search', query=text)"
    agent = load_agent(written(tmp_path, source))
    agent.enter("one", lambda **asked: f"found {asked['query']}")
    assert agent.takes_recall and agent.ask(asked("zebra")).text == "found zebra"


def test_a_file_without_an_agent_is_a_mistake_in_words(tmp_path: Path) -> None:
    with pytest.raises(MissingPath):
        load_agent(str(tmp_path / "nosuch.py"))
    for source, words in (("x = 1", "has no agent"), ("1/0", "ZeroDivisionError"), ("def (", "SyntaxError")):
        with pytest.raises(UsageError, match=words):
            load_agent(written(tmp_path, source))


def test_an_agent_that_fails_is_a_model_that_refuses(tmp_path: Path) -> None:
    agent = load_agent(written(tmp_path, "def agent(text):\n    raise ValueError('no')"))
    with pytest.raises(ModelRefused, match="the agent failed: ValueError: no"):
        agent.ask(asked("x"))
