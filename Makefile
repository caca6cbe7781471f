# Every target works from a fresh checkout; `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := 2.13.0
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: help run test test-long check bench screenshots rooms
help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(VENV)/installed ## install what is missing, prepare the default world, serve on http://127.0.0.1:8501
	@$(BIN)/showhow run

test: $(VENV)/installed-dev ## run every test, the real browser and PostgreSQL included
	@$(BIN)/python tests/system_packages.py
	$(BIN)/pytest -n 2 --dist loadgroup

test-long: $(VENV)/installed-dev ## run the property tests with many more examples
	@$(BIN)/python tests/system_packages.py
	HYPOTHESIS_PROFILE=long $(BIN)/pytest -n 2 --dist loadgroup -m hypothesis --timeout 3600

check: $(VENV)/installed-dev ## format, lint, types, order of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/installed-dev ## measure; JSON lines (ONLY=name for one)
	@$(BIN)/python -m benchmarks $(ONLY)

rooms: $(VENV)/installed-dev ## draw the picture of the rooms in ARCHITECTURE.md anew
	@$(BIN)/python docs/draw_rooms.py

screenshots: $(VENV)/installed-dev ## draw the README's pictures anew
	@$(BIN)/python -m tests.browser.screenshots

# torch comes first and as its CPU build: left to the resolver, Linux would fetch gigabytes of CUDA.
$(VENV)/installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Showhow needs Python 3.11 or newer; name one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet torch==$(TORCH)+cpu 2>/dev/null \
		|| $(BIN)/pip install --quiet --extra-index-url https://download.pytorch.org/whl/cpu torch==$(TORCH)+cpu 2>/dev/null \
		|| { test "$$(uname)" != Linux && $(BIN)/pip install --quiet torch==$(TORCH); } \
		|| { echo "torch $(TORCH) could not be installed as its CPU build; install it in $(VENV) by hand, then run make again" >&2; exit 1; }
	@$(BIN)/pip install --quiet -r requirements.txt
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements-dev.txt
	@$(BIN)/pip install --quiet -r requirements-dev.txt
	@touch $@
