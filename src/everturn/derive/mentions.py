"""Names of files that stand in a text: in a prompt, an answer, a listing, the hits of a search.

A name counts by its ending, since words with a dot are many: versions, hosts, members of an object. Addresses, mails and
what package managers keep for themselves do not count. Looks at both ends of a long text. Never raises.
"""

from __future__ import annotations

import re
from collections import Counter

_MENTIONS_LOOKED_AT = 12_000
_MOST = 120  # of one text: a longer listing says little about any one

_ENDINGS = (
    "py|pyi|ipynb|ts|tsx|js|jsx|mjs|cjs|vue|svelte|go|rs|c|h|cc|cpp|hpp|cs|java|kt|kts|swift|rb|php|ex|exs|lua|scala|zig|nu|"
    "md|mdx|mdc|rst|txt|adoc|json|jsonc|json5|jsonl|toml|yaml|yml|xml|ini|cfg|conf|csv|sql|proto|graphql|prisma|tf|"
    "sh|bash|zsh|fish|ps1|bat|css|scss|less|html|htm|svg|lock|sum|mod|gradle|cmake|docx|pdf"
)
#: The end of a name; what stands before it is looked for backwards, which is far cheaper than trying every word.
_END = re.compile(
    rf"\.(?:{_ENDINGS})(?![\w@/\\*-]|\.\w|\((?!\d))|\b(?:Dockerfile|Makefile|Gemfile|Procfile)\b(?![/.(])"
    r"|(?<![\w.])\.(?:gitignore|dockerignore)\b(?![/.(])"
)
_NAME_BEFORE = re.compile(r"(?:[A-Za-z]:(?=[/\\]))?[\w@.+~/\\-]*$")
_LONGEST = 200
#: Endings that are members of an object just as often: they count behind a folder only.
_DOUBTFUL = frozenset((".c", ".h", ".sum", ".mod", ".ex", ".cs", ".conf", ".less", ".fish", ".nu", ".lock", ".tf"))
_SURE = frozenset(("go.mod", "go.sum", "uv.lock", "poetry.lock", "Cargo.lock", "yarn.lock"))
_FOREIGN = re.compile(r"(?:^|[/\\])(?:node_modules|\.git|site-packages|__pycache__|\.venv|dist|vendor)[/\\]")


def find_mentions(text: str) -> Counter[str]:
    """The names of files in a text, by how often each stands there."""
    shown = (
        text if len(text) <= 2 * _MENTIONS_LOOKED_AT else f"{text[:_MENTIONS_LOOKED_AT]}\n{text[-_MENTIONS_LOOKED_AT:]}"
    )
    found: Counter[str] = Counter()
    for end in _END.finditer(shown):
        name = _mentioned_name(shown, end)
        if name:
            found[name] += 1
    return Counter(dict(found.most_common(_MOST)))


def _mentioned_name(text: str, end: re.Match[str]) -> str:
    first = max(0, end.start() - _LONGEST)
    before = _NAME_BEFORE.search(text, first, end.start())
    start = before.start() if before is not None else end.start()
    name = text[start : end.end()]
    if (start and text[start - 1] in "@:$%") or "@" in name.partition("/")[0] or "//" in name:
        return ""  # a mail, an address, a variable
    if start == end.start() and name.startswith(".") and not name.endswith("ignore"):
        return ""  # an ending alone
    if end[0] in _DOUBTFUL and "/" not in name and "\\" not in name and name not in _SURE:
        return ""
    return "" if _FOREIGN.search(name) else name
