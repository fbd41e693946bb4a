# `make run` and `make test` are all a fresh machine needs: Python 3.11+ and the package index.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE ?= 1
# Without compiled files each of the many processes that tests start compiles all our code again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup run static test slow browser-test check has-run publish publish-tasks publish-claims peers docs readme format clean

# A torch that is already in .venv (for a certain CUDA, say) stays, whatever version is pinned.
$(VENV)/.ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/python -m pip install --quiet -c constraints.txt torch
	grep -vE '^(torch|triton)==' constraints.txt > $(VENV)/constraints.txt
	$(BIN)/python -m pip install --quiet -c $(VENV)/constraints.txt -e ".[dev]" --config-settings editable_mode=compat
	touch $@

setup: $(VENV)/.ready

run: setup
	$(BIN)/python -m bench run --variants all

static: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/codespell

PYTEST = $(BIN)/python -m pytest -q -n 2 --dist worksteal --benchmark-disable
check: static
	$(PYTEST) -m "not slow and not browser"

# One variant of each kind trains here; `make slow` trains all of them. Checks of annotations take a
# third of the time of a test, so only those of each variant, each task and padding have them here.
ANNOTATIONS = tests/bench/conformance tests/tasks/test_every_task.py tests/tasks/backbones/test_padding.py
SMOKE = additive,luong_local_p,shaw_rpr,pointer_generator,linear_attention,han
test: static
	JAXTYPING_DISABLE=1 $(PYTEST) -m "not slow and not browser and not annotations"
	$(PYTEST) -m annotations $(ANNOTATIONS)
	$(BIN)/python -m bench run --variants $(SMOKE) --preset smoke --out runs/smoke

# What takes long: learning, compiled code, copies of the tree, and a short run of each variant.
# PART=3/8 is the third of eight parts.
# The run proves no variant again, because tests/bench/conformance has proved each of them, and times
# none: tests/accelerator calls every workload of each, and timing would leave a core idle.
PART ?= 1/1
slow: export JAXTYPING_DISABLE = 1
slow: setup
	$(PYTEST) -m slow --part $(PART)
	$(BIN)/python -m bench run --variants "$$($(BIN)/python -m tests.parts $(PART))" --preset smoke \
		--no-verify --no-speed --out runs/smoke-all

# Needs Chromium (apt-get install chromium-headless-shell, or BENCH_CHROMIUM=/path/to/chromium) and npm.
# BENCH_REPORT=path/to/report.html measures a real page as well.
browser-test: setup
	$(BIN)/python -m pip install --quiet -c constraints.txt playwright
	command -v npm >/dev/null && npm ci --silent --prefix tests/reports/browser || true
	$(BIN)/python -m pytest -q -m browser tests/reports

has-run:
	@test -d "runs/$(RUN)/ledger" || { echo "runs/$(RUN) holds no run; name one, such as RUN=quick" >&2; exit 2; }

# make publish RUN=quick: runs/quick becomes a reference result, its rows as one pack and its report as
# Markdown. Attention maps and samples of data sets without an open license stay behind. An earlier pack
# that has cells which the run lacks is not replaced: remove it by hand.
publish: setup has-run
	$(BIN)/python -m bench report runs/$(RUN) --publish --out reports/published/$(RUN) \
		--pack results/published/$(RUN).parquet
	rm -f reports/published/$(RUN)/report.html reports/published/$(RUN)/details.html

# make publish-tasks RUN=flagship TASKS=spoken_digits: cells of these tasks in runs/flagship join the
# reference result of that name, whose other cells stay as they are.
publish-tasks: setup has-run
	@test -n "$(TASKS)" || { echo "publish-tasks needs tasks of the run: TASKS=spoken_digits" >&2; exit 2; }
	rm -rf runs/publish
	$(BIN)/python -m bench report runs/$(RUN) --tasks $(TASKS) --publish --out runs/publish/part \
		--pack runs/publish/part.parquet
	$(BIN)/python -m bench report results/published/$(RUN).parquet --merge runs/publish/part.parquet \
		--publish --out runs/publish/$(RUN) --pack results/published/$(RUN).parquet
	rm -rf reports/published/$(RUN)
	$(BIN)/python -m bench report results/published/$(RUN).parquet --publish --out reports/published/$(RUN)
	rm -f reports/published/$(RUN)/report.html reports/published/$(RUN)/details.html

# make publish-claims: runs/claims becomes a reference result, as above.
publish-claims: setup
	rm -rf runs/publish
	$(BIN)/python -m bench claims report runs/claims --out runs/publish/claims \
		--pack results/published/claims.parquet
	rm -rf reports/published/claims
	mv runs/publish/claims reports/published/claims
	rm -f reports/published/claims/claims.html

# make peers: our numbers beside those of other people's code, in an environment of its own; what they
# differ by is stored, and stands on the page that `make docs` writes.
PEERS ?= .venv-peers
PEERS_OUT := results/published/peers.json
peers:
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -c "import torch" 2>/dev/null || $(PEERS)/bin/python -m pip install --quiet -c constraints.txt torch
	$(PEERS)/bin/python -m pip install --quiet -c constraints.txt -e ".[dev,peers]" --config-settings editable_mode=compat
	BENCH_PEERS_OUT=$(PEERS_OUT) $(PEERS)/bin/python -m pytest -q tests/peers

# make docs: the documentation as a folder of pages, site/index.html, with an offline search.
$(VENV)/.docs-ready: $(VENV)/.ready pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[docs]" --config-settings editable_mode=compat
	touch $@

docs: $(VENV)/.docs-ready
	$(BIN)/python -m bench.docs site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

# make readme: what README.md and the pages of published runs and packs say of them.
readme: setup
	$(BIN)/python -m bench.docs readme
	$(BIN)/python -m bench.docs choices
	$(BIN)/python -m bench.docs packs

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(PEERS) runs .mypy_cache .ruff_cache .pytest_cache
