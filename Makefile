# Every target works from a fresh checkout; `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := 2.13.0
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

# A file's tests share its fixtures on one worker; in their order, so that the browser's long files are not the last.
WORKERS := -n 3 --dist loadfile --no-loadscope-reorder

# Each process that has this folder on its path notes there what it runs.
COVERAGE := .room_coverage

# The tests start hundreds of processes, which would each compile the project anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: links help install run test test-changed test-all test-again test-long coverage check docs bench shots screenshots notebook rooms lock
help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(VENV)/installed ## install what is missing; every package is compared with its hash

run: $(VENV)/installed ## install what is missing, prepare the default world, serve on http://127.0.0.1:8501
	@$(BIN)/showhow run

test: $(VENV)/installed-dev ## run the tests but the long ones, with tests of every kind
	@$(BIN)/python tests/system_packages.py
	$(BIN)/pytest $(WORKERS) -m "not long"

test-changed: $(VENV)/installed-dev ## run the tests that import what was changed since BASE (main), but the long ones
	@files=$$($(BIN)/python -m tests.changed $(or $(BASE),main)); test -z "$$files" || $(BIN)/pytest $(WORKERS) -m "not long" $$files

test-all: $(VENV)/installed-dev ## run every test, the long ones included
	@$(BIN)/python tests/system_packages.py
	$(BIN)/pytest $(WORKERS)

# After an error that is no failure of a test, there is nothing to run again, which is an error too.
test-again: $(VENV)/installed-dev ## run the tests that failed once more, on one worker; more than five are refused
	@test "$$(cat .pytest_cache/v/cache/lastfailed 2>/dev/null | grep -c '": true')" -le 5 || { echo "more than five tests failed" >&2; exit 1; }
	$(BIN)/pytest --last-failed --last-failed-no-failures none

test-long: $(VENV)/installed-dev ## run the property tests with many more examples
	@$(BIN)/python tests/system_packages.py
	HYPOTHESIS_PROFILE=long $(BIN)/pytest $(WORKERS) -m hypothesis --timeout 3600

coverage: $(VENV)/installed-dev ## run every test, compare each room's branch coverage with its floor (FLOORS=--write-floors sets them)
	@$(BIN)/python tests/system_packages.py
	$(BIN)/python -m tests.room_coverage start $(COVERAGE)
	PYTHONPATH=$(CURDIR)/$(COVERAGE) $(BIN)/pytest $(WORKERS)
	$(BIN)/python -m tests.room_coverage report $(COVERAGE) $(FLOORS)

# Tools that read code without importing it find the package in a folder of links, without pip's finder.
BARE_PYTHON := PYTHONPATH=$$(echo $(CURDIR)/$(VENV)/lib/python*/site-packages) $(CURDIR)/$(BIN)/python -S
links:
	@rm -rf build/links && mkdir -p build/links/showhow
	@ln -s $(addprefix $(CURDIR)/,$(wildcard showhow/*.*) $(patsubst %/__init__.py,%,$(filter-out tests/% showhow/%,$(wildcard */__init__.py)))) build/links/showhow/

check: $(VENV)/installed-dev links ## format, lint, types, order of imports, links of the documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	cd build/links && $(BARE_PYTHON) $(CURDIR)/$(BIN)/lint-imports --config $(CURDIR)/pyproject.toml
	$(BIN)/mkdocs build --strict --quiet

docs: $(VENV)/installed-dev ## build the documentation in site/; a broken link fails
	$(BIN)/mkdocs build --strict

bench: $(VENV)/installed-dev ## measure; JSON lines (ONLY=name for one)
	@$(BIN)/python -m showhow.benchmarks $(ONLY)

rooms: $(VENV)/installed-dev links ## draw the picture of the rooms in ARCHITECTURE.md anew
	@$(BARE_PYTHON) docs/draw_rooms.py

notebook: $(VENV)/installed-dev ## run the notebook of the documentation, and write its outputs and its page
	@$(BIN)/python docs/run_notebook.py

shots: $(VENV)/installed ## choose the bundled shots of skills anew, from gold traces
	$(BIN)/python -m showhow.evaluation.scoring.bundled_shots

screenshots: $(VENV)/installed-dev ## draw the pictures of the documentation anew, by doing what its pages say
	SHOWHOW_DRAW_PICTURES=docs $(BIN)/pytest tests/browser/walks

lock: $(VENV)/installed-dev ## write the lock files anew from the pins of requirements.txt and requirements-dev.txt
	@for name in requirements requirements-dev; do \
		$(BIN)/uv pip compile --quiet --no-deps --generate-hashes --universal --python-version 3.11 --no-annotate \
			--custom-compile-command "make lock" $$name.txt --output-file $$name.lock; done

# No package but torch comes from PyTorch's index: --index-url replaces PyPI there, and --no-deps fetches nothing else. torch
# comes first and as its CPU build, since Linux would fetch gigabytes of CUDA; that build is in no lock, because PyTorch's
# index alone has it. All other packages, torch too on other systems, are wheels with the hashes of requirements.lock, so
# that no index, also none of the user's own configuration, can supply another file.
PIP := $(BIN)/pip install --quiet --no-deps
LOCKED := $(PIP) --only-binary :all: --require-hashes
PROJECT := $(PIP) --no-index --no-build-isolation --editable .

$(VENV)/installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Showhow needs Python 3.11 or newer; name one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test "$$(uname)" != Linux || $(PIP) torch==$(TORCH)+cpu 2>/dev/null \
		|| $(PIP) --index-url https://download.pytorch.org/whl/cpu torch==$(TORCH)+cpu 2>/dev/null \
		|| { echo "torch $(TORCH) could not be installed as its CPU build; install it in $(VENV) by hand, then run make again" >&2; exit 1; }
	@$(LOCKED) --requirement requirements.lock
	@$(PROJECT)
# Python asks pip's finder of the project last, and a folder `showhow` where it is started, such as a checkout, first.
	@sed -i.bak 's/sys.meta_path.append(_EditableFinder)/sys.meta_path.insert(0, _EditableFinder)/' $(VENV)/lib/python*/site-packages/__editable___showhow_*_finder.py
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements-dev.lock
	@$(LOCKED) --requirement requirements-dev.lock
	@touch $@
