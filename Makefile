# Everything a newcomer needs: `make run`, `make test`. The long proofs: `make torture`, `make bench`.

CARGO ?= cargo
CLIENTS := target/clients
PYTHON := $(CLIENTS)/venv/bin/python
DEBUG := target/debug/memgrove
RELEASE := target/release/memgrove

.PHONY: run test lint unit clients web install bench torture

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

# The official clients and servers, beside the program itself.
clients: install
	$(CARGO) build -p memgrove-cli
	$(PYTHON) tests/clients/memory_tool_diff.py $(DEBUG)
	$(PYTHON) tests/clients/mcp_client.py $(DEBUG)
	$(PYTHON) tests/clients/kg_diff.py $(DEBUG) $(CLIENTS)
	$(PYTHON) tests/clients/mcp_http.py $(DEBUG)
	$(PYTHON) tests/clients/mcp_conformance.py $(DEBUG) $(CLIENTS)
	$(PYTHON) tests/clients/memory_stores.py $(DEBUG) $(CLIENTS)
	$(PYTHON) tests/clients/s3_moto.py $(DEBUG)

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
	$(PYTHON) tests/clients/serve_load.py $(RELEASE)
	$(PYTHON) tests/clients/recall_bench.py $(RELEASE)

# Hours of what `make test` does in minutes.
torture: install
	$(CARGO) test --release --workspace
	$(CARGO) test --release --workspace -- --ignored torture_ --nocapture
	$(PYTHON) tests/clients/s3_moto.py --conformance $(CARGO) test -p memgrove --test it -- --ignored on_another_server
