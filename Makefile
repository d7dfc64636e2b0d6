# Everything a developer runs; continuous integration calls the same targets.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
SEEDS := 10000
COUNT := 40
LANES := --dist loadfile --no-loadscope-reorder -n
FAST := $(BIN)/python -m pytest -q $(LANES) 3 -m "not slow and not spark and not long"

.DEFAULT_GOAL := help
.PHONY: help setup java demo test long soak mutation fast check bench figures docs release-check golden clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with the pinned tools and the package, editable

$(STAMP): pyproject.toml requirements-dev.lock scripts/setup.sh
	@scripts/setup.sh $(VENV)
	@touch $@

java: ## check for Java 17 or newer, and install it where that is allowed
	@scripts/java.sh

demo: setup java ## run the demonstration
	$(BIN)/millrace demo

test: setup java ## run every test, as continuous integration does
	$(BIN)/python -m pytest $(LANES) 5 -m "not long"

long: setup java ## run the tests that take minutes each: kills at random moments; properties with ten times the examples
	$(BIN)/python -m pytest -m long
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest $(LANES) 2 tests/property

soak: setup ## play SEEDS=10000 scenarios of the simulator on all cores, and say what they covered
	$(BIN)/python -m tests.simulation --seeds $(SEEDS)

mutation: setup ## make COUNT=40 slips in each of four rooms of the kernel, and say which of them no test notices
	$(BIN)/python -m tests.mutation --count $(COUNT)

fast: setup ## run the tests that need neither Spark nor patience
	$(FAST)

check: setup ## format, lint, types, imports, fast tests; then the longest files and functions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/unit/test_rooms.py
	$(FAST)
	$(BIN)/python scripts/longest.py src

bench: setup java ## measure ourselves and our peers
	$(BIN)/python -m bench

figures: setup ## make the papers' figures again, and hold their claims to them
	$(BIN)/millrace figures all --output docs/figures

docs: setup ## build the documentation as a site in site/; a dead link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

release-check: setup ## build the wheel and the sdist, and try both in an environment that has nothing else
	$(BIN)/python scripts/release_check.py

golden: setup java ## rewrite the golden files; read the diff like code
	$(BIN)/python -m pytest tests/golden tests/unit/api/test_function_reference.py tests/e2e/test_cookbook.py --rewrite

clean: ## remove what can be made again
	rm -rf $(VENV) build dist site demo-output figures-output .hypothesis .mypy_cache .pytest_cache .ruff_cache spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
