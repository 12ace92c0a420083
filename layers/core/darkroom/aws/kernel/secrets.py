"""A secret of this stack in Secrets Manager, remembered for some minutes, with the version that it had before."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Literal

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.bookkeeping import report_failure
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.kernel import Clock, SecretVersion

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

REMEMBERED_SECONDS = 600
"""How long a version counts as current without being read again: a call for each ten minutes of a busy environment."""

LEAST_SECONDS = 10
"""How long after a read another may look for an unknown id, and how long after a failed call the next is made: neither
what somebody invents nor an outage costs a call each time."""


class StoredSecret:
    """Implements the `Secret` port with the secret whose ARN is `arn`.

    `client` makes the client, for the first call: a cold start neither loads its model nor waits for it. In an outage,
    or if the call is denied, the versions that were read last stay in use. Threads that need it at once share one call.
    """

    def __init__(self, client: Callable[[], SecretsManagerClient], arn: str, *, clock: Clock) -> None:
        self._make_client = client  # guard: secrets-lazy-client
        self._arn = arn
        self._clock = clock
        self._current: SecretVersion | None = None
        # The previous version, once it was asked for: a tuple, because there may be none.
        self._previous: tuple[SecretVersion | None] | None = None
        self._read_at: Milliseconds = 0
        self._failed_at: Milliseconds | None = None
        self._one_at_a_time = RLock()

    @cached_property
    def _client(self) -> SecretsManagerClient:
        return self._make_client()

    def current(self) -> SecretVersion:
        with self._one_at_a_time:  # guard: secrets-shared-call
            return self._current_now()

    def previous(self) -> SecretVersion | None:
        with self._one_at_a_time:
            if self._previous is None:
                self._previous = (self._fetch("AWSPREVIOUS"),)
            return self._previous[0]

    def version(self, version_id: str) -> SecretVersion | None:
        with self._one_at_a_time:
            version = self._known(version_id)
            # guard: secrets-new-version-lookup, secrets-unknown-id-pause
            if version is None and not self._is_within(LEAST_SECONDS, self._read_at):
                self._read()
                version = self._known(version_id)
            return version

    def _current_now(self) -> SecretVersion:
        if self._current is None or not self._is_within(REMEMBERED_SECONDS, self._read_at):
            try:
                return self._read()
            # guard: secrets-kept-when-denied
            except Exception as failure:  # denied, too: what was read before still signs and verifies
                if self._current is None:  # guard: secrets-last-known-in-outage
                    raise
                if not isinstance(failure, Retryable):
                    report_failure("secret not read again", failure)
                    self._failed_at = self._clock()  # guard: secrets-pause-after-denial
        return self._current

    def _known(self, version_id: str) -> SecretVersion | None:
        current = self.current()
        if current.version_id == version_id:
            return current
        previous = self.previous()
        return previous if previous is not None and previous.version_id == version_id else None

    def _is_within(self, seconds: float, instant: Milliseconds | None) -> bool:
        return instant is not None and 0 <= self._clock() - instant < seconds * 1000

    def _read(self) -> SecretVersion:
        current = self._fetch("AWSCURRENT")
        if current is None:
            raise LookupError(f"the secret {self._arn} has no current version")
        if self._current is None or current.version_id != self._current.version_id:
            self._previous = None  # guard: secrets-previous-reset
        self._current, self._read_at = current, self._clock()
        return current

    def _fetch(self, stage: Literal["AWSCURRENT", "AWSPREVIOUS"]) -> SecretVersion | None:
        if self._is_within(LEAST_SECONDS, self._failed_at):  # guard: secrets-pause-after-failure
            raise Retryable("reading a secret: a call has failed just now")
        try:
            with retryable("reading a secret"):
                answer = self._client.get_secret_value(SecretId=self._arn, VersionStage=stage)
        except Retryable:
            self._failed_at = self._clock()
            raise
        except ClientError as error:
            if code_of(error) != "ResourceNotFoundException":
                raise
            return None
        self._failed_at = None
        return SecretVersion(
            version_id=answer["VersionId"],
            text=answer["SecretString"],
            created_at=int(answer["CreatedDate"].timestamp() * 1000),
        )
