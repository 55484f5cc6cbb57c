"""What a person says does not work."""

from __future__ import annotations

import pytest

from everturn.derive.failures import find_complaint, hear_report, is_confirmation


@pytest.mark.parametrize(
    "text",
    [
        "it still crashes when I click save",
        "CI is red",
        "the icon is not visible in the store",
        "Nope, I don't see it in the list.",
        "better but still no stats, why?",
        "when I run this, I see no stats",
        "this still isnt right, it should compare to main",
        "publish to npm failed, https://example.org/runs/1",
        "lint and test failures :(",
        "The release pipeline fails because of a recent change.",
        "I get this error:\n```\nTypeError: x\n```",
        "it seems this isn't part of the release artifacts",
        "when the token has expired, the page remains stuck in `loading`",
        "looks like 021 hasnt been updated to the correct path",
        "the string now breaks because we strip escapes",
        "❯ ./run.sh\n[+] building 12 of 12\nError: failed to solve: exit code 1",
        'why all these?\n[{\n"severity": 8,\n"message": "Parsing error: unexpected token",\n}]',
        "Der Build schlägt immer noch fehl.",
        "The drawer does not close behind the guest.",
        "I'm not seeing any rooms in the list.",
        "The counter never updates and the spinner keeps turning.",
        'why am I getting a "no such room" error',
        "There's a parse error in the second table.",
        "multiple errors in the console: see below",
        "You broke the lobby again.",
        "None of these edits worked",
        "The text still scales with the window.",
        "the list of rooms is empty",
        "Most pictures don't load.",
        "Uncaught TypeError: room is undefined\n    at open (room.js:3:7)",
        '  File "hotel.py", line 3, in open\n  File "room.py", line 9, in book\nKeyError: 7',
        "here you go\nFailed to compile.\n./src/room.tsx",
        "Das geht immer noch nicht.",
        "Ça ne marche toujours pas.",
        "La prueba sigue fallando.",
        "I still don't see the harbour in the menu",
        "There are two issues here: the price and the name",
        "ok, so the lamps are too dark",
        "When I open the cabin list I get this error: no such deck",
        "why is there an empty row for each ferry?",
        "the ferry icon disappears after a second",
        "you removed the timetable from the page",
        "so this is not the case.",
        "An error occurs on the pier page",
        "this clearly didn't fix the ferry list",
        "GET http://localhost:4000/api/ferries 429 (Too Many Requests)",
        "## Error Type\nConsole Error\n\n## Error Message\nFailed to fetch ferries: 404\n\n## Code\n12 | return",
        "error: Your local changes to the following files would be overwritten by merge:\n\tpier.py",
        "In der Liste fehlt die Fähre",
        "le quai n'apparaît pas dans la liste",
        "la lista de muelles está vacía",
        "まだ動きません",
        "一覧に何も出ません",
        "表示が崩れています",
        "还是报错",
        "码头列表没有显示",
        "编译后丢失了很多插件，检查一下",
        "为什么这里还显示旧的码头",
    ],
)
def test_a_complaint_is_found(text: str) -> None:
    assert find_complaint(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Make sure it does not crash on empty input.",
        "If the upload fails, show a message.",
        "Handle the case when the request fails with 500.",
        "It should not load twice.",
        "Don't open the file yet.",
        "Add a test that fails when the name is empty.",
        "Does it fail when offline?",
        "We want to fail fast here.",
        "Good addition of events when session creation fails, providing feedback.",
        "A command that did not work once will not work again unless you change it!",
        "```\nit crashes\n```",
        'Maybe also make an entry on "Hey, this does not render anymore".',
        "❯ ./run.sh\n12 passed, 0 errors",
        "seems like you are stuck?",
        "Why isn't the key required?",
        "didn't we rename it last week?",
        "The file doesn't need a header.",
        "It is not great, but fine.",
        "My question is, why the folder isn't shown there",
        "You have the files with the errors.",
        "Remove the placeholders so the guest doesn't see them.",
        "The error is gone.",
        "fix the settings so prices are not tracked",
        "Shorten it in a way that still captures the point.",
        "I'm still not sure which one it is.",
        "I actually can't remember the number.",
        "Log the prices and the rooms, never keys or names.",
        "I will take the small room since that does not cost much.",
        "Deleting the booking later won't cancel the mail.",
        "Rooms are added later. " * 40 + "The drawer does not close.",
        "Füge einen Test hinzu, falls der Aufruf fehlschlägt.",
        "Yes please tweak the page to show each error in a banner.",
        "Why is the second pier needed?",
        "Why are you writing ferries?",
        "Are the ferries still running",
        "I looked at the pier, but I see no issue there.",
        "I don't see why we need a harbour.",
        "You can drop the lamps if they are too dark.",
        "Redesign the pier, so the boat doesn't hit it.",
        "看一下这个写法对不对",
        "不会每次都创建一个新函数吧?",
        "避免出现错误，添加检查",
        "如果失败了请重试",
        "エラーが出た場合は再試行してください",
        "commit",
        "",
    ],
)
def test_wishes_conditions_and_questions_are_no_complaints(text: str) -> None:
    found = find_complaint(text)
    assert found is None or not found.sure


def test_what_may_be_a_report_is_not_sure() -> None:
    found = find_complaint("The file doesn't need a header.")
    assert found is not None and not found.sure
    assert hear_report("The file doesn't need a header.") == (found, False)


def test_a_short_message_is_kept_whole_and_of_a_long_one_what_follows_the_complaint() -> None:
    found = find_complaint("Two piers were drawn. The map crashes. The second pier is new.")
    assert found is not None and found.text == "Two piers were drawn. The map crashes. The second pier is new."
    found = find_complaint(f"{'Ships come and go. ' * 30}\n\nThe map crashes. It shows half of the second pier.")
    assert found is not None and found.text == "The map crashes. It shows half of the second pier."


def test_a_complaint_says_what_would_show_that_it_is_over() -> None:
    found = find_complaint("lint and test failures :(")
    assert found and found.kinds == ("lint", "test")
    found = find_complaint("`shop explain` is just bombing out with an error")
    assert found and found.commands == ("shop explain",)
    found = find_complaint("On the server it fails with:\n\n```\nTrust required\n```\nFix it.")
    assert found and found.detail == "Trust required"
    found = find_complaint("It still crashes.")
    assert found and found.again


@pytest.mark.parametrize(
    "text",
    ["works now", "That works, thanks", "Great, now the footer", "it's fixed", "Perfekt", "Jetzt klappt es, es funktioniert jetzt", "ça marche", "ya funciona", "直りました", "可以了"],
)  # fmt: skip
def test_a_confirmation_is_found(text: str) -> None:
    assert is_confirmation(text)


@pytest.mark.parametrize(
    "text",
    ["good, but the stats are empty", "does it work now?", "make sure it works", "it works only on Linux", "commit", "Good morning", "great! do that for me", "ça marche pas", "Release version 2"],
)  # fmt: skip
def test_praise_with_a_but_is_none(text: str) -> None:
    assert not is_confirmation(text)


@pytest.mark.parametrize(
    ("text", "complains", "confirms"),
    [
        ("Tested and working. The lobby is empty though.", True, True),
        ("great. mostly working now, but I don't see the rooms", True, True),
        ("The rooms work as before, but I cannot see the price.", True, True),
        ("The error is gone. Could the button be blue?", False, True),
        ("$ pytest tests/rooms\n6 passed in 0.1s", False, True),
        ("Thanks, but it still crashes.", True, False),
        ("It works on my phone? I don't see it.", True, False),
        ("I worked on the rooms. They don't load.", True, False),
        ("make it work on my phone, please", False, False),
        ("nice, now do the same for weeks: only show the open ones", False, True),
        ("now they appear, but they wont disappear", True, False),
    ],
)
def test_a_prompt_may_confirm_one_thing_and_report_another(text: str, complains: bool, confirms: bool) -> None:
    complaint, confirmed = hear_report(text)
    assert (complaint is not None, confirmed) == (complains, confirms)


_UNKNOWN_TO_PATTERNS = (
    "the button does nothing when clicked",
    "there is a problem with the harbour map, I can not zoom in",
    "the issue is that both crews get the same cabin",
)


@pytest.mark.parametrize("text", _UNKNOWN_TO_PATTERNS)
def test_learnt_weights_find_reports_that_no_pattern_knows(text: str) -> None:
    found = find_complaint(text)
    assert found is not None and found.text == text
    assert find_complaint(f"{text}\n\n{'The harbour has nine piers. ' * 300}") is None  # a document


@pytest.mark.parametrize(
    "text",
    [
        "If there is a problem with the harbour map, tell me.",
        "Make sure there is no problem with the harbour map.",
        "There was a problem with the harbour map, it works now.",
        "I am not sure there is a problem with the harbour map.",
    ],
)
def test_what_demands_doubts_or_confirms_is_no_report_whatever_the_weights_say(text: str) -> None:
    found = find_complaint(text)
    assert found is None or not found.sure


@pytest.mark.parametrize(
    "text",
    [
        "O botão não aparece quando clico no cais.",
        "Non funziona il faro.",
        "Кнопка не нажимается",
        "- пропала история рейсов",
        "버튼이 안 돼요",
        "还是只有红灯没有绿灯",
        "still only the red lamp",
    ],
)
def test_more_languages_and_short_repetitions_are_reports(text: str) -> None:
    found = find_complaint(text)
    assert found is not None
    assert found.sure


@pytest.mark.parametrize(
    "text",
    ["Se não funciona, mostra um aviso.", "Если не работает, покажи текст.", "Non funziona?", "检查一下有没有缺少的灯"],
)
def test_conditions_and_questions_of_more_languages_are_none(text: str) -> None:
    found = find_complaint(text)
    assert found is None or not found.sure


def test_a_pasted_summary_of_tests_is_a_report_about_them() -> None:
    found = find_complaint("look\n Test Files  1 failed | 3 passed (4)\n      Tests  4 failed | 817 passed (821)\n")
    assert found is not None
    assert found.kinds == ("test",)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("✓ Built the quay\n✗ Crane failed to start\n✗ Lamp failed to start\n\nOSError: no power\n", "Crane failed to start … OSError: no power"),
        (
            "new log:\nHarbour 1.2\nQuay.Trace:Extract ()\nQuay.Log:Message (string)\n\nCould not find sound Bell (using none)\nQuay.Trace:Extract ()\nQuay.Log:Warning (string)\nQuay.Bell:Load (string)\n\n"
            "Crane cannot lift: No chain at path Things/Crane\nQuay.Trace:Extract ()\nQuay.Log:Error (string)\n",
            "Crane cannot lift: No chain at path Things/Crane",
        ),
        ("Failed to compile.\n\n./quay/lamp.tsx\n23:52  Error: the lamp has no name.  quay/named-lamps\n", "23:52 Error: the lamp has no name."),
    ],
)  # fmt: skip
def test_of_pasted_output_the_lines_are_told_that_name_an_error(text: str, told: str) -> None:
    found = find_complaint(text)
    assert found is not None
    assert found.pasted and told in found.text
    assert "Bell" not in found.text and "Trace" not in found.text
