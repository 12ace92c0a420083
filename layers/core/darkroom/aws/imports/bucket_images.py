"""Fetches images from buckets that an operator has registered, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from darkroom.aws.kernel.errors import code_of, is_passing
from darkroom.aws.kernel.missing import FORBIDDEN, MISSING
from darkroom.domain.images.image import Provenance
from darkroom.domain.images.media_types import SNIFF_BYTES
from darkroom.domain.imports.bucket_files import bucket_file_at
from darkroom.domain.imports.fetch import FAILED, NOT_FOUND, REFUSED, TOO_LARGE, Fetched, Unfetched
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.sizes import limit_in_words

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class BucketImages:
    """Implements the `RemoteImages` port for URLs of buckets."""

    def __init__(self, client: S3Client) -> None:
        self._client = client

    def fetch(self, url: str, *, max_bytes: int, is_picture: Callable[[bytes], bool]) -> Fetched | Unfetched:
        try:
            file = bucket_file_at(url)
            answer = self._client.get_object(Bucket=file.bucket, Key=file.key)
            if answer["ContentLength"] > max_bytes:  # guard: fetch-bucket-file-size
                answer["Body"].close()
                return Unfetched(
                    code=TOO_LARGE,
                    message=f"The file has more than {limit_in_words(max_bytes)}, the most that may be fetched.",
                )
            body = answer["Body"].read(SNIFF_BYTES)
            if is_picture(body):
                body += answer["Body"].read()
            else:
                answer["Body"].close()
        except Rejected as refusal:
            return Unfetched(code=REFUSED, message=refusal.message)
        except (BotoCoreError, ClientError) as error:
            return _unfetched_by(error)
        if not body:
            return Unfetched(code=FAILED, message="The file is empty.")
        return Fetched(body=body, provenance=_provenance_of(answer))


def _provenance_of(answer: Any) -> Provenance:
    """What a server would have said."""
    last_modified = formatdate(answer["LastModified"].timestamp(), usegmt=True)
    return Provenance(etag=answer["ETag"], last_modified=last_modified)


def _unfetched_by(error: BotoCoreError | ClientError) -> Unfetched:
    """What to tell the image's owner, who has the bucket or knows who has it."""
    code = code_of(error) if isinstance(error, ClientError) else ""
    if code in MISSING or code == "NoSuchBucket":
        return Unfetched(code=NOT_FOUND, message="There is no such file.")
    if code == "InvalidObjectState":
        return Unfetched(code=REFUSED, message="The file is archived: restore it, and import it again.")
    if code in FORBIDDEN:
        # S3 says the same of a file that is not there to those who may not list the bucket.
        return Unfetched(
            code=REFUSED,
            message="There is no such file, or this stack may not read it: the operator's parameter ImportBuckets and "
            "the bucket's policy and key decide.",
        )
    return Unfetched(
        code=FAILED,
        message="The bucket does not send it now." if is_passing(error) else f"The bucket refuses it ({code}).",
        may_pass=is_passing(error),
    )
