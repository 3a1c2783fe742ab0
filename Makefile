# `make demo` and `make test` need Python 3.11 or newer, pip and make; they do the rest.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	|| { echo "Python 3.11 or newer is needed; say which: make PYTHON=python3.12"; exit 1; }

.PHONY: bench-model demo lock reference test test-long test-sdks test-extras test-frameworks test-frameworks-oldest bench-frameworks test-mcp test-stores test-beside check check-fast cov types snapshot truth docs pictures pictures-astrbot release package clean test-astrbot test-astrbot-old astrbot-plugin astrbot-release test-proxy

# An environment of its own, without the developers' tools: what the demo imports.
DEMO_ENV := .venv-demo

demo: $(DEMO_ENV)/.ready
	@$(DEMO_ENV)/bin/python -m tool_search demo

$(DEMO_ENV)/.ready: pyproject.toml
	@$(CHECK_PYTHON)
	@$(PYTHON) .ci/demo_environment.py $(DEMO_ENV)
	@touch $@

# Bytecode is written even where the environment says not to: the workers, and the processes
# that tests start, would each compile what another has compiled.
# Three workers for two cores: while one waits for a time-out or a process, the others compute.
# Each worker collects all tests, which takes seconds.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(3 * (os.cpu_count() or 1) // 2)')

test: $(READY)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -m "not long and not clients and not redis" -n $(WORKERS) --dist worksteal

test-long: $(READY)
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -m "not redis" --timeout=0 -n auto --dist worksteal
	$(MAKE) test-stores LONG=1
	$(MAKE) test-beside
	$(MAKE) test-extras
	$(MAKE) test-frameworks-oldest
	$(MAKE) test-mcp LONG=1
	$(MAKE) test-astrbot LONG=1
	$(MAKE) test-astrbot-old

# The stores under their contract, and Redis as Debian packages it: one node and a cluster of three,
# started by the tests, with workers and servers that are killed. LONG=1 has the large counts.
test-stores: $(READY)
	@command -v redis-server > /dev/null || { test "$$(id -u)" = 0 \
		&& apt-get update -qq && apt-get install -qq -y redis-server > /dev/null; } \
		|| { echo "make test-stores needs redis-server; as root: apt-get install redis-server"; exit 1; }
	$(BIN)/python -m pytest $(if $(LONG),--timeout=0,-m "not long") -n 2 --dist loadfile \
		tests/stores/redis tests/stores/test_contract.py

# The proxy before real clients, and the inspector in Chromium, which take seconds each.
# Claude Code and Codex are installed from npm; without npm their tests are skipped, and say so.
NODE_CLIENTS := .node-clients
NODE_PACKAGES := @anthropic-ai/claude-code @openai/codex

test-proxy: $(READY)
	@test -x $(NODE_CLIENTS)/node_modules/.bin/codex || { mkdir -p $(NODE_CLIENTS) \
		&& npm install --silent --no-audit --no-fund --prefix $(NODE_CLIENTS) $(NODE_PACKAGES) \
		&& node $(NODE_CLIENTS)/node_modules/@anthropic-ai/claude-code/install.cjs; } \
		|| echo "npm could not be reached: Claude Code and Codex are skipped"
	@command -v chromium chromium-browser > /dev/null \
		|| { test "$$(id -u)" = 0 && apt-get install -y -qq --no-install-recommends chromium fonts-noto-cjk > /dev/null; } \
		|| echo "chromium is not installed, and only root can do it: apt-get install chromium; the page's tests are skipped"
	$(BIN)/python -m pytest -m "not long" -n auto --dist worksteal tests/proxy tests/inspector

# The adapters and whole turns on the oldest SDKs that pyproject.toml allows; `test` has the newest.
SDKS_ENV := .venv-sdks
SDKS_READY := $(SDKS_ENV)/.ready

test-sdks: $(SDKS_READY)
	$(SDKS_ENV)/bin/python -m pytest -m "not long" -n auto --dist worksteal tests/adapters tests/runner

$(SDKS_READY): pyproject.toml
	$(PYTHON) -m venv $(SDKS_ENV)
	$(SDKS_ENV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(SDKS_ENV)/bin/python -m pip install --quiet --disable-pip-version-check --group test -e . \
		$$($(PYTHON) .ci/oldest_sdks.py)
	@touch $@

# Each extra alone, in an environment of its own, does what it promises; wheels for other systems.
# make test-extras EXTRAS="none cli" tries these; without, all but those of gigabytes, in minutes.
EXTRAS ?=

test-extras: $(READY)
	$(BIN)/python .ci/extras.py run $(EXTRAS)
	$(BIN)/python .ci/extras.py wheels $(EXTRAS)

# Whether pip installs this package beside the newest frameworks; asks the package index.
test-beside: $(READY)
	$(BIN)/python .ci/beside_frameworks.py

check: $(READY) types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The inner loop: what changed since a commit, HEAD by default, in seconds.
SINCE ?= HEAD

check-fast: $(READY)
	$(BIN)/python .ci/check_fast.py $(SINCE)

# The branches that `make test` does not take: of the core line by line, of the rest a file a line.
cov: $(READY)
	$(BIN)/python -m pytest -m "not long and not clients and not redis" -n $(WORKERS) --dist worksteal \
		--cov=tool_search --cov-branch --cov-report=
	$(BIN)/python -m coverage report --include='tool_search/core/*' --skip-covered --show-missing
	$(BIN)/python -m coverage report --omit='tool_search/core/*' --skip-covered

types: $(READY)
	$(BIN)/mypy -p tool_search
	$(BIN)/mypy --explicit-package-bases tests examples
	MYPYPATH=benchmarks:benchmarks/peers:benchmarks/hosts $(BIN)/mypy --explicit-package-bases benchmarks

# Compares requests, events, answers and rankings with a snapshot of another commit, which
# `python benchmarks/wire_snapshot.py write FOLDER` has written there.
snapshot: $(READY)
	@test -n "$(FOLDER)" || { echo "say which snapshot: make snapshot FOLDER=..."; exit 1; }
	$(BIN)/python benchmarks/wire_snapshot.py compare $(FOLDER)

# Tries each row on refusals against a server of its rule, and prints the rows by age;
# docs/extending/refusal.md has how to add one. make truth ARGS="--only xAI"; ARGS=--write: the table.
truth: $(READY)
	@PYTHONPATH=. $(BIN)/python benchmarks/truth.py $(ARGS)

# Measures how a model uses tool search; benchmarks/model.md has the options of ARGS.
bench-model: $(READY)
	@test -n "$(BASE_URL)" -a -n "$(MODEL)" \
		|| { echo "say which: make bench-model BASE_URL=... MODEL=... [KEY_ENV=...]"; exit 1; }
	$(BIN)/python benchmarks/bench_model.py --base-url '$(BASE_URL)' --model '$(MODEL)' \
		$(if $(KEY_ENV),--key-env '$(KEY_ENV)') $(ARGS)

# Writes the pages of docs/ that are made from the code.
reference: $(READY)
	$(BIN)/python .ci/reference.py

# The documentation site, in an environment of its own; a warning or a dead link fails.
DOCS_ENV := .venv-docs
DOCS_READY := $(DOCS_ENV)/.ready

docs: $(DOCS_READY)
	NO_MKDOCS_2_WARNING=1 $(DOCS_ENV)/bin/mkdocs build --strict  # --quiet would not count warnings

$(DOCS_READY): pyproject.toml
	$(PYTHON) -m venv $(DOCS_ENV)
	$(DOCS_ENV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(DOCS_ENV)/bin/python -m pip install --quiet --disable-pip-version-check --group docs
	@touch $@

# Draws docs/pictures from the figures of `tool-search demo --json`; a test fails if they are stale.
# The chat's come from tmux; the inspector's are screenshots, for which Chromium has to be installed.
pictures: $(READY)
	$(BIN)/python docs/pictures/draw.py
	$(BIN)/python docs/pictures/terminal.py
	$(BIN)/python docs/pictures/chat.py
	$(BIN)/python docs/pictures/inspector.py

# Writes the public address and the author into the project's files, then builds sdist and wheel:
# make release URL=https://... AUTHOR="Name <mail>"
release: $(READY)
	$(BIN)/python .ci/release.py --url "$(URL)" --author "$(AUTHOR)"
	$(MAKE) package

$(READY): pyproject.toml
	@$(CHECK_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		$(if $(LOCKED),--constraint constraints.txt) --group dev -e '.[all]'
	@touch $@

# The versions that this environment has; make LOCKED=1 test installs these, not the newest.
lock: $(READY)
	$(BIN)/python -m pip freeze --exclude-editable > constraints.txt

# The tests of the WebUI take the Chromium of the system, and are skipped without one.
# AstrBot needs Python 3.12 and an environment of its own, of about 760 MB. Each week's first run
# takes the newest release; make test-astrbot ASTRBOT=4.28.0 takes that one. LONG=1 has the large counts.
PYTHON312 ?= $(shell for python in python3.12 "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.12.*/bin/python; do \
	$$python -c "" 2> /dev/null && echo $$python && break; done)
ASTRBOT ?=
ASTRBOT_ENV := .venv-astrbot
ASTRBOT_READY := $(ASTRBOT_ENV)/.ready-$(or $(ASTRBOT),$(shell date +%G-%V))
# From before the permission guard and the move of the settings; it wants an mcp of its time.
ASTRBOT_OLD := 4.25.0
ASTRBOT_OLD_ENV := .venv-astrbot-old
ASTRBOT_OLD_READY := $(ASTRBOT_OLD_ENV)/.ready-$(ASTRBOT_OLD)
# Two processes: each file's bots are its own or its neighbours', and booting one takes seconds.
ASTRBOT_TESTS = -c tests/astrbot/pytest.ini $(if $(LONG),,-m "not long") -n 2 --dist loadfile tests/astrbot

test-astrbot: $(ASTRBOT_READY)
	$(ASTRBOT_ENV)/bin/python -m pytest $(ASTRBOT_TESTS)

test-astrbot-old: $(ASTRBOT_OLD_READY)
	$(ASTRBOT_OLD_ENV)/bin/python -m pytest -rs $(ASTRBOT_TESTS)

# Takes the pictures of AstrBot's WebUI, of a real bot in a real Chromium.
pictures-astrbot: $(ASTRBOT_READY)
	$(ASTRBOT_ENV)/bin/python docs/pictures/astrbot_webui.py

$(ASTRBOT_READY): pyproject.toml
	$(call astrbot,$(ASTRBOT_ENV),--upgrade astrbot$(addprefix ==,$(ASTRBOT)))

$(ASTRBOT_OLD_READY): pyproject.toml
	$(call astrbot,$(ASTRBOT_OLD_ENV),astrbot==$(ASTRBOT_OLD) 'mcp<2')

# $(1): the environment, $(2): what pip is to install there.
define astrbot
@test -n "$(PYTHON312)" \
	|| { echo "AstrBot needs Python 3.12; say which: make $(MAKECMDGOALS) PYTHON312=..."; exit 1; }
@test -x $(1)/bin/python || $(PYTHON312) -m venv $(1)
$(1)/bin/python -m pip install --quiet --disable-pip-version-check $(2) \
	pytest pytest-asyncio pytest-xdist playwright -e .
@$(1)/bin/python .ci/astrbot_version.py
@rm -f $(1)/.ready* && touch $@
endef

# Each framework in environments of its own, since they exclude each other: the newest release, and
# the oldest that is supported. Two rows of each: the packages, and the oldest of them.
# make test-frameworks FRAMEWORKS=langchain runs one.
FRAMEWORKS ?= langchain pydantic_ai openai_agents fastmcp litellm google_genai
FRAMEWORK_PACKAGES_langchain := langchain langchain-openai langchain-anthropic
FRAMEWORK_OLDEST_langchain := langchain==1.4.0 langchain-openai==1.3.0 langchain-anthropic==1.4.0
FRAMEWORK_PACKAGES_pydantic_ai := pydantic-ai-slim[anthropic,openai]
FRAMEWORK_OLDEST_pydantic_ai := pydantic-ai-slim[anthropic,openai]==2.0.0 'anthropic<1'
FRAMEWORK_PACKAGES_openai_agents := openai-agents
FRAMEWORK_OLDEST_openai_agents := openai-agents==0.10.0 openai==2.20.0
FRAMEWORK_PACKAGES_fastmcp := fastmcp openai
FRAMEWORK_OLDEST_fastmcp := fastmcp==3.1.0 'mcp<2' openai
FRAMEWORK_PACKAGES_litellm := litellm[proxy]
# CPython before 3.12 now and then ends LiteLLM's process with a segmentation fault, in the
# values of its context variables: python/cpython#148891.
FRAMEWORK_PYTHON_litellm = $(PYTHON312)
# Newer FastAPI lacks a function that this release imports.
FRAMEWORK_OLDEST_litellm := litellm[proxy]==1.96.0 fastapi==0.136.3
FRAMEWORK_PACKAGES_google_genai := google-genai
FRAMEWORK_OLDEST_google_genai := google-genai==1.51.0

test-frameworks: $(FRAMEWORKS:%=test-framework-%)

test-frameworks-oldest: $(FRAMEWORKS:%=test-framework-oldest-%)

test-framework-%: .venv-%/.ready
	$(if $(wildcard adapters/$*.py),.venv-$*/bin/python -m mypy --cache-dir=.venv-$*/mypy --follow-imports=silent -m tool_search.adapters.$*)
	.venv-$*/bin/python -m mypy --cache-dir=.venv-$*/mypy --follow-imports=silent examples/frameworks/with_$*.py
	.venv-$*/bin/python -m pytest $(FRAMEWORK_TESTS) tests/frameworks/test_$*.py

test-framework-oldest-%: .venv-%-oldest/.ready
	.venv-$*-oldest/bin/python -m pytest $(FRAMEWORK_TESTS) tests/frameworks/test_$*.py

FRAMEWORK_TESTS := -c tests/frameworks/pytest.ini -rs

.venv-%/.ready: pyproject.toml
	$(call framework,.venv-$*,--upgrade $(FRAMEWORK_PACKAGES_$*),$*)

.venv-%-oldest/.ready: pyproject.toml Makefile
	$(call framework,.venv-$*-oldest,$(FRAMEWORK_OLDEST_$*),$*)

# Each framework's own tool search, and ours inside it; writes benchmarks/frameworks.md.
# The development environment has the anthropic SDK.
BENCH_FRAMEWORKS := $(filter-out google_genai,$(FRAMEWORKS))

bench-frameworks: $(READY) $(BENCH_FRAMEWORKS:%=.venv-%/.ready)
	@test -n "$(DATA)" || { echo "say where the sets are: make bench-frameworks DATA=..."; exit 1; }
	$(BIN)/python benchmarks/frameworks.py anthropic_runner $(BENCH_FRAMEWORKS) --data '$(DATA)'

# $(1): the environment, $(2): what pip is to install there, $(3): the framework. One without an
# adapter has no extra.
define framework
$(or $(FRAMEWORK_PYTHON_$(3)),$(PYTHON)) -m venv $(1)
$(1)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
$(1)/bin/python -m pip install --quiet --disable-pip-version-check $(2) \
	--group test mypy types-PyYAML -e '.$(if $(wildcard adapters/$(3).py),[$(3)])'
@touch $(1)/.ready
endef

# MCP on the newest SDK and on 1.26, with the packaged servers of Python and Node, each in a folder
# of its own. LONG=1 runs the tests of the packaged servers on 1.26 too.
MCP_SERVERS_ENV := .venv-mcp-servers
MCP_NODE := .node-mcp
MCP_NODE_PACKAGES := $(addprefix @modelcontextprotocol/server-,everything filesystem memory)
MCP_PATHS := MCP_PYTHON_BIN=$(CURDIR)/$(MCP_SERVERS_ENV)/bin MCP_NODE_BIN=$(CURDIR)/$(MCP_NODE)/node_modules/.bin
# A gateway is tried with the clients of both SDKs and of FastMCP.
MCP_CLIENTS := MCP_OLD_PYTHON=$(CURDIR)/.venv-mcp-old/bin/python FASTMCP_PYTHON=$(CURDIR)/.venv-fastmcp/bin/python
MCP_TEST := -m pytest -n 2 --dist worksteal tests/mcp tests/sources

test-mcp: .venv-mcp-new/.ready .venv-mcp-old/.ready .venv-fastmcp/.ready $(MCP_SERVERS_ENV)/.ready $(MCP_NODE)/.ready
	$(MCP_PATHS) $(MCP_CLIENTS) .venv-mcp-new/bin/python $(MCP_TEST)
	$(if $(LONG),$(MCP_PATHS)) .venv-mcp-old/bin/python $(MCP_TEST)

.venv-mcp-new/.ready: pyproject.toml
	$(call mcp_env,.venv-mcp-new,--upgrade mcp google-re2)

.venv-mcp-old/.ready: pyproject.toml
	$(call mcp_env,.venv-mcp-old,'mcp==1.26.*')

define mcp_env
$(PYTHON) -m venv $(1)
$(1)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
$(1)/bin/python -m pip install --quiet --disable-pip-version-check $(2) --group test \
	-e '.[cli,openai,mcp]'
@touch $@
endef

$(MCP_SERVERS_ENV)/.ready:
	$(PYTHON) -m venv $(MCP_SERVERS_ENV)
	$(MCP_SERVERS_ENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		mcp-server-time mcp-server-git
	@touch $@

$(MCP_NODE)/.ready:
	@command -v npm > /dev/null || { echo "make test-mcp needs Node with npm"; exit 1; }
	@mkdir -p $(MCP_NODE)
	npm install --silent --no-audit --no-fund --prefix $(MCP_NODE) $(MCP_NODE_PACKAGES)
	@touch $@

astrbot-plugin: $(READY)
	@$(BIN)/python .ci/astrbot_plugin.py

# The plugin as a folder to push, and its zip: make astrbot-release URL=https://github.com/owner/name AUTHOR=owner
astrbot-release: $(READY)
	@$(BIN)/python .ci/astrbot_release.py --url "$(URL)" --author "$(AUTHOR)"

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
	rm -rf $(VENV) $(DEMO_ENV) $(DOCS_ENV) $(SDKS_ENV) $(ASTRBOT_ENV) $(ASTRBOT_OLD_ENV) .venv-mcp-* $(MCP_NODE) build dist *.egg-info \
		$(FRAMEWORKS:%=.venv-%) $(FRAMEWORKS:%=.venv-%-oldest)
