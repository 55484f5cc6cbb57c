"""Put a conversation together from the segments that show parts of it.

A segment may show again what is known already: somebody scrolled back, the window was resized, a menu was closed. `merge`
aligns what it shows with what is known, item by item, by the letters of each item; wrapping does not matter. Nothing known is
dropped, and nothing is added twice.

A message that waited in the queue is drawn twice, as waiting and as sent; it counts once. Two equal messages that were
really sent are drawn both at once, and stay two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from msgspec.structs import replace

from everturn.sources.terminal.redraws import covers_rows, find_redrawn
from everturn.sources.terminal.rows import date_sayings
from everturn.sources.terminal.transcript import DrawnSaying, ScreenTalk, TerminalTranscript, TranscriptSegment

_TITLE = re.compile(r"# (?P<title>[^\n]+?)(?: *┃?\s*\n|\s{2,}|\s*┃|\s*/(?:un)?share\b|$)")
_UNTITLED = re.compile(r"New session|Child session|Untitled", re.IGNORECASE)
_TOKENS = re.compile(r"(?P<number>[\d.,]+)(?P<unit>[KM]?)(?:/| \(| {1,3})(?P<percent>\d{1,3})%")
_SIDE_TOKENS = re.compile(r"([\d,]+) tokens")
_SIDE_PERCENT = re.compile(r"(\d{1,3})% used")
_VERSION = re.compile(r"(?i)\b(?:opencode|claude code) v?(\d+\.\d+[\w.-]*)")
_FOLDER = re.compile(r"(?i)\bopencode v?\S+\s+([~/]\S*?)(?::[^\s:]+)?(?:\s|$)")
_GREETED = re.compile(r"^\s*[▘▝ ]+\s+([~/]\S.*)$|cwd: ([~/]\S.*?)\s*│?$", re.MULTILINE)
_BELOW = re.compile(r"^([~/]\S*)(?:\s{2,}|$)", re.MULTILINE)
_WORKING = re.compile(r"\besc\b[^\n]{0,20}\binterrupt|\bworking\.\.|\besc\b again")
_NATIVE = re.compile(r"\bopencode (?:-s|--session) (ses_\w+)|\bclaude (?:-r|--resume) ([0-9a-f-]{36})")
_EPILOGUE = re.compile(r"^ *Session {2,}(\S.*)$", re.MULTILINE)
_FACTOR = {"": 1, "K": 1_000, "M": 1_000_000}

#: Role, letters of the text, letters of the calls, time as drawn.
Key = tuple[str, str, str, str]

_SPACE = re.compile(r"\s+")
_LONG = 40  # letters that nobody repeats by chance
_SOME = 12  # letters of a prompt that nobody repeats with the same answer
_AROUND = 20  # items
_MOSTLY = 0.6  # of the items
_SEVERAL = 3  # items
_MOST_SKIPPED = 2  # items that are cut off, or covered, at the top of a screen
_EMPTY_FIRST = ("boxes", "early_boxes", "panels")  # clients that draw a prompt once the input field is empty
_REST = "\0rest"  # the key of a call whose title was not seen


def squash(text: str) -> str:
    """Return the letters of a text: wrapping and blanks do not count."""
    return _SPACE.sub("", text)


class TalkBuilder:
    """A talk being put together."""

    def __init__(self, dialect: str, cut_top: bool) -> None:
        self.dialect = dialect
        self.cut_top = cut_top
        self.said: list[DrawnSaying] = []
        self.titles: list[str] = []
        self.native_id = self.client = self.workspace = ""
        self.tokens: int | None = None
        self.percent: int | None = None
        self.working = False

    def continues(self, said: Sequence[DrawnSaying], segment: TranscriptSegment, fresh: bool) -> bool:
        """Return whether a segment belongs to this talk. `fresh`: the program was at its home screen, or outside it."""
        title = title_of(segment.title)
        if segment.program and segment.follows and (not self.titles or title == self.titles[-1]):
            return True
        known, shown = ([item for item in side if item.kind != "notice"] for side in (self.said, said))
        if align(known, shown, not fresh, self.cut_top):  # the same notice comes in many talks
            return True
        if fresh or (not segment.cut_top and _is_beginning(said)):
            return False
        if title and self.titles and title != self.titles[-1]:
            return (title in self.titles and not _UNTITLED.match(title)) or _UNTITLED.match(self.titles[-1]) is not None
        return True

    def take(self, said: Sequence[DrawnSaying], segment: TranscriptSegment, fresh: bool = False) -> None:
        """Add what a segment shows beyond what is known."""
        self.said = merge(self.said, said, not fresh, self.cut_top)
        for item in said:
            if item.kind == "output":
                self.take_name(item.text)
        self._frame(segment)

    def begins(self) -> int:
        """Return where in the recording its first item was drawn."""
        return self.said[0].bytes[0] if self.said else 0

    def recover(self, items: Sequence[DrawnSaying]) -> None:
        """Add items that vanished from the screen, each where its time is, unless its words are there already."""
        prompts = [squash(one.text) for one in self.said if one.role == "user"]
        answers = "\n".join(squash(_all_words(one)) for one in self.said if one.role != "user")
        for item in items:
            words = squash(item.text or item.thinking or "".join(f"{call.title}{call.command}" for call in item.calls))
            asked = item.role == "user"
            if any(one.startswith(words) for one in prompts) if asked else words in answers or self._came_true(item):
                continue
            place = next((n for n, one in enumerate(self.said) if one.bytes[0] > item.bytes[0]), len(self.said))
            self.said.insert(place, item)
            if asked:
                prompts.append(words)
            else:
                answers += f"\n{words}"

    def _came_true(self, item: DrawnSaying) -> bool:
        """Return whether the calls of an item were only announced, and are there as they were run."""
        later = [one for one in self.said if one.bytes[1] >= item.bytes[0]]
        ran = {(call.path, call.command) for one in later for call in one.calls if call.path or call.command}
        drawn_there = {call.kind for one in later if one.bytes[0] <= item.bytes[1] for call in one.calls}
        return bool(item.calls) and all(
            (call.status == "open" and (call.path, call.command) in ran)
            or (not call.path and not call.command and call.kind in drawn_there)
            for call in item.calls
        )

    def take_name(self, text: str) -> bool:
        """Whether a text is what the client printed at its end; its name of the session is taken from it."""
        found = _NATIVE.search(text)
        if found is None:
            return False
        self.native_id = found[1] or found[2]
        if title := _EPILOGUE.search(text):
            self._title(title[1].strip())
        return True

    def _frame(self, segment: TranscriptSegment) -> None:
        """Read the title and the token counts that the client draws around the conversation."""
        frame = f"{segment.title}\n{segment.footer}"
        self._title(title_of(segment.title) or (_side_title(segment.title) if self.dialect == "panels" else ""))
        if found := _TOKENS.search(frame):
            self.tokens = _number(found["number"], found["unit"])
            self.percent = int(found["percent"])
        elif counted := _SIDE_TOKENS.search(frame):
            self.tokens = _number(counted[1], "")
            share = _SIDE_PERCENT.search(frame)
            self.percent = int(share[1]) if share else self.percent
        if version := _VERSION.search(frame):
            self.client = version[1]
        folder = _FOLDER.search(frame) or _GREETED.search(segment.title) or _BELOW.search(segment.footer)
        if folder:
            self.workspace = next(part for part in folder.groups() if part).strip()
        self.working = _WORKING.search(segment.footer) is not None

    def _title(self, title: str) -> None:
        if title and (not self.titles or self.titles[-1] != title):
            self.titles.append(title)


def title_of(frame: str) -> str:
    """The session's title in the rows above the conversation."""
    found = _TITLE.search(frame)
    return found["title"].strip(" ┃") if found else ""


def is_other_session(before: str, now: str) -> bool:
    """Return whether the rows above the conversation name another session; the first title of a session may be replaced."""
    old, new = title_of(before), title_of(now)
    return bool(old and new) and old != new and _UNTITLED.match(old) is None


def finish_talk(talks: Sequence[TalkBuilder], transcript: TerminalTranscript) -> list[ScreenTalk]:
    """The talks with everything that is known only at their end: queue, steps, times."""
    lines = [line for segment in transcript.segments for line in segment.lines]
    done: list[ScreenTalk] = []
    for talk in talks:
        said = _drop_queued(_drop_announced(_drop_wordless(talk.said)))
        redrawn = find_redrawn(said, transcript.emptied) if talk.dialect in _EMPTY_FIRST else ()
        said = _number_steps([item for number, item in enumerate(said) if number not in redrawn])
        said = date_sayings(said, [lines[item.lines[0]].at for item in said], transcript)
        if talk.working:
            said = _mark_interrupted(said)
        done.append(
            ScreenTalk(
                talk.dialect, tuple(said), tuple(talk.titles), talk.native_id, talk.client, talk.workspace,
                talk.tokens, talk.percent, talk.working, talk.cut_top,
            )
        )  # fmt: skip
    return done


# --- the same item twice ---
def merge(
    known: Sequence[DrawnSaying], shown: Sequence[DrawnSaying], joins: bool = True, cut_top: bool = True
) -> list[DrawnSaying]:
    """Return the items of both in the order of the screen; items that both have come once, as they were seen best."""
    pairs = {new: old for old, new in align(known, shown, joins, cut_top)}
    first = min(pairs, default=0)
    seen = squash("".join(_all_words(item) for item in known[-_AROUND:])) if first else ""
    merged = list(known)
    while pairs and merged and max(pairs.values()) < len(merged) - 1 and _is_fleeting(merged[-1]):
        merged.pop()  # what it became is among the items shown
    place = min(pairs.values(), default=_place_in_time(merged, shown))
    added = 0
    for number, item in enumerate(shown):
        if number in pairs:
            place = pairs[number] + added
            merged[place] = _choose(merged[place], item)
        elif number < first and squash(_all_words(item)) in seen:
            continue
        else:
            merged.insert(place, item)
            added += 1
        place += 1
    return merged


def _place_in_time(known: Sequence[DrawnSaying], shown: Sequence[DrawnSaying]) -> int:
    """Return before which known item a segment belongs that has nothing in common with them: order is time."""
    first = min((item.bytes[0] for item in shown), default=0)
    return next((number for number, item in enumerate(known) if item.bytes[0] > first), len(known))


def align(
    known: Sequence[DrawnSaying], shown: Sequence[DrawnSaying], joins: bool = True, cut_top: bool = True
) -> list[tuple[int, int]]:
    """Return the pairs of places at which the same item stands, rising on both sides; none when that is not sure.

    `joins`: the second may begin with what the first ends with, however short that is. `cut_top`: more may stand above
    the first item known.
    """
    old, new = _spoken_at(known), _spoken_at(shown)
    old_keys, new_keys = [_key(known[n]) for n in old], [_uncover(shown[n], known) for n in new]
    waiting = {place for place, n in enumerate(old) if known[n].calls and not known[n].calls[-1].output}
    pairs: list[tuple[int, int]] = []
    while joins:  # what was still to become something may be shown as it was, or as what it became
        pairs = _join_ends(old_keys, new_keys, waiting)
        if pairs or not old_keys or not _is_fleeting(known[old[len(old_keys) - 1]]):
            break
        old_keys.pop()
    pairs = pairs or _find_again(old_keys, new_keys, joins, cut_top)
    return [(old[a], new[b]) for a, b in pairs]


def _join_ends(old: list[Key], new: list[Key], waiting: set[int]) -> list[tuple[int, int]]:
    """Pair the last items of one with the first ones of the other; a part of an item is enough.

    `waiting` are calls without output: the end of an output whose beginning was not seen may belong to one of them.
    """
    best: list[tuple[int, int]] = []
    most = -1
    for skipped in range(min(_MOST_SKIPPED, len(new)) + 1):
        for count in range(min(len(old), len(new) - skipped), bool(skipped), -1):
            pairs = [(len(old) - count + k, skipped + k) for k in range(count)]
            same = [_is_same(old[a], new[b]) for a, b in pairs]
            rests = all(fits or (new[b][2] == _REST and a in waiting) for (a, b), fits in zip(pairs, same, strict=True))
            if rests and sum(same) > most:
                best, most = pairs, sum(same)
    return best


def _find_again(old: list[Key], new: list[Key], joins: bool, cut_top: bool) -> list[tuple[int, int]]:
    """Pair what is shown again: a conversation that was opened, resized or scrolled back, and not a few equal words."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    pairs: list[tuple[int, int]] = []
    for a, b, size in matcher.get_matching_blocks():
        block = [(a + k, b + k) for k in range(size)]
        pairs += block if any(_is_own(old, new, *pair) for pair in block) else []
    pairs = pairs or _find_long_part(old, new) or _find_turn(old, new)
    pairs = sorted({*pairs, *_find_parts(old, new, pairs)})
    if not joins:  # another session may begin with the same words
        return pairs if len(pairs) >= _SEVERAL or any(len(new[b][1]) >= _LONG for _, b in pairs) else []
    if not pairs:
        return []
    above = 0 if cut_top and not pairs[0][0] else pairs[0][1]  # items in front of all that is known may be new
    return pairs if len(pairs) >= _MOSTLY * min(len(old), above + pairs[-1][1] - pairs[0][1] + 1) else []


def _spoken_at(said: Sequence[DrawnSaying]) -> list[int]:
    return [number for number, item in enumerate(said) if item.kind != "output"]


def _is_fleeting(item: DrawnSaying) -> bool:
    """Return whether an item is still to become something: an answer that has not begun, a call that runs."""
    if item.role != "assistant":
        return False
    waits = bool(item.calls) and all(call.status == "open" for call in item.calls)
    return waits or (not item.calls and not item.text and not item.thinking)


def _find_long_part(old: list[Key], new: list[Key]) -> list[tuple[int, int]]:
    """Return the pair of the first long item that is a part of one other item, and of no other."""
    for b, key in enumerate(new):
        whole = [a for a, one in enumerate(old) if _is_part(one, key)] if len(key[1]) >= _LONG else []
        if len(whole) == 1:
            return [(whole[0], b)]
    return []


def _find_turn(old: list[Key], new: list[Key]) -> list[tuple[int, int]]:
    """Return the pairs of a turn that is shown again: the same prompt, once on either side, and something below it."""
    matched = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    pairs = [(a + k, b + k) for a, b, size in matched for k in range(size)]
    asked = [pair for pair in pairs if old[pair[0]][0] == "user" and len(old[pair[0]][1]) >= _SOME]
    sure = (
        len(pairs) > 1 and pairs[:1] == asked[:1] and all(old.count(old[a]) == new.count(new[b]) == 1 for a, b in pairs)
    )
    return pairs if sure else []


def _find_parts(old: list[Key], new: list[Key], pairs: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield pairs next to those known in which one side shows only a part of the item: it grew, or it was cut off."""
    taken = {a for a, _ in pairs}, {b for _, b in pairs}
    for a, b in [(a + step, b + step) for a, b in pairs for step in (-1, 1)]:
        inside = 0 <= a < len(old) and 0 <= b < len(new)
        if inside and a not in taken[0] and b not in taken[1] and _is_part(old[a], new[b]):
            taken[0].add(a)
            taken[1].add(b)
            yield a, b


def _is_same(old: Key, new: Key) -> bool:
    return old == new or _is_part(old, new)


def _is_part(old: Key, new: Key) -> bool:
    if old[0] != new[0] or old[2] != new[2] or not old[1]:
        return False
    if old[0] == "user":  # of a prompt whose words have left the screen, the time is still there
        return old[1].endswith(new[1]) and old[3] == new[3] and bool(new[1] or new[3])
    if not new[1]:
        return False
    if old[1].startswith(new[1]) or new[1].startswith(old[1]) or old[1].endswith(new[1]):
        return True
    if len(new[1]) >= _LONG and new[1] in old[1]:
        return True
    begins = len(old[1]) >= _LONG and old[1][:_LONG] == new[1][:_LONG]
    return begins or _overlap(old[1], new[1]) >= _LONG


def _overlap(old: str, new: str) -> int:
    """Return how many letters at the end of one text are the beginning of the other."""
    start = old.rfind(new[:_LONG])
    return len(old) - start if start >= 0 and new.startswith(old[start:]) else 0


def _is_own(old: list[Key], new: list[Key], a: int, b: int) -> bool:
    """Return whether an item is like no other: a long one, or a prompt with its time that each side has once."""
    role, text, _, time = key = new[b]
    if len(text) >= _LONG and old.count(key) == 1:
        return True
    return role == "user" and bool(text and time) and old.count(key) == 1 and new.count(key) == 1


def _choose(old: DrawnSaying, new: DrawnSaying) -> DrawnSaying:
    """Return the better drawing of an item: seen whole, longer, with its end."""
    before, after = squash(old.text or old.thinking), squash(new.text or new.thinking)
    if old.calls and new.calls and _key(new)[2] == _REST:
        return _add_rest(old, new)
    if old.queued and not new.queued:
        return replace(new, queued=True)
    if old.role == "assistant" and not old.calls and not before.endswith(after) and _overlap(before, after) >= _LONG:
        return replace(
            new, text=_join_text(old.text, new.text), lines=old.lines, bytes=old.bytes, fidelity=old.fidelity
        )
    if (old.fidelity == "partial") != (new.fidelity == "partial") and len(before) == len(after):
        return old if new.fidelity == "partial" else new
    if len(before) != len(after):
        return old if len(before) > len(after) else new
    return new if (new.model and not old.model) or new.calls != old.calls else old


def _add_rest(old: DrawnSaying, new: DrawnSaying) -> DrawnSaying:
    """Return a call with the end of its output, which was drawn after its beginning had left the screen."""
    call, rest = old.calls[-1], new.calls[0].output
    if squash(rest) in squash(call.output):
        return old
    output = _join_text(call.output, rest) if _overlap(squash(call.output), squash(rest)) else f"{call.output}\n{rest}"
    status = call.status if call.title else new.calls[0].status  # one that was only announced was run
    return replace(old, calls=(*old.calls[:-1], replace(call, output=output.strip("\n"), status=status)))


def _join_text(old: str, new: str) -> str:
    """Return the first text and what the second adds to it."""
    missing = len(squash(new)) - _overlap(squash(old), squash(new))
    end = len(new)
    while missing and end:
        end -= 1
        missing -= not new[end].isspace()
    return old.rstrip() + "\n" + new[end:].lstrip("\n") if end < len(new) else old


def _all_words(item: DrawnSaying) -> str:
    calls = "".join(f"{call.title}{call.command}{call.output}" for call in item.calls)
    return f"{item.text}{item.thinking}{calls}"


def _key(item: DrawnSaying) -> Key:
    titles = "\n".join(f"{call.title}\0{call.command}" if call.title else _REST for call in item.calls)
    time = item.time_text if item.role == "user" else ""
    return item.role, squash(item.text or item.thinking), squash(titles), time


def _uncover(item: DrawnSaying, known: Sequence[DrawnSaying]) -> Key:
    """Return the key of an item; that of the known prompt of its time whose rows it shows, if something covers their ends."""
    key = _key(item)
    if item.role == "user" and item.fidelity == "partial":
        wholes = {whole for one in known if (whole := _key(one))[0] == "user" and whole[3] == key[3]}
        fitting = [whole for whole in wholes if covers_rows(whole[1], item.text)]
        return fitting[0] if len(fitting) == 1 else key
    return key


def _is_beginning(said: Sequence[DrawnSaying]) -> bool:
    return next((item.role == "user" for item in said if item.kind != "notice"), False)


def _drop_wordless(said: Sequence[DrawnSaying]) -> list[DrawnSaying]:
    """Drop prompts of which less was seen than of another one: author and time only, or rows drawn again above it."""
    known = {(item.author, item.time_text) for item in said if item.role == "user" and item.text}
    return [
        item
        for item, below in zip(said, [*said[1:], None], strict=False)  # none at the end
        if item.role != "user"
        or item.attached
        or (not _is_drawn_again(item, below) if item.text else (item.author, item.time_text) not in known)
    ]


def _is_drawn_again(item: DrawnSaying, below: DrawnSaying | None) -> bool:
    """Return whether a part of the prompt below was drawn after it: order is time, so it is the same prompt."""
    if below is None or below.role != "user" or item.fidelity != "partial" or item.bytes[0] <= below.bytes[0]:
        return False
    return covers_rows(squash(below.text), item.text)


def _drop_announced(said: Sequence[DrawnSaying]) -> list[DrawnSaying]:
    """Drop calls of which nothing was seen but the words in the place of their title."""
    seen = [[call for call in item.calls if call.title or call.command or call.status != "open"] for item in said]
    return [item for item, calls in zip(said, seen, strict=True) if calls or not item.calls]


def _drop_queued(said: Sequence[DrawnSaying]) -> list[DrawnSaying]:
    """A waiting message is dropped where it is drawn again later on, as sent or still waiting; one that is not stays."""
    kept: list[DrawnSaying] = []
    told: set[tuple[str, str, str]] = set()  # told again further down
    below: set[tuple[str, str, str]] = set()  # waiting, in the same row of messages: two of them are two
    queued: set[tuple[str, str, str]] = set()
    for item in reversed(said):
        same = (item.text, item.author, item.time_text)
        if item.role != "user":
            told |= below
            below = set()
        elif item.kind != "queued":  # it was sent, after it had waited or at once
            told.add(same)
        elif same in told:
            queued.add(same)
            continue
        else:
            below.add(same)
        kept.append(item)
    return [
        replace(item, queued=True)
        if item.role == "user" and (item.text, item.author, item.time_text) in queued
        else item
        for item in reversed(kept)
    ]


def _number_steps(said: Sequence[DrawnSaying]) -> list[DrawnSaying]:
    """Numbers the responses of the model: words or thoughts after a call begin a new one."""
    found: list[DrawnSaying] = []
    step, called, open_step = -1, False, False
    for item in said:
        if item.role == "user":
            open_step = False
        elif item.role == "assistant" and item.kind == "text":
            if not open_step or (called and (item.text or item.thinking)):
                step, called, open_step = step + 1, False, True
            called = called or bool(item.calls)
            item = replace(item, step=step)
        found.append(item)
    return found


def _mark_interrupted(said: list[DrawnSaying]) -> list[DrawnSaying]:
    """The last words of an agent that was still at work."""
    last = next((n for n in range(len(said) - 1, -1, -1) if said[n].role != "system"), None)
    if last is not None and said[last].role == "assistant":
        said[last] = replace(said[last], interrupted=True)
    return said


def _side_title(frame: str) -> str:
    """The first lines of the sidebar, above the one that says how full the context is."""
    head, context, _ = f"{frame}\n".partition("\nContext\n")
    return " ".join(head.split()) if context else ""


def _number(text: str, unit: str) -> int | None:
    try:
        return round(float(text.replace(",", "")) * _FACTOR[unit])
    except (ValueError, OverflowError):
        return None
