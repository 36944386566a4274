"""The parent's side of :mod:`tests.sessions.child`."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


class Child:
    """A process that uses the store in ``root`` from ``cwd``."""

    def __init__(self, nursery: "Nursery", root: str, cwd: str) -> None:
        self.nursery = nursery
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self.pid = nursery.fork(theirs_in, theirs_out)
        os.close(theirs_in)
        os.close(theirs_out)
        self.commands = open(ours_out, "w")  # noqa: SIM115 - closed by kill
        self.answers = open(ours_in)  # noqa: SIM115
        self.alive = True
        assert self.ask(f"use {root} {cwd}") == "ready"

    def tell(self, command: str) -> None:
        self.commands.write(command + "\n")
        self.commands.flush()

    def hear(self) -> str:
        return self.answers.readline().rstrip("\n")

    def ask(self, command: str) -> str:
        self.tell(command)
        return self.hear()

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> str:
        """Kill it for good, and return what it had still said. When this returns, the process is gone."""
        if not self.alive:
            return ""
        self.alive = False
        self.signal(signal.SIGKILL)
        self.nursery.wait(self.pid)
        rest = self.answers.read()
        self.answers.close()
        with suppress(BrokenPipeError):
            self.commands.close()
        return rest


class Nursery:
    """A process that forks children."""

    def __init__(self) -> None:
        self.ours, theirs = socket.socketpair(socket.AF_UNIX)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.sessions.child", str(theirs.fileno())],
                cwd=REPOSITORY,
                pass_fds=[theirs.fileno()],
            )

    def fork(self, commands: int, answers: int) -> int:
        socket.send_fds(self.ours, [b"fork"], [commands, answers])
        return int(self.ours.recv(64))

    def wait(self, pid: int) -> None:
        self.ours.send(str(pid).encode())
        assert self.ours.recv(64) == b"gone"

    def close(self) -> None:
        self.ours.close()
        self.process.wait()

    @contextmanager
    def child(self, root: str, cwd: str) -> Iterator[Child]:
        one = Child(self, root, cwd)
        try:
            yield one
        finally:
            one.kill()
