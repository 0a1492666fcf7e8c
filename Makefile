# Everything sets itself up: Python 3.11 or newer, pip and make are enough. No root needed.
#   make demo    see a run survive kill -9, in about a minute
#   make console open the console on a store with everything that can wait for a person
#   make quick   the tests for every save: no processes, no servers, a minute or so
#   make test    every test but the long ones, under fifteen minutes on two cores
#   make check   lint, format, types, layers, and `surefoot lint` on ourselves
#   make bench   measure; writes docs/performance.md, docs/performance.json and the table in README.md
#   make proof   the long tests with full counts (make proof-NAME: those of one suite)
#   make chaos   the crash lab, for as long as BUDGET says; writes docs/chaos.json and its parts of docs/proof.md, README.md
#   make test-adapters   the suites of all adapters, each in an environment of its own
#   make newest  the same against the newest versions on the index
#   make test-NAME   the suite tests/suites/NAME, in an environment of its own (tests/README.md has all rings)
#   make docs    build the site in build/site (make reference writes docs/reference.md from the code)
#   make clean   remove what the above made
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
BUDGET ?= 30m

.PHONY: proof-engines docs reference demo console quick test check bench proof chaos suites clean compiled test-adapters newest
.DELETE_ON_ERROR:

# The stamp is written last: an interrupted set-up is started again from nothing, not believed.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "surefoot needs Python 3.11 or newer; try: make PYTHON=python3.11 ...")'
	@echo "setting up $(VENV) (once; about half a minute)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# Bytecode, as pip leaves it at an install. Tests start thousands of processes: without it each of them compiles everything.
compiled: $(READY)
	@$(BIN)/python -m compileall -q src tests bench

demo: $(READY)
	@$(BIN)/surefoot demo

console: $(READY) build/console/runs.db
	@cd build/console && PYTHONPATH=$(CURDIR) $(CURDIR)/$(BIN)/surefoot console --store sqlite:///runs.db --app tests.console_app

build/console/runs.db: | $(READY)
	@echo "making a store with everything in it (once; about a minute)"
	@mkdir -p build
	@$(BIN)/python -m tests.console_stores build/console

quick: $(READY)
	@$(BIN)/python -m pytest tests --ring quick -n 2 --dist loadfile

test: compiled
	@$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/surefoot lint

# A suite is a folder with tests and a requirements.txt: what it needs besides surefoot and pytest. Its packages meet no
# other suite's. All suites there are: make suites.
SUITES := $(patsubst tests/suites/%/requirements.txt,%,$(wildcard tests/suites/*/requirements.txt))

suites: $(SUITES:%=test-%)

# What each framework's adapter promises, with kills, against the versions in its requirements.txt.
ADAPTERS := $(filter openai_agents pydantic_ai langgraph clients mcp,$(SUITES))
test-adapters: $(ADAPTERS:%=test-%)

# The same against the newest versions on the index instead of the pinned ones: every night, not before a merge.
newest: $(ADAPTERS:%=newest-%)
newest-%: tests/suites/%/requirements.txt
	@$(PYTHON) -m venv --clear .venv-newest-$*
	@sed 's/==.*//' $< > .venv-newest-$*/newest.txt
	@.venv-newest-$*/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --editable '.[test]' --requirement .venv-newest-$*/newest.txt
	@echo "$*, with the newest:" $$(.venv-newest-$*/bin/python -m pip freeze --disable-pip-version-check | grep -iF "$$(grep -o '^[A-Za-z0-9_-]*' .venv-newest-$*/newest.txt)")
	@SUREFOOT_UNTESTED=1 .venv-newest-$*/bin/python -m pytest tests/suites/$*

.PRECIOUS: .venv-%/.ready
test-%: .venv-%/.ready
	@.venv-$*/bin/python -m compileall -q src tests
	@.venv-$*/bin/python -m pytest tests/suites/$*

.venv-%/.ready: tests/suites/%/requirements.txt pyproject.toml
	@echo "setting up .venv-$* (once)"
	@$(PYTHON) -m venv --clear .venv-$*
	@.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]' --requirement $<
	@touch $@

# The long tests of the engines, with counts that can be gone on with: ANSWERS, KILLS, CLIENTS, TAKEOVERS.
proof-engines: .venv-engines/.ready
	@.venv-engines/bin/python -m pytest tests/suites/engines/test_long.py -m proof -rA

bench: compiled
	@$(BIN)/python -m bench

# A suite that has a long version has it in test_proof.py, which needs its packages.
PROOFS := $(patsubst tests/suites/%/test_proof.py,proof-%,$(wildcard tests/suites/*/test_proof.py))
proof-%: .venv-%/.ready
	@.venv-$*/bin/python -m compileall -q src tests
	@.venv-$*/bin/python -m pytest tests/suites/$*/test_proof.py -m proof -rA

proof: compiled $(PROOFS)
	@$(BIN)/python -m pytest tests/proof -m proof -n 2 --dist loadfile --timeout=3600 -rA

chaos: compiled
	@$(BIN)/python -m tests.crash.chaos --budget $(BUDGET)

# The site, and the page of all public names.
docs: .venv-docs/.ready
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet -f docsite/mkdocs.yml
	@echo "open build/site/index.html"

reference: $(READY)
	@$(BIN)/python -m docsite.reference

clean:
	rm -rf $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist .surefoot
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
