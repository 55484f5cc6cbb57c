"""Boxes are told apart by their colours, in the default theme and in any other."""

from __future__ import annotations

from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.transcript import TerminalTranscript
from tests.sources.terminal.drawing import Block
from tests.sources.terminal.reading import segment_of
from tests.sources.terminal.screens import Boxes

PINK = 0xFFAFD7


def test_a_message_that_waits_is_a_prompt_in_the_colours_of_any_theme() -> None:
    client = Boxes()
    client.ask("a question")
    client.show(Block(client.box([" QUEUED", "", "more", "ada (02:37 PM)"], PINK)))
    rows = [row for block in client.blocks for row in [*block.visible(), []]]
    left = segment_of([*client.box([" QUEUED"], PINK), []], program="boxes", gone=True, cut_top=True)
    talks = read_screens(TerminalTranscript((segment_of(rows, program="boxes"), *[left] * 5), 100, 30))
    assert [(item.role, item.text) for talk in talks for item in talk.said] == [
        ("user", "a question"),
        ("user", "more"),
    ]
