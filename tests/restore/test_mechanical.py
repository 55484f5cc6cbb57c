"""A document without a model says what the records say, each statement with its place."""

from __future__ import annotations

from random import Random

import pytest

from everturn.derive.intent import topic_words
from everturn.derive.session_state import SessionState, TurnRequest
from everturn.model.archive import KeptRow, Session
from everturn.restore import goal
from everturn.restore.document import FACTS, SECTIONS, Document, section
from everturn.restore.mechanical import build_document
from everturn.store.contract import Store
from tests.recall.archives import Archive
from tests.restore.shop import SOURCES


def texts(document: Document, key: str) -> list[str]:
    return [one.text for one in section(document, key).statements]


def test_the_eight_sections_are_there_in_their_order(store: Store, session: Session) -> None:
    document = build_document(store, SOURCES, session)
    assert [one.key for one in document.sections] == list(SECTIONS)
    assert [one.key for one in document.facts] == list(FACTS)
    assert (document.turns, document.last_seq, document.native_id) == (3, 11, session.native_id)


def test_a_small_session_is_told_whole(store: Store, session: Session) -> None:
    document = build_document(store, SOURCES, session)
    assert texts(document, "high_level_goal") == ["Please add refresh tokens to the login. Never push to main."]
    assert texts(document, "constraints") == ["Never push to main."]
    assert texts(document, "key_decisions") == ["We decided to store tokens in PostgreSQL, not Redis."]
    assert texts(document, "artifacts") == ["`src/login.py` edited"]
    assert texts(document, "files") == ["`config.py` read"]
    assert texts(document, "open_questions") == ["Should old tokens expire?"]
    assert texts(document, "next_steps") == ["Next step: fix the failing login test."]
    assert texts(document, "still_failing") == [
        "`pytest -q tests/test_login.py` failed in turn 2, 1 turn ago: E AssertionError: expected 401, got 500"
    ]
    assert "`pytest -q tests/test_login.py` → exit 1" in texts(document, "commands")


def test_every_statement_is_verified_and_cites_a_message_of_its_turn(store: Store, session: Session) -> None:
    document = build_document(store, SOURCES, session)
    rows = {row.seq: row for row in store.messages(session.id)}
    statements = [one for part in (*document.sections, *document.facts) for one in part.statements]
    assert statements and not document.unverified
    for one in statements:
        assert one.verified is True and one.evidence
        for proof in one.evidence:
            row = rows[proof.message]
            assert (proof.turn, proof.start, proof.size) == (row.turn, row.start, row.size)


def test_what_was_fixed_is_not_still_failing(archive: Archive, store: Store) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    session = archive.take_in(
        line("user", "make the tests pass"),
        use("Bash", "c1", command="make test"),
        back("c1", "Exit code 2\nerror: no rule", failed=True),
        use("Edit", "c2", file_path="/home/ann/shop/Makefile", old_string="a", new_string="b"),
        back("c2", "updated"),
        use("Bash", "c3", command="make test"),
        back("c3", "ok"),
    )
    document = build_document(store, SOURCES, session)
    assert texts(document, "still_failing") == []
    assert texts(document, "errors_fixed") == [
        "`make test` failed: error: no rule; succeeded in turn 1, after changing Makefile"
    ]


def test_what_still_fails_says_how_often_how_long_ago_and_what_was_edited_since(archive: Archive, store: Store) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    session = archive.take_in(
        line("user", "The cart still crashes when I open it."),
        use("Bash", "c1", command="cd web && npm test 2>&1 | tail -5"),
        back("c1", "Tests:       3 failed, 2 passed, 5 total"),
        use("Bash", "c2", command="grep -rn nothing src"),
        back("c2", "Exit code 1", failed=True),
        use("Bash", "c3", command="npm test"),
        back("c3", "Exit code 1\nTests:       2 failed, 3 passed, 5 total", failed=True),
        use("Edit", "c4", file_path="/home/ann/shop/cart.py", old_string="a", new_string="b"),
        back("c4", "updated"),
        line("user", "Now write the docs."),
        line("assistant", [{"type": "text", "text": "The docs are written."}]),
    )
    document = build_document(store, SOURCES, session)
    assert not document.unverified
    assert texts(document, "still_failing") == [
        "`npm test` failed 2 times, last in turn 1, 1 turn ago (2 failures): Tests: 2 failed, 3 passed, 5 total; "
        "not run again since 1 edit (cart.py)"
    ]
    assert texts(document, "loose_ends") == [
        "reported in turn 1, 1 turn ago: The cart still crashes when I open it.; not confirmed as fixed since 1 edit (cart.py)"
    ]


@pytest.mark.parametrize(
    ("later", "fails"), [((), True), (("Now write the docs.",), True), (("Write docs.", "Sort them."), False)]
)
def test_a_report_fails_until_they_go_on_and_is_a_loose_end_then(
    archive: Archive, store: Store, later: tuple[str, ...], fails: bool
) -> None:
    turn = archive.history.turn
    lines = [
        turn("The cart still crashes when I open it.", "The cart reads a file that is missing."),
        *(turn(one, "Done.") for one in later),
    ]
    document = build_document(store, SOURCES, archive.take_in(*lines))
    failing, loose = texts(document, "still_failing"), texts(document, "loose_ends")
    assert (len(failing), len(loose)) == ((1, 0) if fails else (0, 1))
    assert (failing + loose)[0].startswith("reported in turn 1")


@pytest.mark.parametrize(
    ("answer", "passes", "fails"),
    [
        ("Fixed: the cart reads the right file now.", False, True),
        ("Fixed: the cart reads the right file now.", True, False),
        ("I changed the path, but I could not test it here.", True, True),
        ("Der Pfad ist geändert, aber nicht getestet.", False, True),
        ("", True, True),
    ],
)
def test_a_report_that_was_worked_on_last_fails_unless_a_check_and_the_answer_speak_for_the_change(
    archive: Archive, store: Store, answer: str, passes: bool, fails: bool
) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    session = archive.take_in(
        line("user", "The cart still crashes when I open it."),
        use("Edit", "c1", file_path="/home/ann/shop/cart.py", old_string="a", new_string="b"),
        back("c1", "updated"),
        *([use("Bash", "c2", command="pytest"), back("c2", "5 passed in 0.1s")] if passes else []),
        *([line("assistant", [{"type": "text", "text": answer}])] if answer else []),
    )
    document = build_document(store, SOURCES, session)
    failing, loose = texts(document, "still_failing"), texts(document, "loose_ends")
    assert (len(failing), len(loose)) == ((1, 0) if fails else (0, 1))
    assert (failing + loose)[0].endswith("; not confirmed as fixed since 1 edit (cart.py)")


@pytest.mark.parametrize(
    ("answer", "fails"),
    [
        ("Committed. The old page is still served until the next release runs.", True),
        ("Committed. Die Änderung wird erst nach dem nächsten Release wirksam.", True),
        ("已提交。改动要到下次发布之后才会生效。", True),
        ("Committed. The page is served from the new folder.", False),
    ],
)
def test_a_report_fails_whose_change_takes_effect_only_later(
    archive: Archive, store: Store, answer: str, fails: bool
) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    session = archive.take_in(
        line("user", "The harbour page is broken after the release."),
        use("Edit", "c1", file_path="/home/ann/shop/page.py", old_string="a", new_string="b"),
        back("c1", "updated"),
        line("assistant", [{"type": "text", "text": "I changed the folder of the page."}]),
        line("user", "commit it"),
        use("Bash", "c2", command="git commit -am page"),
        back("c2", "[main 1a2b3c4] page"),
        line("assistant", [{"type": "text", "text": f"{'The commit is there. ' * 30}{answer}"}]),
    )
    document = build_document(store, SOURCES, session)
    failing, loose = texts(document, "still_failing"), texts(document, "loose_ends")
    assert (len(failing), len(loose)) == ((1, 0) if fails else (0, 1))


def test_a_repeated_report_is_shown_with_what_was_said_before(archive: Archive, store: Store) -> None:
    line = archive.history.line
    answer = line("assistant", [{"type": "text", "text": "I looked at it."}])
    session = archive.take_in(
        line("user", "The cart crashes when I open the harbour page."), answer,
        line("user", "It still crashes, the same error."), answer,
    )  # fmt: skip
    document = build_document(store, SOURCES, session)
    (shown,) = section(document, "still_failing").statements
    assert shown.text == (
        "reported 2 times, last in turn 2: It still crashes, the same error. "
        "(before, in turn 1: The cart crashes when I open the harbour page.); not confirmed as fixed"
    )
    assert len(shown.evidence) == 2


@pytest.mark.parametrize(
    ("answer", "fails"),
    [
        ("`shipctl harbour up` failed: the quay is locked.", True),
        ("The quay was locked, so `shipctl harbour up` failed; fixed with another key.", False),
        ("The harbour is up.", False),
    ],
)
def test_a_command_fails_that_the_last_answer_says_failed(
    archive: Archive, store: Store, answer: str, fails: bool
) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    session = archive.take_in(
        line("user", "Start the harbour."),
        use("Bash", "c1", command="shipctl harbour up"),
        back("c1", "Exit code 1\nquay locked by ann", failed=True),
        line("assistant", [{"type": "text", "text": answer}]),
    )
    document = build_document(store, SOURCES, session)
    assert not document.unverified
    assert bool(texts(document, "still_failing")) == fails


@pytest.mark.parametrize(
    ("words", "fails"),
    [
        ("The compass could not be packed, but that's fine. Now the sails:", True),
        ("L'emballage a échoué, mais ce n'est pas grave.", True),
        ("梱包は失敗しましたが、問題ありません。", True),
        ("The compass could not be packed. Let me look for its box.", False),
    ],
)
def test_a_command_fails_that_the_words_right_after_it_let_be(
    archive: Archive, store: Store, words: str, fails: bool
) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    session = archive.take_in(
        line("user", "Pack the ship."),
        use("Bash", "c1", command="shipctl pack --all"),
        back("c1", "Exit code 1\nError: no box for the compass", failed=True),
        line("assistant", [{"type": "text", "text": words}]),
        use("Bash", "c2", command="shipctl sails up"),
        back("c2", "sails up"),
        line("assistant", [{"type": "text", "text": "The ship is ready."}]),
    )
    document = build_document(store, SOURCES, session)
    assert not document.unverified
    assert [words[:12] in one for one in texts(document, "still_failing")] == [True] * fails


def test_an_answer_that_lets_a_failure_be_does_not_speak_for_all_checks(archive: Archive, store: Store) -> None:
    line, use, back = archive.history.line, archive.use, archive.back

    def failing(words: str) -> list[str]:
        session = archive.take_in(
            line("user", "Paint the quay."),
            use("Bash", "c1", command="npm test"),
            back("c1", "Exit code 1\nTests:       1 failed, 3 passed, 4 total", failed=True),
            line("assistant", [{"type": "text", "text": words}]),
            use("Edit", "c2", file_path="/home/ann/shop/quay.py", old_string="a", new_string="b"),
            back("c2", "updated"),
            use("Bash", "c3", command="npm run lint"),
            back("c3", "no problems"),
            line("assistant", [{"type": "text", "text": "All tests pass."}]),
        )
        return texts(build_document(store, SOURCES, session), "still_failing")

    (shown,) = failing("The failing test is pre-existing, unrelated to my changes.")
    assert shown.startswith("`npm test` failed in turn 1 (1 failure)")


@pytest.mark.parametrize(
    ("later", "fails"),
    [
        ((), True),
        (("ls docks",), True),
        (("shipctl quay paint",), False),
    ],
)
def test_an_error_that_nothing_went_past_fails_whatever_the_answer_says(
    archive: Archive, store: Store, later: tuple[str, ...], fails: bool
) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    session = archive.take_in(
        line("user", "Load the ship."),
        use("Bash", "c1", command="shipctl load --all"),
        back("c1", "Exit code 1\nError: the crane has no harbour key", failed=True),
        *(part for n, one in enumerate(later) for part in (use("Bash", f"d{n}", command=one), back(f"d{n}", "grey"))),
        line("assistant", [{"type": "text", "text": "Which ship do you mean?"}]),
    )
    assert bool(texts(build_document(store, SOURCES, session), "still_failing")) == fails


def test_a_permission_that_nobody_gave_fails_and_one_that_the_person_refused_does_not(
    archive: Archive, store: Store
) -> None:
    line, use, back = archive.history.line, archive.use, archive.back

    def left(said: str) -> list[str]:
        session = archive.take_in(
            line("user", "Paint the quay."),
            use("Edit", "c1", file_path="/home/ann/shop/quay.py", old_string="a", new_string="b"),
            back("c1", said, failed=True),
            line("assistant", [{"type": "text", "text": "May I edit the file?"}]),
        )
        return texts(build_document(store, SOURCES, session), "still_failing")

    assert (
        left("Claude requested permissions to write to /home/ann/shop/quay.py, but you haven't granted it yet.") != []
    )
    assert left("The user doesn't want to proceed with this tool use. The tool use was rejected.") == []


def test_a_shell_that_answers_every_command_with_one_error_is_broken(archive: Archive, store: Store) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    error = "/bin/bash: line 1: /tmp/shell-snapshot-7: No such file or directory"
    calls = [
        part
        for n, one in enumerate(("make", "ls docks", "npm ci"))
        for part in (use("Bash", f"c{n}", command=one), back(f"c{n}", f"Exit code 1\n{error}", failed=True))
    ]
    answer = line("assistant", [{"type": "text", "text": "Here is what you can type."}])
    later = [line("user", "What is a quay?"), answer, line("user", "And a dock?"), answer]
    session = archive.take_in(line("user", "Build it."), *calls, answer, *later)
    (shown,) = texts(build_document(store, SOURCES, session), "still_failing")
    assert shown == f"`npm ci` failed in turn 1, 2 turns ago: {error}"


def test_a_shell_whose_commands_the_person_refused_is_not_broken(archive: Archive, store: Store) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    calls = [
        part
        for n, one in enumerate(("make", "npm ci", "npm test"))
        for part in (use("Bash", f"c{n}", command=one), back(f"c{n}", refusal, failed=True))
    ]
    session = archive.take_in(line("user", "Build it."), *calls, line("user", "Stop. What is a quay?"))
    assert texts(build_document(store, SOURCES, session), "still_failing") == []


@pytest.mark.parametrize(
    ("notice", "later", "fails"),
    [
        ("API Error: 402 Insufficient credits. Add more to go on.", (), True),
        ("API Error: 402 Insufficient credits. Add more to go on.", ("Hello?",), True),
        ("You've hit your limit · resets 5pm", (), False),
    ],
)
def test_a_service_that_stopped_the_work_fails_until_it_answers_unless_it_says_when(
    archive: Archive, store: Store, notice: str, later: tuple[str, ...], fails: bool
) -> None:
    line = archive.history.line
    stop = line("assistant", [{"type": "text", "text": notice}], isApiErrorMessage=True, model="<synthetic>")
    session = archive.take_in(line("user", "Paint the quay."), stop, *(line("user", one) for one in later))
    shown = texts(build_document(store, SOURCES, session), "still_failing")
    assert [one.startswith("the service stopped the work in turn 1") for one in shown] == ([True] if fails else [])


def test_the_output_of_a_check_decides_what_is_said_of_its_command(archive: Archive, store: Store) -> None:
    use, back = archive.use, archive.back
    session = archive.take_in(
        archive.history.line("user", "build the shop"),
        use("Bash", "c1", command="mvn clean install | tail -5"),
        back("c1", "[INFO] Scanning\n[INFO] BUILD FAILURE"),
        use("Bash", "c2", command="ls"),
        back("c2", "pom.xml"),
    )
    assert texts(build_document(store, SOURCES, session), "commands") == [
        "`mvn clean install | tail -5` → failed: [INFO] BUILD FAILURE",
        "`ls` → ok",
    ]


def test_the_document_of_the_first_turns_knows_nothing_of_the_rest(store: Store, session: Session) -> None:
    document = build_document(store, SOURCES, session, last=0)
    assert document.turns == 1 and "covers turns 1 to 1 of 3" in document.notes
    assert texts(document, "still_failing") == [] and texts(document, "key_decisions") == []


def test_a_greeting_is_not_the_goal(archive: Archive, store: Store) -> None:
    session = archive.take_in(
        archive.history.turn("hi", "hello"), archive.history.turn("write a parser for dates in german", "done")
    )
    assert texts(build_document(store, SOURCES, session), "high_level_goal") == ["write a parser for dates in german"]


def test_a_summary_of_the_client_is_labelled_and_never_verified(archive: Archive, store: Store) -> None:
    told = "This session is being continued from a previous conversation. We renamed src/old.py to src/new.py."
    session = archive.take_in(
        archive.history.turn("rename it", "done"),
        archive.history.line("user", told, isCompactSummary=True, isVisibleInTranscriptOnly=True),
        archive.history.turn("go on", "sure"),
    )
    (found,) = section(build_document(store, SOURCES, session), "summaries").statements
    assert found.label == "compaction summary" and found.verified is not True
    assert "src/new.py" in found.text


def test_files_that_were_only_named_are_told_apart(archive: Archive, store: Store) -> None:
    session = archive.take_in(
        archive.history.turn("look at src/parser.py", "It is used by src/lexer.py and src/parser.py.")
    )
    document = build_document(store, SOURCES, session)
    assert texts(document, "mentioned") == ["`src/parser.py`", "`src/lexer.py`"]
    assert texts(document, "files") == texts(document, "artifacts") == []


def test_a_file_that_was_touched_is_not_named_again_under_a_longer_name(archive: Archive, store: Store) -> None:
    edit = archive.use("Edit", "c1", file_path="/home/ann/shop/src/parser.py", old_string="a", new_string="b")
    session = archive.take_in(
        archive.history.line("user", "change /workspaces/shop/src/parser.py, it runs under Node.js"),
        edit,
        archive.back("c1", "updated"),
        archive.history.line("assistant", "Done, with TypeScript/Next.js in mind."),
    )
    document = build_document(store, SOURCES, session)
    assert texts(document, "artifacts") == ["`src/parser.py` edited"]
    assert texts(document, "mentioned") == []


@pytest.mark.parametrize(
    ("commit", "later", "asked", "left"),
    [
        ("git commit -am 'Add lamps'", "pytest -q", "", "`src/lamp.py`"),
        ("cd /home/ann/shop && git commit -am 'Add lamps'", "git status", "", "`src/lamp.py`"),
        ("git commit -am 'Add lamps'", "git stash", "", ""),
        ("git commit -am 'Add lamps'", "make release", "", ""),
        ("git commit -am 'Add lamps'", "ls", "ok, ich habe es committet", ""),
        ("git -C ../other commit -am 'Add lamps'", "ls", "", ""),
        ("cd docs && git commit -am 'Add lamps'", "ls", "", ""),
    ],
)
def test_work_after_the_last_commit_is_told_as_not_committed(
    commit: str, later: str, asked: str, left: str, archive: Archive, store: Store
) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    edit = {"file_path": "/home/ann/shop/src/lamp.py", "old_string": "a", "new_string": "b"}
    session = archive.take_in(
        line("user", "add lamps"),
        use("Edit", "c1", **edit | {"file_path": "/home/ann/shop/src/shade.py"}),
        back("c1", "updated"),
        use("Bash", "c2", command=commit),
        back("c2", "[main 1a2b3c4] Add lamps\n 1 file changed, 2 insertions(+)"),
        use("Edit", "c3", **edit),
        back("c3", "updated"),
        use("Write", "c4", file_path="/tmp/notes.md", content="x"),
        back("c4", "written"),
        use("Bash", "c5", command=later),
        back("c5", "ok"),
        line("assistant", "Done."),
        *([line("user", asked)] if asked else []),
    )
    found = texts(build_document(store, SOURCES, session), "commits")
    expected = [f"not committed, changed since the last commit: {left}"] if left else []
    assert found == [*expected, "`1a2b3c4` Add lamps"]


def test_commands_that_only_show_text_come_last(archive: Archive, store: Store) -> None:
    ran = ("make build", "cat shop.py", "docker restart shop", "grep -n lamp shop.py | head")
    calls = [
        piece
        for number, command in enumerate(ran)
        for piece in (archive.use("Bash", f"c{number}", command=command), archive.back(f"c{number}", "x"))
    ]
    session = archive.take_in(archive.history.line("user", "restart the shop"), *calls)
    found = texts(build_document(store, SOURCES, session), "commands")
    assert [one.split("`")[1] for one in found] == [
        "docker restart shop", "make build", "grep -n lamp shop.py | head", "cat shop.py"
    ]  # fmt: skip


def test_a_commit_without_a_result_is_labelled(archive: Archive, store: Store) -> None:
    commit = archive.use("Bash", "c1", command='git commit -m "Add lamps"')
    session = archive.take_in(archive.history.line("user", "commit the lamps"), commit)
    (found,) = section(build_document(store, SOURCES, session), "commits").statements
    assert (found.text, found.label) == ("Add lamps", "its result is not recorded")
    session = archive.take_in(
        archive.history.line("user", "commit the lamps"),
        commit,
        archive.history.line("assistant", "I stopped before that."),
        sid="0a1b2c3d-0000-4000-8000-000000000009",
    )
    assert texts(build_document(store, SOURCES, session), "commits") == []


def test_a_file_of_the_session_is_created_also_after_edits(archive: Archive, store: Store) -> None:
    edit = {"file_path": "/home/ann/shop/new.py", "old_string": "x", "new_string": "y"}
    session = archive.take_in(
        archive.history.line("user", "write new.py"),
        archive.use("Write", "c1", file_path="/home/ann/shop/new.py", content="x"),
        archive.back("c1", "File created successfully", type="create"),
        archive.use("Edit", "c2", **edit),
        archive.back("c2", "updated"),
        archive.use("Edit", "c3", **edit),
        archive.back("c3", "updated"),
        archive.use("Read", "c4", file_path="/home/ann/shop/old.py"),
        archive.back("c4", "x"),
        archive.use("Write", "c5", file_path="/home/ann/shop/old.py", content="y"),
        archive.back("c5", "written"),
    )
    found = texts(build_document(store, SOURCES, session), "artifacts")
    assert sorted(found) == ["`new.py` created, edited ×2", "`old.py` edited"]


def test_what_is_pinned_is_a_constraint_with_a_label(store: Store, session: Session) -> None:
    with store.write():
        store.keep(KeptRow("pin", session.agent, session.native_id, "1", '"prices are in cents"', 0))
    (pin,) = [
        one for one in section(build_document(store, SOURCES, session), "constraints").statements if one.label == "pin"
    ]
    assert pin.text == "prices are in cents"


def test_a_session_whose_words_were_not_kept_says_so(archive: Archive, store: Store) -> None:
    from everturn.capture.policy import Policy

    session = archive.take_in(archive.history.turn("a question", "an answer"), policy=Policy("structure"))
    document = build_document(store, SOURCES, session)
    assert "the text of this session was not stored (capture mode structure)" in document.notes
    assert all(not one.statements for one in document.sections)


def test_only_the_weightiest_statements_are_proven(archive: Archive, store: Store) -> None:
    from everturn.restore.mechanical import document_from_state, read_material

    session = archive.take_in(*(archive.history.turn(f"please do thing number {n}", "done") for n in range(40)))
    state = read_material(store, SOURCES, session).state
    document = document_from_state(store, SOURCES, session, state, most=10)
    requests = section(document, "requests")
    assert len(requests.statements) < 10 and len(requests.statements) + requests.cut == 40
    assert requests.statements[0].text == "please do thing number 39"


def test_a_file_that_a_subagent_changed_says_so(archive: Archive, store: Store) -> None:
    archive.subagent(
        "a1",
        archive.helper("a1", "user", "fix it"),
        archive.helper("a1", "assistant", [
            {"type": "tool_use", "id": "s1", "name": "Write", "input": {"file_path": "/home/ann/shop/new.py", "content": "x"}}
        ]),
        archive.helper("a1", "user", [{"type": "tool_result", "tool_use_id": "s1", "content": "created"}]),
    )  # fmt: skip
    session = archive.take_in(
        archive.history.line("user", "let an agent fix it"),
        archive.use("Task", "c1", prompt="fix it", description="fix"),
        archive.back("c1", "done", agentId="a1"),
    )
    (found,) = section(build_document(store, SOURCES, session), "artifacts").statements
    assert found.text.startswith("`new.py`") and found.label == "subagent"


def test_a_reply_is_shown_with_the_question_it_answers(archive: Archive, store: Store) -> None:
    line = archive.history.line
    session = archive.take_in(
        line("user", "add baskets to the shop page"),
        line("assistant", "1. Redis\n2. PostgreSQL\n\nWhich store should hold the baskets?"),
        line("user", "2"),
        line("assistant", "Done. I haven't pushed the branch."),
    )
    document = build_document(store, SOURCES, session)
    assert texts(document, "key_decisions") == ["Which store should hold the baskets? → 2: PostgreSQL"]
    assert {one.message for one in section(document, "key_decisions").statements[0].evidence} == {1, 2}
    assert texts(document, "requests")[0] == "2: PostgreSQL (answers: Which store should hold the baskets?)"
    assert texts(document, "next_steps") == ["I haven't pushed the branch."]
    assert not document.unverified


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Shall we begin with the baskets?", "yes let's begin"),
        ("Did the bell ring this time?", "yes"),
        ("What would you like to work on?", "the baskets of the shop"),
    ],
)
def test_a_reply_that_takes_no_option_decides_nothing_by_itself(
    archive: Archive, store: Store, question: str, reply: str
) -> None:
    turns = (
        archive.history.turn("add baskets to the shop page", question),
        archive.history.turn(reply, "The page is open."),
    )
    assert texts(build_document(store, SOURCES, archive.take_in(*turns)), "key_decisions") == []


@pytest.mark.parametrize(
    "later", ["is it all done now?", "全部做完了吗", "¿ya está todo listo?", "still the old page here"]
)
def test_a_command_is_the_goal_if_nothing_was_ordered_after_it(archive: Archive, store: Store, later: str) -> None:
    command = "<command-name>/set-up</command-name>\n<command-args></command-args>"
    turns = (archive.history.turn(command, "The project is set up."), archive.history.turn(later, "Yes."))
    document = build_document(store, SOURCES, archive.take_in(*turns))
    assert texts(document, "high_level_goal") == ["/set-up → The project is set up."]


@pytest.mark.parametrize(
    ("requests", "goal"),
    [
        (("list the plans of the shop with their prices", "one has only a yearly price"), 0),
        (("what is in this folder and why", "Add a page that lists the lamps of the shop."), 1),
        (("konnichiwa", "soko-wa-kazu-wo-kazoeru-pe-ji-wo-tsukutte-kudasai"), 1),
        (("<command-name>/chrome</command-name>", "git clone https://example.org/lamps and copy the rules"), 1),
    ],
)
def test_a_remark_is_no_goal_and_neither_is_a_greeting_in_any_language(
    archive: Archive, store: Store, requests: tuple[str, str], goal: int
) -> None:
    session = archive.take_in(*(archive.history.turn(one, "So it is.") for one in requests))
    (found,) = texts(build_document(store, SOURCES, session), "high_level_goal")
    assert found.startswith(requests[goal])


def test_the_goal_grows_with_later_requests(archive: Archive, store: Store) -> None:
    line = archive.history.line
    session = archive.take_in(
        line("user", "hello"),
        line("assistant", "Hello."),
        line("user", "add baskets to the shop page"),
        line("assistant", "Added."),
        line("user", "please let the baskets expire after a day"),
    )
    document = build_document(store, SOURCES, session)
    goal = "add baskets to the shop page — later: please let the baskets expire after a day"
    assert texts(document, "high_level_goal") == [goal]
    assert texts(document, "next_steps") == [
        "last request, not reported as done: please let the baskets expire after a day"
    ]


def test_the_goal_names_the_request_that_most_turns_belong_to(archive: Archive, store: Store) -> None:
    turn = archive.history.turn
    session = archive.take_in(
        turn("clean up the comments in the stylesheet", "Done."),
        turn("please prepare my talk about the harbour project for the interview", "Here it is."),
        *(turn(one, "So.") for one in ("which words are hard", "what about questions", "how long is it", "why boats")),
        turn("write a small readme file too", "Written."),
        turn("continue", "Nothing to do."),
    )
    document = build_document(store, SOURCES, session)
    assert texts(document, "high_level_goal") == [
        "clean up the comments in the stylesheet — later: please prepare my talk about the harbour project for the interview"
        " · write a small readme file too"
    ]
    assert texts(document, "primary_task")[0] == "write a small readme file too"


def test_a_prompt_without_a_sentence_is_shown_with_the_title(archive: Archive, store: Store) -> None:
    title = b'{"type": "custom-title", "customTitle": "Broken build of the shop"}\n'
    session = archive.take_in(archive.history.turn("fix this", "Fixed."), title)
    goal = texts(build_document(store, SOURCES, session), "high_level_goal")
    assert goal == ["Broken build of the shop (title): fix this"]


def test_a_message_that_comes_back_after_others_is_no_goal(archive: Archive, store: Store) -> None:
    turn = archive.history.turn
    again = "Only if you changed code: update the notes of the project with what changed, why it changed and what to look out for."
    session = archive.take_in(
        *(
            one
            for asked in (
                "add baskets to the shop page",
                "let the baskets expire after a day",
                "sort the books by price",
            )
            for one in (turn(asked, "Done."), turn(again, "Done."))
        )
    )
    document = build_document(store, SOURCES, session)
    assert "notes of the project" not in texts(document, "high_level_goal")[0]
    assert texts(document, "primary_task")[0] == "sort the books by price"


def test_praise_at_the_end_is_neither_the_task_nor_left_to_do(archive: Archive, store: Store) -> None:
    turn = archive.history.turn
    session = archive.take_in(
        turn("add baskets to the shop page", "Added."), archive.history.line("user", "It's working GREAT!")
    )
    document = build_document(store, SOURCES, session)
    assert texts(document, "primary_task")[0] == "add baskets to the shop page"
    assert texts(document, "next_steps") == []


def test_a_numbered_request_is_the_task_with_all_its_parts(archive: Archive, store: Store) -> None:
    asked = "Three changes, please:\n" + "\n".join(
        f"{n}. {one} " + "and more " * 30 for n, one in enumerate(("sort books", "add baskets", "write docs"), 1)
    )
    (task, *_) = texts(
        build_document(store, SOURCES, archive.take_in(archive.history.turn(asked, "Done."))), "primary_task"
    )
    assert all(one in task for one in ("1. sort books", "2. add baskets", "3. write docs"))


def test_a_long_last_answer_is_there_whole(archive: Archive, store: Store) -> None:
    line = archive.history.line
    answer = " ".join(f"Part {number} of the shop is done." for number in range(40))
    session = archive.take_in(line("user", "add baskets to the shop page"), line("assistant", answer))
    said = texts(build_document(store, SOURCES, session), "primary_task")
    assert (
        said[1].startswith("the agent's last answer: Part 0")
        and said[2] == f"the agent's last answer, in full: {answer}"
    )


def test_the_open_boxes_of_a_task_file_are_left_to_do(archive: Archive, store: Store) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    tasks = "/home/ann/shop/TASKS.md"
    session = archive.take_in(
        line("user", "do the first open task of TASKS.md"),
        use("Read", "c1", file_path=tasks),
        back("c1", "1\t# Tasks\n2\t- [ ] Add the basket table\n3\t- [ ] Add the basket page"),
        use(
            "Edit",
            "c2",
            file_path=tasks,
            old_string="- [ ] Add the basket table",
            new_string="- [x] Add the basket table",
        ),
        back("c2", "updated"),
        line("assistant", "The table is there."),
    )
    assert texts(build_document(store, SOURCES, session), "plan_open") == ["[ ] Add the basket page"]


def test_a_task_file_that_the_prompt_names_is_the_plan(archive: Archive, store: Store) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    session = archive.take_in(
        line("user", "Process the first task of docs/TASKS-01.md"),
        use("Read", "c1", file_path="/home/ann/shop/docs/TASKS-01.md"),
        back("c1", "- [x] draw the map\n- [ ] write the legend\n  - in two colours\n"),
        line("assistant", "The map was drawn before."),
    )
    document = build_document(store, SOURCES, session)
    assert texts(document, "plan_open") == ["[ ] write the legend"]


def test_an_offer_that_nobody_took_up_is_left_and_one_that_was_is_not(archive: Archive, store: Store) -> None:
    line = archive.history.line
    said = [
        line("user", "add the ferry timetable"),
        line(
            "assistant", "Added it.\n\nWant me to draft a note for the harbour master? The CSV export is a follow-up."
        ),
        line("user", "where is the file?"),
        line("assistant", "In docs/ferry.md."),
    ]
    document = build_document(store, SOURCES, archive.take_in(*said))
    before = "mentioned in turn 1, before the last request: "
    assert texts(document, "open_questions") == []
    assert texts(document, "next_steps") == ["The CSV export is a follow-up."]  # a question takes up nothing
    assert texts(document, "loose_ends") == [f"{before}Want me to draft a note for the harbour master?"]


def test_work_without_a_report_is_left_to_do(archive: Archive, store: Store) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    session = archive.take_in(
        line("user", "add baskets to the shop page"),
        line("assistant", "I look at the page first."),
        use("Bash", "c1", command="cat TASKS.md"),
        back("c1", "- [ ] Add the basket table"),
    )
    document = build_document(store, SOURCES, session)
    assert texts(document, "next_steps") == [
        "last request, not reported as done: add baskets to the shop page → started but interrupted: I look at the page first."
    ]
    assert texts(document, "plan_open") == []  # nothing was ticked


def test_a_call_without_a_result_is_the_end_and_a_command_of_the_client_is_not(archive: Archive, store: Store) -> None:
    line, use = archive.history.line, archive.use
    session = archive.take_in(
        line("user", "add baskets to the shop page"),
        line("assistant", "I look at the page first."),
        use("Bash", "c1", command="cat shop.html"),
        line("user", "<command-name>/exit</command-name>"),
    )
    document = build_document(store, SOURCES, session)
    (found,) = texts(document, "next_steps")
    assert found.endswith("→ last call, without a result: cat shop.html")
    assert texts(document, "primary_task")[1:] == [
        "the agent's last answer, before its last calls: I look at the page first.",
        "last call, without a result: cat shop.html",
    ]


def test_the_tasks_of_a_file_are_one_entry_and_those_ticked_later_are_done(archive: Archive, store: Store) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    ticks = {"file_path": "/shop/tasks.md", "old_string": "- [ ] T002 Paint", "new_string": "- [x] T002 Paint"}
    session = archive.take_in(
        line("user", "do the first task of tasks.md"),
        use("Read", "c1", file_path="/shop/tasks.md"),
        back("c1", "- [ ] T001 Build\n- [ ] T002 Paint\n- [ ] T003 Oil\n- [ ] T004 Hang"),
        line("assistant", "It is built."),
        line("user", "now the second one"),
        use("Edit", "c2", **ticks),
        back("c2", "updated"),
        line("assistant", "It is painted."),
    )
    assert texts(build_document(store, SOURCES, session), "plan_open") == ["[ ] T001 Build · T003 Oil · T004 Hang"]


def test_a_decision_that_was_taken_back_says_so(archive: Archive, store: Store) -> None:
    line = archive.history.line
    session = archive.take_in(
        line("user", "Let's keep the shop tokens in Redis."),
        line("assistant", "All right."),
        line("user", "Scrap the Redis tokens of the shop."),
        line("assistant", "They are gone."),
    )
    document = build_document(store, SOURCES, session)
    assert texts(document, "key_decisions") == ["Let's keep the shop tokens in Redis. (taken back later)"]


def test_a_turn_that_changed_files_is_one_decision_with_the_places_of_all_its_words(
    archive: Archive, store: Store
) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    session = archive.take_in(
        line("user", "round the totals on the page"),
        line("assistant", "Since the API has no filter, I'll do it in the client instead of the server."),
        use("Edit", "c1", file_path="/home/ann/shop/page.py", old_string="a", new_string="b"),
        back("c1", "edited"),
        line("assistant", "`page.py` now rounds the total once, not per item. All tests pass."),
        line("user", "thanks, what does it print?"),
        line("assistant", "It prints the total."),
    )
    decisions = section(build_document(store, SOURCES, session), "key_decisions").statements
    assert [one.text for one in decisions] == [
        "Since the API has no filter, I'll do it in the client instead of the server. · "
        "`page.py` now rounds the total once, not per item."
    ]
    assert {proof.message: proof.quote.split()[0] for proof in decisions[0].evidence} == {1: "Since", 4: "`page.py`"}


def test_of_two_values_of_one_choice_the_last_stands(archive: Archive, store: Store) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    lines = []
    for number, port in enumerate(("8080", "9090")):
        lines += [
            line("user", f"which port fits shop {number} best?"),
            use("Edit", f"c{number}", file_path="/home/ann/shop/page.py", old_string="a", new_string="b"),
            back(f"c{number}", "edited"),
            line("assistant", f"Switched the basket server to port {port} instead of the default of the framework."),
        ]
    told = " ".join(texts(build_document(store, SOURCES, archive.take_in(*lines)), "key_decisions"))
    assert "9090" in told and "8080" not in told


def test_the_rules_of_one_message_are_one_constraint(archive: Archive, store: Store) -> None:
    rules = ["Never edit the generated files.", "Avoid long outputs.", "Always run the tests."]
    session = archive.take_in(archive.history.turn("\n".join(rules), "done"))
    assert texts(build_document(store, SOURCES, session), "constraints") == [" · ".join(rules)]


def test_commands_that_steer_the_client_are_not_left_to_do(archive: Archive, store: Store) -> None:
    line = archive.history.line
    session = archive.take_in(line("user", "add baskets"), line("assistant", "Added baskets."), line("user", "/clear"))
    assert texts(build_document(store, SOURCES, session), "next_steps") == []


def test_a_proposal_is_a_decision_when_the_person_agrees(archive: Archive, store: Store) -> None:
    line = archive.history.line
    proposal = "I'd use PostgreSQL instead of SQLite for the orders, since several servers write at once."
    second = "A job clears old baskets every night."
    asked = [
        line("user", "how should we keep the orders?"),
        line("assistant", f"{second}\n\n{proposal}\n\nShall I go on with that?"),
    ]
    session = archive.take_in(*asked, line("user", "yes"), line("assistant", "I wrote the table."))
    told = [one.text for one in section(build_document(store, SOURCES, session), "key_decisions").statements]
    assert any(proposal in one for one in told) and any(second in one for one in told)
    again = archive.take_in(*asked, line("user", "no, what does it cost?"), line("assistant", "Nothing."))
    told = [one.text for one in section(build_document(store, SOURCES, again), "key_decisions").statements]
    assert not any(proposal in one or second in one for one in told)


def test_looking_for_the_goal_of_a_long_session_is_work_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Random(7)
    words = ["".join(draw.choices("abcdefghiklmnoprstu", k=7)) for _ in range(1_600)]
    looked: list[str] = []

    def count(text: str) -> frozenset[str]:
        looked.append(text)
        return topic_words(text)

    monkeypatch.setattr(goal, "topic_words", count)
    counts = []
    for size in (100, 400):
        asked = [f"add the {' '.join(words[4 * at : 4 * at + 4])} {at} to the page" for at in range(size)]
        requests = tuple(TurnRequest(text, at, at, "human") for at, text in enumerate(asked))
        looked.clear()
        assert goal._find_growth(SessionState(requests=requests))
        counts.append(len(looked))
    assert counts[1] <= 5 * counts[0]


def test_a_call_that_failed_is_told_if_no_answer_reports_on_it(archive: Archive, store: Store) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    session = archive.take_in(
        line("user", "Start the harbour."),
        use("Bash", "c1", command="shipctl quay list"),
        back("c1", "8"),
        use("Bash", "c2", command="shipctl harbour up | tail -5"),
        back("c2", "Error: quay locked by ann"),
        use("Bash", "c3", command="shipctl crane up | tail -5"),
        back("c3", "12 crates"),
    )
    document = build_document(store, SOURCES, session)
    assert not document.unverified
    assert texts(document, "still_failing") == [
        "`shipctl harbour up | tail -5` failed in turn 1: Error: quay locked by ann"
    ]
    assert texts(document, "commands") == [
        "`shipctl crane up | tail -5`",
        "`shipctl harbour up | tail -5` → failed: Error: quay locked by ann",
        "`shipctl quay list` → ok",
    ]
