"""What the edge's functions keep, in memory, with the semantics that the ports promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import RLock

from darkroom.domain.edge.forgetting import made_of
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.edge import MadeVariant


@dataclass
class FakeMadeVariants:
    """The `MadeVariants` port over a dictionary."""

    objects: dict[str, MadeVariant] = field(default_factory=dict)

    def get(self, key: str) -> MadeVariant | None:
        return self.objects.get(key)

    def put_if_absent(self, variant: MadeVariant) -> bool:
        return self.objects.setdefault(variant.key, variant) is variant

    def remove(self, key: str) -> None:
        self.objects.pop(key, None)

    def remove_all(self, image_id: str) -> None:
        for key in [key for key in self.objects if key.startswith(made_of(image_id))]:
            del self.objects[key]


@dataclass
class FakeVariantLeases:
    """The `VariantLeases` port over dictionaries; many threads may ask at once."""

    leases: dict[str, tuple[str, Milliseconds]] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)
    lock: RLock = field(default_factory=RLock)

    def take(self, key: str, owner: str, *, now: Milliseconds, until: Milliseconds) -> bool:
        with self.lock:
            holder, ends_at = self.leases.get(key, (owner, now))
            if holder != owner and ends_at > now:
                return False
            self.leases[key] = (owner, until)
            return True

    def release(self, key: str, owner: str) -> None:
        with self.lock:
            if self.leases.get(key, ("", 0))[0] == owner:
                del self.leases[key]

    def count(self, image_id: str, key: str, *, most: int, forget_at: Milliseconds) -> bool:
        names, name = self.names.setdefault(image_id, set()), key.rpartition("/")[2]
        if name not in names and len(names) >= most:
            return False
        names.add(name)
        return True
