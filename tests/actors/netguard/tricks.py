"""Addresses and tricks that would lead a run where it may not go: each is refused under a policy that allows the whole internet.

A row is its name, the host that is asked for, and what the resolver answers if it is asked about that host.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Trick(NamedTuple):
    """One row."""

    name: str
    host: str
    answer: tuple[str, ...] = ()


LIBERAL: Final = ("public", "*.example", "0.0.0.0/0", "::/0", "2000::/3")

_ADDRESSES: Final = {
    "loopback": "127.0.0.1",
    "another loopback": "127.1.2.3",
    "last loopback": "127.255.255.254",
    "unspecified, which is this machine": "0.0.0.0",
    "this network": "0.1.2.3",
    "private 10": "10.0.0.1",
    "private 172.16": "172.16.0.1",
    "private 172.31": "172.31.255.254",
    "private 192.168": "192.168.1.1",
    "link-local": "169.254.1.1",
    "cloud metadata": "169.254.169.254",
    "container credentials": "169.254.170.2",
    "carrier-grade NAT": "100.64.0.1",
    "last of carrier-grade NAT": "100.127.255.254",
    "metadata inside carrier-grade NAT": "100.100.100.200",
    "metadata inside protocol assignments": "192.0.0.192",
    "platform services on a public address": "168.63.129.16",
    "multicast, all hosts": "224.0.0.1",
    "multicast, service discovery": "239.255.255.250",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "benchmarking": "198.18.0.1",
    "last of benchmarking": "198.19.255.254",
    "documentation 1": "192.0.2.1",
    "documentation 2": "198.51.100.1",
    "documentation 3": "203.0.113.1",
    "6to4 relay": "192.88.99.1",
    "dummy": "192.0.0.8",
    "NAT64 discovery": "192.0.0.170",
    "AS112": "192.175.48.1",
    "AS112 by delegation": "192.31.196.1",
    "multicast relay": "192.52.193.1",
}

_SPELLINGS: Final = {
    "decimal": "2130706433",
    "hexadecimal": "0x7f000001",
    "hexadecimal in capitals": "0X7F000001",
    "octal, one number": "017700000001",
    "octal, dotted": "0177.0.0.1",
    "octal, padded": "0000177.0.0.1",
    "hexadecimal, dotted": "0x7f.0x0.0x0.0x1",
    "two parts": "127.1",
    "three parts": "127.0.1",
    "two parts, mixed": "0x7f.1",
    "zero": "0",
    "metadata in decimal": "2852039166",
    "metadata in octal": "0251.0376.0251.0376",
    "metadata in hexadecimal": "0xa9fea9fe",
}

_SIX: Final = {
    "IPv6 loopback": "::1",
    "IPv6 loopback in full": "0:0:0:0:0:0:0:1",
    "IPv6 loopback in brackets": "[::1]",
    "IPv6 unspecified": "::",
    "mapped loopback": "::ffff:127.0.0.1",
    "mapped loopback in hexadecimal": "::ffff:7f00:1",
    "mapped unspecified": "::ffff:0.0.0.0",
    "mapped metadata": "::ffff:a9fe:a9fe",
    "mapped private": "::ffff:10.0.0.1",
    "compatible loopback": "::127.0.0.1",
    "compatible metadata": "::169.254.169.254",
    "compatible public": "::8.8.8.8",
    "translated loopback": "::ffff:0:127.0.0.1",
    "NAT64 of loopback": "64:ff9b::7f00:1",
    "NAT64 of metadata": "64:ff9b::a9fe:a9fe",
    "NAT64 of private": "64:ff9b::10.0.0.1",
    "local NAT64 of metadata": "64:ff9b:1::a9fe:a9fe",
    "local NAT64 of public": "64:ff9b:1::8.8.8.8",
    "6to4 of loopback": "2002:7f00:1::",
    "6to4 of metadata": "2002:a9fe:a9fe::1",
    "6to4 of public": "2002:808:808::1",
    "Teredo client on loopback": "2001:0:808:808::80ff:fffe",
    "Teredo server on private": "2001:0:a00:1::f7f7:f7f7",
    "ISATAP of loopback": "2606:4700::5efe:7f00:1",
    "ISATAP of metadata": "2606:4700::200:5efe:a9fe:a9fe",
    "unique local": "fd00::1",
    "metadata over IPv6": "fd00:ec2::254",
    "IPv6 link-local": "fe80::1",
    "link-local with a zone": "fe80::1%1",
    "loopback with a zone": "::1%lo",
    "site-local": "fec0::1",
    "IPv6 multicast, link": "ff02::1",
    "IPv6 multicast, global": "ff0e::1",
    "IPv6 documentation": "2001:db8::1",
    "IPv6 documentation, newer": "3fff::1",
    "discard-only": "100::1",
    "dummy prefix": "100:0:0:1::1",
    "segment routing": "5f00::1",
    "ORCHID": "2001:20::1",
    "IPv6 benchmarking": "2001:2::1",
    "IPv6 AS112": "2620:4f:8000::1",
    "unassigned": "4000::1",
    "unassigned, low": "1::1",
}

_NAMES: Final = (
    Trick("localhost", "localhost", ("127.0.0.1",)),
    Trick("localhost in capitals with a dot", "LOCALHOST.", ("127.0.0.1",)),
    Trick("a name for loopback", "me.example", ("127.0.0.1",)),
    Trick("a name that spells loopback", "127.0.0.1.nip.example", ("127.0.0.1",)),
    Trick("a name for another loopback", "two.example", ("127.0.0.2",)),
    Trick("a name for metadata", "meta.example", ("169.254.169.254",)),
    Trick("a name for IPv6 loopback", "six.example", ("::1",)),
    Trick("a name for mapped loopback", "mapped.example", ("::ffff:127.0.0.1",)),
    Trick("a name for NAT64 of loopback", "nat.example", ("64:ff9b::7f00:1",)),
    Trick("a name for unspecified", "zero.example", ("0.0.0.0",)),
    Trick("a name with a bad address first", "mixed.example", ("127.0.0.1", "192.0.2.77")),
    Trick("a name for a zone", "zone.example", ("fe80::1%lo",)),
    Trick("a name for no address", "junk.example", ("127.0.0.1 ",)),
)

_JUNK: Final = {
    "nothing": "",
    "a space": " ",
    "a space behind": "127.0.0.1 ",
    "a line break behind": "127.0.0.1\n",
    "a header smuggled in": "127.0.0.1\r\nX: y",
    "a zero byte": "127.0.0.1\0.example",
    "a user": "public.example@127.0.0.1",
    "a path behind": "127.0.0.1/",
    "a fragment behind": "127.0.0.1#.example",
    "a query behind": "127.0.0.1?.example",
    "a backslash": "127.0.0.1\\.example",
    "full-width digits": "\uff11\uff12\uff17.0.0.1",
    "circled digits": "\u2460\u2461\u2466.0.0.1",
    "ideographic full stops": "127\u30020\u30020\u30021",
    "five parts": "1.2.3.4.5",
    "a part too large": "256.1.1.1",
    "a number too large": "99999999999",
    "a dot behind an address": "127.0.0.1.",
    "a dot behind hexadecimal": "0x7f000001.",
    "an open bracket": "[::1",
    "brackets round IPv4": "[127.0.0.1]",
    "brackets round a name": "[me.example]",
    "an empty label": "me..example",
    "a label that begins with a hyphen": "-me.example",
    "a name too long": ".".join(["a" * 60] * 5),
    "a unix socket": "unix:/run/docker.sock",
}

TRICKS: Final = (
    *(Trick(name, host) for table in (_ADDRESSES, _SPELLINGS, _SIX, _JUNK) for name, host in table.items()),
    *_NAMES,
)
