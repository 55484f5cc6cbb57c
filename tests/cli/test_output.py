"""Output: data on stdout, words on stderr, nothing that a terminal would act on."""

from __future__ import annotations

import io
import json

import pytest

from everturn.cli.output import Output
from everturn.sessions.secrets import make_key
from everturn.store.contract import open_store
from everturn.text.printable import to_json

TOKEN = "gh" + "p_" + "Zq3vN8xT1mK5pW7rY2cB4dF6gH9jL0sAeUiO"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def made(env: dict[str, str] | None = None, terminal: bool = False, reveal: bool = False) -> Output:
    stream = Terminal if terminal else io.StringIO
    return Output(stdout=stream(), stderr=stream(), env={"COLUMNS": "60", **(env or {})}, reveal=reveal)


def shown(out: Output) -> str:
    assert isinstance(out.stdout, io.StringIO)
    return out.stdout.getvalue()


def said(out: Output) -> str:
    assert isinstance(out.stderr, io.StringIO)
    return out.stderr.getvalue()


def test_json_has_a_schema_items_and_a_next() -> None:
    out = made()
    out.emit_json("words", ({"n": n} for n in range(2)), next="c", total=9)
    answer = json.loads(shown(out))
    assert answer == {"schema": "everturn/words@1", "total": 9, "items": [{"n": 0}, {"n": 1}], "next": "c"}
    assert shown(out).count("\n") == 1


def test_the_end_of_the_pages_is_null() -> None:
    out = made()
    out.emit_json("words", [], next="")
    assert json.loads(shown(out))["next"] is None


@pytest.mark.parametrize("nasty", ["\x1b]0;x\x07", "\x9b31m", "\u202egnp.exe", "\x7f", "\x00", "\ud83d"])
def test_no_active_character_gets_out_raw(nasty: str) -> None:
    out = made()
    out.emit_json("words", [nasty])
    out.emit(out.text(nasty))
    out.table(("a", "b"), [(nasty, "x")])
    assert nasty not in shown(out)
    assert json.loads(shown(out).splitlines()[0])["items"] == [nasty]


def test_secrets_are_masked_unless_revealed() -> None:
    out = made()
    out.emit_json("words", [{"text": ["a", TOKEN]}])
    out.emit(out.text(TOKEN))
    out.table(("a",), [(TOKEN,)])
    assert TOKEN not in shown(out)
    out = made(reveal=True)
    out.emit_json("words", [TOKEN])
    out.emit(out.text(TOKEN))
    assert shown(out).count(TOKEN) == 2


def test_json_masks_values_and_leaves_keys() -> None:
    assert json.loads(to_json({"k": "v", "l": [1, None, True]}, str.upper)) == {"k": "V", "l": [1, None, True]}


def test_a_pipe_gets_aligned_columns_also_with_wide_characters() -> None:
    out = made()
    out.table(("id", "words", "n"), [("a", "会话", "7"), ("bcd", "plain", "12")], right=[2])
    assert shown(out).splitlines() == ["ID   WORDS   N", "a    会话    7", "bcd  plain  12"]


def test_a_terminal_gets_a_table_that_fits() -> None:
    out = made({"COLUMNS": "30"}, terminal=True)
    out.table(("id", "words"), [("a", "[bold]x[/bold] " * 9)])
    assert "[bold]x[/bold]" in shown(out)
    assert max(map(len, _plain(shown(out)).splitlines())) <= 30


def test_colour_follows_the_usual_variables() -> None:
    rows = [("a", "b")]
    seen = {}
    for name, env, terminal in [
        ("pipe", {}, False),
        ("forced", {"FORCE_COLOR": "1"}, False),
        ("terminal", {"TERM": "xterm"}, True),
        ("dumb", {"TERM": "dumb"}, True),
        ("none", {"TERM": "xterm", "NO_COLOR": "1"}, True),
    ]:
        out = made(env, terminal)
        out.table(("x", "y"), rows)
        seen[name] = "\x1b[" in shown(out)
    assert seen["forced"] and seen["terminal"] and not seen["pipe"] and not seen["dumb"]
    out = made({"TERM": "xterm", "NO_COLOR": "1"}, terminal=True)
    out.table(("x", "y"), rows)
    assert not any(f"\x1b[{code}" in shown(out) for code in ("3", "4", "9"))


def test_progress_is_for_terminals_only() -> None:
    out = made()
    with out.progress("reading", 2) as step:
        step(1, "a.txt")
        step(2)
    assert said(out) == "" and shown(out) == ""


def test_progress_rewrites_one_line_and_leaves_nothing() -> None:
    out = made(terminal=True)
    with out.progress("reading", 2) as step:
        step(2, "a\x1b[2J.txt" + "x" * 99)
        out.say("words")
    frames = said(out).split("\r\x1b[K")
    assert frames[1].startswith("reading 2/2  a") and len(frames[1]) < 60 and "\x1b" not in frames[1]
    assert frames[2] == "words\n"
    assert said(out).endswith("words\n")


def test_words_go_to_stderr() -> None:
    out = made()
    out.say("hello")
    out.warn("look")
    assert (shown(out), said(out)) == ("", "hello\neverturn: look\n")


def _plain(text: str) -> str:
    import re

    return re.sub("\x1b\\[[0-9;]*m", "", text)


def test_on_a_narrow_terminal_only_the_last_column_is_cut() -> None:
    stdout = io.StringIO()
    out = Output(stdout=stdout, env={"FORCE_COLOR": "1", "COLUMNS": "60", "NO_COLOR": "1"})
    out.table(("session", "when", "about"), [("0123abcd", "3 months ago", "a very long title " * 20)])
    line = stdout.getvalue().splitlines()[-1]
    assert line.startswith("0123abcd")
    assert "3 months ago" in line
    assert len(line) <= 60


def test_what_is_said_is_masked_too() -> None:
    out = made()
    out.say(f"could not take in /tmp/{TOKEN}.jsonl")
    out.warn(f"postgresql://me:{'hunter' + '2!x'}@db/x is locked")
    assert TOKEN not in said(out) and "hunter2" not in said(out) and said(out).count("[REDACTED:") == 2
    out = made(reveal=True)
    out.say(TOKEN)
    assert TOKEN in said(out)


def test_the_key_of_the_archive_joins_equal_secrets_on_every_stream() -> None:
    out = made()
    out.archive = open_store("memory:")
    make_key(out.archive)
    out.emit(out.text(TOKEN))
    out.emit_json("words", [TOKEN])
    out.say(TOKEN)
    stand_in = out.clean(TOKEN)
    assert stand_in.startswith("[REDACTED:github_token:")
    assert shown(out).count(stand_in) == 2 and stand_in in said(out)
    out.archive.close()


def test_on_a_very_narrow_terminal_columns_of_words_give_way_and_numbers_and_ids_do_not() -> None:
    stdout = io.StringIO()
    out = Output(stdout=stdout, env={"FORCE_COLOR": "1", "COLUMNS": "60", "NO_COLOR": "1"})
    columns = ("session", "when", "turns", "workspace", "about")
    row = ("0123abcd", "3 months ago", "12,345", "worktrees/heuristic-robinson-e44709", "a very long title " * 20)
    out.table(columns, [row], right=(2,))
    lines = stdout.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert (
        lines[-1].startswith("0123abcd")
        and "12,345" in lines[-1]
        and "worktrees/" in lines[-1]
        and "a very" in lines[-1]
    )


def test_json_without_texts_of_the_archive_needs_no_rules_for_secrets() -> None:
    out = Output(json=True, stdout=io.StringIO())
    out.emit_json("sync", [], report={"files": 2, "failed": []})
    assert "cleaner" not in vars(out)
