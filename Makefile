# `make demo` and `make test` work on a fresh clone: Python 3.11+, Java 17+ and the package registries are all they need.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
# what `make test` asks: TESTS=all, every test with all its rounds; TESTS=gate, these and the short proofs of .ci/run
TESTS       := loop
PYTEST_loop := $(PYTEST) -m "smoke or not (spark or slow)"
PYTEST_all  := INLET_ALL_ROUNDS=1 $(PYTEST) -m "not proof"
PYTEST_gate := INLET_ALL_ROUNDS=1 INLET_STREAMS=$${INLET_STREAMS:-800} INLET_PROOF=1 INLET_FUZZ_SECONDS=$${INLET_FUZZ_SECONDS:-15} \
               INLET_KILLS=$${INLET_KILLS:-4} INLET_KAFKA_KILLS=$${INLET_KAFKA_KILLS:-1} $(PYTEST) -m "gate or not proof"
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo demo-kafka test test-all lint bench proof soak notebooks docs clean

help:                   ## these targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

demo: $(READY)          ## five kinds of feeds from bytes to gold, with answers
	@$(BIN)/python -m infra.local.demo

demo-kafka: $(READY)    ## the shop of the demo over a Kafka broker, followed in micro-batches
	@$(BIN)/python -m infra.local.demo_kafka

test: $(READY)          ## the six-minute loop: the core, and with Spark each step, guarantee and family of codecs once
	@$(or $(PYTEST_$(TESTS)),$(error TESTS is loop, all or gate))

test-all: $(READY)      ## every test but for `make proof` (the core alone, without Java: .venv/bin/pytest -m "not spark")
	@$(PYTEST_all)

lint: $(READY)          ## ruff and mypy: format, errors, bugs, imports, old syntax, types; the width of the macros
	@$(BIN)/python -m ruff format --check -q pipelines infra tests notebooks/*.py
	@$(BIN)/python -m ruff check pipelines infra tests notebooks
	@$(BIN)/python -m mypy
	@! grep -rnE ".{121,}" dbt/macros dbt/tests --include=*.sql

bench: $(READY)         ## ratios measured in one run, written to docs/performance.md
	@$(BIN)/python -m tests.bench

proof: $(READY)         ## tests that take minutes: PostgreSQL as judge, crashes between any two steps, kill -9 while others read
	@INLET_PROOF=1 $(PYTEST) -m proof

soak: $(READY)          ## the same with 500 kills, and 50,000 random streams (hours)
	@INLET_SOAK=1 INLET_ALL_ROUNDS=1 $(BIN)/python -m pytest -m proof

notebooks: $(READY)     ## execute the walk-throughs on the demo's lakehouse, write docs/notebooks/
	@$(BIN)/python -m infra.local.notebooks

docs: $(READY)          ## generated pages: docs/change_table.md, docs/rejects.md
	@$(BIN)/python -m infra.local.docs

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) infra/local/preflight.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the locked packages into $(VENV) (a minute or two the first time) ..."
	@if $(PIP) install -q "$$(grep ^uv== requirements.lock)" 2>$(VENV)/.no_uv; then \
	  $(BIN)/uv pip sync -q --compile-bytecode -p $(BIN)/python requirements.lock && \
	  $(BIN)/uv pip install -q -p $(BIN)/python --no-deps --no-build-isolation -e .; \
	else \
	  echo "uv cannot be had, pip takes its place and longer: $$(tail -1 $(VENV)/.no_uv)"; \
	  grep -v ^uv== requirements.lock > $(VENV)/.lock && $(PIP) install -q -r $(VENV)/.lock && \
	  $(PIP) install -q --no-deps --no-build-isolation -e .; \
	fi
	@echo "Resolving Spark's jars, compiling what decodes ..."
	@$(BIN)/python -m inlet.commands.warm & compiling=$$!; $(BIN)/python -m inlet.lake.archive && wait $$compiling
	@touch $@

clean:                  ## remove what the demo made
	@rm -rf lakehouse landing build
