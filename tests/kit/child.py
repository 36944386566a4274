"""A real child process over real pipes, at the level of bytes: what a client sees, nothing else."""

import contextlib
import itertools
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PATIENCE = 20.0
"""Seconds after which a wait has failed; far beyond anything a sound child needs."""


class ChildError(AssertionError):
    """The child did not do what was waited for."""


class Child:
    """One backend process in a home of its own; use as a context manager, so that none is left behind."""

    def __init__(
        self,
        home: Path,
        *,
        arguments: Sequence[str] = ("serve", "--stdio"),
        cwd: Path | None = None,
        environ: dict[str, str] | None = None,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        program: Sequence[str] = (sys.executable, "-m", "localagent"),
    ) -> None:
        self._ids = itertools.count(1)
        self.raw = bytearray()
        """Everything that has come so far."""
        self.read_to = 0
        """How much of it has been given out as frames."""
        cwd = cwd or home.parent
        self.process = subprocess.Popen(
            [*program, *arguments],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, "MC_HOME": str(home), **(environ or {})},
            bufsize=0,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    # sending

    def send(self, data: bytes) -> None:
        """Write bytes as they are."""
        assert self.process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[self.process.stdin.write(view) :]

    def ask(self, method: str, id_: str | None = None, **params: Any) -> str:
        """Send a request; its id."""
        id_ = id_ or f"r{next(self._ids)}"
        self.send(line(id_, method, **params))
        return id_

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and wait for its answer; events that come before it are left to :meth:`frames` callers."""
        id_ = self.ask(method, **params)
        return self.answer(id_)

    def close_input(self) -> None:
        """End of input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    # receiving

    def frame(self, patience: float = PATIENCE) -> dict[str, Any]:
        """The next frame."""
        until = time.monotonic() + patience
        while (end := self.raw.find(b"\n", self.read_to)) < 0:
            if not self._read(until - time.monotonic()):
                raise ChildError(f"output ended; so far {self.raw[-2000:]!r}, stderr {self.stderr()!r}")
        frame: dict[str, Any] = json.loads(self.raw[self.read_to : end])
        self.read_to = end + 1
        return frame

    def frames_until(self, wanted: str) -> list[dict[str, Any]]:
        """Frames up to and with the event or the answer (by id) that is named."""
        found: list[dict[str, Any]] = []
        while True:
            frame = self.frame()
            found.append(frame)
            if wanted in (frame.get("event"), frame.get("id")):
                return found

    def answer(self, id_: str) -> dict[str, Any]:
        """The answer to a request; frames before it are dropped."""
        return self.frames_until(id_)[-1]

    def rest(self) -> bytes:
        """Everything that is still to come, to the end of output."""
        until = time.monotonic() + PATIENCE
        while self._read(until - time.monotonic()):
            pass
        data, self.read_to = bytes(self.raw[self.read_to :]), len(self.raw)
        return data

    def _read(self, patience: float) -> bytes:
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(max(patience, 0)):
                raise ChildError(f"nothing came; so far {self.raw[-2000:]!r}")
        data = os.read(self.process.stdout.fileno(), 65536)
        self.raw += data
        return data

    # ending

    def wait(self, patience: float = PATIENCE) -> int:
        """The exit status."""
        return self.process.wait(patience)

    def stderr(self) -> bytes:
        """What stands on stderr now, without waiting."""
        assert self.process.stderr is not None
        os.set_blocking(self.process.stderr.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            return self.process.stderr.read() or b""
        return b""

    # the usual beginnings

    def initialize(self, *capabilities: str) -> dict[str, Any]:
        """Initialize; the result."""
        result: dict[str, Any] = self.call("initialize", required_capabilities=list(capabilities))["result"]
        return result

    def create(self) -> str:
        """Create a session; its id."""
        session: str = self.call("session.create")["result"]["session_id"]
        return session

    def turn(self, session: str, prompt: str) -> list[dict[str, Any]]:
        """Run a turn to its end; all its frames, answer first."""
        self.ask("turn.start", session_id=session, prompt=prompt)
        return self.frames_until("run.finished")


def line(id_: str, method: str, **params: Any) -> bytes:
    """One request line."""
    request = {"protocol": "magi-code.local-agent", "version": 1, "id": id_, "method": method, "params": params}
    return json.dumps(request, ensure_ascii=False).encode() + b"\n"


def texts(frames: list[dict[str, Any]], event: str) -> Iterator[str]:
    """The texts of one kind of event, in order."""
    for frame in frames:
        if frame.get("event") == event:
            yield frame["data"]["text"]
