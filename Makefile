# The front door. Everything behind it is CMake with Ninja (CMakePresets.json names the builds).
#
#   make            build/quench            make demo     the main job on an embedded default
#   make test       what has to pass        make install  PREFIX=/usr/local [DESTDIR=]
#   make test-all   with more models        make clean
#   make bench      [BENCH_FLAGS=--check]   make asan     tests under ASan + UBSan
#   make lint       rooms, names, format    make tsan     tests under TSan
#   make setup      install what is needed  make fuzz     [FUZZ_RUNS=1000000] [FUZZ_TARGETS=...]
#   make docs       build/docs: the pages that the command writes about itself

PREFIX ?= /usr/local
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CMAKE_FLAGS ?=
FUZZ_RUNS ?= 1000000
FUZZ_TARGETS ?=
BENCH_FLAGS ?=
# "must": a machine that cannot install the oracles fails; else the tests that ask them are skipped.
ORACLES ?= may

# Groups of scripts/packages.txt: a build without a part does not ask for the library of it.
unless = $(if $(findstring -DQUENCH_$(1)=OFF,$(CMAKE_FLAGS)),,$(2))
BUILD = build $(call unless,BACKEND_DNNL,dnnl) $(call unless,WEBP,webp) $(call unless,TIFF,tiff) $(call unless,HDF5,hdf5)
PYTHON = build/venv/bin/python
say = @printf '\n== %s\n' "$(1)"
oracles = scripts/venv || { echo "NO ORACLES: the tests that ask them cannot run"; [ $(ORACLES) != must ]; }

.PHONY: all setup demo test test-all install docs bench asan tsan fuzz lint format clean
.NOTPARALLEL:

all:
	@scripts/setup --check $(BUILD)
	@scripts/build release $(JOBS) $(CMAKE_FLAGS)

setup:
	@scripts/setup $(BUILD) test lint

demo:
	$(call say,1/4 packages)
	@scripts/setup $(BUILD) demo
	$(call say,2/4 building build/quench)
	@scripts/build release $(JOBS) $(CMAKE_FLAGS)
	$(call say,3/4 ONNX Runtime for comparison)
	@scripts/venv || echo "there is none: the comparison with it will be left out"
	$(call say,4/4 the embedded network examples/fashion.onnx)
	@$$($(PYTHON) -c pass 2>/dev/null && echo $(PYTHON) || echo python3) scripts/demo.py

test test-all:
	$(call say,1/4 packages)
	@scripts/setup $(BUILD) test
	$(call say,2/4 building build/quench and the tests)
	@scripts/build --tests release $(JOBS) $(CMAKE_FLAGS)
	$(call say,3/4 oracles)
	@$(oracles)
	$(call say,4/4 tests)
	@scripts/test build $(JOBS) $(@:test-%=%)

install: all
	@cmake --install build --prefix "$(PREFIX)"

docs: all
	@mkdir -p build/docs
	@build/quench ops --markdown >build/docs/operators.md
	@build/quench help passes --markdown >build/docs/passes.md
	@build/quench help --man >build/docs/quench.1
	@ls build/docs/*

bench:
	@scripts/setup $(BUILD) test
	@scripts/build release $(JOBS) $(CMAKE_FLAGS)
	@scripts/venv
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --requirement bench/requirements.txt
	@$(PYTHON) bench/compare.py $(BENCH_FLAGS)
	@$(PYTHON) bench/startup.py
	@$(PYTHON) bench/calibration.py
	@$(PYTHON) bench/script.py
	@$(PYTHON) bench/recurrent.py

asan tsan:
	@scripts/setup $(BUILD) test $(if $(filter tsan,$@),clang)
	@scripts/build --tests $@ $(JOBS) $(CMAKE_FLAGS)
	@$(oracles)
	@scripts/test build-$@ $(JOBS)

fuzz:
	@scripts/setup build test clang
	@scripts/build --tests fuzz $(JOBS) $(CMAKE_FLAGS)
	@scripts/fuzz $(FUZZ_RUNS) $(FUZZ_TARGETS)

lint:
	@scripts/setup $(BUILD) lint
	@scripts/build release $(JOBS) $(CMAKE_FLAGS)
	@tests/lint/run.sh build

format:
	@python3 tests/lint/comments.py --fix || true
	@tests/lint/format.sh --fix

clean:
	rm -rf build build-debug build-asan build-tsan build-fuzz
