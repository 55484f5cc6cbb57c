"""What no linter knows: the rules of the house that keep one change in one place."""

from __future__ import annotations

import ast
import re
import statistics
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

import everturn
from everturn.cli import frame
from everturn.sources.contract import all_sources

PACKAGE = Path(everturn.__file__).parent
ROOT = PACKAGE.parent.parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))
SURFACES = ("cli", "tui", "mcp", "acp", "web")

#: Formats that exist in the world, whether or not there is a source for them yet. Names that are ordinary words in
#: any program (cursor, pi, messages, continue) are left out.
FORMATS = {"claude", "codex", "opencode", "gemini", "aider", "cline", "goose", "copilot", "kiro"}
ORDINARY = {"cursor", "pi", "messages", "continue", "terminal", "journal"}

#: What is passed in to everything below the surfaces.
PASSED_IN = {
    *("print", "input", "os.environ", "os.getenv", "sys.stdout", "sys.stderr", "sys.stdin", "sys.argv"),
    *("Path.home", "os.path.expanduser", "time.time", "time.time_ns", "datetime.now", "datetime.utcnow"),
    *("date.today", "uuid.uuid4", "uuid4", "getpass.getuser", "platform.node", "socket.gethostname"),
}

#: Commands that print no rows: a script, a document in the form asked for by `--as`, and what is used by hand.
NO_JSON = {"acp", "browse", "chat", "completion", "export", "mcp", "receive", "serve", "config set", "config path"}


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def below_the_surfaces(path: Path) -> bool:
    first = path.relative_to(PACKAGE).parts[0]
    return first not in SURFACES and first not in ("settings.py", "clock.py", "__main__.py", "hook.py")


def looked_at(node: ast.Attribute | ast.Call) -> str:
    """`os.environ` of an attribute, `print` of a call: a field may well be called `input`."""
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def trees() -> Iterator[tuple[Path, ast.Module]]:
    """Every module with its syntax tree."""
    return ((path, tree_of(path)) for path in MODULES)


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command and subcommand, the hidden one too."""
    context = click.Context(frame.root, info_name="everturn")
    todo: list[tuple[str, click.Command | None]] = [
        (name, frame.root.get_command(context, name)) for name in frame.one_line_helps()
    ]
    while todo:
        name, command = todo.pop()
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            todo += [(f"{name} {child}", command.commands[child]) for child in command.commands]


def test_no_module_outside_sources_names_a_format() -> None:
    names = (FORMATS | {name.lower() for name in all_sources()}) - ORDINARY
    pattern = re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, sorted(names)))})(?![a-z])", re.I)
    offenders = [
        f"{name_of(path)}:{number}: {line.strip()}"
        for path in MODULES
        if path.parent == PACKAGE or path.relative_to(PACKAGE).parts[0] != "sources"
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert offenders == [], "what is known of a format belongs into its Source"


def test_modules_are_worth_opening_and_none_is_over_500_lines() -> None:
    lengths = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in MODULES if path.stem != "__init__"}
    assert {name: length for name, length in lengths.items() if length > 500} == {}
    assert statistics.median(lengths.values()) >= 120


def test_a_public_class_name_is_used_once() -> None:
    homes = defaultdict(list)
    for path, tree in trees():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name_of(path))
    assert len(homes) > 400
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_no_module_is_named_by_a_verb_form() -> None:
    nouns = {"derived", "embed", "meaning", "ranking", "rendered"}
    words = {name_of(path): path.stem.rpartition("_")[2] for path in MODULES}
    assert {name for name, word in words.items() if word.endswith(("ing", "ed")) and word not in nouns} == set()


def test_an_init_file_defines_nothing() -> None:
    """The root loads its public names lazily; a package may answer for names that have moved."""
    hooks = {"__getattr__", "__dir__"}
    offenders = [
        f"{name_of(path)}: {node.name}"
        for path, tree in trees()
        for node in tree.body
        if path.stem == "__init__" and path.parent != PACKAGE
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name not in hooks
    ]
    assert offenders == []


def test_every_package_has_tests_beside_those_of_the_others() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"sample", "model"}
    assert {name for name in packages if not list((ROOT / "tests" / name).glob("**/test_*.py"))} == set()


def test_every_module_says_what_it_is_for() -> None:
    assert [name_of(path) for path in MODULES if not ast.get_docstring(tree_of(path))] == []


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "manager", "engine", "misc", "base"}
    assert [name_of(path) for path in MODULES if path.stem in drawers] == []


def test_nothing_below_the_surfaces_prints_or_looks_around() -> None:
    offenders = [
        f"{name_of(path)}:{node.lineno} {ast.unparse(node)}"
        for path in MODULES
        if below_the_surfaces(path)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute | ast.Call) and looked_at(node) in PASSED_IN
    ]
    assert offenders == [], "take it as an argument"


def test_migrations_are_numbered_without_gaps() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.sql")}
    assert len(folders) == 2, "one for each engine"
    for folder in folders:
        numbers = sorted(int(path.name.partition("_")[0]) for path in folder.glob("*.sql"))
        assert numbers == list(range(1, len(numbers) + 1)), folder.name


def test_every_command_has_help_with_an_example() -> None:
    for name, command in commands():
        text = f"{command.help or ''}\n{command.epilog or ''}"
        assert command.help, f"everturn {name} has no help"
        if name != frame.HOME:
            assert re.search(r"^  \S*.*\beverturn ", text, re.M), f"everturn {name} has no example in its help"


def test_every_command_can_answer_in_json_and_use_another_archive() -> None:
    for name, command in commands():
        options = {word for parameter in command.params for word in parameter.opts}
        if not isinstance(command, click.Group) or command.invoke_without_command:
            assert {"--db", "--config"} <= options, f"everturn {name}: use @frame.command"
            assert "--json" in options or name in NO_JSON, f"everturn {name} has no --json"


def test_every_command_of_the_documents_exists() -> None:
    known = {*frame.one_line_helps(), *frame.ALIASES}
    for document in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        text = (ROOT / document).read_text("utf-8")
        used = set(re.findall(r"(?:^|`|/)everturn ([a-z][a-z-]+)", text, re.M))
        assert used <= known, f"{document} names {used - known}"


def test_every_make_command_of_the_documents_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    for document in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        used = set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / document).read_text("utf-8"), re.M))
        assert used <= targets, f"{document} names {used - targets}"
    assert {"run", "test"} <= set(re.findall(r"^ *make ([a-z-]+)", (ROOT / "README.md").read_text("utf-8"), re.M))


def test_the_architecture_page_names_every_folder() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    rows = dict(re.findall(r"^\| `([a-z_]+)/` \| (.+) \|$", page, re.M))
    assert set(rows) == folders, "one row per package, with its job"
    layers = re.search(r"```\n(cli\n.*?)```", page, re.S)
    assert layers is not None
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"][0]
    assert layers[1].split("\n")[:-1] == contract["layers"]


def test_the_reading_orders_name_modules_that_exist() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    orders = re.findall(r"^- \*\*([a-z]+)\*\*: (.+)$", page.partition("## Reading orders")[2], re.M)
    assert [name for name, _ in orders] == ["sync", "search", "why", "restore", "loop", "page"]
    for name, order in orders:
        modules = re.findall(r"`([a-z_/]+)`", order)
        assert len(modules) <= 8, name
        assert [module for module in modules if not (PACKAGE / f"{module}.py").is_file()] == [], name


def test_the_lock_names_the_public_index_only() -> None:
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text("utf-8")))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_the_sample_is_that_of_a_source() -> None:
    folders = {path.name: path for path in (PACKAGE / "sample").iterdir() if path.is_dir() and path.name[0] != "_"}
    assert folders and set(folders) <= set(all_sources())
    for name, folder in folders.items():
        assert list(all_sources()[name].find(folder))
