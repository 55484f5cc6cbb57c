# Everything there is to do with a checkout. Needs Python >= 3.11 with pip, and make; the rest is set up in .venv.

PYTHON ?=
BIN = .venv/bin
# Tests run on every core; `make test PYTEST="-n 0 -x -k words"` gives pytest other arguments.
PYTEST ?= -n auto
COVER = --cov --cov-branch --cov-report=
# Tests wait for other processes a third of the time: two workers more than there are cores.
MORE = $(subst -n auto,-n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2),$(PYTEST))
FILES = src tests scripts benchmarks
# Compiled modules are kept in .venv: the tests start hundreds of interpreters, and compiling takes longer than running.
export PYTHONPYCACHEPREFIX = $(CURDIR)/.venv/pycache
unexport PYTHONDONTWRITEBYTECODE
DOCS = docs/commands.md docs/schema.md docs/analytics.md docs/habits.md

.PHONY: run test check lint types layers house docs-check docs site test-all test-full cover bench bench-peers conformance agents-test recordings fuzz clean

run: .venv/ready-run  ## archive the agents' history of this machine (or a sample) into .everturn/ and say what to try
	@EVERTURN_HOME="$(CURDIR)/.everturn" $(BIN)/everturn
	@echo
	@echo "For this shell:  export EVERTURN_HOME=$(CURDIR)/.everturn PATH=$(CURDIR)/.venv/bin:\$$PATH"

test: .venv/ready-dev  ## the tests, without the slow ones and with fewer examples (tests/quick.py)
	@EVERTURN_TEST_QUICK=1 $(BIN)/python -m pytest -q -m "not slow" $(PYTEST)

check: lint types layers house docs-check test-all  ## everything CI runs
	@echo "all checks passed"

lint: .venv/ready-dev
	@$(BIN)/ruff check $(FILES)
	@$(BIN)/ruff format --check $(FILES)

types: .venv/ready-dev
	@$(BIN)/mypy

layers: .venv/ready-dev
	@PYTHONPATH=src $(BIN)/lint-imports

house: .venv/ready-dev  ## the shape of the tree: fails if a bar of scripts/house.py is missed
	@PYTHONPATH=src:. $(BIN)/python scripts/house.py --check

docs-check: .venv/ready-dev
	@PYTHONPATH=src:. $(BIN)/cog --check --check-fail-msg="docs are out of date: run \`make docs\`" $(DOCS)

# Branch coverage of the first run may not fall below `fail_under` (pyproject.toml). It is not measured in the processes
# that tests start, nor in the slow tests: they add little, take longer with it, and its tracer does not know the greenlets
# that drive the browser.
test-all: .venv/ready-dev
	@EVERTURN_TEST_QUICK=1 $(BIN)/python -m pytest -q -m "not slow" -rs --durations=10 --durations-min=1 $(COVER) $(MORE)
	@EVERTURN_TEST_QUICK=1 $(BIN)/python -m pytest -q -m slow -rs --durations=10 --durations-min=1 $(MORE)

test-full: .venv/ready-dev  ## every test with all of its cases and examples, each command in a new interpreter; before a release
	@$(BIN)/python -m pytest -q -rs --durations=10 --durations-min=1 $(MORE)

docs: .venv/ready-dev  ## write docs/commands.md anew
	@PYTHONPATH=src:. $(BIN)/cog -r $(DOCS)

site: .venv/ready-docs  ## build the docs site into site/; a broken link is an error
	@$(BIN)/python -m zensical build --strict --clean

cover: .venv/ready-dev  ## the tests without the slow ones, with branch coverage and the lines that lack it
	@$(BIN)/python -m pytest -q -m "not slow" $(PYTEST) --cov --cov-branch --cov-report=term

bench: .venv/ready-dev  ## print what everturn promises to reach, measured here
	@PYTHONPATH=src $(BIN)/python -m benchmarks

bench-peers: .venv/ready-dev  ## install other archivers, run them beside ours and print the ratio
	@PYTHONPATH=src $(BIN)/python -m benchmarks.peers

conformance:  ## other people's test suites for what we implement of theirs, in a virtual environment of their own
	@$(or $(PYTHON),python3) scripts/conformance.py

agents-test: .venv/ready-dev  ## install the real agents from npm into .agents/ and run the tests that drive them
	@scripts/agents

recordings: .venv/ready-dev  ## install the real agents from npm into .agents/, record them in .recordings/ and print the score
	@scripts/recordings

fuzz: .venv/ready-dev  ## ten minutes of random damage for every reader
	@PYTHONPATH=src:. $(BIN)/python -m tests.fuzz

clean:  ## remove what was made here, except the archive in .everturn/
	rm -rf .venv dist build site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage .coverage.*
	find $(FILES) -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/ready-run: pyproject.toml uv.lock scripts/setup
	@PYTHON="$(PYTHON)" scripts/setup run
	@touch $@

.venv/ready-dev: pyproject.toml uv.lock scripts/setup
	@PYTHON="$(PYTHON)" scripts/setup dev
	@touch .venv/ready-run $@

.venv/ready-docs: pyproject.toml uv.lock scripts/setup
	@PYTHON="$(PYTHON)" scripts/setup docs
	@touch .venv/ready-run .venv/ready-dev $@
