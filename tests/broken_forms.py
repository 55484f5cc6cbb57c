"""More harms for `tests.broken`: other encodings and layouts, and records that providers refuse."""

from __future__ import annotations

import base64
import gzip
import html
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from tests import broken
from tests.broken import Case, Harm, Rec

_PICTURE = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0" + zlib.compress(b"x") + b"\0\0\0\0IEND\xaeB`\x82"
)
_THREE = "SAY-THREE: it said 42."


# the whole file -------------------------------------------------------------------------------------------------------
def _made(case: Case, data: bytes, found: str, **more: Any) -> Case:
    return replace(case, lines=(data,), found=found, **more)


def _each(case: Case, change: Callable[[bytes], bytes], found: str) -> Case:
    return replace(case, lines=tuple(change(line) for line in case.lines), found=found)


def utf16(case: Case, dice: Random) -> Case:
    return _made(case, case.data.decode().encode("utf-16"), "utf16")


def utf16_without_mark(case: Case, dice: Random) -> Case:
    return _made(case, case.data.decode().encode("utf-16-le"), "utf16")


def utf32(case: Case, dice: Random) -> Case:
    return _made(case, case.data.decode().encode("utf-32"), "utf16")


def one_byte_encoding(case: Case, dice: Random) -> Case:
    data = case.data.decode().replace("it said 42.", "it said 42. Voilà, un café.")
    return _made(case, data.encode("cp1252"), "cp1252")


def compressed(case: Case, dice: Random) -> Case:
    return _made(case, gzip.compress(case.data, mtime=0), "compressed")


def pretty_printed(case: Case, dice: Random) -> Case:
    return _each(case, lambda line: json.dumps(json.loads(line), indent=2).encode() + b"\n", "pretty_printed")


def json_array(case: Case, dice: Random) -> Case:
    return _made(case, json.dumps([json.loads(line) for line in case.lines]).encode(), "array")


def commas(case: Case, dice: Random) -> Case:
    return _each(case, lambda line: line.rstrip() + b",\n", "commas")


def carriage_returns(case: Case, dice: Random) -> Case:
    return _each(case, lambda line: line.rstrip() + b"\r", "line_ends")


def blank_lines(case: Case, dice: Random) -> Case:
    return _each(case, lambda line: b"\n  \n" + line, "")


def no_last_line_end(case: Case, dice: Random) -> Case:
    return replace(case, lines=(*case.lines[:-1], case.lines[-1].rstrip()))


def log_prefix(case: Case, dice: Random) -> Case:
    return _each(case, lambda line: b"2026-03-01T10:11:12Z stdout F " + line, "prefix")


def grep_prefix(case: Case, dice: Random) -> Case:
    return replace(case, lines=tuple(b"a.jsonl:%d:%b" % one for one in enumerate(case.lines, 1)), found="prefix")


def diff_prefix(case: Case, dice: Random) -> Case:
    return _each(case, lambda line: b"+" + line, "prefix")


def container_log(case: Case, dice: Random) -> Case:
    def wrapped(line: bytes) -> bytes:
        return json.dumps({"log": line.decode(), "stream": "stdout", "time": "2026-01-01T00:00:00Z"}).encode() + b"\n"

    return _each(case, wrapped, "quoted")


def json_strings(case: Case, dice: Random) -> Case:
    return _each(case, lambda line: json.dumps(line.decode().rstrip()).encode() + b"\n", "quoted")


def html_entities(case: Case, dice: Random) -> Case:
    return _each(case, lambda line: html.escape(line.decode()).encode(), "entities")


def python_literals(case: Case, dice: Random) -> Case:
    return _each(case, lambda line: repr(json.loads(line)).encode() + b"\n", "python")


def conflict_marks(case: Case, dice: Random) -> Case:
    """What a version control system leaves of two versions of a file."""
    middle = len(case.lines) // 2
    first, last = case.lines[:middle], case.lines[middle:]
    lines = (*first, b"<<<<<<< HEAD\n", *last, b"=======\n", *last, b">>>>>>> other\n")
    return replace(case, lines=lines, found="foreign_line")


def shuffled(case: Case, dice: Random) -> Case:
    lines = list(case.lines)
    dice.shuffle(lines)
    return replace(case, lines=tuple(lines), found="out_of_order")


def upside_down(case: Case, dice: Random) -> Case:
    return replace(case, lines=case.lines[::-1], found="out_of_order")


def torn_array(case: Case, dice: Random) -> Case:
    data, words = json_array(case, dice).data, "SAY-FOUR: seen."
    kept = (("assistant", words), ("assistant", words[:8]))
    return _made(case, data[: data.index(words.encode()) + 8], "array", instead=(*case.instead, kept))


# single records -------------------------------------------------------------------------------------------------------
def line_break(case: Case, dice: Random) -> Case:
    """A line break in a text that was not escaped."""
    return _each(case, lambda line: line.replace(b"it said 42.", b"it said 42.\nAnd more.\n\nAnd more."), "line_break")


def tab(case: Case, dice: Random) -> Case:
    return _each(case, lambda line: line.replace(b"it said 42.", b"it said 42.\tAnd\x1bmore."), "")


def backslashes(case: Case, dice: Random) -> Case:
    return _each(case, lambda line: line.replace(b"it said 42.", b"it said 42. C:\\Users\\zoe"), "escape")


def interleaved(case: Case, dice: Random) -> Case:
    """A line was written into another one."""
    place = broken.place_of(case, _THREE)
    first, second = case.lines[place : place + 2]
    cut = first.index(b"it said") + 3
    return replace(
        case, lines=(*case.lines[:place], first[:cut], second, first[cut:], *case.lines[place + 2 :]), found="interleaved"
    )  # fmt: skip


def overwritten(case: Case, dice: Random) -> Case:
    """Other bytes in the middle of a line."""
    place = broken.place_of(case, _THREE)
    line = case.lines[place]
    cut = line.index(b"SAY-THREE") - 20
    noise = bytes(dice.choice(b"\x01\x8f\xfe#%!") for _ in range(len(line) - cut - 1))
    lines = (*case.lines[:place], line[:cut] + noise + b"\n", *case.lines[place + 1 :])
    return replace(case, lines=lines, lost=case.lost | {_THREE})


def no_times(case: Case, dice: Random) -> Case:
    return broken.changed(case, "PROMPT-TWO", lambda one: one.update(timestamp="yesterday"))


def not_a_number(case: Case, dice: Random) -> Case:
    place = broken.place_of(case, _THREE)
    line = case.lines[place].rstrip().removesuffix(b"}") + b',"score":NaN}\n'
    return replace(case, lines=(*case.lines[:place], line, *case.lines[place + 1 :]))


# what providers refuse ------------------------------------------------------------------------------------------------
def _pictured(case: Case, data: str) -> Case:
    def change(record: Rec) -> None:
        if case.agent == "claude_code":
            source = {"type": "base64", "media_type": "image/png", "data": data}
            text = {"type": "text", "text": record["message"]["content"]}
            record["message"]["content"] = [text, {"type": "image", "source": source}]
        elif case.agent == "codex":
            record["payload"]["content"].append({"type": "input_image", "image_url": f"data:image/png;base64,{data}"})
        elif case.agent == "opencode":
            part = {"type": "file", "mime": "image/png", "url": f"data:image/png;base64,{data}"}
            record["parts"].append({**record["parts"][0], "id": "prt_picture", "data": part})
        else:
            record["content"].append({"inlineData": {"mimeType": "image/png", "data": data}})

    return broken.changed(case, "PROMPT-TWO", change, found="bad_image")


def torn_picture(case: Case, dice: Random) -> Case:
    return _pictured(case, base64.b64encode(_PICTURE[:40]).decode())


def large_picture(case: Case, dice: Random) -> Case:
    data = _PICTURE[:33] + bytes(12 << 20) + b"\0\0\0\0IEND\xaeB`\x82"
    return _pictured(case, base64.b64encode(data).decode())


def no_picture(case: Case, dice: Random) -> Case:
    return _pictured(case, base64.b64encode(b"<html>not found</html>").decode())


def no_base64(case: Case, dice: Random) -> Case:
    return _pictured(case, "[omitted]")


def wide_picture(case: Case, dice: Random) -> Case:
    data = _PICTURE.replace(b"\0\0\0\1\0\0\0\1", b"\0\0\x40\0\0\0\0\1")
    return _pictured(case, base64.b64encode(data).decode())


def _renamed(case: Case, name: str, found: str) -> Case:
    old = broken.CALLS[2].encode()
    return replace(case, lines=tuple(line.replace(old, name.encode()) for line in case.lines), found=found)


def bad_call_id(case: Case, dice: Random) -> Case:
    return _renamed(case, "call:3|fc 3", "bad_call_id")


def long_call_id(case: Case, dice: Random) -> Case:
    return _renamed(case, "call_" + "x" * 200, "bad_call_id")


def second_result(case: Case, dice: Random) -> Case:
    """A result that was written again by a client that came back."""
    place = broken.place_of(case, "third-3-time")
    try:
        again = json.loads(case.lines[place])
    except ValueError:
        return case
    if case.agent == "claude_code":
        again["uuid"] = f"b{again['uuid'][1:]}"
        again["message"]["content"][0]["content"] = "[Tool result missing]"
    else:
        again["payload"]["output"] = "aborted"
        again["timestamp"] = again["timestamp"].replace(".000Z", ".500Z")
    return replace(case, lines=(*case.lines[: place + 1], broken.line_of(again), *case.lines[place + 1 :]))


def result_of_nothing(case: Case, dice: Random) -> Case:
    """A result of a call that nobody has made."""
    place = broken.place_of(case, "third-3-time")
    line = case.lines[place].replace(broken.CALLS[2].encode(), b"call_other_9").replace(b"third-3-time", b"of nothing")
    if case.agent == "claude_code":
        record = json.loads(line)
        line = broken.line_of({**record, "uuid": f"b{record['uuid'][1:]}"})
    return replace(case, lines=(*case.lines[: place + 1], line, *case.lines[place + 1 :]), found="stray_result")


def blank_text(case: Case, dice: Random) -> Case:
    """An answer of nothing but white space."""
    return broken.emptied(case, " \n ")


def tool_name(case: Case, dice: Random) -> Case:
    name = {
        "claude_code": b'"Bash"',
        "codex": b'"exec_command"',
        "gemini": b'"run_shell_command"',
        "opencode": b'"bash"',
    }[case.agent]
    return _each(case, lambda line: line.replace(name, b'"my tool/\xc3\xa4.1"'), "")


# only one of them -----------------------------------------------------------------------------------------------------
def input_as_text(case: Case, dice: Random) -> Case:
    """Arguments that are no object."""
    words = "printf third-%d-time 3"
    return broken.changed(case, words, lambda one: one["message"]["content"][0].update(input=words))


def unsigned_thought(case: Case, dice: Random) -> Case:
    thought = {"type": "thinking", "thinking": "hm", "signature": ""}
    return broken.changed(case, _THREE, lambda one: one["message"]["content"].insert(0, thought))


def no_id(case: Case, dice: Random) -> Case:
    return broken.changed(case, _THREE, lambda one: one.pop("uuid"))


def lost_head(case: Case, dice: Random) -> Case:
    return replace(
        case, lines=case.lines[1:], lost=case.lost | {"PROMPT-ONE: look at two things"}, found="dangling_parent"
    )


ALL: tuple[Harm, ...] = (
    utf16, utf16_without_mark, utf32, one_byte_encoding, compressed, pretty_printed, json_array, commas, carriage_returns,
    blank_lines, no_last_line_end, log_prefix, grep_prefix, diff_prefix, container_log, json_strings, html_entities,
    python_literals, conflict_marks, shuffled, upside_down, torn_array, line_break, tab, backslashes, interleaved, overwritten,
    no_times, not_a_number, torn_picture, large_picture, no_picture, no_base64, wide_picture, bad_call_id, long_call_id,
    tool_name,
)  # fmt: skip
OF_RECORDS: tuple[Harm, ...] = (second_result, result_of_nothing, blank_text)  # of agents with a record for each result
OF_CLAUDE: tuple[Harm, ...] = (input_as_text, unsigned_thought, no_id, lost_head)

_MORE = {"claude_code": (*OF_RECORDS, *OF_CLAUDE), "codex": OF_RECORDS, "gemini": (), "opencode": ()}

#: Every kind of damage, by agent and name: those of `tests.broken` and these.
KINDS = broken.KINDS | {(agent, harm.__name__): harm for agent in broken.AGENTS for harm in (*ALL, *_MORE[agent])}
