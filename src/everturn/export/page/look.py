"""How a page is to look: what is shown of a session, how much of it, and where links lead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from everturn.recall.lineage import Lineage, Relative

#: Relatives that a call started, by (seq, idx) of the call.
Children = Mapping[tuple[int, int], list[Relative]]


def _same_text(text: str) -> str:
    return text


class PageLook(Struct, frozen=True):
    """Everything that differs between a file to pass on and a page of a running program.

    Without an address there is no link: a self-contained file has none but those within it.
    """

    clean: Callable[[str], str] = _same_text  # takes secrets out of words
    anchor: str = "t"  # what the anchor of a turn begins with: `#t12`
    longest: int = 40_000  # characters of one text; what is longer is cut in its middle
    most: int = 1_500_000  # characters of a turn; once they are spent tools are shown by their first lines
    largest: int = 2_000_000  # characters of a picture, in base64; with 0 pictures are told and left out
    thinking: bool = True
    context: bool = True  # what clients put in by themselves, folded
    workspace: str = ""  # files within it are named without it
    titles: Mapping[str, str] = {}  # what agents are called
    children: Children = {}
    inside: Callable[[Relative], Iterable[str]] | None = None  # markup of a relative, put in place
    to_inside: Callable[[Relative], str] | None = (
        None  # where a page fetches the markup of a relative once it is opened
    )
    to_session: Callable[[Relative], str] | None = None  # the address of a relative
    to_record: Callable[[int], str] | None = None  # the address of a message as captured, by its seq
    to_whole: Callable[[int], str] | None = None  # the address of a message in full, by its seq
    to_picture: Callable[[int, str], str] | None = None  # of a picture, by the seq of its message and its name
    to_rest: Callable[[int, int], str] | None = None  # of the rest of a turn (from 1), from the message of that seq on


def children_of(relatives: Lineage) -> Children:
    """What calls of a session started."""
    found: dict[tuple[int, int], list[Relative]] = {}
    for one in relatives.children:
        if one.call is not None:
            found.setdefault((one.call.seq, one.call.idx), []).append(one)
    return found
