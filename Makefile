# Two commands on a fresh machine with Python 3.11, pip and make:
#   make quickstart   translate, index, search, rerank and score the embedded sample, and show the report
#   make test         the tests
# Both make .venv first and install the pinned set into it; a second run starts in seconds.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
export HF_HUB_OFFLINE ?= 1

.PHONY: quickstart test lint types clean

quickstart: $(VENV)/.runtime
	$(BIN)/beirnl run experiments/quickstart.toml

test: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(VENV)/.dev
	$(BIN)/mypy

$(VENV)/.runtime: requirements/cpu-py311.lock requirements/models.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
	  { echo "error: the pinned set is for Python 3.11; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	@echo "installing the pinned set into $(VENV) (a few minutes, 4 GB; once)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements/cpu-py311.lock -r requirements/models.lock
	@$(BIN)/python -c 'import torch' 2>/dev/null || { echo "torch is a CUDA build here: adding its libraries"; \
	  $(BIN)/python -m pip install --quiet --constraint requirements/cpu-py311.lock torch; }
	$(PIP) --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev-py311.lock
	$(PIP) -r requirements/dev-py311.lock
	@touch $@

clean:
	rm -rf $(VENV) workspace
