# `make` alone lists the targets. Works with GNU make 3.81 and newer.
SHELL := /bin/bash

PROGRAM := .build/release/keyhaul
PREFIX ?= /usr/local
# Seconds per input in `make fuzz`.
FUZZ_SECONDS ?= 60
# More arguments of `swift build`; packaging/Makefile links the programs of the packages with them.
BUILD_FLAGS :=

RELEASE := -c release --product keyhaul
ifeq ($(shell uname -s),Linux)
# A program without symbols that runs without Swift installed. Its calls are bound at the start (-z now): binding at the first call
# would save the vector registers on the stack, and with them any secret that was copied through them.
RELEASE += --static-swift-stdlib -Xlinker -s -Xlinker -z -Xlinker now -Xlinker --no-export-dynamic
# The tool chain's own linker. The system's warns about Foundation's use of mktemp.
RELEASE += $(if $(wildcard $(dir $(realpath $(shell command -v swiftc)))ld.lld),-Xswiftc -use-ld=lld)
endif

.PHONY: help deps build demo test test-exhaustive lint docs fuzz sanitize coverage install uninstall clean

help:
	@echo "make build            builds the release program, $(PROGRAM)"
	@echo "make demo             shows two phones, a backup, a plan and a restore"
	@echo "make test             runs the tests, with a part of the largest case sets"
	@echo "make test-exhaustive  runs the largest case sets in full"
	@echo "make lint             checks formatting and house rules"
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

demo: build
	@$(PROGRAM) demo

# The tests start the release program: users get that one, and thousands of starts of a debug build take minutes.
test: build
	@KEYHAUL_TESTED_PROGRAM=$(abspath $(PROGRAM)) .ci/test

test-exhaustive: build
	@KEYHAUL_TESTED_PROGRAM=$(abspath $(PROGRAM)) KEYHAUL_EXHAUSTIVE=1 .ci/test

lint:
	@$(MAKE) --no-print-directory -C Tests check-fixtures
	swift format lint --recursive --strict Package.swift Sources Tests Fixtures docs/Examples
	.venv/bin/python Tests/Support/check_sources.py
	.venv/bin/python Tests/Support/check_structure.py
	.venv/bin/python Tests/Support/check_documentation.py
	packaging/check_version.py

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
