"""Which addresses are public: those of the Internet's hosts, and of nothing nearer.

`ipaddress.is_global` does not decide this: it is true of multicast, of the NAT64 prefix, through which a packet can
reach any IPv4 address, of IPv4-compatible and site-local addresses, and of segment routing's. Here IPv4 is what no
registry reserves. IPv6 is the one block from which hosts get addresses, without what the registry takes out of it.
Addresses that the registries reserve for a service of the Internet itself count as reserved: nobody's web server has
one.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

type Address = IPv4Address | IPv6Address

# https://www.iana.org/assignments/iana-ipv4-special-registry, and
# https://www.iana.org/assignments/ipv4-address-space for multicast.
_RESERVED_IPV4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network (RFC 791)
            "10.0.0.0/8",  # private (RFC 1918)
            "100.64.0.0/10",  # shared by a provider's customers (RFC 6598)
            "127.0.0.0/8",  # loopback (RFC 1122); Lambda's runtime API is there
            "169.254.0.0/16",  # link-local (RFC 3927); EC2's metadata and ECS's credentials are there
            "172.16.0.0/12",  # private (RFC 1918)
            "192.0.0.0/24",  # protocol assignments (RFC 6890)
            "192.0.2.0/24",  # documentation (RFC 5737)
            "192.31.196.0/24",  # AS112 (RFC 7535)
            "192.52.193.0/24",  # AMT (RFC 7450)
            "192.88.99.0/24",  # 6to4 relays (RFC 7526)
            "192.168.0.0/16",  # private (RFC 1918)
            "192.175.48.0/24",  # AS112 (RFC 7534)
            "198.18.0.0/15",  # benchmarks (RFC 2544)
            "198.51.100.0/24",  # documentation (RFC 5737)
            "203.0.113.0/24",  # documentation (RFC 5737)
            "224.0.0.0/4",  # multicast (RFC 5771)
            "240.0.0.0/4",  # reserved (RFC 1112), and broadcast (RFC 919)
        ),
    )
)

# The only block from which hosts' addresses are assigned:
# https://www.iana.org/assignments/ipv6-unicast-address-assignments. Outside of it are loopback, IPv4-mapped and
# IPv4-compatible addresses, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48), discard-only (100::/64), segment routing
# (5f00::/16), unique local (fc00::/7, with fd00:ec2::254), link-local, site-local and multicast ones.
_GLOBAL_UNICAST_IPV6 = IPv6Network("2000::/3")

# https://www.iana.org/assignments/iana-ipv6-special-registry
_RESERVED_IPV6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments (RFC 2928): Teredo, benchmarks, AMT, AS112, ORCHID, drones
            "2001:db8::/32",  # documentation (RFC 3849)
            "2002::/16",  # 6to4 (RFC 3056): an IPv4 address is inside
            "2620:4f:8000::/48",  # AS112 (RFC 7534)
            "3fff::/20",  # documentation (RFC 9637)
        ),
    )
)


def is_public(address: Address) -> bool:
    """Whether a host of the Internet can have the address."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _RESERVED_IPV4)  # guard: egress-reserved-ipv4
    return (
        # guard: egress-no-address-zone
        address.scope_id is None  # a zone of this machine: fe80::1%eth0
        and address in _GLOBAL_UNICAST_IPV6  # guard: egress-global-unicast-ipv6
        and not any(address in network for network in _RESERVED_IPV6)  # guard: egress-reserved-ipv6
    )
