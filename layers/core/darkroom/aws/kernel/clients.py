"""AWS clients with deliberate timeouts and retries, bounded by the time that the current work has left."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from http import HTTPStatus
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any
from zlib import crc32

from botocore.config import Config
from botocore.credentials import ContainerProvider, DeferredRefreshableCredentials
from botocore.exceptions import FlexibleChecksumError, IncompleteReadError
from botocore.session import Session, get_session
from botocore.utils import determine_content_length

from darkroom.aws.kernel.errors import failure_of
from darkroom.aws.kernel.models import ModelLoader
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.fingerprint import call_note
from darkroom.telemetry import count_call

if TYPE_CHECKING:
    from botocore.awsrequest import AWSResponse
    from botocore.client import BaseClient
    from botocore.model import OperationModel
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_stepfunctions import SFNClient

ATTEMPTS = 2
"""Every call is idempotent or conditional, so a retry is safe. A call that fails twice within seconds is better
answered by a 503 or by the queue's redelivery than waited for inside a function that is billed by the millisecond."""

CONNECT_SECONDS = 1.0
"""A connection inside a region takes milliseconds; one that takes a second will not be made."""

CONNECTIONS = 40
"""The most connections that a client keeps: a sweep's threads, and each of them is a handshake if it is not kept."""

# Standard mode, not adaptive, which delays calls on the client's side without a limit. Standard mode's jittered pause
# before the second attempt is at most 50 ms, or a second after throttling.
_RETRIES: Any = {"mode": "standard", "total_max_attempts": ATTEMPTS}

# An answer takes milliseconds; one that takes this long is lost, and there is still time for a second attempt.
_DYNAMODB = _SECRETS_MANAGER = Config(
    connect_timeout=CONNECT_SECONDS, read_timeout=1.5, retries=_RETRIES, max_pool_connections=CONNECTIONS
)

# Longer than the one-second poll for dead letters; Step Functions takes as long.
_SQS = Config(connect_timeout=CONNECT_SECONDS, read_timeout=3, retries=_RETRIES, max_pool_connections=CONNECTIONS)

# Objects are up to 25 MB, and a put is answered when S3 has stored all of it. SigV4 because newer regions, and buckets
# with KMS encryption, refuse a presigned URL of the default signature version
# (https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html). Virtual-hosted addressing, because
# presigned URLs would otherwise go to the global endpoint, which for hours redirects requests for a new bucket to its
# region: the signature is then for another host (https://docs.aws.amazon.com/AmazonS3/latest/userguide/Redirects.html).
_S3 = Config(
    connect_timeout=CONNECT_SECONDS,
    read_timeout=10,
    retries=_RETRIES,
    max_pool_connections=CONNECTIONS,
    signature_version="s3v4",
    # A put's signature covers its checksum, which is the body's SHA-256 too: neither has to be computed again.
    s3={"addressing_style": "virtual", "payload_signing_enabled": False},  # guard: upload-regional-address
)

CONTINUE_SECONDS = 1.0
"""How long botocore waits for permission to send an object's body (Expect: 100-continue); it then sends it anyway."""

ASKED_FROM_BYTES = 1 << 20
"""A smaller body is sent without asking for that permission, which takes a round trip: AWS's SDK for Go has twice this
(https://pkg.go.dev/github.com/aws/aws-sdk-go-v2/service/s3#Options)."""

LEAST_READING_SECONDS = 0.5
"""An attempt that could not wait even this long for its answer is not started."""

IMPATIENT_READING_SECONDS = 0.5
"""How long a dispensable call may wait for its answer: a client's request waits for it."""

KEPT_BACK_SECONDS = 2.5
"""The time that other calls leave for `_LAST_CALLS`: one attempt of such a call."""

KEPT_BACK_FROM_HINTS_SECONDS = 6.0
"""The time that dispensable calls leave for all others: they are only started within a request's first second."""

_LAST_CALLS = frozenset({"UpdateItem", "ChangeMessageVisibility"})
"""The calls that secure an image whatever came before: its row's last write, and when its message comes back."""


@cache
def _session() -> Session:
    # Not boto3's, which is twice as large: no resource and no managed transfer is used here. Clients of one session
    # share what botocore has loaded.
    session = get_session()
    session.register_component("data_loader", ModelLoader())
    return session


class _FetchedWhenUsed(ContainerProvider):
    """Fetches credentials for the first call. botocore's own fetches them for the first client."""

    def _retrieve_or_fail(self) -> DeferredRefreshableCredentials:
        fetch = self._create_fetcher(self._environ[self.ENV_VAR_FULL])  # type: ignore[attr-defined]
        return DeferredRefreshableCredentials(fetch, self.METHOD)


def fetch_credentials_when_used() -> None:
    """Keeps clients that are made from now on from fetching credentials before they need them.

    A function with SnapStart gets its credentials from an endpoint instead of its environment
    (https://docs.aws.amazon.com/lambda/latest/dg/snapstart-activate.html, SnapStart and AWS SDKs). They, and the
    connection to the endpoint, would be in the snapshot.
    """
    _session().get_component("credential_provider").insert_before(ContainerProvider.METHOD, _FetchedWhenUsed())


def _client(service: str, config: Config) -> Any:
    session = _session()
    # botocore would compose its own name anew for each call, twice.
    client: Any = session.create_client(service, config=config.merge(Config(user_agent=session.user_agent())))
    watch(client)
    _resolve_endpoints_once(client)
    client.meta.events.register_last("before-call.s3", _send_small_bodies_at_once)
    if service == "dynamodb":
        _check_arguments_once(client)
    client._make_api_call = _timed(service, client._make_api_call)
    return client


def _resolve_endpoints_once(client: Any) -> None:
    """Keeps where the client's operations are sent, by their buckets: botocore would apply its rules to each call."""
    resolver = client._ruleset_resolver
    resolve: Callable[..., Any] = resolver.construct_endpoint
    known: dict[tuple[object, ...], Any] = {}

    def construct_endpoint(
        operation_model: OperationModel, call_args: dict[str, Any], request_context: dict[str, Any]
    ) -> Any:
        # guard: clients-bucket-region-refreshed
        if "signing" in request_context:  # it was sent before, and S3 has said that its bucket is elsewhere
            known.clear()
            return resolve(operation_model, call_args, request_context)
        # guard: clients-endpoint-per-bucket
        key = (operation_model.name, call_args.get("Bucket"), request_context.get("use_global_endpoint"))
        if key not in known:
            known[key] = resolve(operation_model, call_args, request_context)
        return known[key]

    resolver.construct_endpoint = construct_endpoint


def _check_arguments_once(client: Any) -> None:
    """Has botocore check the arguments of a call only when an operation gets ones of these names for the first time:
    it would drop a misspelt one, and a condition with it. All else that may be wrong DynamoDB refuses itself."""
    checked = client._serializer
    check: Callable[..., Any] = checked.serialize_to_request
    seen: set[tuple[str, ...]] = set()

    def serialize_to_request(arguments: dict[str, Any], operation_model: OperationModel) -> Any:
        kind = (operation_model.name, *sorted(arguments))  # guard: clients-argument-names-checked
        if kind in seen:
            return checked._serializer.serialize_to_request(arguments, operation_model)
        request = check(arguments, operation_model)
        seen.add(kind)
        return request

    checked.serialize_to_request = serialize_to_request


def _send_small_bodies_at_once(params: dict[str, Any], **_: object) -> None:
    """Before a large one, S3 may say that its key is taken."""
    # guard: clients-large-body-asks-first
    if "Expect" in params["headers"] and (determine_content_length(params["body"]) or 0) < ASKED_FROM_BYTES:
        del params["headers"]["Expect"]


_is_dispensable: ContextVar[bool] = ContextVar("is_dispensable", default=False)


def impatient[Client: BaseClient](client: Client) -> Client:
    """The same client, with its connections, for dispensable calls: each is tried once, because a retry would take a
    second token, and for at most about 1.5 seconds. A circuit on one of the two does not see the calls of the
    other."""
    twin = object.__new__(type(client))
    vars(twin).update(vars(client))
    # guard: clients-dispensable-off-circuit
    call: Callable[..., Any] = partial(type(client)._make_api_call, twin)  # type: ignore[attr-defined]

    def impatiently(operation: str, arguments: dict[str, Any]) -> Any:
        token = _is_dispensable.set(True)
        try:
            return call(operation, arguments)
        finally:
            _is_dispensable.reset(token)

    service: str = client.meta.service_model.service_name
    twin._make_api_call = _timed(service, impatiently)  # type: ignore[attr-defined]
    return twin


def _timed(service: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def timed(operation: str, arguments: dict[str, Any]) -> Any:
        began = perf_counter()
        try:
            return call(operation, arguments)
        except Exception as error:
            # guard: fingerprints-aws-call-noted
            error.add_note(call_note(operation, failure_of(error), _resource_of(arguments)))
            raise
        finally:
            count_call(f"{service}:{operation}", perf_counter() - began)

    return timed


_RESOURCES = {
    "Bucket": "bucket",
    "TableName": "table",
    "QueueUrl": "queue",
    "TopicArn": "topic",
    "SecretId": "secret",
    "FunctionName": "function",
    "stateMachineArn": "machine",
}


def _resource_of(arguments: dict[str, Any]) -> str | None:
    """What a call is about, by its kind and name: `table images`. Names of resources are no secrets; keys are left
    out."""
    for argument, kind in _RESOURCES.items():
        if argument in arguments:
            return f"{kind} {re.split('[:/]', str(arguments[argument]))[-1]}"
    tables = {*arguments.get("RequestItems", ())}
    for action in arguments.get("TransactItems", ()):
        tables |= {parameters["TableName"] for parameters in action.values()}
    return f"tables {','.join(sorted(tables))}" if tables else None


def dynamodb_client() -> DynamoDBClient:
    """A DynamoDB client whose calls take at most about 5 seconds, the second attempt included."""
    client: DynamoDBClient = _client("dynamodb", _DYNAMODB)
    return client


def sqs_client() -> SQSClient:
    """An SQS client whose calls take at most about 8 seconds, the second attempt included."""
    client: SQSClient = _client("sqs", _SQS)
    return client


def sqs_client_without_retries() -> SQSClient:
    """An SQS client that tries each call once, for calls whose retry after a lost answer would double something."""
    # guard: dead-letters-single-try
    client: SQSClient = _client("sqs", _SQS.merge(Config(retries={"mode": "standard", "total_max_attempts": 1})))
    return client


def s3_client() -> S3Client:
    """An S3 client whose calls take at most about 24 seconds, the second attempt included."""
    client: S3Client = _client("s3", _S3)
    return client


def sns_client() -> SNSClient:
    """An SNS client whose calls take at most about 8 seconds, the second attempt included."""
    client: SNSClient = _client("sns", _SQS)
    return client


def step_functions_client() -> SFNClient:
    """A Step Functions client whose calls take at most about 8 seconds, the second attempt included."""
    client: SFNClient = _client("stepfunctions", _SQS)
    return client


def cloudfront_client() -> Any:
    """A CloudFront client whose calls take at most about 8 seconds, the second attempt included."""
    return _client("cloudfront", _SQS)


def secrets_manager_client() -> SecretsManagerClient:
    """A Secrets Manager client whose calls take at most about 5 seconds, the second attempt included."""
    client: SecretsManagerClient = _client("secretsmanager", _SECRETS_MANAGER)
    return client


def lambda_client() -> LambdaClient:
    """A Lambda client that tries each call once, for about 3 seconds: long enough for a function that starts first."""
    client: LambdaClient = _client("lambda", _SQS.merge(Config(retries={"mode": "standard", "total_max_attempts": 1})))
    return client


_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Bounds the total time of all AWS calls inside the block.

    An attempt waits for its answer no longer than the block has time, and no attempt is started that could not end
    within it: the call then fails with the previous attempt's error, or with Retryable if there was none.
    """
    outer = _deadline.get()
    own = monotonic() + seconds
    token = _deadline.set(own if outer is None else min(own, outer))
    try:
        yield
    finally:
        _deadline.reset(token)


def _reading_seconds(operation: str, later_seconds: float = 0.0) -> float | None:
    """How long an attempt that starts `later_seconds` from now may wait for its answer; None means no limit."""
    deadline = _deadline.get()
    if deadline is None:
        return None
    before_reading = CONNECT_SECONDS + (CONTINUE_SECONDS if operation == "PutObject" else 0.0)
    kept_back = 0.0 if operation in _LAST_CALLS else KEPT_BACK_SECONDS
    if _is_dispensable.get():
        kept_back = KEPT_BACK_FROM_HINTS_SECONDS  # guard: load-shedding-hint-time-reserve
    return deadline - monotonic() - later_seconds - before_reading - kept_back


def watch(client: BaseClient) -> None:
    """Applies the time limit of `within` to a client's calls, and checks that its answers have their stated length and
    checksum."""
    service = client.meta.service_model.service_id.hyphenize()
    events: Any = client.meta.events  # whose stubs know no handler that returns a value
    events.register_first(f"before-send.{service}", _bound_attempt)
    events.register_first(f"needs-retry.{service}", _judge_answer)
    events.register_first(f"after-call.{service}", _refuse_damaged_answer)


def _bound_attempt(request: Any, event_name: str, **_: object) -> None:
    operation = event_name.rpartition(".")[2]
    context = request.context
    # guard: clients-dispensable-short-wait
    chosen = IMPATIENT_READING_SECONDS if _is_dispensable.get() else context["client_config"].read_timeout
    reading = _reading_seconds(operation)
    if reading is not None and reading < LEAST_READING_SECONDS:
        raise Retryable(f"no time was left for {operation}")
    context["read_timeout"] = chosen if reading is None else min(reading, chosen)


def _judge_answer(
    operation: OperationModel,
    attempts: int,
    response: tuple[AWSResponse, object] | None,
    request_dict: dict[str, Any],
    **_: object,
) -> float | None:
    """Whether another attempt is required or ruled out, and after how many seconds; None leaves the decision to the
    SDK."""
    if _is_dispensable.get():  # guard: clients-dispensable-one-try
        return False
    reading = _reading_seconds(operation.name, later_seconds=1.0)
    if reading is not None and reading < LEAST_READING_SECONDS:
        return False
    is_last = attempts >= request_dict["context"]["retries"].get("max", 1)
    return 0.0 if response is not None and not is_last and _is_cut(operation, response[0]) else None


def _refuse_damaged_answer(http_response: AWSResponse, model: OperationModel, **_: object) -> None:
    if _is_cut(model, http_response):
        raise IncompleteReadError(
            actual_bytes=len(http_response.content), expected_bytes=int(http_response.headers["Content-Length"])
        )
    # DynamoDB's. botocore compares it only to decide on another attempt, and uses the answer of the last one as it is.
    checksum = http_response.headers.get("x-amz-crc32")
    if checksum is not None and crc32(http_response.content) != int(checksum):  # guard: clients-dynamodb-checksum
        raise FlexibleChecksumError(error_msg=f"the answer of {model.name} was damaged on its way")


def _is_cut(operation: OperationModel, answer: AWSResponse) -> bool:
    """Whether the connection ended before the answer did.

    botocore checks this only for streams. Half an answer of DynamoDB is invalid JSON, which botocore treats as an empty
    answer: a row that exists would seem to be missing.
    """
    if operation.has_streaming_output:
        return False
    if operation.http.get("method") == "HEAD" or answer.status_code == HTTPStatus.NO_CONTENT:
        return False  # it states the length of a body that does not follow
    return len(answer.content) < int(answer.headers.get("Content-Length", 0))
