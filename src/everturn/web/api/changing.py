"""What changes something, or begins work that takes a while. Each needs the token of the run (`security`)."""

from __future__ import annotations

from typing import Any

from everturn.recall.marks import put_marks
from everturn.web import schemas
from everturn.web.api.operations import SESSION, Operation, body_of, listed, session_of
from everturn.web.api.reading import told
from everturn.web.asking import Asked
from everturn.web.health import start_examining, start_verifying
from everturn.web.restoring import start_restoring


def _marks(asked: Asked) -> dict[str, Any]:
    session, wanted = session_of(asked), body_of(asked, schemas.MarksChange)
    marks = put_marks(asked.store, session, asked.now, wanted.title, wanted.star, wanted.note)
    item = schemas.MarksItem(session.native_id, session.agent, marks.title, marks.star, marks.note)
    return listed("marks", [item])


def _restore(asked: Asked) -> dict[str, Any]:
    return told(start_restoring(asked, session_of(asked), body_of(asked, schemas.Wanted)))


def _examine(asked: Asked) -> dict[str, Any]:
    body_of(asked, schemas.Nothing)
    return told(start_examining(asked.site))


def _verify(asked: Asked) -> dict[str, Any]:
    body_of(asked, schemas.Nothing)
    return told(start_verifying(asked.site))


OPERATIONS = (
    Operation(
        "/api/marks", "Put a title, a star or a note on a session.", _marks, schemas.Items[schemas.MarksItem],
        (SESSION,), "POST", schemas.MarksChange,
    ),
    Operation(
        "/api/restore", "Begin to restore a session; with a model only where one is named and confirmed.", _restore,
        schemas.Job, (SESSION,), "POST", schemas.Wanted,
    ),
    Operation(
        "/api/examine", "Prove health by writing, reading and searching.", _examine, schemas.Job, (), "POST",
        schemas.Nothing,
    ),
    Operation(
        "/api/verify", "Hash every stored byte again and compare with the live files.", _verify, schemas.Job, (),
        "POST", schemas.Nothing,
    ),
)  # fmt: skip
