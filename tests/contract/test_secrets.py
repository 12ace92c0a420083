"""Secrets: what the fake and the adapter promise, and when the adapter asks Secrets Manager."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

import boto3
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from darkroom.aws.kernel.secrets import LEAST_SECONDS, REMEMBERED_SECONDS, StoredSecret
from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.kernel import Secret
from tests.contract.conftest import Aws
from tests.support.fakes.secrets import FakeSecret

NOW = 1_795_251_600_000


class Kept(Protocol):
    """A secret, and the operator who replaces it; returns the new version's id."""

    @property
    def secret(self) -> Secret: ...

    def replace(self, text: str) -> str: ...


@dataclass
class InMemory:
    secret: FakeSecret = field(default_factory=FakeSecret)

    def replace(self, text: str) -> str:
        return self.secret.replace(text, now=NOW).version_id


@dataclass
class InSecretsManager:
    """The adapter, under a clock of its own, and the calls that it makes."""

    now: int = NOW
    calls: list[str] = field(default_factory=list)
    failure: Exception | None = None
    clients: int = 0

    def __post_init__(self) -> None:
        self.operator = boto3.client("secretsmanager")
        self.arn = self.operator.create_secret(Name="key", SecretString="first" * 13)["ARN"]
        self.secret = StoredSecret(self._client, self.arn, clock=lambda: self.now)

    def _client(self) -> Any:
        self.clients += 1
        client = boto3.client("secretsmanager")
        client.meta.events.register("provide-client-params.secretsmanager.GetSecretValue", self._asked)
        return client

    def _asked(self, params: dict[str, Any], **_: object) -> None:
        self.calls.append(params["VersionStage"])
        if self.failure is not None:
            raise self.failure

    def replace(self, text: str) -> str:
        return self.operator.put_secret_value(SecretId=self.arn, SecretString=text)["VersionId"]

    def wait(self, seconds: float) -> None:
        self.now += int(seconds * 1000)


def kept(kind: str) -> Kept:
    return InMemory() if kind == "fake" else InSecretsManager()


def test_a_new_secret_has_a_current_version_and_none_before(kind: str, aws: Aws) -> None:
    secret = kept(kind).secret
    current = secret.current()
    assert secret.version(current.version_id) == current
    assert secret.previous() is None
    assert current.created_at > 0
    assert current.text not in repr(current)


def test_the_version_before_the_current_one_is_known_and_no_older_one(kind: str, aws: Aws) -> None:
    keeper = kept(kind)
    first = keeper.secret.current()
    second, third = keeper.replace("second" * 11), keeper.replace("third" * 13)
    if isinstance(keeper, InSecretsManager):
        keeper.wait(LEAST_SECONDS)
    assert keeper.secret.version(third) == keeper.secret.current()
    assert keeper.secret.version(second) == keeper.secret.previous()
    assert keeper.secret.version(first.version_id) is None
    assert keeper.secret.current().text == "third" * 13


def test_a_secret_that_was_never_read_is_not_known_in_an_outage(kind: str, aws: Aws) -> None:
    keeper = kept(kind)
    if isinstance(keeper, InSecretsManager):
        keeper.failure = ReadTimeoutError(endpoint_url="")
    else:
        keeper.secret.is_down = True  # type: ignore[attr-defined]
    for ask in (keeper.secret.current, keeper.secret.previous, lambda: keeper.secret.version("any")):
        with pytest.raises(Retryable):
            ask()


@pytest.fixture
def stored(aws: Aws) -> InSecretsManager:
    return InSecretsManager()


@pytest.mark.guards("secrets-lazy-client")
def test_nothing_is_made_and_asked_for_before_it_is_needed(stored: InSecretsManager) -> None:
    assert (stored.clients, stored.calls) == (0, [])
    current = stored.secret.current()
    assert stored.secret.version(current.version_id) == current
    assert (stored.clients, stored.calls) == (1, ["AWSCURRENT"])


@pytest.mark.guards("secrets-previous-reset")
def test_it_is_read_again_after_some_minutes(stored: InSecretsManager) -> None:
    first = stored.secret.current()
    assert stored.secret.previous() is None
    stored.replace("second" * 11)
    stored.wait(REMEMBERED_SECONDS - 1)
    assert stored.secret.current() == first
    stored.wait(1)
    assert stored.secret.current().text == "second" * 11
    assert stored.calls == ["AWSCURRENT", "AWSPREVIOUS", "AWSCURRENT"]
    assert stored.secret.previous() == first


def test_a_clock_that_was_set_back_does_not_keep_it_for_longer(stored: InSecretsManager) -> None:
    stored.secret.current()
    stored.replace("second" * 11)
    stored.wait(-3600)
    assert stored.secret.current().text == "second" * 11


@pytest.mark.guards("secrets-new-version-lookup", "secrets-unknown-id-pause")
def test_an_id_that_is_not_known_is_looked_for_once_in_ten_seconds(stored: InSecretsManager) -> None:
    stored.secret.current()
    new = stored.replace("second" * 11)
    assert stored.secret.version(new) is None
    stored.wait(LEAST_SECONDS)
    assert stored.secret.version(new) == stored.secret.current()
    stored.calls.clear()
    for number in range(1000):
        assert stored.secret.version(f"invented-{number}") is None
    assert stored.calls == ["AWSPREVIOUS"]
    stored.wait(LEAST_SECONDS)
    for number in range(1000):
        assert stored.secret.version(f"invented-{number}") is None
    assert stored.calls == ["AWSPREVIOUS", "AWSCURRENT"]


DENIED = ClientError(
    {"Error": {"Code": "AccessDeniedException"}, "ResponseMetadata": {"HTTPStatusCode": 400}},  # type: ignore[typeddict-item]
    "GetSecretValue",
)


@pytest.mark.guards("secrets-last-known-in-outage", "secrets-pause-after-failure")
@pytest.mark.guards("secrets-kept-when-denied", "secrets-pause-after-denial", case="denied")
@pytest.mark.parametrize("failure", [ReadTimeoutError(endpoint_url=""), DENIED], ids=["silent", "denied"])
def test_in_an_outage_the_last_version_stays_and_is_not_asked_for_each_time(
    stored: InSecretsManager, failure: Exception
) -> None:
    first = stored.secret.current()
    stored.wait(REMEMBERED_SECONDS)
    stored.failure = failure
    stored.calls.clear()
    for _ in range(10):
        assert stored.secret.current() == first
    assert stored.calls == ["AWSCURRENT"]
    stored.replace("second" * 11)
    stored.failure = None
    stored.wait(LEAST_SECONDS)
    assert stored.secret.current().text == "second" * 11


@pytest.mark.guards("secrets-pause-after-failure")
def test_in_an_outage_nobody_says_that_there_is_no_such_version(stored: InSecretsManager) -> None:
    stored.secret.current()
    stored.wait(LEAST_SECONDS)
    stored.failure = ReadTimeoutError(endpoint_url="")
    stored.calls.clear()
    for number in range(100):
        with pytest.raises(Retryable):
            stored.secret.version(f"invented-{number}")
    assert stored.calls == ["AWSPREVIOUS"]


def test_what_only_an_operator_can_fix_is_no_outage(aws: Aws) -> None:
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:gone"
    with pytest.raises(LookupError, match="no current version"):
        StoredSecret(lambda: boto3.client("secretsmanager"), arn, clock=lambda: NOW).current()
    denied = InSecretsManager()
    denied.failure = DENIED
    with pytest.raises(ClientError):
        denied.secret.current()


@pytest.mark.guards("secrets-shared-call")
def test_threads_that_need_it_at_once_share_one_call(aws: Aws) -> None:
    kept = InSecretsManager()
    another = Event()

    def slowly(params: dict[str, Any], **_: object) -> None:
        if len(kept.calls) > 1:
            another.set()
        another.wait(0.3)  # a call in another thread would come meanwhile

    secret = StoredSecret(lambda: _listened_to(kept, slowly), kept.arn, clock=lambda: kept.now)
    with ThreadPoolExecutor(max_workers=8) as threads:
        versions = list(threads.map(lambda _: secret.current().version_id, range(8)))
    assert (len(set(versions)), kept.calls, kept.clients) == (1, ["AWSCURRENT"], 1)


def _listened_to(kept: InSecretsManager, listener: Callable[..., None]) -> Any:
    client = kept._client()
    client.meta.events.register("provide-client-params.secretsmanager.GetSecretValue", listener)
    return client
