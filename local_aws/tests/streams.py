"""Tables with streams for the tests of the emulator, and functions that note what they get of them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from local_aws.tests.emulator_server import EmulatorServer, create_function, wait_until

BY_PK = {
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
"""Properties of a table whose key is `pk`."""

# Notes the batch, and then behaves as its folder's `conduct` says: `waits_at`, `raises_at` and `reports` list keys, and
# `answers` is a response.
NOTING = """
import json, os, pathlib, time

FOLDER = pathlib.Path(os.environ["FOLDER"])

def handler(event, context):
    noted = FOLDER / f"unfinished-{context.aws_request_id}"
    noted.write_text(json.dumps(event["Records"]))
    noted.rename(FOLDER / f"batch-{time.time_ns()}")
    conduct = json.loads((FOLDER / "conduct").read_text())
    numbers = {
        record["dynamodb"]["Keys"]["pk"]["S"]: record["dynamodb"]["SequenceNumber"] for record in event["Records"]
    }
    while set(conduct.get("waits_at", [])) & set(numbers) and not (FOLDER / "open").exists():
        time.sleep(0.01)
    if set(conduct.get("raises_at", [])) & set(numbers):
        raise ValueError("as the test wants")
    if "answers" in conduct:
        return conduct["answers"]
    reported = [key for key in conduct.get("reports", []) if key in numbers]
    return {"batchItemFailures": [{"itemIdentifier": numbers[key]} for key in reported]}
"""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table with a stream of both images, whose key is `pk`."""

    server: EmulatorServer
    name: str
    stream_arn: str

    def put(self, *keys: str, **attributes: Any) -> None:
        """Put an item of each key, one after another."""
        for key in keys:
            self.server.client("dynamodb").put_item(
                TableName=self.name, Item={"pk": {"S": key}, "version": {"S": uuid4().hex}, **attributes}
            )


def table(server: EmulatorServer, name: str | None = None) -> Table:
    """Create such a table."""
    name = name or f"table-{uuid4().hex[:8]}"
    created = server.client("dynamodb").create_table(
        TableName=name,
        **BY_PK,
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    return Table(server=server, name=name, stream_arn=created["TableDescription"]["LatestStreamArn"])


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A function that notes its batches and behaves as it is told."""

    server: EmulatorServer
    name: str
    folder: Path

    def behave(self, **conduct: Any) -> None:
        """Tell it how to behave from now on."""
        unfinished = self.folder / "conduct.unfinished"
        unfinished.write_text(json.dumps(conduct))
        unfinished.rename(self.folder / "conduct")

    def open(self) -> None:
        """Let all invocations that wait go on, later ones too."""
        (self.folder / "open").touch()

    def records(self) -> list[list[Any]]:
        """The batches that it got so far."""
        return [json.loads(file.read_text()) for file in sorted(self.folder.glob("batch-*"))]

    def batches(self) -> list[list[str]]:
        """The keys in the batches that it got so far."""
        return [[record["dynamodb"]["Keys"]["pk"]["S"] for record in batch] for batch in self.records()]

    def keys(self) -> list[str]:
        """The keys of all records that it got so far."""
        return [key for batch in self.batches() for key in batch]

    def batches_until(self, last: list[str]) -> list[list[str]]:
        """Wait for a batch of these keys, and return all batches so far."""
        return wait_until(lambda: last in self.batches() and self.batches(), f"{last} is passed on")  # type: ignore[no-any-return]

    def read(self, source: Table, **settings: Any) -> str:
        """Map the stream to it, from its beginning, and return the mapping's id."""
        settings = {"StartingPosition": "TRIM_HORIZON", "BatchSize": 10, **settings}
        mapping_id: str = self.server.client("lambda").create_event_source_mapping(
            FunctionName=self.name, EventSourceArn=source.stream_arn, **settings
        )["UUID"]
        return mapping_id

    def change(self, mapping_id: str, **settings: Any) -> None:
        """Change a mapping."""
        self.server.client("lambda").update_event_source_mapping(UUID=mapping_id, **settings)


def reader(server: EmulatorServer, folder: Path, **conduct: Any) -> Reader:
    """Create such a function, which keeps its notes in that folder."""
    created = Reader(server=server, name=f"reader-{uuid4().hex[:8]}", folder=folder / uuid4().hex)
    created.folder.mkdir()
    created.behave(**conduct)
    variables = {"FOLDER": str(created.folder)}
    create_function(server, created.name, NOTING, Timeout=60, Environment={"Variables": variables})
    return created
