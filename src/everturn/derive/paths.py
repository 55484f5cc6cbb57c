"""One name for each file of a session.

Clients and shells write the path of one file in many ways: with either separator, as `D:\\shop`, `/d/shop` or `/mnt/d/shop`,
as a `file://` address, absolute or relative to the workspace, inside a worktree of the same repository. `local_path` returns
the path relative to the workspace with forward slashes, or an absolute path for a file outside it. `matches_any` tells
whether patterns of a shell cover a path. Nothing is read from disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from posixpath import commonpath, normpath
from urllib.parse import unquote

from everturn.text.lazy_pattern import lazy_pattern

_DRIVE = lazy_pattern(r"([A-Za-z]):[\\/]")
_MOUNTED_DRIVE = lazy_pattern(r"/(?:mnt/|cygdrive/)?([A-Za-z])/")
_HOME = lazy_pattern(r"(?:[A-Za-z]:)?/(?:home|Users)/[^/]+(?=/)|/root(?=/)")
_INNER_WORKTREE = lazy_pattern(r"\.(?:[\w-]+/)?worktrees/[^/]+/(?=.)")
_SCRATCH = lazy_pattern(
    r"(?:/private)?(?:/tmp|/var/tmp|/var/folders)/|[A-Za-z]:/(?:Windows/)?Te?mp/|.{0,200}/AppData/Local/Temp/",
    re.IGNORECASE,
)


ENDINGS = (
    "py|pyi|ipynb|ts|tsx|js|jsx|mjs|cjs|vue|svelte|go|rs|c|h|cc|cpp|hpp|cs|java|kt|kts|swift|rb|php|ex|exs|lua|scala|zig|nu|"
    "md|mdx|mdc|rst|txt|adoc|json|jsonc|json5|jsonl|toml|yaml|yml|xml|ini|cfg|conf|csv|sql|proto|graphql|prisma|tf|"
    "sh|bash|zsh|fish|ps1|bat|css|scss|less|html|htm|svg|lock|sum|mod|gradle|cmake|docx|pdf|astro|dart|csproj|sln|xaml|razor|cshtml"
)
#: Endings of files as well, but too often of other words to count where a text only mentions them.
_MORE_ENDINGS = (
    "log|png|jpg|jpeg|gif|webp|ico|db|sqlite|parquet|pkl|npy|npz|tsv|xlsx|pptx|zip|gz|tgz|whl|patch|diff|erb|pl|env|properties|props|targets|fsproj|vbproj|vb|fs|"
    "hs|ml|clj|erl|jl|plist|pbxproj|storyboard|gd|tscn|glsl|wgsl|cu|hbs|ejs|pug|twig|jinja|j2|bicep|tfvars|service|psm1|cmd|mm|example|wav|mp3|mp4"
)
_FILE_ENDINGS = frozenset(f"{ENDINGS}|{_MORE_ENDINGS}".split("|"))
#: Files that programs write as results, many at once.
_RESULT_ENDINGS = frozenset("png jpg jpeg gif webp svg pdf csv tsv json jsonl npy npz pkl parquet wav mp3 mp4".split())
#: Files that have no ending by custom.
PLAIN_NAMES = frozenset(
    "Dockerfile Containerfile Makefile Justfile justfile Gemfile Rakefile Procfile Vagrantfile Jenkinsfile Caddyfile Brewfile Podfile Fastfile VERSION "
    "LICENSE NOTICE AUTHORS CODEOWNERS CHANGELOG README".split()
)


def local_path(path: str, workspace: str) -> str:
    """Return the one name of a file: relative to the workspace if it is inside, else absolute."""
    home = _root(workspace)
    on_windows = home[1:2] == ":"
    plain = plain_path(path, on_windows)
    if plain.startswith("~/") and (user := _HOME.match(f"{home}/")):
        plain = f"{user[0]}{plain[1:]}"
    inner = _inside(plain, home, on_windows)
    if inner is None:
        return plain if is_absolute(plain) or plain.startswith("~") else _without_worktree(plain)
    return _without_worktree(inner)


def plain_path(path: str, on_windows: bool = False) -> str:
    """Return a path with forward slashes, one form of a drive, and without `.` and `..` where that is possible."""
    if path.startswith("file://"):
        path = unquote(path[7:].removeprefix("localhost"))
        path = path[1:] if _DRIVE.match(path, 1) else path
    if "\\" in path and (on_windows or _DRIVE.match(path) or "/" not in path):
        path = path.replace("\\", "/")
    if on_windows and (mounted := _MOUNTED_DRIVE.match(path)):
        path = f"{mounted[1]}:/{path[mounted.end() :]}"
    if _DRIVE.match(path):
        path = path[0].upper() + path[1:]
    if "//" in path or "./" in path or path.endswith("/."):
        path = normpath(path) + ("/" if path.endswith("/") else "")
    return path


_FILE_LINK = lazy_pattern(
    r"\[[^\[\]\n]{1,300}\]\((?:cci:\d{1,3}://)?(file://[^\s()#]{1,1000}?)(?::\d+:\d+-\d+:\d+)?(?:#[^\s()]{0,40})?\)"
)


def name_links(text: str) -> str:
    """Return a text whose links to files are names in code."""
    return _FILE_LINK.sub(lambda link: f"`{plain_path(link[1])}`", text) if "file://" in text else text


PRODUCTS = frozenset(
    f"{one}.js" for one in "Node Next Vue Vite Express React Three Nuxt Nest D3 Chart Alpine p5".split()
)


def has_ending(path: str) -> bool:
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    stem, dot, ending = name.rpartition(".")
    return bool(stem and dot) and ending.lower() in _FILE_ENDINGS and path not in PRODUCTS


_LONGEST_PATH = 4096
_NO_FILES = frozenset(("", "-", ".", "..", "NUL", "nul"))


def resolve_path(folder: str | None, path: str) -> str:
    """Return a path relative to where the command started; empty if it is not a path."""
    if path in _NO_FILES or len(path) > _LONGEST_PATH or path.startswith(("/dev/", "/proc/")):
        return ""
    if any(part in path for part in ("\n", "://", "${")):
        return ""
    if path[0] in "/~" or re.match(r"[A-Za-z]:[\\/]", path):
        return path
    if folder is None:
        return ""
    while path.startswith("../") and folder.rstrip("/").rpartition("/")[2] not in ("", ".", ".."):
        folder, path = folder.rstrip("/").rpartition("/")[0], path[3:]
    return f"{folder.rstrip('/')}/{path.removeprefix('./')}" if folder not in ("", ".") else path


MOST_NAMED = 5  # files of one folder that are named one by one
_MOST_TOPS = 12  # folders that stand for many


def fold_paths(paths: list[str]) -> list[str]:
    """Return a few files as they are; of many, the folder that holds all of them, or else what lies at the top."""
    files = [path for path in paths if path and not path.endswith("/")]
    if len(files) <= MOST_NAMED:
        return files
    common = commonpath(files) if len({path[:1] == "/" for path in files}) == 1 else ""
    return [common] if common else list(dict.fromkeys(path.split("/", 1)[0] for path in files))[:_MOST_TOPS]


def is_result(path: str) -> bool:
    """Whether a file is of a kind that programs write as their results."""
    return path.rpartition(".")[2].lower() in _RESULT_ENDINGS


def is_scratch(path: str) -> bool:
    """Whether a path is in a folder for temporary files."""
    return _SCRATCH.match(path.replace("\\", "/")) is not None


_GENERATED = lazy_pattern(
    r"(?:^|[/\\])(?:node_modules|__pycache__|\.venv|venv|dist|\.next|\.nuxt|\.turbo|\.git|\.pytest_cache|\.mypy_cache|\.ruff_cache|site-packages"
    r"|\.cache|\.npm|\.gradle|\.terraform|\.svelte-kit|\.parcel-cache|\.tox|\.[\w-]{1,40}[/\\]cache|[\w.-]{1,80}\.egg-info)(?:[/\\]|$)"
)
#: What agents write about themselves into a repository: sessions, logs and caches in a hidden folder.
_OF_CLIENTS = lazy_pattern(
    r"(?:^|/)(?:\.[\w-]{1,40}/(?:tmp|sessions|logs?|history|metadata|statistics\.json|shell[_-]snapshots|models_cache|state_|auth|version|todos|projects"
    r"|file-history|statsig|ide|debug|plugins|\.credentials)|\.\w{1,40}\.(?:chat|input|tags|llm)\.(?:history|cache))"
)
#: Files that package managers, compilers and systems write beside the sources.
_BY_TOOLS = lazy_pattern(
    r"(?:^|.*/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|bun\.lockb?|(?:yarn|uv|poetry|Pipfile|Cargo|Gemfile|composer|flake|deno|mix|pubspec|Podfile)"
    r"\.lock|go\.sum|Package\.resolved|next-env\.d\.ts|dependency-reduced-pom\.xml|\.DS_Store|\.coverage|\.eslintcache|[^/]+\.(?:tsbuildinfo|pyc|class|o))"
)


def is_in_build(path: str) -> bool:
    """Whether a path is in a folder that builds, caches and package managers fill."""
    return _GENERATED.search(path) is not None


def is_generated(path: str) -> bool:
    """Whether a file is written by a build, a package manager or the client itself."""
    return is_by_tools(path) or _OF_CLIENTS.search(path.replace("\\", "/")) is not None


def is_by_tools(path: str) -> bool:
    """Whether a file is written by a build or a package manager."""
    return is_in_build(path) or _BY_TOOLS.fullmatch(path.replace("\\", "/")) is not None


def same_case(path: str, workspace: str) -> str:
    """Return what two spellings of one file share: drives of Windows do not tell upper from lower case."""
    return path.lower() if _DRIVE.match(workspace) or _DRIVE.match(path) else path


@lru_cache(maxsize=64)
def _root(workspace: str) -> str:
    return plain_path(workspace, bool(_DRIVE.match(workspace))).rstrip("/")


def is_absolute(path: str) -> bool:
    return path.startswith("/") or path[1:2] == ":"


def _inside(path: str, home: str, on_windows: bool) -> str | None:
    """Return the rest of a path below the workspace, or below a worktree of it; None if it is elsewhere."""
    if not home or not is_absolute(path):
        return None
    one, two = (path.lower(), home.lower()) if on_windows else (path, home)
    if one.startswith(f"{two}/"):
        return path[len(home) + 1 :]
    name = home.rsplit("/", 1)[-1]
    if "/worktrees/" in one and name:
        for pattern in (
            rf"/\.[\w-]+/worktrees/[^/]+/{re.escape(name)}/",
            rf"/\.[\w-]+/worktrees/{re.escape(name)}/[^/]+/",
        ):
            if found := re.search(pattern, path):
                return path[found.end() :]
    own = re.search(r"/\.(?:[\w-]+/)?worktrees/[^/]+$", home)  # the session itself works in a worktree
    return path[own.start() + 1 :] if own and path.startswith(f"{home[: own.start()]}/") else None


def _without_worktree(path: str) -> str:
    return path[found.end() :] if "worktrees/" in path and (found := _INNER_WORKTREE.match(path)) else path


def matches_any(path: str, patterns: Iterable[str]) -> bool:
    """Whether one of some patterns of a shell covers a path; one without a folder covers its name in any folder."""
    name = path.rsplit("/", 1)[-1]
    return any(_glob(one).fullmatch(path if "/" in one else name) is not None for one in patterns)


@lru_cache(maxsize=4096)
def _glob(pattern: str) -> re.Pattern[str]:
    """Return a shell pattern as a regular expression: `*` within a folder, `**/` over any number of them."""
    parts = re.split(r"(\*\*/|\*+|\?)", pattern[:_LONGEST_GLOB])
    signs = {"**/": "(?:[^/]+/)*", "?": "[^/]"}
    rest = "".join(signs.get(one) or ("[^/]*" if one.startswith("*") else re.escape(one)) for one in parts)
    return re.compile(rest if pattern.startswith("/") else f"(?:.*/)?{rest}")


_LONGEST_GLOB = 300
