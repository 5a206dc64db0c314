from __future__ import annotations

import asyncio
import errno
import ftplib
import http.client
import socket
import ssl
import urllib.error
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest
from fsspec.exceptions import FSTimeoutError

from connectors.transient import ShortRead, transient_cause


def of(package: str, name: str, *bases: type[BaseException], **attributes: Any) -> BaseException:
    """An exception as a library that is not installed raises it."""
    kind = type(name, bases or (Exception,), {"__module__": f"{package}.exceptions"})
    error: BaseException = kind("it failed")
    for attribute, value in attributes.items():
        setattr(error, attribute, value)
    return error


def because(error: BaseException, *causes: BaseException) -> BaseException:
    """An error, and what it was raised from, outermost first."""
    link = error
    for cause in causes:
        link.__cause__ = cause
        link = cause
    return error


def boto(status: int) -> BaseException:
    return of(
        "botocore", "ClientError", response={"ResponseMetadata": {"HTTPStatusCode": status}, "Error": {}}
    )


HELPED = [
    ConnectionResetError("reset by peer"),
    ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
    BrokenPipeError(),
    http.client.RemoteDisconnected("closed without response"),
    http.client.IncompleteRead(b"half"),
    TimeoutError(),
    asyncio.IncompleteReadError(b"half", 10),
    FSTimeoutError(),
    OSError(errno.EHOSTUNREACH, "no route to host"),
    OSError(errno.EIO, "input/output error"),
    BlockingIOError(errno.EAGAIN, "try again"),
    socket.gaierror(socket.EAI_AGAIN, "temporary failure in name resolution"),
    ssl.SSLEOFError("EOF in violation of protocol"),
    ftplib.error_temp("421 service not available"),
    ShortRead("half of it"),
    of("aiohttp", "ClientResponseError", status=503),
    of("aiohttp", "ServerDisconnectedError", type(of("aiohttp", "ClientConnectionError"))),
    of("aiohttp", "ClientPayloadError"),
    of("botocore", "EndpointConnectionError", type(of("botocore", "ConnectionError"))),
    of("requests", "ChunkedEncodingError", OSError),
    of("requests", "HTTPError", OSError, response=SimpleNamespace(status_code=429)),
    of("urllib3", "ProtocolError"),
    of("gcsfs", "HttpError", code="502"),
    of("azure", "HttpResponseError", status_code=500),
    boto(503),
    urllib.error.HTTPError("http://x", 504, "gateway timeout", Message(), None),
    because(OSError(errno.EBUSY, "reduce your request rate"), boto(503)),
    because(TimeoutError("your socket was not read from"), boto(400)),
    because(FileNotFoundError("http://x"), of("aiohttp", "ClientResponseError", status=502)),
    because(FileNotFoundError("http://x"), of("aiohttp", "ClientOSError", OSError), ConnectionResetError()),
    # What is wrong with the answer of a server has the code of a bad request.
    because(of("aiohttp", "ClientPayloadError"), of("aiohttp", "PayloadEncodingError", code=400)),
]

LOST = [
    FileNotFoundError("gone"),
    PermissionError("forbidden"),
    IsADirectoryError(),
    ValueError("no such option"),
    KeyError("x"),
    OSError("no more is known"),
    OSError(errno.EINVAL, "invalid argument"),
    socket.gaierror(socket.EAI_NONAME, "name or service not known"),
    ssl.SSLCertVerificationError("self-signed certificate"),
    of("aiohttp", "ClientResponseError", status=403),
    of("botocore", "NoCredentialsError"),
    of("elsewhere", "ConnectionError"),
    of("azure", "HttpResponseError", status_code=501),
    boto(404),
    because(OSError(errno.EINVAL, "malformed"), boto(400)),
    of(
        "aiohttp",
        "CertificateError",
        ssl.SSLCertVerificationError,
        type(of("aiohttp", "ClientConnectionError")),
    ),
    because(PermissionError("denied"), boto(403)),
    because(OSError(errno.EBUSY, "expired"), OSError(errno.EINVAL, "pre-conditions"), boto(412)),
    because(FileNotFoundError("http://x"), of("aiohttp", "ClientResponseError", status=404)),
    because(
        FileNotFoundError("http://nowhere"),
        of("aiohttp", "ClientConnectorDNSError", type(of("aiohttp", "ClientConnectionError"))),
        socket.gaierror(socket.EAI_NONAME, "name or service not known"),
    ),
    of("aiohttp", "ClientResponseError", status=SimpleNamespace()),
]


@pytest.mark.parametrize("error", HELPED, ids=repr)
def test_what_a_busy_server_or_a_broken_connection_raises_is_transient(error: BaseException) -> None:
    assert transient_cause(error)


@pytest.mark.parametrize("error", LOST, ids=repr)
def test_what_another_try_would_not_change_is_permanent(error: BaseException) -> None:
    assert transient_cause(error) is None


def test_causes_that_go_round_in_a_ring_have_an_end() -> None:
    one, other = KeyError(), ValueError()
    one.__cause__, other.__cause__ = other, one
    assert transient_cause(one) is None


def test_the_cause_that_tells_is_the_one_to_show() -> None:
    refused = ConnectionRefusedError("refused")
    assert transient_cause(because(FileNotFoundError("http://x"), refused)) is refused
    slow = OSError(errno.EBUSY, "slow down")
    told = boto(503)
    assert transient_cause(because(slow, told, ValueError("of no weight"))) is told
