"""SDK clients of the emulator, which read nothing from this machine's AWS configuration and send it nowhere."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

import boto3
import botocore.loaders
import botocore.session
from botocore.config import Config

from local_aws.stacks.record import ACCESS_KEY_ID


def of_account(secret: str) -> dict[str, str]:
    """The credentials of the local stack's account, whose secret is in its record."""
    return {"aws_access_key_id": ACCESS_KEY_ID, "aws_secret_access_key": secret}


def of_role(lent: Mapping[str, Any]) -> dict[str, str]:
    """The credentials that STS issues for a role, in the form that `isolated_clients` takes."""
    return {
        "aws_access_key_id": lent["AccessKeyId"],
        "aws_secret_access_key": lent["SecretAccessKey"],
        "aws_session_token": lent["SessionToken"],
    }


@functools.cache
def _models() -> botocore.loaders.Loader:
    """The services' models, which take longer to read than a client to make."""
    return botocore.loaders.Loader()


def isolated_clients(
    endpoint_url: str, region: str, credentials: Mapping[str, str], *, config: Config | None = None
) -> Callable[[str], Any]:
    """Creates clients by service name, one per service; `credentials` are the account's or a role's (`of_…`)."""
    # No profile, whatever the environment says: boto3 would look up its name in the configuration.
    of_nobody = {"profile": None, "config_file": os.devnull, "credentials_file": os.devnull}
    core = botocore.session.Session({name: (None, None, value, None) for name, value in of_nobody.items()})
    core.register_component("data_loader", _models())
    session: Any = boto3.session.Session(botocore_session=core, region_name=region, **credentials)
    # No proxy, endpoint or endpoint variant that this machine has set for AWS; presigned links use AWS's signature.
    alone: dict[str, Any] = {"proxies": {}, "ignore_configured_endpoint_urls": True}
    alone |= {"use_fips_endpoint": False, "use_dualstack_endpoint": False}
    clients: dict[str, Any] = {}
    lock = threading.Lock()  # threads may share clients, but not the session that creates them

    def client(service: str) -> Any:
        with lock:
            if service not in clients:
                own_config = Config(**alone, signature_version="s3v4" if service == "s3" else None)
                clients[service] = session.client(
                    service,
                    endpoint_url=endpoint_url,
                    config=own_config if config is None else own_config.merge(config),
                )
            return clients[service]

    return client
