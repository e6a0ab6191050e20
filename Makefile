# Every target makes the virtual environment it needs. `make demo` and `make test` are all a newcomer has to know.
#   make demo [ARGS=--once]   make test   make lint   make format   make types   make clean
#   make screenshots: every page of the queue, into docs/screenshots/; needs a Chromium
#   make chaos [TABLE=FILE]: every fault of docs/reliability.md, done on purpose; the table of figures goes to the file
#   make bench [PEERS=1] [SCALE=0.1] [INTO=docs/performance.md]: the table of docs/performance.md; PEERS=1 puts other queues beside
#   make growth [SCALE=0.01] [INTO=docs/performance.md]: how cost grows with jobs and workers
#   both: SERVER=/path/to/redis-server measures on that one, and not on the embedded
# PYTHON=… chooses the Python (3.11 or newer), VENV=… the environment's folder, ARGS=… goes to the demo or to pytest.

PYTHON ?= python3
VENV ?= .venv
TABLE ?= build/chaos.md
SCALE ?= 1
MEASURED := --scale $(SCALE) $(if $(SERVER),--server $(SERVER)) $(if $(INTO),--into $(INTO)) $(ARGS)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
export PYTHONDONTWRITEBYTECODE ?= 1

.PHONY: demo test chaos bench growth screenshots lint format types clean
.DELETE_ON_ERROR:

demo: $(VENV)/.for-demo
	@$(BIN)/python manage.py demo $(ARGS)

test: lint types
	$(BIN)/python -m pytest $(ARGS)

chaos: $(VENV)/.for-dev
	$(BIN)/python -m pytest tests/faults tests/field -m '' --table $(TABLE) $(ARGS)

bench: $(VENV)/.for-$(if $(PEERS),peers,dev)
	$(BIN)/python -m tests.benchmarks $(if $(PEERS),--peers) $(MEASURED)

growth: $(VENV)/.for-dev
	$(BIN)/python -m tests.benchmarks.growth $(MEASURED)

screenshots: $(VENV)/.for-dev
	$(BIN)/python -m pytest tests/browser/screenshots.py $(ARGS)

lint: $(VENV)/.for-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.for-dev
	$(BIN)/mypy

format: $(VENV)/.for-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .demo build dist

$(VENV)/.for-demo: pyproject.toml $(VENV)/.made
	$(PIP) --editable '.[demo]'
	@touch $@

$(VENV)/.for-dev: pyproject.toml $(VENV)/.made
	$(PIP) --editable '.[dev]'
	@touch $@

$(VENV)/.for-peers: pyproject.toml $(VENV)/.made
	$(PIP) --editable '.[dev,bench]'
	@touch $@

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "priqueue needs Python 3.11 or newer, and '$(PYTHON)' is not. Name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "'$(PYTHON)' cannot make a virtual environment: install its venv module, or name another one with PYTHON=…"; exit 1; }
	@touch $@
