"""The key of the local stack's own commands, on a machine that is too busy to answer at once."""

from __future__ import annotations

import pytest

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.tenants import DEFAULT_TENANT
from darkroom.domain.tenants.api_keys import ApiKey, key_id_of
from darkroom_cli.local.first_key import first_key
from local_aws.failures import ApiSilent
from local_aws.processes import Interrupts
from tests.support.fakes.tenants import FakeTenants


class Patient(Interrupts):
    """Pauses that take no time."""

    def __init__(self) -> None:
        pass

    def pause(self, seconds: float) -> None:
        pass


class Busy(FakeTenants):
    """Tenants that answer with the third new key."""

    asked = 0
    silent = 2

    def add_key(self, key: ApiKey) -> ApiKey:
        self.asked += 1
        if self.asked <= self.silent:
            raise Retryable("adding to the tenants: ReadTimeoutError")
        return super().add_key(key)


def test_a_table_that_is_slow_to_answer_is_asked_again() -> None:
    tenants = Busy()
    key = first_key(tenants, Patient())
    assert tenants.keys[key_id_of(key) or ""].tenant_id == DEFAULT_TENANT
    assert list(tenants.tenants) == [DEFAULT_TENANT]


def test_one_that_never_answers_is_a_failure_that_says_what_is_wrong() -> None:
    tenants = Busy()
    tenants.silent = 1000
    with pytest.raises(ApiSilent, match="none could be made for this stack's own commands: adding to the tenants"):
        first_key(tenants, Patient())
