# `make demo` and `make test` need nothing but a Python of 3.11 or newer: what they use is installed into .venv.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check format bench clean

# The first interpreter that runs and is new enough; a name alone may be a stub that runs nothing.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$python" && break; done)

BIN := .venv/bin
READY := .venv/.installed
PACKAGES := dataflow loaders connectors bench
ARGS ?=

help:
	@echo "make demo     train on an embedded data set, stop half-way, go on on other ranks, report"
	@echo "make test     run the tests                  (ARGS='tests/order -k cursor' for some of them)"
	@echo "make check    format, lint, types, layers"
	@echo "make format   bring the code into shape"
	@echo "make bench    run the benchmark              (ARGS='--help' for its options)"
	@echo "make clean    remove .venv, caches and built files"

demo: $(READY)
	$(BIN)/dataflow demo $(ARGS)

test: $(READY)
	$(BIN)/python -m pytest -n 2 $(ARGS)

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/dataflow bench $(ARGS)

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find $(PACKAGES) tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Written last, so that an installation that was interrupted is begun again.
$(READY): pyproject.toml constraints.txt
	@if [[ -z "$(PYTHON)" ]]; then \
		echo "no Python of 3.11 or newer was found: name one, as in 'make test PYTHON=/path/to/python3.11'" >&2; exit 1; fi
	[[ -x $(BIN)/python ]] || "$(PYTHON)" -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@
