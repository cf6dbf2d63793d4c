# `make` alone says what there is. Works with GNU make 3.81 and newer.
SHELL := /bin/bash

RELEASE = -c release --product keyhaul
ifeq ($(shell uname -s),Linux)
# One file that runs without Swift installed, without symbols, and small. Its calls are bound at the start: bound at the
# first call, the vector registers are put on the stack, whatever was copied through them.
RELEASE += --static-swift-stdlib -Xlinker -s -Xlinker -z -Xlinker now $(shell packaging/small_program --flags)
# Asked for when it is needed: looking through Foundation takes a second.
UNICODE_DATA = $(shell packaging/small_program --unicode-data)
endif
SWIFT_BUILD = KEYHAUL_COMMIT="$$(.ci/commit)" KEYHAUL_UNICODE_DATA="$(UNICODE_DATA)" swift build $(RELEASE)

PROGRAM := .build/release/keyhaul
PORTABLE := .build/portable
PREFIX ?= /usr/local
PYTHON := .venv/bin/python
# How many random keychain databases `make interop` writes and has read.
DATABASES ?= 200
# How many random changes of items inside backups it makes, each read by others.
EDITS ?= 60
# How many kills `make kills` makes, and of how many calls about files `make calls` lets one fail: 1 is every call.
KILLS ?= 1000
EVERY ?= 10
# Which moments `make kills` takes, and which calls `make calls`: another word, another number, and others are hit.
MOMENTS ?= moments
REST ?= 0

# Which moments, calls and walks `make nightly` takes: the day, so that each night has its own.
NIGHT ?= $(shell echo $$(($$(date +%s) / 86400)))

# How many items and files `make growth` goes up to.
ITEMS ?= 100000
FILES ?= 300000

# How long make fuzz takes for each input.
FUZZ_SECONDS ?= 60

.PHONY: help deps build demo test test-exhaustive every-bit fuzz fuzz-long sanitize coverage lint docs interop schemas workflow screenshots fixtures check-fixtures bench bench-verbs growth performance contention man install uninstall deb test-deb fleet portable tarball wheel image packages reproducible release-check kills calls soak nightly clean

help:
	@echo "make demo      two phones, a backup, a plan, a restore: seconds, after a build of minutes"
	@echo "make build     the release program, $(PROGRAM)"
	@echo "make portable  the same, with all libraries inside but those of glibc: $(PORTABLE)/keyhaul, and THIRD-PARTY.txt"
	@echo "make test      the tests, with a part of what there is very much of"
	@echo "make test-exhaustive  the tests of which there is very much, with all of it"
	@echo "make fuzz      what reads foreign bytes, under libFuzzer, $(FUZZ_SECONDS) seconds for each input; make fuzz-long, 20 minutes each"
	@echo "make sanitize  tests of the parts that read foreign bytes, and of those with several threads, under sanitizers"
	@echo "make coverage  how much of each part of the library the tests run"
	@echo "make every-bit  every bit and every length of a sealed backup, changed one by one; takes 95 minutes of a processor"
	@echo "make lint      formatting and house rules"
	@echo "make docs      the library's documentation and these pages as a site, .build/docs"
	@echo "make interop   other readers and ours open the same files; backups of every layout and with single faults; kills"
	@echo "make kills     every verb that writes, killed KILLS=$(KILLS) times at random moments; MOMENTS=word for others"
	@echo "make calls     a call about files that fails, one of EVERY=$(EVERY) and in five ways, and power cuts, for each such verb; REST=n for others"
	@echo "make soak      MINUTES=n SEED=s: two phones and a backup that anything happens to, for so long"
	@echo "make nightly   the long proofs: soak, kills, calls, every-bit, contention; NIGHT=n for other moments; hours"
	@echo "make schemas   what the program prints as JSON, held against docs/schemas"
	@echo "make fleet     the Python package's tests and types, and 200 backups over a cluster that loses a worker"
	@echo "make workflow  the workflow that a tutorial prints, run line by line in a fresh root; needs root, takes minutes"
	@echo "make screenshots  the HTML reports, looked at in Chromium, and their pictures in docs/images"
	@echo "make fixtures  the device descriptions and the list of faults, anew from their recipes"
	@echo "make bench     the figures of speed and memory, each with its goal; make bench-verbs, those of the program alone"
	@echo "make growth    how they grow, up to ITEMS=$(ITEMS) items and FILES=$(FILES) files"
	@echo "make performance  the figures and tables of docs/Performance.md anew"
	@echo "make contention  eight processes on one device, 1,000 rounds each"
	@echo "make man       the manual pages, .build/man, looked over by man and mandoc"
	@echo "make install   the program, its manual pages and completions, below PREFIX ($(PREFIX)); make uninstall"
	@echo "make deb       a Debian package of them, .build/packages; make test-deb tries it in a fresh root and needs root"
	@echo "make tarball   the same as a tar.gz with its SHA-256, of the portable program"
	@echo "make wheel     the portable program and the Python package as a wheel, for the platform that auditwheel proves"
	@echo "make image     an OCI image, built without an engine; needs root"
	@echo "make packages  all four, each tried in a fresh place without Swift, with the times to a first answer; needs root"
	@echo "make reproducible  two builds from nothing in one place, compared byte by byte; takes two full builds"
	@echo "make release-check  everything that a release needs: the version's places, .ci/run --long; hours"
	@echo "make clean     remove what was built"

deps:
	@.ci/dependencies

build: deps
	$(SWIFT_BUILD)
	@printf '%s: %d bytes\n' $(PROGRAM) "$$(wc -c < $(PROGRAM))"

# Linked of the same parts as the release program, in the same place, and copied; then that one is linked again.
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

# The tests start the release program: it is what users get, and thousands of starts of a debug one take minutes.
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
	@set -o pipefail; export KEYHAUL_TESTED_PARTS=ArchivedKeychain KEYHAUL_EVERY_BIT=1; \
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

# The published readers come from the package index; that they can't be had is a failure, never a skip.
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

# Other moments and other walks every night; what fails is named, and the others are made all the same.
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

# The package is installed from its folder; the program is this build's, whatever else is on the search path.
fleet: build .venv/.fleet
	.venv/fleet/bin/ruff check --quiet packaging/python
	.venv/fleet/bin/ruff format --quiet --check packaging/python
	cd packaging/python && ../../.venv/fleet/bin/mypy --strict src tests
	cd packaging/python && KEYHAUL_PROGRAM=$(abspath $(PROGRAM)) ../../.venv/fleet/bin/python -m pytest
	.venv/fleet/bin/python Tests/Support/check_fleet.py --keyhaul $(PROGRAM)

# Needs root, for mounts, and builds the release program again, which is why no other target asks for it.
workflow:
	python3 Tests/Support/check_workflow.py

# Needs a browser, which is why no other target asks for it.
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

# All figures, also where one is missed; ends with an error then.
bench: build .venv/.bench
	@failed=0; \
	swift run -c release --package-path Tests/Benchmarks Benchmarks $(abspath $(PROGRAM)) || failed=1; \
	$(MAKE) --no-print-directory -o build bench-verbs || failed=1; \
	$(MAKE) --no-print-directory -o build growth || failed=1; \
	exit $$failed

# Those of the program as a whole, beside its peers; FIGURES=PATH keeps them as lines of JSON too.
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

# How what the verbs take grows, up to so many items and files; PAGE=docs/Performance.md writes the tables into it.
growth: build .venv/.installed
	$(PYTHON) Tests/Support/bench_growth.py $(PROGRAM) --items $(ITEMS) --files $(FILES) $(if $(PAGE),--page $(PAGE))

# The figures of docs/Performance.md anew, all of them of one program on one machine.
performance: build .venv/.bench
	@rm -f .build/figures.ndjson
	-$(MAKE) --no-print-directory -o build bench-verbs FIGURES=.build/figures.ndjson
	$(PYTHON) Tests/Support/figures_page.py $(PROGRAM) .build/figures.ndjson docs/Performance.md
	$(MAKE) --no-print-directory -o build growth PAGE=docs/Performance.md

# Of the program's own words and of docs/Format.md; the day is that of the commit, so that a build can be repeated.
man: build
	@.ci/dependencies mandoc man-db
	rm -rf .build/man
	SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 0)}" \
		python3 packaging/make_man_pages.py $(PROGRAM) .build/man
	@for page in .build/man/*; do \
		faults="$$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l $$page 2>&1 >/dev/null; mandoc -T lint -W warning $$page)"; \
		[ -z "$$faults" ] || { printf '%s: %s\n' "$$page" "$$faults" >&2; exit 1; }; \
	done

# The day of a package is that of the commit.
DATED := SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 0)}"
PACKAGES := .build/packages
PACKER := $(PACKAGES)/.venv/bin/python
# The program that the tar.gz and the wheel hold.
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

# What the packages are asked about, and where each leaves the time that its answer took.
$(PACKAGES)/.own: build packaging/first_backup
	packaging/first_backup $(PROGRAM) $@

# Needs root, for a fresh Debian without Swift, which is why no other target asks for it.
test-deb: deb $(PACKAGES)/.own
	@.ci/dependencies lintian mmdebstrap dpkg-dev
	lintian --fail-on error $(PACKAGES)/*.deb
	packaging/test_deb $(PACKAGES)/*.deb $(PACKAGES)/.own

# Needs root, as test-deb does. Whether a build can be repeated `make reproducible` shows, after which the table has
# the time from source too.
packages: test-deb tarball wheel image
	@.ci/dependencies umoci crun ruby nix-bin
	packaging/test_tarball $(PACKAGES)/*.tar.gz $(PACKAGES)/.own
	packaging/test_wheel $(PACKAGES)/*.whl $(PACKAGES)/.own
	packaging/test_image $(PACKAGES)/*.oci.tar $(PACKAGES)/.own
	$(PACKER) packaging/check_recipes.py $(PROGRAM) $(PACKAGES)/*.tar.gz
	@packaging/show_times $(PACKAGES)/.own $(PACKAGES)

reproducible: man $(PACKAGES)/.own
	packaging/test_reproducible .build/man $(PACKAGES)/.own

# A release is made of what is committed, and of nothing that is unfinished.
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
	rm -rf .venv Tests/Support/__pycache__ Tests/Support/*/__pycache__ Sources/*/*.docc/Pages
