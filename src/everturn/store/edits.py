"""The edit index: which call changed which file, and keyed hashes of the lines it added.

The key belongs to the archive and was made with the table, so a hash tells nothing outside of it. White space does not
count in a hash, which makes re-indented lines equal. Questions name a file by its own name, without folders: the caller
decides which of the paths is the file it means.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import blake2b

from msgspec.structs import astuple

from everturn.model.archive import LINE_HASH, Call, EditLines, EditRow
from everturn.store.contract import FoundEdit
from everturn.store.sql import CALLS, EDITS, Driver, query_in_lists

_SEPARATOR = bytes(LINE_HASH)  # between two changes of an edit
_BLANKS = b" \t\r\v\f\x1c\x1d\x1e\x1f"  # what str.split() takes for white space in ASCII, without the line end
_NAME_SIZE = 4
_KEY = "edit key"
_FOUND = (
    f'SELECT {EDITS.fields("e")},c."call_id",c."name",s."agent",s."state",c."inherited" FROM "edit" e '
    'JOIN "session" s ON s."id"=e."session" '
    'JOIN "call" c ON c."session"=e."session" AND c."seq"=e."seq" AND c."idx"=e."idx"'
)
_ORDER = 'ORDER BY e."session",e."seq",e."idx",e."n"'


class EditStore:
    """The part of a store that holds the edit index. Write inside `write()`."""

    driver: Driver

    @cached_property
    def _edit_key(self) -> bytes:
        found = self.driver.one('SELECT "value" FROM "setting" WHERE "key"=?', (_KEY,))
        return bytes.fromhex(found[0]) if found else b""

    def add_edits(self, session: int, edits: Iterable[EditLines]) -> None:
        """Add edits to the index; a repeated one replaces the row."""
        rows = (
            EditRow(
                session, one.seq, one.idx, one.n, one.turn, one.began, one.at, one.kind, one.path,
                self._name_hash(one.path), self._pack_lines(one.lines),
            )
            for one in edits
        )  # fmt: skip
        self.driver.many(EDITS.upsert, map(astuple, rows))

    def edits_of_file(self, names: Sequence[str]) -> list[FoundEdit]:
        """Return all edits of files with one of these names, whatever their folder; upper and lower case are one."""
        hashes = sorted({self._name_hash(name) for name in names})
        sql = f'{_FOUND} WHERE e."name" IN ({{}}) {_ORDER}'
        return [_make_found(row) for row in query_in_lists(self.driver.all, sql, hashes)]

    def edits_of_session(self, session: int) -> list[FoundEdit]:
        """Return the edits of a session, in order."""
        return [_make_found(row) for row in self.driver.all(f'{_FOUND} WHERE e."session"=? {_ORDER}', (session,))]

    def edited_paths(self, beginning: str) -> list[str]:
        """Return the paths of edits that begin so, each once; some hundred at most."""
        sql = 'SELECT DISTINCT "path" FROM "edit" WHERE SUBSTR("path",1,CAST(? AS INTEGER))=? ORDER BY "path" LIMIT 500'
        return [path for (path,) in self.driver.all(sql, (len(beginning), beginning))]

    def edit_span(self) -> tuple[int, int] | None:
        """Return the time of the first and the last edit; None without any."""
        row = self.driver.one('SELECT MIN("at"),MAX("at") FROM "edit"')
        return (row[0], row[1]) if row is not None and row[0] is not None else None

    def result_seq(self, session: int, seq: int, idx: int) -> int | None:
        """Return the message that holds the result of a call."""
        row = self.driver.one(
            'SELECT "result_seq" FROM "call" WHERE "session"=? AND "seq"=? AND "idx"=?', (session, seq, idx)
        )
        return row[0] if row is not None else None

    def calls_answered(self, session: int, seq: int) -> list[Call]:
        """Return the calls whose result is in a message."""
        return CALLS.read(self.driver.all(f'{CALLS.select} WHERE "session"=? AND "result_seq"=?', (session, seq)))

    def line_hashes(self, lines: Sequence[str]) -> list[bytes]:
        """Return the hash of each line; that of a blank line is all zero."""
        empty, known = blake2b(digest_size=LINE_HASH, key=self._edit_key), {b"": _SEPARATOR}
        found = _bare_lines(lines)
        for bare in found:
            if bare not in known:
                made = empty.copy()  # a new one would take longer
                made.update(bare)
                known[bare] = made.digest()
        return [known[bare] for bare in found]

    def _pack_lines(self, changes: Sequence[Sequence[str]]) -> bytes:
        return _SEPARATOR.join(b"".join(self.line_hashes(lines)) for lines in changes)

    def _name_hash(self, path: str) -> int:
        name = path.replace("\\", "/").rstrip("/").rpartition("/")[2].lower()
        data = name.encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(data, digest_size=_NAME_SIZE, key=self._edit_key).digest(), "big")


def _bare_lines(lines: Sequence[str]) -> list[bytes]:
    """Return the lines without white space; all in one pass if they are ASCII."""
    text = "\n".join(lines)
    if text.isascii():
        found = text.encode().translate(None, _BLANKS).split(b"\n")
        if len(found) == len(lines):  # no line has a line end in it
            return found
    return ["".join(line.split()).encode("utf-8", "surrogatepass") for line in lines]


def _make_found(row: Sequence[object]) -> FoundEdit:
    size = len(EDITS.columns)
    call_id, tool, agent, state, inherited = row[size:]
    edit = EditRow(*row[:size])  # type: ignore[arg-type]
    return FoundEdit(edit, str(call_id), str(tool), str(agent), state == "current", bool(inherited))
