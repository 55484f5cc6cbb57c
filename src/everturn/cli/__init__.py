"""The command line: parse the arguments, call one job, show the result. One file per command; `frame` finds them."""

from everturn.cli.main import main

__all__ = ["main"]
