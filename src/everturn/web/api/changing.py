"""What changes something, or begins work that takes a while. Each needs the token of the run (`security`)."""

from __future__ import annotations

from typing import Any

from everturn.recall.marks import put_marks
from everturn.web import schemas
from everturn.web.api.operations import SESSION, Operation, body_of, list_frame, session_of
from everturn.web.api.reading import job_without_result
from everturn.web.asking import WebRequest
from everturn.web.health import start_examining, start_verifying
from everturn.web.restoring import start_restore_job


def _change_marks(asked: WebRequest) -> dict[str, Any]:
    session, wanted = session_of(asked), body_of(asked, schemas.MarksChangeJson)
    marks = put_marks(asked.store, session, asked.now, wanted.title, wanted.star, wanted.note)
    item = schemas.MarksJson(session.native_id, session.agent, marks.title, marks.star, marks.note)
    return list_frame("marks", [item])


def _start_restore(asked: WebRequest) -> dict[str, Any]:
    return job_without_result(start_restore_job(asked, session_of(asked), body_of(asked, schemas.RestoreOptionsJson)))


def _start_examine(asked: WebRequest) -> dict[str, Any]:
    body_of(asked, schemas.NothingJson)
    return job_without_result(start_examining(asked.site))


def _start_verify(asked: WebRequest) -> dict[str, Any]:
    body_of(asked, schemas.NothingJson)
    return job_without_result(start_verifying(asked.site))


CHANGE_OPERATIONS = (
    Operation(
        "/api/marks", "Put a title, a star or a note on a session.", _change_marks, schemas.ItemsJson[schemas.MarksJson],
        (SESSION,), "POST", schemas.MarksChangeJson,
    ),
    Operation(
        "/api/restore", "Begin to restore a session; with a model only where one is named and confirmed.", _start_restore,
        schemas.JobJson, (SESSION,), "POST", schemas.RestoreOptionsJson,
    ),
    Operation(
        "/api/examine", "Prove health by writing, reading and searching.", _start_examine, schemas.JobJson, (), "POST",
        schemas.NothingJson,
    ),
    Operation(
        "/api/verify", "Hash every stored byte again and compare with the live files.", _start_verify, schemas.JobJson, (),
        "POST", schemas.NothingJson,
    ),
)  # fmt: skip
