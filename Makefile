# Every target sets up what it needs; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
# Start-up is what this tool sells: an environment that forbids bytecode
# would make every start compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test check lint types imports coverage bench wheel docs \
        cluster-test cluster-up chaos walk image clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- environments -----------------------------------------------------------
$(VENV)/.run: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --compile -e .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.run
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    -e '.[agents,cli,kubernetes,nvml]' --group dev
	@touch $@

# --- use --------------------------------------------------------------------
run: $(VENV)/.run ## set up and print the labels of this host
	@$(BIN)/nfd scan

# --- quality ----------------------------------------------------------------
test: $(VENV)/.dev ## set up and run the tests (all but the control plane's)
	$(BIN)/coverage run -m pytest -m 'not cluster and not wheel' $(PYTEST_ARGS)

cluster-test: $(VENV)/.dev ## run the tests on a real Kubernetes control plane (needs Go)
	$(BIN)/python -m pytest -m cluster $(PYTEST_ARGS)

check: lint types imports coverage ## format, lint, types, architecture, coverage of the last `make test`

lint: $(VENV)/.dev ## ruff: format and rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev ## mypy, strict
	$(BIN)/mypy

imports: $(VENV)/.dev ## the architecture, as import-linter contracts
	$(BIN)/lint-imports

coverage: $(VENV)/.dev ## branch coverage of the last `make test`
	@test -f .coverage || $(MAKE) test
	$(BIN)/coverage report

wheel: $(VENV)/.dev ## build the wheel, install it alone, scan a recorded host with it
	$(BIN)/python -m pytest -m wheel $(PYTEST_ARGS)

bench: $(VENV)/.dev ## measure, as ratios beside the budgets
	$(BIN)/python -m benchmarks.run

docs: $(VENV)/.dev ## build the manual into site/
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	$(BIN)/mkdocs build --strict

# --- a real cluster ---------------------------------------------------------
cluster-up: $(VENV)/.dev ## start a control plane on loopback and print its kubeconfig
	$(BIN)/python -m tests.cluster.up

image: $(VENV)/.dev ## build the image, check it and run its commands inside it
	sh deploy/image/build.sh
	NFD_IMAGE_ROOT=build/image/$$(dpkg --print-architecture) \
	    $(BIN)/python -m pytest -m image tests/image $(PYTEST_ARGS)

walk: $(VENV)/.dev ## walk from bare nodes to pods with GPUs on a real control plane, with times
	@$(BIN)/python -m tests.cluster.walk

chaos: $(VENV)/.dev ## break a real control plane under two masters; count wrong removals
	$(BIN)/python -m tests.cluster.chaos $(CHAOS_ARGS)

clean: ## remove what was built here
	rm -rf $(VENV) dist build site .coverage .mypy_cache .ruff_cache .pytest_cache
