# Each target sets up what it needs, in .venv; PYTHON names the interpreter that this comes from.
#
#   make demo               JupyterLab with a model served and the tutorial open
#   make demo ARGS=--check  the same without a browser: calls the model, prints the answer, stops
#   make test               check, then all tests; ARGS go to pytest
#   make check              format, lint, types, import rules
#   make bench              measure, beside bare Tornado and any tensorflow_model_server on the PATH
#   make bench-peers        the same beside KServe, LitServe and MLflow too; ARGS as for bench,
#                           such as ARGS='--rounds 1 --seconds 1 --only half_plus_three'
#   make build              sdist and wheel, in dist/
#   make clean              remove everything that the others made

PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BENCH_INSTALLED := $(VENV)/.bench-installed
LABEXTENSION := $(wildcard labextension/*.json labextension/*.py labextension/yarn.lock \
	labextension/style/* labextension/src/*.ts labextension/src/*/*.ts)

.PHONY: demo test check bench bench-peers build clean chromium

demo: $(INSTALLED)
	$(BIN)/python notebooks/demo.py $(ARGS)

test: check chromium
	$(BIN)/pytest $(ARGS)

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy jupyter_tfserve notebooks/demo.py tests/benchmarks
	$(BIN)/lint-imports

bench: $(BENCH_INSTALLED)
	PYTHONPATH=tests/support $(BIN)/python tests/benchmarks $(ARGS)

bench-peers: $(BENCH_INSTALLED)
	PYTHONPATH=tests/support $(BIN)/python tests/benchmarks --peers $(ARGS)

build: $(INSTALLED)
	$(BIN)/python -m build

$(INSTALLED): pyproject.toml jupyter_tfserve/_version.py $(LABEXTENSION)
	@echo "Installing into $(VENV): minutes and about 3 GB the first time"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[test,lint]'
	touch $@

$(BENCH_INSTALLED): $(INSTALLED)
	$(BIN)/pip install --quiet --editable '.[bench]'
	touch $@

# The browser tests drive Debian's Chromium.
chromium:
	@command -v chromium > /dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then as_root=; \
	  elif command -v sudo > /dev/null; then as_root=sudo; \
	  else echo "The browser tests need chromium: apt-get install chromium" >&2; exit 1; fi; \
	  $$as_root apt-get update && $$as_root apt-get install --yes --no-install-recommends chromium; \
	}

clean:
	rm -rf $(VENV) dist .demo .bench .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf labextension/lib labextension/node_modules labextension/tsconfig.tsbuildinfo
	rm -rf jupyter_tfserve/labextension
	find . -name __pycache__ -prune -exec rm -rf {} +
