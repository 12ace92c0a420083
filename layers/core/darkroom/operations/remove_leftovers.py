"""Removes the objects of many deleted images at once, and what is remembered of the work on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from darkroom.domain.due import Remove
from darkroom.domain.image import Leftovers
from darkroom.ports import Memory, Originals, Outputs, Uploads


@dataclass(frozen=True, kw_only=True)
class RemovalPorts:
    """What removing objects needs; an operation that removes them adds its own ports."""

    uploads: Uploads
    originals: Originals
    outputs: Outputs
    memory: Memory


def remove_leftovers(
    ports: RemovalPorts, removals: Mapping[str, Remove], each: Callable[[Callable[[str], None], Sequence[str]], None]
) -> Mapping[str, Exception]:
    """Removes what there is of each image; returns, by image id, why something may still be there.

    `each` calls a function with every id it is given, several at a time: only what a row does not name is listed, for
    each image by itself. Everything else is one call for all images.
    """
    failures: dict[str, Exception] = {}
    named: dict[str, Leftovers] = {}

    def name(image_id: str) -> None:
        try:
            named[image_id] = removals[image_id].leftovers or _listed(ports, image_id)
        except Exception as error:
            failures[image_id] = error

    each(name, list(removals))
    owners = {key: image_id for image_id, leftovers in named.items() for key in leftovers.keys}
    versions = [(image_id, version) for image_id, leftovers in named.items() for version in leftovers.version_ids]
    for key, failure in ports.outputs.remove(list(owners)).items():
        failures[owners[key]] = failure
    failures |= ports.originals.remove(versions)
    failures |= ports.uploads.remove(list(named))
    memories = {image_id: removals[image_id].memories for image_id in named}
    try:
        ports.memory.forget([key for keys in memories.values() for key in keys])
    except Exception as error:
        failures |= {image_id: error for image_id, keys in memories.items() if keys}
    return failures


def _listed(ports: RemovalPorts, image_id: str) -> Leftovers:
    return Leftovers(
        version_ids=tuple(ports.originals.versions_of(image_id)), keys=tuple(ports.outputs.keys_of(image_id))
    )
