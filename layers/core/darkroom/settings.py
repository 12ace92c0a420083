"""The settings of the core's functions, and what those of parts have in common (`wiring/<part>/settings.py`); the only
reader of the environment.

Not with pydantic: importing it and making the models takes a quarter of the authorizer's cold start. Nor as
dataclasses, which compile code for each class: a function needs one of these, and imports all of them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, dataclass_transform, get_args

from darkroom.domain.images.limits import STANDARD_INPUT_FORMATS, InputFormat, Limits
from darkroom.domain.kernel.lanes import LANES, Lane, lanes_with
from darkroom.parts import PARTS


class MissingSettings(RuntimeError):
    """The function was deployed without a required setting, or with an invalid one."""


type Parse = Callable[[str], Any]
"""Makes a value of a variable's text; raises ValueError with what is wrong."""


@dataclass(frozen=True, kw_only=True)
class _Setting:
    """How the value of a field is read; the default is `_REQUIRED` if there is none."""

    parse: Parse
    default: Any
    of_each_lane: str | None


_REQUIRED = object()


def setting(parse: Parse = str, *, default: Any = _REQUIRED, of_each_lane: str | None = None) -> Any:
    """A field whose variable is parsed by `parse`. With `of_each_lane` its value is a mapping, from one variable for
    each lane: the lane's name with that ending, as `FAST_QUEUE_URL`."""
    return _Setting(parse=parse, default=default, of_each_lane=of_each_lane)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(setting,))
class Settings:
    """Settings named like the environment variables, in lower case, except those of each lane."""

    def __init__(self, **values: Any) -> None:
        defaults = {name: field.default for name, field in self._fields() if field.default is not _REQUIRED}
        vars(self).update(defaults | values)

    @classmethod
    def _fields(cls) -> Iterator[tuple[str, _Setting]]:
        names = dict.fromkeys(name for kind in reversed(cls.__mro__) for name in vars(kind).get("__annotations__", {}))
        for name in names:
            stated = getattr(cls, name, _REQUIRED)
            yield name, stated if isinstance(stated, _Setting) else setting(default=stated)

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Reads the settings from `environment`. Raises MissingSettings, naming every missing or invalid variable."""
        values: dict[str, Any] = {}
        problems: list[str] = []

        def parsed(variable: str, parse: Parse) -> Any:
            if variable not in environment:
                problems.append(f"{variable}: it is missing")
                return None
            try:
                return parse(environment[variable])
            except ValueError as error:
                problems.append(f"{variable}: {error}")
                return None

        for name, field in cls._fields():
            variable, ending = name.upper(), field.of_each_lane
            if ending is not None:
                values[name] = {lane: parsed(f"{lane}_{ending}".upper(), field.parse) for lane in LANES}
            elif variable in environment or field.default is _REQUIRED:
                values[name] = parsed(variable, field.parse)
        if problems:
            raise MissingSettings(f"{cls.__name__}: {'; '.join(problems)}. Set them in template.yaml.")
        return cls(**values)


def whole_number(least: int, most: int | None = None) -> Parse:
    """Parses a whole number in these limits, both included."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            limits = f"{least} or more" if most is None else f"{least} to {most}"
            raise ValueError(f"it is {text!r}, not a whole number, {limits}")
        return int(text)

    return parse


def positive(text: str) -> float:
    """Parses a number above zero."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ValueError(f"it is {text!r}, not a number above zero")
    return number


def share(text: str) -> float:
    """Parses a number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise ValueError(f"it is {text!r}, not a number from 0 to 1")
    return number


def one_of(*choices: str) -> Parse:
    """Parses one of these words."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"it is {text!r}, not one of {', '.join(choices)}")
        return text

    return parse


def some_of(*choices: str) -> Parse:
    """Parses a list of these words: "avif, heic"; none if it is empty."""
    return lambda text: frozenset(map(one_of(*choices), _listed(text)))


def some_words(text: str) -> frozenset[str]:
    """Parses a list of words: "K1,K2"."""
    return frozenset(_listed(text))


def ports(text: str) -> frozenset[int]:
    """Parses a list of ports: "443,8443"."""
    return frozenset(whole_number(1, 65_535)(port) for port in _listed(text))


def pairs(text: str) -> Mapping[str, str]:
    """Parses a mapping, "fast=URL,slow=URL", of at least one pair."""
    value_by_name = dict(pair.partition("=")[::2] for pair in _listed(text))
    if not value_by_name:
        raise ValueError("it names nothing")
    return value_by_name


def deployed(text: str) -> frozenset[str]:
    """Parses which parts are deployed: "webhooks=true,page=false"."""
    return frozenset(name for name, is_deployed in pairs(text).items() if is_deployed == "true")


def _listed(text: str) -> Iterator[str]:
    return filter(None, map(str.strip, text.split(",")))


class InitialisationSettings(Settings):
    """How Lambda initialises this process: for one execution environment, or for a snapshot that many start from."""

    aws_lambda_initialization_type: str = "on-demand"

    @property
    def is_for_a_snapshot(self) -> bool:
        """Whether what is in memory after the initialisation will be in many environments, and may be weeks old."""
        return self.aws_lambda_initialization_type == "snap-start"


class TelemetrySettings(Settings):
    """The share of invocations whose last log line says what took their time."""

    timing_share: float = setting(share, default=1.0)


type Access = Literal["anonymous", "iam", "keys", "jwt"]
"""Which credential callers use: the template's parameter of that name."""


class AccessSettings(Settings):
    """Whose requests the API answers: `access` is the credential that the gateway has checked, and the claims of a
    token name its tenant and tier."""

    access: Access = setting(one_of(*get_args(Access.__value__)))
    jwt_tenant_claim: str = "sub"
    jwt_tier_claim: str = "tier"


class LaneSettings(Settings):
    """The lanes' queues."""

    queue_urls: Mapping[str, str] = setting(of_each_lane="QUEUE_URL")


class ConcurrencySettings(Settings):
    """The most workers of each lane: `MaximumConcurrency` of its event source."""

    concurrency: Mapping[str, int] = setting(whole_number(2, 1000), of_each_lane="CONCURRENCY")

    @property
    def service(self) -> Mapping[str, Lane]:
        """Each lane's deployed configuration."""
        return lanes_with(self.concurrency)


class PauseSettings(Settings):
    """The table of what is paused; a stack without bulk has none."""

    pauses_table: str = ""


class MessageKeySettings(Settings):
    """The secret with the key that messages are signed with, by its ARN."""

    message_key: str


class SendingSettings(LaneSettings, MessageKeySettings):
    """The lanes' queues, for those who send to them."""


class QueueSettings(SendingSettings):
    """The lanes' queues, and the queue of messages to be held."""

    hold_queue_url: str


class DeadLetterSettings(Settings):
    """The dead-letter queues, by the name of the lane or purpose of each."""

    dead_letter_queues: Mapping[str, str] = setting(pairs)


class InputSettings(Settings):
    """Which formats are accepted: `extra_input_formats` in addition to the standard ones."""

    extra_input_formats: frozenset[InputFormat] = setting(some_of("avif", "heic"), default=frozenset())

    @property
    def input_formats(self) -> frozenset[InputFormat]:
        """All formats that are accepted."""
        return STANDARD_INPUT_FORMATS | self.extra_input_formats


_DEFAULTS = Limits()


class FileSettings(Settings):
    """The largest file that is taken."""

    max_file_bytes: int = setting(whole_number(1), default=_DEFAULTS.max_bytes)


class LimitSettings(InputSettings, FileSettings):
    """The limits of an original, each of which the environment may change."""

    max_webp_bytes: int = setting(whole_number(1), default=_DEFAULTS.max_webp_bytes)
    max_png_bytes: int = setting(whole_number(1), default=_DEFAULTS.max_png_bytes)
    max_megapixels: float = setting(positive, default=_DEFAULTS.max_pixels / 1_000_000)
    max_side_pixels: int = setting(whole_number(1), default=_DEFAULTS.max_side)
    max_aspect: int = setting(whole_number(1), default=_DEFAULTS.max_aspect)
    max_frames: int = setting(whole_number(1), default=_DEFAULTS.max_frames)
    max_scans: int = setting(whole_number(1), default=_DEFAULTS.max_scans)
    max_scan_samples: int = setting(whole_number(1), default=_DEFAULTS.max_scan_samples)
    max_decoder_bytes: int = setting(whole_number(1), default=_DEFAULTS.max_decoder_bytes)

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


class AuthorizeRequestSettings(MessageKeySettings):
    """What `authorize_request` needs; upload tokens are signed with the key of messages."""

    tenants_table: str


class LoadSheddingSettings(LaneSettings, ConcurrencySettings, PauseSettings):
    """What decides whether work is accepted."""

    token_buckets_table: str
    throughput_table: str


class QuotaSettings(LoadSheddingSettings):
    """What decides whether a new image is accepted; quotas are kept only where there is a `usage_table`."""

    usage_table: str = ""


class ReachSettings(Settings):
    """Where webhooks may be delivered, and images fetched from: these ports of public hosts, and with `loopback` this
    machine, too."""

    webhook_ports: frozenset[int] = setting(ports)
    webhook_hosts: str = setting(one_of("public", "loopback"))


class EdgeSettings(Settings):
    """Where the edge serves variants, without a slash at its end; empty in a stack without one, whose images are all
    private."""

    edge_url: str = ""


class EdgeQueueSettings(Settings):
    """The queue of images that the edge must forget; empty in a stack without one."""

    edge_queue_url: str = ""


class EditsQueueSettings(Settings):
    """The FIFO queue of edits; empty in a stack whose edits use the lanes."""

    edits_queue_url: str = ""


class SubmitImageSettings(
    QuotaSettings,
    QueueSettings,
    InputSettings,
    FileSettings,
    ReachSettings,
    EdgeSettings,
    EditsQueueSettings,
):
    """What `submit_image` needs. A stack without imports has no `fetch_queue_url`, one without webhooks no
    `endpoints_table`, and one without bulk no `batches_table`."""

    fetch_queue_url: str = ""
    images_table: str
    endpoints_table: str = ""
    batches_table: str = ""
    originals_bucket: str
    outputs_bucket: str


class BeginUploadSettings(QuotaSettings, FileSettings, MessageKeySettings, EdgeSettings):
    """What `begin_upload` needs. A stack without webhooks has no `endpoints_table`, and one without bulk no
    `batches_table`."""

    images_table: str
    endpoints_table: str = ""
    batches_table: str = ""
    uploads_bucket: str
    upload_queue_url: str
    outputs_bucket: str


class AcceptUploadSettings(QueueSettings, InputSettings, DeadLetterSettings):
    """What `accept_upload` needs."""

    images_table: str
    uploads_bucket: str
    originals_bucket: str
    upload_queue_url: str


class TranscodeImageSettings(
    LaneSettings,
    MessageKeySettings,
    ConcurrencySettings,
    PauseSettings,
    LimitSettings,
    DeadLetterSettings,
    EdgeQueueSettings,
    EditsQueueSettings,
):
    """What `transcode_image` needs; `visibility_seconds` is the lanes' visibility timeout."""

    images_table: str
    originals_bucket: str
    outputs_bucket: str
    idempotency_table: str
    throughput_table: str
    visibility_seconds: int = setting(whole_number(1))


class ReadImageSettings(LaneSettings, ConcurrencySettings, PauseSettings, EdgeSettings):
    """What `read_image` needs. A stack without usage has no `usage_table`; `parts` are those that openapi.json
    describes. `edge_signer` is the function that signs URLs of the edge, by its ARN."""

    images_table: str
    edge_signer: str = ""
    usage_table: str = ""
    parts: frozenset[str] = setting(deployed, default=frozenset(PARTS))
    outputs_bucket: str
    throughput_table: str
    token_buckets_table: str


class SweepDueImagesSettings(QueueSettings, ConcurrencySettings, PauseSettings, DeadLetterSettings, EdgeQueueSettings):
    """What `sweep_due_images` needs; of a deleted image it blanks what lies in `deliveries_table`. A stack without bulk
    has no `batches_table`."""

    images_table: str
    batches_table: str = ""
    throughput_table: str
    deliveries_table: str
    idempotency_table: str
    reservations_table: str
    uploads_bucket: str
    originals_bucket: str
    outputs_bucket: str
    upload_queue_url: str
    fetch_queue_url: str
    imports: Literal["true", "false"] = setting(one_of("true", "false"), default="true")


class ArchiveDeadLettersSettings(DeadLetterSettings):
    """What `archive_dead_letters` needs."""

    images_table: str
    archive_bucket: str


class ConsumerSettings(MessageKeySettings, DeadLetterSettings):
    """What every consumer of events needs."""


def seconds_or_none(text: str) -> int | None:
    """Parses a number of seconds, None if it is empty."""
    return whole_number(1)(text) if text else None


class DeleteImageSettings(Settings):
    """What `delete_image` needs; `edge_seconds` is how long the edge keeps what it is not told to forget."""

    images_table: str
    edge_seconds: int | None = setting(seconds_or_none, default=None)
    token_buckets_table: str


class RescheduleImageSettings(LoadSheddingSettings, QueueSettings, EdgeSettings):
    """What `reschedule_image` needs."""

    images_table: str
    outputs_bucket: str


class HoldImagesSettings(SendingSettings, DeadLetterSettings):
    """What `hold_images` needs; `hold_state_machine` is the ARN of the machine that holds a batch."""

    holds_bucket: str
    hold_state_machine: str


class ReleaseImagesSettings(QueueSettings, ConcurrencySettings):
    """What `release_images` needs."""

    images_table: str
    reservations_table: str
    holds_bucket: str
