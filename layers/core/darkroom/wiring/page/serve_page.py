"""The wiring of `serve_page`. Without an SDK: the function calls nothing, and a visitor waits for its cold start."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from darkroom.aws.page.origins import origin_of, origin_of_url
from darkroom.operations.page.serve_page import File, WebPage
from darkroom.settings import Access, AccessSettings, MissingSettings
from darkroom.wiring.page.settings import ServePageSettings

SHELL = "index.html"


@dataclass(frozen=True, kw_only=True)
class Served:
    """The page as it is packed, the settings of the function, and the origins that the page may call."""

    page: WebPage
    access: Access
    settings: ServePageSettings
    uploads: str
    outputs: str
    sign_in: Sequence[str]


def wire() -> Served:
    """The page in the function's layer, and the settings in its environment."""
    access, settings = AccessSettings.read().access, ServePageSettings.read()
    endpoint_url = settings.aws_endpoint_url_s3 or settings.aws_endpoint_url

    def bucket_origin(name: str) -> str:
        return origin_of(name, region=settings.aws_region, domain=settings.url_suffix, endpoint_url=endpoint_url)

    tree, files = read_files(sys.path)
    return Served(
        page=WebPage(tree=tree, shell=files.pop(SHELL), files=files),
        access=access,
        settings=settings,
        uploads=bucket_origin(settings.uploads_bucket),
        outputs=bucket_origin(settings.outputs_bucket),
        sign_in=[origin_of_url(url) for url in (settings.jwt_issuer, settings.jwt_sign_in_origin) if url]
        if access == "jwt"  # guard: page-issuer-only-with-tokens
        else [],
    )


def read_files(places: Iterable[str]) -> tuple[str, dict[str, File]]:
    """The hash and the files of the page, by name, from the first of these folders that has it. Raises MissingSettings
    if none has."""
    folder = next((page for place in places if (page := Path(place, "page")).joinpath("index.json").is_file()), None)
    if folder is None:
        raise MissingSettings("The layer with the page is missing. Add PageLayer to the function in template.yaml.")
    index = json.loads(folder.joinpath("index.json").read_bytes())
    return index["tree"], {
        name: File(
            media_type=file["media_type"], etag=file["etag"], compressed=folder.joinpath(f"{name}.gz").read_bytes()
        )
        for name, file in index["files"].items()
    }
