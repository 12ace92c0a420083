"""Images of a running stack that look given up, with their dead letters."""

from __future__ import annotations

from dataclasses import replace

from darkroom.aws.dead_letters.dead_letters import DeadLetterQueues
from darkroom.aws.images.images_table import from_item, to_item
from darkroom.aws.kernel.secrets import StoredSecret
from darkroom.aws.kernel.signing import MessageSigner
from darkroom.domain.dead_letters.dead_letter import explanation_of
from darkroom.domain.images.image import Attempt, Cause, DeadLetterState, Failure, Image, Status, message_for
from darkroom.domain.kernel.errors import INTERNAL
from darkroom_client import Darkroom
from tests.local.local_stack import LocalStack
from tests.support.fakes.pictures import jpeg


class DeadLetterFixture:
    """Makes images of the stack look given up, and checks what happens to them."""

    def __init__(self, stack: LocalStack) -> None:
        self._stack, self._dynamodb, sqs = stack, stack.client("dynamodb"), stack.client("sqs")
        urls = {"fast": stack.outputs["FastDeadLettersUrl"], "slow": stack.outputs["SlowDeadLettersUrl"]}
        keys = StoredSecret(lambda: stack.client("secretsmanager"), stack.physical_id("MessageKey"), clock=lambda: 0)
        self.dead_letters = DeadLetterQueues(sqs, sqs, urls, MessageSigner(keys, lambda: 0))

    def row(self, image_id: str) -> Image:
        key = {"image_id": {"S": image_id}}
        table = self._stack.outputs["ImagesTableName"]
        return from_item(self._dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"])

    def give_up(self, *, error_type: str = "KeyError", message: str = "'gamma'") -> Image:
        """A developed photo whose row says that it was given up for that error, with its one dead letter."""
        with Darkroom(self._stack.api_url, self._stack.record.api_key, is_local_stack=True) as api:
            accepted = api.upload(jpeg(320, 240), content_type="image/jpeg", variants=["thumb"])
            api.wait(accepted.image_id, timeout_seconds=120)
        done = self.row(accepted.image_id)
        cause = Cause(error_type=error_type, message=message, stack="Traceback\n  boom")
        attempt = Attempt(run=1, number=5, request_id="r-5", started_at=done.created_at, ended_at=1, cause=cause)
        row = replace(
            done,
            status=Status.FAILED,
            attempts=(attempt,),
            dead_letter=DeadLetterState.KEPT,
            variants=(),
            error=Failure(code=INTERNAL, message="It failed 5 times.", retryable=True),
        )
        self._dynamodb.put_item(TableName=self._stack.outputs["ImagesTableName"], Item=to_item(row))
        self.dead_letters.put(row.lane, message_for(row), explanation_of(row))
        return row

    def is_done_again(self, image: Image) -> bool:
        row = self.row(image.image_id)
        return (row.status, row.run) == (Status.DONE, 2)

    def empty(self) -> None:
        """Removes the dead letters that are left."""
        for queue in self.dead_letters.queues:
            for dead_letter in self.dead_letters.take(queue, 100).dead_letters:
                self.dead_letters.remove(dead_letter)
