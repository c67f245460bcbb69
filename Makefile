# make demo and make test do everything on a machine with Rust and Node; see README.md.
.DEFAULT_GOAL := help
SHELL := /bin/sh
# The tests that break programs take those that are shipped.
SHIPPED := FORGE_TEST_GH=$(CURDIR)/target/deploy/gh FORGE_TEST_FORGE=$(CURDIR)/target/deploy/forge

.PHONY: help demo test bench check build deploy test-forge-health test-forge-shim test-forge-batch test-forge-cache test-forge-cache-shim test-forge-budget test-forge-quota test-bob-groom sim test-forge-queue test-forge-queue-shim test-forge-queue-replay

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 26

demo: build test-gh node_modules ## the main job, with the real gh against the embedded local forge
	@scripts/demo.sh

test: build test-gh node_modules ## every test
	cargo test --workspace --no-fail-fast
	FORGE_ONLY='every order;power cuts' $(SHIPPED) cargo test -q -p forge --test reliability
	node --test __test__/ tests/support/forge/

build: ## the shim, the forge command and the addon, into target/deploy
	@scripts/build.sh

deploy: ## installs into $$BOB_HOME (default ~/.claude)
	@scripts/deploy.sh

bench: build node_modules ## what a call costs, as ratios measured side by side
	@scripts/bench/run.sh

check: node_modules ## formatting, lints, types
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings
	npx --no-install tsc -p .

test-forge-health: build node_modules ## the specification's: health, engine and JS
	cargo test -p forge-engine
	cargo test -p forge --test suite health
	node --test __test__/health.test.js

test-forge-shim: test-gh ## the specification's: the shim's transparency
	cargo test -p forge --test suite transparency

test-forge-batch: build test-gh node_modules ## the specification's: batched reads, and the flight plan's use of them
	cargo test -p forge-engine -- batch
	node --test __test__/batch.test.js
	node --test --test-name-pattern='flight plan|sweep' __test__/callers.test.js

test-forge-cache: build node_modules ## the specification's: the read cache's store, engine and JS
	cargo test -p forge-engine -- cache fallback keep
	node --test __test__/cache.test.js

test-forge-cache-shim: test-gh node_modules ## the specification's: the read cache through a raw gh call
	cargo test -p forge --test suite -- cache::

test-forge-budget: build test-gh node_modules ## the specification's: the gate, the backoff, the ledger; nothing waits
	cargo test -p forge-engine -- gate backoff reading budget hold ledger lockdir records sleep
	cargo test -p forge --test suite -- budget::

test-forge-quota: build test-gh node_modules ## the specification's: the quota document, every surface that shows it, the patient runner
	cargo test -p forge-engine -- quota patient measure
	cargo test -p forge --test suite -- budget::report measure::
	node --test __test__/budget.test.js __test__/patient.test.js __test__/measure.test.js
	node --test --test-name-pattern='snapshot|brief|doctor' __test__/callers.test.js

test-bob-groom: build node_modules ## the specification's: groom's retry and its trailer
	node --test __test__/groom.test.js

reliability: build node_modules ## lossless, transparent, true: every step killed and failed, each test with its control arm; a table
	$(SHIPPED) cargo test -q -p forge --test reliability

soak: build test-gh node_modules ## thirty callers, a forge that keeps failing, ten minutes (SOAK_SECONDS, FORGE_SEED)
	$(SHIPPED) cargo test -q -p forge --test soak

soak-control: test-gh node_modules ## the soak without two of the queue's guards: it has to fail
	FORGE_CONTROL=attempt,lock cargo test -q -p forge --test soak; test $$? -ne 0

# Needs the nightly toolchain and cargo-fuzz.
fuzz: ## every fuzzer for FUZZ_SECONDS (60)
	@cargo +nightly fuzz --version >/dev/null 2>&1 || { echo "make fuzz needs the nightly toolchain and cargo-fuzz: rustup toolchain install nightly && cargo install cargo-fuzz" >&2; exit 1; }
	for target in argv signal logs states cache queue git urls; do \
		(cd fuzz && cargo +nightly fuzz run $$target -- -max_total_time=$${FUZZ_SECONDS:-60} -max_len=2000) || exit 1; \
	done
.PHONY: reliability soak soak-control fuzz

sim: ## two hours of 1, 20 and 50 agents against a model of GitHub's limits, on the gate's own functions
	cargo run -q --release -p forge-engine --example sim

# The real gh, both versions, from their packages.
test-gh:
	@scripts/install-test-gh.sh
.PHONY: test-gh

node_modules: package.json package-lock.json
	npm ci --no-audit --no-fund
	@touch node_modules

test-forge-queue: build node_modules ## the specification's: the queue's store and the observable shape
	cargo test -p forge-engine -- queue journal entry check reach dirty
	node --test __test__/queue.test.js

test-forge-queue-shim: test-gh node_modules ## the specification's: the queue through a raw gh call
	cargo test -p forge --test suite -- queue:: queue_races:: queue_hostile::

test-forge-queue-replay: test-gh node_modules ## the specification's: replay against a stateful forge, kills, lost answers; prints the figures
	cargo test -p forge-engine -- decide::replay
	cargo test -p forge --test suite -- --nocapture replay:: crash::
