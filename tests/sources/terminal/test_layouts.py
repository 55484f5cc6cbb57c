"""How known programs divide their screens, and toasts that are taken off."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.sources.terminal import boxes, panels
from everturn.sources.terminal.frames import PaintedRow, ScreenLayout, cut_row, uncover, uncover_all
from tests.sources.terminal.drawing import Row, plain
from tests.sources.terminal.random_sessions import ToastedBoxes, ToastedPanels
from tests.sources.terminal.sketches import paint_rows

TOAST = ["┃          ┃", "┃  copied  ┃", "┃          ┃"]
EDGE = 42  # cells: where a toast ends


def beside(lines: Sequence[str], toast: Sequence[str], top: int = 0, cell: int = 30) -> list[str]:
    """Lines with a box over them from a cell on."""
    covered = list(lines)
    for number, part in enumerate(toast, top):
        covered[number] = covered[number][:cell].ljust(cell) + part
    return covered


def uncovered(lines: Sequence[str], first: int = 1, right: int = EDGE) -> list[tuple[str, bool]]:
    """The text of each row without toasts, and whether something hid its end."""
    return [(row.text, row.covered) for row in uncover(paint_rows(lines), first, right)]


def lay_out_boxes(client: ToastedBoxes) -> ScreenLayout:
    found = boxes.find_layout(painted(client.painter.grid, client.columns))
    assert found is not None
    return found


def lay_out_panels(client: ToastedPanels) -> ScreenLayout:
    found = panels.find_layout(painted(client.painter.grid, client.columns))
    assert found is not None
    return found


def painted(grid: list[Row], columns: int) -> list[PaintedRow]:
    return paint_rows([plain(row) for row in grid], columns)


def words(layout: ScreenLayout) -> list[str]:
    return [text for row in layout.rows if (text := row.text.strip(" ┃"))]


# toasts ---------------------------------------------------------------------------------------------------------------
def test_what_stands_beside_a_toast_is_kept_and_known_to_be_cut_off() -> None:
    lines = ["one", "two is a line that is much longer than the others", "three", "four", "five"]
    assert uncovered(beside(lines, TOAST, 1)) == [
        ("one", False),
        ("two is a line that is much lon", True),
        ("three", True),
        ("four", True),
        ("five", False),
    ]


def test_toasts_below_one_another_are_all_taken_off() -> None:
    lines = [f"line {number}" for number in range(10)]
    two = beside(beside(lines, TOAST, 1), TOAST, 5)
    assert [text for text, _ in uncovered(two)] == lines


def test_a_box_further_down_is_part_of_the_text() -> None:
    lines = beside([f"line {number}" for number in range(10)], TOAST, 5)
    assert uncovered(lines) == [(line, False) for line in lines]


def test_a_box_that_begins_at_the_left_is_a_message() -> None:
    lines = ["", "  ┃            ┃", "  ┃  a prompt  ┃", "  ┃            ┃"]
    assert uncovered(lines) == [(line, False) for line in lines]


def test_a_single_row_between_bars_is_no_toast() -> None:
    lines = beside(["one", "two", "three"], TOAST[:1], 1)
    assert uncovered(lines) == [(line, False) for line in lines]


def test_only_a_box_at_the_right_edge_is_a_toast_where_the_edge_is_known() -> None:
    lines = beside(["one", "two", "three", "four"], TOAST, 1)
    assert [covered for _, covered in uncovered(lines)] == [False, True, True, True]
    assert [covered for _, covered in uncovered(lines, right=44)] == [False, False, False, False]


def test_a_row_that_is_covered_already_does_not_divide_a_toast() -> None:
    rows = paint_rows(beside(["one", "two", "three", "four"], TOAST, 1))
    rows[2] = cut_row(rows[2], 3)
    found = uncover(rows, 1, EDGE)
    assert [row.text for row in found] == ["one", "two", "thr", "four"]
    assert [row.covered for row in found] == [False, True, True, True]


def test_a_single_row_that_is_left_of_a_toast_is_taken_off_where_nothing_else_ends_so() -> None:
    lines = beside(["one", "two", "three", "four"], TOAST[:1], 2)
    assert [row.text for row in uncover_all(paint_rows(lines), EDGE)] == ["one", "two", "three", "four"]
    assert [row.covered for row in uncover_all(paint_rows(lines), EDGE)] == [False, False, True, False]


def test_no_rows_give_no_rows() -> None:
    assert uncovered([]) == []


def test_a_row_is_cut_at_a_cell_and_not_at_a_character() -> None:
    (row,) = paint_rows(["漢字漢字 and more"])
    assert (cut_row(row, 4).text, cut_row(row, 4).covered) == ("漢字", True)


# boxes ----------------------------------------------------------------------------------------------------------------
def test_a_screen_of_boxes_is_divided() -> None:
    client = ToastedBoxes(80, 24)
    client.ask("what is it?")
    client.answer("it is this")
    client.rename("About it")
    client.type("and then")
    layout = lay_out_boxes(client)
    assert (layout.program, layout.state, layout.typed) == ("boxes", "talk", "and then")
    assert layout.title.split("\n")[0] == "# About it"
    assert "opencode v0.13.5" in layout.footer
    assert words(layout) == ["what is it?", "ada (02:36 PM)", "it is this", "Build glm-4.6 (02:36 PM)"]


def test_a_toast_over_boxes_is_neither_text_nor_typed() -> None:
    client = ToastedBoxes(80, 24)
    client.ask("what is it?")
    client.answer("\n".join(f"line {number}" for number in range(20)))
    before = words(lay_out_boxes(client))
    client.toast = ["Copied to clipboard", "for you"]
    client.draw()
    layout = lay_out_boxes(client)
    assert words(layout) == before
    assert layout.typed == ""
    assert sum(row.covered for row in layout.rows) == 4


def test_another_program_has_no_layout() -> None:
    rows = paint_rows(["$ ls", "one  two", "", "$"])
    assert boxes.find_layout(rows) is None
    assert panels.find_layout(rows) is None
    assert boxes.find_layout([]) is None
    assert panels.find_layout([]) is None


def test_the_two_programs_are_not_taken_for_each_other() -> None:
    old, new = ToastedBoxes(80, 24), ToastedPanels(80, 24)
    for client in (old, new):
        client.ask("what is it?")
    assert panels.find_layout(painted(old.painter.grid, 80)) is None
    assert boxes.find_layout(painted(new.painter.grid, 80)) is None


def test_boxes_without_an_input_field_are_covered() -> None:
    client = ToastedBoxes(80, 24)
    client.ask("what is it?")
    client.painter.grid[-5] = []
    layout = lay_out_boxes(client)
    assert (layout.state, layout.typed, words(layout)) == ("covered", None, [])


def test_a_list_of_commands_above_the_field_is_not_part_of_the_conversation() -> None:
    client = ToastedBoxes(80, 24)
    client.ask("what is it?")
    client.type("/mo")
    grid = client.painter.grid
    grid[17] = [("  ┃  /models   choose a model".ljust(77) + "┃", None)]
    layout = lay_out_boxes(client)
    assert layout.typed == "/mo"
    assert words(layout) == ["what is it?", "ada (02:36 PM)"]


# panels ---------------------------------------------------------------------------------------------------------------
def test_a_screen_of_panels_is_divided() -> None:
    client = ToastedPanels(80, 24)
    client.ask("what is it?")
    client.answer("it is this")
    client.end("2.0s")
    client.type("and then")
    layout = lay_out_panels(client)
    assert (layout.program, layout.state, layout.typed) == ("panels", "talk", "and then")
    assert words(layout) == ["what is it?", "it is this", "▣  Build · Model One · 2.0s"]
    assert "ctrl+p commands" in layout.footer


def test_a_toast_over_panels_is_neither_text_nor_typed() -> None:
    client = ToastedPanels(80, 24)
    client.ask("what is it?")
    client.answer("\n".join(f"line {number}" for number in range(20)))
    before = words(lay_out_panels(client))
    client.toast = ["Copied to clipboard"]
    client.draw()
    layout = lay_out_panels(client)
    assert words(layout) == before
    assert layout.typed == ""
    assert sum(row.covered for row in layout.rows) == 3


def test_the_home_screen_of_panels_has_no_conversation() -> None:
    client = ToastedPanels(80, 24)
    client.go_home()
    layout = lay_out_panels(client)
    assert (layout.state, layout.typed, words(layout)) == ("home", "", [])


def test_a_sidebar_gives_the_title_and_is_no_text() -> None:
    client = ToastedPanels(140, 30)
    client.side = ["Fixing the parser", "", "Context", "12,345 tokens", "6% used"]
    client.ask("what is it?")
    layout = lay_out_panels(client)
    assert layout.title == "# Fixing the parser"
    assert words(layout) == ["what is it?"]


def test_a_question_in_the_place_of_the_field_leaves_the_conversation() -> None:
    lines = ["", "  ┃  what is it?", "", "  ┃", "  ┃  △ Permission required", "  ┃  # run a command", "  ┃"]
    layout = panels.find_layout(paint_rows(lines))
    assert layout is not None
    assert (layout.state, layout.typed, words(layout)) == ("talk", None, ["what is it?"])


# the home screen ------------------------------------------------------------------------------------------------------
LOGO = ["      █▀▀█ █▀▀█ █▀▀ █▀▀▄", "      █░░█ █░░█ █▀▀ █░░█", "      ▀▀▀▀ █▀▀▀ ▀▀▀ ▀  ▀"]


def test_the_home_screen_of_boxes_is_known_on_a_screen_that_its_input_field_fills() -> None:
    field = ["  ┃" + " " * 74 + "┃", "  ┃ > ".ljust(77) + "┃", "  ┃" + " " * 74 + "┃"]
    lines = ["", *LOGO, "", "   /new   new session", "", *field, "   enter send", "", " opencode v0.13.5  ~/work"]
    found = boxes.find_layout(paint_rows(lines))
    assert found is not None
    assert found.state == "home"


def test_the_home_screen_of_panels_is_known_on_a_screen_that_its_input_field_fills() -> None:
    lines = ["", *LOGO, "", "  ┃", "  ┃  Ask anything", "  ┃", "  ┃  Build · m Local", "  ╹" + "▀" * 70, ""]
    found = panels.find_layout(paint_rows(lines))
    assert found is not None
    assert found.state == "home"


def test_an_answer_with_big_letters_is_no_home_screen() -> None:
    client = ToastedPanels(80, 26)
    client.ask("draw it")
    client.answer("\n".join(line.strip() for line in LOGO))
    client.draw()
    assert lay_out_panels(client).state == "talk"


# a toast beside a sidebar ---------------------------------------------------------------------------------------------
def test_a_toast_ends_where_the_sidebar_begins() -> None:
    client = ToastedPanels(140, 30)
    client.side = ["About it", "", "Context", "12 tokens"]
    client.ask("what is it?")
    client.answer("it is this")
    rows = [plain(row).ljust(140) for row in client.painter.grid]
    toast = ["┃            ┃", "┃  a toast!  ┃", "┃            ┃"]
    for number, part in enumerate(toast, 2):
        rows[number] = rows[number][: 96 - len(part)] + part + rows[number][96:]
    found = panels.find_layout(paint_rows([row.rstrip() for row in rows], 140))
    assert found is not None
    assert words(found) == ["what is it?", "it is this"]
    assert found.title == "# About it"
