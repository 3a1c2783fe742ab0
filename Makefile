# `make demo` and `make test` need Python 3.11 or newer, pip and make; they do the rest.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-long check types package clean test-astrbot test-astrbot-old astrbot-plugin

demo: $(READY)
	@$(BIN)/tool-search demo

test: $(READY)
	$(BIN)/python -m pytest -m "not long" -n auto --dist worksteal

test-long: $(READY)
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest --timeout=0 -n auto --dist worksteal

check: $(READY) types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy does not follow an editable install's mapping: it is shown the installed layout as links.
types: $(READY)
	@rm -rf .typecheck && mkdir -p .typecheck/tool_search
	@ln -s $(CURDIR)/tool_search/* $(CURDIR)/adapters $(CURDIR)/i18n .typecheck/tool_search/
	@ln -s $(CURDIR)/tests $(CURDIR)/examples $(CURDIR)/benchmarks .typecheck/
	cd .typecheck && ../$(BIN)/mypy --config-file ../pyproject.toml -p tool_search
	cd .typecheck && ../$(BIN)/mypy --config-file ../pyproject.toml --explicit-package-bases \
		tests examples
	cd .typecheck && MYPYPATH=benchmarks:benchmarks/peers ../$(BIN)/mypy \
		--config-file ../pyproject.toml --explicit-package-bases benchmarks

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; say which: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev -e '.[all]'
	@touch $@

# AstrBot needs Python 3.12 and an environment of its own, of about 760 MB; the newest release.
PYTHON312 ?= $(shell for python in python3.12 "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.12.*/bin/python; do \
	$$python -c "" 2> /dev/null && echo $$python && break; done)
ASTRBOT := .venv-astrbot
ASTRBOT_READY := $(ASTRBOT)/.ready

test-astrbot: $(ASTRBOT_READY)
	$(ASTRBOT)/bin/python -m pytest -c tests/astrbot/pytest.ini tests/astrbot

# One release from before the permission guard and the move of the settings; by hand. It wants
# an mcp of its time.
test-astrbot-old:
	@test -x $(ASTRBOT)-old/bin/python || $(PYTHON312) -m venv $(ASTRBOT)-old
	$(ASTRBOT)-old/bin/python -m pip install --quiet --disable-pip-version-check \
		astrbot==4.25.0 'mcp<2' pytest pytest-asyncio -e .
	$(ASTRBOT)-old/bin/python -m pytest -c tests/astrbot/pytest.ini $(addprefix tests/astrbot/test_, \
		commands.py conversations.py life.py providers.py)

$(ASTRBOT_READY): pyproject.toml
	@test -n "$(PYTHON312)" \
		|| { echo "AstrBot needs Python 3.12; say which: make test-astrbot PYTHON312=..."; exit 1; }
	@test -x $(ASTRBOT)/bin/python || $(PYTHON312) -m venv $(ASTRBOT)
	$(ASTRBOT)/bin/python -m pip install --quiet --disable-pip-version-check \
		astrbot pytest pytest-asyncio -e .
	@touch $@

astrbot-plugin: $(READY)
	@$(BIN)/python .ci/astrbot_plugin.py

# The wheel is built from the sdist: a checkout's build folder may hold what is gone.
package: $(READY)
	@rm -rf dist && $(BIN)/python -m build --outdir dist . > /dev/null
	@$(BIN)/python -m zipfile -l dist/*.whl | awk 'NR > 1 {split($$1, part, "/"); print part[1]}' \
		| grep -v -e '^tool_search$$' -e '^tool_search_middleware-.*dist-info$$' \
		&& { echo "the wheel installs more than tool_search"; exit 1; } || true
	@$(PYTHON) -m venv dist/venv && dist/venv/bin/python -m pip install --quiet dist/*.whl
	@cd dist && venv/bin/python -c "import tool_search.i18n as t; print(t.text('search.no_match', 'zh-CN'))"
	@rm -rf dist/venv

clean:
	rm -rf $(VENV) $(ASTRBOT) $(ASTRBOT)-old .typecheck build dist *.egg-info
