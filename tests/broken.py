"""Session files that something bad has happened to, with the truth about what can still be had of them.

`whole(agent)` is the conversation of `tests.agents.talk` as that agent keeps it. A harm takes a `Case` and dice and gives a
worse one; `KINDS` names the harms, `REFUSED` files of which nothing can be made. Words in `Case.lost` are in no copy any
more; what a call or result became instead is in `Case.instead`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.agents.talk import EXPECTED

Rec = dict[str, Any]
AGENTS = ("claude_code", "codex", "gemini", "opencode")
SESSION = {
    "claude_code": "5f0c2f4e-8d6b-4f0a-9f5e-0a1b2c3d4e5f",
    "codex": "019a0000-1111-7222-8333-444455556666",
    "gemini": "7a1d3c5e-2b4f-4a6c-8d9e-1f2a3b4c5d6e",
    "opencode": "ses_4255806ffffeBROKENbroken01",
}
OTHER = "0d9e8f7a-6b5c-4d3e-8f2a-1b0c9d8e7f6a"
WORKSPACE = "/home/ann/shop"
CALLS = ("call_one_0001", "call_two_0002", "call_six_0003")
_START = 1_767_600_000  # 2026-01-05T08:00:00Z


@dataclass(frozen=True)
class Case:
    """A file as a list of lines, each with its line end, and what is known of it."""

    agent: str
    lines: tuple[bytes, ...]
    older: tuple[bytes, ...] = ()  # what an archive has seen of it before
    lost: frozenset[str] = frozenset()
    instead: tuple[tuple[tuple[str, str], tuple[str, str]], ...] = ()
    found: str = ""  # the kind of finding that must be told
    is_gone: bool = False
    is_silent: bool = False  # nothing in the file says that words are lost

    @property
    def data(self) -> bytes:
        """The file."""
        return b"".join(self.lines)

    @property
    def expected(self) -> tuple[tuple[str, str], ...]:
        """What there is still to be told, in order."""
        instead = dict(self.instead)
        return tuple(instead.get(one, one) for one in EXPECTED if one[1] not in self.lost)

    @property
    def name(self) -> str:
        """What the agent calls the file."""
        session = SESSION[self.agent]
        names = {"codex": f"rollout-2026-01-05T08-00-00-{session}", "gemini": f"session-2026-01-05T08-00-{session[:8]}"}
        return f"{names.get(self.agent, session)}.jsonl"


Harm = Callable[[Case, Random], Case]


# a sound file ---------------------------------------------------------------------------------------------------------
def whole(agent: str) -> Case:
    """The conversation as nothing has happened to it."""
    records = {"claude_code": _claude, "codex": _codex, "gemini": _gemini, "opencode": _opencode}[agent]()
    return Case(agent, tuple(line_of(record) for record in records))


def line_of(record: Rec) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def _at(number: int) -> str:
    return f"2026-01-05T08:{number // 60:02}:{number % 60:02}.000Z"


def _said() -> list[tuple[str, str, str]]:
    """The conversation with the id of each call."""
    calls, results, found = iter(CALLS), iter(CALLS), []
    for kind, words in EXPECTED:
        found.append((kind, words, next(calls) if kind == "call" else next(results) if kind == "result" else ""))
    return found


def _claude(session: str = SESSION["claude_code"], name: str = "a") -> list[Rec]:
    records: list[Rec] = []
    parent: str | None = None
    response = 0
    for number, (kind, words, call) in enumerate(_said()):
        role = "assistant" if kind in ("assistant", "call") else "user"
        response += role == "user"
        uuid = f"{name}{number:07}-0000-4000-8000-{number:012}"
        message: Rec = {"role": role, "content": words}
        if role == "assistant":
            text = {"type": "text", "text": words}
            block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": words}} if call else text
            message = {"model": "some-model", "id": f"msg_{name}{response}", "type": "message", "role": role}
            message |= {"content": [block], "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
        elif call:
            message = {"role": role, "content": [{"tool_use_id": call, "type": "tool_result", "content": words}]}
        records.append({
            "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": WORKSPACE, "sessionId": session,
            "version": "2.1.150", "gitBranch": "main", "type": role, "message": message, "uuid": uuid,
            "timestamp": _at(number),
        })  # fmt: skip
        parent = uuid
    return [*records, {"type": "last-prompt", "lastPrompt": "…", "leafUuid": parent, "sessionId": session}]


def _codex(session: str = SESSION["codex"]) -> list[Rec]:
    meta = {
        "id": session,
        "timestamp": _at(0),
        "cwd": WORKSPACE,
        "originator": "codex_cli_rs",
        "cli_version": "0.140.0",
    }
    records: list[Rec] = [{"timestamp": _at(0), "type": "session_meta", "payload": {**meta, "source": "cli"}}]
    for number, (kind, words, call) in enumerate(_said(), 1):
        if kind == "call":
            arguments = json.dumps({"cmd": words})
            payload: Rec = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call}
        elif kind == "result":
            payload = {"type": "function_call_output", "call_id": call, "output": words}
        else:
            side = "input_text" if kind == "user" else "output_text"
            payload = {"type": "message", "role": kind, "content": [{"type": side, "text": words}]}
        records.append({"timestamp": _at(number), "type": "response_item", "payload": payload})
    return records


def _gemini(session: str = SESSION["gemini"]) -> list[Rec]:
    """A call and its result are in the record of the answer, which is written again when they are there."""
    header = {"sessionId": session, "projectHash": "0" * 64, "startTime": _at(0), "lastUpdated": _at(0), "kind": "main"}
    records: list[Rec] = [header]
    calls: dict[str, Rec] = {}
    for number, (kind, words, call) in enumerate(_said(), 1):
        known = {"id": f"{session[:8]}-{number:04}", "timestamp": _at(number)}
        if kind == "user":
            records.append({**known, "type": "user", "content": [{"text": words}]})
        elif kind == "assistant":
            records.append({**known, "type": "gemini", "content": words, "thoughts": [], "model": "some-model"})
        elif kind == "call":
            if records[-1].get("type") != "gemini":
                records.append({**known, "type": "gemini", "content": "", "thoughts": [], "model": "some-model"})
            calls[call] = {"id": call, "name": "run_shell_command", "args": {"command": words}}
        else:
            response = {"id": call, "name": "run_shell_command", "response": {"output": words}}
            calls[call] |= {"result": [{"functionResponse": response}], "status": "success"}
            if all("result" in one for one in calls.values()):
                records.append(
                    {**records[-1], "toolCalls": [{**one, "timestamp": _at(number)} for one in calls.values()]}
                )
                calls = {}
    return records


def _opencode(session: str = SESSION["opencode"]) -> list[Rec]:
    """A message with its parts, a call with its result, as the rows of a database are written out."""
    about = {"id": session, "project_id": "global", "directory": WORKSPACE, "title": "Shop", "version": "1.18.33"}
    records: list[Rec] = [{"session": {**about, "time_created": _START * 1000}}]
    prompt, tools = "", dict[str, Rec]()
    for number, (kind, words, call) in enumerate(_said(), 1):
        at = (_START + number) * 1000
        if kind == "user" or kind == "assistant" or (kind == "call" and _role(records[-1]) != "assistant"):
            name = f"msg_{session[-2:]}{number:04}"
            data: Rec = {"role": "user", "time": {"created": at}, "agent": "build"}
            if kind != "user":
                data = {
                    "role": "assistant",
                    "parentID": prompt,
                    "time": {"created": at, "completed": at},
                    "finish": "stop",
                }
            prompt = name if kind == "user" else prompt
            records.append(
                {"message": {"id": name, "session_id": session, "time_created": at, "data": data}, "parts": []}
            )
        part: Rec = {"type": "text", "text": words}
        if kind == "call":
            part = {"type": "tool", "tool": "bash", "callID": call}
            tools[call] = part["state"] = {
                "status": "completed",
                "input": {"command": words},
                "time": {"start": at, "end": at},
            }
        if kind == "result":
            tools[call]["output"] = words
            continue
        known = {"message_id": records[-1]["message"]["id"], "session_id": session, "time_created": at}
        records[-1]["parts"].append({"id": f"prt_{session[-2:]}{number:04}", **known, "data": part})
    return records


def _role(record: Rec) -> str:
    return str(record["message"]["data"]["role"]) if "message" in record else ""


# places ---------------------------------------------------------------------------------------------------------------
def place_of(case: Case, words: str, nth: int = 0) -> int:
    """The line that says this; -1 where none does any more."""
    found = [place for place, line in enumerate(case.lines) if words.encode() in line]
    return found[nth] if len(found) > nth else -1


def _put(case: Case, place: int, *lines: bytes, **more: Any) -> Case:
    """Other lines in the place of one."""
    return replace(case, lines=(*case.lines[:place], *lines, *case.lines[place + 1 :]), **more)


def changed(case: Case, words: str, change: Callable[[Rec], None], **more: Any) -> Case:
    """The record that says this, changed; nothing where it cannot be read any more."""
    place = place_of(case, words)
    try:
        record = json.loads(case.lines[place]) if place >= 0 else None
    except ValueError:
        record = None
    if record is None:
        return case
    change(record)
    return _put(case, place, line_of(record), **more)


def _cut(line: bytes, words: str) -> bytes:
    """The line up to the middle of these words."""
    return line[: line.index(words.encode()) + len(words) // 2]


def _torn(case: Case, words: str, end: bytes) -> Case:
    place = place_of(case, words)
    if place < 0 or not case.lines[place].endswith(b"}\n"):
        return case
    kind = next(kind for kind, said in EXPECTED if said == words)
    kept = ((kind, words), (kind, words[: len(words) // 2]))
    return _put(case, place, _cut(case.lines[place], words) + end, instead=(*case.instead, kept), found="torn")


# harms to bytes -------------------------------------------------------------------------------------------------------
def torn_tail(case: Case, dice: Random) -> Case:
    words = "SAY-FOUR: seen."
    place = place_of(case, words)
    return _torn(replace(case, lines=case.lines[: place + 1]), words, b"") if place > 0 else case


def torn_middle(case: Case, dice: Random) -> Case:
    return _torn(case, "PROMPT-TWO: what did the first one say?", b"\n")


def torn_and_glued(case: Case, dice: Random) -> Case:
    return _torn(case, "SAY-TWO: one worked, one failed.", b"")


def torn_call(case: Case, dice: Random) -> Case:
    """A call that breaks off was not made as far as anybody knows; its result is told as words."""
    words, result = "printf third-%d-time 3", "third-3-time"
    place = place_of(case, words)
    if place < 0:
        return case
    instead = (*case.instead, (("result", result), ("user", result)))
    line = _cut(case.lines[place], words) + b"\n"
    return _put(case, place, line, lost=case.lost | {words}, instead=instead, found="torn")


def glued(case: Case, dice: Random) -> Case:
    place = place_of(case, "SAY-THREE: it said 42.")
    return _put(case, place, case.lines[place].rstrip(b"\n"), found="glued") if place >= 0 else case


def nul_between(case: Case, dice: Random) -> Case:
    place = dice.randrange(1, len(case.lines))
    return _put(case, place, bytes(4096) + b"\n", case.lines[place], found="nul_block")


def nul_in_line(case: Case, dice: Random) -> Case:
    words = "SAY-THREE: it said 42."
    place = place_of(case, words)
    if place < 0:
        return case
    line = case.lines[place]
    half = len(line) // 3
    return _put(
        case, place, line[:half] + bytes(len(line) - half - 1) + b"\n", lost=case.lost | {words}, found="nul_block"
    )


def nul_tail(case: Case, dice: Random) -> Case:
    return replace(case, lines=(*case.lines, bytes(8192)), found="nul_block")


def byte_order_mark(case: Case, dice: Random) -> Case:
    return replace(case, lines=(b"\xef\xbb\xbf", *case.lines), found="byte_order_mark")


def line_ends(case: Case, dice: Random) -> Case:
    return replace(case, lines=tuple(line.replace(b"\n", b"\r\n") for line in case.lines), found="line_ends")


def invalid_utf8(case: Case, dice: Random) -> Case:
    words = b"PROMPT-TWO: "
    return replace(
        case, lines=tuple(line.replace(b": what did", b": \xff\xc3what did") for line in case.lines), found="invalid_utf8",
        lost=case.lost, instead=(*case.instead, (("user", "PROMPT-TWO: what did the first one say?"), ("user", words.decode()))),
    )  # fmt: skip


def half_character(case: Case, dice: Random) -> Case:
    whole_words, kept = ("assistant", "SAY-THREE: it said 42."), ("assistant", "SAY-THREE: it said ")
    lines = tuple(line.replace(b"said 42.", b"said \\ud83d42.") for line in case.lines)
    return replace(case, lines=lines, instead=(*case.instead, (whole_words, kept)), found="half_character")


def stray_lines(case: Case, dice: Random) -> Case:
    """Words of another program in the file."""
    place = dice.randrange(1, len(case.lines))
    return _put(case, place, b"Warning: disk almost full\n", case.lines[place], found="foreign_line")


# harms to records -----------------------------------------------------------------------------------------------------
def duplicate_record(case: Case, dice: Random) -> Case:
    place = place_of(case, dice.choice(("PROMPT-ONE", "PROMPT-THREE", "SAY-FOUR")))
    found = "" if case.agent == "gemini" else "duplicate"  # which writes a message again when it has grown
    return _put(case, place, case.lines[place], case.lines[place], found=found) if place >= 0 else case


def doubled_file(case: Case, dice: Random) -> Case:
    return replace(case, lines=(*case.lines, *case.lines), found="duplicate")


def lost_result(case: Case, dice: Random) -> Case:
    place = place_of(case, "out-of-42")
    if place < 0:
        return case
    instead = (*case.instead, (("result", "out-of-42"), ("result", "Interrupted:")))
    return _put(case, place, instead=instead, found="open_call")


def lost_call(case: Case, dice: Random) -> Case:
    words, result = "printf third-%d-time 3", "third-3-time"
    place = place_of(case, words)
    instead = (*case.instead, (("result", result), ("user", result)))
    if place < 0:
        return case
    return _put(case, place, lost=case.lost | {words}, instead=instead, found="stray_result", is_silent=True)


def same_call_id(case: Case, dice: Random) -> Case:
    lines = tuple(line.replace(CALLS[2].encode(), CALLS[0].encode()) for line in case.lines)
    return replace(case, lines=lines, found="same_call_id")


def swapped(case: Case, dice: Random) -> Case:
    one = place_of(case, "SAY-THREE: it said 42.")
    if one < 1:
        return case
    lines = list(case.lines)
    lines[one - 1 : one + 1] = lines[one], lines[one - 1]
    return replace(case, lines=tuple(lines), found="out_of_order")


def halves_swapped(case: Case, dice: Random) -> Case:
    first = 0 if case.agent == "claude_code" else 1
    middle = place_of(case, "PROMPT-TWO")
    if middle < 1:
        return case
    lines = case.lines
    return replace(case, lines=(*lines[:first], *lines[middle:], *lines[first:middle]), found="out_of_order")


def result_first(case: Case, dice: Random) -> Case:
    """A result that was written before its call."""
    call, result = place_of(case, "printf third-%d-time 3"), place_of(case, "third-3-time")
    if call < 0 or result != call + 1:
        return case
    lines = list(case.lines)
    lines[call : result + 1] = lines[result], lines[call]
    return replace(case, lines=tuple(lines), found="out_of_order")


def empty_block(case: Case, dice: Random) -> Case:
    return emptied(case, "")


def emptied(case: Case, text: str) -> Case:
    """An answer without words."""
    words = "SAY-THREE: it said 42."

    def change(record: Rec) -> None:
        if case.agent == "gemini":
            record["content"] = [{"text": text}]
        elif case.agent == "opencode":
            record["parts"][0]["data"]["text"] = text
        else:
            record["message" if case.agent == "claude_code" else "payload"]["content"][0]["text"] = text

    found = "" if text else "empty_block"
    return changed(case, words, change, lost=case.lost | {words}, found=found, is_silent=True)


def other_session(agent: str) -> str:
    """The id of another session."""
    return "ses_4255806ffffeOTHERother02" if agent == "opencode" else OTHER


def wrong_session(case: Case, dice: Random) -> Case:
    session = SESSION[case.agent].encode()
    found = "" if case.agent == "opencode" else "wrong_session"  # its files may have any name
    other = other_session(case.agent).encode()
    return replace(case, lines=tuple(line.replace(session, other) for line in case.lines), found=found)


def mixed_sessions(case: Case, dice: Random) -> Case:
    """The records of another session among these, as two programs that write at once leave them."""
    if case.agent != "claude_code":
        made = {"codex": _codex, "gemini": _gemini, "opencode": _opencode}[case.agent]
        more = [
            line_of(record) for record in made(OTHER if case.agent != "opencode" else "ses_4255806ffffeOTHERother02")
        ]
        return replace(case, lines=(*case.lines, *more), found="other_session")
    others = [line_of(record) for record in _claude(OTHER, "f")]
    lines: list[bytes] = []
    for number, line in enumerate(case.lines):
        lines += [line, *others[number : number + 1]]
    return replace(case, lines=tuple(lines), found="other_session")


# only one of the two --------------------------------------------------------------------------------------------------
def dangling_parent(case: Case, dice: Random) -> Case:
    return changed(case, "PROMPT-TWO", lambda one: one.update(parentUuid=OTHER), found="dangling_parent")


def own_parent(case: Case, dice: Random) -> Case:
    return changed(case, "PROMPT-TWO", lambda one: one.update(parentUuid=one["uuid"]), found="cycle")


def parents_in_a_circle(case: Case, dice: Random) -> Case:
    place = place_of(case, "SAY-FOUR")
    try:
        last = json.loads(case.lines[place])["uuid"] if place >= 0 else None
    except (ValueError, KeyError):
        last = None
    if last is None:
        return case
    return changed(case, "PROMPT-ONE", lambda one: one.update(parentUuid=last), found="cycle")


def same_id(case: Case, dice: Random) -> Case:
    """Two records with one id: the second of them hides the first from a program that goes by ids."""
    place = place_of(case, "PROMPT-TWO")
    try:
        name = json.loads(case.lines[place])["uuid"] if place >= 0 else None
    except (ValueError, KeyError):
        name = None
    if name is None:
        return case
    return changed(case, "PROMPT-THREE", lambda one: one.update(uuid=name), found="same_id")


_HEADERS = {"codex": "session_meta", "gemini": "projectHash", "opencode": "project_id"}


def no_header(case: Case, dice: Random) -> Case:
    place = place_of(case, _HEADERS[case.agent])
    return _put(case, place, found="no_header") if place >= 0 else case


def late_header(case: Case, dice: Random) -> Case:
    place = place_of(case, _HEADERS[case.agent])
    if place != 0:
        return case
    return replace(case, lines=(*case.lines[1:4], case.lines[0], *case.lines[4:]), found="out_of_order")


def bad_arguments(case: Case, dice: Random) -> Case:
    """Arguments that are no JSON, which a provider refuses."""
    words = "printf third-%d-time 3"
    return changed(case, words, lambda one: one["payload"].update(arguments=words + '"}'))


# with other copies in the archive -------------------------------------------------------------------------------------
def truncated(case: Case, dice: Random) -> Case:
    middle = len(case.lines) // 2
    return replace(case, older=(case.data,), lines=case.lines[:middle], found="missing")


def stub(case: Case, dice: Random) -> Case:
    """The file was written anew with next to nothing in it."""
    notes = {
        "claude_code": {"type": "mode", "mode": "normal", "sessionId": SESSION["claude_code"]},
        "codex": _codex()[0],
        "gemini": _gemini()[0],
        "opencode": _opencode()[0],
    }
    return replace(case, older=(case.data,), lines=(line_of(notes[case.agent]),), found="missing")


def hole(case: Case, dice: Random) -> Case:
    """Lines in the middle are gone, and the file has grown since."""
    first = place_of(case, "SAY-TWO")
    return replace(
        case, older=(b"".join(case.lines[: first + 3]),), lines=(*case.lines[:first], *case.lines[first + 2 :]), found="missing"
    )  # fmt: skip


def torn_but_kept(case: Case, dice: Random) -> Case:
    """A line is torn that an older copy has whole."""
    worse = torn_middle(case, dice)
    return replace(worse, older=(case.data,), instead=case.instead, found="missing")


def gone(case: Case, dice: Random) -> Case:
    return replace(case, is_gone=True, found="gone")


#: Harms for every agent, for those with a record for each call and result, and for single ones.
ALL: tuple[Harm, ...] = (
    torn_tail, torn_middle, torn_and_glued, glued, nul_between, nul_in_line, nul_tail, byte_order_mark, line_ends,
    invalid_utf8, half_character, stray_lines, duplicate_record, doubled_file, same_call_id, swapped, halves_swapped,
    empty_block, wrong_session, mixed_sessions, truncated, stub, hole, torn_but_kept, gone,
)  # fmt: skip
RECORDS: tuple[Harm, ...] = (torn_call, lost_result, lost_call, result_first)
ONLY: dict[str, tuple[Harm, ...]] = {
    "claude_code": (*RECORDS, dangling_parent, own_parent, parents_in_a_circle, same_id),
    "codex": (*RECORDS, no_header, late_header, bad_arguments),
    "gemini": (no_header, late_header),
    "opencode": (no_header, late_header),
}
KINDS = {(agent, harm.__name__): harm for agent in AGENTS for harm in (*ALL, *ONLY[agent])}

#: Harms that may come together in any number: none of them makes it unknowable what another has done.
TOGETHER: dict[str, tuple[Harm, ...]] = {
    "claude_code": (
        glued, nul_between, nul_tail, byte_order_mark, line_ends, stray_lines, duplicate_record, swapped,
        halves_swapped, result_first, dangling_parent, own_parent, torn_middle, nul_in_line, lost_result, wrong_session,
    ),
    "codex": (
        glued, nul_between, nul_tail, byte_order_mark, line_ends, stray_lines, duplicate_record, swapped,
        halves_swapped, result_first, torn_middle, torn_and_glued, nul_in_line, lost_result,
    ),
    "gemini": (
        glued, nul_between, nul_tail, byte_order_mark, line_ends, stray_lines, swapped, torn_middle, nul_in_line,
    ),
    "opencode": (
        glued, nul_between, nul_tail, byte_order_mark, line_ends, stray_lines, swapped, halves_swapped, nul_in_line,
    ),
}  # fmt: skip

#: Files of which nothing can be made, and a word of the reason.
REFUSED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "only_nul": (bytes(65_536), "empty space"),
    "random_bytes": (bytes(Random(1).randrange(256) for _ in range(5000)), "no record"),
    "only_notes": (line_of({"type": "mode", "mode": "normal", "sessionId": SESSION["claude_code"]}), "words"),
    "only_a_header": (line_of(_codex()[0]), "words"),
    "torn_in_the_first_record": (line_of(_claude()[0])[:120], "words"),
}
