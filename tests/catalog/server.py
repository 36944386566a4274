"""Provider servers on 127.0.0.1 that do exactly what a test wants, byte by byte."""

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from localagent.protocol.results import Refreshed

from .kit import Desk, House, custom

Behaviour = Callable[["Connection"], None]


class Connection:
    """One accepted connection, its request read. Closed when the behaviour returns."""

    def __init__(self, peer: socket.socket, request: bytes, over: threading.Event) -> None:
        self._peer, self.request, self._over = peer, request, over

    def send(self, data: bytes) -> None:
        self._peer.sendall(data)

    def gone(self) -> bool:
        """Wait until the client leaves, or the test is over."""
        while not self._over.is_set():
            try:
                if not self._peer.recv(4096):
                    return True
            except TimeoutError:
                continue
            except OSError:
                return True
        return False

    def header(self, name: str) -> str | None:
        for line in self.request.decode("latin-1").split("\r\n")[1:]:
            key, _, value = line.partition(": ")
            if key.lower() == name:
                return value
        return None


class Server:
    """Answers each connection in a thread; the n-th by the n-th behaviour, later ones by the last."""

    def __init__(self, *behaviours: Behaviour) -> None:
        self._behaviours = behaviours
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.05)
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.connections: list[Connection] = []
        self.asked = threading.Event()
        """Set when the first request has been read."""
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> list[str]:
        """The request lines so far."""
        return [each.request.decode("latin-1").split("\r\n")[0] for each in self.connections]

    def run(self) -> None:
        while not self._over.is_set():
            try:
                peer, _ = self._socket.accept()
            except TimeoutError:
                continue
            peer.settimeout(0.05)
            thread = threading.Thread(target=self._serve, args=(peer, len(self._threads)), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, peer: socket.socket, number: int) -> None:
        with peer:
            try:
                request = self._read(peer)
                connection = Connection(peer, request, self._over)
                self.connections.append(connection)
                self.asked.set()
                self._behaviours[min(number, len(self._behaviours) - 1)](connection)
            except OSError:
                pass

    def _read(self, peer: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data and not self._over.is_set():
            try:
                piece = peer.recv(4096)
            except TimeoutError:
                continue
            if not piece:
                raise ConnectionResetError
            data += piece
        return data

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._socket.close()


@contextmanager
def serving(*behaviours: Behaviour) -> Iterator[Server]:
    server = Server(*behaviours)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server._over.set()
        thread.join()
        server.close()


def head(status: int = 200, length: int | None = None, *lines: str) -> bytes:
    told = [f"HTTP/1.1 {status} X", "Connection: close", *lines]
    if length is not None:
        told.append(f"Content-Length: {length}")
    return "\r\n".join([*told, "", ""]).encode()


def models(*names: str | dict[str, Any], **more: Any) -> bytes:
    """The answer of a provider that has these models."""
    data = [{"id": each, "object": "model"} if isinstance(each, str) else each for each in names]
    return json.dumps({"object": "list", "data": data} | more).encode()


def answering(body: bytes, status: int = 200, *lines: str) -> Behaviour:
    return lambda connection: connection.send(head(status, len(body), *lines) + body)


def bomb(size: int) -> bytes:
    """So many zeros, packed."""
    return gzip.compress(b"0" * size, 9)


def refreshed(house: House, *behaviours: Behaviour, **more: Any) -> Refreshed:
    """Refresh ``bench`` from a server that behaves so."""
    enabled = more.pop("enabled", ("tiny",))
    desk = more.pop("desk", {})
    with serving(*behaviours) as server:
        return Desk(house, custom("bench", *enabled, base_url=server.url, **more), **desk).refresher.refresh(
            "bench", None
        )
