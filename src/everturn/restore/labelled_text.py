"""Read labelled text as models write it: `Key outcomes: …`, headings, bold, tables, JSON.

`read_labels` returns the lines of each label, `list_entries` the entries of a list. Models leave out the header, bold the
labels, put colons into values, use dashes, dots, numbers or commas for lists, fence everything or answer in JSON. All of
this is read, and nothing raises. A missing label is missing from the result; "none" is an empty list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

#: Labels by key. The first is the requested one; the others count too, short ones only if there is no better match.
Labels = Mapping[str, tuple[str, ...]]

_LONGEST = 400_000  # characters of an answer that are read
_MOST_ITEMS = 200


def read_labels(text: str, labels: Labels) -> dict[str, list[str]]:
    """Return the lines of each label, by key. A label without text has an empty list."""
    text = text[:_LONGEST]
    found = _read_json(text, labels)
    if found:
        return found
    text = re.sub(r"^\s*(?:`{3,}|~{3,})[\w-]*\s*$", "", text, flags=re.MULTILINE)  # fences
    found = _read_lines(text.splitlines(), labels)
    if len(found) < 3:  # small models forget to break lines
        broken = _read_lines(_break_at_labels(text, labels).splitlines(), labels)
        found = broken if len(broken) > len(found) else found
    return found


def join_lines(lines: Iterable[str]) -> str:
    """Join the lines; "" if they say that there is nothing."""
    text = " ".join(_strip_bullet(line) for line in lines if line.strip()).strip()
    return "" if is_nothing(text) else text


def list_entries(lines: Iterable[str], commas: bool = True) -> tuple[str, ...]:
    """Return the entries of a list in any of the usual notations; empty if they say that there is nothing."""
    given = [line for line in lines if line.strip()]
    if len(given) == 1 and len(numbered := _NUMBERED.split(given[0])) > 2:
        entries = numbered
    elif any(_BULLET.match(line) for line in given):
        entries = _split_bullets(given)
    elif len(given) == 1:
        entries = _split_inline(given[0].strip(), commas)
    else:
        entries = []  # a line each, joined where a sentence clearly continues
        for line in map(str.strip, given):
            goes_on = re.match(r"[a-zà-ÿ]+(?:\s|$)", line) and not (
                entries and entries[-1].endswith((".", ";", "!", "?", "。"))
            )
            if entries and goes_on:
                entries[-1] += f" {line}"
            else:
                entries.append(line)
    cleaned = (" ".join(entry.split()).rstrip(";；") for entry in entries)
    return tuple(dict.fromkeys(entry for entry in cleaned if entry and not is_nothing(entry)))[:_MOST_ITEMS]


def is_nothing(text: str) -> bool:
    """Whether the text says that there is nothing to say."""
    return bool(_NOTHING.fullmatch(text.strip(" \t.*_`'\"“”()[]<>-–—。:：")))


# --- lines ---
_BULLET = re.compile(
    r"\s*(?:[-*+–—―](?=\s)|[•‣⁃◦●○■□▪▫▸►➤→·・✓✔✗☐☑※◆◇∙⦁]|[(（]?[0-9０-９]{1,3}(?:[.)）](?=[\s\W])|[、．])|[(（]?[a-zA-Z][)）](?=\s)"
    r"|[ivx]{1,5}[.)](?=\s)|[①-⑳]|[一二三四五六七八九十]{1,3}、)\s*(?:\[[ xX✓]?\]\s+)?"
)
_LABEL = re.compile(
    r"[\s>]*(?P<mark>(?:[-*•+]|\d{1,2}[.)])\s+)?(?P<head>#{1,6}\s*)?(?:\d{1,2}[.)]\s*)?(?P<bold>\*\*|__|`)?\s*"
    r"(?P<label>[^:：*_`#|]{2,70}?)\s*(?:\*\*|__|`)?\s*(?:(?P<colon>[:：]|\s[-–—](?=\s))|$)\s*(?:\*\*|__|`(?=\s|$))?\s*(?P<rest>.*)$"
)
_NOTHING = re.compile(
    r"|(?:there (?:is|are|were) )?(?:none|nothing|no|nil|null|n/?a|not applicable|not (?:explicitly )?(?:stated|specified|mentioned)|unknown|empty)"
    r"(?: (?:at this time|so far|yet|explicitly stated|stated|identified|mentioned|added|new|modified|changed|remaining|here|in this turn|for this turn|this turn))*"
    r"|no (?:new |open |further |explicit |additional )*(?:constraints?|assumptions?|questions?|artifacts?|files?|changes?|decisions?|state changes|outcomes?|issues?|next steps)"
    r"(?:(?: or |/| and )\w+)*(?: (?:were|was|added|modified|stated|so far|remain|remaining|in this turn|at this time|identified|changed|touched))*"
    r"|keine?[rs]?|nichts|aucune?|rien|ninguno|ninguna|nada|nessuno|nenhum|нет|ничего|なし|無し|无|無|没有|없음",
    re.IGNORECASE,
)


def _read_lines(lines: list[str], labels: Labels) -> dict[str, list[str]]:
    hits = [_match_label(line, labels) for line in lines]
    sure = {hit[0] for hit in hits if hit and hit[1]}
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line, hit in zip(lines, hits, strict=True):
        if hit and (hit[1] or hit[0] not in sure):
            if hit[1] and hit[0] in found and hit[0] == next(iter(labels)):
                found = {}  # the form was repeated before it was filled in; the last one counts
            current = found.setdefault(hit[0], [])
            if hit[2].strip():
                current.append(hit[2])
        elif current is not None and not _is_frame(line):
            current.append(line)
    return found


def _match_label(line: str, labels: Labels) -> tuple[str, bool, str] | None:
    """Return (key, whether the label is certain, the text after it)."""
    match = _LABEL.match(_unpack_row(line))
    if match is None:
        return None
    label = _normalise_label(match["label"])
    is_bare = match["colon"] is None
    if is_bare and match["mark"] and not match["head"]:
        return None
    for key, names in labels.items():
        if label in names:
            is_sure = label == names[0] or bool(match["head"] or match["bold"]) or len(label.split()) > 2
            return key, is_sure, match["rest"]
    return None


def _normalise_label(label: str) -> str:
    label = re.sub(r"\s*\([^()]*\)\s*$", "", label.lower())
    label = re.sub(r"\s*(?:/|&|\+)\s*", " and ", label.replace("_", " "))
    return " ".join(re.sub(r"^[\d.)\s]+", "", label).replace("-", " ").split())


def _unpack_row(line: str) -> str:
    """Return a row of a table as a label with its value."""
    if not line.lstrip().startswith("|"):
        return line
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    return f"{cells[0]}: {' | '.join(cells[1:])}" if len(cells) > 1 else line


def _is_frame(line: str) -> bool:
    """Whether a line is a rule, a fence or the header of the form."""
    return bool(re.fullmatch(r"\s*(?:[-=*_]{3,}|[|\s:-]+|`{3,}\w*|~{3,}\w*)\s*", line)) or bool(
        re.fullmatch(r"[\s#*_=]*(?:end of )?(?:turn|session) summary[\s#*_=:：]*", line, re.IGNORECASE)
    )


def _break_at_labels(text: str, labels: Labels) -> str:
    names = sorted((name for group in labels.values() for name in group[:1]), key=len, reverse=True)
    patterns = (re.escape(name).replace(r"\ and\ ", r"(?:\s*[/&]\s*|\s+and\s+)") for name in names)
    choice = "|".join(pattern.replace(r"\ ", r"[\s_-]+") for pattern in patterns)
    return re.sub(rf"(?<=\S)\s+(?=(?:\*\*|__)?(?:{choice})(?:\*\*|__)?\s*[:：])", "\n", text, flags=re.IGNORECASE)


# --- lists ---
def _strip_bullet(line: str) -> str:
    return _BULLET.sub("", line, count=1).strip() if _BULLET.match(line) else line.strip()


def _split_bullets(lines: list[str]) -> list[str]:
    """Return an entry for each bullet. Other lines continue the entry before them."""
    entries: list[str] = []
    for line in lines:
        if _BULLET.match(line) or not entries:
            entries.append(_strip_bullet(line))
        else:
            entries[-1] += f" {line.strip()}"
    first = lines[0]
    return entries[1:] if not _BULLET.match(first) and first.rstrip().endswith((":", "：")) else entries


def _split_inline(line: str, commas: bool) -> list[str]:
    line = line[1:-1] if line.startswith("[") and line.endswith("]") and "[" not in line[1:] else line
    for separator in (r"\s*[;；]\s+", r"\s+[•·‣|]\s+", r"、"):
        parts = [part for part in re.split(separator, line) if part.strip()]
        if len(parts) > 1:
            return [_strip_bullet(part) for part in parts]
    return _split_commas(line) if commas else [line]


def _split_commas(line: str) -> list[str]:
    """Split at commas between short items, not between clauses or within quotes and brackets."""
    if re.search(r"[\"“”«»「（(\[]", line):
        return [line]
    parts = [part.strip() for part in re.split(r"\s*[,，]\s+(?:and |und |et |y )?|，", line.rstrip("."))]
    is_list = len(parts) > 1 and all(part and len(part.split()) <= 4 and not _CLAUSE.match(part) for part in parts)
    return parts if is_list else [line]


_NUMBERED = re.compile(r"(?:^|\s)[(]?\d{1,2}[.)]\s+")
_CLAUSE = re.compile(
    r"(?:not|but|which|that|who|because|so|since|as|if|then|while|with|without|or|for|to|see|also|when|where|after|before)\b",
    re.IGNORECASE,
)


# --- JSON ---
def _read_json(text: str, labels: Labels) -> dict[str, list[str]]:
    """Return the last object in the text that has at least two labels as keys."""
    decoder = json.JSONDecoder(strict=False)
    best: dict[str, list[str]] = {}
    at = text.find("{")
    for _ in range(20):
        if at < 0:
            break
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            found = _read_object(value, labels)
            best = found if len(found) >= 2 else best
        at = text.find("{", end)
    return best


def _read_object(value: Any, labels: Labels, depth: int = 0) -> dict[str, list[str]]:
    if not isinstance(value, dict) or depth > 3:
        return {}
    found = {}
    for name, content in value.items():
        key = next((key for key, names in labels.items() if _normalise_label(name) in names or name == key), None)
        if key is not None:
            found[key] = list(_value_lines(content))
    if len(found) >= 2:
        return found
    inner = (_read_object(content, labels, depth + 1) for content in value.values())
    return next((one for one in inner if one), found)


def _value_lines(content: Any) -> Iterable[str]:
    if content is None or content == "":
        return
    if isinstance(content, str):
        yield from content.splitlines()
    elif isinstance(content, list):
        for one in content:
            if entry := _entry_text(one):
                yield f"- {entry}"
    elif entry := _entry_text(content):
        yield entry


def _entry_text(value: Any) -> str:
    """Return one entry as text: of an object its text, quotation and citation."""
    if not isinstance(value, dict):
        return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""
    fields = {
        _normalise_label(str(name)): one
        for name, one in value.items()
        if isinstance(one, str | int) and not isinstance(one, bool)
    }
    text = " — ".join(str(fields[name]) for name in _TEXT_KEYS if name in fields) or " ".join(
        str(one) for one in fields.values()
    )
    quote = next((f' "{fields[name]}"' for name in ("quote", "quotation") if fields.get(name)), "")
    numbers = "".join(
        f"{sign}{_find_digits(fields[name])} " for name, sign in _CITATION_KEYS if _find_digits(fields.get(name))
    )
    cited = next((f" {fields[name]}" for name in ("citation", "evidence", "source") if fields.get(name)), "")
    return " ".join(f"{text}{quote}{cited} {f'[{numbers.strip()}]' if numbers else ''}".split())


def _find_digits(value: Any) -> str:
    found = re.search(r"\d{1,9}", str(value)) if value is not None else None
    return found[0] if found else ""


_TEXT_KEYS = tuple("path file name text statement item decision question step description action status".split())
_CITATION_KEYS = (("turn", "t"), ("message", "#"))
