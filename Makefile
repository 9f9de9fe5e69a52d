# The two commands: `make demo` shows it, `make test` proves it. `make help` lists the rest.
# What links MPI is built once per MPI found (tools/mpis), each in its own target directory; the recorder, which links none, once for all.
# MPICC=WRAPPER names an MPI that comes before those in PATH.

CARGO ?= cargo
PREFIX ?= /usr/local
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

MPI_CRATES := st-engine
# `make python` checks and builds the Python package.
NO_MPI := --workspace $(MPI_CRATES:%=--exclude %) --exclude st-python
ONLY_MPI := $(MPI_CRATES:%=-p %)
INSTALLED := st-engine st-kernels-mpi
RECORDER := target/release/libst_pmpi.so
# Not in the demo, and a file of its own: what reads and writes others' formats is large.
APART := st-convert
PROGRAMS := st-record st-sync st-cluster st-merge st-view st-stat st-replay st-kernels

# $(call with_mpi,NAMES,COMMAND): the command once per MPI among NAMES that this machine has, in that MPI's target
# directory and with its compiler wrapper, echoed.
define with_mpi
@tools/mpis | while read -r name wrapper; do \
    case " $(1) " in *" $$name "*) ;; *) continue ;; esac; \
    echo "CARGO_TARGET_DIR=target/$$name MPICC=$$wrapper $(2)"; \
    CARGO_TARGET_DIR=target/$$name MPICC=$$wrapper $(2) </dev/null; \
done
endef

.NOTPARALLEL:
.PHONY: help build build-demo check test fmt circles conversions tuples names map mutation-texts features lines report-page report-check clippy clippy-mpi doc tree licences deny man man-check unit unit-mpi e2e python \
    loom mutations valgrind test-programs conformance demo experiments experiments-check bench bench-report bench-check fuzz completions install install-debug \
    install-check dist clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t16

build: ## build everything for every MPI found
	$(CARGO) build --release --locked
	$(CARGO) build --release --locked -p st-pmpi
	@tools/seed
	$(CARGO) build --release --locked $(APART:%=-p %)
	$(call with_mpi,openmpi mpich,$(CARGO) build --release --locked $(ONLY_MPI))

build-demo:
	$(CARGO) build --release --locked $(PROGRAMS:%=-p %)
	$(CARGO) build --release --locked -p st-pmpi
	@tools/seed
	$(call with_mpi,openmpi,$(CARGO) build --release --locked $(ONLY_MPI))

check: fmt circles conversions tuples names map mutation-texts clippy unit bench-check lines ## format, circles, lints and unit tests of what needs no MPI: the fast loop

test: ## everything that must hold, end to end under every MPI found
	tools/bootstrap test
	tools/mpi4py
	tools/wheels
	$(MAKE) fmt circles conversions tuples names map mutation-texts tree features licences deny clippy clippy-mpi doc unit loom bench-check man-check fuzz build unit-mpi e2e python install-check
	tools/conformance
	tools/test-programs lammps
	$(MAKE) experiments-check

fmt:
	$(CARGO) fmt --all --check

circles: ## fail if modules of a crate import each other in a circle
	tools/circles

conversions: ## fail if a number that does not fit becomes another one unsaid
	tools/conversions

tuples: ## fail if more functions than before take a tuple
	tools/tuples

names: ## fail if a function of MPI is named by a text outside of the call table
	tools/names

map: ## fail if ARCHITECTURE.md or CONTRIBUTING.md names what is not there
	tools/map

mutation-texts: ## fail if what `make mutations` changes is not there
	@tools/mutations --list >/dev/null

lines:
	@tools/lines

report-page: ## build the page of st-stat report from its sources (needs npm)
	tools/report-page

report-check: ## look at the page of st-stat report in Chromium (needs npm)
	tools/report-check

clippy:
	$(CARGO) clippy --locked $(NO_MPI) --all-targets -- -D warnings
	$(CARGO) clippy --locked -p st-tests --test e2e -- -D warnings

# What needs no MPI is checked once for all. mpi-sys does not look at MPICC again by itself.
clippy-mpi:
	tools/mpis | while read -r name wrapper; do \
	    $(CARGO) clean -q --locked -p mpi-sys; \
	    MPICC=$$wrapper $(CARGO) clippy --locked $(ONLY_MPI) --all-targets -- -D warnings </dev/null; \
	done

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps $(NO_MPI)

# The interposer must not call MPI through its own symbols, and everything else must build without MPI.
tree: ## fail if the recorder or a crate that needs no MPI depends on the mpi crate
	@echo "$(CARGO) tree: no mpi crate below the recorder and the crates that need no MPI"
	@tree=$$($(CARGO) tree --locked --workspace --exclude st-engine --edges normal,build --prefix none); \
	if grep -E '^(mpi|mpi-sys) v' <<<"$$tree"; then echo "these link libmpi" >&2; exit 1; fi

features: ## fail if crates that are built apart ask for other features of what they share
	tools/features/check

licences: ## licences of all dependencies against the allow list of deny.toml
	tools/licences

deny:
	@if $(CARGO) deny --version >/dev/null 2>&1; then set -x; $(CARGO) deny --locked check; \
	else echo "cargo-deny is not installed: skipped (licences are checked by tools/licences)"; fi

man: ## write man/*.1 from the programs' option definitions
	$(CARGO) run --locked -q -p st-man -- write man

man-check:
	$(CARGO) run --locked -q -p st-man -- check man
	@if command -v mandoc >/dev/null; then set -x; mandoc -T lint -W warning man/*.[157]; \
	else echo "mandoc is not installed: the pages' markup is not checked"; fi

unit:
	$(CARGO) test --locked $(NO_MPI)

unit-mpi:
	$(call with_mpi,openmpi mpich,$(CARGO) test --release --locked $(ONLY_MPI))

e2e:
	$(CARGO) test --release --locked -p st-tests --test e2e

python: ## build the Python package into target/python, and test it with packages of PyPI, beside the programs that are built
	tools/python

loom: ## the recorder's lock under the orders that its threads' steps can have
	$(CARGO) test --locked --manifest-path tests/loom/Cargo.toml --target-dir target --lib

mutations: ## break the code in one place at a time: a test must fail each time; ONLY=PATTERN
	tools/mutations $(ONLY:%=--only '%')

valgrind: build ## record test programs under valgrind: no error may be the recorder's
	tools/valgrind

test-programs: ## record, merge and replay large programs: LAMMPS, Quantum ESPRESSO, MUMPS, NAS, HDF5, NetPIPE, HPCC, ScaLAPACK
	tools/bootstrap programs
	$(MAKE) build
	tools/test-programs

conformance: build ## a sample of the MPICH conformance suite, with and without st-record
	tools/bootstrap test
	tools/conformance

demo: ## record, look at, merge and replay two programs
	@tools/bootstrap demo
	@$(MAKE) --no-print-directory build-demo
	@tools/demo

bench: build ## measure into benchmarks/; AGAINST=REV: beside that version, in turns; ONLY=GROUPS or quick, CASE=TEXT, RUNS=N
	$(CARGO) run --locked -q -p st-bench -- run $(AGAINST:%=--against %) $(ONLY:%=--only %) $(CASE:%=--case %) $(RUNS:%=--runs %)

experiments: build ## the papers' evaluations, in some minutes: target/experiments/quick (full: make -C tools/experiments full)
	$(MAKE) -C tools/experiments quick

experiments-check: build ## one small case of each of them
	$(MAKE) -C tools/experiments tiny

bench-report: ## write BENCHMARKS.md from benchmarks/
	$(CARGO) run --locked -q -p st-bench -- report

bench-check:
	$(CARGO) run --locked -q -p st-bench -- report --check

fuzz: ## compile the fuzz targets
	$(CARGO) build --locked --manifest-path fuzz/Cargo.toml --target-dir target

completions: ## write shell completions into target/completions
	$(CARGO) run --locked -q -p st-man -- completions target/completions

install: build completions ## install below PREFIX (default /usr/local; DESTDIR for packagers), without debugging symbols
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man{1,5,7}
	install -s target/release/st-programs $(DESTDIR)$(PREFIX)/bin/st-record
	for p in $(filter-out st-record,$(PROGRAMS)); do ln -f $(DESTDIR)$(PREFIX)/bin/{st-record,$$p}; done
	install -s $(APART:%=target/release/%) $(DESTDIR)$(PREFIX)/bin
	install -d $(DESTDIR)$(PREFIX)/lib/st
	install -s $(RECORDER) $(DESTDIR)$(PREFIX)/lib/st
	for s in 1 5 7; do install -m 644 man/*.$$s $(DESTDIR)$(PREFIX)/share/man/man$$s; gzip -9nf $(DESTDIR)$(PREFIX)/share/man/man$$s/st-*.$$s; done
	tools/mpis | while read -r name wrapper; do \
	    install -d $(DESTDIR)$(PREFIX)/lib/st/$$name; \
	    install -s $$(ls $(INSTALLED:%=target/$$name/release/%) 2>/dev/null) $(DESTDIR)$(PREFIX)/lib/st/$$name; \
	done
	install -d $(DESTDIR)$(PREFIX)/share/{bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
	for p in $(PROGRAMS) $(APART); do \
	    install -m 644 target/completions/$$p.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$p; \
	    install -m 644 target/completions/_$$p $(DESTDIR)$(PREFIX)/share/zsh/site-functions; \
	    install -m 644 target/completions/$$p.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d; \
	done

install-debug: build ## install the debugging symbols of what install puts there, found by build-id, below PREFIX/lib/debug
	for f in target/release/st-programs $(APART:%=target/release/%) $(RECORDER) $$(tools/mpis | while read -r name wrapper; do \
	    printf '%s ' $$(ls $(INSTALLED:%=target/$$name/release/%) 2>/dev/null); done); do \
	    id=$$(readelf -n $$f | sed -n 's/.*Build ID: //p'); \
	    to=$(DESTDIR)$(PREFIX)/lib/debug/.build-id/$${id:0:2}; \
	    install -d $$to; \
	    objcopy --only-keep-debug $$f $$to/$${id:2}.debug; \
	done

dist: build completions ## archives for other machines in target/dist: a directory that works anywhere, and a Debian package
	tools/dist

install-check: build completions ## install into a temporary directory: its size, and whether what is there works
	tools/install-check

clean: ## delete what was built
	$(CARGO) clean
	rm -rf demo
