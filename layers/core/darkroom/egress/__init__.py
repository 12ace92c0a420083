"""Everything that leaves the stack for an address that a user chose: one HTTPS request to a public host, within
limits.

`read_url` says whether a URL can be used at all; `send` resolves its host once, checks every address, and connects to
one of these. Nothing else in the product opens a connection outside AWS.
"""

from darkroom.egress.connection import Resolve
from darkroom.egress.errors import EgressFailureKind, Reason, RequestFailed, UrlRefused
from darkroom.egress.request import EgressResponse, send
from darkroom.egress.urls import PUBLIC_ONLY, EgressPolicy, Url, read_url

__all__ = [
    "PUBLIC_ONLY",
    "EgressFailureKind",
    "EgressPolicy",
    "EgressResponse",
    "Reason",
    "RequestFailed",
    "Resolve",
    "Url",
    "UrlRefused",
    "read_url",
    "send",
]
