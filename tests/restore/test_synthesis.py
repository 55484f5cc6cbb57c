"""The SESSION SUMMARY: made from summaries, state and evidence, checked, merged with the facts, never lost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from everturn.capture.policy import Policy
from everturn.errors import MissingPath, Unreadable, UsageError
from everturn.llm.asker import AskBudget, Asker
from everturn.model.archive import Session
from everturn.restore.document import SECTIONS, Document, section
from everturn.restore.markdown import document_json, document_markdown
from everturn.restore.mechanical import build_document
from everturn.restore.prompts import PLACEHOLDERS, RestorePrompt, fill_prompt, load_prompts, own_prompts
from everturn.restore.summaries import TurnSummaries
from everturn.restore.synthesis import SYNTHESIS_KIND, report_turns_with_model, restore_with_model, skipped_notes
from everturn.restore.turns import as_text
from everturn.secrets.redaction import redact_text
from everturn.store.contract import Store
from tests.capture.history import ticking
from tests.model_server import Asked, ModelServer
from tests.model_wires import Call, Says
from tests.recall.archives import Archive
from tests.restore.shop import SOURCES, SUMMARY, TURNS, asker, good, options, prompt_of, purpose_of


def run(store: Store, session: Session, script: Any = good, **more: Any) -> tuple[Document, ModelServer]:
    with ModelServer(script, strict=True) as server:
        document = restore_with_model(store, SOURCES, session, asker(server), options(**more))
    return document, server


def said(document: Document, key: str) -> list[str]:
    return [one.text for one in section(document, key).statements]


def with_summary(summary: str) -> Any:
    return lambda asked: good(asked, summary=summary)


def test_the_prompt_of_the_synthesis_holds_summaries_state_and_evidence(store: Store, session: Session) -> None:
    looked = iter((Says('[SEARCH_LOG: "expected 401"]\n[LIST_ARTIFACTS]'), Says("[COMPLETE_EVIDENCE_SEARCH]")))

    def script(asked: Asked) -> Says:
        return next(looked) if purpose_of(asked) == "evidence" else good(asked)

    document, server = run(store, session, script, native_tools=False)
    text = prompt_of(server.asked[-1])
    assert purpose_of(server.asked[-1]) == "synthesis"
    assert "Key outcomes: Refresh tokens added to src/login.py" in text  # summaries
    assert "## Still failing" in text and "Constraints:\n- Never push to main" in text  # state, of both kinds
    assert '[SEARCH_LOG: "expected 401"]\nsearch_log: ' in text and "list_artifacts: 2 files" in text  # evidence
    assert text.index("search_log: ") < text.index("list_artifacts: ")
    assert document.model == "model-1"


def test_every_section_has_what_the_model_said_and_code_confirmed(store: Store, session: Session) -> None:
    document, _ = run(store, session)
    assert [one.key for one in document.sections] == list(SECTIONS)
    assert said(document, "session_name") == ["Refresh tokens for the login"]
    assert said(document, "high_level_goal")[0] == "Add refresh tokens to the login"
    assert said(document, "key_decisions") == ['Tokens are stored in PostgreSQL, "not Redis"']
    assert said(document, "constraints") == ['"Never push to main"']
    assert said(document, "artifacts") == ["src/login.py: edited for refresh tokens", "config.py was read"]
    for part in document.sections:
        assert all(one.verified and one.evidence for one in part.statements), part.key
    assert document.prompt_version == own_prompts().version


def test_nothing_certain_is_lost_because_the_model_left_it_out(store: Store, session: Session) -> None:
    bare = "SESSION SUMMARY\nSession name: Login [t1 #1]\nHigh-level goal: Add refresh tokens [t1 #1]\nOpen questions: None\n"
    document, _ = run(store, session, with_summary(bare))
    plain = build_document(store, SOURCES, session)
    assert said(document, "constraints") == said(plain, "constraints") != []
    assert said(document, "artifacts") == said(plain, "artifacts") != []
    assert document.facts == plain.facts


def test_what_does_not_hold_stands_apart_with_the_reason_and_nowhere_else(store: Store, session: Session) -> None:
    false = SUMMARY.replace("- config.py was read [t1 #2]", "- src/billing.py: edited [t1 #4]").replace(
        '- "Never push to main" [t1 #1]',
        '- "Never push to main" [t1 #1]\n- "Deploy on Fridays" [t1 #1]\n- Use tabs (turn 77)',
    )
    document, _ = run(store, session, with_summary(false))
    apart = {one.text: one.reason for one in document.unverified}
    assert "does not occur in turn 1" in apart["src/billing.py: edited"]
    assert "does not occur in message 1" in apart['"Deploy on Fridays"']
    assert apart["Use tabs"] == "there is no turn 77"
    for text in (document_markdown(document, redact_text, 0), str(document_json(document, redact_text, 0))):
        assert "billing" in text  # it is shown, as what it is
    verified = [one.text for part in (*document.sections, *document.facts) for one in part.statements]
    assert not any(word in one for one in verified for word in ("billing", "Friday", "tabs"))
    assert all(one.verified is False for one in document.unverified)
    shown = document_markdown(document, redact_text, 0)
    assert shown.index("Unverified") < shown.index("billing")


def test_the_model_is_asked_for_a_summary_once_more_when_nothing_of_it_holds(store: Store, session: Session) -> None:
    invented = (
        "Session name: Trains\nHigh-level goal: Model railways [t1 #1]\nKey decisions: Steam engines only [t2 #7]\n"
    )
    answers = iter((Says(invented), Says(SUMMARY)))

    def script(asked: Asked) -> Says:
        return next(answers) if purpose_of(asked) == "synthesis" else good(asked)

    document, _ = run(store, session, script)
    assert said(document, "session_name") == ["Refresh tokens for the login"]
    assert "Trains" not in str(document)
    document, _ = run(store, session, with_summary(invented), fresh=True)
    assert document.sections == build_document(store, SOURCES, session).sections
    assert [one.text for one in document.unverified] == ["Trains", "Model railways", "Steam engines only"]
    assert "no statement by the model could be confirmed" in document.notes


@pytest.mark.parametrize(
    "answer", ["I'm sorry, I can't do that.", "Old tokens should expire after a day.", "", "%% 12 %%"]
)
def test_a_useless_answer_leaves_the_mechanical_document_and_the_reason(
    store: Store, session: Session, answer: str
) -> None:
    document, server = run(store, session, with_summary(answer))
    plain = build_document(store, SOURCES, session)
    assert (document.sections, document.facts, document.unverified) == (plain.sections, plain.facts, ())
    assert document.model == "" and any("asked twice" in note for note in document.notes)
    assert [purpose_of(one) for one in server.asked].count("synthesis") == 2
    assert len(document.receipts) == len(server.asked)


def test_a_second_run_sends_nothing_and_gives_the_same_document(store: Store, session: Session) -> None:
    first, server = run(store, session)
    assert len(server.asked) == 5
    second, server = run(store, session)
    assert server.asked == [] and second == first
    assert len(second.receipts) == 5
    assert len(store.kept(SYNTHESIS_KIND, session.native_id)) == 1
    _, server = run(store, session, skip_evidence=True)
    assert [purpose_of(one) for one in server.asked] == ["synthesis"]  # another question, the same turns


def test_what_was_kept_is_checked_again(store: Store, session: Session) -> None:
    run(store, session)
    (row,) = store.kept(SYNTHESIS_KIND, session.native_id)
    row.value = row.value.replace("Never push to main", "Always push to main")
    with store.write():
        store.keep(row)
    document, server = run(store, session)
    assert server.asked == []
    assert '"Always push to main"' in [one.text for one in document.unverified]
    assert said(document, "constraints") == ["Never push to main."]


def test_without_a_model_nothing_is_sent(store: Store, session: Session) -> None:
    plain = build_document(store, SOURCES, session)
    assert restore_with_model(store, SOURCES, session, None) == plain
    assert restore_with_model(store, SOURCES, session, Asker(None, AskBudget(), redact_text, ticking())) == plain


def test_a_session_without_words_is_not_sent(store: Store, tmp_path: Path) -> None:
    archive = Archive(store, tmp_path / "agent")
    session = archive.take_in(archive.history.turn("Secret words.", "Yes."), policy=Policy("structure"))
    assert session.mode == "structure"
    _, server = run(store, session)
    assert server.asked == []


def test_the_search_can_be_left_out(store: Store, session: Session) -> None:
    for more in ({"skip_evidence": True}, {"max_searches": 0}):
        _, server = run(store, session, fresh=True, **more)
        assert "evidence" not in [purpose_of(one) for one in server.asked]


def test_only_the_first_turns_are_covered_when_that_is_asked(store: Store, session: Session) -> None:
    document, _ = run(store, session, max_turns=1)
    assert document.turns == 1
    apart = {one.text: one.reason for one in document.unverified}
    assert apart['Tokens are stored in PostgreSQL, "not Redis"'] == "there is no message 11"


def test_a_workspace_is_read_only_when_it_is_given(store: Store, session: Session, tmp_path: Path) -> None:
    (tmp_path / "login.py").write_text("walrus = 1\n")
    look = Says(calls=(Call("read_file", {"file_path": "login.py"}),))
    end = Says(calls=(Call("complete_evidence_search", {}),))
    for workspace in ("", str(tmp_path)):
        turns = iter((look, end))

        def script(asked: Asked, turns: Any = turns) -> Says:
            return next(turns) if purpose_of(asked) == "evidence" else good(asked)

        _, server = run(store, session, script, workspace=workspace, fresh=True)
        assert ("walrus" in prompt_of(server.asked[-1])) is bool(workspace)


# turn by turn ---------------------------------------------------------------------------------------------------------
def test_turn_summaries_are_checked_entry_by_entry_and_no_turn_is_missing(store: Store, session: Session) -> None:
    def script(asked: Asked) -> Says:
        if "Turn 2 of 3" in prompt_of(asked):
            return Says("I will not.")
        return Says(TURNS[1].replace("Never push to main [t1 #1]", '"Deploy on Fridays" [t1 #1]'))

    with ModelServer(script) as server:
        told = report_turns_with_model(store, SOURCES, session, asker(server), options())
    assert [one.turn for one in told.turns] == [0, 1, 2]
    first = told.turns[0].fields
    assert [(one.text, one.seq) for one in first["artifacts"]] == [("src/login.py", 3)]
    assert first["constraints"][0].seq == -1 and "(unverified: " in first["constraints"][0].text
    assert "Now run the tests." in told.turns[1].fields["request"][0].text  # mechanical
    assert "turn 2 was not summarised by the model" in told.notes[0]
    assert len(list(as_text(told.turns, redact_text))) == 3


# prompts --------------------------------------------------------------------------------------------------------------
def test_prompts_of_ones_own_are_used_and_have_their_own_version(tmp_path: Path) -> None:
    (tmp_path / "synthesis.md").write_text("Mine: {summaries} {state} {evidence}")
    mine, ours = load_prompts(str(tmp_path)), own_prompts()
    assert mine.synthesis.text.startswith("Mine") and mine.turn == ours.turn
    assert mine.version != ours.version and mine.synthesis.version != ours.synthesis.version
    assert fill_prompt(mine.synthesis, {"summaries": "{state}", "state": "S", "evidence": "E"}) == "Mine: {state} S E"


@pytest.mark.parametrize(("name", "text", "wrong"), [
    ("turn", "{turn} {state} {nonsense}", "unknown placeholder {nonsense}"),
    ("synthesis", "{summaries} {evidence}", "the placeholder {state} is missing"),
    ("evidence", "{summaries} {evidence} {turn} {tools}", "unknown placeholder {turn}"),
    ("turn", "x" * 100_001, "the limit for a prompt"),
])  # fmt: skip
def test_a_prompt_that_cannot_work_is_refused_with_the_reason(tmp_path: Path, name: str, text: str, wrong: str) -> None:
    (tmp_path / f"{name}.md").write_text(text)
    with pytest.raises(UsageError, match=re.escape(wrong)) as caught:
        load_prompts(str(tmp_path))
    assert f"{name}.md" in str(caught.value)


def test_a_folder_without_prompts_or_with_broken_ones_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingPath):
        load_prompts(str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="contains no prompts"):
        load_prompts(str(tmp_path))
    (tmp_path / "turn.md").write_bytes(b"\xff\xfe{turn}")
    with pytest.raises(Unreadable, match="not UTF-8"):
        load_prompts(str(tmp_path))


def test_our_prompts_name_what_they_must_and_nothing_else(tmp_path: Path) -> None:
    ours = own_prompts()
    for name in PLACEHOLDERS:
        (tmp_path / f"{name}.md").write_text(getattr(ours, name).text + " ")
    assert load_prompts(str(tmp_path)) != ours
    assert (
        fill_prompt(RestorePrompt("turn", "{number} {unknown} {{state}}"), {"number": "1", "state": "S"})
        == "1 {unknown} {S}"
    )


def test_of_many_reasons_for_skipping_turns_a_few_are_told_and_all_turns_are_named() -> None:
    skipped = {turn: f"reason {turn // 2}" for turn in range(16)}
    *reasons, rest = skipped_notes(TurnSummaries(skipped=skipped))
    assert reasons[0] == "turns 1–2 were not summarised by the model: reason 0" and len(reasons) == 5
    assert rest == "6 more turns not summarised: 11–16"


def test_turns_that_were_skipped_for_one_reason_are_told_together(store: Store, tmp_path: Path) -> None:
    archive = Archive(store, tmp_path / "agent")
    session = archive.take_in(*(archive.history.turn(f"Do {n}.", "Done.") for n in range(12)))
    with ModelServer(lambda asked: Says(TURNS[1]) if "Turn 4 of" in prompt_of(asked) else Says("No.")) as server:
        document = restore_with_model(store, SOURCES, session, asker(server), options(skip_evidence=True))
    assert document.notes[0].startswith("turns 1–3, 5–12 were not summarised by the model: ") and document.missing


def test_a_kept_answer_that_nobody_can_read_is_asked_for_again(store: Store, session: Session) -> None:
    run(store, session)
    (row,) = store.kept(SYNTHESIS_KIND, session.native_id)
    row.value = "[]"
    with store.write():
        store.keep(row)
    _, server = run(store, session, skip_evidence=False)
    assert [purpose_of(one) for one in server.asked] == ["evidence", "synthesis"]


def test_a_prompt_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "turn.md").mkdir()
    with pytest.raises(Unreadable):
        load_prompts(str(tmp_path))
