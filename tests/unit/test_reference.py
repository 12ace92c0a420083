"""The reference of stored and sent formats says what the code has."""

from __future__ import annotations

import gzip
import json
import re

from darkroom.domain.dead_letters.rejection import RejectedMessage
from darkroom.domain.images.image import DUE_PARTITIONS, Image
from darkroom.domain.kernel.message import Message
from darkroom.domain.schedules.hold import BatchDeadLetter, read_batch
from darkroom.domain.webhooks.delivery import DeliveryMessage
from repository.expand_template import resources
from repository.report import ROOT

REFERENCE = ROOT / "docs" / "reference"

OF_INDEXES = {"due_shard", "waiting_shard", "list_shard", "reference_key"}


def blocks_of_json(page: str) -> list[str]:
    return re.findall(r"^```json\n(.*?)^```$", (REFERENCE / page).read_text(), re.DOTALL | re.MULTILINE)


def test_the_page_of_rows_lists_every_attribute_of_an_image_once() -> None:
    images = (REFERENCE / "rows.md").read_text().partition("## Images")[2].partition("\n| index |")[0]
    rows = re.findall(r"^\| (`[^|]+`) \|", images, re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(
        {*Image.__dataclass_fields__} | OF_INDEXES
    )


def test_the_page_of_rows_lists_the_keys_of_every_table_and_the_partitions_of_the_due_index() -> None:
    page = (REFERENCE / "rows.md").read_text()
    for name, table in resources("AWS::DynamoDB::Table").items():
        key = [part["AttributeName"] for part in table["KeySchema"]]
        listed = re.search(rf"^\| {name.removesuffix('Table')} \| (.+?) \| ", page, re.MULTILINE)
        named = re.findall(r"`(\w+)`", listed[1] if listed else page.partition("## Images")[2].partition("\n\n")[0])
        assert set(key) <= {*named, "image_id"}, name
    (due,) = re.findall(r"^\| `due` \| `due_shard`, `due_at` \| (.+) \|$", page, re.MULTILINE)
    for partitions in DUE_PARTITIONS.values():
        assert partitions[-1].rpartition("#")[2] in due
        assert partitions[0].rpartition("#")[0] in due


def test_the_page_of_messages_lists_the_fields_of_each_form() -> None:
    page = (REFERENCE / "messages.md").read_text()
    for form, left_out in ((Message, {"process_at"}), (DeliveryMessage, set[str]()), (RejectedMessage, set[str]())):
        names = [name for name in form.model_fields if name not in left_out]
        assert names[0] == "v"
        assert '`{"v": 1, ' + ", ".join(f'"{name}"' for name in names[1:]) + "}`" in page


def test_the_example_of_a_stored_batch_is_read_and_written_as_it_is() -> None:
    stored, given_up = blocks_of_json("batches.md")
    batch = read_batch(gzip.compress(stored.encode()))
    assert json.loads(gzip.decompress(batch.dumped())) == json.loads(stored)
    assert set(json.loads(given_up)) - {"position"} == {*BatchDeadLetter.model_fields}


def test_every_test_that_the_reference_names_exists() -> None:
    for page in REFERENCE.glob("*.md"):
        for name in re.findall(r"`(tests/[\w/]+\.py)`", page.read_text()):
            assert (ROOT / name).exists(), f"{page.name}: {name}"
