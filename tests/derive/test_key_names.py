"""Names of a session: found by their shape or in back quotes, counted by message, ranked by learnt weights."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.derive.commits import find_branch
from everturn.derive.key_names import (
    KeyName,
    NameCounter,
    NameSetting,
    advance_names,
    find_names,
    find_remote,
    is_name,
    name_shape,
    rank_names,
)
from everturn.model.conversation import CallStart

SETTING = NameSetting(messages=40, names=10, first_prompt=0, last_answer=39)


def test_names_are_known_by_their_shape_or_stand_in_back_quotes() -> None:
    text = "Call `quoteStr()` with `--local-time`, see max_retries in src/page/list.ts and open https://shop.test/cart now."
    assert find_names(text) == {
        "quoteStr()": True, "--local-time": True, "max_retries": False, "src/page/list.ts": False,
        "https://shop.test/cart": False,
    }  # fmt: skip
    assert find_names("Plain words (in brackets), A LOUD ONE, and an end.") == {}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("src/main.py", "path"), ("C:\\Users\\ann\\shop", "path"), ("main.py", "file"), ("10.0.0.7:8080", "ip"), ("1.3.14", "version"),
        ("ZONE_COUNT", "constant"), ("zone_count", "snake"), ("zoneCount", "camel"), ("port8080", "digits"), ("--dry", "flag"),
        ("go-live", "kebab"), ("a1b2c3d4", "hash"), ("make all", "spaced"), ("zone", ""),
    ],
)  # fmt: skip
def test_a_name_has_a_shape(name: str, shape: str) -> None:
    assert name_shape(name) == shape


def test_names_between_words_of_another_script_are_found() -> None:
    assert find_names("请使用zoneCount处理") == {"zoneCount": False}
    assert find_names("docs/设计.md を見て") == {"docs/设计.md": False}


@given(st.text(max_size=300))
def test_every_name_stands_in_the_text(text: str) -> None:
    assert all(name in text for name in find_names(text))


def test_names_are_counted_by_message_and_keep_their_first_and_last() -> None:
    counter = NameCounter()
    counter.add_message("use zoneCount and zoneCount", 2, is_prompt=True)
    counter.add_message("`zoneCount` is set", 3, is_prompt=False)
    counter.add_call(["src/zone.ts", "const zoneCount = 3"], 4)
    known = {one.text: one for one in counter.names()}
    assert known["zoneCount"] == KeyName("zoneCount", 2, 4, 1, 1, 1, True, crowd=1)
    assert known["src/zone.ts"] == KeyName("src/zone.ts", 4, 4, calls=1, crowd=2)


def test_turns_are_folded_and_what_was_used_least_is_dropped() -> None:
    names = advance_names({}, [KeyName("a_b", 1, 1, prompts=1), KeyName("c_d", 2, 2, calls=1)])
    names = advance_names(names, [KeyName("a_b", 5, 6, answers=2)])
    assert names["a_b"] == KeyName("a_b", 1, 6, 1, 2, turns=2)
    many = advance_names(names, [KeyName(f"n_{one}", 7, 7, calls=1) for one in range(2_000)])
    assert len(many) < 1_300 and "a_b" in many and "c_d" not in many


def test_what_both_sides_say_stands_before_what_only_calls_were_given() -> None:
    said = KeyName("zoneCount", 0, 39, prompts=2, answers=3, calls=2, quoted=True)
    called = KeyName("tempValue", 20, 20, calls=2)
    assert [one.text for one in rank_names([called, said], SETTING, 10)] == ["zoneCount", "tempValue"]


def test_the_names_of_a_family_give_way_to_others() -> None:
    family = [KeyName(f"vendor/chunk/part{one}.js", 10, 30, answers=3) for one in range(30)]
    other = KeyName("src/shop/cart.ts", 10, 30, answers=2)
    ranked = [one.text for one in rank_names([*family, other], SETTING, 40)]
    assert len(ranked) == 31 and ranked.index("src/shop/cart.ts") < 8


@pytest.mark.parametrize(
    "output",
    [
        "To github.com:ann/shop.git\n   1a2b..3c4d  main -> main",
        "origin\thttps://gitlab.com/ann/shop.git (fetch)",
        "To https://github.com/ann/shop\n * [new branch] x -> x",
    ],
)
def test_the_repository_is_found_in_what_version_control_says(output: str) -> None:
    assert find_remote(output) == "ann/shop"


def test_the_branch_is_read_from_what_git_says() -> None:
    assert find_branch("On branch feat/basket\nnothing to commit") == "feat/basket"
    assert find_branch("- **Git Branch:** 018-basket\n") == "018-basket"
    assert find_branch("Switched to a new branch 'fix-1'") == "fix-1"
    assert find_branch("[018-basket 8aafab2] Add the basket\n 1 file changed") == "018-basket"
    assert find_branch("nothing to commit") == "" and find_branch("[info] 12 files") == ""


def test_only_commands_that_talk_to_a_repository_name_it() -> None:
    counter = NameCounter()
    counter.add_repository("git clone https://github.com/bob/tool", "To github.com:bob/tool.git")
    assert counter.repository == ""
    counter.add_repository("git push origin main", "To github.com:ann/shop.git\n")
    assert counter.repository == "ann/shop"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("(shop_basket) and (kToken)", ["shop_basket", "kToken"]),
        ("export $SHOP_HOME and SHOP_PORT=$", ["SHOP_HOME", "SHOP_PORT"]),
        ("it costs $250K", ["$250K"]),
        ("<command-name>/set-up</command-name>", []),
    ],
)
def test_names_are_told_without_brackets_dollars_and_tags(text: str, names: list[str]) -> None:
    assert [one for one in find_names(text) if one not in ("export",)] == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (r"shop.sln\r\n2 and \n\nUse load_cart\\n\ now", ["shop.sln", "load_cart"]),
        (r"{\"cartId\": 1}", ["cartId"]),
        (r"X\rightarrow z_m=\operatorname 10\% shop\.cart", []),
        (r"C:\Users\ann\shop and src\cart\total.ts", [r"C:\Users\ann\shop", r"src\cart\total.ts"]),
        ('open "D:\\My Shop\\Old Data"', ["D:\\My Shop\\Old Data"]),
        ("see [the list](docs/list.md) and [cart.ts](cart.ts)", ["docs/list.md", "cart.ts"]),
        ("<path>src/cart.ts</path> src/list.ts</summary>", ["src/list.ts"]),
        ("12:19:src/cart.ts", ["src/cart.ts"]),
        ("feat/basketをmainに", ["feat/basket"]),
    ],
)
def test_names_are_whole_and_without_escapes(text: str, names: list[str]) -> None:
    assert list(find_names(text)) == names


def test_a_name_is_not_cut_where_a_long_text_is_cut() -> None:
    counter = NameCounter()
    counter.add_call([f"{'word ' * 318}src/basket/cart_total.py more"], 1)
    counter.add_message(
        f"{'a b ' * 998}cart_sum_one x {'a b ' * 3000} y cart_sum_two {'a b ' * 998}", 2, is_prompt=True
    )
    assert [one.text for one in counter.names()] == []


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        (KeyName("feature/cart", 1, 1, answers=3), False),
        (KeyName("feature/cart", 1, 2, answers=1, calls=1), True),
        (KeyName("12/0.99", 1, 1, answers=1), False),
        (KeyName("0.35", 1, 1, calls=4), False),
        (KeyName("0.35", 1, 3, answers=2), True),
        (KeyName("1840p", 1, 1, calls=1), False),
        (KeyName("https://git.test/tu-usuario/shop.git", 1, 5, answers=4, quoted=True), False),
        (KeyName("YOUR_API_KEY", 1, 5, answers=4, quoted=True), False),
        (KeyName("Shop/cart.py", 1, 5, answers=4), False),
        (KeyName("cart_total", 1, 1, calls=1, crowd=5), False),
        (KeyName("cart_total", 1, 2, calls=2, crowd=5), True),
        (KeyName("src/cart.py", 1, 1, calls=1, crowd=5), True),
        (KeyName("src/cart.py", 1, 1, calls=1, crowd=90), False),
        (KeyName("cart_total", 1, 1, prompts=1, crowd=90), False),
        (KeyName("cart_total", 1, 1, answers=1, quoted=True, crowd=90), True),
    ],
)
def test_a_name_is_used_twice_or_points_somewhere(name: KeyName, holds: bool) -> None:
    assert is_name(name, replace(SETTING, pieces=frozenset({"/home/ann/My", "Shop"}))) is holds


def make_ids(*results: tuple[str, dict[str, str], str]) -> dict[str, KeyName]:
    names: dict[str, KeyName] = {}
    for seq, (tool, told, output) in enumerate(results):
        counter, start = NameCounter(), CallStart(f"c{seq}", tool, input=told)
        counter.add_call(told.values(), seq)
        counter.add_result(start, output, seq)
        names = advance_names(names, counter.names())
    return names


def test_the_identifier_of_what_a_tool_made_is_a_name_until_another_replaces_it() -> None:
    made = ("Plan", {"when": "daily"}, "Planned job 4be77a10.")
    other = ("Plan", {"when": "daily"}, "Planned job 09fd31c2.")
    assert set(make_ids(made)) == {"4be77a10"}
    assert set(make_ids(made, other)) == {"4be77a10", "09fd31c2"}  # both exist
    assert set(make_ids(made, ("Drop", {"id": "4be77a10"}, "Dropped 4be77a10."), other)) == {"09fd31c2"}
    assert make_ids(("Plan", {}, "4be77a10 09fd31c2 77aa31f0")) == {}  # a list
