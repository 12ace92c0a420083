"""Who sends a request, by the credential that the gateway has checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from darkroom.domain.kernel.tenants import NOBODY_IN_PARTICULAR, Caller, Tier, caller_from, is_tenant_id
from darkroom.http.kernel.problems import Problem
from darkroom.http.kernel.router import Router
from darkroom.settings import AccessSettings
from darkroom.telemetry import logger


def caller_of(app: Router) -> Caller:
    """Returns the sender of the current request, by the credential that the gateway has checked, never by a header or a
    parameter.

    Raises Problem (`no_tenant`) for a token without a tenant. A request that should have passed an authorizer but
    carries nothing from it reveals a hole in the template: it is refused (RuntimeError) and not taken for the default
    tenant's.
    """
    match app.access.access:
        case "keys":
            caller = caller_from(_passed(app.current_event.authorized))  # guard: authorizer-bypass-refused
        case "jwt":
            caller = _caller_of_token(_passed(app.current_event.claims), app.access)
        case "iam" | "anonymous":
            caller = NOBODY_IN_PARTICULAR
    logger.append_keys(tenant_id=caller.tenant_id, **({} if caller.key_id is None else {"key_id": caller.key_id}))
    return caller


def _passed(word: dict[str, Any]) -> dict[str, Any]:
    if not word:
        raise RuntimeError("the request bypassed the authorizer: its route in template.yaml lacks `security`")
    return word


def _caller_of_token(claims: Mapping[str, str], access: AccessSettings) -> Caller:
    tenant_id = claims.get(access.jwt_tenant_claim, "")
    if not is_tenant_id(tenant_id):  # guard: tokens-tenant-required
        raise Problem(
            "no_tenant",
            f"The token's claim {access.jwt_tenant_claim!r} names no tenant: a tenant is 1 to 128 letters, "
            "digits and . _ : | @ -, a letter or digit first.",
        )
    # The issuer decides who pays: a missing claim or an unknown value gets nothing for free.
    tier = next((tier for tier in Tier if tier == claims.get(access.jwt_tier_claim)), Tier.FREE)
    # guard: quotas-of-token-tier
    return Caller(tenant_id=tenant_id, tier=tier, allowance=tier.allowance, quota=tier.quota)
