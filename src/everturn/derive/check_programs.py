"""Programs that check something, and how to know them in the words of a command.

`find_program` looks through wrappers (`npx`, `uv run`, `timeout 60`, `python -m`) to the program that does the work, and says
what it checks: by its name (`pytest`), its subcommand (`cargo clippy`), or the name of the script it runs (`npm run lint`,
`make test`, `./scripts/build.sh`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile
from posixpath import basename

from msgspec import Struct

from everturn.text.lazy_pattern import lazy_pattern


class CheckProgram(Struct, frozen=True):
    """A program that checks something, and its arguments."""

    kind: str
    family: str
    tool: str
    arguments: tuple[str, ...] = ()
    suite: str = ""  # of a script: what its name says besides the kind
    folder: str = ""  # given by -C, --prefix or --cwd


def find_program(words: list[str]) -> CheckProgram | None:
    """Return what a simple command checks; None for a command that checks nothing or may not fail."""
    words = _strip_wrappers(words)
    if not words:
        return None
    name = _program_name(words[0])
    rest, folder = _take_folder(name, words[1:])
    found = _find_known(name, rest) or _find_file(name, words[0], rest)
    if found is None or not folder:
        return found
    return CheckProgram(found.kind, found.family, found.tool, found.arguments, found.suite, folder)


def script_kind(name: str) -> str:
    """Return the kind of check that a script of this name runs, or ""."""
    return next((kind for kind, pattern in _SCRIPT_KINDS if pattern.search(name)), "")


def _find_known(name: str, rest: list[str]) -> CheckProgram | None:
    if name in _TOOLS:
        kind, family = _TOOLS[name]
        arguments = rest[1:] if rest and rest[0] in _TOOL_COMMANDS.get(name, ()) else rest
        return CheckProgram(kind, family, name, tuple(arguments), "e2e" if name in ("playwright", "cypress") else "")
    if (reader := _READERS.get(name)) is not None:
        return reader(name, rest)
    if name in _SUBCOMMANDS:
        return _find_subcommand(name, rest)
    return _find_script(name, rest) if name in _RUNNERS else None


# --- wrappers ---
_PLAIN_WRAPPERS = frozenset(
    ("sudo", "command", "time", "nohup", "exec", "npx", "uvx", "pnpx", "bunx", "corepack", "unbuffer", "stdbuf", "xvfb-run", "env", "nice",
     "cross-env", "rtk", "dotenv", "winpty", "caffeinate", "&")
)  # fmt: skip
_PAIR_WRAPPERS = frozenset(
    (("pnpm", "exec"), ("pnpm", "dlx"), ("yarn", "dlx"), ("yarn", "exec"), ("npm", "exec"), ("uv", "run"), ("poetry", "run"),
     ("pipenv", "run"), ("rye", "run"), ("bundle", "exec"), ("mise", "exec"), ("mise", "x"), ("bun", "x"), ("dotenvx", "run"),
     ("nix", "develop"), ("hatch", "run"), ("pdm", "run"), ("pixi", "run"), ("uv", "tool"),
     ("conda", "run"), ("mamba", "run"), ("micromamba", "run"))
)  # fmt: skip
_WRAPPER_VALUES = frozenset(
    (
        "-p",
        "--package",
        "--with",
        "--extra",
        "--group",
        "-n",
        "-u",
        "--python",
        "--project",
        "--directory",
        "-e",
        "--env-file",
        "-k",
        "-s",
    )
)
_ASSIGNMENT = lazy_pattern(r"\w+=", re.ASCII)
_PYTHON = lazy_pattern(r"(?:python|py|pypy)[\d.]*$")


def _strip_wrappers(words: list[str]) -> list[str]:
    for _ in range(6):
        stripped = _strip_wrapper(words) if words else words
        if stripped is words:
            break
        words = stripped
    return words


def _strip_wrapper(words: list[str]) -> list[str]:
    """Return the command that the first words wrap, or the same list."""
    name = _program_name(words[0])
    if _ASSIGNMENT.match(words[0]):
        return words[1:]
    if tuple(words[:2]) in _PAIR_WRAPPERS and len(words) > 2:
        return _skip_flags(words[2:])
    if name in _PLAIN_WRAPPERS and len(words) > 1:
        return _skip_flags(words[1:])
    if name in ("npm", "pnpm", "yarn") and words[1:2] and words[1].startswith("-") and "exec" in words[2:5]:
        return _skip_flags(words[words.index("exec") + 1 :])
    if name in ("timeout", "gtimeout") and len(words) > 2:
        return _skip_flags(words[1:])[1:]
    if _PYTHON.match(name) and "-m" in words[1:4]:
        return words[words.index("-m") + 1 :]
    if name == "docker" and "exec" in words[1:3]:
        return _skip_flags(words[words.index("exec") + 1 :])[1:]
    return words


def _skip_flags(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and (words[at].startswith("-") or _ASSIGNMENT.match(words[at])):
        at += 2 if words[at] in _WRAPPER_VALUES else 1
    return words[at:]


def _program_name(word: str) -> str:
    name = basename(word.replace("\\", "/"))
    name = name.rpartition("@")[0] or name if "@" in name[1:] else name
    return re.sub(r"\.(?:exe|cmd|bat|ps1)$", "", name, flags=re.IGNORECASE)


_FOLDER_FLAGS = ("-C", "--prefix", "--cwd", "--dir", "--project-dir", "--manifest-path", "--chdir", "-chdir")


def _take_folder(name: str, words: list[str]) -> tuple[list[str], str]:
    """Return the arguments without the folder they name, and that folder."""
    if name in _TOOLS or not any(word.startswith(_FOLDER_FLAGS) for word in words):
        return words, ""
    kept, folder, given = [], "", iter(words)
    for word in given:
        flag, equals, value = word.partition("=")
        if flag in _FOLDER_FLAGS and not folder:
            folder = value if equals else next(given, "")
        else:
            kept.append(word)
    return kept, folder.removesuffix("/Cargo.toml").removesuffix("Cargo.toml")


# --- scripts ---
_SCRIPT_KINDS = (
    ("types", lazy_pattern(r"type-?s?-?check|check[-:_]types?|\btypes\b|\btsc\b|mypy|pyright", re.IGNORECASE)),
    ("lint", lazy_pattern(r"lint|format|\bfmt\b|prettier|\bstyle\b|biome|clippy|pre-?commit", re.IGNORECASE)),
    ("test", lazy_pattern(r"(?<![a-z])(?:unit|integration)?_?tests?(?![a-z])|(?<![a-z])spec(?![a-z])|e2e|coverage|smoke", re.IGNORECASE)),
    ("build", lazy_pattern(r"(?<![a-z])(?:re)?build(?![a-z])|compile|bundle|(?<![a-z])dist(?![a-z])|^all$|^package$", re.IGNORECASE)),
    ("check", lazy_pattern(r"^(?:check|ci|verify|validate|qa|quality|checks)(?![a-z])", re.IGNORECASE)),
)  # fmt: skip
_SAME_SUITE = lazy_pattern(
    r"(?:^|[:_.-])(?:tests?|spec|lint|linter|format|fmt|build|compile|types?|typecheck|type|check|checks|tsc|run|ci|all|once|"
    r"cov|coverage|fix|write|prod|production|dev|full|quick|fast|watch|sh|py|js|mjs|ts|verify|style|eslint|biome|prettier|"
    r"noemit|strict|quiet|debug|release|rb|bat|ps1|code)(?=$|[:_.-])",
    re.IGNORECASE,
)
#: Suites that a run of all tests does not include.
SEPARATE_SUITES = frozenset(("e2e", "integration", "acceptance", "smoke", "browser", "system", "visual", "perf"))
_RUNNERS = {
    "npm": "js", "pnpm": "js", "yarn": "js", "bun": "js", "mise": "any", "just": "any", "task": "any", "make": "any",
    "gmake": "any", "nmake": "any", "rake": "ruby", "invoke": "py", "inv": "py", "poe": "py", "nx": "js", "turbo": "js",
    "lerna": "js", "composer": "php", "npm-run-all": "js", "run-s": "js", "run-p": "js", "moon": "any", "rush": "js",
    "deno": "js", "ant": "jvm", "rails": "ruby", "wireit": "js", "vp": "js",
}  # fmt: skip
_RUNNER_WORDS = frozenset(
    ("run", "run-script", "r", "task", "tasks", "workspaces", "foreach", "-r", "--if-present", "run-many")
)
_RUNNER_VALUES = frozenset(
    (
        "--filter",
        "-F",
        "-w",
        "--workspace",
        "-f",
        "--file",
        "-j",
        "--jobs",
        "--justfile",
        "-p",
        "--projects",
        "--scope",
        "--targets",
    )
)
_NEITHER = frozenset(
    ("install", "i", "add", "ci", "remove", "uninstall", "update", "upgrade", "view", "info", "list", "ls", "why", "outdated",
     "init", "create", "pack", "publish", "login", "whoami", "config", "cache", "link", "version", "exec", "dlx", "x", "audit",
     "use", "trust", "pkg", "set", "get", "doctor", "rebuild", "fund", "search", "ping", "prefix", "docs", "repo", "stop", "restart", "clean", "help", "--version", "-v", "dedupe", "store", "env", "root", "bin", "prune", "start", "dev")
)  # fmt: skip


def _find_script(name: str, rest: list[str]) -> CheckProgram | None:
    """Return what a script of the project checks: `npm run lint`, `make test`, `yarn workspace app build`."""
    part, words, named = "", list(rest), False
    while words:
        word, equals, value = words[0].partition("=")
        if word in _RUNNER_VALUES and not (word == "-w" and words[1:2] and words[1] in _RUNNER_WORDS):
            part = value if equals else words[1] if len(words) > 1 else ""
            words = words[1:] if equals else words[2:]
        elif word == "workspace" and len(words) > 2:
            part, words = words[1], words[2:]
        elif word in _RUNNER_WORDS or word.startswith("-") or "=" in words[0]:
            named = named or word in ("run", "run-script", "task")
            words = words[1:]
        else:
            break
    if not words:
        return CheckProgram("build", "any", "") if name in ("make", "gmake", "nmake") and not named else None
    script, arguments = words[0], tuple(word for word in words[1:] if word != "--")
    if not named and script in _NEITHER:
        return None
    return _make_script(name, script, (f"-p {part}", *arguments) if part else arguments)


def _make_script(name: str, script: str, arguments: tuple[str, ...]) -> CheckProgram | None:
    kind = script_kind(script)
    if not kind:  # any other script of the project fails by crashing; a file is known by its name
        is_script = _RUNNERS[name] == "js" and "/" not in script and "." not in script
        return CheckProgram("program", "any", f"{name} {script}") if is_script else None
    if arguments and arguments[0].startswith("-p "):
        arguments = ("-p", arguments[0][3:], *arguments[1:])
    suite = _SAME_SUITE.sub("", script).strip(":_.-").lower() if kind != "check" else ""
    tool = f"{name} {script}" if kind == "check" else "bun test" if (name, script) == ("bun", "test") else ""
    return CheckProgram(kind, _RUNNERS[name], "" if tool == "bun test" else tool, arguments, suite)


_INTERPRETERS = lazy_pattern(
    r"(?:node|tsx|ts-node|bun|deno|python[\d.]*|py|ruby|php|bash|sh|zsh|pwsh|powershell|perl|go)$"
)
_FAMILIES = {"node": "js", "tsx": "js", "ts-node": "js", "bun": "js", "deno": "js", "ruby": "ruby", "php": "php"}
_SOURCE_FILE = lazy_pattern(r"[\w./@~-]+\.(?:m?[jt]sx?|c[jt]s|py|rb|php|sh|bash|ps1|pl|exs?)$")


_TEMPORARY = lazy_pattern(r"(?:/private)?/(?:var/)?tmp/|%TEMP%|\$\{?TMP(?:DIR)?\b", re.IGNORECASE)


def _find_file(name: str, word: str, rest: list[str]) -> CheckProgram | None:
    """Return what a script file checks, by its name. Code given on the command line is nothing to come back to."""
    if _INTERPRETERS.match(name):
        words = _skip_flags([one for one in rest if one not in ("run", "--")]) if not _has_code(rest) else []
        if not words or not _SOURCE_FILE.match(words[0]):
            return None
        family = _FAMILIES.get(name, "py" if name.startswith("py") else "any")
        return _make_file(family, words[0], words[1:])
    if ("/" in word and not word.startswith("/usr")) or _SOURCE_FILE.match(word):
        return _make_file("any", word, rest)
    if name in NO_PROGRAMS or not re.fullmatch(r"[a-z][\w.-]+", name):
        return None
    if rest and rest[0] in _CHECKING:
        return CheckProgram(script_kind(rest[0]), "any", f"{name} {rest[0]}", tuple(rest[1:]))
    return CheckProgram("program", "any", name, _targets(rest))


#: Subcommands that say what they are for, whatever the program.
_CHECKING = frozenset(("test", "lint", "check", "build", "compile", "validate", "verify", "typecheck"))


def _make_file(family: str, path: str, rest: list[str]) -> CheckProgram | None:
    """Return what a script file checks. A program among temporary files was written to try something out, a test there may be real."""
    name = basename(path.replace("\\", "/"))
    kind = script_kind(name.partition(".")[0].replace("_", "-"))
    if kind and kind != "check":
        return CheckProgram(kind, family, name, _targets(rest))
    return None if _TEMPORARY.match(path) else CheckProgram("program", "any", name, _targets(rest))


def _targets(words: list[str]) -> tuple[str, ...]:
    """Return the words before the first option of a program of the project: what follows an option may be its value."""
    return tuple(takewhile(lambda word: not word.startswith("-"), words))


def _has_code(words: list[str]) -> bool:
    flags = takewhile(lambda word: word.startswith("-") or word == "eval", words)
    return any(word in ("-c", "-e", "-", "--eval", "-p", "-Command", "eval") for word in flags)


# --- programs with subcommands ---
def _find_subcommand(name: str, rest: list[str]) -> CheckProgram | None:
    family, kinds = _SUBCOMMANDS[name]
    words = [word for word in rest if not word.startswith("+")]
    at = next((at for at, word in enumerate(words) if not word.startswith("-")), None)
    if at is None or words[at] not in kinds:
        return _find_script(name, rest) if name in _RUNNERS else None
    kind, command = kinds[words[at]], words[at]
    return CheckProgram(kind, family, f"{name} {command}", (*words[:at], *words[at + 1 :]))


def _find_tasks(name: str, rest: list[str]) -> CheckProgram | None:
    """Gradle and Maven: the tasks are words, and the heaviest one decides."""
    words = [word.rpartition(":")[2] for word in rest if not word.startswith("-")]
    kinds = {
        kind
        for word in words
        if (kind := _JVM_TASKS.get(word) or script_kind(re.sub(r"([a-z])([A-Z])", r"\1-\2", word)))
    }
    kind = next((kind for kind in ("test", "check", "build", "lint") if kind in kinds), "")
    parts = tuple(word for word in rest if ":" in word and not word.startswith("-"))
    flags = tuple(
        word for at, word in enumerate(rest) if word.startswith("-") or (at and rest[at - 1] in SELECTORS["jvm"])
    )
    return (
        CheckProgram(kind if kind != "check" else "test", "jvm", name.removesuffix("w"), (*flags, *parts))
        if kind
        else None
    )


_JVM_TASKS = {"test": "test", "build": "build", "assemble": "build", "package": "build", "compile": "build", "install": "build",
              "verify": "test", "check": "test", "clean": "", "spotlessCheck": "lint", "detekt": "lint", "compileJava": "build",
              "compileKotlin": "build", "connectedAndroidTest": "test", "testDebugUnitTest": "test", "assembleDebug": "build",
              "test-compile": "build"}  # fmt: skip


def _find_git(_: str, rest: list[str]) -> CheckProgram | None:
    words = _skip_git_flags(rest)
    if not words or "--dry-run" in words or "--no-verify" in words:
        return None
    if words[0] == "commit":
        return CheckProgram("commit", "vcs", "git commit")
    if words[0] == "stash" and words[1:2] in (["pop"], ["apply"]):
        return CheckProgram("merge", "vcs", "git stash pop")
    if words[0] in ("merge", "rebase", "cherry-pick", "pull"):
        return CheckProgram("merge", "vcs", "git pull" if words[0] == "pull" else "git merge")
    if words[0] in ("switch", "checkout") and "--" not in words:
        return CheckProgram("merge", "vcs", "git switch")
    return CheckProgram("push", "vcs", "git push") if words[0] == "push" else None


def _skip_git_flags(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("-c", "-C") else 1
    return words[at:]


def _find_github(_: str, rest: list[str]) -> CheckProgram | None:
    words = [word for word in rest if not word.startswith("-")]
    if words[:2] in (["run", "view"], ["run", "watch"], ["run", "list"], ["pr", "checks"]):
        return CheckProgram("ci", "any", "gh run")
    return None


def _find_docker(name: str, rest: list[str]) -> CheckProgram | None:
    words = [word for word in rest if not word.startswith("-")]
    if words[:1] == ["build"] or words[:2] in (["buildx", "build"], ["compose", "build"], ["image", "build"]):
        return CheckProgram("build", "docker", "docker build")
    if words[:1] == ["compose"] and "--build" in rest:
        return CheckProgram("build", "docker", "docker build")
    return None


_DEPLOYS = {"vercel": ("", "deploy"), "netlify": ("deploy",), "fly": ("deploy",), "flyctl": ("deploy",), "firebase": ("deploy",), "railway": ("up",), "gcloud": ("run deploy", "app deploy", "functions deploy")}  # fmt: skip


def _find_deploy(name: str, rest: list[str]) -> CheckProgram | None:
    """A deployment builds on another machine: no check here says how it goes."""
    words = list(takewhile(lambda word: not word.startswith("-"), rest))
    is_deployed = " ".join(words[: 2 if name == "gcloud" else 1]) in _DEPLOYS[name] and "--version" not in rest
    return CheckProgram("build", "deploy", f"{name} deploy") if is_deployed else None


def _find_cmake(_: str, rest: list[str]) -> CheckProgram | None:
    return CheckProgram("build", "c", "cmake --build" if "--build" in rest else "cmake")


def _find_node(name: str, rest: list[str]) -> CheckProgram | None:
    if "--test" in rest:
        return CheckProgram("test", "js", "node --test", tuple(word for word in rest if word != "--test"))
    return None


_READERS: dict[str, Callable[[str, list[str]], CheckProgram | None]] = {
    "git": _find_git, "gh": _find_github, "docker": _find_docker, "podman": _find_docker, "docker-compose": _find_docker,
    "gradle": _find_tasks, "gradlew": _find_tasks, "mvn": _find_tasks, "mvnw": _find_tasks, "cmake": _find_cmake,
    "node": _find_node, **dict.fromkeys(_DEPLOYS, _find_deploy),
}  # fmt: skip
_BUILDERS = {"build": "build", "lint": "lint", "test": "test", "check": "types", "typecheck": "types"}
_SUBCOMMANDS: dict[str, tuple[str, dict[str, str]]] = {
    "go": ("go", {"test": "test", "build": "build", "install": "build", "vet": "lint", "generate": "build"}),
    "cargo": ("rust", {"test": "test", "nextest": "test", "t": "test", "build": "build", "b": "build", "check": "build",
                       "c": "build", "clippy": "lint", "fmt": "lint", "doc": "build"}),
    "dotnet": ("net", {"test": "test", "build": "build", "publish": "build", "format": "lint", "pack": "build"}),
    "swift": ("swift", {"test": "test", "build": "build"}),
    "flutter": ("dart", {"test": "test", "build": "build", "analyze": "lint", "drive": "test"}),
    "dart": ("dart", {"test": "test", "compile": "build", "analyze": "lint", "format": "lint"}),
    "terraform": ("infra", {"plan": "build", "apply": "build", "validate": "lint"}),
    "tofu": ("infra", {"plan": "build", "apply": "build", "validate": "lint"}),
    "pulumi": ("infra", {"preview": "build", "up": "build"}),
    "mix": ("elixir", {"test": "test", "compile": "build", "credo": "lint", "format": "lint", "dialyzer": "types"}),
    "zig": ("zig", {"build": "build", "test": "test"}),
    "bazel": ("any", {"test": "test", "build": "build"}),
    "stack": ("haskell", {"test": "test", "build": "build"}),
    "cabal": ("haskell", {"test": "test", "build": "build"}),
    "dune": ("ocaml", {"test": "test", "build": "build", "runtest": "test"}),
    "sbt": ("jvm", {"test": "test", "compile": "build"}),
    "next": ("js", _BUILDERS), "vite": ("js", _BUILDERS), "nuxt": ("js", _BUILDERS), "nuxi": ("js", _BUILDERS),
    "astro": ("js", _BUILDERS), "ng": ("js", _BUILDERS), "react-scripts": ("js", _BUILDERS), "wrangler": ("js", {"deploy": "build"}),
    "expo": ("js", {"export": "build", "lint": "lint"}), "vsce": ("js", {"package": "build"}), "tauri": ("any", {"build": "build"}),
    "deno": ("js", {"test": "test", "lint": "lint", "check": "types", "fmt": "lint"}),
    "hardhat": ("js", {"compile": "build", "test": "test"}), "truffle": ("js", {"compile": "build", "test": "test"}), "forge": ("any", {"build": "build", "test": "test"}), "anchor": ("rust", {"build": "build", "test": "test"}),
    "hugo": ("any", {"build": "build"}), "mkdocs": ("any", {"build": "build"}), "jekyll": ("any", {"build": "build"}),
    "pre-commit": ("any", {"run": "lint"}), "lefthook": ("any", {"run": "lint"}), "hatch": ("py", {"test": "test", "build": "build"}),
    "poetry": ("py", {"build": "build", "check": "lint"}), "uv": ("py", {"build": "build"}), "goreleaser": ("go", {"build": "build", "check": "lint", "release": "build"}),
}  # fmt: skip
_TOOLS = {
    **dict.fromkeys(("pytest", "py.test", "unittest", "tox", "nox", "nosetests", "behave"), ("test", "py")),
    **dict.fromkeys(("jest", "vitest", "mocha", "ava", "tap", "karma", "jasmine", "playwright", "cypress", "vscode-test", "wtr", "c8", "nyc"), ("test", "js")),
    **dict.fromkeys(("rspec", "minitest"), ("test", "ruby")),
    **dict.fromkeys(("phpunit", "pest", "paratest"), ("test", "php")),
    "ctest": ("test", "c"), "bats": ("test", "any"), "gotestsum": ("test", "go"), "lein": ("test", "jvm"),
    **dict.fromkeys(("tsc", "vue-tsc", "tsgo", "svelte-check"), ("types", "js")),
    **dict.fromkeys(("mypy", "pyright", "basedpyright", "ty", "pyre"), ("types", "py")),
    **dict.fromkeys(("phpstan", "psalm"), ("types", "php")),
    **dict.fromkeys(("eslint", "biome", "oxlint", "prettier", "stylelint", "markdownlint", "markdownlint-cli2", "markdownlint-cli",
                     "standard", "xo", "knip", "cspell", "ultracite", "lint-staged", "commitlint"), ("lint", "js")),
    **dict.fromkeys(("ruff", "flake8", "pylint", "black", "isort", "bandit"), ("lint", "py")),
    **dict.fromkeys(("golangci-lint", "staticcheck", "gofumpt", "govulncheck"), ("lint", "go")),
    "rubocop": ("lint", "ruby"), "phpcs": ("lint", "php"),
    **dict.fromkeys(("shellcheck", "yamllint", "hadolint", "actionlint", "tflint", "vale", "ktlint", "swiftlint", "detekt",
                     "clang-tidy", "clang-format", "cppcheck", "tsqllint"), ("lint", "any")),
    **dict.fromkeys(("webpack", "rollup", "esbuild", "tsup", "parcel", "electron-builder", "tsdown"), ("build", "js")),
    **dict.fromkeys(("ninja", "gcc", "g++", "clang", "clang++"), ("build", "c")),
    "meson": ("build", "c"), "rustc": ("build", "rust"), "javac": ("build", "jvm"), "xcodebuild": ("build", "swift"),
    "swiftc": ("build", "swift"), "msbuild": ("build", "net"), "sphinx-build": ("build", "any"),
}  # fmt: skip
_TOOL_COMMANDS = {
    "vitest": ("run", "watch"), "playwright": ("test",), "cypress": ("run",), "ruff": ("check", "format"), "biome": ("check", "lint", "ci", "format"),
    "golangci-lint": ("run",), "jest": (), "meson": ("compile", "test"), "unittest": ("discover",), "phpstan": ("analyse", "analyze"),
    "ultracite": ("lint", "check", "fix", "format"),
}  # fmt: skip

#: Flags whose next word is a value and no target.
FLAGS_WITH_VALUE = frozenset(
    ("-c", "--config", "-n", "-j", "--jobs", "--timeout", "-timeout", "--tb", "--maxfail", "--durations", "--max-warnings", "--ext",
     "--reporter", "--reporters", "--output-file", "-o", "--out", "--out-dir", "--outDir", "--format", "--rootdir", "--target",
     "--features", "--profile", "--color", "--log-level", "--workers", "--retries", "--exclude", "--ignore", "--ignore-path",
     "-covermode", "-coverprofile", "-tags", "-count", "-parallel", "--maxWorkers", "--testTimeout", "--output", "-W", "--cov",
     "--module", "--moduleResolution", "--jsx", "--verbosity", "--configuration", "--runtime", "-L", "-I", "-D", "--output-format",
     "-p", "--seed", "--test-dir", "--start-directory", "--pattern", "--pool", "--environment", "--require", "--log-file", "--import", "--loader", "--experimental-loader")
)  # fmt: skip
_NAMES = {"-p": "-p", "--package": "-p", "--project": "-p", "-w": "-p", "--workspace": "-p", "--filter": "-k"}
#: Flags that select, by family, with the name under which equal selections are compared.
SELECTORS: dict[str, dict[str, str]] = {
    "py": {"-k": "-k", "-m": "-m"},
    "js": {**_NAMES, "-t": "-k", "--testNamePattern": "-k", "--test-name-pattern": "-k", "--grep": "-k", "-g": "-k",
           "--testPathPattern": "", "--testPathPatterns": "", "--spec": ""},
    "go": {"-run": "-k", "--run": "-k", "-bench": "-k", "-test.run": "-k"},
    "rust": {"-p": "-p", "--package": "-p", "--test": "-k", "--bin": "-k", "--example": "-k"},
    "jvm": {"--tests": "-k", "-Dtest": "-k", "-pl": "-p", "-p": "-p"},
    "net": {"--filter": "-k", "--project": "-p"},
    "infra": {"-target": "-k"},
    "any": {"-p": "-p", "-k": "-k", "-run": "-k", "--filter": "-k", "-R": "-k", "--only": "-k", "--grep": "-k", "-t": "-k"},
}  # fmt: skip
#: Flags of one family that take a value.
FAMILY_VALUES = frozenset((("net", "-v"), ("net", "-f"), ("net", "-r")))
#: Commands that cannot be what failed.
HARMLESS = frozenset(
    ("cd", "export", "set", "source", ".", "unset", "echo", "printf", "true", ":", "sleep", "mkdir", "touch", "pwd", "date", "tail",
     "head", "cat", "ulimit", "shopt", "wait", "tee", "clear", "exit", "return", "fi", "done", "esac", "}", "then", "do", "nvm", "popd")
)  # fmt: skip
#: Programs that are no part of a project: looks, tools of the system, package managers.
NO_PROGRAMS = HARMLESS | frozenset(
    ("ls", "grep", "egrep", "fgrep", "rg", "ag", "find", "fd", "sed", "awk", "cut", "sort", "uniq", "wc", "xargs", "which", "type", "where",
     "test", "stat", "file", "diff", "cmp", "jq", "yq", "curl", "wget", "http", "rm", "cp", "mv", "ln", "chmod", "chown", "kill", "pkill",
     "ps", "pgrep", "lsof", "ss", "netstat", "nc", "ping", "dig", "ssh", "scp", "rsync", "tar", "unzip", "zip", "gzip", "base64", "openssl",
     "git", "gh", "brew", "apt", "apt-get", "dnf", "apk", "pip", "pip3", "uv", "pipx", "poetry", "npm", "pnpm", "yarn", "bun", "cargo",
     "rustup", "go", "node", "python", "python3", "deno", "ruby", "gem", "bundle", "php", "java", "docker", "kubectl", "helm", "aws", "gcloud",
     "az", "psql", "mysql", "sqlite3", "redis-cli", "open", "code", "tree", "du", "df", "env", "id", "whoami", "uname", "hostname", "man",
     "for", "while", "if", "case", "function", "local", "eval", "trap", "read", "tmux", "screen", "less", "more", "nl", "tr", "rev", "od",
     "xxd", "hexdump", "strings", "nm", "otool", "sips", "magick", "convert", "identify", "ffmpeg", "apply_patch", "applypatch", "powershell",
     "pwsh", "cmd", "dir", "sw_vers", "defaults", "launchctl", "systemctl", "journalctl", "crontab", "make",
     "just", "mise", "asdf", "nix", "dotnet", "mvn", "gradle", "terraform", "swift", "flutter", "dart", "gofmt", "column", "paste", "comm",
     "split", "seq", "bc", "expr", "timeout", "time", "xcrun", "plutil", "sha256sum", "md5sum", "shasum", "strace", "ltrace", "gdb", "lldb",
     "dscl", "security", "pbcopy", "pbpaste", "vercel", "netlify", "fly", "heroku", "wrangler", "railway", "supabase", "bash", "sh", "zsh")
)  # fmt: skip
