"""The settings of each function; the only reader of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from darkroom.domain.lanes import LANES, Lane, lanes_with
from darkroom.domain.limits import STANDARD_INPUT_FORMATS, InputFormat, Limits


class MissingSettings(RuntimeError):
    """The function was deployed without a required setting, or with an invalid one."""


@dataclass(frozen=True)
class OfEachLane:
    """Marks a field that has a value for each lane, from a variable that begins with the lane's name:
    `FAST_QUEUE_URL`."""

    suffix: str

    def variable(self, lane: str) -> str:
        """The environment variable of that lane."""
        return f"{lane}_{self.suffix}".upper()


class Settings(BaseModel):
    """Settings named like the environment variables, in lower case, except those `OfEachLane`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Reads the settings from `environment`. Raises MissingSettings, naming every missing or invalid variable."""
        given: dict[str, Any] = {n: environment[n.upper()] for n in cls.model_fields if n.upper() in environment}
        problems = []
        for name, each in cls._of_each_lane().items():
            variables = {lane: each.variable(lane) for lane in LANES}
            given[name] = {lane: environment[said] for lane, said in variables.items() if said in environment}
            problems += [f"{said}: Field required" for said in variables.values() if said not in environment]
        try:
            settings = cls.model_validate(given)
        except ValidationError as error:
            problems += [f"{cls._variable(e['loc'])}: {e['msg']}" for e in error.errors()]
        else:
            if not problems:
                return settings
        raise MissingSettings(f"{cls.__name__}: {'; '.join(problems)}. Set them in template.yaml.")

    @classmethod
    def _of_each_lane(cls) -> dict[str, OfEachLane]:
        fields = cls.model_fields.items()
        return {name: mark for name, field in fields for mark in field.metadata if isinstance(mark, OfEachLane)}

    @classmethod
    def _variable(cls, location: tuple[int | str, ...]) -> str:
        name = str(location[0])
        each = cls._of_each_lane().get(name)
        return name.upper() if each is None else each.variable(str(location[1]))


type Access = Literal["anonymous", "iam", "keys", "jwt"]
"""Which credential callers use: the template's parameter of that name."""


class AccessSettings(Settings):
    """Whose requests the API answers: `access` is the credential that the gateway has checked, and the claims of a
    token name its tenant and tier."""

    access: Access
    jwt_tenant_claim: str = "sub"
    jwt_tier_claim: str = "tier"


class LaneSettings(Settings):
    """The lanes' queues."""

    queue_urls: Annotated[Mapping[str, str], OfEachLane("QUEUE_URL")]


class ConcurrencySettings(Settings):
    """The most workers of each lane: `MaximumConcurrency` of its event source."""

    concurrency: Annotated[Mapping[str, Annotated[int, Field(ge=2, le=1000)]], OfEachLane("CONCURRENCY")]

    @property
    def service(self) -> Mapping[str, Lane]:
        """Each lane's deployed configuration."""
        return lanes_with(self.concurrency)


class QueueSettings(LaneSettings):
    """The lanes' queues, and the queue of messages to be held."""

    hold_queue_url: str


def _listed(value: Any) -> Any:
    """The words of a list in an environment variable, "avif, heic"; none in an empty one."""
    return [word.strip() for word in value.split(",") if word.strip()] if isinstance(value, str) else value


class InputSettings(Settings):
    """Which formats are accepted: `extra_input_formats` in addition to the standard ones."""

    extra_input_formats: Annotated[frozenset[Literal["avif", "heic"]], BeforeValidator(_listed)] = frozenset()

    @property
    def input_formats(self) -> frozenset[InputFormat]:
        """All formats that are accepted."""
        return STANDARD_INPUT_FORMATS | self.extra_input_formats


_DEFAULTS = Limits()


class LimitSettings(InputSettings):
    """The limits of an original, each of which the environment may change."""

    max_file_bytes: int = Field(_DEFAULTS.max_bytes, ge=1)
    max_webp_bytes: int = Field(_DEFAULTS.max_webp_bytes, ge=1)
    max_png_bytes: int = Field(_DEFAULTS.max_png_bytes, ge=1)
    max_megapixels: float = Field(_DEFAULTS.max_pixels / 1_000_000, gt=0, allow_inf_nan=False)
    max_side_pixels: int = Field(_DEFAULTS.max_side, ge=1)
    max_aspect: int = Field(_DEFAULTS.max_aspect, ge=1)
    max_frames: int = Field(_DEFAULTS.max_frames, ge=1)
    max_scans: int = Field(_DEFAULTS.max_scans, ge=1)
    max_scan_samples: int = Field(_DEFAULTS.max_scan_samples, ge=1)
    max_decoder_bytes: int = Field(_DEFAULTS.max_decoder_bytes, ge=1)

    @property
    def limits(self) -> Limits:
        """The limits in the form that the engine takes."""
        return Limits(
            input_formats=self.input_formats,
            max_bytes=self.max_file_bytes,
            max_webp_bytes=self.max_webp_bytes,
            max_png_bytes=self.max_png_bytes,
            max_pixels=round(self.max_megapixels * 1_000_000),
            max_side=self.max_side_pixels,
            max_aspect=self.max_aspect,
            max_frames=self.max_frames,
            max_scans=self.max_scans,
            max_scan_samples=self.max_scan_samples,
            max_decoder_bytes=self.max_decoder_bytes,
        )


class AuthorizeRequestSettings(Settings):
    """What `authorize_request` needs."""

    tenants_table: str


class LoadSheddingSettings(LaneSettings, ConcurrencySettings):
    """What decides whether work is accepted."""

    token_buckets_table: str
    throughput_table: str


class SubmitImageSettings(LoadSheddingSettings, QueueSettings, InputSettings):
    """What `submit_image` needs."""

    images_table: str
    originals_bucket: str
    outputs_bucket: str


class BeginUploadSettings(LoadSheddingSettings):
    """What `begin_upload` needs; `max_file_bytes` is the largest file that may be announced."""

    images_table: str
    uploads_bucket: str
    outputs_bucket: str
    max_file_bytes: int = Field(_DEFAULTS.max_bytes, ge=1)


class AcceptUploadSettings(QueueSettings, InputSettings):
    """What `accept_upload` needs."""

    images_table: str
    uploads_bucket: str
    originals_bucket: str
    upload_queue_url: str


class TranscodeImageSettings(LaneSettings, ConcurrencySettings, LimitSettings):
    """What `transcode_image` needs; `visibility_seconds` is the lanes' visibility timeout."""

    images_table: str
    originals_bucket: str
    outputs_bucket: str
    idempotency_table: str
    throughput_table: str
    visibility_seconds: int = Field(ge=1)


class ReadImageSettings(Settings):
    """What `read_image` needs."""

    images_table: str
    outputs_bucket: str


def _named(value: Any) -> Any:
    """The pairs of a mapping in an environment variable, "fast=URL,slow=URL"."""
    return dict(pair.partition("=")[::2] for pair in _listed(value)) if isinstance(value, str) else value


class DeadLetterSettings(Settings):
    """The dead-letter queues, by the name of the lane or purpose of each."""

    dead_letter_queues: Annotated[dict[str, str], BeforeValidator(_named)] = Field(min_length=1)


class SweepDueImagesSettings(QueueSettings, ConcurrencySettings, DeadLetterSettings):
    """What `sweep_due_images` needs."""

    images_table: str
    reservations_table: str
    uploads_bucket: str
    originals_bucket: str
    outputs_bucket: str
    upload_queue_url: str


class ArchiveDeadLettersSettings(DeadLetterSettings):
    """What `archive_dead_letters` needs."""

    images_table: str
    archive_bucket: str


class DeleteImageSettings(Settings):
    """What `delete_image` needs."""

    images_table: str


class RescheduleImageSettings(LoadSheddingSettings, QueueSettings):
    """What `reschedule_image` needs."""

    images_table: str
    outputs_bucket: str


class HoldImagesSettings(LaneSettings):
    """What `hold_images` needs; `hold_state_machine` is the ARN of the machine that holds a batch."""

    holds_bucket: str
    hold_state_machine: str


class ReleaseImagesSettings(QueueSettings, ConcurrencySettings):
    """What `release_images` needs."""

    images_table: str
    reservations_table: str
    holds_bucket: str
