"""The texts of indexed edits, read from the raw layer, and the file that each found, where its transcript says so."""

from __future__ import annotations

import re

from everturn.derive.edits import FileEdit, file_edits
from everturn.model.archive import EditRow, MessageRow
from everturn.model.conversation import CallEnd, CallStart
from everturn.sessions.messages import Records, Sources
from everturn.store.contract import FoundEdit, Store

_SEEN = 60  # messages before an edit that may show the file
_MOST_SEEN = 400_000  # characters of one output
_NUMBERED = re.compile(r"^ {0,8}\d{1,6}[\t→|:]")


class EditTexts:
    """Reads edits of an archive, each call once."""

    def __init__(self, store: Store, sources: Sources) -> None:
        self._store, self._sources = store, sources
        self._records: dict[int, Records] = {}
        self._edits: dict[tuple[int, int, int], list[FileEdit]] = {}
        self._originals: dict[tuple[int, int, int], str | None] = {}

    def edit(self, found: FoundEdit) -> FileEdit | None:
        """Return the changes of an edit; None if they cannot be read any more."""
        row = found.row
        key = (row.session, row.seq, row.idx)
        if key not in self._edits:
            start = self._call_at(row.session, row.seq, row.idx)
            self._edits[key] = file_edits(start, CallEnd(start.call_id, path=row.path)) if start else []
        edits = self._edits[key]
        return edits[row.n] if row.n < len(edits) else None

    def original(self, found: FoundEdit) -> str | None:
        """Return the file as the edit found it; None if the transcript does not say."""
        row = found.row
        key = (row.session, row.seq, row.idx)
        if key not in self._originals:
            self._originals[key] = self._read_original(found)
        return self._originals[key]

    def seen_before(self, found: FoundEdit, of_file: bool = False) -> frozenset[str]:
        """Return the lines, stripped, that tools of the session printed before an edit: its text may be copied from them.

        With `of_file`, only the results of calls that name the file.
        """
        row = found.row
        seen: set[str] = set()
        for message in self._store.messages(row.session, max(0, row.seq - _SEEN), row.seq - 1):
            if message.role != "tool" and message.kind != "result":
                continue
            if of_file and not self._names_file(row, message.seq):
                continue
            for block in self._reader(row.session).message(message).blocks:
                seen.update(_NUMBERED.sub("", line).strip() for line in block.text[:_MOST_SEEN].splitlines())
        return frozenset(seen)

    def _names_file(self, row: EditRow, seq: int) -> bool:
        """Whether a call whose result is at `seq` names the file of an edit."""
        name = row.path.replace("\\", "/").rpartition("/")[2]
        calls = (self._call_at(row.session, one.seq, one.idx) for one in self._store.calls_answered(row.session, seq))
        return any(one is not None and (name in one.path or name in one.command) for one in calls)

    def place(self, found: FoundEdit) -> tuple[int, int, int]:
        """Return the evidence: the version of the source file, and the start and size of the call's record."""
        message = self._message(found.row.session, found.row.seq)
        version = self._store.session(found.row.session)[0].version
        return version, message.start if message else 0, message.size if message else 0

    def _call_at(self, session: int, seq: int, idx: int) -> CallStart | None:
        message_row = self._message(session, seq)
        if message_row is None:
            return None
        blocks = self._reader(session).message(message_row).blocks
        return blocks[idx].call if idx < len(blocks) else None

    def _read_original(self, found: FoundEdit) -> str | None:
        source = self._sources.get(found.agent)
        if source is None or source.original is None or found.row.kind == "append":
            return None
        result = self._store.result_seq(found.row.session, found.row.seq, found.row.idx)
        row = self._message(found.row.session, result) if result is not None else None
        return source.original(self._reader(found.row.session).record(row)) if row is not None else None

    def _message(self, session: int, seq: int) -> MessageRow | None:
        return next(iter(self._store.messages(session, seq, seq)), None)

    def _reader(self, session: int) -> Records:
        if session not in self._records:
            self._records[session] = Records(self._store, self._sources, self._store.session(session)[0], until=0)
        return self._records[session]
