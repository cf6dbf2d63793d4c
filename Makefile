# `make` alone lists the targets. Works with GNU make 3.81 and newer.
SHELL := /bin/bash

RELEASE = -c release --product keyhaul
ifeq ($(shell uname -s),Linux)
# One small file without symbols that runs without Swift installed. Its calls are bound at the start: binding at the first
# call would save the vector registers on the stack, and with them any secret that was copied through them.
RELEASE += --static-swift-stdlib -Xlinker -s -Xlinker -z -Xlinker now $(shell packaging/small_program --flags)
# Evaluated only when it is needed, because searching Foundation takes a second.
UNICODE_DATA = $(shell packaging/small_program --unicode-data)
endif
SWIFT_BUILD = KEYHAUL_COMMIT="$$(.ci/commit)" KEYHAUL_UNICODE_DATA="$(UNICODE_DATA)" swift build $(RELEASE)

PROGRAM := .build/release/keyhaul
PORTABLE := .build/portable
PREFIX ?= /usr/local
PYTHON := .venv/bin/python
# The number of random keychain databases that `make interop` writes and has other readers read.
DATABASES ?= 200
# The number of random item changes that it makes inside backups and has other readers check.
EDITS ?= 60
# The number of kills in `make kills`. `make calls` makes one file call in EVERY fail; 1 is every call.
KILLS ?= 1000
EVERY ?= 10
# These select the moments of `make kills` and the calls of `make calls`: another word or number selects others.
MOMENTS ?= moments
REST ?= 0

# Selects the moments, calls and walks of `make nightly`: the day, so that each night has its own.
NIGHT ?= $(shell echo $$(($$(date +%s) / 86400)))

# The largest number of items and files in `make growth`.
ITEMS ?= 100000
FILES ?= 300000

# Seconds per input in `make fuzz`.
FUZZ_SECONDS ?= 60

.PHONY: help deps build demo test test-exhaustive every-bit fuzz fuzz-long sanitize coverage lint docs interop schemas workflow screenshots fixtures check-fixtures bench bench-verbs growth performance contention man install uninstall deb test-deb fleet portable tarball wheel image packages reproducible release-check kills calls soak nightly clean

help:
	@echo "make demo      shows two phones, a backup, a plan and a restore; takes seconds after the first build"
	@echo "make build     builds the release program, $(PROGRAM)"
	@echo "make portable  builds a program that needs only glibc, $(PORTABLE)/keyhaul, with THIRD-PARTY.txt"
	@echo "make test      runs the tests, with a part of the largest case sets"
	@echo "make test-exhaustive  runs the largest case sets in full"
	@echo "make fuzz      fuzzes the code that reads untrusted bytes, $(FUZZ_SECONDS) seconds for each input; make fuzz-long, 20 minutes each"
	@echo "make sanitize  runs the tests of untrusted input and of threads under sanitizers"
	@echo "make coverage  shows how much of each module the tests run"
	@echo "make every-bit  changes every bit and every length of a sealed backup, one by one; takes 95 processor minutes"
	@echo "make lint      checks formatting and house rules"
	@echo "make docs      builds the documentation site in .build/docs"
	@echo "make interop   other readers open Keyhaul's backups, and Keyhaul theirs; backups of every layout and with single faults; kills"
	@echo "make kills     kills each command that writes, KILLS=$(KILLS) times at random moments; MOMENTS=word selects others"
	@echo "make calls     makes file calls fail (one in EVERY=$(EVERY), in five ways) and simulates power cuts; REST=n selects other calls"
	@echo "make soak      MINUTES=n SEED=s: makes random changes to two phones and a backup for n minutes"
	@echo "make nightly   runs the long tests: soak, kills, calls, every-bit, contention; takes hours; NIGHT=n selects other moments"
	@echo "make schemas   compares the program's JSON output with docs/schemas"
	@echo "make fleet     tests the Python package, and 200 backups on a cluster that loses a worker"
	@echo "make workflow  runs a tutorial's workflow line by line in a fresh root; needs root, takes minutes"
	@echo "make screenshots  checks the HTML reports in Chromium, and takes the pictures in docs/images"
	@echo "make fixtures  makes the device descriptions and the list of faults again"
	@echo "make bench     measures speed and memory, and compares the figures with their goals; make bench-verbs, only the program's"
	@echo "make growth    measures how the figures grow, up to ITEMS=$(ITEMS) items and FILES=$(FILES) files"
	@echo "make performance  measures the figures of docs/Performance.md again and writes them into the page"
	@echo "make contention  runs eight processes on one device, 1,000 rounds each"
	@echo "make man       makes the manual pages, .build/man, and checks them with man and mandoc"
	@echo "make install   installs the program, its manual pages and completions below PREFIX ($(PREFIX)); make uninstall removes them"
	@echo "make deb       builds a Debian package in .build/packages; make test-deb tries it in a fresh root and needs root"
	@echo "make tarball   packs the portable program as a tar.gz with its SHA-256"
	@echo "make wheel     packs the portable program and the Python package as a wheel, for the platform that auditwheel confirms"
	@echo "make image     builds an OCI image without a container engine; needs root"
	@echo "make packages  builds all four packages, tries each without Swift, and times the first answer; needs root"
	@echo "make reproducible  builds twice in one place and compares the results byte by byte; takes two full builds"
	@echo "make release-check  runs everything that a release needs: version check, .ci/run --long; takes hours"
	@echo "make clean     removes all build products"

deps:
	@.ci/dependencies

build: deps
	$(SWIFT_BUILD)
	@printf '%s: %d bytes\n' $(PROGRAM) "$$(wc -c < $(PROGRAM))"

# Linked from the same objects and in the same place as the release program, and copied. Then that one is linked again.
portable: build
	@.ci/dependencies zlib1g-dev libzstd-dev liblz4-dev libbz2-dev liblzma-dev nettle-dev libacl1-dev
	codecs=$$(packaging/static_libraries $(PORTABLE)) && export KEYHAUL_LINKS_LIBARCHIVE=1 && \
	$(SWIFT_BUILD) --pkg-config-path $(abspath $(PORTABLE)/pkgconfig) $$codecs -Xlinker -Map=$(abspath $(PORTABLE)/link.map)
	install $(PROGRAM) $(PORTABLE)/keyhaul
	packaging/third_party $(PORTABLE)/link.map . > $(PORTABLE)/THIRD-PARTY.txt
	$(SWIFT_BUILD)
	@packaging/check_portable $(PORTABLE)/keyhaul

demo: build
	@$(PROGRAM) demo

# The tests start the release program: users get that one, and thousands of starts of a debug build take minutes.
test: build
	@KEYHAUL_TESTED_PROGRAM=$(abspath $(PROGRAM)) .ci/test

test-exhaustive: build
	@KEYHAUL_TESTED_PROGRAM=$(abspath $(PROGRAM)) KEYHAUL_EXHAUSTIVE=1 .ci/test

sanitize: deps
	@.ci/sanitize

coverage: deps
	@.ci/coverage

fuzz: deps
	@.ci/fuzz $(FUZZ_SECONDS)

fuzz-long: deps
	@KEYHAUL_FUZZ_KEEP=1 .ci/fuzz 1200

every-bit:
	@set -o pipefail; export KEYHAUL_TESTED_PARTS=Backups KEYHAUL_EVERY_BIT=1; \
	options="-c release --scratch-path .build-every-bit -Xswiftc -enable-testing"; \
	swift build $$options --product keyhaulPackageTests && \
	.ci/test --skip-build --disable-xctest $$options --filter EveryBitTests | grep -E "^every|Test run|error"

lint: check-fixtures
	swift format lint --recursive --strict Package.swift Sources Tests Fixtures docs/Examples
	$(PYTHON) Tests/Support/check_sources.py
	$(PYTHON) Tests/Support/check_structure.py
	$(PYTHON) Tests/Support/check_documentation.py
	packaging/check_version.py

docs: deps
	@.ci/docs

# The published readers come from the package index. If they cannot be installed, that is a failure, never a skip.
interop: build .venv/.installed
	$(PYTHON) Tests/Support/test_support.py
	$(PYTHON) Tests/Support/interop.py --keyhaul $(PROGRAM)
	$(PYTHON) Tests/Support/readers_agree.py --keyhaul $(PROGRAM)
	$(PYTHON) Tests/Support/check_backups.py --keyhaul $(PROGRAM)
	$(PYTHON) Tests/Support/check_dumps.py --keyhaul $(PROGRAM)
	$(PYTHON) Tests/Support/check_databases.py --keyhaul $(PROGRAM) --count $(DATABASES)
	$(PYTHON) Tests/Support/check_edits.py --keyhaul $(PROGRAM) --count $(EDITS)
	$(PYTHON) Tests/Support/kill_exports.py $(PROGRAM)
	$(PYTHON) Tests/Support/kill_verbs.py $(PROGRAM) --kills 200
	$(PYTHON) Tests/Support/check_bombs.py $(PROGRAM)
	$(PYTHON) Tests/Support/check_calls.py $(PROGRAM) power --variants 2
	$(PYTHON) Tests/Support/check_calls.py $(PROGRAM) faults --every 60

kills: build
	python3 Tests/Support/kill_verbs.py $(PROGRAM) --kills $(KILLS) --seed "$(MOMENTS)"

calls: build
	python3 Tests/Support/check_calls.py $(PROGRAM) power
	python3 Tests/Support/check_calls.py $(PROGRAM) faults --every $(EVERY) --rest $(REST)

soak:
	KEYHAUL_SOAK_MINUTES=$(or $(MINUTES),10) KEYHAUL_SOAK_SEED=$(or $(SEED),1) swift test --filter SoakTests

# Every night has other moments and walks. A failed test is named, and the others still run.
nightly: build
	@failed=; night() { printf '\n== make %s\n' "$$*"; $(MAKE) --no-print-directory -o build "$$@" || failed="$$failed $$1"; }; \
	night soak MINUTES=60 SEED=$(NIGHT); \
	night kills KILLS=2000 MOMENTS=night-$(NIGHT); \
	night calls EVERY=5 REST=$$(($(NIGHT) % 5)); \
	night contention; \
	night every-bit; \
	[ -z "$$failed" ] || { printf '\nerror: not passed:%s\n' "$$failed" >&2; exit 1; }

schemas: build .venv/.installed
	$(PYTHON) Tests/Support/check_schemas.py --keyhaul $(PROGRAM)

# The package is installed from its folder and uses the program of this build.
fleet: build .venv/.fleet
	.venv/fleet/bin/ruff check --quiet packaging/python
	.venv/fleet/bin/ruff format --quiet --check packaging/python
	cd packaging/python && ../../.venv/fleet/bin/mypy --strict src tests
	cd packaging/python && KEYHAUL_PROGRAM=$(abspath $(PROGRAM)) ../../.venv/fleet/bin/python -m pytest
	.venv/fleet/bin/python Tests/Support/check_fleet.py --keyhaul $(PROGRAM)

# Needs root for mounts, and builds the release program again, so no other target depends on it.
workflow:
	python3 Tests/Support/check_workflow.py

# Needs a browser, so no other target depends on it.
screenshots: build .venv/.browser
	$(PYTHON) Tests/Support/screenshots.py --keyhaul $(PROGRAM) --out docs/images

fixtures: .venv/.installed
	$(PYTHON) Fixtures/make_fixtures.py
	$(PYTHON) Tests/Support/backup_faults.py --publish

check-fixtures: .venv/.installed
	$(PYTHON) Fixtures/make_fixtures.py --check
	$(PYTHON) Tests/Support/backup_faults.py --publish --check

.venv/.installed: Tests/Support/requirements.txt
	@.ci/dependencies --python
	python3 -m venv --clear .venv
	.venv/bin/pip install --quiet --disable-pip-version-check --requirement Tests/Support/requirements.txt
	@touch $@

.venv/.browser: .venv/.installed Tests/Support/requirements-browser.txt
	@.ci/dependencies --chromium
	.venv/bin/pip install --quiet --disable-pip-version-check --requirement Tests/Support/requirements-browser.txt
	@touch $@

.venv/.bench: .venv/.installed Tests/Support/requirements-bench.txt
	python3 -m venv --clear .venv/mvt
	.venv/mvt/bin/pip install --quiet --disable-pip-version-check --requirement Tests/Support/requirements-bench.txt
	@touch $@

.venv/.fleet: .venv/.installed packaging/python/requirements.txt packaging/python/pyproject.toml
	python3 -m venv --clear .venv/fleet
	.venv/fleet/bin/pip install --quiet --disable-pip-version-check --requirement packaging/python/requirements.txt
	.venv/fleet/bin/pip install --quiet --disable-pip-version-check --no-deps --editable packaging/python
	@touch $@

# Measures all figures even if one misses its goal, and then ends with an error.
bench: build .venv/.bench
	@failed=0; \
	swift run -c release --package-path Tests/Benchmarks Benchmarks $(abspath $(PROGRAM)) || failed=1; \
	$(MAKE) --no-print-directory -o build bench-verbs || failed=1; \
	$(MAKE) --no-print-directory -o build growth || failed=1; \
	exit $$failed

# The figures of the program as a whole, beside other programs; FIGURES=PATH also writes them as lines of JSON.
bench-verbs: build .venv/.bench
	@failed=0; export KEYHAUL_FIGURES="$(if $(FIGURES),$(abspath $(FIGURES)))"; \
	bench() { echo "$$1:"; $(PYTHON) Tests/Support/bench_$$1.py $(PROGRAM) "$${@:2}" || failed=1; }; \
	bench start; \
	bench passwords; \
	bench items $(if $(IRESTORE),--irestore $(IRESTORE)); \
	bench verbs; \
	bench restore; \
	bench large_files; \
	bench conversion; \
	bench export; \
	bench files --mvt .venv/mvt/bin/mvt-ios; \
	bench fleet; \
	bench scale; \
	exit $$failed

# Measures how the cost of the commands grows with items and files; PAGE=docs/Performance.md writes the tables there.
growth: build .venv/.installed
	$(PYTHON) Tests/Support/bench_growth.py $(PROGRAM) --items $(ITEMS) --files $(FILES) $(if $(PAGE),--page $(PAGE))

# Measures all figures of docs/Performance.md again, with one program on one machine.
performance: build .venv/.bench
	@rm -f .build/figures.ndjson
	-$(MAKE) --no-print-directory -o build bench-verbs FIGURES=.build/figures.ndjson
	$(PYTHON) Tests/Support/figures_page.py $(PROGRAM) .build/figures.ndjson docs/Performance.md
	$(MAKE) --no-print-directory -o build growth PAGE=docs/Performance.md

# Made from the program's help and docs/Format.md. The date is the commit's, so that a build can be repeated.
man: build
	@.ci/dependencies mandoc man-db
	rm -rf .build/man
	SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 0)}" \
		python3 packaging/make_man_pages.py $(PROGRAM) .build/man
	@for page in .build/man/*; do \
		faults="$$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l $$page 2>&1 >/dev/null; mandoc -T lint -W warning $$page)"; \
		[ -z "$$faults" ] || { printf '%s: %s\n' "$$page" "$$faults" >&2; exit 1; }; \
	done

# The date of a package is the commit's.
DATED := SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 0)}"
PACKAGES := .build/packages
PACKER := $(PACKAGES)/.venv/bin/python
# The program in the tar.gz and the wheel.
PACKED := $(PORTABLE)/keyhaul

deb: man
	@rm -f $(PACKAGES)/keyhaul_*.deb
	$(DATED) packaging/make_deb $(PROGRAM) .build/man $(PACKAGES)

tarball: man portable
	@rm -f $(PACKAGES)/keyhaul-*.tar.gz*
	$(DATED) packaging/make_tarball $(PACKED) .build/man $(PACKAGES)

wheel: portable $(PACKAGES)/.venv/.installed
	$(DATED) packaging/make_wheel $(PACKED) $(PACKAGES) $(PACKER)
	$(PACKER) -m twine check --strict $(PACKAGES)/*.whl
	$(PACKER) -m auditwheel show $(PACKAGES)/*.whl | sed -n 1,4p

image: deb
	@.ci/dependencies mmdebstrap buildah
	@rm -f $(PACKAGES)/keyhaul-*.oci.tar
	$(DATED) packaging/make_image $(PACKAGES)/*.deb $(PACKAGES)

$(PACKAGES)/.venv/.installed: packaging/requirements.txt
	@.ci/dependencies --python
	python3 -m venv --clear $(PACKAGES)/.venv
	$(PACKER) -m pip install --quiet --disable-pip-version-check --requirement packaging/requirements.txt
	@touch $@

# The backup for trying the packages, and the place for the time of each package's answer.
$(PACKAGES)/.own: build packaging/first_backup
	packaging/first_backup $(PROGRAM) $@

# Needs root, for a fresh Debian without Swift, so no other target depends on it.
test-deb: deb $(PACKAGES)/.own
	@.ci/dependencies lintian mmdebstrap dpkg-dev
	lintian --fail-on error $(PACKAGES)/*.deb
	packaging/test_deb $(PACKAGES)/*.deb $(PACKAGES)/.own

# Needs root, as test-deb does. After `make reproducible`, the table also has the time from source.
packages: test-deb tarball wheel image
	@.ci/dependencies umoci crun ruby nix-bin
	packaging/test_tarball $(PACKAGES)/*.tar.gz $(PACKAGES)/.own
	packaging/test_wheel $(PACKAGES)/*.whl $(PACKAGES)/.own
	packaging/test_image $(PACKAGES)/*.oci.tar $(PACKAGES)/.own
	$(PACKER) packaging/check_recipes.py $(PROGRAM) $(PACKAGES)/*.tar.gz
	@packaging/show_times $(PACKAGES)/.own $(PACKAGES)

reproducible: man $(PACKAGES)/.own
	packaging/test_reproducible .build/man $(PACKAGES)/.own

# A release contains only committed and finished work.
release-check:
	packaging/check_version.py --release
	@[ -z "$$(git status --porcelain)" ] || { echo "error: files are not committed" >&2; exit 1; }
	.ci/run --long
	packaging/check_libraries $(PORTABLE)/link.map

install: man
	packaging/install $(PROGRAM) .build/man "$(DESTDIR)$(PREFIX)"

uninstall:
	packaging/install --remove "$(DESTDIR)$(PREFIX)"

contention: deps
	swift run -c release --package-path Tests/Benchmarks Contention

clean:
	swift package clean
	rm -rf packaging/python/src/*.egg-info packaging/python/.*_cache packaging/python/build
	rm -rf .venv Tests/Support/__pycache__ Tests/Support/*/__pycache__ Sources/*/*/*.docc/Pages
