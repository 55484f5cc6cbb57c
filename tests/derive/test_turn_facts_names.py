"""Names of code: found by back quotes or shape, counted by message."""

from __future__ import annotations

from everturn.derive.turn_facts import CodeName, advance_names, find_code_names
from everturn.derive.version_control import find_branch


def test_names_are_found_in_quotes_and_by_their_shape() -> None:
    text = "Call `quoteStr()` with `--local-time` after max_retries; PageSize stays. See `src/a.py` and `b.md`, not `two words`."
    assert find_code_names(text) == ["quoteStr()", "--local-time", "max_retries", "PageSize"]
    assert find_code_names("Plain words, a URL https://example.org/some_page and 12.5") == []


def test_the_branch_is_read_from_what_git_says() -> None:
    assert find_branch("On branch feat/basket\nnothing to commit") == "feat/basket"
    assert find_branch("- **Git Branch:** 018-basket\n") == "018-basket"
    assert find_branch("Switched to a new branch 'fix-1'") == "fix-1"
    assert find_branch("[018-basket 8aafab2] Add the basket\n 1 file changed") == "018-basket"
    assert find_branch("nothing to commit") == "" and find_branch("[info] 12 files") == ""


def test_messages_are_counted_and_the_last_one_comes_last() -> None:
    names = advance_names({}, [CodeName("a_b", 1), CodeName("c_d", 2), CodeName("a_b", 3)])
    assert list(names.values()) == [CodeName("c_d", 2), CodeName("a_b", 3, 2)]
    many = advance_names(names, [CodeName(f"n_{one}", 4) for one in range(1_000)])
    assert len(many) == 400 and "a_b" not in many
