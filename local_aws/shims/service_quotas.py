"""Answers Service Quotas: a stub, with the few quotas that matter to a stack, at AWS's defaults.

Gap: MiniStack has no Service Quotas; every call is a 400 without a code.
AWS: ListServiceQuotas and GetServiceQuota say which quotas of a service apply to the account, and which metric measures
their use. An unknown service or quota is a NoSuchResourceException.
https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_ListServiceQuotas.html
https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html

It is a stub: nothing here is measured or enforced, and no quota can be raised. It knows the quotas below, from
https://docs.aws.amazon.com/general/latest/gr/lambda-service.html (concurrent executions, code storage),
https://docs.aws.amazon.com/general/latest/gr/ddb.html (tables),
https://docs.aws.amazon.com/general/latest/gr/s3.html (buckets) and
https://docs.aws.amazon.com/general/latest/gr/cfn.html (stacks).
Other services have an empty list, where AWS would have dozens.
What Lambda's GetAccountSettings says about concurrency is the emulator's own bound, which differs from the 1,000 here.
"""

import json
from collections.abc import Mapping
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_SERVICE = "servicequotas"
_TARGET = "ServiceQuotasV20190624"

QUOTAS: Mapping[str, Mapping[str, tuple[str, float]]] = {
    "lambda": {
        "L-B99A9384": ("Concurrent executions", 1000),
        "L-2ACBD22F": ("Function and layer storage", 75),
    },
    "dynamodb": {"L-F98FE922": ("Maximum number of tables", 2500)},
    "s3": {"L-DC2B2D3D": ("General purpose buckets", 10000)},
    "cloudformation": {"L-0485CB21": ("Stack count", 2000)},
}
"""The name and the default of each quota, by the codes of its service and of itself."""

USAGE_METRICS: Mapping[str, Mapping[str, Any]] = {
    "L-B99A9384": {
        "MetricNamespace": "AWS/Lambda",
        "MetricName": "ConcurrentExecutions",
        "MetricDimensions": {},
        "MetricStatisticRecommendation": "Maximum",
    },
}
"""What measures the use of a quota, where AWS measures it."""

SERVICES = frozenset(QUOTAS) | {"sqs", "sns", "states", "events", "secretsmanager", "logs"}


def apply(emulator: Emulator) -> None:
    """Route the service's requests here."""
    replace(
        internals("core.router"), "SERVICE_PATTERNS", lambda known: {**known, _SERVICE: {"target_prefixes": [_TARGET]}}
    )
    replace(internals("app"), "SERVICE_HANDLERS", lambda known: {**known, _SERVICE: _handle})


async def _handle(method: str, path: str, headers: Mapping[str, str], body: bytes, query_params: Any) -> Any:
    operation = headers.get("x-amz-target", "").rpartition(".")[2]
    request = json.loads(body or b"{}")
    service = request.get("ServiceCode", "")
    if service not in SERVICES:
        return _refusal("NoSuchResourceException", f"The service {service} is not one that this stub knows.")
    quotas = QUOTAS.get(service, {})
    match operation:
        case "ListServiceQuotas" | "ListAWSDefaultServiceQuotas":
            return _answer({"Quotas": [_quota(service, code) for code in quotas]})
        case "GetServiceQuota" | "GetAWSDefaultServiceQuota":
            code = request.get("QuotaCode", "")
            if code not in quotas:
                return _refusal("NoSuchResourceException", f"This stub knows no quota {code} of {service}.")
            return _answer({"Quota": _quota(service, code)})
        case _:
            return _refusal("UnknownOperationException", f"This stub of Service Quotas has no {operation}.")


def _quota(service: str, code: str) -> dict[str, Any]:
    name, value = QUOTAS[service][code]
    quota = {
        "ServiceCode": service,
        "QuotaCode": code,
        "QuotaName": name,
        "Value": float(value),
        "Adjustable": True,
        "GlobalQuota": False,
        "Unit": "None",
        "Description": "A stub of the embedded AWS: the default of AWS's documentation.",
    }
    return quota | ({"UsageMetric": USAGE_METRICS[code]} if code in USAGE_METRICS else {})


def _answer(document: Mapping[str, Any], status: int = 200) -> tuple[int, dict[str, str], bytes]:
    return status, {"Content-Type": "application/x-amz-json-1.1"}, json.dumps(document).encode()


def _refusal(code: str, message: str) -> tuple[int, dict[str, str], bytes]:
    return _answer({"__type": code, "Message": message}, 400)
