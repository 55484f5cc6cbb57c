"""Rules of a person that weights find: in lists, in long messages, behind commands, and in other languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.derive.decisions import (
    FIRST_CJK,
    LONGEST,
    MAX_LISTED,
    MEANING_OF,
    find_decisions,
    find_file_rules,
    item_leads,
    language_group,
    rule_features,
    sentence_mark,
)
from everturn.text.sentences import split_sentences

RULES = ("Never push to main.", "Only change the ferry table.", "do NOT add dependencies.")
CHATTER = ("The ferry leaves at noon.", "hello", "thanks, it looks nice", "what does the harbour log say?")


def rules_in(text: str) -> list[str]:
    return [one.text for one in find_decisions(text) if one.binds]


def features_of(text: str) -> list[list[str]]:
    sentences = list(split_sentences(text))
    return list(rule_features(text, sentences, [sentence_mark(one) for one in sentences]))


def test_items_of_a_list_of_prohibitions_are_told_with_the_line_above() -> None:
    text = "Add the ferry page.\n\nDo NOT:\n- remove the harbour page\n- touch the tide tables\n"
    assert rules_in(text) == ["Do NOT: remove the harbour page", "Do NOT: touch the tide tables"]


def test_a_rule_told_in_a_list_or_in_a_sentence_is_the_same_rule() -> None:
    (listed,) = rules_in("Do NOT:\n- remove the harbour page\n")
    assert listed.replace(":", "").lower() == rules_in("do NOT remove the harbour page")[0].lower()


def test_only_items_have_a_line_above() -> None:
    text = "Avoid:\n- ropes\n- chains\n\nThe end.\n- knots\n"
    assert item_leads(list(split_sentences(text))) == ["", "Avoid:", "Avoid:", "", ""]


STEPS = "\n".join(f"- You MUST write pier {number} and NEVER ask the user for more." for number in range(40))
BODY = "## User Input\n\n```text\n{}\n```\n\nYou **MUST** consider the user input.\n\n## Outline\n\n" + STEPS


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_of_the_body_of_a_command_what_was_typed_behind_it_counts(end: str) -> None:
    typed = BODY.format("Never change the tide tables.").replace("\n", end)
    assert rules_in(typed) == ["Never change the tide tables."]
    assert rules_in(BODY.format("$ARGUMENTS")) == []


def test_what_the_body_of_a_command_lists_is_a_rule_of_the_command_and_not_of_the_person() -> None:
    body = BODY.format("Add a ferry.") + "\n\n## Key rules\n\n- Use absolute paths\n- ERROR on a missing pier\n"
    assert rules_in(body) == []


def test_a_list_under_a_line_that_demands_is_rules_as_a_whole() -> None:
    text = "Plan the harbour.\n\nThe plan must include:\n1) a table of piers\n2) the costs of each pier\n\nThe end."
    assert rules_in(text) == ["The plan must include: a table of piers", "the costs of each pier"]


def test_of_an_instruction_file_what_is_strict_counts_and_all_of_a_short_one() -> None:
    head = "# AGENTS.md instructions for /harbour\n\n<INSTRUCTIONS>\n{}\n</INSTRUCTIONS>"
    assert [one.text for one in find_file_rules(head.format("Answer in German\nWrite short sentences"))] == [
        "Answer in German",
        "Write short sentences",
    ]
    long = (
        "# Harbour\n\n"
        + "The ferry leaves at noon. " * 40
        + "\n\n- Never dredge at night\n\n## Skills\n\nAlways ask.\n"
    )
    assert [one.text for one in find_file_rules(head.format(long))] == ["Never dredge at night"]
    assert find_file_rules("<environment_context>Never sail.</environment_context>") == []


@pytest.mark.parametrize(
    "text",
    [
        "No funciona la lista de barcos",
        "No se ve el horario",
        "No has cambiado el puerto",
        "Não aparece a lista de barcos",
    ],
)
def test_a_report_that_begins_with_no_is_no_rule(text: str) -> None:
    assert rules_in(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "不要修改数据库，只改前端",
        "必须使用 TypeScript，不要用 any",
        "既存のコードは変更しないでください",
        "Bitte niemals auf main pushen.",
        "N'utilise jamais de bibliothèque externe.",
        "No uses librerías externas, solo JavaScript.",
        "Não use bibliotecas externas, apenas JavaScript.",
    ],
)
def test_a_prohibition_in_another_language(text: str) -> None:
    assert rules_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "Please answer in German.",
        "请使用中文回答",
        "日本語で回答してください",
        "répondez en français",
        "Responde en español",
        "отвечай на русском",
    ],
)
def test_the_language_of_answers_is_a_rule(text: str) -> None:
    assert rules_in(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("never use mocks", "不要使用 mocks"),
        ("only use mocks", "nur mocks verwenden"),
        ("keep the mocks", "conserva mocks"),
        ("like the mocks", "参考 mocks"),
    ],
)
def test_words_of_several_languages_have_the_same_meaning(one: str, other: str) -> None:
    meant = [
        {name for name in features_of(text)[0] if name.startswith("@") and " " not in name} for text in (one, other)
    ]
    assert meant[0] & meant[1]


@pytest.mark.parametrize(
    "text",
    [
        "Add the ferry page without breaking the harbour page.",
        "Asegurate de no romper nada",
        "ask me if something is not clear",
        "修改：地图里的字都要保持一个大小，不要变",
        "You are a friend of the harbour. Never change the tide tables.",
    ],
)
def test_a_wish_that_holds_on_is_a_rule_however_it_is_put(text: str) -> None:
    assert rules_in(text)


@pytest.mark.parametrize("text", ["El botón no funciona.", "Лодка не работает", "no carga nada", "列表不显示了"])
def test_a_report_of_trouble_is_no_rule(text: str) -> None:
    assert rules_in(text) == []


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("Please add the ferry to the list.", "english"),
        ("Bitte füge die Fähre in die Liste ein.", "latin"),
        ("Добавь паром в список", "cyrillic"),
        ("把渡轮加到列表里", "wide"),
        ("", "english"),
    ],
)
def test_the_language_of_a_message_is_told_by_its_letters_and_frequent_words(text: str, group: str) -> None:
    assert language_group(text) == group


def test_the_table_of_meanings_can_be_looked_up_by_the_words_of_a_sentence() -> None:
    assert all(word == word.lower() and " " not in word for word in MEANING_OF)
    assert all(len(word) <= 2 for word in MEANING_OF if word >= FIRST_CJK)
    assert all(3 <= len(word) - 1 <= 7 for word in MEANING_OF if word.endswith("*"))


@given(st.lists(st.sampled_from((*RULES, *CHATTER)), max_size=30), st.sampled_from(("\n\n", "\n- ")))
def test_rules_are_words_of_the_message_in_their_order_and_each_once(parts: list[str], between: str) -> None:
    text = between.join(parts)
    found = rules_in(text)
    assert len(found) <= MAX_LISTED and len({one.lower() for one in found}) == len(found)
    assert all(one in text for one in found)
    assert [one for one in found if one in RULES] == list(dict.fromkeys(one for one in parts if one in RULES))
    assert find_decisions(text) == find_decisions(text)


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    sentences = list(split_sentences(text))
    assert len(features_of(text)) == len(sentences) == len(item_leads(sentences))
    assert all(one.text and (len(one.text) <= 2 * LONGEST) for one in find_decisions(text))


@given(st.lists(st.sampled_from(CHATTER), max_size=12))
def test_without_a_likely_rule_nothing_beside_it_counts(parts: list[str]) -> None:
    assert rules_in("\n\n".join(parts)) == []
