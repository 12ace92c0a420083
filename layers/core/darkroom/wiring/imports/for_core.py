"""What imports add to `submit_image`, which loads it by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from darkroom.domain.imports.fetch import MAX_SOURCE_URL_LENGTH
from darkroom.operations.imports.begin_fetch import BeginFetchPorts
from darkroom.wiring.kernel.runtime import clock, randomness

if TYPE_CHECKING:
    from darkroom.operations.images.submit_image import SubmitImagePorts
    from darkroom.ports.images import FetchQueue
    from darkroom.settings import ReachSettings, SubmitImageSettings


def check_url_by(settings: ReachSettings) -> Callable[[str], None]:
    """Returns what raises Rejected for a URL to which a deployment with these settings sends nothing."""

    def check_url(url: str) -> None:
        # Few requests have a URL, and all others would pay for how one is read.
        from darkroom.egress import read_url  # noqa: PLC0415
        from darkroom.wiring.egress.egress_policy import policy_of  # noqa: PLC0415

        read_url(url, policy_of(settings), max_length=MAX_SOURCE_URL_LENGTH)  # guard: egress-given-source-url-length

    return check_url


def begin_fetch_ports(
    settings: SubmitImageSettings, ports: SubmitImagePorts, fetch_queue: FetchQueue
) -> BeginFetchPorts:
    """The ports of `begin_fetch`, of which most are those of `submit_image`."""
    return BeginFetchPorts(
        images=ports.images,
        has_recipient=ports.has_recipient,
        join_batch=ports.join_batch,
        lanes=ports.lanes,
        fetch_queue=fetch_queue,
        load_shedder=ports.load_shedder,
        quotas=ports.quotas,
        upload_token_uses=ports.upload_token_uses,
        check_url=check_url_by(settings),
        clock=clock,
        randomness=randomness,
        max_bytes=settings.max_file_bytes,
        delivers=ports.delivers,
    )
