# Everything a newcomer needs: `make run`, `make test`. The long proofs: `make torture`, `make bench`.

CARGO ?= cargo
PYTHON ?= python3
VENV := target/clients
DEBUG := target/debug/memgrove

.PHONY: run test lint unit clients bench torture

run:
	$(CARGO) run --release -- demo

test: lint unit clients
	@echo "all checks passed"

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

unit:
	$(CARGO) test --workspace

# The official clients, against the program itself.
clients: $(VENV)/installed
	$(CARGO) build -p memgrove-cli
	$(VENV)/bin/python tests/clients/memory_tool_diff.py $(DEBUG)
	$(VENV)/bin/python tests/clients/mcp_client.py $(DEBUG)

$(VENV)/installed: tests/clients/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/clients/requirements.txt
	touch $@

# Ratios, taken side by side in one run.
bench:
	$(CARGO) bench --workspace

# Hours of what `make test` does in minutes.
torture:
	$(CARGO) test --release --workspace -- --ignored torture_ --nocapture
