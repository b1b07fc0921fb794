# Every target creates .venv and installs what it needs on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all check docs bench golden reproduce soak clean

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Privug needs Python 3.11 or newer; try: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

# One stamp file per set of extras: a target is up to date until pyproject.toml changes.
$(STAMP)-core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(STAMP)-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,report,pymc,numpyro,opendp,dask,sql,web,native]'
	touch $@ $(STAMP)-core

$(STAMP)-bench: pyproject.toml | $(STAMP)-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,report,pymc,numpyro,opendp,dask,sql,web,native]'
	touch $@

demo: $(STAMP)-core
	$(BIN)/privug demo

# Neighbours share what a module computes once, so workers take whole stretches of tests; bytecode is kept, because
# each worker and each process that a test starts would compile all of Privug anew.
test test-all: export PYTHONDONTWRITEBYTECODE =
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

test: $(STAMP)-dev
	$(PYTEST) -m "not slow"

test-all: $(STAMP)-dev
	$(PYTEST)

check: $(STAMP)-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(STAMP)-dev
	$(BIN)/python -m pytest tests/test_docs.py
	$(BIN)/mkdocs build --quiet --strict

bench: $(STAMP)-bench
	$(BIN)/python benchmarks/run.py

# Whether any answer differs from the golden record, to the bit.
golden: $(STAMP)-dev
	$(BIN)/python benchmarks/golden.py

reproduce: $(STAMP)-dev
	$(BIN)/privug reproduce

# Random questions while things go wrong around them; at most ten minutes.
SECONDS ?= 600
soak: $(STAMP)-dev
	$(BIN)/python tools/soak.py --seconds $(SECONDS)

clean:
	rm -rf $(VENV) build dist site reproduction
