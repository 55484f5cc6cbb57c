"""The JSON behind the pages: every operation is in the document, answers fit it, and the commands say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.routing import Route

from everturn.cli import main
from everturn.web.addresses import OPERATIONS
from everturn.web.api.operation import Operation
from everturn.web.app import application
from tests.capture.history import SID
from tests.web.server import Served

BY_PATH = {one.path: one for one in OPERATIONS}
ASKED = {
    "/api/sessions": ("", "?all=1&limit=1", "?q=question&since=10y"),
    "/api/show": ("?session=@last", "?session=@last&first=2&last=2&tools=yes"),
    "/api/outline": ("?session=@last", "?session=@last&first=2&last=2"),
    "/api/record": ("?session=@last&message=2",),
    "/api/search": ("?q=question", "?q=broke&in=tool_output&limit=1", "?q=nothingofthekind"),
    "/api/lineage": ("?session=@last",),
    "/api/health": ("",),
    "/api/paths": ("?all=yes",),
    "/api/inspect": ("?tool=Bash",),
    "/api/struggles": ("",),
    "/api/stats": ("", "?period=day&by=model"),
    "/api/openapi.json": ("",),
}
CHANGED: dict[str, tuple[str, dict[str, Any]]] = {
    "/api/marks": ("?session=@last", {"star": True, "note": "x"}),
    "/api/restore": ("?session=@last", {}),
    "/api/examine": ("", {}),
    "/api/verify": ("", {}),
}
NEED_A_JOB = {"/api/jobs", "/api/restored"}
NEED_A_WATCH = {"/api/sync"}  # test_live

#: A command with --json, and the operation that answers the same.
SAME = {
    ("sessions", "--all"): "/api/sessions?all=1",
    ("show", "@last", "--tools", "--context", "--thinking"): "/api/show?session=@last&tools=yes",
    ("show", SID, "--raw-message", "2"): f"/api/record?session={SID}&message=2",
    ("search", "question"): "/api/search?q=question",
    ("paths", "--all"): "/api/paths?all=yes",
    ("inspect", "Bash"): "/api/inspect?tool=Bash",
    ("stats", "--by", "model"): "/api/stats?by=model",
}


def fits(operation: Operation, body: bytes) -> None:
    """Strict: a field too many or too few is a mistake."""
    msgspec.json.decode(body, type=operation.answer)


def test_every_operation_is_tried_here() -> None:
    assert set(BY_PATH) == {*ASKED, *CHANGED, *NEED_A_JOB, *NEED_A_WATCH}


@pytest.mark.parametrize("path", ASKED)
def test_answers_fit_their_description(full: Served, path: str) -> None:
    for query in ASKED[path]:
        answer = full.ask(path + query)
        assert answer.status == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        fits(BY_PATH[path], answer.body)


def test_changes_and_jobs_fit_their_description(full: Served) -> None:
    for path, (query, body) in CHANGED.items():
        answer = full.change(path + query, **body)
        assert answer.status == 200, answer.text
        fits(BY_PATH[path], answer.body)
        if "id" in answer.json:
            full.done(answer)
            fits(BY_PATH["/api/jobs"], full.ask(f"/api/jobs?id={answer.json['id']}").body)
    fits(BY_PATH["/api/restored"], full.ask("/api/restored?session=@last").body)


def test_what_goes_wrong_fits_its_description_too(full: Served) -> None:
    for path, status in (
        ("/api/show", 400),
        ("/api/show?session=nobody", 404),
        ("/api/show?session=number:999", 404),
        ("/api/show?session=number:x", 404),
        ("/api/search?q=", 400),
        ("/api/sessions?limit=100000", 400),
        ("/api/jobs?id=x", 404),
        ("/api/nothing", 404),
    ):
        answer = full.ask(path)
        assert (answer.status, answer.json["schema"]) == (status, "everturn/error@1"), path


def test_every_route_is_in_the_document_and_nothing_else_is(full: Served) -> None:
    document = full.ask("/api/openapi.json").json
    app: Any = application(full.site, full.port)._app
    routes = {route.path for route in app.routes if isinstance(route, Route) and route.path.startswith("/api/")}
    assert set(document["paths"]) == routes == set(BY_PATH)
    for path, methods in document["paths"].items():
        (method,) = methods
        assert method.upper() == BY_PATH[path].method
        assert methods[method]["summary"] and methods[method]["responses"]["200"]["content"]
        assert ("security" in methods[method]) == (method != "get")


def test_every_reference_of_the_document_leads_somewhere(full: Served) -> None:
    document = full.ask("/api/openapi.json").json
    names, seen = set(document["components"]["schemas"]), set[str]()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                seen.add(value["$ref"].rpartition("/")[2])
            for one in value.values():
                walk(one)
        elif isinstance(value, list):
            for one in value:
                walk(one)

    walk(document)
    assert seen == names


@pytest.mark.parametrize("words", SAME, ids=" ".join)
def test_a_command_and_its_operation_say_the_same(
    full: Served, words: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main([*words, "--json", "--db", str(tmp_path / "archive.db")]) in (0, 3)
    printed = capsys.readouterr().out.encode()
    path = SAME[words].partition("?")[0]
    fits(BY_PATH[path], printed)
    assert msgspec.json.decode(printed) == full.ask(SAME[words]).json


def test_turns_come_in_pages(full: Served) -> None:
    first = full.ask("/api/show?session=@last&first=1&last=2").json
    assert [turn["number"] for turn in first["items"]] == [1, 2]
    assert first["next"] == "3"
    rest = full.ask(f"/api/show?session=@last&first={first['next']}").json
    assert [turn["number"] for turn in rest["items"]] == [3, 4]
    assert rest["next"] is None
