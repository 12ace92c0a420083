"""Posts webhooks to the URLs of endpoints, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.delivery import Answer
from darkroom.egress.connection import Resolve, system_addresses
from darkroom.egress.errors import EgressFailureKind, RequestFailed, UrlRefused
from darkroom.egress.request import send
from darkroom.egress.retry_after import seconds_until
from darkroom.egress.urls import PUBLIC_ONLY, EgressPolicy, read_url


class HttpReceiver:
    """Implements the `Receiver` port. `clock` is for receivers that say by the calendar when to try again."""

    def __init__(
        self,
        policy: EgressPolicy = PUBLIC_ONLY,
        *,
        clock: Callable[[], Milliseconds],
        resolve: Resolve = system_addresses,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._resolve = resolve

    def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
        try:
            # Read again each time: what is allowed may have changed since the URL was registered.
            response = send("POST", read_url(url, self._policy), headers=headers, body=body, resolve=self._resolve)
        except UrlRefused as error:
            return Answer(milliseconds=0, error=f"{error.code}: {error.message}")
        except RequestFailed as error:
            return Answer(
                milliseconds=error.milliseconds,
                error=str(error),
                was_too_slow=error.kind is EgressFailureKind.TIMEOUT,
                was_unreached=error.was_unreached,
            )
        return Answer(
            milliseconds=response.milliseconds,
            status=response.status,
            # A text for people; whatever bytes came, a row can hold it.
            body=response.body.decode("utf-8", errors="replace").replace("\0", "\ufffd"),
            retry_after_seconds=seconds_until(response.headers.get("retry-after"), self._clock()),
        )
