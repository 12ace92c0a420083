"""Which stack a command talks to: the local one, or the one that `--url` names."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import httpx
import typer

from darkroom.domain.tenants.api_keys import key_id_of
from darkroom_cli.options import option
from darkroom_cli.stack.local import local_stack
from darkroom_client import Darkroom
from darkroom_client.client import ApiError, Pause, is_loopback

if TYPE_CHECKING:
    from darkroom_cli.stack.operators import Stack

_PANEL = "Which stack (default: the local one)"

UrlOption = Annotated[
    str | None,
    option(
        "--url",
        "URL",
        "The API of a deployed stack: its output ApiUrl. Default: $DARKROOM_URL, or the local stack.",
        panel=_PANEL,
    ),
]
ApiKeyOption = Annotated[
    str | None,
    option(
        "--api-key",
        "KEY",
        "Sent as `Authorization: Bearer KEY`. Better: set $DARKROOM_API_KEY, which `ps` does not show.",
        panel=_PANEL,
    ),
]
IamOption = Annotated[
    bool,
    typer.Option(
        "--iam",
        help="Sign with your ordinary AWS credentials (SigV4), for a stack deployed with Access=iam.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]

StackOption = Annotated[
    str | None, option("--stack", "NAME", "A deployed stack, reached with your ordinary AWS credentials.", panel=_PANEL)
]
RegionOption = Annotated[
    str | None,
    option("--region", "R", "With --stack: its region. Default: that of your AWS configuration.", panel=_PANEL),
]


@dataclass(frozen=True, kw_only=True)
class ApiTarget:
    """A stack's API and the credential for it; `options` are those with which another command reaches it too."""

    url: str
    api_key: str | None = None
    auth: httpx.Auth | None = None
    options: str = ""
    is_local_stack: bool = False

    def open(self, *, connections: int = 2, pause: Pause = time.sleep) -> Darkroom:
        """A client for this stack."""
        return Darkroom(
            self.url,
            self.api_key,
            auth=self.auth,
            is_local_stack=self.is_local_stack,
            connections=connections,
            pause=pause,
        )


def resolve(
    url: str | None, api_key: str | None, iam: bool, *, environment: Mapping[str, str] | None = None
) -> ApiTarget:
    """The stack that the options and the environment name, or else the local stack.

    Raises Unreachable if that is the local one and it is not running, and typer.BadParameter for options that
    contradict each other.
    """
    environment = os.environ if environment is None else environment
    chosen = url or environment.get("DARKROOM_URL")
    if chosen is None:
        if iam:
            raise typer.BadParameter("it signs for a deployed stack: name one with --url.", param_hint="--iam")
        stack = local_stack(
            environment, otherwise="name a deployed stack: --url URL (the output ApiUrl of `sam deploy`)."
        )
        return ApiTarget(url=stack.api_url, api_key=api_key or stack.api_key, is_local_stack=True)

    chosen = _checked(chosen)
    # A key in the environment belongs to the stack that --url names; the local stack never gets it.
    key = api_key or (None if iam else environment.get("DARKROOM_API_KEY"))
    if key and key.startswith("dr_") and key_id_of(key) is None:
        raise typer.BadParameter("that key is incomplete or has a typo.", param_hint="--api-key")
    if key and iam:
        raise typer.BadParameter("give either --api-key or --iam: both would set the same header.", param_hint="--iam")
    if (key or iam) and urlsplit(chosen).scheme != "https" and not is_loopback(chosen):
        raise typer.BadParameter("a credential would travel in the clear. Use https.", param_hint="--url")
    options = f" --url {chosen}" if url else ""
    return ApiTarget(
        url=chosen,
        api_key=key,
        auth=_signer(chosen) if iam else None,
        options=options + (" --iam" if iam else ""),
        # guard: cli-local-stack-recorded
        is_local_stack=is_loopback(chosen) and _is_of_local_stack(chosen, environment),
    )


def reach(stack: str | None, region: str | None) -> Stack:
    """The stack that the options name."""
    from darkroom_cli.stack.operators import open_stack  # noqa: PLC0415

    if stack is None and region is not None:
        raise typer.BadParameter("use it with --stack: the local stack has its own.", param_hint="--region")
    return open_stack(stack, region)


def _is_of_local_stack(url: str, environment: Mapping[str, str]) -> bool:
    """Whether stack.json says that the local stack answers at this address of this machine, under any name."""
    try:
        recorded = local_stack(environment).api_url
    except ApiError:
        return False
    return urlsplit(url).port == urlsplit(recorded).port


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise typer.BadParameter(f"{url!r} is not a URL like https://….amazonaws.com", param_hint="--url")
    if parts.query or parts.fragment:
        raise typer.BadParameter("an API's URL has no '?' and no '#'.", param_hint="--url")
    return url.rstrip("/")


def _signer(url: str) -> httpx.Auth:
    from darkroom_client import signing  # noqa: PLC0415 - botocore takes a third of a second to import, for every command

    if is_loopback(url):
        raise typer.BadParameter("a local stack needs no AWS credentials, and is never sent any.", param_hint="--iam")
    try:
        return signing.ordinary_credentials(urlsplit(url).hostname or "")
    except signing.CredentialsMissing as error:
        raise ApiError(str(error)) from error
