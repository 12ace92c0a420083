"""API keys: their form, how a damaged one is detected, and what is stored of them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.domain.kernel.ids import ALPHABET
from darkroom.domain.tenants.api_keys import (
    KEY_ID_PATTERN,
    RANDOM_BYTES,
    ApiKey,
    bearer_token,
    digest_of,
    is_key_id,
    key_from_bits,
    key_id_of,
    matches_key,
)

KEY = key_from_bits(bytes(range(RANDOM_BYTES)))
STORED = ApiKey(key_id=key_id_of(KEY) or "", tenant_id="acme", digest=digest_of(KEY), created_at=1)


def test_a_key_is_its_id_and_its_secret() -> None:
    assert KEY == "dr_000g40r4_0m30e209185gr38e1w8124gk2gahc5rr2qq9bfy", "keys in clients' hands must not move"
    assert key_id_of(KEY) == "000g40r4"
    assert digest_of(KEY) == "492ac072dce00546fcddb908e9a04c7dcaf09acfe3168b14a1ccb5535bbb2a5f", (
        "digests in tables must not move"
    )


@given(st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES))
def test_every_25_bytes_make_a_key_with_an_id(bits: bytes) -> None:
    assert re.fullmatch(KEY_ID_PATTERN, key_id_of(key_from_bits(bits)) or "")


@given(*[st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES)] * 2)
def test_different_bytes_make_different_keys(first: bytes, other: bytes) -> None:
    assert (key_from_bits(first) == key_from_bits(other)) == (first == other)


@pytest.mark.parametrize("size", [0, RANDOM_BYTES - 1, RANDOM_BYTES + 1])
def test_a_key_of_any_other_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="25 bytes"):
        key_from_bits(bytes(size))


@pytest.mark.guards("key-typo-checksum")
@given(st.integers(3, len(KEY) - 1), st.sampled_from(ALPHABET))
def test_a_key_with_a_typo_has_no_id(place: int, digit: str) -> None:
    typed = KEY[:place] + digit + KEY[place + 1 :]
    assert typed == KEY or key_id_of(typed) is None


def test_a_part_of_a_key_and_what_is_more_or_other_than_a_key_have_no_id() -> None:
    parts = [KEY[:length] for length in (0, 3, 11, 12, len(KEY) - 1)]
    others = [KEY + "0", f" {KEY}", f"{KEY}\n", KEY.upper(), KEY.replace("_", "-"), "Bearer " + KEY]
    assert [text for text in [*parts, *others] if key_id_of(text) is not None] == []


@pytest.mark.parametrize(("text", "yes"), [("000g40r4", True), ("000g40r", False), ("000g40rl", False), (KEY, False)])
def test_an_id_is_eight_digits(text: str, yes: bool) -> None:
    assert is_key_id(text) is yes


def test_a_key_opens_what_was_stored_of_it_and_nothing_else() -> None:
    other = key_from_bits(bytes(RANDOM_BYTES))
    assert matches_key(KEY, STORED)
    assert not matches_key(other, STORED)
    assert not matches_key(KEY, replace(STORED, digest=digest_of(other)))
    assert not matches_key(KEY, None)
    assert KEY.rpartition("_")[2] not in repr(STORED), "nothing that is stored gives the secret away"


def test_a_bearer_header_carries_its_token_and_any_other_header_none() -> None:
    bearing = [f"Bearer {KEY}", f"bearer {KEY}", f"BEARER   {KEY}", f" Bearer {KEY} "]
    others = ["", "Bearer", "Bearer ", KEY, f"Basic {KEY}", f"Bearer {KEY} x", "Bearer é", f"Bearer\t{KEY}"]
    assert [bearer_token(header) for header in [*bearing, *others]] == [KEY] * len(bearing) + [None] * len(others)
