"""A sync takes in what is new, whatever happened to the files, and loses nothing."""

from __future__ import annotations

import json
import os
import random
import string
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths, sync_all
from everturn.errors import MissingPath
from everturn.model.conversation import ReadResult
from everturn.sources.contract import SearchPlaces, SourceCandidate, SourceReader, all_sources
from everturn.store.contract import SessionFilter, Store, open_store
from tests.capture.history import (
    FORMAT,
    OTHER,
    SID,
    WORKSPACE,
    History,
    current,
    everything,
    hits,
    job,
    raw,
    run,
    sessions,
    ticking,
)


def test_a_new_file_is_taken_in_byte_for_byte_and_can_be_found(any_store: Store, history: History) -> None:
    data = history.turn("please fix parse_json_line", "done in auth.py") + history.turn("会话恢复", "好")
    path = history.write(data)
    report = run(any_store, history)
    assert (report.new, report.sessions, report.turns, report.messages, report.failed) == (1, 1, 2, 4, [])
    assert raw(any_store, path) == data
    assert hits(any_store, "parse") == [(SID, 0)]
    assert hits(any_store, "auth") == [(SID, 1)]
    session, text = any_store.session(current(any_store).id)
    assert (text.workspace, text.branch, text.first_prompt) == (WORKSPACE, "main", "please fix parse_json_line")
    assert (session.machine, session.owner, session.tokens_out, session.n_prompts) == ("box", "ann", 4, 2)


def test_a_second_sync_reads_nothing(any_store: Store, history: History) -> None:
    history.write(history.turn("a", "b"))
    run(any_store, history)
    report = run(any_store, history)
    assert (report.unchanged, report.files, report.bytes_read) == (1, 0, 0)


def test_only_new_bytes_are_read_when_a_file_grows(any_store: Store, history: History) -> None:
    path = history.write(history.turn("one", "uno"))
    run(any_store, history)
    more = history.turn("two", "dos")
    history.grow(more)
    report = run(any_store, history)
    assert (report.grown, report.bytes_read, report.messages) == (1, len(more), 2)
    assert current(any_store).n_turns == 2
    assert raw(any_store, path) == path.read_bytes()
    assert len(any_store.versions(any_store.files()[0][0].id)) == 1


def test_growing_in_any_pieces_gives_the_same_rows_as_reading_at_once(tmp_path: Path, history: History) -> None:
    data = b"".join(history.tool_turn(f"ask {n}", f"cat file{n}.py", "text") for n in range(6))
    at_once, by_pieces = open_store("memory:"), open_store("memory:")
    history.write(data)
    run(at_once, history)
    for end in range(0, len(data) + 97, 97):
        history.write(data[:end])
        run(by_pieces, history)
    assert list(everything(by_pieces)) == list(everything(at_once))
    assert by_pieces.files()[0][1].size == len(data)


def test_half_a_line_is_kept_and_read_once_it_is_whole(any_store: Store, history: History) -> None:
    whole = history.turn("ask", "reply")
    path = history.write(whole[:-40])
    report = run(any_store, history)
    assert report.messages == 1
    assert raw(any_store, path) == whole[:-40]
    assert [p.kind for p in any_store.problems()] == ["torn_tail"]
    path.write_bytes(whole)
    run(any_store, history)
    assert current(any_store).n_messages == 2
    assert any_store.problems() == []


def test_a_truncated_file_becomes_a_new_version_and_the_old_one_stays(any_store: Store, history: History) -> None:
    first = history.turn("keep walrus", "yes") + history.turn("second", "zebra")
    path = history.write(first)
    run(any_store, history)
    path.write_bytes(first[: len(history.turn("keep walrus", "yes")) - 10])
    report = run(any_store, history)
    assert report.rewritten == 1
    assert raw(any_store, path, 1) == first
    assert raw(any_store, path, 2) == path.read_bytes()
    assert [row.state for row in sessions(any_store)] == ["superseded", "current"]
    assert hits(any_store, "zebra"), "what only the old version says must still be found"


def test_a_rewritten_file_shares_what_it_has_in_common(any_store: Store, history: History) -> None:
    old = b"".join(history.turn(f"ask {n}", "reply " * 2000) for n in range(60))
    path = history.write(old)
    run(any_store, history)
    before = any_store.sizes()["raw"]
    new = old[:-500] + b"x\n"
    path.write_bytes(new)
    run(any_store, history)
    assert raw(any_store, path, 1) == old
    assert raw(any_store, path, 2) == new
    assert any_store.sizes()["raw"] < before * 1.6


def test_a_file_replaced_by_one_of_the_same_size_is_noticed(any_store: Store, history: History) -> None:
    data = history.turn("aaaa", "reply")
    path = history.write(data)
    run(any_store, history)
    other = data.replace(b"aaaa", b"bbbb")
    spare = path.with_suffix(".new")
    spare.write_bytes(other)
    os.replace(spare, path)
    assert run(any_store, history).rewritten == 1
    assert (raw(any_store, path, 1), raw(any_store, path, 2)) == (data, other)


def test_a_touched_file_is_not_a_new_version(any_store: Store, history: History) -> None:
    path = history.write(history.turn("a", "b"))
    run(any_store, history)
    os.utime(path, (1, 1))
    report = run(any_store, history)
    assert (report.rewritten, report.messages) == (0, 0)
    assert run(any_store, history).unchanged == 1


def test_a_deleted_file_stays_in_the_archive(any_store: Store, history: History) -> None:
    data = history.turn("precious words", "yes")
    path = history.write(data)
    run(any_store, history)
    path.unlink()
    assert run(any_store, history).gone == 1
    assert raw(any_store, path) == data
    assert hits(any_store, "precious") == [(SID, 0)]
    assert any_store.count_sessions(SessionFilter()) == 1
    path.write_bytes(data)
    run(any_store, history)
    assert any_store.files()[0][0].state == "live"


def test_a_moved_file_is_the_same_session_at_another_place(any_store: Store, history: History) -> None:
    path = history.write(history.turn("a", "b"))
    run(any_store, history)
    new = history.root / "projects" / "-elsewhere"
    new.mkdir()
    path.rename(new / path.name)
    report = run(any_store, history)
    assert (report.moved, report.gone, report.messages) == (1, 0, 0)
    assert [file.path for file, _ in any_store.files()] == [str(new / path.name)]
    assert len(sessions(any_store)) == 1


@pytest.mark.parametrize("grown", [False, True])
def test_a_file_that_was_copied_to_another_place_and_deleted_has_moved(
    grown: bool, any_store: Store, history: History
) -> None:
    data = history.turn("a", "b")
    path = history.write(data)
    run(any_store, history)
    new = _at_another_place(path, data + history.turn("c", "d") if grown else data)
    report = run(any_store, history)
    assert (report.moved, report.gone, report.messages) == (1, 0, 2 if grown else 0)
    assert [file.path for file, _ in any_store.files()] == [str(new)]
    assert len(sessions(any_store)) == 1


def test_a_smaller_file_of_the_same_name_at_another_place_is_another_file(any_store: Store, history: History) -> None:
    data = history.turn("a", "b") + history.turn("c", "d")
    path = history.write(data)
    run(any_store, history)
    new = _at_another_place(path, data[:-1])
    report = run(any_store, history)
    assert (report.moved, report.gone, report.new) == (0, 1, 1)
    assert {(file.path, file.state) for file, _ in any_store.files()} == {(str(path), "gone"), (str(new), "live")}
    assert raw(any_store, path) == data


def _at_another_place(path: Path, data: bytes) -> Path:
    """A file with the name of one that is deleted, and an inode of its own."""
    new = path.parent.with_name("-elsewhere") / path.name
    new.parent.mkdir()
    new.write_bytes(data)
    path.unlink()
    return new


def test_a_fork_is_counted_once_and_linked(any_store: Store, history: History) -> None:
    shared = history.turn("common octopus", "reply")
    history.write(shared)
    run(any_store, history)
    history.write(history.fork(shared, OTHER) + history.turn("own", "words", OTHER), OTHER)
    run(any_store, history)
    fork = current(any_store, OTHER)
    assert (fork.n_messages, fork.n_inherited, fork.tokens_out) == (4, 2, 2)
    assert hits(any_store, "octopus") == [(SID, 0)]
    assert [(link.relation, link.native_id, link.n) for link in any_store.links(fork.id)] == [("forked_from", SID, 2)]


def test_a_rule_keeps_a_workspace_out(any_store: Store, history: History) -> None:
    history.write(history.turn("secret", "plan"))
    report = run(any_store, history, Policy(exclude=(WORKSPACE,)))
    assert (report.off, report.new) == (1, 0)
    assert any_store.files() == []


def test_structure_mode_keeps_no_word_and_all_numbers(tmp_path: Path, history: History) -> None:
    path = tmp_path / "structure.db"
    store = open_store(str(path))
    data = history.tool_turn("canary prompt zanzibar", "cat /canary/pathzanzibar", "outputzanzibar")
    data += history.turn("again zanzibar", "answerzanzibar", cwd="/home/zanzibar")
    history.write(data[:-30])
    run(store, history, Policy(mode="structure"))
    history.write(data)
    run(store, history, Policy(mode="structure"))
    session = current(store)
    assert (session.n_turns, session.n_calls, session.n_messages, session.n_prompts) == (2, 1, 5, 2)
    assert [(c.name, c.status) for c in store.calls(session.id)] == [("Bash", "ok")]
    store.close()
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("structure.db*"))
    assert b"zanzibar" not in stored


def test_redacted_mode_stores_no_secret(tmp_path: Path, history: History) -> None:
    secret = "sk-ant-" + "api03-" + "Ab1" * 30
    from everturn.secrets.redaction import redact_bytes

    path = tmp_path / "redacted.db"
    store = open_store(str(path))
    data = history.turn(f"use {secret} please", "no problem") + history.turn("next", "fine")
    history.write(data[:-20])
    run(store, history, Policy(mode="redacted", redact=redact_bytes))
    history.write(data)
    run(store, history, Policy(mode="redacted", redact=redact_bytes))
    kept = raw(store, history.file())
    assert secret.encode() not in kept
    assert b"REDACTED" in kept
    assert current(store).n_messages == 4
    assert run(store, history, Policy(mode="redacted", redact=redact_bytes)).unchanged == 1


def _history_with_keys(dice: random.Random) -> tuple[str, list[str]]:
    """A Markdown history with private keys in a prompt, an answer, an output and cut off; and the lines of their bodies."""
    letters = string.ascii_letters + string.digits + "+/"
    body = ["".join(dice.choices(letters, k=64)) for _ in range(40)]
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    asked = [begin, "Proc-Type: 4,ENCRYPTED", "", *body[:12], end]
    putty = ["PuTTY-User-Key-File-3: ssh-rsa", "Private-Lines: 8", *body[24:32], "Private-MAC: 00"]
    lines = [
        "# aider chat started at 2026-03-01 09:00:00", "", "#### use this key  ", *(f"#### {line}  " for line in asked), "",
        "I keep it:", "```", begin, *body[12:18], end, "```", "", "#### show the other  ", "",
        *(f"> {line}  " for line in (begin, *body[18:24], end)), "", "```", *putty, "```", "", "#### and the last  ", "",
        begin, *body[32:], "That is all there is of it.", "", "#### thanks  ", "", "Gladly.", "",
    ]  # fmt: skip
    return "\n".join(lines), body


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_private_key_over_many_lines_of_text_is_masked_while_it_is_written(tmp_path: Path, line_end: str) -> None:
    dice = random.Random(7)
    text, body = _history_with_keys(dice)
    data = text.replace("\n", line_end).encode()
    kept = []
    for cuts in ((), sorted(dice.sample(range(len(data)), 12))):
        path = tmp_path / f"{len(cuts)}" / ".aider.chat.history.md"
        path.parent.mkdir()
        with closing(open_store(str(tmp_path / f"{len(cuts)}.db"))) as store:
            one = replace(job(store, History(path.parent), Policy(mode="redacted")), sources=all_sources())
            for end in (*cuts, len(data)):
                path.write_bytes(data[:end])
                assert add_paths(one, [path]).failed == []
            kept.append(raw(store, path))
            shown = repr(everything(store)).encode() + kept[-1]
        assert not [line for line in body if line[8:40].encode() in shown]
        assert kept[-1].count(b"[REDACTED:private_key]") == 4 and b"Gladly." in kept[-1]
    assert kept[0] == kept[1]


def test_a_change_of_mode_starts_a_new_version_and_keeps_the_old(any_store: Store, history: History) -> None:
    path = history.write(history.turn("a", "b"))
    run(any_store, history)
    history.grow(history.turn("c", "d"))
    run(any_store, history, Policy(rules=((WORKSPACE, "structure"),)))
    versions = any_store.versions(any_store.files()[0][0].id)
    assert [(v.number, v.mode, v.reason) for v in versions] == [(1, "full", "first"), (2, "structure", "mode")]
    assert raw(any_store, path, 1) == path.read_bytes()[: versions[0].size]


def test_an_unreadable_file_waits_in_quarantine_and_is_tried_again_later(any_store: Store, history: History) -> None:
    good = history.turn("good", "one")
    history.write(good, OTHER)
    bad = history.file()
    os.mkfifo(bad)
    now = [1_000_000_000]
    report = run(any_store, history, clock=lambda: now[0])
    assert [path for path, _ in report.failed] == [str(bad)]
    assert report.new == 1
    assert run(any_store, history, clock=lambda: now[0] + 1000).waiting == 1
    bad.unlink()
    history.write(good)
    assert run(any_store, history, clock=lambda: now[0] + 2000).waiting == 1
    assert run(any_store, history, clock=lambda: now[0] + 120_000).new == 1
    assert all(file.fail_reason == "" for file, _ in any_store.files())


def test_two_processes_at_once_add_every_message_once(tmp_path: Path, history: History) -> None:
    url = str(tmp_path / "both.db")
    one, two = open_store(url), open_store(url)
    history.write(history.turn("a", "b"))
    run(one, history)
    history.grow(history.turn("c", "d"))
    late = job(two, history)

    def interfere(*numbers: object) -> None:
        run(one, history)

    late.progress = interfere
    report = sync_all(late)
    assert report.failed == []
    assert current(one).n_messages == 4
    assert raw(one, history.file()) == history.file().read_bytes()


def test_add_takes_a_file_from_anywhere_and_says_when_nothing_knows_it(
    any_store: Store, history: History, tmp_path: Path
) -> None:
    lone = tmp_path / "download.jsonl"
    lone.write_bytes(history.turn("from afar", "yes"))
    odd = tmp_path / "notes.txt"
    odd.write_text("just notes")
    report = add_paths(job(any_store, history), [lone, odd])
    assert (report.new, [path for path, _ in report.skipped]) == (1, [str(odd)])
    assert add_paths(job(any_store, history), [lone]).unchanged == 1
    with pytest.raises(MissingPath):
        add_paths(job(any_store, history), [tmp_path / "nowhere"])


def test_any_file_is_taken_as_a_capture_when_it_is_named_one(
    any_store: Store, history: History, tmp_path: Path
) -> None:
    note = tmp_path / "note.md"
    note.write_text("plain text\n")
    every = replace(job(any_store, history), sources=all_sources())
    assert add_paths(every, [note]).new == 0
    assert add_paths(every, [note], "terminal").new > 0


def test_an_added_file_is_followed_by_later_syncs(any_store: Store, history: History, tmp_path: Path) -> None:
    lone = tmp_path / "download.jsonl"
    lone.write_bytes(history.turn("one", "two"))
    add_paths(job(any_store, history), [lone])
    with lone.open("ab") as file:
        file.write(history.turn("three", "four"))
    assert run(any_store, history).grown == 1
    lone.unlink()
    assert run(any_store, history).gone == 1


def test_an_empty_file_is_known_and_not_read_again(any_store: Store, history: History) -> None:
    history.write(b"")
    assert run(any_store, history).new == 1
    assert run(any_store, history).unchanged == 1
    history.grow(history.turn("a", "b"))
    assert run(any_store, history).grown == 1
    assert current(any_store).n_messages == 2


@pytest.mark.parametrize("mode", ["structure", "redacted", "full"])
def test_a_document_of_many_lines_longer_than_a_piece_is_read_in_every_mode(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from everturn.capture import file_reader
    from everturn.sources.contract import SearchPlaces, all_sources

    monkeypatch.setattr(file_reader, "BATCH", 1000)
    path = tmp_path / "session-2026-01-01T10-00-abcdef01.json"
    said = [
        {"id": str(n), "timestamp": "2026-01-01T10:00:00.000Z", "type": "user", "content": "word " * 900}
        for n in range(5)
    ]
    document = {
        "sessionId": "s",
        "projectHash": "h",
        "startTime": "2026-01-01T10:00:00.000Z",
        "lastUpdated": "",
        "messages": said,
    }
    path.write_text(json.dumps(document, indent=1))
    store = open_store("memory:")
    places = SearchPlaces(tmp_path / "no-home", {}, "linux")
    one = SyncJob(store, all_sources(), places, Policy(mode=mode), "box", "ann", ticking())
    report = add_paths(one, [path], "gemini")
    assert (report.failed, report.messages) == ([], 5)
    assert is_unchanged_afterwards(one, path)


def is_unchanged_afterwards(job: SyncJob, path: Path) -> bool:
    return add_paths(job, [path], "gemini").unchanged == 1


def test_a_reader_that_breaks_in_a_mode_without_bytes_does_not_hang(history: History) -> None:

    class Broken:
        def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
            raise ZeroDivisionError

        def state(self) -> bytes:
            return b""

    def broken(found: SourceCandidate, state: bytes) -> SourceReader:
        return Broken()

    store = open_store("memory:")
    history.write(history.turn("a", "b") * 3)
    one = job(store, history, Policy(mode="structure"))
    name, source = next(iter(one.sources.items()))
    assert len(sync_all(replace(one, sources={name: structs.replace(source, reader=broken)})).failed) == 1


def test_in_a_folder_the_content_of_a_file_decides_not_its_name(any_store: Store, tmp_path: Path) -> None:
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "rename the harbour page"}]}
    meta = {"id": OTHER, "timestamp": "2026-03-01T10:00:00Z", "cwd": WORKSPACE, "originator": "cli"}
    records = (("session_meta", meta), ("response_item", said))
    lines = [{"timestamp": "2026-03-01T10:00:00Z", "type": kind, "payload": payload} for kind, payload in records]
    (tmp_path / f"{OTHER}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    nobody = tmp_path / f"{SID}.jsonl"  # a name that one source is sure of, and content that none knows
    nobody.write_text('{"a": 1}\n')
    places = SearchPlaces(tmp_path / "home", {}, "linux", {})
    add_paths(SyncJob(any_store, all_sources(), places, Policy(), "box", "ann", ticking()), [tmp_path])
    assert {Path(file.path).stem: file.format for file, _ in any_store.files()} == {OTHER: "codex", SID: FORMAT}


def test_what_a_program_was_asked_as_a_model_is_not_taken_for_history(any_store: Store, history: History) -> None:
    asked = history.turn("summarise this", "done", SID, cwd="/tmp/everturn-asking-x1")
    history.file(SID).write_bytes(asked)
    history.file(OTHER).write_bytes(history.turn("what is in /tmp/everturn-asking-x1?", "a question of ours", OTHER))
    named = history.root / "projects" / "-tmp-everturn-asking-x2"
    named.mkdir()
    (named / "33333333-2222-4333-8444-555555555555.jsonl").write_bytes(
        history.turn("title?", "Shop", "33333333-2222-4333-8444-555555555555")
    )
    report = run(any_store, history)
    assert (report.off, report.new) == (2, 1)
    assert (any_store.count_sessions(SessionFilter()), len(sessions(any_store, OTHER))) == (1, 1)


def test_worktrees_and_moved_folders_are_one_history(any_store: Store, history: History, tmp_path: Path) -> None:
    def git(*words: str, folder: Path) -> None:
        known = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *known, "-C", str(folder), *words], check=True, capture_output=True)

    first, tree, moved = tmp_path / "shop", tmp_path / "feature", tmp_path / "elsewhere" / "store"
    first.mkdir()
    git("init", folder=first)
    git("commit", "--allow-empty", "-m", "one", folder=first)
    git("worktree", "add", str(tree), folder=first)
    history.write(history.turn("one", "done", cwd=str(first)))
    history.write(history.turn("two", "done", OTHER, cwd=str(tree)), OTHER)
    run(any_store, history)
    moved.parent.mkdir()
    first.rename(moved)
    third, alone = "33333333-2222-4333-8444-555555555555", "44444444-2222-4333-8444-555555555555"
    history.write(history.turn("three", "done", third, cwd=str(moved)), third)
    history.write(history.turn("four", "done", alone, cwd=str(tmp_path)), alone)
    run(any_store, history)
    for folder in (first, tree, moved):
        found, _ = any_store.sessions(SessionFilter(workspace=str(folder)))
        assert {session.native_id for session, _ in found} == {SID, OTHER, third}
