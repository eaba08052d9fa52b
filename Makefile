SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
UV_VERSION := 0.13.8
export FACTBOOK_TEST_DATA ?= ../shared/data

BIN := .venv/bin
UV := $(BIN)/uv
UV_STAMP := .venv/uv-$(UV_VERSION)
SETUP_STAMP := .venv/setup

.PHONY: help setup demo test test-system contracts soak fuzz check format bench docs screenshots \
	build lock clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  \033[36m%-12s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(SETUP_STAMP) ## Install everything into .venv, and do nothing else

demo: setup ## Start the service on a new file, push the example catalog, ask a question
	@$(BIN)/python examples/demo.py

test: check ## Check everything, then run every test on SQLite and on PostgreSQL
	$(BIN)/pytest -n 2

test-system: setup ## Run the tests that need more than Python packages, installing what they need
	scripts/install-system
	$(BIN)/pytest -m system

contracts: setup ## Run the contract tests: other people's programs against the service
	scripts/install-system
	$(BIN)/pytest -m system tests/contracts

soak: setup ## Run what takes hours: fuzzing, the system tests in their long form, steady load
	scripts/install-system
	$(BIN)/python -m tests.fuzz
	FACTBOOK_SOAK=1 $(BIN)/pytest -m system --timeout 7200 tests/system tests/contracts tests/model
	$(BIN)/python -m bench --only steady,overload --strict

fuzz: setup ## Try a million inputs on every parser (FUZZ=--help says what can be chosen)
	$(BIN)/python -m tests.fuzz $(FUZZ)

# AUDIT=required makes it a failure that the service of advisories does not answer.
check: setup ## Check format, lint, types, layers, documentation, licences and advisories
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --strict --quiet
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src scripts examples
	$(BIN)/python -m tests.supply

format: setup ## Format the code and mend what the linter can mend
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

bench: setup ## Run the benchmarks
	$(BIN)/python -m bench

docs: setup ## Serve the documentation while writing it
	$(BIN)/mkdocs serve

screenshots: setup ## Take the pictures of docs/pages.md anew
	scripts/install-system
	$(BIN)/python -m tests.browser.screenshots

build: setup ## Build the wheel into dist/
	$(BIN)/python -m build --wheel --no-isolation

# Not uv.lock: it names the host of every file, and an install would ignore the index chosen here.
lock: $(UV_STAMP) ## Resolve the requirements again (LOCK=--upgrade takes the newest)
	$(COMPILE) --output-file requirements/runtime.lock
	$(COMPILE) --group dev --constraints requirements/runtime.lock --output-file requirements/dev.lock

COMPILE = $(UV) pip compile --quiet --all-extras --universal --generate-hashes --no-emit-index-url \
	--no-emit-find-links --custom-compile-command 'make lock' $(LOCK) pyproject.toml

clean: ## Remove what the other targets made, .venv included
	rm -rf .venv .fuzz .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache dist site \
		tests/contracts/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(UV_STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Factbook needs Python 3.11 or newer: make setup PYTHON=python3.11' >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

$(SETUP_STAMP): $(UV_STAMP) pyproject.toml requirements/dev.lock
	$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@
