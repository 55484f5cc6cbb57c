"""What `everturn restore` writes: a document or turns, as Markdown or JSON, made with or without a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from everturn import clock
from everturn.cli import frame

if TYPE_CHECKING:
    from everturn.llm.asker import Asker
    from everturn.model.archive import Session
    from everturn.restore.document import Document
    from everturn.restore.job import RestoreTarget
    from everturn.restore.summaries import RestoreOptions
    from everturn.restore.turns import TurnReport
    from everturn.store.contract import Store

Wanted = dict[str, Any]  # the options of the command
Made = TypeVar("Made")


def write_restoration(cx: frame.CommandContext, found: RestoreTarget, wanted: Wanted) -> tuple[str, bool]:
    """The text that was asked for, and whether all of it could be made as asked."""
    if wanted["dump_turns"]:
        turns, notes = _turns_by_model(cx, found, wanted) if wanted["model"] else (_turns(found, wanted), ())
        return _turns_text(cx, found, wanted, turns), not notes
    document = _restore_by_model(cx, found, wanted) if wanted["model"] else _restore_mechanically(cx, found, wanted)
    for note in document.notes if document.missing else ():
        cx.out.warn(note)
    document = replace(document, notes=(*document.notes, *found.notes))
    return _document_text(cx, found, document, wanted), not document.missing


# without a model ------------------------------------------------------------------------------------------------------
def _restore_mechanically(cx: frame.CommandContext, found: RestoreTarget, wanted: Wanted) -> Document:
    from everturn.restore.mechanical import build_document
    from everturn.sources.contract import all_sources

    with cx.out.progress("turn", found.session.n_turns) as step:
        return build_document(
            found.store, all_sources(), found.session, _last_turn(wanted), lambda done, total: step(done, total=total)
        )


def _turns(found: RestoreTarget, wanted: Wanted) -> Iterable[TurnReport]:
    from everturn.restore.evidence import Proofs
    from everturn.restore.turns import tell_turn
    from everturn.sessions.state import session_facts
    from everturn.sources.contract import all_sources

    sources, store, session = all_sources(), found.store, found.session
    workspace, proofs = store.session(session.id)[1].workspace, Proofs(store, sources, session)
    return (
        tell_turn(facts, workspace, proofs) for facts in session_facts(store, sources, session, 0, _last_turn(wanted))
    )


def _last_turn(wanted: Wanted) -> int | None:
    return wanted["max_turns"] - 1 if wanted["max_turns"] else None


# with a model ---------------------------------------------------------------------------------------------------------
def _restore_by_model(cx: frame.CommandContext, found: RestoreTarget, wanted: Wanted) -> Document:
    from everturn.restore.job import keep_summary
    from everturn.restore.markdown import document_markdown
    from everturn.restore.synthesis import restore_with_model
    from everturn.sessions.secrets import archive_cleaner

    document = _run_with_model(cx, found, wanted, restore_with_model)
    if document.model and not found.temporary:
        keep_summary(
            found.store,
            found.session,
            document,
            document_markdown(document, archive_cleaner(found.store), 0),
            clock.now(),
        )
    return document


def _turns_by_model(
    cx: frame.CommandContext, found: RestoreTarget, wanted: Wanted
) -> tuple[Iterable[TurnReport], tuple[str, ...]]:
    from everturn.restore.synthesis import report_turns

    made = _run_with_model(cx, found, wanted, report_turns)
    for note in made.notes:
        cx.out.warn(note)
    return made.turns, made.notes


def _run_with_model(cx: frame.CommandContext, found: RestoreTarget, wanted: Wanted, job: Callable[..., Made]) -> Made:
    """Do a job that asks a model, with progress, and tell what it cost."""
    from everturn.sources.contract import all_sources

    asker = open_asker(cx, found.store, found.session, wanted["model"], wanted["max_searches"])
    with cx.out.progress("turn", found.session.n_turns) as step:
        made = job(
            found.store,
            all_sources(),
            found.session,
            asker,
            _options(found, wanted),
            lambda done, total: step(done, total=total),
        )
    _tell_cost(cx, asker)
    return made


def open_asker(cx: frame.CommandContext, store: Store, session: Session, model: str, searches: int = 8) -> Asker:
    """The model that was named, with a limit on how often it is asked: a few times for each turn."""
    from everturn.llm.asker import AskBudget, Asker
    from everturn.llm.config import Surroundings, open_backend
    from everturn.sessions.secrets import archive_cleaner
    from everturn.sources.contract import all_sources

    programs = {name: source.ask for name, source in all_sources().items() if source.ask is not None}
    backend = open_backend(cx.settings.models, model, Surroundings(dict(os.environ), programs))
    most = 3 * session.n_turns + 2 * searches + 10
    return Asker(backend, AskBudget(requests=most), archive_cleaner(store), clock.now)


def _options(found: RestoreTarget, wanted: Wanted) -> RestoreOptions:
    from everturn.restore.prompts import load_prompts, own_prompts
    from everturn.restore.summaries import RestoreOptions
    from everturn.sessions.secrets import archive_cleaner

    return RestoreOptions(
        max_turns=wanted["max_turns"],
        skip_evidence=wanted["skip_evidence_search"],
        max_searches=wanted["max_searches"],
        prompts=load_prompts(str(wanted["prompt_dir"])) if wanted["prompt_dir"] else own_prompts(),
        clean=archive_cleaner(found.store),
        now=clock.now(),
    )


def _tell_cost(cx: frame.CommandContext, asker: Asker) -> None:
    used = asker.spent
    cx.out.say(f"asked {len(asker.receipts):,} times: {used.input:,} tokens in, {used.output:,} out ({used.source})")


# writing --------------------------------------------------------------------------------------------------------------
def _document_text(cx: frame.CommandContext, found: RestoreTarget, document: Document, wanted: Wanted) -> str:
    from everturn.restore.markdown import document_json, document_markdown

    facts = (
        {name: cx.out.text(str(value)) for name, value in _header(found).items()} if wanted["include_header"] else {}
    )
    if wanted["form"] != "json":
        header = "\n".join(f"{name}: {value}" for name, value in facts.items())
        return document_markdown(document, cx.out.clean, wanted["budget"], header)
    made = document_json(document, cx.out.clean, wanted["budget"], **({"header": facts} if facts else {}))
    return _json(cx, "restore", [made], made)


def _turns_text(cx: frame.CommandContext, found: RestoreTarget, wanted: Wanted, turns: Iterable[TurnReport]) -> str:
    from everturn.restore.turns import as_items, as_text

    if wanted["form"] != "json":
        return "\n".join(as_text(turns, cx.out.clean))
    items = list(as_items(turns, cx.out.clean))
    return _json(cx, "restore-turns", items, {"session": found.session.native_id, "turns": items})


def _header(found: RestoreTarget) -> dict[str, Any]:
    """When, where and with what the session was held."""
    from everturn.text.times import iso

    session, text = found.session, found.store.session(found.session.id)[1]
    facts = {
        "Session": session.native_id,
        "Agent": session.agent,
        "Client": session.client,
        "Model": session.model,
        "Working folder": text.workspace,
        "Branch": text.branch,
        "Started": iso(session.started) if session.started is not None else "",
        "Ended": iso(session.ended) if session.ended is not None else "",
        "Turns": session.n_turns,
        "Messages": session.n_messages,
        "Calls": session.n_calls,
        "Errors": session.n_errors,
    }
    return {name: value for name, value in facts.items() if value != ""}


def _json(cx: frame.CommandContext, name: str, items: list[Any], alone: Any) -> str:
    """With --json in the frame of every command, in one line; else by itself and to be read."""
    from everturn.cli.output import to_json

    if cx.json:
        return to_json({"schema": f"everturn/{name}@1", "items": items, "next": None})
    import msgspec

    return msgspec.json.format(to_json(alone), indent=2)
