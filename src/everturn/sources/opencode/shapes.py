"""Knows what a file is by its first bytes. Cheap: nothing is decoded."""

from __future__ import annotations

import re

#: Keys of the lines that a container was written out as.
_LINE = re.compile(rb'\s*+\{"(?:session|message|session_message|error|file)":')
_OPENED = re.compile(rb'\s*+(\[?)\s*+\{\s*+"(info|parts|messages)"\s*+:')
_FIRST = re.compile(rb'\s*+\[?\s*+(?:\{\s*+(?:"[^"]{0,40}"?\s*+:?)?)?')
#: The id of a session or of a message, whichever comes first. Text inside strings has its quotes escaped.
_ID_FIELD = re.compile(rb'(?<!\\)"id"\s*+:\s*+"(ses|msg)_')
_SESSION_FIELD = re.compile(rb'(?<!\\)"(?:id|sessionID)"\s*+:\s*+"(ses_\w+)"')
_TALK = re.compile(rb"(?:\xef\xbb\xbf)?\s*+# [^\n]*\n\s*+\*\*Session ID:\*\* (ses_\w+)")
_FOLDER = re.compile(rb'(?<!\\)"(?:directory|cwd)"\s*+:\s*+("(?:[^"\\]|\\.){1,4096}")')
_MARK = b"\xef\xbb\xbf"


def shape_of(data: bytes) -> str:
    """`lines`, `document` or `text`; "" when more bytes are needed to tell."""
    if data == _MARK[: len(data)]:
        return ""
    data = data.removeprefix(_MARK)
    first = data.lstrip()[:1]
    if not first:
        return ""
    if first == b"#":
        return "text"
    if first not in b"[{" or _LINE.match(data):
        return "lines"
    opened = _OPENED.match(data)
    return _unopened_shape(data, first) if opened is None else _opened_shape(data, opened)


def session_in(head: bytes) -> str:
    """The session that a file of ours names first; "" when it is no file of ours."""
    talk = _TALK.match(head)
    body = head.removeprefix(_MARK)
    if talk is None and (_OPENED.match(body) or body.lstrip().startswith(b'{"session":{')):
        talk = _SESSION_FIELD.search(body)
    return talk[1].decode() if talk else ""


def folder_in(head: bytes) -> str:
    """The working folder that a file names first; "" when it names none."""
    from everturn.sources.foreign import decode_value, word

    found = _FOLDER.search(head)
    return word(decode_value(found[1])) if found else ""


def _unopened_shape(data: bytes, first: bytes) -> str:
    cut = _FIRST.match(data)
    if cut is not None and cut.end() == len(data):
        return ""
    return "document" if first == b"[" else "lines"


def _opened_shape(data: bytes, opened: re.Match[bytes]) -> str:
    if opened[1] or opened[2] == b"messages":
        return "document"
    line, end, _ = data[opened.end() :].partition(b"\n")
    is_whole = bool(end) and line.rstrip().endswith(b"}")  # a record, or a document, on one line
    found = _ID_FIELD.search(line) if is_whole else _ID_FIELD.search(data, opened.end())
    if found is None:
        return "lines" if is_whole else ""
    return "document" if found[1] == b"ses" else "lines"
