# Needs make and Python >= 3.10, nothing else. The first run makes .venv; later ones start at once.

PYTHON ?= python3
PIP_FLAGS ?=
TORCH ?= torch==2.13.0
TORCH_INDEX ?=
JOBS ?= auto
VENV := .venv

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test test-pure lint format bench bench-look bench-hta bench-mxnet bench-torch pictures clean

help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  PYTHON=python3.12   which Python makes $(VENV) (now: $(PYTHON))"
	@echo "  PIP_FLAGS=...       more options for pip install"
	@echo "  TORCH_INDEX=URL     an index with CPU builds of torch, which are a tenth in size (pytorch.org names one)"
	@echo "  JOBS=1              how many tests run at once (now: $(JOBS); at most one a core, and 8)"
	@echo "  TORCH=...           which torch the tests use (now: $(TORCH)); empty: none, its tests skip"

demo: $(VENV)/.installed ## Train a small network under opscope and show what its operators did
	@$(VENV)/bin/opscope demo --output build/demo --force

test: $(VENV)/.test-installed ## Lint, types and all tests
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m pytest $(IN-PARALLEL)

test-pure: .venv-pure/.test-installed ## All tests without the C extension, as where there is no compiler
	@.venv-pure/bin/python -m pip uninstall --quiet --yes opscope 2>/dev/null || true
	@OPSCOPE_PURE=1 .venv-pure/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(PIP_FLAGS) .
	@cd tests && ../.venv-pure/bin/python -c 'from opscope.record import extension as e; assert e.native is None, "the extension is there"; print("pure:", e.missing)'
	OPSCOPE_PURE=1 OPSCOPE_RECORDER=python .venv-pure/bin/python -m pytest $(IN-PARALLEL)

lint: $(VENV)/.test-installed ## Lint, format check and types, no tests
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/.test-installed ## Format the code and mend what ruff can mend
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

bench: $(VENV)/.installed ## Measure what profiling costs, side by side
	$(VENV)/bin/python bench/engine_overhead.py
	$(VENV)/bin/python bench/recorder_alone.py
	$(VENV)/bin/python bench/corrected.py
	$(VENV)/bin/python bench/hot_lines.py

bench-look: $(VENV)/.test-installed ## Measure the exports, and the report page in Chromium
	$(VENV)/bin/python bench/export_speed.py
	$(VENV)/bin/python bench/page_paint.py

bench-hta: $(VENV)/.installed .venv-hta/.installed ## Read a large PyTorch trace, beside HolisticTraceAnalysis
	$(VENV)/bin/python bench/import_speed.py --scale --hta .venv-hta/bin/python

bench-mxnet: $(VENV)/.installed .venv-mxnet/.installed ## Run the same program on real MXNet and on the engine
	$(VENV)/bin/python bench/against_mxnet.py --python .venv-mxnet/bin/python
	$(VENV)/bin/python bench/engine_overhead.py --mxnet .venv-mxnet/bin/python

bench-torch: $(VENV)/.test-installed ## Measure what recording PyTorch costs, beside torch.profiler
	OMP_NUM_THREADS=1 $(VENV)/bin/python bench/torch_overhead.py
	OMP_NUM_THREADS=1 $(VENV)/bin/python bench/torch_analysis.py

pictures: $(VENV)/.test-installed ## Make the pictures of the documentation anew (page: needs Chromium)
	$(VENV)/bin/python docs/pictures/make.py

clean: ## Remove .venv, caches, builds and what the demo left in build/
	rm -rf $(VENV) .venv-pure .venv-hta .venv-mxnet build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis __pycache__
	rm -f src/opscope/record/_native*.so
	find src tests bench docs examples fuzz -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# A file of tests stays in one process, where its fixtures are made once; long files are not left for the end.
IN-PARALLEL = --numprocesses $(JOBS) --maxprocesses 8 --dist loadfile --no-loadscope-reorder

# Stamps: each is older than pyproject.toml, or the C extension, exactly when an install is due.
NATIVE := hatch_build.py $(wildcard src/opscope/record/native/*.[ch])

$(VENV)/.installed: pyproject.toml $(NATIVE)
	$(make-venv)
	$(call install,.)
	@touch $@

$(VENV)/.test-installed: pyproject.toml $(NATIVE)
	$(make-venv)
	$(call install,.[test])
	$(install-torch)
	@touch $@ $(VENV)/.installed

# Not editable: what was built into src/ for the other environment must not be seen.
.venv-pure/.test-installed: VENV := .venv-pure
.venv-pure/.test-installed: pyproject.toml
	$(make-venv)
	@echo "Installing opscope without its C extension into .venv-pure (once, about a minute)"
	@OPSCOPE_PURE=1 .venv-pure/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) '.[test]'
	$(install-torch)
	@touch $@

# MXNet 1.9.1 is its last release: wheels for x86-64 Linux, and names that NumPy 1.24 took away.
.venv-mxnet/.installed: Makefile
	@$(PYTHON) -c 'import platform as p, sys; ok = (p.system(), p.machine()) == ("Linux", "x86_64") and (3, 8) <= sys.version_info[:2] <= (3, 11); ok or sys.stderr.write("real MXNet 1.9.1 needs x86-64 Linux and Python 3.8 to 3.11; this is %s %s with Python %d.%d. Try: make bench-mxnet PYTHON=python3.11\n" % (p.system(), p.machine(), *sys.version_info[:2])); sys.exit(not ok)'
	@$(PYTHON) -m venv --clear .venv-mxnet
	@echo "Installing MXNet 1.9.1 into .venv-mxnet (once)"
	@.venv-mxnet/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) mxnet==1.9.1 'numpy<1.24'
	@touch $@

# HolisticTraceAnalysis 0.5.0 fails on the types of pandas 3, and asks for any.
.venv-hta/.installed: Makefile
	@$(PYTHON) -m venv --clear .venv-hta
	@echo "Installing HolisticTraceAnalysis 0.5.0 into .venv-hta (once)"
	@.venv-hta/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) HolisticTraceAnalysis==0.5.0 'pandas<3'
	@touch $@

# An environment that is there but has no working pip (a Python that went away, Debian without
# python3-venv) is made again.
define make-venv
@command -v $(PYTHON) >/dev/null 2>&1 || { echo "opscope needs Python 3.10 or newer, and '$(PYTHON)' was not found. Try: make $(or $(MAKECMDGOALS),test) PYTHON=/path/to/python3" >&2; exit 1; }
@$(PYTHON) -c 'import sys; v = sys.version_info; ok = v[:2] >= (3, 10); ok or sys.stderr.write("opscope needs Python 3.10 or newer, and $(PYTHON) is %d.%d. Try: make $(or $(MAKECMDGOALS),test) PYTHON=python3.12\n" % v[:2]); sys.exit(not ok)'
@$(VENV)/bin/python -m pip --version >/dev/null 2>&1 || { echo "Making $(VENV) with $$($(PYTHON) --version)"; $(PYTHON) -m venv --clear $(VENV); }
endef

# Pinned: the newest torch may be a build of several gigabytes.
define install-torch
@test -z '$(TORCH)' || echo "Installing $(TORCH) into $(VENV) (once)"
@test -z '$(TORCH)' || $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) $(if $(TORCH_INDEX),--extra-index-url '$(TORCH_INDEX)') '$(TORCH)'
endef

define install
@echo "Installing opscope and what it needs into $(VENV) (once, about a minute)"
@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) --editable '$(1)'
endef
