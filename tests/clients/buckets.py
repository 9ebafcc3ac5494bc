"""The program on a bucket: two machines, one store, seen through the provider's own client of the same bucket.

Starts servers of other people's making on loopback: moto for S3, Azurite for Azure. With --conformance it runs the
command that follows once for each, with MEMGROVE_TEST_BUCKET set to the bucket's address and MEMGROVE_TEST_SETTINGS to
the settings as JSON.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time

import boto3
from azure.storage.blob import BlobServiceClient


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Service:
    """A server, and the provider's own client of it."""

    def __init__(self, command, endpoint):
        self.endpoint = endpoint
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.server = subprocess.Popen(command, **quiet)
        for _ in range(300):
            try:
                self.make_bucket()
                return
            except Exception:
                if self.server.poll() is not None:
                    raise SystemExit(f"{command[0]} did not start")
                time.sleep(0.1)
        raise SystemExit(f"{endpoint} does not answer")

    def environment(self):
        """The credentials, named as the provider's own tools name them."""
        return {name.upper(): value for name, value in self.credentials.items()}


class S3(Service):
    address = "s3://bucket"
    variable = "MEMGROVE_S3_ENDPOINT"
    credentials = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "aws_default_region": "us-east-1"}

    def __init__(self, _clients):
        port = free_port()
        endpoint = f"http://127.0.0.1:{port}"
        self.client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1",
                                   aws_access_key_id="test", aws_secret_access_key="test")
        super().__init__([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], endpoint)

    def make_bucket(self):
        self.client.create_bucket(Bucket="bucket")

    def put(self, key, body):
        self.client.put_object(Bucket="bucket", Key=key, Body=body)

    def get(self, key):
        there = self.client.get_object(Bucket="bucket", Key=key)
        return there["Body"].read(), there["ContentType"]


class Azure(Service):
    address = "az://bucket"
    variable = "AZURE_STORAGE_ENDPOINT"
    # The account that Azurite documents; it exists nowhere else.
    credentials = {
        "azure_storage_account_name": "devstoreaccount1",
        "azure_storage_account_key":
            "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    }

    def __init__(self, clients):
        port = free_port()
        endpoint = f"http://127.0.0.1:{port}/devstoreaccount1"
        key = self.credentials["azure_storage_account_key"]
        service = BlobServiceClient(endpoint, retry_total=0,
                                    credential={"account_name": "devstoreaccount1", "account_key": key})
        self.client = service.get_container_client("bucket")
        program = os.path.join(clients, "node_modules/azurite/dist/src/blob/main.js")
        super().__init__(["node", program, "--silent", "--disableTelemetry", "--skipApiVersionCheck",
                          "--inMemoryPersistence", "--blobPort", str(port)], endpoint)

    def make_bucket(self):
        self.client.create_container()

    def put(self, key, body):
        self.client.upload_blob(key, body, overwrite=True)

    def get(self, key):
        there = self.client.download_blob(key)
        return there.readall(), there.properties.content_settings.content_type


SERVICES = [S3, Azure]


def main():
    conformance = sys.argv[1] == "--conformance"
    clients, program = (sys.argv[2], sys.argv[3:]) if conformance else (sys.argv[2], os.path.abspath(sys.argv[1]))
    for kind in SERVICES:
        service = kind(clients)
        try:
            if conformance:
                settings = json.dumps({"endpoint": service.endpoint, **service.credentials})
                given = {"MEMGROVE_TEST_BUCKET": service.address, "MEMGROVE_TEST_SETTINGS": settings}
                subprocess.run(program, env={**os.environ, **given}, check=True)
            else:
                use(program, service)
        finally:
            service.server.kill()


def use(program, service):
    homes = [tempfile.mkdtemp(prefix="memgrove-machine-") for _ in range(2)]
    store = f"{service.address}/team/space"
    if service.address.startswith("s3:"):
        named = {"MEMGROVE_BACKEND": "object", "MEMGROVE_S3_BUCKET": "bucket", "MEMGROVE_S3_PREFIX": "team/space",
                 "MEMGROVE_S3_REGION": "us-east-1"}
        by = "MEMGROVE_BACKEND"
    else:
        named, by = {"MEMGROVE_STORE": store}, "the store's address"

    def run(machine, *arguments, code=0, text="", **variables):
        environment = {"HOME": homes[machine], "PATH": os.environ["PATH"], service.variable: service.endpoint,
                       **named, **service.environment(), **variables}
        ran = subprocess.run([program, *arguments], env=environment, cwd=homes[machine], capture_output=True,
                             input=text, encoding="utf-8")
        assert ran.returncode == code, (arguments, ran.returncode, ran.stdout, ran.stderr)
        return ran.stdout + ran.stderr

    run(0, "file", "create", "/memories/plan.md", text="# Plan\n")
    assert "# Plan" in run(1, "file", "view", "/memories/plan.md"), "the other machine sees it"
    run(1, "file", "insert", "/memories/plan.md", "2", "--text", "from the second machine")
    assert "from the second machine" in run(0, "file", "view", "/memories/plan.md")
    body, content_type = service.get("team/space/files/plan.md")
    assert body.startswith(b"# Plan\n")
    assert content_type == "text/plain; charset=utf-8", content_type

    for i in range(5):
        run(i % 2, "record", "add", f"lesson {i}")
    assert len(json.loads(run(0, "--json", "record", "list"))["records"]) == 5

    service.put("team/space/files/plan.md", b"edited by hand\n")
    assert "edited by hand" in run(0, "file", "view", "/memories/plan.md"), "an edit by other means is seen"
    assert "edited by hand" in run(1, "file", "view", "/memories/plan.md")
    history = run(1, "history", "/memories/plan.md")
    assert "file_insert" in history, history

    status = run(0, "status")
    assert f"backend uses object (named by {by})" in status and "cache helped with" in status, status
    assert store in status, status
    assert "edited by hand" in run(0, "--store", store, "read", "/memories/plan.md", MEMGROVE_S3_BUCKET="",
                                   MEMGROVE_BACKEND="")
    refused = run(0, "file", "view", code=8, **{service.variable: "http://127.0.0.1:9"})
    assert "cannot be reached" in refused, refused
    run(0, "--store", f"{service.address}/other/space", "remember", "The zebra lives next door")
    assert "zebra" not in run(0, "recall", "zebra"), "another store is another memory"
    missing = run(0, "--store", f"{service.address}less/x", "status", code=3)
    assert "does not exist" in missing, missing
    mixed = run(0, "--store", store, "--backend", "device-local", "status", code=2)
    assert "cannot use the address" in mixed, mixed
    print(f"two machines share {service.address}, and the provider's client sees plain files: ok")


main()
