"""Refuses a file that is uploaded by a form if its checksum differs from the form's.

Gap: MiniStack enforces a form's policy (key, size, content type, time), but ignores the checksum in it.
AWS: what PUT takes as headers, POST takes as form fields; an object whose checksum does not match
`x-amz-checksum-sha256` is not stored: BadDigest (400).
https://docs.aws.amazon.com/AmazonS3/latest/API/RESTObjectPOST.html
https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html

What still differs from AWS: the checksum is not stored with the object.
"""

from contextvars import ContextVar
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

# The file of the form that is being checked.
_file: ContextVar[bytes | None] = ContextVar("file_of_form", default=None)


def apply(emulator: Emulator) -> None:
    """Check the file of every signed form, after its policy."""
    s3 = internals("services.s3")
    replace(s3, "_post_object", _remember_file)
    replace(s3, "_enforce_signed_post_policy", _check_file)


def _remember_file(post: Any) -> Any:
    def post_object(bucket: str, body: bytes, headers: dict[str, str]) -> Any:
        parts = internals("services.s3")._parse_multipart_form(headers.get("content-type", ""), body)
        token = _file.set(next((value for name, _, _, value in parts or () if name == "file"), None))
        try:
            return post(bucket, body, headers)
        finally:
            _file.reset(token)

    return post_object


def _check_file(enforce: Any) -> Any:
    def enforce_policy(fields: dict[str, str], *arguments: Any, **options: Any) -> Any:
        refusal = enforce(fields, *arguments, **options)
        stated = {name: value for name, value in fields.items() if name.startswith("x-amz-checksum-")}
        if refusal is None and stated:
            _, refusal = internals("services.s3")._resolve_object_checksums(_file.get() or b"", stated)
        return refusal

    return enforce_policy
