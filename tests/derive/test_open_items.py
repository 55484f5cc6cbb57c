"""What the end of an answer leaves open."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.derive.open_items import (
    find_announced,
    find_begun,
    find_call_questions,
    find_closing_questions,
    find_findings,
    find_lasting_offers,
    find_next_steps,
    find_progress,
    find_put_off,
    find_service_stop,
    find_summary_steps,
)
from everturn.derive.open_sentences import (
    WeighedSentence,
    choose_open,
)
from everturn.derive.plans import BY_HAND, PlanItem, find_current, find_manual_steps, find_task_items, tick_run_steps
from everturn.model.conversation import CallStart


def test_the_question_at_the_end_counts() -> None:
    assert find_closing_questions("All done.\n\nThe tests pass. Shall I push it?") == ["Shall I push it?"]


def test_a_question_before_its_choices_counts() -> None:
    assert find_closing_questions("Which one?\n\n1. this\n2. that") == ["Which one?"]


def test_no_text_asks_nothing() -> None:
    assert find_closing_questions("") == []


def test_a_question_in_code_does_not() -> None:
    assert find_closing_questions("See:\n\n```\nwhat?\n```") == []


def test_a_call_asks_one_or_several_questions() -> None:
    several = CallStart("c", "ask", "ask", input={"questions": [{"question": "A?"}, {"question": "B?"}]})
    assert find_call_questions(several) == ["A?", "B?"]
    assert find_call_questions(CallStart("c", "ask", "ask", input={"question": "C?"})) == ["C?"]
    assert find_call_questions(CallStart("c", "ask", "ask", input=None)) == []


def test_next_steps_stand_under_their_heading() -> None:
    text = "Done.\n\n## Next steps\n\n1. **Push** it\n2. Tell Ann\n\nThat is all."
    assert find_next_steps(text) == ["**Push** it", "Tell Ann"]
    assert find_next_steps("**Remaining work:**\n- docs\n- tests") == ["docs", "tests"]


def test_next_steps_may_be_a_sentence() -> None:
    assert find_next_steps("All green. Next, I'll write the docs for it.") == ["Next, I'll write the docs for it."]


def test_the_word_next_alone_says_nothing() -> None:
    assert find_next_steps("The next release is far away, and all of the tests pass. I fixed the page.") == []


def test_a_next_step_has_at_least_four_words_and_is_no_question() -> None:
    assert find_next_steps("All green. Next, write the docs.") == ["Next, write the docs."]
    assert find_next_steps("All green. Next, shall I write the docs for it?") == []


def test_every_sentence_that_names_a_next_step_counts() -> None:
    steps = [f"Next, I'll write part {n} of the docs." for n in range(5)]
    assert find_next_steps("All green. " + " ".join(steps)) == steps


@pytest.mark.parametrize(
    "text",
    [
        "Once you merge it, I'll tag the release.",
        "I haven't pushed the branch.",
        "This won't take effect until the next release.",
        "If you'd like me to split the commit, let me know.",
        "Ready for the next phase whenever you are.",
        "CI is queued.",
        "The change is still uncommitted.",
        "If the page looks wrong, tell me what you see.",
        "You will need to restart the server.",
        "The migration has not been run.",
        "Worth checking the totals once.",
        "Falls du willst, räume ich auf.",
        "Il reste à écrire les tests.",
        "Falta probar la página.",
        "テストはまだ実行していません",
        "测试尚未运行",
        "Nếu bạn muốn, tôi có thể thêm trang bến cảng.",
        "Kalau mau, saya bisa tambah halaman pelabuhan.",
        "원하시면 항구 페이지도 추가할게요",
        "Если хотите, я добавлю страницу порта.",
        "Se vuoi, aggiungo la pagina del porto.",
        "Isterseniz liman sayfasını da eklerim.",
        "Jeśli chcesz, dodam stronę portu.",
        "Als je wilt, voeg ik de havenpagina toe.",
        "Se quiser, adiciono a página do porto.",
    ],
)
def test_a_sentence_that_leaves_something_to_do_is_a_step(text: str) -> None:
    assert find_next_steps(f"The basket works.\n\n{text}") == [text]


@pytest.mark.parametrize(
    "text",
    [
        "There is nothing left to do.",
        "The basket works now.",
        "Want me to push it?",
        "Each uncommitted file has a mark.",
        "The field is not required.",
    ],
)
def test_a_report_or_a_question_is_no_step(text: str) -> None:
    assert find_next_steps(text) == []


def test_the_announced_work_is_the_last_sentence() -> None:
    assert find_begun("The test fails. Let me fix the basket.") == "Let me fix the basket."
    assert find_begun("Let me look. It is green.") == "" and find_begun("Done.") == ""
    assert find_begun("Fetch the whole thread now.") == "Fetch the whole thread now."


def test_before_a_call_that_still_runs_the_last_of_a_few_sentences_says_what_it_is_for() -> None:
    assert find_begun("港口已经画好。现在提交地图。") == ""
    assert find_begun("港口已经画好。现在提交地图。", is_running=True) == "现在提交地图"
    assert find_begun("The map is drawn. Committed.", is_running=True) == ""
    assert find_begun("Die Karte ist fertig. Wohin damit？", is_running=True) == ""
    assert find_begun("One. Two. Three. Four sails.", is_running=True) == ""


def test_a_wide_question_mark_asks() -> None:
    assert find_closing_questions("地图已经画好。\n\n要先画哪个港口？") == ["要先画哪个港口？"]
    assert find_closing_questions("地図ができました。\n\n次はどの港にする？") == ["次はどの港にする？"]


def test_an_answer_that_ends_with_an_announcement_was_cut_off() -> None:
    assert find_announced("The page is staged. Verifying the status.") == "Verifying the status."
    assert find_announced("The page is staged. Let me know what you think.") == ""


def test_steps_that_a_person_does_by_hand() -> None:
    plan = (
        "# Plan\n1. Add the table\n2. Open the shop and manually verify the basket\n\nManual test: pay with a card.\n"
    )
    assert [one.text for one in find_manual_steps(plan)] == [
        "Open the shop and manually verify the basket",
        "Manual test: pay with a card.",
    ]
    assert find_manual_steps("Avoid manual attacks.") == ()


def test_an_order_at_the_very_end_is_for_the_person() -> None:
    assert find_next_steps("The table is there. Push whenever ready.") == ["Push whenever ready."]
    assert find_next_steps("Test coverage is good.") == []


def test_the_steps_of_a_summary() -> None:
    assert find_summary_steps("We add baskets. Next: write the migration.") == ["write the migration"]
    listed = "## Pending Tasks\n- Write the docs\n- Push the branch\n\n## Files\n- a.py\n"
    assert find_summary_steps(listed) == ["Write the docs", "Push the branch"]
    assert find_summary_steps("## Pending Tasks\n- None\n") == []


def test_the_boxes_of_a_task_file() -> None:
    text = "1: # Plan\n2: - [x] Add the table\n3: - [ ] Add the page\n4:   - [ ] with a title\n"
    assert [(one.text, one.status) for one in find_task_items(text)] == [
        ("Add the table", "done"),
        ("Add the page", "open"),
    ]
    assert find_task_items("no boxes") == ()


def test_a_review_leaves_its_findings_to_do() -> None:
    review = "# Review\nFine.\n\n## Improvements\n\n### 1. Totals\nThe total is rounded twice on the page.\n\n### 2. Names\nThe names are too long.\n\n## Summary\nGood work on this."
    assert find_findings(review) == ["The total is rounded twice on the page. · The names are too long."]
    assert find_findings("All of it works, without an issue.") == []


@pytest.mark.parametrize(
    "text",
    [
        "If you want, I can draft the migration guide for the harbour API.",
        "Want me to draft a comment for the contributor?",
        "The CSV importer is a follow-up.",
        "Branch not pushed, no PR — say the word.",
        "Wenn du möchtest, schreibe ich noch den Hafenplan auf.",
        "Si vous voulez, je peux ajouter les horaires du ferry.",
        "Si quieres, puedo añadir el horario del puerto nuevo.",
        "必要であれば、フェリーの時刻表も追加できます。",
        "如果您需要，我可以添加渡轮时刻表。",
    ],
)
def test_an_offer_outlasts_its_turn(text: str) -> None:
    assert find_lasting_offers(f"All tests pass.\n\n{text}") == [text.rstrip("。")]


@pytest.mark.parametrize(
    "text",
    [
        "Let me know if you need further help!",
        "Feel free to ask anything else.",
        "It shows files even if they are not committed.",
    ],
)
def test_a_polite_end_offers_nothing(text: str) -> None:
    assert find_lasting_offers(f"All tests pass.\n\n{text}") == []
    assert find_next_steps(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Log it and we can pick it up in future.",
        "Put the export into a separate PR.",
        "Das machen wir später.",
        "On verra plus tard.",
        "Lo haremos más adelante.",
        "それは後でやります",
        "这个以后再做",
    ],
)
def test_a_person_puts_something_off(text: str) -> None:
    assert find_put_off(text)


def test_a_missing_detail_is_asked_for_as_an_order() -> None:
    for text in (
        "Please provide the path of the spec.",
        "Veuillez préciser le chemin.",
        "Por favor, indica la ruta.",
        "请提供文件路径",
    ):
        assert find_closing_questions(f"I found no spec.\n\n{text}") == [text]


def test_a_step_of_a_plan_is_done_once_its_command_ran() -> None:
    plan = "# Tides\n\n## Verification\n\n1. `npm run test` passes\n2. `npm run typecheck` is clean\n   - no `npm run lint` here\n3. the docs read well\n"
    steps = find_manual_steps(plan)
    assert [one.text for one in steps] == ["`npm run test` passes", "`npm run typecheck` is clean"]
    items = tuple(PlanItem(one.text, one.status, 0, 0, one.id) for one in steps)
    assert [one.status for one in tick_run_steps(items, ["cd app && npm test | tail"])] == ["done", "open"]


def test_a_plan_is_followed_while_it_is_recent_and_was_begun() -> None:
    done, left = PlanItem("buy paint", "done", 4, 9), PlanItem("draw the map", "open", 4, 9)
    assert find_current([done, left], 6) == [left]
    assert find_current([done, left], 16) == []
    assert find_current([left], 4) == [left]
    assert find_current([left], 5) == []  # it was only proposed


def test_a_file_keeps_its_tasks_and_what_is_checked_by_hand_is_over_after_a_few_turns() -> None:
    task, check = PlanItem("draw", "open", 0, 1, "task draw"), PlanItem("click it", "open", 0, 1, f"{BY_HAND}click it")
    assert find_current([task, check], 2) == [task, check]
    assert find_current([task, check], 12) == [task]


OPEN = ("I have not pushed the branch yet.", "You still need to run the migration.", "Want me to delete the old table?")
REPORT = ("The parser reads both forms.", "All 14 tests pass.", "I renamed the helper and its callers.")


@given(
    st.lists(st.sampled_from((*OPEN, *REPORT)), unique=True, max_size=6), st.lists(st.sampled_from(REPORT), max_size=4)
)
def test_the_same_answer_leaves_the_same_open_whatever_was_read_before(listed: list[str], other: list[str]) -> None:
    text = "\n\n".join(listed)
    first = find_next_steps(text), find_closing_questions(text)
    for one in (*other, "\n".join(other)):
        find_next_steps(one)
    assert (find_next_steps(text), find_closing_questions(text)) == first


@given(st.permutations(REPORT))
def test_a_step_that_is_said_at_the_end_is_found_whatever_stands_before_it(reports: list[str]) -> None:
    for step in OPEN[:2]:
        assert step in find_next_steps("\n\n".join([*reports, step]))
        assert step in find_next_steps("\n\n".join([*reports, step, OPEN[2]]))


@given(st.lists(st.sampled_from(REPORT), max_size=6))
def test_the_place_of_a_report_does_not_make_it_a_step(reports: list[str]) -> None:
    assert find_next_steps(" ".join(reports)) == []


@given(st.text(max_size=400))
def test_whatever_the_text_every_entry_is_in_it(text: str) -> None:
    words = " ".join(text.split())
    for one in find_next_steps(text):
        assert " ".join(one.rstrip("…").split()) in words


def _weighed(*odds: float, asks: bool = False, item: bool = False) -> list[WeighedSentence]:
    return [WeighedSentence(one, asks, item) for one in odds]


def test_the_likeliest_sentences_count_and_their_number_is_bounded() -> None:
    assert choose_open(_weighed(1.0, -1.0, 2.0, -9.0)) == [0, 2]
    assert choose_open(_weighed(-1.0, -1.0)) == []
    assert choose_open(_weighed(*map(float, range(50)))) == list(range(34, 50))


def test_mild_steps_count_only_beside_a_clear_one() -> None:
    assert choose_open(_weighed(0.0, 0.1)) == []
    assert choose_open(_weighed(0.0, 2.0)) == [0, 1]


def test_a_list_counts_as_a_whole_if_half_of_it_does() -> None:
    assert choose_open([*_weighed(-5.0), *_weighed(2.0, -5.0, item=True)]) == [1, 2]
    assert choose_open(_weighed(2.0, -5.0, -5.0, item=True)) == [0]


_SENTENCES = st.lists(st.builds(WeighedSentence, st.floats(-9, 9), st.booleans(), st.booleans()), max_size=40)


@given(_SENTENCES, st.integers(0, 40))
def test_one_more_sentence_that_speaks_for_nothing_changes_nothing(weighed: list[WeighedSentence], at: int) -> None:
    at = min(at, len(weighed))
    parted = [one._replace(is_item=False) for one in weighed]
    more = [*parted[:at], WeighedSentence(-9.0, False, False), *parted[at:]]
    assert [one + (one >= at) for one in choose_open(parted)] == choose_open(more)


@given(_SENTENCES)
def test_a_question_counts_by_itself(weighed: list[WeighedSentence]) -> None:
    alone = [one for one in weighed if one.is_question]
    asked = [weighed[at] for at in choose_open(weighed) if weighed[at].is_question]
    assert len(weighed) > 16 or asked == [alone[at] for at in choose_open(alone)]


def test_what_an_agent_says_between_its_calls_is_no_step() -> None:
    text = "I fixed the rows of the table and all of the tests pass. Let me check the log.\n\nNext steps:\n- Run the migration on the server."
    assert find_next_steps(text) == ["Run the migration on the server."]


@pytest.mark.parametrize("text", ["**Updating the list****Running tests**", "I look first.\n\n**Running tests**\n"])
def test_an_answer_that_ends_in_a_heading_of_what_was_done_is_not_finished(text: str) -> None:
    assert find_progress(text) == find_begun(text) == find_announced(text) == "Running tests"


@pytest.mark.parametrize(
    "text", ["", "**Done**", "**Running tests**\n\nAll pass.", "**Testing:** all pass", "Running tests"]
)
def test_an_answer_with_words_below_its_headings_is_finished(text: str) -> None:
    assert find_progress(text) == ""


@pytest.mark.parametrize(
    ("notice", "found"),
    [
        ("You've hit your limit · resets 5pm", "You've hit your limit · resets 5pm"),
        ("Agent: stop\nAPI Error: 529 overloaded", "API Error: 529 overloaded"),
        ("Not logged in · Please run /login", "Not logged in · Please run /login"),
        ("The speed limit was reached by no ferry.", ""),
        ("hooks: 2", ""),
    ],
)
def test_a_service_says_that_it_stops(notice: str, found: str) -> None:
    assert find_service_stop(notice) == found


def test_an_announcement_in_a_long_answer_has_no_more_behind_it() -> None:
    assert find_announced("The flag is there. Adding `-l` or `--local` switches to local times of the ferry.") == ""
    assert find_announced("Staged the page. Verifying git status.") == "Verifying git status."


def test_the_steps_of_a_summary_end_at_its_next_part() -> None:
    text = "7. Pending Tasks:\n- paint the ferry\n8. **Current Work:**\n- shop.py"
    assert find_summary_steps(text) == ["paint the ferry"]


@pytest.mark.parametrize(
    "text",
    ["**Next steps:**", "下一步：", "后续所有访问：几乎瞬时", "Added `ferry.css` so that it can be used again later."],
)
def test_a_heading_or_a_report_is_no_loose_end(text: str) -> None:
    assert find_lasting_offers(f"The ferry page is done.\n\n{text}") == []


def test_what_is_left_to_push_outlasts_its_turn() -> None:
    assert find_lasting_offers("Fixed. The commit is local; push whenever you're ready.")
    assert find_lasting_offers("想改一下吗？") == find_lasting_offers("Done.") == []


@given(st.text(max_size=400))
def test_whatever_the_text_a_loose_end_is_in_it(text: str) -> None:
    bare = "".join(text.split())
    assert all("".join(one.rstrip("？…").split()) in bare for one in find_lasting_offers(text))


def test_a_line_with_a_colon_is_shown_with_what_is_below_it() -> None:
    run = "Fixed. Now run this on your machine:\n\n```bash\nmake ferry\nmake harbour\n```\n"
    assert find_next_steps(run)[-1] == "Now run this on your machine: make ferry make harbour"
    assert not any(one.endswith(":") for one in find_next_steps("All done.\n\n**Next steps:**\n"))


def test_a_numbered_heading_is_the_subject_of_what_is_below_it() -> None:
    text = (
        "## Review of the ferry page\n\nTwo things are left.\n\n"
        "### 1. Timetable in the harbour module\n\nIt still needs the winter times, which are missing.\n\n"
        "### 2. Prices\n\nThey still need a decision: not implemented yet.\n"
    )
    found = " · ".join(find_next_steps(text))
    subjects = [found.find(one) for one in ("1. Timetable", "It still needs", "2. Prices", "They still need")]
    assert -1 not in subjects and subjects == sorted(subjects)


def test_what_was_done_is_not_told_as_a_step_in_any_language() -> None:
    done = [
        "Added the ferry page.",
        "已添加渡轮页面",
        "✅ Ferry page",
        "フェリーのページを追加しました",
        "Ajouté la page du ferry",
    ]
    listed = "\n".join(f"- {one}" for one in done)
    assert find_next_steps(f"{listed}\n\nPlease restart the server and check the ferry page.") == [
        "Please restart the server and check the ferry page."
    ]
