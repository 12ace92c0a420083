"""The edge that is told to forget, and the budget that pays for it, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from darkroom.domain.edge.forgetting import Bill, Payment


@dataclass
class FakeInvalidations:
    """The `Invalidations` port: what each month has used and skipped, and its last payment."""

    used: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    last: dict[str, Payment] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)

    def pay(self, bill: Bill, limit: int) -> Payment:
        last, used = self.last.get(bill.month), self.used.get(bill.month, 0)
        is_paid = last is not None and (bill.month in self.open or last.reference == bill.reference)
        if last is not None and is_paid and bill.image_ids and limit > 0:
            return last
        image_ids = bill.image_ids[: max(0, limit - used)]
        payment = Payment(month=bill.month, image_ids=image_ids, reference=bill.reference)
        if image_ids:
            self.used[bill.month] = used + len(image_ids)
            self.last[bill.month] = payment
            self.open.add(bill.month)
        return payment

    def settle(self, payment: Payment) -> None:
        last = self.last.get(payment.month)
        if last is not None and last.reference == payment.reference:
            self.open.discard(payment.month)

    def skip(self, bill: Bill, count: int) -> None:
        self.skipped[bill.month] = self.skipped.get(bill.month, 0) + count


@dataclass
class FakeDistribution:
    """The `Edge` port: the images of each invalidation, by its reference."""

    told: dict[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)

    def invalidate(self, payment: Payment) -> None:
        reference = payment.reference, len(payment.image_ids)
        assert self.told.setdefault(reference, payment.image_ids) == payment.image_ids
