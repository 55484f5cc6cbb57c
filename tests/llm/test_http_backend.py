"""Models over real HTTP: answers, and every way they fail."""

from __future__ import annotations

import logging
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from everturn.errors import BadAnswer, BadConfig, ModelBusy, ModelError, ModelRefused, ModelUnreachable
from everturn.llm import http_backend
from everturn.llm.http_answer import retry_pause
from everturn.llm.http_backend import Endpoint, HttpBackend, Patience, model_url
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, ToolSpec
from tests.llm.asking_models import KEY, QUICK, WIRES, asks, backend, pauses_of
from tests.model_server import (
    Answer,
    ModelServer,
    bad_json,
    broken,
    busy,
    empty,
    garbage,
    overloaded,
    refuses,
    web_page,
)
from tests.model_wires import Call, Says
from tests.waiting import PATIENCE, wait_until

BOTH = pytest.mark.parametrize("wire", ["messages", "chat"])
HOW = pytest.mark.parametrize("is_streamed", [True, False])


@BOTH
@HOW
def test_an_answer_comes_whole(wire: str, is_streamed: bool) -> None:
    with ModelServer([Says("Hello there", tokens=(12, 3))]) as server:
        reply = backend(server, wire, is_streamed=is_streamed).ask(asks("hi", system="Be kind."))
    assert (reply.text, reply.stop, reply.tries, reply.model) == ("Hello there", "end", 1, "scripted")
    assert (reply.usage.input, reply.usage.output, reply.usage.source) == (12, 3, "api")
    asked = server.asked[0]
    assert asked.is_streamed == is_streamed and "Be kind." in asked.text
    assert KEY in (asked.headers.get("x-api-key", ""), asked.headers.get("authorization", "").removeprefix("Bearer "))


@BOTH
def test_an_answer_comes_piece_by_piece_and_the_last_piece_has_it_all(wire: str) -> None:
    says = Says("one two three", (Call("read", {"path": "a"}), Call("read", {"path": "b"})), thinking="hm hm")
    with ModelServer([says]) as server:
        deltas = list(backend(server, wire).stream(asks()))
    assert "".join(delta.text for delta in deltas if delta.kind == "text") == "one two three"
    assert "".join(delta.text for delta in deltas if delta.kind == "thinking") == "hm hm"
    assert sum(delta.kind == "text" for delta in deltas) == 3
    end = deltas[-1].reply
    assert end is not None and [call.arguments for call in end.calls] == [{"path": "a"}, {"path": "b"}]
    assert [delta.reply for delta in deltas[:-1]] == [None] * (len(deltas) - 1)


@BOTH
def test_a_conversation_with_tools_keeps_the_rules_of_the_provider(wire: str) -> None:
    script = [Says("Let me.", (Call("add", {"a": 1}), Call("add", {"a": 2})), thinking="so"), Says("Three.")]
    tools = (ToolSpec("add", "adds", {"type": "object"}),)
    with ModelServer(script, strict=True) as server:
        model = backend(server, wire)
        first = model.ask(asks("add", tools=tools))
        results = ChatMessage("tool", tuple(ChatPart("result", "3", call.call_id, call.name) for call in first.calls))
        history = (*asks("add").messages, first.message, results)
        assert model.ask(ModelRequest(history, tools=tools)).text == "Three."
    if wire == "messages":
        assert server.asked[1].body["messages"][1]["content"][0]["signature"] == "sig1=="


@BOTH
@HOW
@pytest.mark.parametrize("fault", [busy(), overloaded(), broken(), broken(502), broken(503), Answer(hang_up=True)])
def test_what_passes_by_itself_is_asked_again(wire: str, is_streamed: bool, fault: Answer) -> None:
    with ModelServer([fault, fault, Says("there")]) as server:
        model = backend(server, wire, is_streamed=is_streamed)
        reply = model.ask(asks())
    assert (reply.text, reply.tries, len(server.asked)) == ("there", 3, 3)
    first, second = pauses_of(model)
    assert 0.25 <= first <= 0.5 <= second <= 1.0


@BOTH
@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (busy(), ModelBusy, "busy (429): rate_limit_error, Too many requests"),
        (overloaded(), ModelBusy, "busy (529)"),
        (broken(), ModelUnreachable, "status 500"),
        (Answer(hang_up=True), ModelUnreachable, "connection was lost"),
        (empty("text/event-stream"), BadAnswer, "empty"),
    ],
)
def test_what_does_not_pass_is_told_after_the_last_try(wire: str, fault: Answer, error: Any, words: str) -> None:
    with ModelServer([fault] * 3) as server, pytest.raises(error) as caught:
        backend(server, wire).ask(asks())
    assert words in str(caught.value) and caught.value.tries == 3 == len(server.asked)


@BOTH
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (refuses(400), ModelRefused),
        (refuses(401, "authentication_error"), ModelRefused),
        (refuses(404, "model_not_found"), ModelRefused),
        (refuses(413), ModelRefused),
        (refuses(429, "insufficient_quota"), ModelRefused),
        (Answer(302, headers={"location": "http://127.0.0.1:9/"}), ModelRefused),
        (bad_json(), BadAnswer),
        (garbage(), BadAnswer),
        (empty(), BadAnswer),
        (web_page(), BadAnswer),
        (Answer(body=b"[]"), BadAnswer),
        (Answer(body=b"{}"), BadAnswer),
        (Answer(body=b"{}", headers={"content-encoding": "gzip"}), BadAnswer),
        (garbage(b'data: {"type": "content_block_delta"}\n\n'), BadAnswer),
    ],
)
def test_what_will_not_pass_is_told_at_once(wire: str, fault: Answer, error: type[ModelError]) -> None:
    with ModelServer([fault, Says("never")]) as server, pytest.raises(error) as caught:
        backend(server, wire).ask(asks())
    assert len(server.asked) == 1 and caught.value.tries == 1


def test_the_server_says_when_to_come_back() -> None:
    with ModelServer([busy(7), busy("0.25"), Says("there")]) as server:
        model = backend(server)
        assert model.ask(asks()).text == "there"
    assert pauses_of(model) == [7, 0.25]


def test_a_server_that_wants_too_much_time_is_not_waited_for() -> None:
    with ModelServer([busy(3600), Says("never")]) as server, pytest.raises(ModelBusy) as caught:
        backend(server).ask(asks())
    assert len(server.asked) == 1 and caught.value.tries == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:28:30 GMT"}, 0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_the_time_to_come_back_is_read_however_it_is_written(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_pause(headers) == seconds


@BOTH
def test_a_stream_that_breaks_off_ends_with_what_came(wire: str) -> None:
    cut = Says("one two three four", cut_after=6)
    with ModelServer([cut]) as server:
        deltas = list(backend(server, wire).stream(asks()))
    reply = deltas[-1].reply
    assert reply is not None and reply.stop == "cut" and len(server.asked) == 1
    assert reply.text == "".join(delta.text for delta in deltas if delta.kind == "text")
    assert "one two three four".startswith(reply.text) and reply.text


@BOTH
def test_a_whole_reply_that_broke_off_is_asked_for_again(wire: str) -> None:
    with ModelServer([Says("one two three four", cut_after=6), Says("all of it")]) as server:
        reply = backend(server, wire).ask(asks())
    assert (reply.text, reply.stop, reply.tries) == ("all of it", "end", 2)
    if wire == "messages":  # which says at the start what it read
        assert reply.usage.input == 20


@BOTH
def test_a_whole_reply_that_always_breaks_off_is_given_cut(wire: str) -> None:
    with ModelServer([Says("one two three four", cut_after=6)] * 3) as server:
        reply = backend(server, wire).ask(asks())
    assert (reply.stop, reply.tries, len(server.asked)) == ("cut", 3, 3) and reply.text


def test_a_reply_that_broke_off_when_time_is_over_is_given_cut() -> None:
    with ModelServer([Says("one two three four", cut_after=6)]) as server:
        reply = backend(server, patience=Patience(total=60, longest_pause=600, tries=3, pause=600)).ask(asks())
    assert (reply.stop, reply.tries, len(server.asked)) == ("cut", 1, 1)


@BOTH
@HOW
def test_an_answer_cut_before_its_first_word_is_asked_for_again(wire: str, is_streamed: bool) -> None:
    with ModelServer([Says("never", cut_after=1), Says("there")]) as server:
        deltas = list(backend(server, wire, is_streamed=is_streamed).stream(asks()))
    assert "".join(delta.text for delta in deltas) == "there"
    assert deltas[-1].reply is not None and deltas[-1].reply.tries == 2


def test_a_failure_told_within_the_stream_passes_or_not() -> None:
    start = b'data: {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 4}}}\n\n'
    over = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'
    wrong = b'event: error\ndata: {"type": "error", "error": {"type": "invalid_request_error", "message": "No"}}\n\n'
    with ModelServer([garbage(start + over), Says("there"), garbage(start + wrong)]) as server:
        model = backend(server)
        assert model.ask(asks()).tries == 2
        with pytest.raises(ModelRefused, match="invalid_request_error, No"):
            model.ask(asks())


def test_a_failure_after_the_first_words_cuts_the_answer() -> None:
    begin = (
        b'data: {"type": "message_start", "message": {"id": "m"}}\n\n'
        b'data: {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}\n\n'
        b'data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Well"}}\n\n'
    )
    over = b'data: {"type": "error", "error": {"type": "overloaded_error"}}\n\n'
    with ModelServer([garbage(begin + over)]) as server:
        deltas = list(backend(server).stream(asks()))
    assert deltas[-1].reply is not None and (deltas[-1].reply.stop, deltas[-1].reply.text) == ("cut", "Well")


@BOTH
def test_a_refusal_is_an_answer(wire: str) -> None:
    with ModelServer([Says("I cannot help with that.", stop="refusal")]) as server:
        reply = backend(server, wire).ask(asks())
    assert (reply.stop, reply.text) == ("refusal", "I cannot help with that.")


@BOTH
def test_an_answer_without_words_is_an_answer(wire: str) -> None:
    with ModelServer([Says()]) as server:
        reply = backend(server, wire, is_streamed=False).ask(asks())
    assert (reply.text, reply.stop, reply.calls) == ("", "end", ())


@BOTH
def test_a_server_that_answers_too_late_is_not_waited_for(wire: str) -> None:
    quick = Patience(connect=5, read=0.2, total=20, tries=3)
    with ModelServer([Says("late", wait=PATIENCE)]) as server:
        with pytest.raises(ModelUnreachable, match="timed out") as caught:
            backend(server, wire, quick).ask(asks())
        wait_until(lambda: server.asked)
    # What it may be working on is not asked for twice.
    assert (caught.value.tries, len(server.asked)) == (1, 1)


@BOTH
def test_an_answer_that_drips_for_ever_ends_when_its_time_is_over(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = [0.0]  # that pass with the first words
    monkeypatch.setattr(http_backend, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + hours[0]))
    deltas = []
    with ModelServer([Says("word " * 500, drip=0.05)]) as server:
        for delta in backend(server, wire, Patience(read=PATIENCE, total=PATIENCE, tries=1)).stream(asks()):
            deltas.append(delta)
            hours[0] = 3600.0 if delta.text else hours[0]
    reply = deltas[-1].reply
    assert reply is not None and reply.stop == "cut" and 0 < len(reply.text) < 500


def test_an_answer_that_is_too_long_is_not_read_to_its_end() -> None:
    with ModelServer([Says("word " * 500)]) as server, pytest.raises(BadAnswer, match="longer than 2,000 bytes"):
        backend(server, most_bytes=2000).ask(asks())


def test_closing_the_iterator_stops_the_request() -> None:
    with ModelServer([Says("word " * 500, drip=0.02)]) as server:
        stream = backend(server).stream(asks())
        next(stream)
        stream.close()
    assert len(server.asked) == 1


def test_json_is_read_where_a_stream_was_asked_for() -> None:
    with ModelServer([{"content": [{"type": "text", "text": "whole"}], "stop_reason": "end_turn"}]) as server:
        deltas = list(backend(server).stream(asks()))
    assert [delta.text for delta in deltas] == ["whole", ""]


def test_nobody_at_the_address_is_told() -> None:
    with ModelServer() as server:
        pass
    model = HttpBackend("test", "m", WIRES["chat"], Endpoint(server.base, QUICK), sleep=lambda _: None)
    with pytest.raises(ModelUnreachable, match="cannot connect") as caught:
        model.ask(asks())
    assert caught.value.tries == 3


def test_a_redirect_is_not_followed() -> None:
    with ModelServer([Says("stolen")]) as elsewhere:
        redirect = Answer(307, headers={"location": f"{elsewhere.base}/messages"})
        with ModelServer([redirect]) as server, pytest.raises(ModelRefused, match="not followed"):
            backend(server).ask(asks())
    assert elsewhere.asked == []


def test_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with ModelServer([Says("direct")]) as server:
        assert backend(server).ask(asks()).text == "direct"


def test_a_configured_proxy_is_used() -> None:
    with ModelServer([Says("through")]) as proxy, ModelServer() as server:
        assert backend(server, proxy=proxy.root).ask(asks()).text == "through"
    assert server.asked == [] and proxy.asked[0].path.startswith(server.root)


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://host/v1", "https://host/v1/messages"),
        ("https://host", "https://host/v1/messages"),
        ("https://host/v1/", "https://host/v1/messages"),
        ("https://host/proxy?api-version=3", "https://host/proxy/v1/messages?api-version=3"),
        ("http://localhost:1", "http://localhost:1/v1/messages"),
        ("http://127.3.2.1:1/v1", "http://127.3.2.1:1/v1/messages"),
        ("http://[::1]:1/v1", "http://[::1]:1/v1/messages"),
    ],
)
def test_the_address_is_put_together(base: str, url: str) -> None:
    assert model_url("x", base, "/v1/messages") == url


@pytest.mark.parametrize(
    "base",
    [
        "http://example.com/v1",
        "http://localhost.example.com",
        "http://10.0.0.1",
        "ftp://host",
        "host/v1",
        "",
        "https://user:pass@host/v1",
        "https://host:port",
        "http://[::1",
    ],
)
def test_an_address_that_would_show_the_key_is_refused(base: str) -> None:
    with pytest.raises(BadConfig, match=r"models\.x\.base_url") as caught:
        model_url("x", base, "/v1/messages")
    assert "pass@" not in str(caught.value)


@BOTH
def test_the_key_is_in_no_log_and_no_error(wire: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    says = f"Incorrect API key provided: {KEY[:14]}***{KEY[-4:]}"
    faults = [
        refuses(401, "invalid_api_key", says),
        refuses(400, KEY, KEY),
        broken(),
        bad_json(),
        garbage(),
        web_page(),
    ]
    told: list[str] = []
    for fault in faults:
        with ModelServer([fault] * 3) as server, pytest.raises(ModelError) as caught:
            backend(server, wire).ask(asks())
        told += [str(caught.value), repr(caught.value), repr(caught.value.__cause__), repr(caught.value.__context__)]
    told += [record.getMessage() for record in caplog.records]
    pieces = [KEY[at : at + 8] for at in range(len(KEY) - 7)]
    assert caplog.records and not [text for text in told for piece in pieces if piece in text]
    assert any("invalid_api_key" in text for text in told)


def test_a_key_that_cannot_be_sent_is_not_shown() -> None:
    with ModelServer() as server:
        model = HttpBackend("test", "m", WIRES["chat"], Endpoint(server.base, QUICK), lambda: "sk-ä\nb")
        with pytest.raises(ModelRefused, match="cannot be sent") as caught:
            model.ask(asks())
    assert "sk-" not in str(caught.value) and server.asked == []


def test_without_the_package_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with ModelServer() as server, pytest.raises(ModelUnreachable, match=r"everturn\[models\]"):
        backend(server).ask(asks())


def test_the_limit_of_the_model_holds() -> None:
    with ModelServer([Says("a"), Says("b")]) as server:
        model = backend(server, max_tokens=50, extra={"top_k": 3}, headers={"x-team": "a"})
        model.ask(asks(max_tokens=500))
        model.ask(asks(max_tokens=5, model="other"))
    assert [one.body["max_tokens"] for one in server.asked] == [50, 5]
    assert [one.body["model"] for one in server.asked] == ["scripted", "other"]
    assert server.asked[0].body["top_k"] == 3 and server.asked[0].headers["x-team"] == "a"
