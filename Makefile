# `make demo` and `make test` are all a fresh machine with Python and make needs: each does its own set-up first.
# Set-up talks on stderr, so `make -s demo` leaves the result alone on stdout.
.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
export PYTHON
# Arguments for the drill: make demo DRILL_ARGS='--fault saturation'
DRILL_ARGS ?=
# Arguments for pytest: make test PYTEST_ARGS='-k plan'
PYTEST_ARGS ?=
# QUICK=1 makes a benchmark short enough to try, too short to quote.
QUICK ?=
export QUICK
# Folders that the checks read; a folder that is not there yet is left out.
CHECKED := $(wildcard src tests benchmarks scripts)
# Their folders are named after a version, which is no package name: mypy takes them one at a time.
TRITON_MODELS := $(wildcard src/latencydoctor/stack/triton_model/*/*/model.py benchmarks/instant_model/*/model.py)

.PHONY: help setup tools setup-tests setup-venv demo test coverage check lint types contracts wheel format \
        bench-gateway bench-startup bench-diagnose bench-forecast bench-int8 bench-judge bench-logs drills \
        accuracy accuracy-logs race mutation crash-matrix check-vllm check-gpu clean distclean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' Makefile

setup: ## everything the other targets need: .venv, packages, Prometheus, Alertmanager
	@sh scripts/setup.sh stack

tools: setup

setup-tests:
	@sh scripts/setup.sh tests

setup-venv:
	@sh scripts/setup.sh venv

demo: setup ## the incident on a real Triton: diagnosed, fixed, verified (about two minutes)
	@mkdir -p reports
	@$(BIN)/latencydoctor drill flash-crowd $(if $(QUICK),--quick) --report reports/flash-crowd.md $(DRILL_ARGS)

test: setup-tests ## all tests, with branch coverage over child processes
	@$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory coverage

coverage: ## the coverage report of the last `make test`; fails below fail_under in pyproject.toml
	@set -- .coverage.*; test ! -e "$$1" || $(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: lint types contracts wheel ## what a change must pass beside the tests

lint: setup-venv ## ruff: format and rules
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)

types: setup-venv ## mypy, strict
	$(BIN)/mypy
	@for model in $(TRITON_MODELS); do \
	    $(BIN)/mypy --no-namespace-packages --no-explicit-package-bases $$model || exit 1; \
	done

contracts: setup-venv ## which way imports go, and the size of modules and functions
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -q tests/architecture/test_budget.py

wheel: setup-venv ## build the wheel from the sdist and try it in a clean environment
	$(BIN)/python scripts/check_wheel.py

format: setup-venv ## ruff: rewrite
	$(BIN)/ruff format $(CHECKED)
	$(BIN)/ruff check --fix $(CHECKED)

bench-gateway: setup ## what the gateway adds to a call, and the rate it holds on cache hits
	@$(BIN)/python -m benchmarks.gateway

bench-startup: setup-venv ## `latencydoctor --help` beside a two-command Typer program
	@$(BIN)/python -m benchmarks.startup

bench-diagnose: setup ## a diagnosis from a bundle and from Prometheus servers of many series, beside its bare queries
	@$(BIN)/python -m benchmarks.diagnose

bench-logs: setup-venv ## the log pyramid beside ripgrep: SIZE MiB of mixed logs (1024; QUICK=1: 64), memory, cost against size
	@$(BIN)/python -m benchmarks.logs

accuracy-logs: setup-venv ## how often log lines are classed right: a generated corpus, SEEDS, LINES benign lines (QUICK=1: 200,000)
	@$(BIN)/python -m benchmarks.log_accuracy

drills: setup ## how often each fault done to the real stack is diagnosed right (RUNS=3 of each, FAULTS=a,b)
	@$(BIN)/python -m benchmarks.drills

accuracy: setup ## how often the cause is right: the fault matrix in a real Prometheus, SEEDS=5 times each (QUICK=1: every fifth case, once)
	@$(BIN)/python -m benchmarks.accuracy

bench-int8: setup ## the encoder rebuilt in INT8: size, speed on one thread, loss of accuracy, a bad calibration refused
	@$(BIN)/python -m benchmarks.int8

bench-forecast: setup ## forecasts of p99 held against a real Triton: settings x rates on simulated accelerators (16 minutes)
	@$(BIN)/python -m benchmarks.forecast

race: setup ## the matrix' vLLM cases to two other tools at pinned versions and to this one (QUICK=1: seven of them)
	@$(BIN)/python -m benchmarks.race

bench-judge: setup-venv ## the judge of a canary: false rollbacks, and regressions found in time (simulated; QUICK=1)
	@$(BIN)/python -m benchmarks.judge

mutation: setup-venv ## the faults put into the deciding code that its unit tests notice (QUICK=1: only walk.py)
	@$(BIN)/python -m benchmarks.mutation

crash-matrix: setup ## kill -9 at every effect of every fix and 50 times on the whole stack: old or new state, exactly (QUICK=1, JOBS)
	@$(BIN)/python -m benchmarks.crash_matrix

check-vllm: setup ## an overloaded real vLLM: what diagnose reads beside its own metrics page (installs 3.5 GB once)
	@$(BIN)/python -m benchmarks.vllm_overload

check-gpu: ## what only an NVIDIA card can show, in under four minutes; needs the driver and Python, nothing installed
	@$${PYTHON:-python3} scripts/gpu_check.py

clean: ## remove what builds and tests leave
	rm -rf dist build htmlcov .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests scripts -name __pycache__ -prune -exec rm -rf {} +

distclean: clean ## and the environment and fetched servers as well
	rm -rf .venv .cache
