"""Image ids and Idempotency-Keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.domain.kernel.ids import (
    image_id_for_key,
    image_id_from_bits,
    is_idempotency_key,
    is_image_id,
)


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_different_bits_make_different_ids(first: bytes, other: bytes) -> None:
    assert (image_id_from_bits(first) == image_id_from_bits(other)) == (first == other)


def test_ids_are_crockford_base32_of_128_bits() -> None:
    assert image_id_from_bits(b"\0" * 16) == "0" * 26
    assert image_id_from_bits(b"\xff" * 16) == "7" + "z" * 25
    assert image_id_from_bits((32 + 10).to_bytes(16)) == "0" * 24 + "1a"


@pytest.mark.parametrize("size", [0, 15, 17])
def test_an_id_of_any_other_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        image_id_from_bits(b"\0" * size)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0" * 25,
        "0" * 27,
        "8" + "0" * 25,
        "0" * 25 + "i",
        "0" * 25 + "U",
        "../" + "0" * 23,
        "0" * 26 + "\n",
        "\uff10" * 26,
    ],
)
def test_what_is_no_id_is_refused(text: str) -> None:
    assert not is_image_id(text)


def test_one_key_of_one_tenant_is_one_id_and_no_other_keys_or_tenants() -> None:
    assert image_id_for_key("default", "order-17") == "6sb82b6wtcpq84n8sbqynwa0kh", (
        "ids in clients' hands must not move"
    )
    ids = {image_id_for_key(tenant, key) for tenant in ("a", "ab", "b") for key in ("b", "bb", "")}
    assert len(ids) == 9


def test_printable_ascii_is_a_key_and_nothing_else() -> None:
    keys, others = ["a", " ", "~" * 255, 'a"b\\c'], ["", "a" * 256, "a\n", "é", "\x7f", "\x00"]
    assert [key for key in [*keys, *others] if is_idempotency_key(key)] == keys
