"""Which checks a command runs, and which later run shows that an earlier one no longer fails."""

from __future__ import annotations

import pytest

from everturn.derive.checks import CheckRun, command_words, covers, find_checks

WORKSPACE = "/home/ann/shop"


def only(command: str) -> CheckRun:
    (run,) = find_checks(command, WORKSPACE)
    return run


@pytest.mark.parametrize(
    ("command", "kind", "family"),
    [
        ("pytest -q", "test", "py"),
        ("python3 -m unittest discover", "test", "py"),
        ("npm test", "test", "js"),
        ("yarn workspace app test", "test", "js"),
        ("npx -y vitest@2 run", "test", "js"),
        ("bun run test:ci", "test", "js"),
        ("node --test", "test", "js"),
        ("go vet ./...", "lint", "go"),
        ("cargo +nightly clippy -- -D warnings", "lint", "rust"),
        ("npx tsc --noEmit", "types", "js"),
        ("pnpm run check-types", "types", "js"),
        ("make", "build", "any"),
        ("make -j4 all", "build", "any"),
        ("./gradlew :app:assembleDebug", "build", "jvm"),
        ("mvn -q verify", "test", "jvm"),
        ("docker buildx build .", "build", "docker"),
        ("terraform -chdir=infra validate", "lint", "infra"),
        ("node scripts/lint-posts.mjs -p content", "lint", "js"),
        ("./scripts/build.sh --fast", "build", "any"),
        ("docker compose exec -T web pytest", "test", "py"),
        ("git push origin main", "push", "vcs"),
        ("gh pr checks 7", "ci", "any"),
        ("shop tasks list", "program", "any"),
    ],
)
def test_a_check_is_known_by_its_words(command: str, kind: str, family: str) -> None:
    run = only(command)
    assert (run.kind, run.family) == (kind, family)


@pytest.mark.parametrize(
    "command",
    ["ls", "npm install", "npm ci", "cat a | grep b", "python -c 'import x'", "git status", "node -e 'x()'", "gh run delete 7", "cd web"],
)  # fmt: skip
def test_other_commands_check_nothing(command: str) -> None:
    assert find_checks(command) == ()


@pytest.mark.parametrize(
    ("command", "hidden"),
    [
        ("pytest", False),
        ("pytest && echo ok", False),
        ("cd a && pytest > log.txt 2>&1", False),
        ("echo y | pytest", False),
        ("pytest || exit 1", False),
        ("set -o pipefail; pytest | tail -3", False),
        ("set -e; pytest; echo done", False),
        ("pytest | tail -3", True),
        ("pytest 2>&1 | tee log", True),
        ("pytest || true", True),
        ("pytest; echo $?", True),
        ("pytest &", True),
        ("if pytest; then echo ok; fi", True),
    ],
)
def test_where_the_exit_status_is_lost(command: str, hidden: bool) -> None:
    assert only(command).hidden is hidden


@pytest.mark.parametrize(
    "later",
    [
        "pytest tests/api",
        "pytest",
        "pytest tests",
        "cd /home/ann/shop && pytest -vv tests/api --tb=short",
        "CI=1 timeout 60 uv run pytest tests/api -x | tail",
        "bash -lc 'pytest tests/api'",
        "python -m pytest ./tests/api/ tests/web",
        "make test",
    ],
)
def test_the_same_or_a_wider_run_covers(later: str) -> None:
    assert covers(only(later), only("pytest tests/api"))


@pytest.mark.parametrize(
    "later",
    [
        "pytest tests/web",
        "pytest tests/api/test_a.py",
        "pytest tests/api -k login",
        "cd other/project && pytest tests/api",
        "ruff check tests/api",
        "npx jest tests/api",
        "npm run test:e2e",
    ],
)
def test_another_or_a_narrower_run_does_not(later: str) -> None:
    assert not covers(only(later), only("cd service && pytest tests/api"))


def test_a_whole_run_does_not_include_a_separate_suite() -> None:
    assert not covers(only("npm test"), only("npm run test:e2e"))
    assert covers(only("npm test"), only("npm run test:unit"))


def test_tests_of_a_compiled_language_show_that_it_builds() -> None:
    assert covers(only("go test ./..."), only("go build ./..."))
    assert not covers(only("npm test"), only("npm run build"))


def test_linters_of_one_language_differ_but_a_script_may_run_any() -> None:
    assert not covers(only("npx prettier --check ."), only("npx eslint ."))
    assert covers(only("npm run lint"), only("npx eslint ."))


def test_what_runs_while_changes_are_put_away_is_left_out() -> None:
    assert find_checks("git stash && go test ./...; git stash pop") == ()
    assert [run.kind for run in find_checks("git stash pop && go test ./...")] == ["merge", "test"]


def test_a_here_document_is_no_command() -> None:
    assert [run.kind for run in find_checks("cat > a.sh <<'E'\npytest\nE\nmake lint")] == ["lint"]


def test_commands_are_named_as_a_person_would() -> None:
    assert command_words("cd x && /tmp/shop explain --all 2>&1 | head") == ("shop explain --all",)


def test_odd_commands_do_no_harm() -> None:
    for command in (
        "",
        "'",
        '"',
        "&&",
        "||||",
        "\x00",
        "a" * 100_000,
        "(" * 5000,
        "'a' " * 5000,
        "\\",
        "npm",
        "git -c",
        "make -C",
    ):
        find_checks(command)
        command_words(command)
