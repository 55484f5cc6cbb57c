"""Find the files that a tool call touched, and the files that texts name.

`touched_files` returns (action, path) pairs of one successful call: only what is certain, from the call, its result, the
words of a shell command, the reports that version control and patch print, and lines such as `Wrote out.csv` of a command that
acts. Files that a pull, a merge or a build brings are not touched by the agent. Paths stay as they were given (see
`derive.paths` for one name per file).

`find_mentions` recognises a file name by its ending, since many words contain a dot: versions, hosts, members of an object.
Addresses, mails and the folders of package managers do not count.

Some transcripts do not name the file of an edit, and the report of a subagent is all that is known of its work. `announced_file`
returns the file that a text says is changed next, `stated_changes` and `named_files` those that a report says were changed,
and `told_files` puts both together for the edits of a turn that name no file.

All read a bounded part of long texts, read nothing from disk and never raise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from everturn.derive.edits import given_text, shell_commands
from everturn.derive.file_commands import (
    LOG_NAME,
    MAX_CHARS,
    Touch,
    command_touches,
    last_folder,
    reported_files,
)
from everturn.derive.paths import (
    ENDINGS,
    MOST_NAMED,
    PLAIN_NAMES,
    PRODUCTS,
    has_ending,
    is_generated,
    is_result,
    name_links,
    resolve_path,
)
from everturn.model.conversation import CallEnd, CallStart
from everturn.text.diffs import patched_files
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import both_ends

_ACTION = {"read": "read", "edit": "edited", "create": "created", "delete": "deleted"}


def touched_files(call: CallStart, end: CallEnd, output: str) -> list[Touch]:
    """Return the actions and paths of a successful call, in order and without repeats; empty for one that failed."""
    if end.is_error:
        return []
    action, path = end.action or _ACTION.get(call.kind, ""), end.path or call.path
    others = [one for one in end.others if not is_generated(one[1])]
    found: list[Touch] = [(action, path), *others] if action and path and "${" not in path else others
    given = given_text(call)
    found += _patch_touches(given, call.command)
    if call.kind == "shell" and not end.exit_status:
        output = both_ends(output, MAX_CHARS)
        for command, folder in shell_commands(call):
            found += command_touches(command, output, folder)
            found += _patch_touches(command, command) if command != given else []
            found += reported_files(command[:MAX_CHARS], output)
            found += _told_by_output(command[:MAX_CHARS], output, folder)
    return list(dict.fromkeys(found))


_MOVES = lazy_pattern(
    r"^\*\*\* Update File: (.{1,4096}?)[ \t]*\r?\n\*\*\* Move to: (.{1,4096}?)[ \t]*\r?$", re.MULTILINE
)


def _patch_touches(text: str, command: str) -> list[Touch]:
    """Return the files of a patch; one that is moved is deleted in one place and created in another."""
    patched = patched_files(text) if text else []
    if not patched:
        return []
    moved = dict(_MOVES.findall(text)) if "*** Move to: " in text else {}
    folder = last_folder(command.partition("<<")[0] + "<<") if command.lstrip().startswith("cd ") else ""
    found: list[Touch] = []
    for kind, path in patched:
        found += [("deleted", path), ("created", moved[path])] if path in moved else [(_ACTION[kind], path)]
    return [(action, resolve_path(folder, path) or path) for action, path in found]


# --- what a program says it did ---
#: What generators put into a column before a file: never words of a sentence.
_COLUMNS = ("append", "force", "insert", "gsub", "prepend")
_DEEDS = {
    **dict.fromkeys(
        ("wrote", "writing", "created", "creating", "create", "generated", "generating", "saved", "saving", "exported", "copied",
         "copying", "installed"), "created"),
    **dict.fromkeys(("updated", "updating", "update", "reformatted", "fixing", "fixed", "patched", "rewrote", "modified", *_COLUMNS), "edited"),
    "remove": "deleted",
    **dict.fromkeys(("read", "reading", "loaded", "loading"), "read"),
}  # fmt: skip
#: An output without any of these tells no deed.
_DEED_MARKS = (
    "rote ", "rote:", "riting ", "reate", "CREATE ", "reating", "enerat", "aved ", "aved:", "aving ", "xported ", "nflating", "xtracting", "pdat", "UPDATE ", "formatted ",
    "ixing ", "ixed ", "atched ", "odified ", "Read ", "read ", "eading ", "oaded ", "oading ", "opied ", "opying ", "odified:", "ompleted:", "ritten ", "nstalled ", "  append  ", "  force  ", "  insert  ", "  gsub  ", "  prepend  ", "  remove  ",
)  # fmt: skip
_LONGEST_DEED = 600
_DEED = lazy_pattern(
    r"(?P<verb>[a-z]{4,12}):?\s{1,20}(?P<what>(?:(?:files?|the|new|output|reports?|results?|data|log|html|xml|json|csv|lines?|bytes|rows|"
    r"records|entries|items|to|in|into|from|as|config|configuration|template|\d[\d,.]{0,12})\s{1,4}){0,6}|[^\n>'\"`]{1,80}? (?:->|→|to:?)\s{1,4})"
    r"(?P<quote>['\"`]?)(?P<path>[\w@+~./\\](?:[^'\"`*?$<>|(),;\s]|(?<=\w) (?=\w)){0,300}?)(?P=quote)"
    r"(?P<tail>:|\.{0,3}|\s{0,4}\.{3}\s{0,4}(?:done|ok)?|\s{1,4}[(\[][^\n]{0,200}[)\]]|\s{1,4}in [\d.]{1,8} ?m?s|\s{1,4}successfully)!?",
    re.IGNORECASE,
)
#: Commands that show texts of others, ask only, or run elsewhere.
_NOT_DOING = lazy_pattern(
    r"--(?:dry-run|check|summary)\b|\b(?:git|gh|ssh|docker|podman|kubectl|journalctl|curl|wget|jq|diff|bat|nl|tac|strings|ls|find|tree|"
    r"history|cat|less|more|grep|rg|sed|awk|head|tail|echo|printf)\b"
)


#: What was done, behind the thing: `Report saved to out/a.md`, `File modified: /home/ann/a.json [project]`.
_PASSIVE = lazy_pattern(
    r"(?:[A-Z][\w-]{1,30} )(?:[\w-]{1,30} ){0,2}(created|modified|written|saved|updated|generated|exported|completed)(?: (?:successfully|to|at|in|as)){0,2}:? {1,3}"
    r"['\"`]?((?:[A-Za-z]:|\.{0,2})[\\/][^\s'\"`*?$<>|(),;]{1,300}|[\w@+.-]{1,100}(?:/[\w@+.-]{1,100}){1,20})['\"`]?(?: [(\[][^\n]{0,200}[)\]])?[.!]?"
)
_FILTERED = lazy_pattern(
    r"\| ?(?:tail|head|e?grep|rg|sed|awk)\b[^|;&\n]{0,400}"
)  # of an output, which is still its own


def _told_by_output(command: str, output: str, start: str) -> Iterator[Touch]:
    """Yield the files of lines such as `Wrote out/report.csv`, where the command did something."""
    if not output or _NOT_DOING.search(_FILTERED.sub("", command)) or not any(mark in output for mark in _DEED_MARKS):
        return
    told = [one for one in _read_deeds(output) if one[0] == "read" or not is_generated(one[1])]
    folder = last_folder(command, start) if told else ""
    places = [(action, place) for action, path in told if (place := resolve_path(folder, path))]
    results = {place for action, place in places if action == "created" and "/" in place and is_result(place)}
    below = Counter(place.rpartition("/")[0] for place in results)
    many = {place for place in results if below[place.rpartition("/")[0]] > MOST_NAMED}
    yield from ((action, place.rpartition("/")[0] if place in many else place) for action, place in places)


#: Above a list of files, each on a line of its own: `Created 5 files:`.
_LIST_HEAD = lazy_pattern(r"(?P<verb>[a-z]{4,12}) (?:the following |new |\d{1,4} ){0,2}(?:new )?files?:", re.IGNORECASE)
_LIST_ITEM = lazy_pattern(r"[ \t]*(?:[-*•+]|\d{1,3}[.)])?[ \t]*([\w@+~./\\()\[\]-]{2,300})[ \t]*")
#: What a program puts before what it says: a sign, `[OK]`, `INFO:`.
_LEAD = lazy_pattern(
    r"(?:[^\w\s./~\\'\"`\[(-]{1,4}\s{1,3}|\[[A-Za-z]{2,8}\]:?\s{1,3}|(?:INFO|SUCCESS|DONE|OK)[:\s]\s{0,3}){1,3}"
)


def _read_deeds(output: str) -> Iterator[Touch]:
    listed = ""  # what was done to the files of the list that the lines are in
    for line in output.splitlines():
        words = line.strip(" \t✓✔✅→\r")
        if listed and (item := _LIST_ITEM.fullmatch(line.rstrip("\r"))) and has_ending(item[1]):
            yield listed, item[1]
            continue
        listed = _DEEDS.get(head["verb"].lower(), "") if (head := _LIST_HEAD.fullmatch(words)) else ""
        if (touch := _read_deed(line)) is not None:
            yield touch


def _read_deed(line: str) -> Touch | None:
    words = line.strip(" \t✓✔✅→\r")
    words = words[lead.end() :] if (lead := _LEAD.match(words)) is not None else words
    if len(words) <= _LONGEST_DEED and (passive := _PASSIVE.fullmatch(words)) is not None and has_ending(passive[2]):
        return _DEEDS.get(passive[1].lower(), "created"), passive[2]
    action = _DEEDS.get(words.split(None, 1)[0].rstrip(":").lower()) if words and len(words) <= _LONGEST_DEED else None
    found = _DEED.fullmatch(words) if action is not None else None
    if action is None or found is None:
        return None
    verb, path = found["verb"].lower(), found["path"]
    is_column = line[:1] == " " and "  " in line.strip()
    if verb in ("create", "update", "remove", *_COLUMNS) and "bytes)" not in found["tail"] and not is_column:
        return None  # a wish: `Update README.md`
    if (verb == "read" and not found["what"]) or (" " in path and not found["quote"]):
        return None
    is_named = has_ending(path) or (is_column and ("." in path[1:] or path.startswith((".", "bin/"))))
    if verb == "installed":
        is_named = path[0] in "/~" and found["what"].rstrip().endswith("to")
    return (action, path) if is_named and "@" not in path.partition("/")[0] else None


# --- mentions ---
_MENTION_CHARS, _MAX_MENTIONS = 12_000, 120  # of one text: a longer listing says little about each

#: The end of a name. Its beginning is searched backwards, which is far cheaper than trying every word. A pattern whose matches all
#: begin with a point is found several times as fast as one for names without a point too.
_POINTED = rf"\.(?:(?:{ENDINGS})(?![\w@/\\*-]|\.\w|\((?!\d))|(?:(?<![\w.].)(?:gitignore|dockerignore)\b(?![/.(])))"
_PLAIN = ("Dockerfile", "Makefile", "Gemfile", "Procfile")
_END = lazy_pattern(_POINTED)
_END_OR_PLAIN = lazy_pattern(rf"{_POINTED}|\b(?:{'|'.join(_PLAIN)})\b(?![/.(])")
_NAME_BACKWARDS = lazy_pattern(r"[\w@.+~/\\-]*(?:(?<=[/\\]):[A-Za-z])?")
_LONGEST = 200
#: Endings that are as often members of an object: they count only after a folder.
_DOUBTFUL = frozenset((".c", ".h", ".sum", ".mod", ".ex", ".cs", ".conf", ".less", ".fish", ".nu", ".lock", ".tf"))
_SURE = frozenset(("go.mod", "go.sum", "uv.lock", "poetry.lock", "Cargo.lock", "yarn.lock"))
_FOREIGN = lazy_pattern(r"(?:^|[/\\])(?:node_modules|\.git|site-packages|__pycache__|\.venv|dist|vendor)[/\\]")


def find_mentions(text: str) -> Counter[str]:
    shown = both_ends(text, _MENTION_CHARS)
    found: Counter[str] = Counter()
    ends = _END_OR_PLAIN if any(map(shown.__contains__, _PLAIN)) else _END
    for end in ends.finditer(shown):
        if name := _mentioned_name(shown, end):
            found[name] += 1
    return Counter(dict(found.most_common(_MAX_MENTIONS)))


def _mentioned_name(text: str, end: re.Match[str]) -> str:
    first = max(0, end.start() - _LONGEST)
    before = _NAME_BACKWARDS.match(text[first : end.start()][::-1])
    start = end.start() - (before.end() if before is not None else 0)
    name = text[start : end.end()]
    if (start and text[start - 1] in "@:$%") or "@" in name.partition("/")[0] or "//" in name:
        return ""  # a mail, an address, a variable
    if start == end.start() and name.startswith(".") and not name.endswith("ignore"):
        return ""  # an ending alone
    if end[0] in _DOUBTFUL and "/" not in name and "\\" not in name and name not in _SURE:
        return ""
    return "" if _FOREIGN.search(name) or name.rpartition("/")[2] in PRODUCTS else name


_ACTS = lazy_pattern(
    r"\b(?:creat|updat|edit|modify|add|writ|fix|chang|refactor|implement|adjust|replac|rewrit|mov|extend|correct|sav|delet|remov|renam|delet|clean|split|extract|simplif|convert|migrat"
    r"|aktualisier|erstell|änder|bearbeit|ergänz|erweiter|korrigier|ersetz|pass|schreib|lösch|entfern|modifi|cré|ajout|mett|corri|remplac|écri|supprim|añad|agreg|actualiz|reemplaz|escrib|elimin|borr"
    r"|atualiz|adicion|substitu|remov|exclu)\w*\b"
    r"|修改|更新|编辑|編輯|添加|创建|創建|新建|新增|重写|修复|修復|调整|替换|删除|刪除|移除|实现|追加|作成|変更|修正|削除|実装|編集",
    re.IGNORECASE,
)
_ACTS_AFTER = lazy_pattern(r"`?\s?(?:を|に|のファイルを)[^\n。`]{0,12}(?:修正|更新|編集|追加|作成|変更|書き換|削除)")
_PLACES = lazy_pattern(
    r"\b(?:called|named) `?$|\b(?:in|into|to)(?: (?:the|a|our|your))?(?: (?:file|existing|new|main|root)){0,2} `?$"
)
_CREATES = lazy_pattern(
    r"\b(?:creat|add|writ)\w*\b[^.\n]{0,80}\b(?:new|rule|file|script|test|doc\w*|module|task|spec\w*)\b", re.I
)
_ANNOUNCED = 600  # characters of a text in which a file is announced, from its end
_CODE_SPAN = lazy_pattern(r"`([^`\n]{1,300})`")
#: A name in code that is one of a file.
_WHOLE = lazy_pattern(
    rf"(?:[A-Za-z]:)?[\w@.+~/\\-]*[\w@+~-]\.(?:{ENDINGS})|(?:[\w@.+~/\\-]*/)?(?:{'|'.join(sorted(PLAIN_NAMES))}|\.env(?:\.\w{{1,20}})?|\.\w{{2,20}}(?:ignore|rc))"
)
_SENTENCE_END = lazy_pattern(r"[.!?:]\s|[。！？：；\n]")
#: Before a file that is only looked at, or that the work follows.
_LOOKS = lazy_pattern(
    r"\b(?:look(?:ing)? at|read(?:ing)?|check(?:ing)?|review(?:ing)?|examin(?:e|ing)|inspect(?:ing)?|see|view(?:ing)?|based on|according to|as (?:in|described in|shown in)|from|like|per|than|against|runs?|using|uses?|calls?|imports?|loads?"
    r"|anschauen|lesen|prüfen|laut|wie in|lire|vérifier|selon|comme dans|leer|revisar|según|como en) (?:the |der |die |das |le |la |el )?[\"'(*]{0,3}$"
    r"|(?:查看|检查|读取|阅读|参考|根据|确认|見て|確認)[^`\n，。]{0,6}$",
    re.IGNORECASE,
)


def announced_file(text: str) -> str | None:
    """Return the file that a text says is changed next; "" for a new one without a name, None if it says nothing.

    That is the first file behind the verb in the last sentence that speaks of a change.
    """
    shown = text.rstrip()[-_ANNOUNCED:]
    found = list(_announced_names(shown))
    for start, end, name in reversed(_first_in_sentences(shown, found)):
        opening = _sentence_start(shown, start)
        is_act = _ACTS.search(shown, opening, start) or _ACTS_AFTER.match(shown, end)
        if (is_act or _PLACES.search(shown, opening, start)) and not _DENIES.search(shown, opening, start):
            return name
    return "" if _CREATES.search(shown) else None


def only_named_file(text: str) -> str:
    """Return the one file that a text names, "" if there are others or it is only looked at."""
    shown = text.rstrip()[-_ANNOUNCED:]
    found = list(_announced_names(shown))
    looks = any(_LOOKS.search(shown, _sentence_start(shown, start), start) for start, _, _ in found)
    return found[0][2] if len({name for _, _, name in found}) == 1 and not looks else ""


def edited_file(start: CallStart, said: str, near: str) -> str:
    """Return the file of an edit that names none: the one announced, or the one read right before; "" if neither is known.

    A new file was not read. Then, and if nothing was read, the only file that the words name is meant.
    """
    announced = announced_file(said)
    if announced or (announced is None and near and start.kind == "edit" and not makes_new_file(start)):
        return announced or near
    return only_named_file(said)


def _announced_names(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the files of a text with their places: those in code, and paths in words."""
    code = [(one.start(1), one.end(1), one[1].lstrip("@")) for one in _CODE_SPAN.finditer(text)]
    words = (
        (one.end() - len(name), one.end(), name)
        for one in _END_OR_PLAIN.finditer(text)
        if (name := _mentioned_name(text, one))
    )
    outside = [one for one in words if not any(start <= one[0] < end for start, end, _ in code)]
    yield from sorted((*(one for one in code if _WHOLE.fullmatch(one[2]) and one[2] not in PRODUCTS), *outside))


def _first_in_sentences(text: str, names: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Return of each sentence the first file that is not only looked at."""
    first: dict[int, tuple[int, int, str]] = {}
    for one in names:
        opening = _sentence_start(text, one[0])
        if not _LOOKS.search(text, opening, one[0]):
            first.setdefault(opening, one)
    return list(first.values())


def _sentence_start(text: str, at: int) -> int:
    return max((one.end() for one in _SENTENCE_END.finditer(text, 0, at)), default=0)


def told_files(
    nameless: list[tuple[str, int]], answer: tuple[str, int], known: Collection[str], noted: bool, named: Iterable[str]
) -> dict[str, int]:
    """Return the files of edits that name none, with the message that says so.

    `nameless` has the files announced before them, or the one that was read last. The answer at the end names further ones; if
    there are other edits that name their file (`noted`), only those of which it says that they were changed.
    """
    text, seq = name_links(answer[0]), answer[1]
    stated = [path for _, path in stated_changes(text)] if noted else named_files(text)
    told = {path: seq for path in stated if path not in known}
    longer = [*told, *known, *named]
    for name, at in nameless:
        path = next((path for path in longer if path.endswith(f"/{name}")), name)
        if told and _ABSOLUTE.match(path):  # a path as calls have it: that of the file read last
            bare = path.replace("\\", "/").rsplit("/", 1)[-1]
            path = path if told.pop(bare, None) is not None else ""  # the answer names this file, or others
        if path and path not in known and not is_generated(path):
            told.setdefault(path, at)
    return told


_ABSOLUTE = lazy_pattern(r"/|[A-Za-z]:|file:")


def makes_new_file(start: CallStart) -> bool:
    """Whether an edit that names no file is a diff without old lines: nothing was there before."""
    given = start.input.get("asked") if isinstance(start.input, dict) else start.input
    if not isinstance(given, str) or "```diff\n" not in given:
        return False
    lines = given[given.index("```diff\n") + 8 :][:MAX_CHARS].split("\n```", 1)[0].split("\n")
    return any(line[:1] == "+" for line in lines) and all(line[:1] == "+" or not line[1:].strip() for line in lines)


# --- what a report says ---
_CHANGES = lazy_pattern(
    r"\b(?:added|created|modified|updated|edited|changed|rewrote|rewritten|wrote|extended|inserted|implemented|fixed|refactored|new|"
    r"removed|reworded|reworked|renamed|deleted|moved|replaced|converted|adjusted|simplified|enhanced|improved|documented|"
    r"(?:hin|ein)?zugefügt|eingefügt|geändert|angepasst|erstellt|angelegt|aktualisiert|bearbeitet|ergänzt|erweitert|ersetzt|entfernt|gelöscht|"
    r"umbenannt|verschoben|korrigiert|behoben|überarbeitet|implementiert|neue?[rs]?|"
    r"(?:ajout|modifi|cré|corrig|supprim|remplac|renomm|déplac|édit|amélior|implément)ée?s?|mis(?:e|es)? à jour|réécrite?s?|nouve(?:au|lle)|"
    r"(?:añad|correg|mov|reescr)id[oa]s?|(?:agreg|modific|cre|actualiz|elimin|reemplaz|renombr|edit|implement|mejor)(?:ad[oa]s?|é)|modifiqué|añadí|corregí|"
    r"agregué|nuev[oa]s?|(?:cria|modifica|atualiza|altera|adiciona|remove|removi|corrigi|edita)d[oa]s?|nov[oa]s)\b"
    r"|\b(?:созда|измен|обнов|добав|удал|исправ|переписа|перемещ|переименов)\w{1,12}\b|\bновы[еййх]\w?\b|(?:수정|생성|추가|변경|삭제|작성)"
    r"|添加|新增|新建|创建|創建|建立|修改|更新|编辑|編輯|删除|刪除|移除|替换|替換|重命名|重写|重寫|实现|實現|修复|修復|调整|調整|优化"
    r"|追加|作成|変更|修正|編集|削除|置き換え|書き換え|実装",
    re.IGNORECASE,
)
#: What may stand between a name and the word that says how it was changed.
_LINK = lazy_pattern(
    r"[\s*:：—–(-]*(?:(?:is|was|were|has been|have been|now|wurden?|ist|habe ich|a été|est|fue|ha sido|está)\s|(?:文件|を|に|の|が|は|里|裡|中|已)\s?){0,2}",
    re.IGNORECASE,
)
_DENIES = lazy_pattern(
    r"\b(?:not|no|never|without|unchanged|should|would|could|read|reviewed|expected|nicht|keine?[nrsm]?|ohne|unverändert|sollten?|"
    r"pas|sans|aucune?|devrait|lu|sin|debería|leído)\b|n't\b|不|没|沒|未|无|應該|应该|建议|如果|ない|ません|べき"
    r"|\b(?:(?:defined|described|documented|specified|stated) in|based on|according to|per|see|from|following|against)(?: \w+){0,3} $",
    re.IGNORECASE,
)
#: Words before a name that is only referred to.
_REFERS = lazy_pattern(
    r"(?:\b(?:in|with|from|against|via|see|of|by|at|under|than|for|using|run|open|read|find|cat|pytest|siehe|mit|aus|von|voir|dans|avec|de|en|con|desde|ver)"
    r"|参见|查看|运行|使用)(?: (?:the|your|our|der|die|das|le|la|el))? ?[\"'*(]{0,3}$",
    re.IGNORECASE,
)
_UNCHANGED = lazy_pattern(
    r"\s?(?:(?:is|was|were|stays?|remains?|left|bleibt|wurde|ist|reste|est) )?(?:not|unchanged|untouched|nicht|unverändert|inchangée?|sin cambios|は変更し|没有|未)",
    re.IGNORECASE,
)
_IN_CODE = lazy_pattern(r"`([\w@.+~/\\:-]{3,300}|[A-Za-z]:[\\/][^`\n]{3,300}\.\w{1,8})`")
_LISTED = lazy_pattern(
    r"^[ \t]*(?:[-*•]|#{1,6}|(?:#{1,6} )?\d{1,3}\.) {1,4}[✅✓ ]{0,3}\**`([\w@.+-]{3,100})`", re.MULTILINE
)
_LONGEST_LINE = 600
_NEAR, _AFTER = 120, 30


def stated_changes(report: str) -> list[Touch]:
    """Return the files that the report of a subagent states as changed."""
    found: dict[str, None] = {}
    for line in report[:MAX_CHARS].splitlines():
        if "`" in line and len(line) <= _LONGEST_LINE:
            found.update(dict.fromkeys(one[1] for one in _IN_CODE.finditer(line) if _is_stated(line, one)))
    return [("edited", path) for path in found]


#: The heading of a list of files, and one that speaks of what is still to do.
_HEADING = lazy_pattern(r"[ \t]*(?:#{1,6} .{1,200}|\*\*.{1,200}\*\*:?|.{1,200}[:：](?:\*\*)?)[ \t]*")
_FILE_WORD = lazy_pattern(
    r"\bfiles?\b|文件|ファイル|\bfichiers?\b|\b(?:archiv|ficher|arquiv)os?\b|\bDatei(?:en)?\b|файл|파일", re.IGNORECASE
)
_PLANNED = lazy_pattern(
    r"\b(?:to (?:be )?\w+|will|should|needs?|plan\w*|would|could|must|next|not|if|zu \w+|soll\w*|à \w+er|por \w+|a \w+[aei]r|нужно|надо|будут)\b|需要|将|計画|计划|建议|待|予定|预期|すべき|해야|필요",
    re.IGNORECASE,
)
_LIST_FILE = lazy_pattern(
    r"[ \t]*(?:[-*•+]|\d{1,3}[.)]|\|)[ \t]{1,4}(?:[^\w\s`*\[./~|]{1,3}[ \t]{1,2})?(?:\*\*|__)?(?:\[)?(?:`([^`\n]{2,300})`|([\w@.+~/\\-]{2,300}\.\w{1,8})(?![\w/]))"
)


def listed_changes(report: str) -> list[Touch]:
    """Return the files below a heading such as `Files changed:`, each at the beginning of an item or of a row."""
    found: dict[str, str] = {}
    action = ""
    for line in report[:MAX_CHARS].splitlines():
        if item := _LIST_FILE.match(line):
            if action and _WHOLE.fullmatch(path := item[1] or item[2]):
                found[path] = "created" if _NEW.match(line, item.end()) else action
        elif _HEADING.fullmatch(line):
            is_list = _FILE_WORD.search(line) and _CHANGES.search(line)
            is_done = is_list and not (_PLANNED.search(line) or _DENIES.search(line))
            action = "" if not is_done else "created" if _ONLY_NEW.fullmatch(line) else "edited"
        elif line.strip() and not line.startswith((" ", "\t", "|", "-", "*")):
            action = ""
    return [(action, path) for path, action in found.items() if not (is_generated(path) or LOG_NAME.search(path))]


#: A heading that speaks of new files alone, and the word behind the name of one.
_MADE = r"(?:new|created|added|neue?|erstellte?|créés?|nouveaux|nuevos|creados|新增|新建|创建|創建|新規|作成|новые|созданы?|criados|novos)"
_ONLY_NEW = lazy_pattern(
    rf"(?:(?!updat|modif|edit|chang|geändert|修改|更新|変更|измен)[^\n]){{0,200}}{_MADE}(?:(?!updat|modif|edit|chang|geändert|修改|更新|変更|измен)[^\n]){{0,200}}",
    re.IGNORECASE,
)
_NEW = lazy_pattern(rf"[`*_\s:：—–(\[-]{{1,8}}{_MADE}(?!\w)", re.IGNORECASE)
_GONE = (
    r"(?:\b(?:deleted|removed|gelöscht|entfernt|supprimée?s?|eliminad[oa]s?|borrad[oa]s?|excluíd[oa]s?|removid[oa]s?)\b"
    r"|удал[её]н\w{0,2}|删除|刪除|移除|削除|삭제)"
)
_GONE_BEFORE = lazy_pattern(rf"{_GONE}[^`\n.;,，。；、]{{0,20}}$", re.IGNORECASE)
_GONE_AFTER = lazy_pattern(rf"{_GONE}(?:しました|되었습니다|了)?[ \t]*(?:[*_.,;:)（(。，|✅]|$)", re.IGNORECASE)


def stated_deletions(report: str, most: int) -> list[str]:
    """Return the files that a report says were deleted, at most as many as calls deleted without naming one."""
    found: dict[str, None] = {}
    for line in report[:MAX_CHARS].splitlines() if most else ():
        for one in _CODE_SPAN.finditer(line):
            if _WHOLE.fullmatch(one[1].strip()) and _says_deleted(line, one):
                found[one[1].strip()] = None
    return list(found)[:most]


def _says_deleted(line: str, name: re.Match[str]) -> bool:
    """Whether a line says that a file was deleted: right before its name, or right after it as the last word on it."""
    before = line[max(0, name.start() - _NEAR) : name.start()]
    link = _LINK.match(line, name.end())
    is_said = _GONE_BEFORE.search(before) or _GONE_AFTER.match(line, link.end() if link else name.end())
    return is_said is not None and not (_DENIES.search(before) or _REFERS.search(before))


def named_files(report: str) -> list[str]:
    """Return the files that a report names as code: at the beginning of an item, as changed, or with a folder where nothing denies it."""
    found: dict[str, None] = dict.fromkeys(_LISTED.findall(report[:MAX_CHARS]))
    for line in report[:MAX_CHARS].splitlines():
        if "`" in line and len(line) <= _LONGEST_LINE:
            named = [one for one in _IN_CODE.finditer(line) if "://" not in one[1]]
            found.update({one[1]: None for one in named if _says_changed(line, one) or _names_plainly(line, one)})
    listed = (path for path in found if not any(one.endswith(f"/{path}") for one in found))
    return [
        path
        for path in listed
        if has_ending(path) and not (is_generated(path) or LOG_NAME.search(path) or "..." in path)
    ]


def _names_plainly(line: str, name: re.Match[str]) -> bool:
    """Whether a line names a file in a folder and does not only refer to it."""
    before = line[max(0, name.start() - _NEAR) : name.start()]
    is_kept = _DENIES.search(before) or _REFERS.search(before) or _UNCHANGED.match(line, name.end())
    return "/" in name[1] and not is_kept


def _is_stated(line: str, name: re.Match[str]) -> bool:
    """Whether a line says that a file was changed: with a verb before its name, or right after it."""
    path = name[1].replace("\\", "/")
    if "/" not in path or "://" in path or not has_ending(path) or is_generated(path):
        return False
    return _says_changed(line, name)


def _says_changed(line: str, name: re.Match[str]) -> bool:
    before, after = line[max(0, name.start() - _NEAR) : name.start()], line[name.end() : name.end() + _AFTER]
    link = _LINK.match(after)
    is_said = _CHANGES.search(before) or _CHANGES.match(after, link.end() if link else 0)
    return is_said is not None and not _DENIES.search(before)
