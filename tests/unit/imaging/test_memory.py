"""The process's memory: a decoder's share is limited, and only while it runs."""

import platform
import resource

import pytest

from darkroom.imaging.memory import at_most, keep_memory


def test_whoever_asks_for_more_is_told_that_there_is_none() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with at_most(8_000_000), pytest.raises(MemoryError):
        bytearray(200_000_000)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert len(bytearray(200_000_000)) == 200_000_000


def test_the_limit_goes_with_what_failed_under_it() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(ValueError, match="broken"), at_most(8_000_000):
        raise ValueError("broken")
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has no mallopt")
def test_glibc_takes_every_setting() -> None:
    assert keep_memory()
