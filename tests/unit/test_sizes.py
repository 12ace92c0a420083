"""Numbers of bytes as people read them."""

from __future__ import annotations

import pytest

from darkroom.domain.kernel.sizes import excess_in_words, limit_in_words, size_in_words


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [
        *((0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1_500, "1.5 KB"), (999_999, "1 MB")),
        *((1_485_159, "1.5 MB"), (25_000_000, "25 MB"), (4_194_304, "4.2 MB"), (2e9, "2 GB"), (3e15, "3000 TB")),
    ],
)
def test_a_size_is_told_in_decimal_units(size_bytes: float, expected: str) -> None:
    assert size_in_words(size_bytes) == expected


@pytest.mark.parametrize(
    ("limit_bytes", "expected"),
    [
        *((500, "500 bytes"), (1_024, "1 KiB"), (4_096, "4 KiB"), (4_194_304, "4 MiB"), (26_214_400, "25 MiB")),
        *((25_000_000, "25 MB"), (1_024_000, "1 MB"), (200_000, "200 KB"), (2_500_000, "2.5 MB")),
    ],
)
def test_a_limit_is_told_in_the_units_in_which_it_is_a_whole_number(limit_bytes: int, expected: str) -> None:
    assert limit_in_words(limit_bytes) == expected


@pytest.mark.parametrize(
    ("size_bytes", "limit_bytes", "expected"),
    [
        (31_200_000, 25_000_000, "31.2 MB; at most 25 MB"),
        (5_242_880, 4_194_304, "5 MiB; at most 4 MiB"),
        (25_000_001, 25_000_000, "25,000,001 bytes; at most 25 MB"),
        (4_194_305, 4_194_304, "4,194,305 bytes; at most 4 MiB"),
    ],
)
def test_what_is_over_a_limit_is_told_in_its_units_and_never_reads_like_it(
    size_bytes: int, limit_bytes: int, expected: str
) -> None:
    assert excess_in_words(size_bytes, limit_bytes) == expected
