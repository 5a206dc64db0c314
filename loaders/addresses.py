"""Where a machine may be reached by others, and whether two processes are on the same one."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterable, Iterator
from ipaddress import IPv6Address, ip_address
from pathlib import Path

__all__ = ["ADDRESS", "announced", "machine", "to_try"]

# The environment variable with which rank 0 says itself where it is reached: addresses or names, by commas.
ADDRESS = "DATAFLOW_ADDRESS"

_LOOPBACKS = ("127.0.0.1", "::1")
# Kept free for documentation (RFC 5737, RFC 3849): the way there is the default route.
_ELSEWHERE = ("192.0.2.1", "2001:db8::1")
_DISCARD_PORT = 9


def announced(store_host: str | None) -> list[str]:
    """Addresses and names by which other machines may reach this one, the likeliest first.

    Those of the interfaces by which it goes out, towards the store and elsewhere: its own name alone is not enough,
    as Debian's /etc/hosts gives that 127.0.1.1. Last comes the name of the store, which each rank looks up itself.
    """
    chosen = [host.strip() for host in os.environ.get(ADDRESS, "").split(",")]
    if any(chosen):
        return [host for host in chosen if host]
    hosts = [store_host] if store_host else []
    found = [*_outgoing([*hosts, *_ELSEWHERE]), *_resolved(socket.gethostname())]
    return list(dict.fromkeys([*filter(_leads_here, found), *hosts]))


def to_try(hosts: Iterable[str], *, here: bool) -> list[str]:
    """The IP addresses of announced hosts, as this machine knows them; loopback ones only if they were announced here.

    Elsewhere a loopback address leads to another program.
    """
    found = [*_LOOPBACKS] if here else []
    for host in hosts:
        found.extend(_resolved(host))
    return [address for address in dict.fromkeys(found) if here or not ip_address(address).is_loopback]


def machine() -> str:
    """The same text for all processes that share this one's loopback addresses."""
    parts = [socket.gethostname()]
    # Only Linux has them: machines that bear one name, and containers on one machine, differ in them.
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(str(Path("/proc/self/ns/net").stat().st_ino))
    return " ".join(parts)


def _outgoing(targets: Iterable[str]) -> Iterator[str]:
    """The address from which this machine would send to each target; nothing is sent."""
    for target in targets:
        for address in _resolved(target):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((address, _DISCARD_PORT))
                yield str(probe.getsockname()[0])


def _resolved(host: str) -> list[str]:
    """The IP addresses of a host; none if it is unknown here."""
    with contextlib.suppress(OSError, UnicodeError):
        return [str(address[0]) for *_, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    return []


def _leads_here(text: str) -> bool:
    """Whether the address means this machine on any other: a link-local one of IPv6 needs the other's interface."""
    address = ip_address(text)
    if address.is_loopback or address.is_unspecified:
        return False
    return not (isinstance(address, IPv6Address) and address.is_link_local)
