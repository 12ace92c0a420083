"""Refuses an upload by a form that is not signed with a key of this account.

Gap: MiniStack checks a form's policy, but its signature only with AUTH=true; and it takes forms without any.
AWS: the policy of a form is signed; a signature that does not match is refused with SignatureDoesNotMatch, a key that
is unknown with InvalidAccessKeyId; a form without a policy may only write to a bucket that is open to everybody.
https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-authentication-HTTPPOST.html
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace
from local_aws.signatures import secret_of


def apply(emulator: Emulator) -> None:
    """Check the signature of every form before its policy."""
    s3 = internals("services.s3")
    replace(s3, "_enforce_signed_post_policy", _check_signature)
    replace(s3, "_enforce_post_policy_size", lambda _: _refuse)  # guard: gate-unsigned-form-refused


def _refuse(*_: Any) -> Any:
    return internals("services.s3")._error("AccessDenied", "Access Denied", 403)


def _check_signature(enforce: Any) -> Any:
    def enforce_policy(fields: dict[str, str], *arguments: Any, **options: Any) -> Any:
        return _failure(fields) or enforce(fields, *arguments, **options)

    return enforce_policy


def _failure(fields: dict[str, str]) -> Any:
    sigv4, error = internals("core.sigv4"), internals("services.s3")._error
    scope = fields.get("x-amz-credential", "").split("/")
    if len(scope) != 5:
        return error("AccessDenied", "The form is not signed with Signature Version 4.", 403)
    key, date, region, service, _ = scope
    secret = secret_of(key, fields.get("x-amz-security-token", ""))
    if secret is None:
        return error("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.", 403)
    expected = sigv4.calculate_signature(secret, date, region, service, fields.get("policy", ""))
    if not sigv4.signatures_match(expected, fields.get("x-amz-signature", "")):  # guard: gate-form-signature
        return error("SignatureDoesNotMatch", sigv4.SIGNATURE_MISMATCH, 403)
    return None
