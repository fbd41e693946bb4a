# `make run` and `make test` are all a fresh machine needs: Python 3.11+ and the package index.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE ?= 1

.PHONY: setup run test browser-test check publish handbook tasks-doc format clean

# A torch that is already in the environment (for a certain CUDA, say) is left alone.
$(VENV)/.ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]" --config-settings editable_mode=compat
	touch $@

setup: $(VENV)/.ready

run: setup
	$(BIN)/python -m bench run --variants all

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/codespell
	$(BIN)/python -m pytest -q -m "not slow"

test: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/codespell
	$(BIN)/python -m pytest -q -n 2 --benchmark-disable
	$(BIN)/python -m bench run --variants all --preset smoke --out runs/ci-smoke

# Needs Chromium (apt-get install chromium-headless-shell, or BENCH_CHROMIUM=/path/to/chromium) and npm.
# BENCH_REPORT=path/to/report.html measures a real page as well.
browser-test: setup
	$(BIN)/python -m pip install --quiet -c constraints.txt playwright
	command -v npm >/dev/null && npm ci --silent --prefix tests/reports/browser || true
	$(BIN)/python -m pytest -q -m browser tests/reports

# make publish RUN=quick: runs/quick becomes a reference result, its rows as one pack and its report as
# Markdown. Artifacts stay behind: they may hold sentences of data sets without an open license.
publish: setup
	test -d runs/$(RUN)/ledger
	rm -rf results/published/$(RUN).parquet reports/published/$(RUN)
	$(BIN)/python -m bench report runs/$(RUN) --publish --out reports/published/$(RUN) \
		--pack results/published/$(RUN).parquet
	rm -f reports/published/$(RUN)/report.html

# make handbook RUN=quick: docs/mechanisms.md and its pictures from the artifacts of runs/quick.
handbook: setup
	$(BIN)/python -m bench report runs/$(RUN) --handbook docs

# make tasks-doc: docs/tasks.md from the registry; lines made from data need BENCH_DATA_DIR.
tasks-doc: setup
	$(BIN)/python -m bench show tasks --markdown > docs/tasks.md.new
	mv docs/tasks.md.new docs/tasks.md

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) runs .mypy_cache .ruff_cache .pytest_cache
