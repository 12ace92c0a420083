"""A photo on a web server of this machine, fetched by the whole system on the embedded stack."""

from __future__ import annotations

from tests.local.local_stack import LocalStack
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
