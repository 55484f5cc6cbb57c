"""The words of a person: told apart from pasted text, and joined to what they answer."""

from __future__ import annotations

import pytest

from everturn.derive.intent import (
    adds_work,
    asks_for_work,
    body_purpose,
    command_words,
    goal_words,
    is_approval,
    is_routine_request,
    is_thanks,
    own_words,
    read_command,
    says_nothing_new,
    word_count,
)
from everturn.text.printable import count_cells, fit_parts, fit_request, orders_work


def test_own_words_leave_out_what_was_pasted() -> None:
    text = "The build breaks:\n```\nerror: no rule\n```\n2026-01-02 10:00:00 ERROR boom\nFix the Makefile."
    assert own_words(text) == "The build breaks: Fix the Makefile."


def test_own_words_leave_out_front_matter() -> None:
    assert own_words("---\ntitle: Shop\nowner: ann\n---\nAdd a basket.") == "Add a basket."


def test_a_slash_command_is_said_with_its_arguments() -> None:
    text = "<command-name>/plan-phase</command-name>\n<command-args>14 basket</command-args>"
    assert command_words(text) == "/plan-phase 14 basket"
    assert command_words("<command-name>/clear</command-name><command-args></command-args>") == ""


@pytest.mark.parametrize(
    "text",
    [
        "add a basket to the shop",
        "@README.md を最新の状態にしてください",
        "/plan-phase 14",
        "can you drop a file called a.txt here",
    ],
)
def test_a_request_asks_for_work(text: str) -> None:
    assert asks_for_work(text)


@pytest.mark.parametrize(
    "text", ["hi", "hello there my friend", "what model are you?", "continue", "which tasks are open?"]
)
def test_small_talk_and_a_look_are_not_the_goal(text: str) -> None:
    assert not asks_for_work(text)


def test_wide_characters_count_as_half_a_word() -> None:
    assert word_count("テストを書く") == 3


def test_the_goal_of_a_document_for_an_agent_is_its_order() -> None:
    text = "# Context\n\nYour name is Kim, an agent of the shop.\n\n" + "Background of the shop.\n\n" * 80
    text += "## Instructions\n\nProcess the first open task of the list.\n"
    assert goal_words(text) == "Process the first open task of the list."


def test_the_goal_of_a_plan_is_its_title() -> None:
    plan = "Implement the following plan:\n\n# Baskets that expire\n\n" + "A step of the plan with details.\n" * 100
    assert goal_words(plan).startswith("Implement the following plan: Baskets that expire")


@pytest.mark.parametrize(
    "text", ["yes", "Yes, please.", "go ahead", "ok", "LGTM", "ja, bitte", "oui", "dale", "はい", "好的", "可以"]
)
def test_a_bare_approval_is_recognised(text: str) -> None:
    assert is_approval(text)


@pytest.mark.parametrize("text", ["yes but use Redis", "no", "go home", "okapi"])
def test_other_replies_are_more_than_an_approval(text: str) -> None:
    assert not is_approval(text)


@pytest.mark.parametrize("text", ["Great, thanks for your help!", "danke", "Merci !", "gracias", "ありがとう", "谢谢"])
def test_thanks_ask_for_nothing(text: str) -> None:
    assert is_thanks(text)
    assert not is_thanks(f"{text} but please run the tests too")


@pytest.mark.parametrize(
    "text", ["commit", "ok, push it", "Commit the changes", "please continue", "yes", "weiter", "提交"]
)
def test_a_routine_request_says_nothing_about_the_work(text: str) -> None:
    assert is_routine_request(text)


@pytest.mark.parametrize("text", ["Use version 1.105.0", "commit the three findings in separate commits, tests first"])
def test_a_request_that_says_how_is_none(text: str) -> None:
    assert not is_routine_request(text)


# --- what a long prompt asks for ---
def test_the_goal_of_a_specification_is_its_title_and_what_it_describes() -> None:
    text = "# Harbour — Complete Build Specification\n# Logic and tests\n\n## Read first\n\n1. https://example.org/docs\n\n"
    text += (
        "### One-Line Description\nA booking service for small boats.\n\n## Part 2\n\n"
        + "Create a berth with status OPEN.\n\n" * 300
    )
    assert goal_words(text) == "Harbour — Complete Build Specification A booking service for small boats."


def test_a_pasted_log_is_named_by_its_command_and_its_error() -> None:
    log = "C:\\work\\shop>mvn clean install\n" + "[INFO] Scanning for projects...\n" * 8
    log += "[ERROR] Child module web does not exist\n\nC:\\work\\shop>"
    assert goal_words(log) == "pasted: mvn clean install: [ERROR] Child module web does not exist"
    assert not adds_work(goal_words(log))


@pytest.mark.parametrize(
    "asked", ["why does the build stop here?", "请修复这个错误", "このエラーを直してください", "arregla esto por favor"]
)
def test_words_below_a_pasted_log_are_the_request(asked: str) -> None:
    log = "PS C:\\work\\shop> docker compose up\n" + "[ERROR] port is taken\n" * 8 + "Deleting build...\n" * 4
    assert goal_words(f"{log}\nPS C:\\work\\shop>\n{asked}") == asked


def test_an_error_that_a_program_wrote_down_asks_for_nothing() -> None:
    text = (
        "## Error Type\n\nBuild Error\n\n## Error Message\n\nMove the directive to the top of the file.\n\n"
        + "at page (app.tsx:1:2)\n" * 20
    )
    assert goal_words(text).startswith("pasted: ") and not adds_work(goal_words(text))


@pytest.mark.parametrize(
    "text", ["implement tasks T128-T145", "build docs/plan.md phase 3", "remove comments everywhere"]
)
def test_a_short_order_that_names_its_subject_asks_for_work(text: str) -> None:
    assert asks_for_work(text) and adds_work(text)


def test_a_prompt_that_is_all_a_quote_is_the_request() -> None:
    assert (
        goal_words("> Add baskets to the shop,\n> then write the docs.")
        == "Add baskets to the shop, then write the docs."
    )


def test_the_argument_of_a_command_is_what_the_person_typed() -> None:
    rest = "You **MUST** consider the user input.\n\n## Outline\n\nGoal: Find gaps in the specification.\n\n1. Run `setup.sh`.\n"
    given = "## User Input\n\n```text\nBuild a shop for used books.\n```\n\n" + rest
    assert goal_words(given) == "Build a shop for used books."
    empty = "## User Input\n\n```text\n\n```\n\n" + rest
    assert goal_words(empty) == "by command: Find gaps in the specification."
    assert not adds_work(goal_words(empty))
    described = f"---\nname: gaps\ndescription: Find what a specification leaves out.\n---\n{empty}"
    assert goal_words(described) == "by command: Find what a specification leaves out."


@pytest.mark.parametrize(
    ("asked", "filler"),
    [
        ("I want you to research ticket vendors.", "The harbour is old and has many berths. "),
        ("Bitte schreibe ein Werkzeug für Tickets.", "Der Hafen ist alt und hat viele Liegeplätze. "),
        ("Je voudrais un outil pour les billets.", "Le port est vieux et il a des quais. "),
        ("Necesito una herramienta para billetes.", "El puerto es viejo y tiene muelles. "),
        ("Preciso de uma ferramenta para bilhetes.", "O porto é velho e tem cais. "),
        ("チケットの一覧を作成してください。", "港は古くて大きい。"),
        ("请帮我写一个订票工具。", "港口很旧也很大。"),
        ("티켓 목록을 만들어 주세요.", "항구는 오래되었다. "),
    ],
)  # fmt: skip
def test_a_long_request_keeps_the_sentence_that_asks(asked: str, filler: str) -> None:
    text = f"{filler * 20}{asked} {filler * 20}".strip()
    shown = fit_request(text, 200)
    assert asked in shown and count_cells(shown) <= 200
    assert orders_work(asked) and not orders_work(filler)


def test_a_request_without_full_stops_is_shown_from_the_words_that_ask() -> None:
    text = (
        "so the harbour is old and we have many boats " * 8
        + "and i want you to list the berths "
        + "that are free " * 30
    )
    shown = fit_request(text.strip(), 120)
    assert shown.startswith("…") and "i want you to list the berths" in shown and shown.endswith("…")
    assert count_cells(shown) <= 120


def test_a_cut_never_ends_within_a_word() -> None:
    assert fit_request("Send it to " + "x" * 300, 100) == "Send it to…"


def test_all_numbered_parts_of_a_request_are_kept() -> None:
    parts = [f"{n}. change page {n} " + "with many more words " * 20 for n in range(1, 7)]
    shown = fit_parts("Some changes: " + " ".join(parts), 600)
    assert all(f"{n}. change page {n}" in shown for n in range(1, 7)) and count_cells(shown) <= 620
    assert fit_parts("version 2.0 of 3 files", 600) == ""
    assert fit_parts("1. add a 2. drop b", 600) == "1. add a 2. drop b"


@pytest.mark.parametrize(
    "text",
    ["It's working GREAT!", "thanks", "Cancelled", "continue", "works perfectly now", "weiter", "funktioniert super", "ça marche bien",
     "ya funciona", "funcionou", "完璧です", "動きました", "太好了", "继续", "계속해줘", "continue where you left off", "vas-y", "はい"],
)  # fmt: skip
def test_praise_thanks_and_a_word_to_go_on_say_nothing_new(text: str) -> None:
    assert says_nothing_new(text)


@pytest.mark.parametrize(
    "text",
    ["It works but the header is gone", "great, now add a footer", "good morning plan", "works only on Linux", "continue with the basket page", "funktioniert nicht", "ça marche pas", "no funciona", "不行"],
)  # fmt: skip
def test_a_report_or_a_request_is_more_than_praise(text: str) -> None:
    assert not says_nothing_new(text)


# --- prompts that hold the text of a command ---
_TEMPLATE = 'You **MUST** consider the user input before proceeding (if not empty).\n\n## Outline\n\n1. **Setup**: Run `setup.sh`.\n2. If empty: ERROR "nothing given"\n'


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "template",
    [
        "\n## User Input\n\n```text\n{}\n```\n\n" + _TEMPLATE,
        "# Ferry\n\n<user_request>{}</user_request>\n\n" + _TEMPLATE,
        "# Ferry rules\n\nKeep the decks dry.\n\n" + _TEMPLATE + "\n\nARGUMENTS: {}",
        "# Context from my IDE setup:\n\n## Open tabs:\n- deck.py: src/deck.py\n\n## My request for Codex:\n{}\n",
        "{}\n\n--- Cursor Command: ferry.md ---\n# Ferry\n\n" + _TEMPLATE,
    ],
)
@pytest.mark.parametrize(
    "typed", ["Show the original picture beside the list of cars", "読み取り元画像を結果の横に表示するよう修正"]
)
def test_what_was_typed_for_a_command_is_the_goal_wherever_the_template_puts_it(
    template: str, typed: str, end: str
) -> None:
    prompt = template.format(typed).replace("\n", end)
    found = read_command(prompt.replace("\r\n", "\n"))
    assert found is not None and found.typed == typed
    assert goal_words(prompt.replace("\r\n", "\n")) == typed


def test_a_command_that_was_given_nothing_is_told_by_its_name_and_purpose() -> None:
    text = (
        "---\ndescription: Write a plan from the specification.\n---\n\n## User Input\n\n```text\n$ARGUMENTS\n```\n\n"
        + _TEMPLATE
    )
    assert goal_words(text) == "by command: Write a plan from the specification."
    named = text + "\nThe text the user typed after `/ferry.plan` is the plan.\n"
    assert goal_words(named) == "by command: /ferry.plan: Write a plan from the specification."


def test_a_command_with_few_words_is_told_with_what_it_is_for() -> None:
    text = "/moor \n\n--- Cursor Command: moor.md ---\n# Moor\n\nBrings a boat to its berth and ties it.\n\n## Usage\n\n`@moor [berth]`\n"
    assert goal_words(text) == "/moor → Moor: Brings a boat to its berth and ties it."


@pytest.mark.parametrize(
    "text",
    [
        "Why does `$ARGUMENTS` stay in the prompt that is sent?",
        "Add a heading\n\n## User Input\n\nto the form, please.",
        "Two things:\n\n---\n\n1. fix the tests\n2. push",
    ],
)
def test_a_prompt_that_speaks_of_commands_is_none(text: str) -> None:
    assert read_command(text) is None


@pytest.mark.parametrize(
    ("text", "purpose"),
    [
        ("# Plan: Keep failed berths\n\n## TL;DR\nWhen a berth fails, keep its boats.\n\n## Step 1\n", "Plan: Keep failed berths: When a berth fails, keep its boats."),
        ("Base directory for this skill: /home/ann/x\n\n# Asking for a review\n\nStart the reviewer to find faults early.\n", "Asking for a review: Start the reviewer to find faults early."),
        ("<objective>\nList all open tasks and pick one.\n</objective>\n\n# [title]\n\nmore text here for nobody\n", "List all open tasks and pick one."),
        ("You are a harbour master. Your task is to find a free berth for every boat.\n\n## Workflow\n\n1. Look around.\n", "Your task is to find a free berth for every boat."),
    ],
)  # fmt: skip
def test_a_document_says_in_a_line_what_it_is_for(text: str, purpose: str) -> None:
    assert body_purpose(text) == purpose
