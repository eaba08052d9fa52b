SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
# Some machines set it: each of the hundreds of processes of a run would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
# The theme advertises its successor at each build.
export NO_MKDOCS_2_WARNING := 1

BIN := .venv/bin
HELM ?= helm
SITE ?= main
PLATFORMS := amd64 arm64
CHECKS := $(addprefix check-,types format lint layers documentation packages)
VERSION = $(shell $(PYTHON) scripts/release.py version)
UV := $(BIN)/uv
UV_STAMP := .venv/uv
RUNTIME_STAMP := .venv/runtime
SETUP_STAMP := .venv/setup

.PHONY: help install setup demo quick test test-notice compile-tests test-slow test-system contracts soak fuzz check $(CHECKS) audit \
	format bench docs screenshots build chart bills site lock clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  \033[36m%-12s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(RUNTIME_STAMP) ## Install what the service needs into .venv

setup: $(SETUP_STAMP) ## Install everything into .venv, including what tests and checks need

demo: install ## Start the service with a made-up shop on a new file, ask a question (PORT=8080)
	@$(BIN)/python examples/demo.py $(if $(PORT),--port $(PORT))

quick: setup ## Run the checks and tests nearest to what changed, on SQLite, in half a minute
	@$(BIN)/python -m tests.lanes quick

# Some wait for the database or a process, so three at once keep two cores busy.
test: test-notice setup ## Check everything, then run the tests on both databases (SLOW=1: the slow ones, too)
	@$(MAKE) --no-print-directory --jobs 2 check-types compile-tests $(CHECKS)
	FACTBOOK_TEST_SITE=site $(BIN)/pytest -n 3 $(if $(SLOW),-m "not system")

# Otherwise each of the three would do it, at the same time.
compile-tests: setup
	@$(BIN)/pytest --collect-only -qq >/dev/null || true

test-slow: setup ## Run the tests that take over a third of a second each, such as random histories
	FACTBOOK_TEST_SITE=site $(BIN)/pytest -n 3 -m "slow and not system"

test-notice:
	@command -v git >/dev/null || \
		{ echo 'The tests need Git; on Debian and Ubuntu: apt-get install git' >&2; exit 1; }
	@[[ -e $(SETUP_STAMP) ]] || echo 'Installing what the tests need into .venv (650 MB)'
	@echo 'Checks and tests take about $(if $(SLOW),fifteen,five) minutes on two cores'

test-system: setup ## Run the tests that need more than Python packages (TESTS=files or node ids)
	scripts/install-system
	$(BIN)/python -m tests.lanes system $(TESTS)

contracts: setup ## Run the contract tests: other people's programs against the service
	scripts/install-system
	$(BIN)/pytest -m system tests/contracts

soak: setup ## Run what takes hours: fuzzing, all tests in their long form, steady load
	scripts/install-system
	$(BIN)/python -m tests.fuzz
	FACTBOOK_SOAK=1 $(BIN)/pytest --timeout 7200 -m "not system"
	FACTBOOK_SOAK=1 $(BIN)/pytest --timeout 7200 -m system tests/system tests/contracts tests/model
	$(BIN)/python -m bench --only steady,overload --strict

fuzz: setup ## Try a million inputs on every parser (FUZZ=--help says what can be chosen)
	$(BIN)/python -m tests.fuzz $(FUZZ)

# Two at once: to check the types takes as long as all others. None writes what another reads.
check: setup ## Check format, lint, types, layers, documentation, licences and advisories
	@$(MAKE) --no-print-directory --jobs 2 $(CHECKS)

check-format:
	$(BIN)/ruff format --check

check-lint:
	$(BIN)/ruff check

check-types:
	$(BIN)/mypy

check-layers:
	$(BIN)/lint-imports

check-documentation:
	$(BIN)/mkdocs build --strict --quiet

# Advisories count wherever their service answers. AUDIT=required: it has to.
check-packages:
	$(BIN)/python -m tests.supply

audit: setup ## Ask for advisories about all packages, and note the date when there are none
	$(BIN)/python -m tests.supply --record

format: setup ## Format the code and fix what the linter can fix
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

bench: setup ## Run the benchmarks
	$(BIN)/python -m bench

docs: setup ## Serve the documentation while writing it
	$(BIN)/mkdocs serve

screenshots: setup ## Take the pictures of docs/pages.md again
	scripts/install-system
	$(BIN)/python -m tests.browser.screenshots

# The wheel is made from the source distribution, so that nothing is missing there.
build: setup ## Build the source distribution and the wheel into dist/
	$(BIN)/python -m build --no-isolation

chart: ## Package the Helm chart into dist/
	$(HELM) package deploy/chart/factbook --destination dist \
		--version "$(VERSION)" --app-version "$(VERSION)"

# The files of the image are read and nothing in it is run, so that its platform does not matter.
bills: setup ## Write the bills of materials of an image into dist/, one a platform (IMAGE=…)
	mkdir -p dist
	for platform in $(PLATFORMS); do \
		files="$$(mktemp -d)"; \
		container="$$(docker create --pull always --platform "linux/$$platform" "$(IMAGE)")"; \
		docker export "$$container" | tar --extract --directory "$$files"; \
		docker rm "$$container"; \
		$(BIN)/python scripts/sbom.py "$$files" > "dist/factbook-$(VERSION)-$$platform.cdx.json"; \
		rm -rf "$$files"; \
	done

site: setup ## Build the documentation into the branch gh-pages (SITE=main, or a version)
	$(BIN)/python scripts/versioned_site.py $(SITE)

# Not uv.lock: it names the host of every file, and an install would ignore the index chosen here.
# What is in several of the files has one version: each is constrained by those before it.
lock: $(UV_STAMP) ## Resolve the requirements again (LOCK=--upgrade takes the newest)
	$(COMPILE) pyproject.toml --output-file requirements/runtime.lock
	$(COMPILE) pyproject.toml --extra workers --constraints requirements/runtime.lock \
		--output-file requirements/workers.lock
	$(COMPILE) pyproject.toml --all-extras --constraints requirements/workers.lock \
		--output-file requirements/traces.lock
	$(COMPILE) pyproject.toml --all-extras --group dev --constraints requirements/traces.lock \
		--output-file requirements/dev.lock
	$(COMPILE) --group build --constraints requirements/dev.lock --output-file requirements/build.lock
	$(COMPILE) --group installer --output-file requirements/installer.lock
	for number in 1 2 3; do \
		$(COMPILE) --group hosts-$$number --output-file tests/contracts/hosts-$$number.lock; \
	done

COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' $(LOCK)

clean: ## Remove what the other targets made, .venv included
	rm -rf .venv .fuzz .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache dist site \
		tests/contracts/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(UV_STAMP): requirements/installer.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Factbook needs Python 3.11 or newer: make install PYTHON=python3.11' >&2; exit 1; }
	@$(PYTHON) -c 'from importlib.util import find_spec as f; exit(not (f("ensurepip") or f("pip")))' || \
		{ echo 'Python lacks pip and ensurepip; on Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	$(PYTHON) -m venv --without-pip .venv
	$(PYTHON) -m pip --python $(BIN)/python $(GET_UV) 2>/dev/null || \
		{ $(BIN)/python -m ensurepip >/dev/null && $(BIN)/python -m pip $(GET_UV); }
	@touch $@

# By the pip that is there: to install another one takes longer than all the rest of the demo.
GET_UV = install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
	--requirement requirements/installer.lock

# What the service needs and no more. Nothing is removed: after `make setup` nothing is left to do.
$(RUNTIME_STAMP): $(UV_STAMP) pyproject.toml requirements/runtime.lock requirements/build.lock
	@echo 'Installing what the service needs into .venv'
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes --only-binary :all: \
		--requirement requirements/runtime.lock --requirement requirements/build.lock
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

$(SETUP_STAMP): $(UV_STAMP) pyproject.toml requirements/dev.lock
	$(UV) pip sync --quiet --python $(BIN)/python --require-hashes \
		--only-binary :all: requirements/dev.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@
