"""`darkroom orphans` on the local stack: an original without a row is seen, and too young to be removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from darkroom.domain.kernel.ids import image_id_for_key
from tests.local.local_stack import LocalStack
from tests.support.fakes.pictures import jpeg


def test_an_original_without_a_row_is_seen_and_one_with_a_row_is_not(stack: LocalStack, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(jpeg(64, 48))
    assert stack.darkroom("upload", tmp_path / "photo.jpg").returncode == 0
    bucket, key = stack.outputs["OriginalsBucketName"], f"originals/{image_id_for_key('default', 'orphan')}"
    s3 = stack.client("s3")

    def look() -> dict[str, Any]:
        done = stack.darkroom("orphans", "ls", "--older-than", "1h", "--json")
        assert done.returncode == 0, done.stdout
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    before = look()
    assert before["originals"] > before["without_row"]
    stored = s3.put_object(Bucket=bucket, Key=key, Body=b"photo")
    try:
        after = look()
        assert {name: after[name] - before[name] for name in ("without_row", "young", "orphans")} == {
            "without_row": 1,
            "young": 1,
            "orphans": 0,
        }
        ran = stack.darkroom("orphans", "remove", "--older-than", "1h", "--yes")
        assert (ran.returncode, ran.stdout.startswith("Nothing to remove.")) == (0, True), ran.stdout
        assert s3.head_object(Bucket=bucket, Key=key)["VersionId"] == stored["VersionId"]
    finally:
        s3.delete_object(Bucket=bucket, Key=key, VersionId=stored["VersionId"])
