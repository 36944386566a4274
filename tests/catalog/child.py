"""Processes that may die or be forbidden things: forked one by one from a process without threads.

``python -m tests.catalog.child`` takes a command a line, ``name argument...``, carries it out in a fork, and answers
with the exit status of that.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx2  # noqa: F401 - once, not in each fork

from localagent.protocol.codes import Code
from localagent.sessions import disk, paths
from localagent.sessions.disk import Step
from localagent.sessions.errors import StoreError

from .kit import IS_ROOT, Desk, House, custom

NOBODY = 65534
REPOSITORY = Path(__file__).parents[2]


def _desk(base: str, url: str) -> Desk:
    house = House.__new__(House)
    house.root = paths.prepare(base)
    return Desk(house, custom("bench", "new", "old", base_url=url))


def refresh(base: str, url: str, step: str = "", when: str = "") -> int:
    """Refresh, and die of SIGKILL before or after a step, or let the step fail."""

    def watch(at: Step, done: bool) -> None:
        if at.name != step:
            return
        if when == "fail" and not done:
            raise OSError(28, "No space left on device")
        if done == (when == "after"):
            os.kill(os.getpid(), signal.SIGKILL)

    disk.watch = watch
    told = _desk(base, url).refresher.refresh("bench", None)
    return {None: 0, "cache_write_failed": 3}.get(told.reason, 4)


def read(base: str) -> int:
    """Read the catalog as somebody who is not root; 0 if it is found unavailable."""
    desk = _desk(base, "http://127.0.0.1:9")
    if IS_ROOT:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        desk.page()
    except StoreError as fault:
        return 0 if fault.code is Code.CATALOG_UNAVAILABLE else 3
    return 4


class Nursery:
    """The other side."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.catalog.child"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def ask(self, *words: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


COMMANDS: dict[str, Callable[..., int]] = {"refresh": refresh, "read": read}


def main() -> None:
    for line in sys.stdin:
        command, *words = line.split()
        pid = os.fork()
        if pid == 0:
            status = 9
            try:
                status = COMMANDS[command](*words)
            finally:
                os._exit(status)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
