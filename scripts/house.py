"""Measure the shape of the source tree, and how many modules a job runs through.

    python scripts/house.py            # a table
    python scripts/house.py --list     # the table, and the names behind each figure
    python scripts/house.py --json     # the same as JSON, names included
    python scripts/house.py --check    # exit with 1 if a bar is missed
    python scripts/house.py --static   # without the five jobs, which take most of the time

How the figures are counted:

- *packages*: folders directly below `everturn` that have an `__init__.py`. *lines*: every line of a `.py` file.
- *median lines* and *modules under 60 lines* leave out `__init__.py`.
- *one importer*: modules that exactly one other module of everturn imports. Imports inside functions and under
  `TYPE_CHECKING` count. A name imported from a package that re-exports it counts for the module that defines it. The
  re-export itself (a top-level import in `__init__.py` that the file does not use) does not make the package an
  importer. Loading a module by its name (commands, `lazy("…")`) is not an import.
- *duplicate classes*: public names that are defined at the top level of more than one module.
- *-ing/-ed modules*: the last word of the module name ends in -ing or -ed and is not in `MODULE_NOUNS`.
- *bare participles*: functions and methods whose name, without leading underscores, is one word: an -ed form that is not
  in `ED_WORDS`, or one of `IRREGULAR_PARTICIPLES`.
- *`__init__` with definitions*: `__init__.py` files that define a function or class other than `__getattr__` and `__dir__`.
- *files touched*: modules of everturn in which at least one function ran while a job was done, in any thread, and
  templates that were filled. Module and class bodies do not count, nor do functions that are called while a module
  is imported. Each job has a process of its own: `everturn sync` of one Pi session into a new archive, `everturn
  search` and `everturn restore` on the sample archive, a durable loop that opens an archive and runs one tool call,
  and the page of a session, requested from a running `everturn web` that has answered another page before.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "everturn"
JOBS = str(ROOT / "scripts" / "house_jobs.py")

#: Words in -ed that are not participles.
ED_WORDS = frozenset("bed deed embed exceed fastembed feed heed need proceed red seed shed shred speed succeed".split())
#: Words in -ing and -ed that name a thing, and so may name a module.
MODULE_NOUNS = ED_WORDS | frozenset("derived meaning ranking rendered shared string zed".split())
IRREGULAR_PARTICIPLES = frozenset(
    "begun bought broken brought built caught chosen done drawn fallen felt forgotten found given gone grown heard held "
    "hidden kept known led lost made meant met overwritten paid proven rebuilt rewritten said seen sent shown sold spent "
    "spoken taken thrown told torn undone written".split()
)

#: Files touched by each job before the tree was rearranged, and the share of it that may remain.
BEFORE = {"sync": 74, "search": 62, "restore": 66, "loop": 60, "page": 59}
SHARE = 0.75
#: Modules that came with sections of a restored document since then: each finds one kind of thing that was said (decision 25), names, room for it, how calls ended, what a request refers to, or commits.
ADDED = {"restore": 15}
BARS = {"one importer": 100, "duplicate classes": 0, "-ing/-ed modules": 5}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One source file."""

    name: str  # dotted; that of the package for an `__init__.py`
    is_package: bool
    lines: int
    tree: ast.Module


@dataclass(frozen=True)
class Figure:
    """One row of the table, with the names behind it."""

    value: float
    note: str = ""
    names: list[str] = field(default_factory=list)


# --- the tree -----------------------------------------------------------------------------------------------------


def read_modules(package: Path) -> dict[str, Module]:
    """Parse every module below a package folder, by dotted name."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        text = path.read_text("utf-8")
        modules[name] = Module(name, is_package, len(text.splitlines()), ast.parse(text))
    return modules


def find_imports(module: Module) -> Iterator[tuple[str, str, str]]:
    """Yield what a module imports, wherever it does: module, name in it ("" for the module itself), name given here."""
    home = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "", "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = home[: len(home) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            yield from ((source, alias.name, alias.asname or alias.name) for alias in node.names)


def find_reexports(module: Module) -> dict[str, tuple[str, str]]:
    """Map the names that an `__init__.py` imports and does not use to the module and name they come from."""
    if not module.is_package:
        return {}
    used = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
    local = {
        id(inner)
        for node in ast.walk(module.tree)
        if isinstance(node, Function)
        for inner in ast.walk(node)
        if isinstance(inner, ast.ImportFrom)
    }
    top = [node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom) and id(node) not in local]
    outer = Module(module.name, True, 0, ast.Module(list(top), []))
    return {bound: (source, name) for source, name, bound in find_imports(outer) if bound not in used}


def find_importers(modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """Map each imported module to the modules that import it."""
    reexports = {name: find_reexports(module) for name, module in modules.items()}

    def defining_module(source: str, name: str) -> str:
        if f"{source}.{name}" in modules:
            return f"{source}.{name}"
        origin = reexports.get(source, {}).get(name)
        return defining_module(*origin) if origin and origin != (source, name) else source

    importers: dict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        for source, name, bound in find_imports(module):
            target = defining_module(source, name)
            if target in modules and target != module.name and bound not in reexports[module.name]:
                importers[target].add(module.name)
    return importers


def find_duplicate_classes(modules: Mapping[str, Module]) -> dict[str, list[str]]:
    """Map each public class name with several definitions to the modules that have one."""
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules.values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module.name)
    return {name: found for name, found in sorted(homes.items()) if len(found) > 1}


def has_verb_ending(module_name: str) -> bool:
    """Whether a module is named by a verb form in -ing or -ed."""
    word = module_name.rpartition(".")[2].rpartition("_")[2]
    return word.endswith(("ing", "ed")) and word not in MODULE_NOUNS


def is_bare_participle(function_name: str) -> bool:
    """Whether a function is named by a participle and nothing else."""
    word = function_name.lstrip("_")
    is_regular = re.fullmatch(r"[a-z]+ed", word) is not None and word not in ED_WORDS
    return is_regular or word in IRREGULAR_PARTICIPLES


def find_participles(modules: Mapping[str, Module]) -> list[str]:
    """Name the functions and methods that are bare participles."""
    return [
        f"{module.name}:{node.lineno} {node.name}"
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, Function) and is_bare_participle(node.name)
    ]


def find_init_definitions(modules: Mapping[str, Module]) -> list[str]:
    """Name the packages whose `__init__.py` defines functions or classes."""
    lazy = ("__getattr__", "__dir__")
    return [
        module.name
        for module in modules.values()
        if module.is_package
        and any(isinstance(node, Function | ast.ClassDef) and node.name not in lazy for node in module.tree.body)
    ]


def find_what_docstrings(modules: Mapping[str, Module]) -> list[str]:
    """Name the modules, classes and functions whose docstring begins with "What"."""
    return [
        f"{module.name} {getattr(node, 'name', '')}".rstrip()
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Module | ast.ClassDef | Function) and re.match(r"What\b", ast.get_docstring(node) or "")
    ]


def measure_tree(modules: Mapping[str, Module]) -> dict[str, Figure]:
    """Compute every figure that needs no code to run."""
    root = next(iter(modules))
    plain = {name: module.lines for name, module in modules.items() if not module.is_package}
    longest = max(modules.values(), key=lambda module: module.lines)
    short = sorted(name for name, lines in plain.items() if lines < 60)
    single = sorted(name for name, importers in find_importers(modules).items() if len(importers) == 1)
    duplicates = [f"{name}: {', '.join(homes)}" for name, homes in find_duplicate_classes(modules).items()]
    endings = sorted(filter(has_verb_ending, modules))
    participles = find_participles(modules)
    public = sum(not one.rpartition(" ")[2].startswith("_") for one in participles)
    packages = [
        name for name, module in modules.items() if module.is_package and name.count(".") == root.count(".") + 1
    ]
    inits, whats = find_init_definitions(modules), find_what_docstrings(modules)
    return {
        "files": Figure(len(modules)),
        "packages": Figure(len(packages), "", packages),
        "lines": Figure(sum(module.lines for module in modules.values())),
        "median lines": Figure(statistics.median(plain.values())),
        "max lines": Figure(longest.lines, longest.name),
        "under 60 lines": Figure(len(short), "", short),
        "one importer": Figure(len(single), "", single),
        "duplicate classes": Figure(len(duplicates), "", duplicates),
        "-ing/-ed modules": Figure(len(endings), "", endings),
        "bare participles": Figure(len(participles), f"{public} public", participles),
        "__init__ with definitions": Figure(len(inits), "", inits),
        'docstrings with "What"': Figure(len(whats), "", whats),
    }


# --- the jobs -----------------------------------------------------------------------------------------------------


def trace_jobs() -> dict[str, list[str]]:
    """Do every job in a process of its own, with an empty home folder, and give the files each of them touched."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(PACKAGE.parent), "HOME": name, "USERPROFILE": name}
        env["EVERTURN_HOME"] = str(folder / "everturn")
        words = [["-m", "everturn"], *([JOBS, job, name] for job in BEFORE)]
        for arguments in words:
            command = [sys.executable, *arguments]
            done = subprocess.run(command, env=env, cwd=name, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stderr}")
        return {job: json.loads((folder / f"{job}.json").read_text("utf-8")) for job in BEFORE}


# --- the report ---------------------------------------------------------------------------------------------------


def most_files(job: str) -> float:
    """Return how many files a job may touch."""
    return BEFORE[job] * SHARE + ADDED.get(job, 0)


def measure_change(job: str, files: list[str]) -> float:
    """Give the change against the figure before, as a share of it."""
    return round(len(files) / BEFORE[job] - 1, 3)


def find_misses(tree: Mapping[str, Figure], touched: Mapping[str, list[str]]) -> list[str]:
    """Say which bars are missed."""
    misses = [f"{name}: {tree[name].value} > {bar}" for name, bar in BARS.items() if tree[name].value > bar]
    for job, files in touched.items():
        if len(files) > most_files(job):
            misses.append(f"files touched by {job}: {len(files)} > {most_files(job):g}")
    return misses


def print_table(tree: Mapping[str, Figure], touched: Mapping[str, list[str]], with_names: bool) -> None:
    """Print the figures for people."""
    for name, figure in tree.items():
        bar = f"at most {BARS[name]}" if name in BARS else ""
        print(f"{name:26}{figure.value:>8,g}  {bar or figure.note}".rstrip())
        if with_names:
            print(*(f"    {one}" for one in figure.names), sep="\n", end="\n" if figure.names else "")
    if touched:
        print(f"\n{'files touched by':20}{'before':>8}{'now':>6}{'change':>9}{'at most':>9}")
    for job, files in touched.items():
        print(f"{job:20}{BEFORE[job]:>8}{len(files):>6}{measure_change(job, files):>+9.0%}{int(most_files(job)):>9}")
        if with_names:
            print(*(f"    {one}" for one in files), sep="\n")


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--list", action="store_true", help="print the names behind each figure")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bar is missed")
    parser.add_argument("--static", action="store_true", help="leave out the jobs")
    options = parser.parse_args()
    tree = measure_tree(read_modules(PACKAGE))
    touched = {} if options.static else trace_jobs()
    misses = find_misses(tree, touched)
    if options.json:
        jobs = {
            job: {"before": BEFORE[job], "now": len(files), "change": measure_change(job, files), "files": files}
            for job, files in touched.items()
        }
        figures = {name: asdict(figure) for name, figure in tree.items()}
        print(json.dumps({"tree": figures, "touched": jobs, "missed": misses}, indent=1))
    else:
        print_table(tree, touched, options.list)
    if options.check:
        print(*(f"missed: {miss}" for miss in misses), sep="\n", end="\n" if misses else "", file=sys.stderr)
    return int(options.check and bool(misses))


if __name__ == "__main__":
    sys.exit(main())
