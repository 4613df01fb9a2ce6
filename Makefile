# A thin front to Meson, pip and pytest: each target is a line or two that you may type yourself.

VENV ?= .venv
BUILD ?= build
# Sphinx's environment; PyTorch is not needed for the documents
DOCS_VENV ?= .venv-docs
# Extra options of `meson setup`, for instance SETUP=-Dwerror=true
SETUP ?=
BENCH ?=
COUNT ?= 20000
SEED ?= 0
# The newer PyTorch of test-next
NEXT ?= 2.14.1
# What `make bench` compares, the base first
ENGINES ?= eager,toroid_strict
# Arguments of tests/opinfo
OPINFO ?=

PYTHON = $(VENV)/bin/python
export PATH := $(abspath $(VENV))/bin:$(PATH)

FAMILIES = $(sort $(patsubst tests/check/check_%.c,%,$(wildcard tests/check/check_*.c)))
C_FILES = $(shell git ls-files -co --exclude-standard '*.c' '*.h')

.PHONY: help setup build demo test test-next check fuzz opinfo bench bench-setup docs wheel lint format asan tsan clean

help:
	@echo 'make setup    environment in $(VENV): PyTorch, Meson, pytest'
	@echo 'make build    the library and the Python package, in $(BUILD)'
	@echo 'make demo     a real model, all-MiniLM-L6-v2, compiled beside eager'
	@echo 'make test     all tests'
	@echo 'make test-next  all tests under PyTorch $(NEXT), in .venv-next and build-next'
	@echo 'make check    every kernel against its reference; BENCH=1 times them'
	@echo 'make fuzz     random graphs against eager; COUNT=20000 SEED=0'
	@echo 'make opinfo   every operator sample of PyTorch; OPINFO="--ops add --jobs 8" picks some'
	@echo 'make bench    models against eager, recorded in bench/results and drawn in docs'
	@echo 'make bench-setup  an environment of the engines to compare with, in .venv-bench'
	@echo 'make docs     the documents as a site, in build/docs'
	@echo 'make wheel    a wheel in dist, its symbols and size checked'
	@echo 'make lint     formatting, include order, names of kernels'
	@echo 'make format   format the sources'
	@echo 'make asan     C tests under AddressSanitizer and UBSan, in $(BUILD)-asan'
	@echo 'make tsan     tests of the pool and the backends under ThreadSanitizer, in $(BUILD)-tsan'
	@echo 'make clean    remove the builds'

setup: $(VENV)/.ready

$(VENV)/.ready: tools/setup.sh
	tools/setup.sh $(VENV)
	@touch $@

# Editable: importing toroid from any folder finds this checkout and rebuilds what changed.
$(BUILD)/.installed: $(VENV)/.ready pyproject.toml
	$(PYTHON) -m pip install -q --no-build-isolation --no-deps --force-reinstall \
	    -Cbuild-dir=$(BUILD) $(addprefix -Csetup-args=,$(SETUP)) -e .
	@touch $@

build: $(BUILD)/.installed
	@ninja --quiet -C $(BUILD)

demo: build
	$(PYTHON) examples/demo.py

test: build
	$(PYTHON) tools/run_tests.py --build $(BUILD)

test-next:
	TORCH=$(NEXT) $(MAKE) test VENV=.venv-next BUILD=build-next

check: build
	@for family in $(FAMILIES); do \
	    ninja --quiet -C $(BUILD) check_$$family && \
	    $(BUILD)/tests/check/check_$$family $(if $(BENCH),--bench) || exit 1; \
	done
	$(PYTHON) tools/check_kernels.py --build $(BUILD)

fuzz: build
	$(PYTHON) tests/fuzz/run.py --count $(COUNT) --seed $(SEED)

opinfo: build
	$(PYTHON) tests/opinfo $(OPINFO)

# NOTE='...' adds to the documents what readers should know of the machine. With an environment from
# `make bench-setup`, ENGINES may name inductor, onnxruntime and openvino too.
PEERS = $(wildcard .venv-bench/bin/python)
bench: $(if $(PEERS),bench-setup,build)
	$(or $(PEERS),$(PYTHON)) bench/run.py \
	    --engines $(ENGINES) --record $(if $(NOTE),'$(NOTE)')

$(DOCS_VENV)/.ready: docs/requirements.txt
	@command -v "$${CC:-cc}" >/dev/null || { echo 'missing: apt-get install gcc' >&2; exit 1; }
	@python3 -c 'import ensurepip, venv' 2>/dev/null || \
	    { echo 'missing: apt-get install python3-venv' >&2; exit 1; }
	[ -x $(DOCS_VENV)/bin/python ] || python3 -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install -q -r docs/requirements.txt || \
	    { echo 'missing: the packages of docs/requirements.txt, from PyPI' >&2; exit 1; }
	@touch $@

# Warnings are errors: a link without a target, a page that no list names, a comment that is no markup.
docs: $(DOCS_VENV)/.ready
	$(DOCS_VENV)/bin/sphinx-build -q -W --keep-going -d build/doctrees docs build/docs
	@echo build/docs/index.html

# The engines that Toroid is measured beside, and the built package.
bench-setup: $(VENV)/.ready
	[ -x .venv-bench/bin/python ] || python3 -m venv .venv-bench
	.venv-bench/bin/python -m pip install -q torch==2.13.0 transformers onnx onnxscript onnxruntime \
	    openvino meson meson-python ninja matplotlib
	PATH=$(abspath .venv-bench)/bin:$$PATH .venv-bench/bin/python -m pip install -q \
	    --no-build-isolation --no-deps --force-reinstall .

# The limited API is a promise to later Pythons, so what the extension asks of Python is checked.
wheel: $(VENV)/.ready
	rm -rf dist
	$(PYTHON) -m pip wheel -q --no-build-isolation --no-deps -w dist .
	$(PYTHON) -m pip install -q abi3audit
	abi3audit --strict --summary dist/*.whl
	@bytes=$$(stat -c %s dist/*.whl); echo "$$(ls dist/*.whl): $$bytes bytes"; test $$bytes -lt 5000000

lint: $(VENV)/.ready
	clang-format --dry-run --Werror $(C_FILES)
	ruff check .
	ruff format --check .
	$(PYTHON) tools/check_includes.py
	$(PYTHON) tools/check_kernels.py

format: $(VENV)/.ready
	clang-format -i $(C_FILES)
	ruff check --fix .
	ruff format .

$(BUILD)-asan/build.ninja: $(VENV)/.ready
	meson setup $(BUILD)-asan -Dpython=disabled -Dbuildtype=debugoptimized \
	    -Db_sanitize=address,undefined -Db_lundef=false $(SETUP)

asan: $(BUILD)-asan/build.ninja
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	    $(PYTHON) tools/run_tests.py --build $(BUILD)-asan --no-python

$(BUILD)-tsan/build.ninja: $(VENV)/.ready
	meson setup $(BUILD)-tsan -Dpython=disabled -Dbuildtype=debugoptimized \
	    -Db_sanitize=thread -Db_lundef=false $(SETUP)

tsan: $(BUILD)-tsan/build.ninja
	ninja --quiet -C $(BUILD)-tsan tests/unit/unit_pool tests/api/test_backends
	TSAN_OPTIONS=halt_on_error=1 $(BUILD)-tsan/tests/unit/unit_pool
	TSAN_OPTIONS=halt_on_error=1 $(BUILD)-tsan/tests/api/test_backends

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan build-next
