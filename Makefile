# Works on a machine with nothing but Python (3.11 or newer) and make. `make help` lists the targets.
PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
BIN := .venv/bin
# Twice as many as there are cores: many tests wait.
export WORKERS ?= 4
# Slipway is started hundreds of times by its tests: compiled once, not each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install demo demo-fast test test-all check bench format clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

install: .venv/installed  ## what everything below needs, into .venv

.venv/installed: requirements.lock pyproject.toml | $(UV)
	@test -x $(BIN)/python || $(UV) venv --quiet --python $(PYTHON) .venv
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

.uv/bin/uv:
	@echo "bringing uv into .uv"
	@$(PYTHON) -m venv .uv 2>/dev/null || (apt-get -qq update && apt-get -qq -y install python3-venv && $(PYTHON) -m venv .uv)
	@.uv/bin/pip install --quiet uv

demo: install  ## a real Kubernetes cluster's whole life on this machine, with a kill -9 in the middle; needs root
	@test "$$(id -u)" != 0 || lab/hosts/install
	@$(BIN)/python demo/demo.py

demo-fast: install  ## the same on simulated machines, in seconds, anywhere
	@$(BIN)/python demo/demo.py --simulated

test: install  ## all tests but the groups below; one life of a real cluster where we are root
	@test "$$(id -u)" != 0 || (lab/hosts/install && lab/scripts/install && lab/haproxy/install && lab/openstack/install)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.rerun -q -n $(WORKERS) --dist worksteal -m 'not group' --ignore tests/lab
	$(BIN)/python -m tests.rerun -v -n 1 -m 'not group' tests/lab

test-all: $(if $(GROUP),install,test)  ## `make test` and all groups, one after the other; GROUP=upgrade: that one alone
	@$(BIN)/python -m tests.groups $(GROUP)

check: install  ## format, types, layers, unit tests on SQLite: the inner loop
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -q -n $(WORKERS) --hypothesis-profile=quick -m 'not slow' -k 'not postgresql' tests/unit

bench: install  ## the figures, as ratios against the peer's
	@$(BIN)/python -m bench

format: install  ## make the source look as it should
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

requirements.lock: pyproject.toml | $(UV)
	$(UV) pip compile --quiet pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
		--custom-compile-command "make requirements.lock" -o requirements.lock

clean:  ## remove what the targets above made
	rm -rf .venv .uv .mypy_cache .ruff_cache .pytest_cache .hypothesis
