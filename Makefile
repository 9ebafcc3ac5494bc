# Everything a newcomer needs: `make run`, `make test`. The long proofs: `make torture`, `make bench`.

CARGO ?= cargo
CLIENTS := target/clients
PYTHON := $(CLIENTS)/venv/bin/python
DEBUG := target/debug/memgrove
RELEASE := target/release/memgrove

.PHONY: run test lint unit fuzz clients web install bench torture

run:
	$(CARGO) run --release -- serve

test: lint unit clients web
	@echo "all checks passed"

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

# The property tests try the same cases each time; `make torture` tries others.
unit: export PROPTEST_RNG_SEED = 1
unit:
	$(CARGO) test --workspace

# The reader of records on any bytes, guided by what they reach: counters in the code are LLVM's own, so no nightly
# compiler is needed. `make fuzz FUZZ_SECONDS=3600` for an hour.
FUZZ_SECONDS ?= 15
FUZZ_HOST := $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_FLAGS := --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1
fuzz:
	RUSTFLAGS="$(FUZZ_FLAGS)" $(CARGO) build --release --manifest-path fuzz/Cargo.toml --target $(FUZZ_HOST) --target-dir target/fuzz
	mkdir -p target/fuzz/corpus
	target/fuzz/$(FUZZ_HOST)/release/records -max_total_time=$(FUZZ_SECONDS) -verbosity=0 -print_final_stats=1 \
		-artifact_prefix=target/fuzz/ target/fuzz/corpus fuzz/seeds/records

# The official clients and servers, beside the program itself.
clients: install
	$(CARGO) build -p memgrove-cli
	$(PYTHON) tests/clients/memory_tool_diff.py $(DEBUG)
	$(PYTHON) tests/clients/mcp_client.py $(DEBUG)
	$(PYTHON) tests/clients/kg_diff.py $(DEBUG) $(CLIENTS)
	$(PYTHON) tests/clients/mcp_http.py $(DEBUG)
	$(PYTHON) tests/clients/mcp_conformance.py $(DEBUG) $(CLIENTS)
	$(PYTHON) tests/clients/memory_stores.py $(DEBUG) $(CLIENTS)
	$(PYTHON) tests/clients/buckets.py $(DEBUG) $(CLIENTS)

# The web page in Chromium; what it looked like is kept in target/web/screens.
web:
	tests/web/install target/web/tools
	$(CARGO) build -p memgrove-cli
	node tests/web/run.mjs $(DEBUG) target/web/tools target/web/screens

install:
	tests/clients/install $(CLIENTS)

# Ratios, taken side by side in one run.
bench: install
	$(CARGO) bench --workspace --benches
	$(CARGO) build --release -p memgrove-cli
	$(PYTHON) tests/clients/kg_bench.py $(RELEASE) $(CLIENTS)
	$(PYTHON) tests/clients/recall_bench.py $(RELEASE)

# Hours of what `make test` does in minutes.
torture: install
	$(CARGO) test --release --workspace
	$(CARGO) test --release --workspace -- --ignored torture_ --nocapture
	$(PYTHON) tests/clients/buckets.py --conformance $(CLIENTS) $(CARGO) test -p memgrove --test it -- --ignored on_another_server
