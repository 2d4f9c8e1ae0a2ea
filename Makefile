PYTHON ?= python3
PORT ?= 8443
DATA ?= data
SOAK_SECONDS ?= 600
VENV := .venv
BIN := $(VENV)/bin
IN_PROCESSES := --numprocesses=5 --dist=loadgroup --no-loadscope-reorder
SOURCES := apiserver registry admission controller tenant_apiserver benchmarks tests
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes
COMPILE := CUSTOM_COMPILE_COMMAND="make requirements" ../$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe \
	--strip-extras --no-annotate --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options

# each process of the tests and each server would compile all modules again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help image sbom run test test-ci compile-tests check bench bench-versus bench-check faults soak fmt manifests crd-schemas requirements clean
.DEFAULT_GOAL := run

help:  ## print the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand --tabs=16

run: $(VENV)/run.stamp  ## run the standalone server on PORT (8443) with its data in DATA (data), and a real kubectl in its PATH
	@PATH="$(CURDIR)/$(BIN):$$PATH" exec $(BIN)/python -m tenant_apiserver standalone --data-dir $(DATA) --secure-port $(PORT)

test: $(VENV)/dev.stamp  ## run all tests, in five processes because most of them wait for servers
	$(BIN)/python -m pytest $(IN_PROCESSES) $(PYTEST_ARGS)

compile-tests: $(VENV)/dev.stamp  ## compile the modules of the tests once, instead of in each process of the tests
	@mkdir -p build
	$(BIN)/python -m pytest --collect-only --quiet >build/collected-tests.txt

test-ci: $(VENV)/dev.stamp  ## run all tests, and up to five that failed once more, alone
	$(BIN)/python -m tests.run_in_ci $(IN_PROCESSES) $(PYTEST_ARGS)

check: $(VENV)/dev.stamp  ## check format, lint, types and import layers
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/dev.stamp  ## run the benchmarks and draw build/plots; BENCH_ARGS='--cluster kube' measures `serve` beside a kube-apiserver
	@mkdir -p build
	$(BIN)/python -m benchmarks --json build/bench.json $(BENCH_ARGS)
	$(BIN)/python -m benchmarks.plots build/bench.json

bench-versus: $(VENV)/dev.stamp  ## compare `serve` with custom resources of kube-apiserver, and draw build/plots; BENCH_ARGS='--against URL …' adds a server
	@mkdir -p build
	$(BIN)/python -m benchmarks.versus --json build/versus.json $(BENCH_ARGS)
	$(BIN)/python -m benchmarks.plots build/versus.json

bench-check: $(VENV)/run.stamp  ## compare counts that do not depend on the machine with benchmarks/bounds.json
	PYTHONHASHSEED=0 $(BIN)/python -m benchmarks.check

faults: $(VENV)/dev.stamp  ## run the fault suite at full size, for half an hour; `make test` runs a short version
	FAULTS=full $(BIN)/python -m pytest -m faults --numprocesses=2 --dist=loadgroup --no-loadscope-reorder -rP --show-capture=stdout $(PYTEST_ARGS)

soak: $(VENV)/dev.stamp  ## run mixed load for SOAK_SECONDS and print the resource usage; fails if it grows
	$(BIN)/python -m tests.faults.soak --seconds $(SOAK_SECONDS)

fmt: $(VENV)/dev.stamp  ## format the sources, and fix what the linter can
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

image: sbom  ## build the image with ENGINE (docker, podman, buildah) from BASE, and record its digest in build/
	image/build.sh

sbom: build/sbom-tools.stamp  ## write the list of the image's Python packages, as CycloneDX, to build/sbom.json
	build/sbom-tools/bin/cyclonedx-py requirements requirements/requirements.txt --pyproject pyproject.toml --output-reproducible -o build/sbom.json

build/sbom-tools.stamp: requirements/image.txt
	$(PYTHON) -m venv build/sbom-tools
	build/sbom-tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/image.txt
	@touch $@

manifests: $(VENV)/run.stamp  ## regenerate the manifests, the table of rights, the dashboard and the Helm chart
	$(BIN)/python -m tenant_apiserver.generate_manifests manifests docs/security.md
	$(BIN)/python -m tenant_apiserver.generate_dashboard manifests/components/monitoring/tenant-apiserver.json
	$(BIN)/python -m tenant_apiserver.generate_chart manifests

crd-schemas: $(VENV)/run.stamp  ## regenerate the definitions of other projects' kinds from the CRDs in CRD_DIRS
	$(BIN)/python -m tenant_apiserver.generate_crd_schemas $(CRD_DIRS)

requirements: $(VENV)/dev.stamp  ## pin the newest compatible versions of all requirements
	cd requirements && $(COMPILE) --upgrade requirements.in && $(COMPILE) --upgrade tools.in && $(COMPILE) --upgrade dev.in && $(COMPILE) --upgrade image.in

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is required; select one with: make PYTHON=python3.12")'
	@echo 'installing into $(VENV), which takes about a minute'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: requirements/requirements.txt requirements/tools.txt pyproject.toml | $(VENV)/bin/python
	@$(PIP_INSTALL) -r requirements/requirements.txt -r requirements/tools.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/run.stamp
	@$(PIP_INSTALL) -r requirements/dev.txt
	@touch $@

clean:  ## remove the virtual environment and all caches
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
