"""Which addresses are public, beside IANA's registries and Python's own opinion."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.egress.addresses import is_public
from tests.unit.egress.refused import NOT_PUBLIC

RESERVED = [
    # https://www.iana.org/assignments/iana-ipv4-special-registry: every entry, and multicast
    "0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32", "192.0.0.170/32",
    "192.0.0.171/32", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.88.99.2/32",
    "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
    "255.255.255.255/32", "224.0.0.0/4",
    # https://www.iana.org/assignments/iana-ipv6-special-registry: every entry
    "::1/128", "::/128", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23",
    "2001::/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48",
    "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
    "5f00::/16", "fc00::/7", "fe80::/10",
    # and what is in no registry of special purposes, but no host's: IPv4-compatible, site-local, multicast, unassigned
    "::/96", "fec0::/10", "ff00::/8", "4000::/3", "6000::/3", "8000::/3", "a000::/3", "c000::/3", "e000::/4", "::/8",
]  # fmt: skip


PUBLIC = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "93.184.215.14", "100.63.255.255", "100.128.0.0", "126.255.1.1",
    "128.0.0.1", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.88.98.1",
    "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2000::1", "2001:200::1",
    "2001:4860:4860::8888", "2003::1", "2400:cb00::1", "2600:1f18::1", "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
    "2a05:d018::1", "2c0f::1", "3ffe::1",
]  # fmt: skip


@pytest.mark.guards("egress-global-unicast-ipv6", "egress-reserved-ipv4", "egress-reserved-ipv6")
@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_an_address_that_is_no_host_of_the_internet_is_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.guards("egress-no-address-zone")
def test_no_address_of_a_zone_is_public() -> None:
    assert is_public(ip_address("2600::1")) and not is_public(ip_address("2600::1%eth0"))


@pytest.mark.parametrize("text", PUBLIC)
def test_addresses_beside_the_reserved_blocks_are_public(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize("text", RESERVED)
def test_the_ends_of_every_reserved_block_are_not_public(text: str) -> None:
    network = ip_network(text)
    assert (
        not is_public(network[0]) and not is_public(network[-1]) and not is_public(network[network.num_addresses // 2])
    )


@given(st.data())
def test_nothing_in_a_reserved_block_is_public(data: st.DataObject) -> None:
    network = ip_network(data.draw(st.sampled_from(RESERVED)))
    offset = data.draw(st.integers(0, network.num_addresses - 1))
    assert not is_public(network[offset])


@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_is_public_exactly_if_no_registry_reserves_it(number: int) -> None:
    address = IPv4Address(number)
    reserved = any(address in ip_network(text) for text in RESERVED if ":" not in text)
    assert is_public(address) != reserved


@given(st.integers(0x2000 << 112, (0x4000 << 112) - 1) | st.integers(0, 2**128 - 1))
def test_an_ipv6_address_is_public_exactly_if_it_is_assigned_to_hosts_and_no_registry_reserves_it(number: int) -> None:
    address = IPv6Address(number)
    reserved = any(address in ip_network(text) for text in RESERVED if ":" in text)
    assert is_public(address) == (address in ip_network("2000::/3") and not reserved)


@given(st.ip_addresses())
def test_nothing_is_public_that_python_does_not_call_global(address: IPv4Address | IPv6Address) -> None:
    assert address.is_global or not is_public(address)
