"""Lets a distribution with an origin access control call a function URL that requires IAM, and read what a customer's
key encrypts, as the policies say.

Gap: MiniStack sends CloudFront's request unsigned, so a function URL with AWS_IAM answers 403 whatever its policy says.
It asks for no permission to use the key of a bucket.
AWS: CloudFront signs with the origin access control. The function's policy must allow both `lambda:InvokeFunctionUrl`
and `lambda:InvokeFunction` to cloudfront.amazonaws.com, for the distribution as `AWS:SourceArn`. The
policy of a bucket's own key must allow it `kms:Decrypt` in the same way.
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-restricting-access-to-lambda.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-restricting-access-to-s3.html
https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html

What still differs from AWS: the hash of a request's body, which its viewer has to send, is not asked for.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_SERVICE = "cloudfront.amazonaws.com"
_ACTIONS = ("lambda:InvokeFunctionUrl", "lambda:InvokeFunction")

_signer = ContextVar[str | None]("signer", default=None)
"""The distribution whose origin access control signs the request."""


def apply(emulator: Emulator) -> None:
    """Sign requests to function URLs and check them where they arrive, and look at the keys of buckets."""
    replace(internals("services.cloudfront"), "_fetch_from_origin", _as_the_distribution)
    replace(internals("app"), "_handle_lambda_url_request", _by_policy)
    replace(internals("services.s3"), "_cloudfront_origin_allows", _with_the_key)


def _as_the_distribution(fetch: Any) -> Any:
    async def fetch_from_origin(origin: dict[str, Any], *arguments: Any) -> Any:
        control = internals("services.cloudfront")._oacs.get(origin.get("oac_id")) or {}
        signs = control.get("OriginAccessControlOriginType") == "lambda" and control["SigningBehavior"] != "never"
        token = _signer.set(arguments[-1] if signs else None)
        try:
            return await fetch(origin, *arguments)
        finally:
            _signer.reset(token)

    return fetch_from_origin


def _by_policy(handle: Any) -> Any:
    async def handle_lambda_url_request(host: str, path: str, *request: Any, **options: Any) -> Any:
        method, headers, body, query = request
        app, functions = internals("app"), internals("services.lambda_svc")
        distribution_arn = _signer.get()
        parsed = app._parse_lambda_url(host, path) if distribution_arn else None
        resolved = functions.resolve_function_url(parsed[0]) if parsed else None
        if not distribution_arn or not parsed or not resolved or resolved[4].get("AuthType") != "AWS_IAM":
            return await handle(host, path, *request, **options)
        if not _may_invoke(app._function_url_auth_target(parsed[0])[0], resolved, distribution_arn):
            refused = {"Content-Type": "application/json", "x-amzn-ErrorType": "AccessDeniedException"}
            return 403, refused, b'{"Message":null}'
        signed = {**headers, "authorization": "AWS4-HMAC-SHA256 of the origin access control"}
        return await functions.handle_function_url_request(
            parsed[0], method, parsed[1], signed, body, query, resolved=resolved, **options
        )

    return handle_lambda_url_request


def _may_invoke(function_arn: str, resolved: Any, distribution_arn: str) -> bool:
    account_id, region, name, *_ = resolved
    policy = internals("services.lambda_svc")._functions.get_scoped(account_id, region, name, {}).get("policy")
    keys = {"lambda:FunctionUrlAuthType": "AWS_IAM", "lambda:InvokedViaFunctionUrl": "true"}
    return all(_allows(policy, action, function_arn, distribution_arn, **keys) for action in _ACTIONS)


def _with_the_key(allows: Any) -> Any:
    def cloudfront_origin_allows(owner: str, bucket: str, key: str, distribution_arn: str, *identity: Any) -> bool:
        encryption = internals("services.s3")._bucket_default_sse_headers(bucket)
        kms_key = encryption.get("x-amz-server-side-encryption-aws-kms-key-id")
        if not allows(owner, bucket, key, distribution_arn, *identity):
            return False
        policy = (internals("services.kms").key_policy_for_arn(kms_key) or ("",))[0] if kms_key else ""
        return not kms_key or _allows(policy, "kms:Decrypt", kms_key, distribution_arn)

    return cloudfront_origin_allows


def _allows(policy: Any, action: str, resource_arn: str, distribution_arn: str, **keys: str) -> bool:
    evaluator = internals("core.iam_evaluator")
    context = evaluator.EvalContext(
        principal_arn="*",
        principal_type="Service",
        principal_account="",
        action=action,
        resource_arn=resource_arn,
        region=internals("core.responses").get_region(),
        service_context={"aws:sourcearn": distribution_arn, **keys},
    )
    return bool(evaluator.evaluate_resource_policy(policy, context, service=_SERVICE).decision == "Allow")
