"""Removes the objects of many deleted images at once, and what is remembered of the work on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from darkroom.domain.kernel.visibility import to_remove
from darkroom.domain.sweeping.due import Remove
from darkroom.ports.images import IdempotencyRecords, Originals, Outputs, StaleEdge
from darkroom.ports.kernel import AtOnce
from darkroom.ports.uploads import Uploads


@dataclass(frozen=True, kw_only=True)
class RemovalPorts:
    """What removing objects needs; an operation that removes them adds its own ports. A stack without an edge has no
    `stale_edge`."""

    uploads: Uploads
    originals: Originals
    outputs: Outputs
    memory: IdempotencyRecords
    at_once: AtOnce
    stale_edge: StaleEdge | None = None


def remove_leftovers(
    ports: RemovalPorts, removals: Mapping[str, Remove], each: Callable[[Callable[[str], None], Sequence[str]], None]
) -> Mapping[str, Exception]:
    """Removes what there is of each image; returns, by image id, why something may still be there.

    `each` calls a function with every id it is given, several at a time: only what a row does not name is listed, for
    each image by itself. Everything else is one call for all images.
    """
    failures: dict[str, Exception] = {}
    owners: dict[str, str] = {}
    versions: list[tuple[str, str]] = []

    def name(image_id: str) -> None:
        named, folders = removals[image_id].leftovers, to_remove(removals[image_id].image.visibilities)
        with _noted(failures, image_id):
            keys = ports.outputs.keys_of(image_id, folders) if named is None else named.keys
            owners.update(dict.fromkeys(keys, image_id))
        with _noted(failures, image_id):
            version_ids = ports.originals.versions_of(image_id) if named is None else named.version_ids
            versions.extend((image_id, version_id) for version_id in version_ids)

    each(name, list(removals))

    def forget() -> Mapping[str, Exception]:
        # guard: erasure-sweeper-forgets-work
        ports.memory.forget([key for duty in removals.values() for key in duty.memories])
        return {}

    variants, *others = ports.at_once(
        [
            # guard: sweeper-outputs-removed
            partial(_safely, partial(ports.outputs.remove, list(owners)), list(owners)),
            # guard: sweeper-original-removed
            partial(_safely, partial(ports.originals.remove, versions), [image_id for image_id, _ in versions]),
            # guard: upload-removed-with-tombstone
            partial(_safely, partial(ports.uploads.remove, list(removals)), list(removals)),
            partial(_safely, forget, [image_id for image_id, duty in removals.items() if duty.memories]),
        ]
    )
    failures |= {owners[key]: failure for key, failure in variants.items()}
    for of_images in others:
        failures |= of_images
    return {**failures, **_forget_at_the_edge(ports, removals, failures)}


def _forget_at_the_edge(
    ports: RemovalPorts, removals: Mapping[str, Remove], failures: Mapping[str, Exception]
) -> Mapping[str, Exception]:
    """Has the edge forget what it was shown of images whose objects are gone; returns, by image id, why it may not
    have been asked to."""
    stale_edge = ports.stale_edge
    owners = {
        image_id: duty.image.tenant_id
        for image_id, duty in removals.items()
        # What is still there would be fetched again.
        # guard: edge-forgets-what-is-gone
        if duty.image.is_deleted and duty.image.visibilities and image_id not in failures
    }
    if stale_edge is None or not owners:
        return {}

    def forget() -> Mapping[str, Exception]:
        stale_edge.forget(owners)  # guard: edge-told-of-removal
        return {}

    return _safely(forget, list(owners))


@contextmanager
def _noted(failures: dict[str, Exception], image_id: str) -> Iterator[None]:
    """A failure in this block is this image's, and keeps nothing else of it from being removed."""
    try:
        yield
    except Exception as error:
        failures[image_id] = error


def _safely(remove: Callable[[], Mapping[str, Exception]], what: Sequence[str]) -> Mapping[str, Exception]:
    """What a store could not remove; all of it, if the store fails as a whole, which keeps no other from removing."""
    try:
        return remove()
    except Exception as error:
        return dict.fromkeys(what, error)  # guard: removal-store-isolated
