"""A session as a page: what a reader finds on it, and where."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everturn.capture.policy import Policy
from everturn.export.page.content import markdown_html
from everturn.export.page.markup import PageLook, make_visible
from everturn.export.page.standalone import as_html
from everturn.export.page.turn import diff_html, turn_html
from everturn.model.archive import Session, Turn
from everturn.secrets.redaction import redact_text
from everturn.sessions.lookup import put_marks, resolve_session
from everturn.sessions.messages import TurnView, passages, read_turns
from everturn.sources.contract import all_sources
from tests.capture.history import OTHER, SID, History
from tests.export.pages import Seen, page
from tests.recall.archives import Archive

KEY = "AKIA" + "Q7XW2MZP4RTY5LNB"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join(["MIIEowIBAAKCAQEA" + "q7Xw" * 12] * 6)
    + "\n-----END RSA PRIVATE KEY-----"
)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def seen(archive: Archive, *sessions: Session, **wanted: bool) -> Seen:
    found = Seen(page(archive.store, *sessions, **wanted))
    assert found.wrong == []
    return found


def text(archive: Archive, words: str) -> bytes:
    return archive.history.line("assistant", [{"type": "text", "text": words}])


def turns_of(archive: Archive, session: Session, look: PageLook) -> str:
    told = (
        "".join(turn_html(view, passages(archive.store, all_sources(), session, view, results=True), look))
        for view in read_turns(archive.store, session)
    )
    return "".join(told)


# turns ----------------------------------------------------------------------------------------------------------------
def test_a_turn_has_an_anchor_a_link_to_it_and_its_place_in_the_list(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("ask", "reply"), archive.history.turn("again", "yes"))
    found = seen(archive, session)
    assert [one["id"] for one in found.classes("turn")] == ["t1", "t2"]
    links = [given.get("href") for tag, given in found.elements if tag == "a"]
    assert links == ["#t1", "#t2", "#t1", "#t2", "#t1", "#t2"]  # on the map, above the turns, in the list
    assert found.text.count("again") == 2


def test_an_answer_is_rendered_and_a_prompt_stands_as_it_was_typed(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", "**not** bold\n  kept"), text(archive, "**bold** and `code`")
    )
    written = page(archive.store, session)
    assert '<pre class="plain">**not** bold\n  kept</pre>' in written
    assert "<strong>bold</strong> and <code>code</code>" in written


def test_most_of_a_long_paste_is_folded(archive: Archive) -> None:
    pasted = "\n".join(f"line {n}" for n in range(100))
    written = page(archive.store, archive.take_in(archive.history.turn(pasted, "reply")))
    assert "line 23</pre>" in written
    assert "76 more lines" in written
    assert "line 99</pre></details>" in written


def test_thinking_is_folded(archive: Archive) -> None:
    thought = archive.history.line("assistant", [{"type": "thinking", "thinking": "hm\nwell", "signature": "s"}])
    found = seen(archive, archive.take_in(archive.history.line("user", "ask"), thought, text(archive, "done")))
    (fold,) = found.classes("thinking")
    assert "open" not in fold
    assert "hm\nwell" in found.text


def test_parallel_calls_stand_together_and_others_alone(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", "look"),
        archive.use("Read", "a", "m1", file_path="/home/ann/shop/a.py"),
        archive.use("Read", "b", "m1", file_path="/home/ann/shop/b.py"),
        archive.back("a", "one"),
        archive.back("b", "two"),
        archive.use("Bash", "c", command="ls"),
        archive.back("c", "three"),
    )
    found = seen(archive, session)
    assert len(found.classes("batch")) == 1
    assert len(found.classes("call")) == 3
    assert "2 in parallel" in found.text
    inside = page(archive.store, session).partition('class="batch"')[2].partition("</div></div>")[0]
    assert ("a.py" in inside, "b.py" in inside, "three" in inside) == (True, True, False)


def test_a_failure_can_be_read_without_opening_it(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", "run"),
        archive.use("Bash", "a", command="make"),
        archive.back("a", "cc -c x.c\nx.c:1: error: no such header\nmake stopped", failed=True),
    )
    written = page(archive.store, session)
    assert '<details class="call error shell">' in written
    assert '<span class="complaint">x.c:1: error: no such header</span></summary>' in written


def test_an_edit_is_a_diff_that_is_open_when_short(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", "edit"),
        archive.use("Edit", "a", file_path="/home/ann/shop/a.py", old_string="x = 1\ny", new_string="x = 2\ny"),
        archive.back("a", "ok"),
        archive.use("Write", "b", file_path="/home/ann/shop/b.py", content="line\n" * 100),
        archive.back("b", "ok"),
    )
    written = page(archive.store, session)
    assert '<span class="del">-x = 1\n</span><span class="add">+x = 2\n</span> y' in written
    assert [one.partition(">")[0] for one in written.split('<details class="call ')[1:]] == [
        'ok edit" open',
        'ok create"',
    ]
    assert '<code class="about">a.py</code>' in written, "named as it is within the workspace"


def test_a_subagent_stands_folded_where_it_was_started(archive: Archive) -> None:
    archive.subagent(
        "helper",
        archive.helper("helper", "user", "look for it"),
        archive.helper("helper", "assistant", [{"type": "text", "text": "it is in b.py"}]),
    )
    session = archive.take_in(
        archive.history.line("user", "find"),
        archive.use("Task", "a", prompt="look for it"),
        archive.back("a", "found", agentId="helper"),
        text(archive, "thanks"),
    )
    written = page(archive.store, session)
    found = Seen(written)
    assert found.wrong == []
    assert [one["id"] for one in found.classes("turn")] == ["t1", "s2-t1"]
    child = written.partition('<details class="child">')[2].partition("</article>")[0]
    assert "it is in b.py" in child
    assert "thanks" not in child


def test_sessions_that_name_each_other_are_written_once(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("ask", "reply"))
    assert len(seen(archive, session, session).classes("turn")) == 2
    other = archive.take_in(archive.history.turn("more", "words", OTHER), sid=OTHER)
    found = seen(archive, session, other)
    assert [one["id"] for one in found.classes("turn")] == ["t1", "s2-t1"]
    links = [given.get("href") for tag, given in found.elements if tag == "a"]
    assert links[-4:] == ["#s1", "#t1", "#s2", "#s2-t1"], "the list says where each session begins"


def test_marks_stand_where_something_happened(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", "go"),
        text(archive, "going"),
        archive.history.line("user", [{"type": "text", "text": "[Request interrupted by user]"}]),
        archive.history.turn("on", "yes"),
        b"{broken\n",
    )
    found = seen(archive, session)
    assert len(found.classes("interrupt")) == 1
    assert len(found.classes("problem")) == 1


def test_a_long_pause_is_told() -> None:
    before, after = Turn(idx=0, ended=0), Turn(idx=1, started=3 * 86_400_000)
    written = "".join(turn_html(TurnView(after, [], [], []), (), PageLook(), before))
    assert '<p class="mark pause">3d later</p>' in written


def test_a_session_that_is_taken_up_again_says_where() -> None:
    view = TurnView(Turn(idx=1), [], [], [])
    assert "Resumed here" in "".join(turn_html(view, (), PageLook(), Turn(idx=0, inherited=1)))


def test_context_is_left_out_unless_asked_for(archive: Archive) -> None:
    note = archive.history.line("user", "<system-reminder>be good</system-reminder>", isMeta=True)
    session = archive.take_in(archive.history.line("user", "ask"), note, text(archive, "done"))
    assert "be good" not in seen(archive, session).text
    assert "be good" in seen(archive, session, context=True).text


def test_a_session_without_words_says_so(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("secret words", "x"), policy=Policy(mode="structure"))
    found = seen(archive, session)
    assert "Only the structure" in found.text
    assert "secret words" not in found.text


# room -----------------------------------------------------------------------------------------------------------------
def test_a_long_text_is_cut_and_the_way_to_all_of_it_is_shown(archive: Archive) -> None:
    session = archive.take_in(archive.history.tool_turn("run", "cat x", "begin " + "x" * 5000 + " end"))
    look = PageLook(longest=1000, to_whole=lambda seq: f"/whole/{seq}")
    written = turns_of(archive, session, look)
    assert "begin" in written and " end</pre>" in written
    assert "… 4,010 characters left out …" in written
    assert '<a href="/whole/2">show all</a>' in written, "the message with the output, not the one with the call"
    assert "show all" not in turns_of(archive, session, PageLook(longest=1000))


def test_a_turn_takes_no_more_than_its_share_of_the_page(archive: Archive) -> None:
    calls = [archive.history.tool_turn("run" if n == 0 else "", "cat x", "y" * 5000) for n in range(1)]
    for n in range(50):
        calls += [archive.use("Bash", f"c{n}", command="cat"), archive.back(f"c{n}", "y" * 5000)]
    session = archive.take_in(*calls)
    assert len(turns_of(archive, session, PageLook(most=20_000))) < 90_000
    assert len(turns_of(archive, session, PageLook())) > 250_000


def test_what_a_client_inserted_is_one_fold(archive: Archive) -> None:
    history = archive.history
    inserted = [history.line("user", f"inserted {n}", isMeta=True) for n in range(3)]
    session = archive.take_in(*inserted, history.turn("go", "done"))
    written = turns_of(archive, session, PageLook())
    assert Seen(written).wrong == []
    assert written.count('class="fold inserted"') == 1
    assert written.index("inserted 2") < written.index("</div></details>") < written.index(">go<")


# secrets --------------------------------------------------------------------------------------------------------------
def test_secrets_are_masked_wherever_they_stand(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", f"use {KEY}"),
        archive.use("Bash", "a", command=f"export AWS_ACCESS_KEY_ID={KEY}"),
        archive.back("a", f"Error: {KEY}", failed=True),
        archive.use("Write", "b", file_path="/home/ann/shop/key.pem", content=PEM),
        archive.back("b", "ok"),
        text(archive, f"the key is `{KEY}`"),
    )
    masked = "".join(as_html(archive.store, all_sources(), [session], redact_text))
    assert KEY not in masked
    assert "MIIEowIBAAKCAQEA" not in masked
    assert "Secrets that were recognised are masked" in masked
    revealed = page(archive.store, session)
    assert KEY in revealed
    assert "Nothing is masked" in revealed


# the file -------------------------------------------------------------------------------------------------------------
def test_the_file_allows_nothing_but_its_own_style_and_script(archive: Archive) -> None:
    found = seen(archive, archive.take_in(archive.history.turn("ask", "reply")))
    policy = next(given["content"] for _, given in found.elements if given.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert policy.count("'sha256-") == 2


@pytest.mark.slow
def test_a_file_is_written_without_the_packages_of_the_web(tmp_path: Path) -> None:
    history = History(tmp_path / "agent")
    history.write(history.turn("ask", "**reply**"))
    program = (
        "import sys\n"
        "for name in ('jinja2', 'markupsafe', 'starlette', 'uvicorn'): sys.modules[name] = None\n"
        "from everturn.cli import main\n"
        "db, made, given = sys.argv[1:]\n"
        "assert main(['add', given, '--db', db]) == 0\n"
        "sys.exit(main(['export', '@last', '--as', 'html', '--out', made, '--db', db]))\n"
    )
    made = tmp_path / "page.html"
    arguments = [str(tmp_path / "a.db"), str(made), str(history.file())]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "<strong>reply</strong>" in made.read_text("utf-8")


def test_a_title_of_ones_own_goes_out_with_the_file_and_a_note_does_not(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("ask", "reply"))
    put_marks(archive.store, session, 0, title="<The parser>", note="for me alone")
    written = page(archive.store, session)
    assert "<h1>&lt;The parser&gt;</h1>" in written and "<title>&lt;The parser&gt;</title>" in written
    assert "for me alone" not in written


def test_the_same_session_gives_the_same_file(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("ask", "reply"))
    assert page(archive.store, session) == page(archive.store, resolve_session(archive.store, SID))


@pytest.mark.few(1)
def test_the_generated_histories_are_well_formed(archive: Archive, tmp_path: Any) -> None:
    from everturn.store.contract import SessionFilter
    from tests.capture.history import run
    from tests.transcripts import write_history

    write_history(archive.history.root, seed=3, sessions=4)
    run(archive.store, archive.history)
    rows, _ = archive.store.sessions(SessionFilter(), limit=100)
    assert len(rows) >= 4
    for row, _ in rows:
        assert seen(archive, row, context=True).count("section") >= row.n_turns


# single texts ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("plain words", "<p>plain words</p>"),
        ("one\n\ntwo", "<p>one</p><p>two</p>"),
        ("# Title", "<h3>Title</h3>\n"),
        ("## Plan\n\n#### Deep\n\n# Top", "<h3>Plan</h3>\n<h4>Deep</h4>\n<h3>Top</h3>\n"),
        ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>\n"),
        ("[a](src/x.py)", '<p><span class="reference" title="src/x.py">a</span></p>\n'),
        ("[a](javascript:x)", '<p><span class="reference" title="javascript:x">a</span></p>\n'),
        (
            "[docs](https://e.org/x)",
            '<p><a href="https://e.org/x" rel="noopener noreferrer nofollow">docs</a> (e.org)</p>\n',
        ),
        ("<https://e.org>", '<p><a href="https://e.org" rel="noopener noreferrer nofollow">https://e.org</a></p>\n'),
        ("![cat](https://e.org/c.png)", "<p>[picture: cat] (https://e.org/c.png)</p>\n"),
        ("```x onload=1\n<a>\n```", "<pre><code>&lt;a&gt;\n</code></pre>\n"),
        ("~~a~~", "<p><s>a</s></p>\n"),
        ("", ""),
    ],
)
def test_markdown(given: str, expected: str) -> None:
    assert markdown_html(given) == expected


def test_a_table_is_a_table_without_styles() -> None:
    written = markdown_html("| a | b |\n|---|--:|\n| 1 | 2 |")
    assert '<td class="right">2</td>' in written
    assert "style" not in written


def test_markdown_that_is_too_long_is_shown_as_it_is() -> None:
    written = markdown_html("**x** " * 50_000)
    assert written.startswith('<div class="plain">**x**')


def test_a_very_long_word_can_be_broken() -> None:
    assert markdown_html("x" * 1000).count("<wbr>") == 9
    assert markdown_html("*" + "x" * 1000 + "*").count("<wbr>") == 9


def test_emoji_made_of_several_stay_whole_and_joiners_between_letters_are_shown() -> None:
    assert make_visible("👩\u200d💻 a\u200db") == "👩\u200d💻 a⟨U+200D⟩b"


def test_one_line_of_a_diff_is_one_line() -> None:
    assert diff_html(["+a\r\nb", " c"]) == '<pre class="diff"><span class="add">+a␊b\n</span> c\n</pre>'
