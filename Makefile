# Commands of the repository. `make` or `make help` prints this list.
SHELL := /bin/bash
PY := .venv/bin/python
T ?= tests
K ?=

.PHONY: help setup engine demo stop test test-all check unit format lock bench-control screenshots clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

setup: .venv/.ready  ## the virtual environment .venv with everything pinned

.venv/.ready: requirements/dev.lock.txt pyproject.toml scripts/setup
	@scripts/setup

engine: setup  ## the embedded Kubernetes, built once per source and kept in the user's cache
	@$(PY) -m podwarden.simulator.engine_build

demo: setup  ## a running PodWarden on simulated nodes, in the background
	@$(PY) -m podwarden.cli demo

stop: setup  ## stops the demo
	@$(PY) -m podwarden.cli demo --stop

check: setup  ## format, lint, types, import contracts, unit tests; under a minute
	@scripts/check

unit: setup  ## unit tests alone
	@$(PY) -m pytest tests/unit tests/architecture

test: setup engine  ## what CI runs: everything, long matrices by a seeded sample
	@scripts/test

test-all: setup engine  ## the full matrices
	@PODWARDEN_TEST_ALL=1 scripts/test

bench-control: setup engine  ## latency, rates and cost of the control plane (QUICK=1: under a minute)
	@$(PY) -m bench.control

screenshots: setup  ## a picture of each page, light, dark and on a phone, into build/screenshots
	@scripts/screenshots

format: setup  ## formats the code
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix -q .

lock:  ## renews the pinned dependencies (needs uv)
	uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --extra dev pyproject.toml -o requirements/dev.lock.txt
	uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 pyproject.toml -o requirements/podwarden.lock.txt

clean:  ## removes what was built here; caches outside the tree stay
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
