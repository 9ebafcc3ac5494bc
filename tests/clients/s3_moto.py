"""The program on a bucket: two machines, one store, seen through another client of the same bucket.

Starts moto, an S3 server of other people's making, on loopback. With --conformance it only starts the server and runs
the command that follows with MEMGROVE_TEST_S3 set to its address.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time

import boto3

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


def start():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}"
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1",
                          aws_access_key_id="test", aws_secret_access_key="test")
    for _ in range(200):
        try:
            client.create_bucket(Bucket="bucket")
            return server, endpoint, client
        except Exception:
            if server.poll() is not None:
                raise SystemExit("moto did not start")
            time.sleep(0.1)
    raise SystemExit("moto does not answer")


def main():
    if sys.argv[1] == "--conformance":
        server, endpoint, _ = start()
        try:
            raise SystemExit(subprocess.call(sys.argv[2:], env={**os.environ, "MEMGROVE_TEST_S3": endpoint}))
        finally:
            server.kill()
    program = os.path.abspath(sys.argv[1])
    server, endpoint, client = start()
    try:
        use(program, endpoint, client)
    finally:
        server.kill()


def use(program, endpoint, client):
    homes = [tempfile.mkdtemp(prefix="memgrove-machine-") for _ in range(2)]

    def run(machine, *arguments, code=0, text="", **variables):
        environment = {"HOME": homes[machine], "PATH": os.environ["PATH"], "MEMGROVE_BACKEND": "object",
                       "MEMGROVE_S3_BUCKET": "bucket", "MEMGROVE_S3_PREFIX": "team/space",
                       "MEMGROVE_S3_REGION": "us-east-1", "MEMGROVE_S3_ENDPOINT": endpoint, **KEYS, **variables}
        ran = subprocess.run([program, *arguments], env=environment, cwd=homes[machine], capture_output=True,
                             input=text, encoding="utf-8")
        assert ran.returncode == code, (arguments, ran.returncode, ran.stdout, ran.stderr)
        return ran.stdout + ran.stderr

    def plain(key):
        return client.get_object(Bucket="bucket", Key=f"team/space/{key}")

    run(0, "file", "create", "/memories/plan.md", text="# Plan\n")
    assert "# Plan" in run(1, "file", "view", "/memories/plan.md"), "the other machine sees it"
    run(1, "file", "insert", "/memories/plan.md", "2", "--text", "from the second machine")
    assert "from the second machine" in run(0, "file", "view", "/memories/plan.md")
    there = plain("files/plan.md")
    assert there["Body"].read().startswith(b"# Plan\n")
    assert there["ContentType"] == "text/plain; charset=utf-8", there["ContentType"]

    for i in range(5):
        run(i % 2, "record", "add", f"lesson {i}")
    assert len(json.loads(run(0, "--json", "record", "list"))["records"]) == 5

    client.put_object(Bucket="bucket", Key="team/space/files/plan.md", Body=b"edited by hand\n")
    assert "edited by hand" in run(0, "file", "view", "/memories/plan.md"), "an edit by other means is seen"
    assert "edited by hand" in run(1, "file", "view", "/memories/plan.md")
    history = run(1, "history", "/memories/plan.md")
    assert "file_edit" in history, history

    status = run(0, "status")
    assert "backend uses object (named by MEMGROVE_BACKEND)" in status and "cache helped with" in status, status
    assert "kept at s3://bucket/team/space" in status, status
    assert "edited by hand" in run(0, "--store", "s3://bucket/team/space", "read", "/memories/plan.md",
                                   MEMGROVE_S3_BUCKET="", MEMGROVE_BACKEND="")
    refused = run(0, "file", "view", code=8, MEMGROVE_S3_ENDPOINT="http://127.0.0.1:9")
    assert "cannot be reached" in refused, refused
    print("two machines share a bucket, and another client sees plain files: ok")


main()
