"""One HTTP request to a provider: bounded in bytes and time, given up as soon as that is wanted.

The request runs in an event loop of its own, in the thread that called; beside it the clock and the token are looked
at every 20 ms, so that nothing a server does, or leaves undone, holds a refresh up (EXT-REFRESH-55 to EXT-REFRESH-62).
A redirect is not followed: the key was meant for the address in the settings. No text of an answer or of an error
gets out of here, except the body of a good answer (EXT-REFRESH-22).

httpx2 and asyncio are imported when the first request is made, in the worker that makes it.
"""

import zlib
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from localagent.protocol.limits import LIMITS
from localagent.protocol.results import RefreshReason
from localagent.sessions.clock import CancelCheck, Clock, proceed
from localagent.sessions.errors import Cancelled

if TYPE_CHECKING:
    import httpx2

_TICK_S: Final = 0.02
_PARTING_S: Final = 0.2  # for closing a connection; after that the process may end with it
_OK: Final = 200
_REFUSALS: Final[Mapping[int, RefreshReason]] = {
    401: "authentication_rejected",
    403: "authentication_rejected",
    429: "rate_limited",
}
_GZIP: Final = zlib.MAX_WBITS | 16
_PLAIN: Final = ("", "identity")

Received = Callable[[int], None]
"""Told how many bytes of the body have come so far."""


class RefreshFault(Exception):  # noqa: N818 - says what went wrong
    """A refresh fails, for one of the reasons of EXT-REFRESH-18. Bears no text of anybody else."""

    def __init__(self, reason: RefreshReason) -> None:
        super().__init__(reason)
        self.reason = reason


class Bounds(NamedTuple):
    """The bounds of a refresh that tests make smaller."""

    body_bytes: int = LIMITS.refresh.body_bytes
    connect_ms: int = LIMITS.refresh.connect_ms
    wall_ms: int = LIMITS.refresh.wall_ms


class Watch:
    """The times of one refresh, which may make several requests (EXT-REFRESH-57, EXT-REFRESH-58)."""

    def __init__(self, bounds: Bounds, clock: Clock, cancelled: CancelCheck) -> None:
        self.bounds = bounds
        self._steady, self._cancelled = clock.steady, cancelled
        self._end = clock.steady() + bounds.wall_ms / 1000
        self._connected_by: float | None = None

    def connecting(self) -> None:
        """A request begins: its connection is to stand in 10 s."""
        self._connected_by = self._steady() + self.bounds.connect_ms / 1000

    def connected(self) -> None:
        """It stands."""
        self._connected_by = None

    def look(self) -> None:
        """Raises Cancelled, or RefreshFault(``remote_timeout``)."""
        proceed(self._cancelled)
        now = self._steady()
        if now > self._end or (self._connected_by is not None and now > self._connected_by):
            raise RefreshFault("remote_timeout")


def get(url: str, headers: Mapping[str, str], watch: Watch, received: Received) -> bytes:
    """GET ``url``; the decoded body of a good answer, of 2 MiB at most.

    Raises Cancelled, or RefreshFault: ``authentication_rejected`` (401, 403), ``rate_limited`` (429),
    ``remote_timeout``, ``catalog_limit`` (a longer body), ``invalid_catalog`` (a coding that was not asked for),
    ``configuration_invalid`` (no usable address), ``remote_unavailable`` for all else (EXT-OP-36).
    """
    import asyncio

    import httpx2

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_watched(_request(url, headers, watch, received), watch))
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError):
        raise RefreshFault("configuration_invalid") from None
    except httpx2.TimeoutException:
        raise RefreshFault("remote_timeout") from None
    except (Cancelled, RefreshFault):
        raise
    except Exception:  # whatever libraries make of strangers; groups of exceptions were seen here
        raise RefreshFault("remote_unavailable") from None
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()  # does not wait for a name that is still being looked up


async def _watched(work: Coroutine[Any, Any, bytes], watch: Watch) -> bytes:
    """Await ``work``, and look at clock and token meanwhile."""
    import asyncio

    watch.connecting()
    task = asyncio.create_task(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=_TICK_S)
            watch.look()
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=_PARTING_S)
        if task.done() and not task.cancelled():
            task.exception()  # somebody has to have asked for it


async def _request(url: str, headers: Mapping[str, str], watch: Watch, received: Received) -> bytes:
    import httpx2

    async def trace(event: str, _: object) -> None:
        if event.startswith("http"):  # the first byte of the request is about to go: name, TCP and TLS are done
            watch.connected()

    secure = url.lower().startswith("https:")  # else no certificates are loaded; there is no way from one to the other
    asked = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "localagent", **headers}
    async with (
        httpx2.AsyncClient(timeout=None, follow_redirects=False, verify=secure) as client,
        client.stream("GET", url, headers=asked, extensions={"trace": trace}) as answer,
    ):
        if answer.status_code != _OK:
            raise RefreshFault(_REFUSALS.get(answer.status_code, "remote_unavailable"))
        return await _body(answer, watch.bounds.body_bytes, received)


async def _body(answer: "httpx2.Response", most: int, received: Received) -> bytes:
    """The body, decoded by ourselves: no more of a bomb is unpacked than may be kept."""
    coding = answer.headers.get("content-encoding", "").strip().lower()
    unpacked = None if coding in _PLAIN else _unpacker(coding)
    body = bytearray()
    count = 0
    async for piece in answer.aiter_raw():
        count += len(piece)
        if count > most:
            raise RefreshFault("catalog_limit")
        body += piece if unpacked is None else unpacked(piece, most + 1 - len(body))
        if len(body) > most:
            raise RefreshFault("catalog_limit")
        received(count)
    return bytes(body)


def _unpacker(coding: str) -> Callable[[bytes, int], bytes]:
    """For servers that pack whatever is asked for. Half a stream is found out by whoever reads the text."""
    if coding not in ("gzip", "x-gzip"):
        raise RefreshFault("invalid_catalog")
    packed = zlib.decompressobj(_GZIP)

    def unpack(piece: bytes, most: int) -> bytes:
        try:
            return packed.decompress(piece, most)
        except zlib.error:
            raise RefreshFault("invalid_catalog") from None

    return unpack
