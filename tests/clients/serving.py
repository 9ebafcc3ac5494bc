"""A `memgrove serve` of its own, for the tests with official clients."""

import contextlib
import json
import os
import subprocess
import tempfile
import urllib.request


class Served:
    """Where a server is, and how to be let in."""

    def __init__(self, base, token, home):
        self.base, self.token, self.home = base, token, home

    def get(self, path):
        request = urllib.request.Request(self.base + path, headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request) as answer:
            return answer.read().decode()

    def post(self, path, body):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


@contextlib.contextmanager
def serving(memgrove, *arguments):
    """A server with a home and a store of its own, which ends with the block."""
    with tempfile.TemporaryDirectory(prefix="memgrove-serve-") as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"]}
        run = [memgrove, "serve", "--listen", "127.0.0.1:0", *arguments]
        process = subprocess.Popen(run, env=environment, cwd=home, stdout=subprocess.PIPE, text=True)
        try:
            link = process.stdout.readline().strip()
            with open(os.path.join(home, ".local/state/memgrove/serve-token")) as file:
                token = file.read().strip()
            yield Served(link.split("/open")[0], token, home)
        finally:
            process.terminate()
            code = process.wait(timeout=30)
            if code != 0:
                raise SystemExit(f"memgrove serve ended with {code}")
