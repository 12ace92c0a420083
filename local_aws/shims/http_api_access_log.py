"""Lets the front write an access log: notes what only the inside of the gateway knows of a request.

Gap: MiniStack keeps a stage's `AccessLogSettings` and writes no log.
AWS: `local_aws.access_log` says what it writes, and cites where AWS documents it.
"""

import json
from typing import Any

from local_aws import access_log
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace


def apply(emulator: Emulator) -> None:
    """Watch how a request is routed, let in and answered."""
    access_log.is_on = True
    api_gateway = internals("services.apigateway")
    replace(api_gateway, "_match_route", _note_route)
    replace(api_gateway, "_invoke_lambda_proxy", _note_caller)
    replace(api_gateway, "_authorize_request_v2", _note_authorizer)


def _note_route(match: Any) -> Any:
    def match_route(*arguments: Any) -> Any:
        route = match(*arguments)
        if route is not None:
            access_log.note(routeKey=route.get("routeKey"))
        return route

    return match_route


def _note_caller(invoke: Any) -> Any:
    async def invoke_lambda_proxy(*arguments: Any, **options: Any) -> Any:
        access_log.note_all("authorizer", options.get("authorizer_lambda_context"))
        access_log.note_all("authorizer.claims", options.get("authorizer_claims"))
        iam = options.get("authorizer_iam") or {}
        access_log.note(
            identity_accountId=iam.get("accountId"),
            identity_caller=iam.get("callerId"),
            identity_principalOrgId=iam.get("principalOrgId"),
            identity_user=iam.get("userId"),
            identity_userArn=iam.get("userArn"),
        )
        return await invoke(*arguments, **options)

    return invoke_lambda_proxy


def _note_authorizer(authorize: Any) -> Any:
    async def authorize_request(*arguments: Any, **options: Any) -> Any:
        refusal, context = await authorize(*arguments, **options)
        if refusal is not None:
            access_log.note(authorizer_error=json.loads(refusal[2])["message"])
        return refusal, context

    return authorize_request
