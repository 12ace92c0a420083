"""Signs requests with SigV4 and the caller's own AWS credentials, for stacks deployed with `Access=iam`."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from typing import Protocol

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session

# The service name in the signature of any API Gateway call
# (https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-access-control-iam.html).
_SERVICE = "execute-api"

_EXECUTE_API_HOST = re.compile(r"\.execute-api\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?$")


class CredentialsMissing(Exception):
    """The ordinary AWS configuration has no credentials or no region; the message says which and what to do."""


class Credentials(Protocol):
    """Returns the credentials that are valid now: botocore refreshes temporary ones by itself."""

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """Access key, secret and token."""


class SigV4(httpx.Auth):
    """Adds an AWS signature to each request and a fresh one to each retry: a signature is valid for five minutes."""

    requires_request_body = True

    def __init__(self, credentials: Credentials, region: str) -> None:
        self._credentials = credentials
        self._region = region

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        """Signs `request` over its method, address, body and host."""
        signed = AWSRequest(
            method=request.method,
            url=str(request.url),
            data=request.content,
            headers={"Host": request.headers["Host"]},
        )
        SigV4Auth(self._credentials.get_frozen_credentials(), _SERVICE, self._region).add_auth(signed)
        for name in ("Authorization", "X-Amz-Date", "X-Amz-Security-Token"):
            if name in signed.headers:
                request.headers[name] = signed.headers[name]
        yield request


def region_of(host: str) -> str | None:
    """The region in the host name of an API, or None for a custom domain."""
    host_match = _EXECUTE_API_HOST.search(host)
    return host_match["region"] if host_match else None


def ordinary_credentials(host: str) -> SigV4:
    """A signer for the API at `host`, from the environment, profile or role that any AWS tool would use.

    Raises CredentialsMissing if there are none.
    """
    session = Session()
    try:
        credentials = session.get_credentials()
        region = region_of(host) or os.environ.get("AWS_REGION") or session.get_config_variable("region")
    except BotoCoreError as error:
        raise CredentialsMissing(f"Your AWS configuration cannot be used: {error}") from error
    if credentials is None:
        raise CredentialsMissing(
            "--iam found no AWS credentials. Sign in (`aws sso login`), or set AWS_PROFILE or AWS_ACCESS_KEY_ID."
        )
    if not region:
        raise CredentialsMissing(f"--iam cannot find the region in {host}. Set AWS_REGION.")
    return SigV4(credentials, region)
