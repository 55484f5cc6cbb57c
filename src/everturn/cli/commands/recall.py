"""Ask the archive as an agent does: search, turns by number, calls of a tool, a summary."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from everturn import clock
from everturn.cli import frame
from everturn.cli.commands.search import WordsCommand
from everturn.errors import UsageError

if TYPE_CHECKING:
    from everturn.recall.answer import AnswerEntry

_EXIT_NOTHING = 3
_MAX_PROMPT = 100_000  # characters


def _shared_options(run: Callable[..., Any]) -> Callable[..., Any]:
    session = click.option(
        "--session", default="", metavar="SESSION", help="In this session: an id or its prefix, @last."
    )
    budget = click.option(
        "--budget", type=click.IntRange(200, 8000), help="Most tokens to print: 2000 for a search, else 8000."
    )
    return session(budget(run))


@frame.command(
    "everturn recall search refresh token",
    "everturn recall range 5 8 --session @last",
    "everturn recall tool-calls Bash --limit 3",
    "everturn recall summary --session 3f2a9c",
    make=click.group,
    reveal=True,
)
def command(cx: frame.CommandContext) -> None:
    """Ask the archive the way the conversation_recall tool does, and read the very text an agent would get.

    What is printed is quoted from the archive, in compact form, never more than 8,000 tokens. It ends with what was cut and
    the command that shows it.
    """


_action = partial(frame.command, make=command.command, reveal=True)


@_action("everturn recall search refresh token", "everturn recall search tool:Bash timeout -retry", cls=WordsCommand)
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 50), help="How many turns to show.")
@_shared_options
def search(cx: frame.CommandContext, words: tuple[str, ...], limit: int, session: str, budget: int | None) -> int:
    """Find turns that hold WORDS, the best first, each with its prompt and the lines around the match.

    With --session what is near it counts more: the session, its lineage, its workspace. The answer says where a turn is.
    """
    return _answer(cx, session, budget, {"action": "search", "query": " ".join(words), "limit": limit})


@_action("everturn recall range 5 8", "everturn recall range 12 --message 40-60", name="range")
@click.argument("first", type=click.IntRange(1))
@click.argument("last", type=click.IntRange(1), required=False)
@click.option("--message", default="", metavar="N|N-M", help="Only these messages of the turn.")
@click.option("--line", default="", metavar="N|N-M", help="Only these lines of each message.")
@_shared_options
def turn_range(
    cx: frame.CommandContext, first: int, last: int | None, message: str, line: str, session: str, budget: int | None
) -> int:
    """Read the turns from FIRST to LAST, both included. Without --session: of the newest session."""
    query = " ".join(f"{name}:{value}" for name, value in (("message", message), ("line", line)) if value)
    request = {"action": "range", "start_turn": first, "end_turn": last, "query": query}
    return _answer_about(cx, session, budget, request)


@_action("everturn recall tool-calls Bash", "everturn recall tool-calls shell", name="tool-calls")
@click.argument("name")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 50), help="How many calls to show.")
@_shared_options
def tool_calls(cx: frame.CommandContext, name: str, limit: int, session: str, budget: int | None) -> int:
    """Show the newest calls of the tool NAME and what they gave back. Without --session: of the newest session."""
    return _answer_about(cx, session, budget, {"action": "tool_calls", "tool_name": name, "limit": limit})


@_action("everturn recall summary", "everturn recall summary --session 3f2a9c")
@_shared_options
def summary(cx: frame.CommandContext, session: str, budget: int | None) -> int:
    """Show the state of a session and its figures, from its records alone. Without --session: of the newest one."""
    return _answer_about(cx, session, budget, {"action": "summary"})


@_action("everturn recall hint --session 3f2a9c < prompt.txt", name="hint")
@click.option(
    "--session", default="", metavar="SESSION", help="The session that the prompt is from, if it is archived."
)
@click.option("-w", "--workspace", default="", metavar="DIR", help="Otherwise the folder that it is from.")
def hint(cx: frame.CommandContext, session: str, workspace: str) -> int:
    """Print what a prompt on standard input refers to, such as "like we discussed for the zebra parser".

    The archive is searched for the subject of the prompt. Unless one turn surely holds it, nothing is printed. Agents with
    `everturn install --hints` run this for prompts that refer to something out of view.
    """
    from everturn.recall.hint import HintPrompt, hint_for_prompt

    prompt = HintPrompt(sys.stdin.read(_MAX_PROMPT), session, workspace)
    return _print_text(cx, hint_for_prompt(cx.store(), prompt, cx.out.clean, clock.now))


@_action("everturn recall where --workspace ~/shop", name="where")
@click.option("-w", "--workspace", default=".", metavar="DIR", help="The folder; the current one by default.")
def where(cx: frame.CommandContext, workspace: str) -> int:
    """Print where the last session of a folder stopped, as `everturn install --where-you-were` tells it a new session."""
    from everturn.resume.handoff import where_you_were
    from everturn.store.contract import SessionFilter

    store = cx.store()
    rows, _ = store.sessions(SessionFilter(workspace=os.path.abspath(workspace)), 1)
    return _print_text(cx, where_you_were(store, cx.sources, rows[0][0], cx.out.clean, clock.now()) if rows else "")


def _print_text(cx: frame.CommandContext, text: str) -> int:
    if cx.json:
        cx.out.emit_json("recall", [], status="found" if text else "nothing", text=text)
    elif text:
        cx.out.emit(cx.out.text(text, "\n\t"))
    return 0


def _answer_about(cx: frame.CommandContext, session: str, budget: int | None, request: dict[str, Any]) -> int:
    """Answer a request about one session, which the query must name: a command runs in none."""
    named = f'session:"{cx.session(session or "@last").native_id}"'
    return _answer(cx, "", budget, {**request, "query": f"{named} {request.get('query', '')}".strip()})


def _answer(cx: frame.CommandContext, session: str, budget: int | None, request: dict[str, Any]) -> int:
    from everturn.cli.meaning_options import for_search
    from everturn.recall.tool import ConversationRecall

    store = cx.store()
    row = cx.session(session) if session else None
    meaning = for_search(cx, store) if request["action"] == "search" else None
    recall = ConversationRecall(
        store, cx.sources, row, cx.out.clean, clock.now, budget, _CommandSpelling(session), meaning
    )
    answer = recall.answer(request)
    if answer.status == "mistake":
        raise UsageError(answer.text.removesuffix("."))
    is_nothing = answer.status == "nothing"
    if cx.json:
        cx.out.emit_json("recall", map(_facts, answer.entries), status=answer.status, text=answer.text)
    elif not is_nothing:
        cx.out.emit(cx.out.text(answer.text, "\n\t"))
    if is_nothing:
        cx.out.warn(answer.text)
    return _EXIT_NOTHING if is_nothing else 0


def _facts(entry: AnswerEntry) -> dict[str, Any]:
    return {
        "turn": entry.turn + 1,
        "message": entry.seq + 1,
        **{name: getattr(entry, name) for name in ("head", "text", "lines")},
        "cut": entry.is_cut,
        "match": entry.is_match,
    }


class _CommandSpelling:
    """Writes a request as a command line."""

    def __init__(self, session: str) -> None:
        self._session = session

    def __call__(self, request: dict[str, Any]) -> str:
        words = ["everturn", "recall", str(request["action"]).replace("_", "-")]
        session, query, options = self._session, [], []
        for word in str(request.get("query", "")).split():
            name, _, value = word.partition(":")
            if name == "session":
                session = value
            elif request["action"] == "range":
                options += [f"--{name}", value]
            else:
                query.append(word)
        words += [str(request[name]) for name in ("start_turn", "end_turn", "tool_name") if name in request]
        words += query + options
        words += ["--limit", str(request["limit"])] if "limit" in request else []
        words += ["--session", session] if session else []
        return shlex.join(words)
