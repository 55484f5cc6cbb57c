"""The evidence loop: tools by call and in brackets, results in the order asked, and an end in every case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everturn.llm.asker import AskBudget
from everturn.recall.evidence import EvidenceSearchTools
from everturn.restore.evidence_search import Brief, EvidenceFinding, EvidenceFindings, findings_text, search_evidence
from everturn.restore.prompts import own_prompts
from tests.model_server import Asked, ModelServer, bad_json, refuses
from tests.model_wires import Call, Says
from tests.restore.shop import asker, prompt_of

LOG = "\n".join(("alpha one", "beta two", "gamma three", "delta four"))
WAYS = pytest.mark.parametrize("native", [True, False], ids=["calls", "brackets"])


Wanted = tuple[str, dict[str, Any]]


def search(pattern: str, native: bool) -> Says:
    return ask((("search_log", {"pattern": pattern}),), native)


def ask(wanted: tuple[Wanted, ...], native: bool) -> Says:
    """A round of requests in either way."""
    if native:
        return Says(calls=tuple(Call(name, given) for name, given in wanted))
    return Says("I look.\n" + "\n".join(bracketed(name, given) for name, given in wanted))


def bracketed(name: str, given: dict[str, Any]) -> str:
    lines = f" ({given['start_line']}-{given['end_line']})" if "start_line" in given else ""
    values = " ".join(f'"{value}"' for key, value in given.items() if not key.endswith("_line"))
    return f"[{name.upper()}: {values}{lines}]" if values else f"[{name.upper()}]"


def complete(native: bool) -> Says:
    return ask((("complete_evidence_search", {}),), native)


def run(script: Any, native: bool, wire: str = "messages", **more: Any) -> tuple[EvidenceFindings, ModelServer]:
    tokens, budget = more.pop("tokens", 10_000), more.pop("budget", None)
    tools = EvidenceSearchTools(more.pop("log", LOG), more.pop("workspace", ""), **more)
    brief = Brief(own_prompts().evidence, {"summaries": "SUMMARIES-HERE", "state": "STATE-HERE"}, tokens)
    with ModelServer(script, strict=True) as server:
        found = search_evidence(asker(server, wire, budget), tools, brief, native)
    return found, server


def results(asked: Asked) -> list[str]:
    """Return the tool results of a request, in order."""
    found = []
    for message in asked.body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "tool_result":
                found.append(json.dumps(block["content"]))
    return found


@WAYS
@pytest.mark.parametrize("wire", ["messages", "chat"])
def test_what_is_asked_for_is_looked_up_until_the_model_says_it_is_enough(native: bool, wire: str) -> None:
    found, server = run([search("beta", native), search("delta", native), complete(native)], native, wire)
    assert [("2: beta two" in one.result, "4: delta four" in one.result) for one in found.findings] == [
        (True, False), (False, True),
    ]  # fmt: skip
    assert (found.rounds, found.is_complete, found.notes) == (3, True, ())
    assert len(server.asked) == 3
    for asked in server.asked:  # a model has no memory: task, summaries and state go with every request
        assert all(word in asked.text for word in ("SUMMARIES-HERE", "STATE-HERE", "You are preparing the summary"))
    assert "beta two" in server.asked[2].text and "delta four" in server.asked[2].text
    assert bool(server.asked[0].body.get("tools")) is native


@WAYS
def test_results_come_in_the_order_asked_not_by_kind(native: bool, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 31)))
    wanted: tuple[Wanted, ...] = (
        ("read_file", {"file_path": "a.txt", "start_line": 10, "end_line": 12}),
        ("search_log", {"pattern": "gamma"}),
        ("list_artifacts", {}),
        ("search_file", {"file_path": "a.txt", "pattern": "line 30"}),
        ("search_log", {"pattern": "alpha"}),
    )
    found, server = run([ask(wanted, native), complete(native)], native, workspace=str(tmp_path))
    starts = [one.result.split(":")[0] for one in found.findings]
    assert starts == ["read_file", "search_log", "list_artifacts", "search_file", "search_log"]
    assert "10: line 10\n11: line 11\n12: line 12\n" in found.findings[0].result
    assert "line 13" not in found.findings[0].result
    if native:
        sent = results(server.asked[1])
        assert [name in one for name, one in zip(starts, sent, strict=True)] == [True] * 5
        assert "3: gamma three" in sent[1] and "1: alpha one" in sent[4]


@WAYS
def test_requests_behind_the_end_are_not_run(native: bool) -> None:
    wanted: tuple[Wanted, ...] = (
        ("search_log", {"pattern": "beta"}),
        ("complete_evidence_search", {}),
        ("search_log", {"pattern": "alpha"}),
    )
    found, server = run([ask(wanted, native)], native)
    assert len(found.findings) == 1 and found.is_complete and len(server.asked) == 1


@WAYS
def test_at_the_limit_the_search_ends_with_what_was_found(native: bool) -> None:
    def script(asked: Asked) -> Says:
        return search(f"line {asked.number}|beta", native)

    found, server = run(script, native, max_searches=3)
    assert len(server.asked) == 3 and len(found.findings) == 3 and not found.is_complete
    assert found.notes == ("the evidence search was stopped after 3 rounds; its findings were used",)
    assert "Rounds left: 3" in server.asked[0].text


@WAYS
def test_a_model_that_asks_for_the_same_again_and_again_is_stopped(native: bool) -> None:
    found, server = run(lambda asked: search("beta", native), native)
    assert len(server.asked) == 3 and len(found.findings) == 1
    assert "repeated requests" in found.notes[0]
    if native:
        assert "You asked for exactly this before" in server.asked[2].text


@WAYS
def test_a_model_that_asks_for_nothing_is_done(native: bool) -> None:
    found, server = run([Says("I know enough, thank you.")], native)
    assert found.findings == () and len(server.asked) == 1
    assert found.notes == ("the model stopped the evidence search without completing it",)


@WAYS
def test_mistakes_are_told_to_the_model_and_the_search_goes_on(native: bool) -> None:
    wanted: tuple[Wanted, ...] = (
        ("search_log", {"pattern": "x" * 201}),
        ("search_log", {"pattern": "("}),
        ("read_file", {"file_path": "../../etc/passwd"}),
        ("search_log", {"pattern": "beta"}),
    )
    found, server = run([ask(wanted, native), complete(native)], native)
    assert len(found.findings) == 4 and found.is_complete
    assert "at most 200" in found.findings[0].result and "beta two" in found.findings[3].result
    assert "root:" not in found.findings[2].result
    assert "at most 200" in server.asked[1].text


def test_a_request_of_the_wrong_form_is_answered_with_the_right_one() -> None:
    found, _ = run([Says("[SEARCH_LOG: beta]"), complete(False)], False)
    assert 'write [SEARCH_LOG: "pattern"]' in found.findings[0].result
    found, _ = run([Says(calls=(Call("search_log", {"wrong": 1}), Call("no_such_tool", {}))), complete(True)], True)
    assert "there is no argument 'wrong'" in found.findings[0].result and "there is no tool" in found.findings[1].result
    found, _ = run([Says(calls=(Call("search_log", "{not json"),)), complete(True)], True)
    assert "not valid JSON" in found.findings[0].result


def test_a_model_with_tools_that_writes_brackets_is_understood() -> None:
    found, server = run([Says('[SEARCH_LOG: "beta"]'), complete(True)], True)
    assert "beta two" in found.findings[0].result and found.is_complete
    assert "beta two" in server.asked[1].text


def test_what_a_model_thought_is_no_request() -> None:
    found, _ = run([Says('<think>[SEARCH_LOG: "alpha"]</think>[SEARCH_LOG: "beta"]'), complete(False)], False)
    assert ["beta two" in one.result for one in found.findings] == [True]


@WAYS
def test_more_requests_than_are_run_at_once_are_told(native: bool) -> None:
    wanted = tuple(("search_log", {"pattern": f"p{n}"}) for n in range(12))
    found, server = run([ask(wanted, native), complete(native)], native)
    assert len(found.findings) == 8
    if native:
        assert sum("at most 8" in one for one in results(server.asked[1])) == 4


@WAYS
def test_a_model_that_cannot_be_asked_ends_the_search_with_what_there_is(native: bool) -> None:
    found, _ = run([search("beta", native), refuses(400)], native)
    assert len(found.findings) == 1 and "ended early" in found.notes[0]
    found, _ = run([search("beta", native), bad_json()], native)
    assert len(found.findings) == 1 and "ended early" in found.notes[0]
    found, server = run([search("beta", native)], native, budget=AskBudget(requests=1))
    assert len(found.findings) == 1 and "limit of 1 request" in found.notes[0] and len(server.asked) == 1


@WAYS
def test_evidence_has_a_room_and_what_has_none_is_not_looked_up(native: bool) -> None:
    def script(asked: Asked) -> Says:
        return search(f"word{asked.number}|walrus", native)

    log = "\n".join("walrus " + "word " * 60 for _ in range(400))
    found, server = run(script, native, log=log, tokens=4000)
    assert not found.is_complete and "no space left" in found.notes[0]
    assert len(server.asked) <= 4


def test_a_tool_that_breaks_is_a_finding_like_any_other() -> None:
    class Broken(EvidenceSearchTools):
        def search_log(self, pattern: str, context_lines: int = 3) -> str:
            raise RuntimeError("disk on fire")

    brief = Brief(own_prompts().evidence, {"summaries": "", "state": ""}, 4000)
    with ModelServer([search("beta", True), complete(True)]) as server:
        found = search_evidence(asker(server), Broken(LOG), brief, True)
    assert "The tool failed (RuntimeError)" in found.findings[0].result and found.is_complete


def test_without_rounds_nothing_is_asked() -> None:
    found, server = run([], True, max_searches=0)
    assert found == EvidenceFindings() and server.asked == []


def test_all_findings_are_told_and_what_is_cut_is_said() -> None:
    found = EvidenceFindings(tuple(EvidenceFinding(f"request {n}", f"result {n} " + "word " * 50) for n in range(10)))
    whole = findings_text(found, 10_000)
    assert [f"request {n}\nresult {n} " in whole for n in range(10)] == [True] * 10
    assert whole.index("request 0") < whole.index("request 9")
    cut = findings_text(found, 300)
    assert "request 9" in cut and "request 0" not in cut and "earlier findings omitted" in cut
    assert findings_text(EvidenceFindings(), 100) == "(none)"


def test_what_is_found_stands_in_its_own_frame() -> None:
    found, server = run([search("beta", False), complete(False)], False)
    assert "quoted from the archive, mark" in found.findings[0].result
    assert prompt_of(server.asked[1]).count(found.findings[0].result) == 1
