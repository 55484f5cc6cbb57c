"""Restore: what happened in a session as a document, each statement with its proof, made while one watches."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from msgspec import Struct

from everturn.model.archive import Session
from everturn.restore.document import FACTS, SECTIONS
from everturn.web.job_starts import last_restore_job
from everturn.web.request import PageReply, WebRequest
from everturn.web.session_lines import title_of


class Proof(Struct, frozen=True):
    """A place a statement rests on."""

    label: str
    href: str
    quote: str = ""


class StatementLine(Struct, frozen=True):
    """A statement, whether code has confirmed it, and its proofs."""

    text: str
    verified: bool | None
    label: str
    proofs: list[Proof]
    reason: str = ""


class SectionPart(Struct, frozen=True):
    """Statements under a heading."""

    heading: str
    statements: list[StatementLine]
    cut: int = 0


def draw(asked: WebRequest) -> PageReply:
    """The document where there is one, else how to make it."""
    session, text = asked.session()
    job = last_restore_job(asked.site, session.id)
    values: dict[str, Any] = {
        "session": session,
        "title": title_of(asked, session, text),
        "job": job,
        "models": asked.site.models if asked.site.open_model is not None else (),
        "parts": [],
        "facts": [],
        "unverified": [],
        "notes": [],
        "counts": (0, 0),
    }
    if job is not None and job.state == "done":
        values |= _document_parts(session, job.result)
    return PageReply("restore", values, f"Restore {values['title']}")


def _document_parts(session: Session, made: dict[str, Any]) -> dict[str, Any]:
    parts = [_make_part(session, made, key, heading, made[key]) for key, heading in SECTIONS.items()]
    facts = [_make_part(session, made, key, heading, made["facts"].get(key, [])) for key, heading in FACTS.items()]
    doubtful = [_make_statement(session, one["text"], one, one.get("reason", "")) for one in made["unverified"]]
    shown = [one for part in (*parts, *facts) for one in part.statements]
    return {
        "parts": parts,
        "facts": [part for part in facts if part.statements or part.cut],
        "unverified": doubtful,
        "notes": made["notes"],
        "model": made["model"],
        "counts": (sum(one.verified is True for one in shown), len(shown) + len(doubtful)),
    }


def _make_part(session: Session, made: dict[str, Any], key: str, heading: str, texts: str | list[str]) -> SectionPart:
    proofs = made["evidence"].get(key, [])
    cut = made["not_shown"].get(key, 0)
    if isinstance(texts, str):  # one thing; its statements were put together
        joined = [
            {"verified": all(one["verified"] for one in proofs), "evidence": [e for p in proofs for e in p["evidence"]]}
        ]
        return SectionPart(heading, [_make_statement(session, texts, joined[0])] if proofs else [], cut)
    pairs = zip(texts, [*proofs, *[{}] * (len(texts) - len(proofs))], strict=False)
    return SectionPart(heading, [_make_statement(session, text, proof) for text, proof in pairs], cut)


def _make_statement(session: Session, text: str, proof: dict[str, Any], reason: str = "") -> StatementLine:
    proofs = [_make_proof(session, one) for one in proof.get("evidence", [])]
    return StatementLine(text, proof.get("verified"), proof.get("label", ""), proofs, reason)


def _make_proof(session: Session, one: dict[str, Any]) -> Proof:
    turn, message = one["turn"], one["message"]
    own = one["session"] == session.native_id
    where = f"/s/{session.id}" if own else f"/session/{quote(one['session'], errors='replace')}"
    return Proof(f"t{turn} #{message}", f"{where}?turn={turn}#m{message}", one.get("quote", ""))
