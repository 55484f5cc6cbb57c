"""What `everturn restore` writes: a document or turns, as Markdown or JSON, made with or without a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from everturn import clock
from everturn.cli import frame

if TYPE_CHECKING:
    from everturn.llm.asking import Asker
    from everturn.model.archive import Session
    from everturn.restore import Document
    from everturn.restore.summaries import Options
    from everturn.restore.target import Target
    from everturn.restore.turns import TurnTold
    from everturn.store import Store

Wanted = dict[str, Any]  # the options of the command
Made = TypeVar("Made")


def written(cx: frame.Context, found: Target, wanted: Wanted) -> tuple[str, bool]:
    """The text that was asked for, and whether all of it could be made as asked."""
    if wanted["dump_turns"]:
        turns, notes = _turns_by_model(cx, found, wanted) if wanted["model"] else (_turns(found, wanted), ())
        return _turns_text(cx, found, wanted, turns), not notes
    document = _by_model(cx, found, wanted) if wanted["model"] else _mechanical(cx, found, wanted)
    for note in document.notes if document.missing else ():
        cx.out.warn(note)
    document = replace(document, notes=(*document.notes, *found.notes))
    return _document_text(cx, found, document, wanted), not document.missing


# without a model ------------------------------------------------------------------------------------------------------
def _mechanical(cx: frame.Context, found: Target, wanted: Wanted) -> Document:
    from everturn.restore.document import mechanical
    from everturn.sources import all_sources

    with cx.out.progress("turn", found.session.n_turns) as step:
        return mechanical(
            found.store, all_sources(), found.session, _last(wanted), lambda done, total: step(done, total=total)
        )


def _turns(found: Target, wanted: Wanted) -> Iterable[TurnTold]:
    from everturn.recall.state import session_facts
    from everturn.restore.proof import Proofs
    from everturn.restore.turns import told
    from everturn.sources import all_sources

    sources, store, session = all_sources(), found.store, found.session
    workspace, proofs = store.session(session.id)[1].workspace, Proofs(store, sources, session)
    return (told(facts, workspace, proofs) for facts in session_facts(store, sources, session, 0, _last(wanted)))


def _last(wanted: Wanted) -> int | None:
    return wanted["max_turns"] - 1 if wanted["max_turns"] else None


# with a model ---------------------------------------------------------------------------------------------------------
def _by_model(cx: frame.Context, found: Target, wanted: Wanted) -> Document:
    from everturn.recall.secrets import cleaner
    from everturn.restore.stored import keep
    from everturn.restore.synthesis import restored
    from everturn.restore.writing import markdown

    document = _asked(cx, found, wanted, restored)
    if document.model and not found.temporary:
        keep(found.store, found.session, document, markdown(document, cleaner(found.store), 0), clock.now())
    return document


def _turns_by_model(cx: frame.Context, found: Target, wanted: Wanted) -> tuple[Iterable[TurnTold], tuple[str, ...]]:
    from everturn.restore.turnwise import turn_by_turn

    made = _asked(cx, found, wanted, turn_by_turn)
    for note in made.notes:
        cx.out.warn(note)
    return made.turns, made.notes


def _asked(cx: frame.Context, found: Target, wanted: Wanted, job: Callable[..., Made]) -> Made:
    """Do a job that asks a model, with progress, and tell what it cost."""
    from everturn.sources import all_sources

    asker = asker_for(cx, found.store, found.session, wanted["model"], wanted["max_searches"])
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


def asker_for(cx: frame.Context, store: Store, session: Session, model: str, searches: int = 8) -> Asker:
    """The model that was named, with a limit on how often it is asked: a few times for each turn."""
    from everturn.llm.asking import Asker, Budget
    from everturn.llm.configured import Surroundings, open_backend
    from everturn.recall.secrets import cleaner
    from everturn.sources import all_sources

    programs = {name: source.ask for name, source in all_sources().items() if source.ask is not None}
    backend = open_backend(cx.settings.models, model, Surroundings(dict(os.environ), programs))
    most = 3 * session.n_turns + 2 * searches + 10
    return Asker(backend, Budget(requests=most), cleaner(store), clock.now)


def _options(found: Target, wanted: Wanted) -> Options:
    from everturn.recall.secrets import cleaner
    from everturn.restore.prompts import load_prompts, own_prompts
    from everturn.restore.summaries import Options

    return Options(
        max_turns=wanted["max_turns"],
        skip_evidence=wanted["skip_evidence_search"],
        max_searches=wanted["max_searches"],
        prompts=load_prompts(str(wanted["prompt_dir"])) if wanted["prompt_dir"] else own_prompts(),
        clean=cleaner(found.store),
        now=clock.now(),
    )


def _tell_cost(cx: frame.Context, asker: Asker) -> None:
    used = asker.spent
    cx.out.say(f"asked {len(asker.receipts):,} times: {used.input:,} tokens in, {used.output:,} out ({used.source})")


# writing --------------------------------------------------------------------------------------------------------------
def _document_text(cx: frame.Context, found: Target, document: Document, wanted: Wanted) -> str:
    from everturn.restore.writing import as_json, markdown

    facts = (
        {name: cx.out.text(str(value)) for name, value in _header(found).items()} if wanted["include_header"] else {}
    )
    if wanted["form"] != "json":
        header = "\n".join(f"{name}: {value}" for name, value in facts.items())
        return markdown(document, cx.out.clean, wanted["budget"], header)
    made = as_json(document, cx.out.clean, wanted["budget"], **({"header": facts} if facts else {}))
    return _json(cx, "restore", [made], made)


def _turns_text(cx: frame.Context, found: Target, wanted: Wanted, turns: Iterable[TurnTold]) -> str:
    from everturn.restore.turns import as_items, as_text

    if wanted["form"] != "json":
        return "\n".join(as_text(turns, cx.out.clean))
    items = list(as_items(turns, cx.out.clean))
    return _json(cx, "restore-turns", items, {"session": found.session.native_id, "turns": items})


def _header(found: Target) -> dict[str, Any]:
    """When, where and with what the session was held."""
    from everturn.derive.times import iso

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


def _json(cx: frame.Context, name: str, items: list[Any], alone: Any) -> str:
    """With --json in the frame of every command, in one line; else by itself and to be read."""
    from everturn.cli.output import to_json

    if cx.json:
        return to_json({"schema": f"everturn/{name}@1", "items": items, "next": None})
    import msgspec

    return msgspec.json.format(to_json(alone), indent=2)
