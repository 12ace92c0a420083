"""Photos on a web server of this machine, and in somebody's bucket, fetched by the whole system on the embedded
stack."""

from __future__ import annotations

from pathlib import Path

from tests.local.local_stack import LocalStack, document_in
from tests.support.fakes.pictures import jpeg
from tests.unit.egress.servers import Server, serving

PHOTO = jpeg(90, 60)
ANSWERS = {
    b"/moved": b"HTTP/1.1 302 Found\r\nLocation: /photo.jpg\r\nContent-Length: 0\r\n\r\n",
    b"/photo.jpg": b'HTTP/1.1 200 OK\r\nETag: "7"\r\nContent-Length: %d\r\n\r\n%b' % (len(PHOTO), PHOTO),
    b"/inside": b"HTTP/1.1 302 Found\r\nLocation: https://169.254.169.254/latest/\r\nContent-Length: 0\r\n\r\n",
}
NOTHING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def behave(connection: object, server: Server) -> None:
    server.received = b""
    server.hear(connection)  # type: ignore[arg-type]
    path = server.received.split(b" ")[1].partition(b"?")[0]
    server.say(connection, ANSWERS.get(path, NOTHING))  # type: ignore[arg-type]


def test_photos_are_fetched_from_urls_and_developed_or_end_with_a_code(stack: LocalStack) -> None:
    with serving(behave) as server:
        root = f"http://127.0.0.1:{server.port}"
        uploaded = stack.darkroom("upload", f"{root}/moved?token=s3cr3t", f"{root}/none", f"{root}/inside", "--wait")
    printed = uploaded.stdout
    assert uploaded.returncode == 1, printed
    assert "2 of 3 images were not developed" in printed
    assert "(fetch_not_found)" in printed and "(fetch_refused)" in printed
    (done,) = [line for line in printed.splitlines() if line.startswith("done: ")]
    shown = stack.darkroom("status", done.split()[1], "--json")
    assert '"status": "done"' in shown.stdout
    logs, written = stack.client("logs"), ""
    for group in logs.describe_log_groups()["logGroups"]:
        written += str(logs.filter_log_events(logGroupName=group["logGroupName"])["events"])
    assert "fetch settled" in written
    assert "s3cr3t" not in written


def sweep_at_once(stack: LocalStack, batch_id: str) -> None:
    """Looks for the import's manifest now, not half a minute later and at the schedule's next minute."""
    stack.client("dynamodb").update_item(
        TableName=stack.output("BatchesTableName"),
        Key={"place": {"S": batch_id}, "part": {"S": "import"}},
        UpdateExpression="SET due_at = :now",
        ExpressionAttributeValues={":now": {"N": "1"}},
    )
    stack.client("lambda").invoke(FunctionName=stack.physical_id("SweepDueBulkFunction"), Payload=b"{}")


def test_photos_of_a_manifest_are_fetched_and_bad_rows_are_named(stack: LocalStack, tmp_path: Path) -> None:
    s3, manifest = stack.client("s3"), tmp_path / "catalogue.csv"
    s3.create_bucket(Bucket="photos-of-a-partner")
    for key in ("exports/a b%2F+.jpg", "private/1.jpg"):
        s3.put_object(Bucket="photos-of-a-partner", Key=key, Body=PHOTO)
    assert stack.darkroom("tenants", "add", "default").returncode == 0
    try:
        stack.darkroom("tenants", "import-from", "default", "s3://photos-of-a-partner/exports/")
        with serving(behave) as server:
            manifest.write_text(
                f"url,key,tags\nhttp://127.0.0.1:{server.port}/photo.jpg,server,shoes|new\n"
                "s3://photos-of-a-partner/exports/a b%2F+.jpg,bucket,\n"
                "s3://photos-of-a-partner/private/1.jpg,elsewhere,\n"
            )
            wanted = ("import", manifest, "--idempotency-key", "catalogue")
            batch_id = stack.darkroom(*wanted, "--no-wait").stdout.split()[0]
            sweep_at_once(stack, batch_id)
            imported = stack.darkroom(*wanted)
            waited = stack.darkroom("batches", "wait", batch_id)
    finally:  # it is every test's tenant
        stack.client("dynamodb").delete_item(
            TableName=stack.output("TenantsTableName"), Key={"id": {"S": "tenant#default"}}
        )
    shown = document_in(stack.darkroom("batches", "show", batch_id, "--json").stdout)
    assert (imported.returncode, "3 rows, 2 images created" in imported.stdout) == (1, True), imported.stdout
    assert "No bucket and prefix of it is registered for you" in imported.stdout
    assert (waited.returncode, shown["state"], shown["images"]["done"]) == (0, "completed", 2), waited.stdout
