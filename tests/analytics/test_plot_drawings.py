"""Plots: the data, the lines on a terminal, and files that are safe to open."""

from __future__ import annotations

import re
from datetime import date
from xml.etree import ElementTree

import pytest

from everturn.analytics.inspect import inspect_tools
from everturn.analytics.plot_drawings import Sketch, plot_page, plot_svg, spark_line
from everturn.analytics.plots import (
    Bars,
    Calendar,
    Heat,
    Plot,
    PlotBar,
    activity_calendar,
    errors_by_position,
    transitions,
    turn_lengths,
)
from everturn.store.contract import AnalyticsScope, Store
from everturn.text.printable import count_cells, printable
from tests.analytics.histories import Made, chain, fill, history, session

HOSTILE = "<script>alert(1)</script>\x1b[2J\"'&\u202e"
NS = "{http://www.w3.org/2000/svg}"


def plots(store: Store) -> list[Plot]:
    inspected = inspect_tools(store, AnalyticsScope(), "*")
    assert inspected is not None
    drawn = [
        transitions(store, AnalyticsScope()),
        turn_lengths(store, AnalyticsScope()),
        errors_by_position(inspected),
        activity_calendar(store, AnalyticsScope()),
    ]
    return [one for one in drawn if one is not None]


def shown(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def test_transitions_say_which_tool_comes_after_which(store: Store) -> None:
    fill(store, [session("a", chain("Read", "Edit", "Read", "Edit", "Bash"))])
    heat = transitions(store, AnalyticsScope())
    assert heat is not None
    n = {(row, column): heat.values[y][x] for y, row in enumerate(heat.rows) for x, column in enumerate(heat.columns)}
    assert {key: value for key, value in n.items() if value} == {
        ("(start)", "Read"): 1,
        ("Read", "Edit"): 2,
        ("Edit", "Read"): 1,
        ("Edit", "Bash"): 1,
        ("Bash", "(end)"): 1,
    }


def test_turn_lengths_add_up_to_the_turns(store: Store) -> None:
    fill(store, [session("a", chain("Read"), chain(*["Read"] * 7), chain(*["Read"] * 200), chain("Bash!timeout"))])
    bars = turn_lengths(store, AnalyticsScope())
    assert bars is not None
    assert [(bar.label, bar.value, bar.part) for bar in bars.bars if bar.value] == [
        ("1", 2, 1),
        ("6-7", 1, 0),
        ("101+", 1, 0),
    ]
    assert len(bars.bars) == 13


def test_a_calendar_begins_on_a_monday_and_has_every_day(store: Store) -> None:
    fill(store, history(1, 50, planted=()))
    calendar = activity_calendar(store, AnalyticsScope())
    assert calendar is not None and calendar.first == date(2026, 1, 5)
    assert len(calendar.days) == 3 and sum(calendar.days) == sum(len(one.turns) for one in history(1, 50, planted=()))


def test_an_empty_archive_has_nothing_to_draw(store: Store) -> None:
    assert transitions(store, AnalyticsScope()) is None
    assert turn_lengths(store, AnalyticsScope()) is None
    assert activity_calendar(store, AnalyticsScope()) is None


@pytest.mark.few(3)
@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("colour", [False, True])
def test_a_drawing_fits_the_terminal(store: Store, width: int, colour: bool) -> None:
    fill(store, history(2, 30))
    for plot in plots(store):
        lines = list(Sketch(width, colour, printable).lines(plot))
        assert all(count_cells(shown(line)) <= width for line in lines), lines
        assert any("\x1b[" in line for line in lines) is colour or isinstance(plot, Bars)


def test_without_colour_there_is_no_escape_sequence(store: Store) -> None:
    fill(store, history(2, 30))
    for plot in plots(store):
        assert not any("\x1b" in line for line in Sketch(80, False, printable).lines(plot))


def test_longer_bars_are_larger_numbers() -> None:
    sketch = Sketch(80, False, printable)
    lengths = [len(sketch.bar(value, 100, 40)) for value in (0, 1, 50, 100)]
    assert lengths == [0, 1, 20, 40]


def test_a_spark_adds_up_what_does_not_fit() -> None:
    assert spark_line([0, 1, 2, 4], 10) == " ▃▅█"
    assert len(spark_line(list(range(1000)), 20)) == 20
    assert spark_line([], 10) == "" and spark_line([0, 0], 10) == ""


def hostile() -> list[Plot]:
    return [
        Heat(HOSTILE, HOSTILE, HOSTILE, [HOSTILE], [HOSTILE], [[3]]),
        Bars(HOSTILE, HOSTILE, HOSTILE, [PlotBar(HOSTILE, 3, 1)], HOSTILE),
        Calendar(HOSTILE, HOSTILE, date(2026, 1, 5), [1, 0, 2]),
    ]


def test_a_file_has_no_script_loads_nothing_and_is_well_formed(store: Store) -> None:
    fill(store, history(2, 30))
    for plot in [*plots(store), *hostile()]:
        for standalone in (True, False):
            text = plot_svg(plot, standalone)
            names = {element.tag for element in ElementTree.fromstring(text).iter()}
            assert names <= {f"{NS}{name}" for name in ("svg", "title", "text", "rect", "line", "style")}
            assert "\x1b" not in text and "\u202e" not in text and "<script" not in text
            assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
            assert not re.search(r"\son\w+=|style=|href|url\(", text)
            assert standalone or "<style" not in text
    whole = plot_page([*plots(store), *hostile()])
    assert "<script" not in whole and "http" not in whole.replace("http://www.w3.org/2000/svg", "").replace(
        "http-equiv", ""
    )


def test_hostile_names_are_harmless_on_a_terminal() -> None:
    for plot in hostile():
        for line in Sketch(80, False, lambda text: printable(text, "")).lines(plot):
            assert not {"\x1b", "\u202e"} & set(line)


def test_a_picture_says_the_numbers_in_words_too(store: Store) -> None:
    fill(store, [session("a", [[Made("Read")], [Made("Edit")]])])
    heat = transitions(store, AnalyticsScope())
    assert heat is not None
    titles = [element.text for element in ElementTree.fromstring(plot_svg(heat)).iter(f"{NS}title")]
    assert "Read → Edit: 1 of 1" in titles
