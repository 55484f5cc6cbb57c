"""The contract of a store: the edit index, and which calls a message answers."""

from __future__ import annotations

from everturn.model.archive import EditLines
from everturn.store.contract import Store
from tests.store.building import NOON, answer, growth_of, new_session, prompt, result


def tell_edits(store: Store, session: int, *edits: EditLines) -> None:
    """Add a turn with two calls, of which the first is answered, and edits of the first."""
    messages = [prompt("do it", 1), answer("yes", 2, "c1"), result("c1", "done", 3), answer("more", 4, "c2")]
    growth = growth_of(store, session, messages)
    growth.edits = list(edits)
    with store.write():
        store.append(session, growth)


def edit(path: str, *lines: str, n: int = 0, at: int = NOON) -> EditLines:
    return EditLines(1, 1, n, 0, at, at, "replace", path, [list(lines)])


def test_edits_are_found_by_the_name_of_their_file_whatever_its_folder(store: Store) -> None:
    session = new_session(store)
    tell_edits(store, session, edit("/w/src/App.py", "x = 1"), edit("C:\\w\\app.py", "y", n=1), edit("/w/b.py", n=2))
    found = store.edits_of_file(["app.py"])
    assert [one.row.path for one in found] == ["/w/src/App.py", "C:\\w\\app.py"]
    assert {(one.call_id, one.tool, one.current, one.inherited) for one in found} == {("c1", "Bash", True, False)}
    assert store.edits_of_file(["none.py"]) == []
    assert [one.row.n for one in store.edits_of_session(session)] == [0, 1, 2]
    assert store.edits_of_session(session + 1) == []


def test_edited_paths_begin_as_asked_and_are_named_once(store: Store) -> None:
    tell_edits(store, new_session(store), edit("/w/a.py"), edit("/w/a.py", n=1), edit("/other/a.py", n=2))
    assert store.edited_paths("/w/") == ["/w/a.py"]
    assert store.edited_paths("") == ["/other/a.py", "/w/a.py"]
    assert store.edited_paths("/x") == []


def test_the_span_of_edits_is_that_of_their_times(store: Store) -> None:
    assert store.edit_span() is None
    tell_edits(store, new_session(store), edit("/a", at=NOON + 5), edit("/b", n=1, at=NOON))
    assert store.edit_span() == (NOON, NOON + 5)


def test_a_line_has_one_hash_in_an_archive_and_white_space_does_not_count(store: Store) -> None:
    same, indented, other, blank = store.line_hashes(["a = 1", "    a  =\t1", "a = 2", "  "])
    assert same == indented != other
    assert blank == bytes(len(same))
    tell_edits(store, new_session(store), edit("/a", "a = 1", "b"))
    (found,) = store.edits_of_file(["a"])
    assert found.row.lines.startswith(same)


def test_a_call_names_the_message_of_its_result_and_a_message_the_calls_it_answers(store: Store) -> None:
    session = new_session(store)
    tell_edits(store, session)
    assert store.result_seq(session, 1, 1) == 2
    assert store.result_seq(session, 3, 1) is None
    assert store.result_seq(session, 9, 9) is None
    assert [call.call_id for call in store.calls_answered(session, 2)] == ["c1"]
    assert store.calls_answered(session, 0) == []
