# The commands of this repository; `make` alone lists them. Each sets up what it needs.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# scripts/locked names the build directory, outside of the checkout, and lets one user at a time into it. CARGO_TARGET_DIR
# overrides where it is. All targets build one profile, so that RocksDB compiles once.
cargo := scripts/locked cargo
shell_scripts := .ci/run chaos/run demo/run helm/check $(filter-out %.txt %.py,$(wildcard scripts/*))

.PHONY: help
help: ## Lists the commands.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: setup ## Shows punctual at work on a real Kafka, and a crash that loses nothing. KEEP=1 leaves it running.
	@demo/run

.PHONY: build
build: setup ## Builds the binary as bin/punctual.
	@scripts/locked bash -euc 'cargo build --locked --bin punctual --test tidy; mkdir -p bin; cp -f "$$CARGO_TARGET_DIR/debug/punctual" bin/punctual'
	@echo 'bin/punctual is built'

.PHONY: test
test: setup ## Runs all checks and all tests, those against a real Kafka too, and the demo.
	@scripts/locked $(MAKE) check-text check-rust check-helm test-all test-mutants
	@demo/run

.PHONY: check
check: setup ## Checks format, lints, docs, layers, scripts and the chart. Writes nothing.
	@scripts/locked $(MAKE) check-text check-rust check-helm
	$(cargo) test --locked --test tidy

.PHONY: check-rust
check-rust:
	cargo fmt --check
	$(cargo) clippy --all-targets --locked -- -D warnings
	$$(scripts/tools)/cargo-deny --log-level error check bans licenses sources
	RUSTDOCFLAGS='-D warnings' $(cargo) doc --no-deps --locked

.PHONY: check-text
check-text: setup
	@tools=$$(scripts/tools); set -x; \
	"$$tools/typos"; \
	"$$tools/shellcheck" $(shell_scripts); \
	RUST_LOG=warn "$$tools/taplo" fmt --check; \
	python3 demo/ledger_test.py

.PHONY: check-helm
check-helm: setup ## Checks the chart: lint, templates, and their objects against the strict schemas of Kubernetes.
	helm/check

.PHONY: test-all
test-all: setup
	scripts/kafka-libs >/dev/null
	PUNCTUAL_SECONDS=$${PUNCTUAL_SECONDS:-300} RUST_TEST_THREADS=$${RUST_TEST_THREADS:-4} \
	  $(cargo) test --locked --no-fail-fast

# The feature builds this package anew, and nothing that it depends on.
.PHONY: test-mutants
test-mutants:
	$(cargo) test --locked --features planted --test sim mutants

.PHONY: mutants
mutants: setup ## Plants mistakes in the code for the simulator to find, and writes docs/mutations.md.
	PUNCTUAL_WRITE_DOCS=1 $(cargo) test --locked --features planted --test sim mutants -- --nocapture

.PHONY: test-kafka
test-kafka: setup ## Runs the scenarios against a real Kafka; TEST=name selects some.
	scripts/kafka-libs >/dev/null
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-4} $(cargo) test --locked --test kafka -- $(TEST)

.PHONY: soak
soak: setup ## Runs the simulator with random seeds on all cores; SECONDS=n says how long, SEED=n where to begin.
	PUNCTUAL_SECONDS=$(or $(SECONDS),600) PUNCTUAL_SEED=$${SEED:-$$(date +%s)000} \
	  $(cargo) test --locked --test sim many_seeds_hold -- --nocapture

.PHONY: chaos
chaos: setup ## Breaks punctual in the long forms for CHAOS_MINUTES (30), on own brokers or on CHAOS_BROKERS; see docs/chaos.md.
	@chaos/run

.PHONY: fix
fix: setup ## Formats the code and applies what clippy can fix by itself.
	cargo fmt
	$(cargo) clippy --all-targets --locked --fix --allow-dirty --allow-staged
	cargo fmt
	@tools=$$(scripts/tools); set -x; \
	RUST_LOG=warn "$$tools/taplo" fmt; \
	"$$tools/typos" --write-changes

.PHONY: docs
docs: setup ## Writes the pages of docs/ that are made of the tests: docs/failures.md.
	PUNCTUAL_WRITE_DOCS=1 $(cargo) test --locked --test tidy

.PHONY: fuzz
fuzz: setup ## Tries the decoders on hostile input, for SECONDS each property (default 60).
	PUNCTUAL_FUZZ_SECONDS=$(or $(SECONDS),60) $(cargo) test --locked --test fuzz

.PHONY: bench
bench: setup ## Runs the micro-benchmarks of the core. They build the release profile, which takes long the first time.
	$(cargo) bench --locked --benches

.PHONY: deny
deny: setup ## Checks the licenses and sources of the dependencies.
	$$(scripts/tools)/cargo-deny --log-level error check bans licenses sources

.PHONY: run-broker
run-broker: setup ## Runs a Kafka broker to play with, until ctrl-c. DIR=path keeps its data.
	@scripts/kafka run $(DIR)

.PHONY: setup
setup:
	@scripts/setup
