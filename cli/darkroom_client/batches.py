"""A tenant's batches, as calls of the client."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast
from urllib.parse import quote, urlencode

import httpx

from darkroom_client.client import Api, NotFinished, Refused
from darkroom_client.polling import pause_before_poll

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from darkroom.http.bulk.batches import BatchDocument, ListedBatchDocument


class BatchTerms(TypedDict, total=False):
    """A batch's name, how many of its images may be begun at once, what the first failure does, and the only webhook
    that hears of its end: the API's fields, by their names."""

    name: str | None
    parallelism: int | None
    on_failure: Literal["continue", "stop"] | None
    notify: str | None


class BatchesApi(Api):
    """The requests about batches. All raise ApiError, and have the same effect twice as once."""

    def create_batch(self, *, idempotency_key: str | None = None, **terms: Unpack[BatchTerms]) -> BatchDocument:
        """Makes a batch, which images join by `upload(…, batch=id)` until it is closed. With the same
        `idempotency_key`, the same request makes one batch, however often it is sent."""
        key = idempotency_key or f"batch-{secrets.token_hex(16)}"
        made = self.ask("POST", "/batches", body=dict(terms), answered_by=httpx.codes.CREATED, idempotency_key=key)
        return self._checked_batch(made)

    def batch(self, batch_id: str) -> BatchDocument:
        """The batch as it is now: how many of its images are in each state, and how long the rest takes."""
        return self._about_batch("GET", batch_id)

    def batches(self) -> Iterator[ListedBatchDocument]:
        """All batches of the tenant, the newest first. Pages are fetched as they are needed."""
        from darkroom.http.bulk.batches import BatchesDocument  # noqa: PLC0415 - others should not wait for it

        asked: dict[str, str] = {}
        while True:
            page = self.ask("GET", f"/batches?{urlencode(asked)}" if asked else "/batches")
            self._check(BatchesDocument, page)
            yield from page["batches"]
            if page["next"] is None:
                return
            asked = {"cursor": page["next"]}

    def close_batch(self, batch_id: str) -> BatchDocument:
        """Lets no more images join the batch, which ends when all of its images have."""
        return self._about_batch("POST", batch_id, "/close")

    def cancel_batch(self, batch_id: str) -> BatchDocument:
        """Has the batch begin nothing more: images that were not begun are deleted, and the others end as usual."""
        return self._about_batch("DELETE", batch_id)

    def wait_for_batch(
        self,
        batch_id: str,
        *,
        timeout_seconds: float | None = None,
        on_document: Callable[[BatchDocument], None] = lambda document: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> BatchDocument:
        """Waits until the batch has ended (`completed`, `failed` or `cancelled`), which it does only once it is closed;
        returns its document, and gives each one on the way to `on_document`. Raises NotFinished after the timeout, at
        which it asks once more."""
        read = partial(self.batch, batch_id)
        ended: BatchDocument = self._wait_until_ended(f"Batch {batch_id}", read, timeout_seconds, on_document, clock)
        return ended

    def _wait_until_ended(
        self,
        what: str,
        read: Callable[[], Any],
        timeout_seconds: float | None,
        on_document: Callable[[Any], None],
        clock: Callable[[], float],
    ) -> Any:
        give_up_at = float("inf") if timeout_seconds is None else clock() + timeout_seconds
        document, polls = read(), 0
        on_document(document)
        while document["ended_at"] is None:
            remaining_seconds = give_up_at - clock()
            if remaining_seconds <= 0:
                raise NotFinished(
                    f"{what} is still {document['state']} after {timeout_seconds:g} s. It goes on: check again later, "
                    "or wait longer."
                )
            self._pause(min(pause_before_poll(polls=polls, retry_after_seconds=None), remaining_seconds))
            document, polls = read(), polls + 1
            on_document(document)
        return document

    def _about_batch(self, method: str, batch_id: str, what: str = "") -> BatchDocument:
        document = self.ask(method, f"/batches/{quote(batch_id, safe='')}{what}")
        return self._checked_batch(document, batch_id)

    def _checked_batch(self, document: dict[str, Any], asked_for: str | None = None) -> BatchDocument:
        from darkroom.http.bulk.batches import BatchDocument  # noqa: PLC0415

        self._check(BatchDocument, document)
        if asked_for not in (None, document["id"]):  # guard: cli-batch-id-matches
            raise self._no_batch("an invalid id")
        return cast(BatchDocument, document)

    def _check(self, kind: Any, document: dict[str, Any]) -> None:
        """Raises Refused unless the document is of that kind: people paste what is shown of it into a shell, so a
        server may not say just anything. It keeps the keys that this version does not know."""
        from pydantic import ValidationError  # noqa: PLC0415

        try:
            _adapter(kind).validate_python(document)  # guard: cli-batch-answer-checked
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            raise self._no_batch(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error

    def _no_batch(self, reason: str) -> Refused:
        return Refused(
            f"{self.url} did not answer as asked about batches ({reason}). Is this the address of a Darkroom API?",
            status_code=httpx.codes.OK,
        )


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(kind)
