"""Servers that a case opens on 127.0.0.1, where a backend may look for a provider. No thread: a step serves, or counts.

A connection waits in the queue of the system until a ``serve`` step answers it, or a ``heard`` step counts it. So a
case decides how long a provider takes, and can say that nobody has called at all.
"""

import contextlib
import socket
import time
from dataclasses import dataclass, field
from typing import Final

_QUEUE: Final = 64
_HEAD_BYTES: Final = 65_536
_PATIENCE_S: Final = 2.0
"""How long a caller that has connected may take for its request."""


@dataclass(slots=True)
class Server:
    """A listening socket, and the callers that were taken from its queue. A caller that is held has no answer yet."""

    listening: socket.socket
    heard: list[str] = field(default_factory=list)
    """The first line of each request since they were counted; empty where none came."""
    held: list[socket.socket] = field(default_factory=list)


class Servers:
    """The servers of one case, by name."""

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}

    @property
    def ports(self) -> dict[str, int]:
        """The port of each."""
        return {name: each.listening.getsockname()[1] for name, each in self._servers.items()}

    def listen(self, name: str) -> None:
        """Open one. Raises ``OSError``."""
        self._servers[name] = Server(socket.create_server(("127.0.0.1", 0), backlog=_QUEUE))

    def serve(self, name: str, answer: bytes | None, patience_ms: float) -> bool:
        """Answer the next caller, or hold it without an answer; False when none has come in that time.

        A caller that goes away in the middle is answered as far as it lets itself be.
        """
        server = self._servers[name]
        caller = _next(server.listening, patience_ms / 1000)
        if caller is None:
            return False
        server.heard.append(_first_line(caller))
        if answer is None:
            server.held.append(caller)
        else:
            with caller, contextlib.suppress(OSError):
                caller.settimeout(_PATIENCE_S)
                caller.sendall(answer)
                caller.shutdown(socket.SHUT_WR)
        return True

    def heard(self, name: str) -> list[str]:
        """The first lines of all requests since it was last asked, those that nobody has answered among them."""
        server = self._servers[name]
        while (caller := _next(server.listening, 0)) is not None:
            server.heard.append(_first_line(caller))
            server.held.append(caller)
        heard, server.heard = server.heard, []
        return heard

    def close(self) -> None:
        """Close all of them, with every caller."""
        for server in self._servers.values():
            for each in (server.listening, *server.held):
                each.close()
        self._servers.clear()


def http(status: int, body: bytes) -> bytes:
    """A whole HTTP answer with a JSON body."""
    head = f"HTTP/1.1 {status} .\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


def _next(listening: socket.socket, patience: float) -> socket.socket | None:
    listening.settimeout(patience)
    try:
        return listening.accept()[0]
    except (TimeoutError, BlockingIOError):
        return None


def _first_line(caller: socket.socket) -> str:
    """Read the head of a request; its first line. A request with a body is one of which nobody reads the body."""
    until = time.monotonic() + _PATIENCE_S
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _HEAD_BYTES and (left := until - time.monotonic()) > 0:
        caller.settimeout(left)
        try:
            more = caller.recv(_HEAD_BYTES)
        except OSError:
            break
        if not more:
            break
        head += more
    return head.partition(b"\r\n")[0].decode("latin-1")
