"""The restore page: the document of a session, each statement with its evidence, and the progress of the job."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from msgspec import Struct

from everturn.model.archive import Session
from everturn.restore.document import FACTS, SECTIONS
from everturn.web.job_starts import last_restore_job, readable_workspace
from everturn.web.request import PageReply, WebRequest
from everturn.web.session_lines import title_of


class EvidenceLink(Struct, frozen=True):
    label: str
    href: str
    quote: str = ""


class StatementLine(Struct, frozen=True):
    """A statement, whether code confirmed it, and its evidence."""

    text: str
    verified: bool | None
    check: str  # of a model's statement: what was checked
    label: str
    proofs: list[EvidenceLink]
    reason: str = ""


class SectionPart(Struct, frozen=True):
    """Statements under a heading."""

    heading: str
    statements: list[StatementLine]
    cut: int = 0


def draw(request: WebRequest) -> PageReply:
    """Draw the document, or how to make one."""
    session, text = request.session()
    job = last_restore_job(request.site, session.id)
    values: dict[str, Any] = {
        "session": session,
        "title": title_of(request, session, text),
        "job": job,
        "models": request.site.models if request.site.open_model is not None else (),
        "workspace": readable_workspace(request, session),
        "parts": [],
        "facts": [],
        "unverified": [],
        "notes": [],
        "counts": (0, 0),
    }
    if job is not None and job.state == "done":
        values |= _document_parts(session, job.result)
    return PageReply("restore", values, f"Restore {values['title']}")


def _document_parts(session: Session, document: dict[str, Any]) -> dict[str, Any]:
    parts = [_section_part(session, document, key, heading, document[key]) for key, heading in SECTIONS.items()]
    facts = [
        _section_part(session, document, key, heading, document["facts"].get(key, [])) for key, heading in FACTS.items()
    ]
    unverified = [_statement_line(session, one["text"], one, one.get("reason", "")) for one in document["unverified"]]
    shown = [one for part in (*parts, *facts) for one in part.statements]
    return {
        "parts": parts,
        "facts": [part for part in facts if part.statements or part.cut],
        "unverified": unverified,
        "notes": document["notes"],
        "model": document["model"],
        "counts": (sum(one.verified is True for one in shown), len(shown) + len(unverified)),
    }


def _section_part(
    session: Session, document: dict[str, Any], key: str, heading: str, texts: str | list[str]
) -> SectionPart:
    proofs = document["evidence"].get(key, [])
    cut = document["not_shown"].get(key, 0)
    if isinstance(texts, str):  # a single value; its statements were joined
        joined = [
            {"verified": all(one["verified"] for one in proofs), "evidence": [e for p in proofs for e in p["evidence"]]}
        ]
        return SectionPart(heading, [_statement_line(session, texts, joined[0])] if proofs else [], cut)
    pairs = zip(texts, [*proofs, *[{}] * (len(texts) - len(proofs))], strict=False)
    return SectionPart(heading, [_statement_line(session, text, proof) for text, proof in pairs], cut)


def _statement_line(session: Session, text: str, proof: dict[str, Any], reason: str = "") -> StatementLine:
    proofs = [_evidence_link(session, one) for one in proof.get("evidence", [])]
    return StatementLine(text, proof.get("verified"), proof.get("check", ""), proof.get("label", ""), proofs, reason)


def _evidence_link(session: Session, one: dict[str, Any]) -> EvidenceLink:
    turn, message = one["turn"], one["message"]
    own = one["session"] == session.native_id
    where = f"/s/{session.id}" if own else f"/session/{quote(one['session'], errors='replace')}"
    return EvidenceLink(
        f"t{turn} #{message}", f"{where}?turn={turn}&message={message}#m{message}", one.get("quote", "")
    )
