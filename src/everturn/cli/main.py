"""The command line: parse the words, call one job, show the result. One file per command; `frame` finds them.

`main` is the only place that tells errors. A person's mistake is one sentence on stderr, never a traceback. Exit codes:
0 ok · 1 failure · 2 usage · 3 nothing found · 4 partly failed · 75 busy · 130 interrupted · 141 the reader went away.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

INTERRUPTED = 130
READER_GONE = 141  # 128 + SIGPIPE, as a shell reports any other program in that place


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and give its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    _never_fail_to_encode()
    if os.environ.get("_EVERTURN_COMPLETE"):
        return _complete()
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_gone()
    except KeyboardInterrupt:
        return _tell("interrupted; nothing is lost, run it again to go on", INTERRUPTED, before="\n")
    except Exception as error:
        return _explain(error)
    return code


def _run(words: list[str]) -> int:
    from everturn.cli.frame import root

    with root.make_context("everturn", words) as context:
        result = root.invoke(context)
    return result if isinstance(result, int) else 0


def _explain(error: Exception) -> int:
    """One sentence and the exit code for anything that came up."""
    import click

    from everturn.errors import EverturnError

    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.Abort):
        return _tell("stopped; nothing was changed", INTERRUPTED)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)  # the whole help: lines are to stay lines
        return error.exit_code
    if isinstance(error, click.ClickException):
        return _tell(_usage(error), error.exit_code)
    if isinstance(error, EverturnError):
        return _tell(str(error), error.exit_code)
    if os.environ.get("EVERTURN_DEBUG"):
        import traceback

        traceback.print_exception(error)
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return _tell(f"this should not happen: {what}; set EVERTURN_DEBUG=1 to see where, and please report it", 1)


def _usage(error: Any) -> str:
    """What click says, in our form: a sentence that ends with where to look."""
    message: str = " ".join(error.format_message().split()).rstrip(".")  # click puts choices in lines, with tabs
    message = message[:1].lower() + message[1:] if message[1:2].islower() else message
    context = getattr(error, "ctx", None)
    if context is None or "`everturn " in message:
        return message
    return f"{message}; see `{context.command_path} --help`"


def _tell(sentence: str, code: int, before: str = "") -> int:
    try:
        from everturn.secrets.redaction import redact_text
        from everturn.text.printable import printable

        # An error may name a path or the address of a database with the password in it.
        sys.stderr.write(f"{before}everturn: {printable(redact_text(sentence), '')}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _reader_gone()
    return code


def _reader_gone() -> int:
    """Nobody reads stdout any more (`| head`): be quiet, also when the interpreter flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return READER_GONE


def _never_fail_to_encode() -> None:
    """A character the terminal cannot show must not end a command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _complete() -> int:
    """Answer the shell, which asks through an environment variable what may come next."""
    from click.shell_completion import shell_complete

    from everturn.cli.frame import root

    return shell_complete(root, {}, "everturn", "_EVERTURN_COMPLETE", os.environ["_EVERTURN_COMPLETE"])
