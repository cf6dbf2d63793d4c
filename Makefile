# `make` alone lists the targets. Works with GNU make 3.81 and newer.
SHELL := /bin/bash

PROGRAM := .build/release/keyhaul
PREFIX ?= /usr/local
# Seconds per input in `make fuzz`.
FUZZ_SECONDS ?= 60
# More arguments for `swift build`. packaging/Makefile uses them to link the programs of the packages.
BUILD_FLAGS :=

# Generates the code of a module in several threads, because modules wait for each other and often one compiles alone. The program
# contains no debug information.
RELEASE := -c release --product keyhaul -debug-info-format none -Xswiftc -num-threads -Xswiftc 2
ifeq ($(shell uname -s),Linux)
# The program has no symbols and runs on systems without Swift. Library calls are bound at the start (-z now), because binding at the
# first call saves the vector registers on the stack, and these may contain parts of a secret.
RELEASE += --static-swift-stdlib -Xlinker -s -Xlinker -z -Xlinker now -Xlinker --no-export-dynamic
# Uses the linker of the Swift tool chain, because the linker of the system warns about mktemp in Foundation.
RELEASE += $(if $(wildcard $(dir $(realpath $(shell command -v swiftc)))ld.lld),-Xswiftc -use-ld=lld)
endif

.PHONY: help deps build demo test test-exhaustive lint docs fuzz sanitize coverage install uninstall clean

help:
	@echo "make build            builds the release program, $(PROGRAM)"
	@echo "make demo             shows two phones, a backup, a plan and a restore"
	@echo "make test             runs the tests, with a part of the largest case sets"
	@echo "make test-exhaustive  runs the largest case sets in full"
	@echo "make lint             checks formatting and the rules of the project"
	@echo "make docs             builds the documentation site in .build/docs"
	@echo "make fuzz             fuzzes all code that reads untrusted bytes;"
	@echo "                      FUZZ_SECONDS=$(FUZZ_SECONDS) for each input"
	@echo "make sanitize         runs tests under the address and thread sanitizers"
	@echo "make coverage         shows how much of each module the tests run"
	@echo "make install          installs the program, its manual pages and completions"
	@echo "                      below PREFIX=$(PREFIX)"
	@echo "make uninstall        removes what make install installed"
	@echo "make clean            removes all build products"
	@echo
	@echo "make -C Tests         lists longer tests, benchmarks and fixtures"
	@echo "make -C packaging     lists packages, manual pages and release checks"

deps:
	@.ci/dependencies

build: deps
	KEYHAUL_COMMIT="$$(.ci/commit)" swift build $(RELEASE) $(BUILD_FLAGS)
	@printf '%s: %d bytes\n' $(PROGRAM) "$$(wc -c < $(PROGRAM))"

# The demo runs the debug program: it is built in half the time, and `make test` then has only its tests to build.
demo: deps
	KEYHAUL_BUILD=tests swift build --product keyhaul
	@.build/debug/keyhaul demo

# KEYHAUL_TESTED_PROGRAM=PATH tests another program, such as the release program (see .ci/run).
test: deps
	@.ci/test

test-exhaustive: build
	@KEYHAUL_TESTED_PROGRAM=$(abspath $(PROGRAM)) KEYHAUL_EXHAUSTIVE=1 .ci/test

lint:
	@$(MAKE) --no-print-directory -C Tests check-fixtures
	swift format lint --recursive --strict Package.swift Sources Tests Fixtures docs/Examples docs/Templates
	.venv/bin/python Tests/Support/check_sources.py
	.venv/bin/python Tests/Support/check_structure.py
	.venv/bin/python Tests/Support/check_documentation.py
	packaging/check_version.py
	packaging/make_release_tag.py --check

docs: deps
	@.ci/docs

fuzz: deps
	@.ci/fuzz $(FUZZ_SECONDS)

sanitize: deps
	@.ci/sanitize

coverage: deps
	@.ci/coverage

install:
	@$(MAKE) --no-print-directory -C packaging man
	packaging/install $(PROGRAM) .build/man "$(DESTDIR)$(PREFIX)"

uninstall:
	packaging/install --remove "$(DESTDIR)$(PREFIX)"

clean:
	swift package clean
	rm -rf packaging/python/src/*.egg-info packaging/python/.*_cache packaging/python/build
	rm -rf .venv Tests/Support/__pycache__ Tests/Support/*/__pycache__ Sources/*/*/*.docc/Pages
