# `make demo` and `make test` need Python 3.11 or newer, pip and make; they do the rest.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-long check types clean

demo: $(READY)
	@$(BIN)/tool-search demo

test: $(READY)
	$(BIN)/python -m pytest -m "not long" -n auto --dist worksteal

test-long: $(READY)
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n auto --dist worksteal

check: $(READY) types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy does not follow an editable install's mapping: it is shown the installed layout as links.
types: $(READY)
	@rm -rf .typecheck && mkdir -p .typecheck/tool_search
	@ln -s $(CURDIR)/tool_search/* $(CURDIR)/adapters $(CURDIR)/i18n .typecheck/tool_search/
	@ln -s $(CURDIR)/tests $(CURDIR)/examples $(CURDIR)/benchmarks .typecheck/
	cd .typecheck && ../$(BIN)/mypy --config-file ../pyproject.toml -p tool_search

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; say which: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev -e '.[all]'
	@touch $@

clean:
	rm -rf $(VENV) .typecheck build dist *.egg-info
