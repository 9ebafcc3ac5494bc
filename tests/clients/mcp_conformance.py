"""The official conformance suite of MCP against `memgrove serve`, over streamable HTTP.

usage: mcp_conformance.py MEMGROVE CLIENTS
"""

import os
import re
import subprocess
import sys

from serving import serving

# What a server of tools, resources and prompts must do; the rest of the suite needs a server with its fixtures.
SCENARIOS = [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "dns-rebinding-protection",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "sep-2164-resource-not-found",
    "http-header-validation",
    "server-stateless",
    "caching",
]

# These try a tool of the suite's own that asks the client for something; memgrove's tools ask clients for nothing.
NOT_OURS = {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"}


def failures(done):
    """The checks that failed."""
    checks = re.findall(r"\[(\S+)\s*\] \S*?(SUCCESS|FAILURE|SKIPPED|WARNING|INFO)", done.stdout)
    failed = [check for check, outcome in checks if outcome == "FAILURE" and check not in NOT_OURS]
    told = bool(checks) and (done.returncode == 0 or any(outcome == "FAILURE" for _, outcome in checks))
    return failed if told else failed + ["the scenario itself"], len(checks)


def main():
    memgrove, clients = map(os.path.abspath, sys.argv[1:3])
    node = os.path.join(clients, "node_modules/node/bin/node")
    suite = os.path.join(clients, "node_modules/@modelcontextprotocol/conformance/dist/index.js")
    here = os.path.dirname(os.path.abspath(__file__))
    failed, checks = [], 0
    with serving(memgrove) as served:
        proxy = subprocess.Popen(
            [node, os.path.join(here, "with_token.mjs"), served.base, served.token], stdout=subprocess.PIPE, text=True
        )
        try:
            served.post("/api/file_create", {"path": "a.md", "text": "a memory"})
            url = f"http://127.0.0.1:{proxy.stdout.readline().strip()}/mcp"
            for scenario in sys.argv[3:] or SCENARIOS:
                run = [node, suite, "server", "--url", url, "--scenario", scenario]
                done = subprocess.run(run, capture_output=True, text=True, timeout=120, cwd=served.home)
                wrong, tried = failures(done)
                checks += tried
                if wrong or sys.argv[3:]:
                    print(f"--- {scenario}\n{done.stdout}{done.stderr}")
                failed += [f"{scenario}: {check}" for check in wrong]
        finally:
            proxy.terminate()
            proxy.wait()
    print(f"mcp conformance: {len(SCENARIOS)} scenarios, {checks} checks, {len(failed)} failed {failed or ''}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
