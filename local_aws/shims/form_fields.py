"""Ignores what follows the file in a form that uploads to S3.

Gap: MiniStack takes all fields of a form, also those after its file.
AWS: "The file or content must be the last field in the form. Any fields below it are ignored."
https://docs.aws.amazon.com/AmazonS3/latest/API/RESTObjectPOST.html (file)
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace


def apply(emulator: Emulator) -> None:
    """End each form with its file."""
    replace(internals("services.s3"), "_parse_multipart_form", _up_to_the_file)


def _up_to_the_file(parse: Any) -> Any:
    def parse_form(content_type: str, body: bytes) -> Any:
        parts = parse(content_type, body)
        end = next((place for place, (name, *_) in enumerate(parts or ()) if name == "file"), None)
        return parts if end is None else parts[: end + 1]

    return parse_form
