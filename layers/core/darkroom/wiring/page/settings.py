"""The settings of the function that serves the page."""

from __future__ import annotations

from darkroom.parts import PARTS
from darkroom.settings import Settings, deployed, setting, whole_number


class ServePageSettings(Settings):
    """What `serve_page` tells the page, and which other origins it lets the page call.

    `url_suffix` is the domain of the AWS partition. The endpoints are those that the SDK would use in S3's place. With
    tokens, `jwt_sign_in_origin` is where callers sign in, if that is another origin than the issuer's.
    """

    parts: frozenset[str] = setting(deployed, default=frozenset(PARTS))
    uploads_bucket: str
    outputs_bucket: str
    max_file_bytes: int = setting(whole_number(1))
    aws_region: str
    url_suffix: str
    aws_endpoint_url: str = ""
    aws_endpoint_url_s3: str = ""
    jwt_issuer: str = ""
    jwt_audience: str = ""
    jwt_client_id: str = ""
    jwt_sign_in_origin: str = ""
