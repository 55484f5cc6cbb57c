"""Run one command line: the only place that prints errors.

A user's mistake is one sentence on stderr, never a traceback. Everything else is imported inside `main`, so that Ctrl-C in
the first moments is answered too. Exit codes: 0 ok · 1 failure · 2 usage · 3 nothing found · 4 partly failed · 75 busy ·
130 interrupted · 141 the reader of stdout is gone.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from typing import Any

INTERRUPTED = 130
READER_GONE = 141  # 128 + SIGPIPE, as a shell reports it for any program
#: When garbage is collected. By default Python looks for cycles after 700 new objects, which costs a fifth of a recall; we make few.
GC_THRESHOLD = (100_000, 20, 20)


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:  # the process is ours
        gc.set_threshold(*GC_THRESHOLD)
        atexit.register(gc.freeze)  # what ends with the process is not searched for cycles
    # Escape characters that the terminal cannot encode, instead of failing.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    if os.environ.get("_EVERTURN_COMPLETE"):
        import click
        from click.shell_completion import shell_complete

        from everturn.cli.frame import root

        root.get_command(click.Context(root), "completion")  # has the scripts of our own
        return shell_complete(root, {}, "everturn", "_EVERTURN_COMPLETE", os.environ["_EVERTURN_COMPLETE"])
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        return _silence_stdout()
    except KeyboardInterrupt:
        return _print_error("interrupted; nothing is lost, run it again to continue", INTERRUPTED, before="\n")
    except Exception as error:
        return _explain(error)
    return code


def _run(words: list[str]) -> int:
    from everturn.cli.frame import root

    with root.make_context("everturn", words) as context:
        result = root.invoke(context)
    return result if isinstance(result, int) else 0


def _explain(error: Exception) -> int:
    import click

    from everturn.errors import EverturnError

    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.Abort):
        return _print_error("stopped; nothing was changed", INTERRUPTED)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)  # the whole help: keep its lines
        return error.exit_code
    if isinstance(error, click.ClickException):
        return _print_error(_usage(error), error.exit_code)
    if isinstance(error, EverturnError):
        return _print_error(str(error), error.exit_code)
    if os.environ.get("EVERTURN_DEBUG"):
        import traceback

        traceback.print_exception(error)
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return _print_error(f"internal error: {what}; set EVERTURN_DEBUG=1 to see where, and please report it", 1)


def _usage(error: Any) -> str:
    """Return a message of click as a sentence that ends with the help to read."""
    message: str = " ".join(error.format_message().split()).rstrip(".")  # click lists choices on lines of their own
    message = message[:1].lower() + message[1:] if message[1:2].islower() else message
    context = getattr(error, "ctx", None)
    if context is None or "`everturn " in message:
        return message
    return f"{message}; see `{context.command_path} --help`"


def _print_error(sentence: str, code: int, before: str = "") -> int:
    try:
        from everturn.secrets.redaction import redact_text
        from everturn.text.printable import printable

        # An error may name a path or the address of a database with the password in it.
        sys.stderr.write(f"{before}everturn: {printable(redact_text(sentence), '')}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()
    return code


def _silence_stdout() -> int:
    """Discard further output when the reader is gone (`| head`), also when the interpreter flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return READER_GONE
