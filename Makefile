# Every target creates .venv and installs what it needs on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all check docs bench reproduce clean

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Privug needs Python 3.11 or newer; try: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

# One stamp file per set of extras: a target is up to date until pyproject.toml changes.
$(STAMP)-core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(STAMP)-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,report,pymc,numpyro,opendp,dask]'
	touch $@ $(STAMP)-core

$(STAMP)-bench: pyproject.toml | $(STAMP)-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,report,pymc,numpyro,opendp,dask]'
	touch $@

demo: $(STAMP)-core
	$(BIN)/privug demo

test: $(STAMP)-dev
	$(BIN)/python -m pytest -n auto -m "not slow"

test-all: $(STAMP)-dev
	$(BIN)/python -m pytest -n auto

check: $(STAMP)-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(STAMP)-dev
	$(BIN)/python -m pytest tests/test_docs.py
	$(BIN)/mkdocs build --quiet --strict

bench: $(STAMP)-bench
	$(BIN)/python benchmarks/run.py

reproduce: $(STAMP)-core
	$(BIN)/python experiments/run.py

clean:
	rm -rf $(VENV) build dist site
