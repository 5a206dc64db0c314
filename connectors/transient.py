"""`transient_cause`: whether a store that failed may do better when it is asked again."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["ShortRead", "transient_cause"]


class ShortRead(ConnectionError):
    """A store gave fewer bytes than were asked for and are there."""


_TRANSIENT: Final = (ConnectionError, TimeoutError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
_TRANSIENT_ERRNOS: Final = frozenset(
    getattr(errno, name)
    for name in (
        *("EAGAIN", "EINTR", "EIO", "EREMOTEIO", "ENOBUFS", "ENOTCONN"),
        *("ENETDOWN", "ENETRESET", "ENETUNREACH", "EHOSTDOWN", "EHOSTUNREACH"),
    )
    if hasattr(errno, name)  # not every system has all of them
)
_PERMANENT: Final = (
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
# Too slow, too early, too many requests, and all faults of a server but "not implemented" and "version not supported".
_TRANSIENT_STATUSES: Final = frozenset((408, 425, 429, *range(500, 600))) - {501, 505}
# By the package that a class is from: importing it to look would cost whoever does not use it. A class that is derived
# from one of these counts too.
_TRANSIENT_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "asyncio": frozenset(("IncompleteReadError",)),
    "aiohttp": frozenset(("ClientConnectionError", "ClientPayloadError", "PayloadEncodingError")),
    "azure": frozenset(("IncompleteReadError", "ServiceRequestError", "ServiceResponseError")),
    "botocore": frozenset(("ConnectionError", "HTTPClientError", "IncompleteReadError")),
    "ftplib": frozenset(("error_temp",)),
    "gcsfs": frozenset(("ChecksumError",)),
    "google": frozenset(("TransportError",)),
    "http": frozenset(("IncompleteRead",)),
    "httpx": frozenset(("TransportError",)),
    "requests": frozenset(("ChunkedEncodingError", "ConnectionError", "Timeout")),
    "urllib3": frozenset(("IncompleteRead", "ProtocolError", "TimeoutError")),
}


def transient_cause(error: BaseException) -> BaseException | None:
    """What of an error says that asking again may help: that a connection broke, something took too long, or the
    server was overloaded. None where asking again would not help, or nothing is known of the error.

    The innermost cause that tells decides, since fsspec's filesystems wrap what their libraries raise: the one for
    HTTP raises FileNotFoundError from whatever went wrong.
    """
    for link in reversed([*_causes(error)]):
        verdict = _verdict(link)
        if verdict is not None:
            return link if verdict else None
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__


def _verdict(error: BaseException) -> bool | None:
    """What one exception tells by itself; None for nothing."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return False
    if _has_transient_name(type(error)):
        return True
    status = _http_status(error)
    # A bad request may be anything, with S3 also one that took too long: what is raised from it tells.
    if status not in (None, 400):
        return status in _TRANSIENT_STATUSES
    if isinstance(error, socket.gaierror):
        return error.errno != socket.EAI_NONAME
    if isinstance(error, _PERMANENT):
        return False
    if isinstance(error, _TRANSIENT) or (isinstance(error, OSError) and error.errno in _TRANSIENT_ERRNOS):
        return True
    return None


def _has_transient_name(kind: type[BaseException]) -> bool:
    return any(
        base.__name__ in _TRANSIENT_NAMES.get(base.__module__.partition(".")[0], ()) for base in kind.__mro__
    )


def _http_status(error: BaseException) -> int | None:
    """The status from 400 on that an exception has, in one of the places where the libraries of stores put it."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore
        found = [response.get("ResponseMetadata", {}).get("HTTPStatusCode")]
    else:
        found = [getattr(error, name, None) for name in ("status", "status_code", "code")]
        found.append(getattr(response, "status_code", None))
    for value in found:
        if isinstance(value, int | str) and str(value).isdigit() and 400 <= int(value) < 600:
            return int(value)
    return None
