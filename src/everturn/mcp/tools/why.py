"""`why`: which turn wrote a line of a file, a commit or a range, and what was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from everturn.mcp.archive import McpArchive, clean, sources
from everturn.mcp.tools.contract import MaxTokens, ToolAnswer, reading_tool
from everturn.text.printable import quote_for_model
from everturn.text.tokens import cut_to_tokens

if TYPE_CHECKING:
    from everturn.store.contract import Store

_FEW = 40  # lines that are shown with everything that is known


class WhyArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool."""

    target: Annotated[
        str,
        Meta(min_length=1, max_length=4096, description="FILE, FILE:LINE, FILE:LINE-LINE, a commit, or a range A..B."),
    ]
    folder: Annotated[
        str, Meta(max_length=4096, description="The folder that FILE is relative to; the server's own by default.")
    ] = ""
    max_tokens: MaxTokens = 2000


def _answer(archive: McpArchive, store: Store, arguments: WhyArguments) -> ToolAnswer:
    from pathlib import Path

    from everturn.attribution.job import WhyOptions, open_why
    from everturn.attribution.summary import detail_lines, overview_lines

    folder = Path(arguments.folder or archive.folder or archive.workspace or ".")
    job, path, lines = open_why(store, sources(), archive.clock(), folder, arguments.target)
    with job.repository:
        few = lines is not None and lines[1] - lines[0] < _FEW
        report = (
            job.file(path, lines, WhyOptions(full=few))
            if path is not None
            else job.commits(arguments.target, WhyOptions())
        )
    text = "\n".join(detail_lines(report, clean) if few else overview_lines(report, clean))
    return ToolAnswer(quote_for_model(cut_to_tokens(text, arguments.max_tokens)))


TOOL = reading_tool(
    WhyArguments,
    _answer,
    name="why",
    title="Which turn wrote this line",
    description=(
        "Says which past session and turn wrote a line of a git repository, and what was asked for: the request, decisions, the "
        "words before the edit, tests after it. Ask it before you change code that looks odd. It stays silent where the archive "
        "does not know, and says how sure an answer is (replayed, matched, likely)."
    ),
)
