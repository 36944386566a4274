"""Children without the start of an interpreter: a process that has imported the backend forks, and serves.

Nine tenths of what a case costs are the imports of its child. The whole matrix plays more than 150,000 cases, so its
children are copies of a process that has done them. The fault is put in behind the fork, the rest is as in
:mod:`localagent.selftest.__main__`; what differs is the moment: modules have taken what they import from each other
before the fault comes. A fault that this hides would survive, and be seen to.
"""

import os
import pkgutil
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final, NoReturn

from localagent.conformance import processes

from .mutant import PROGRAM, Mutant

_BACKEND: Final = ("core", "protocol", "text", "sessions", "settings", "catalog", "runner", "shell")
_LAZY: Final = ("transitions", "httpx2", "ipaddress", "urllib.parse")
"""What the backend imports when it first needs it."""
CONTROL: Final = Mutant("no-fault", "Nothing is wrong", "", lambda: None)
"""What says how often a check is red without a reason."""


def preload() -> None:
    """Import the backend, all of it."""
    for name in _BACKEND:
        package = import_module(f"localagent.{name}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(found.name)
    for name in _LAZY:
        import_module(name)


class _Forked:
    """A child that was forked."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def wait(self) -> int:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status


def forking(mutant: Mutant) -> processes.Start:
    """A start of this mutant by a fork; of another program, as it is started otherwise.

    Raises ``RuntimeError`` when this process has another thread: the child would have its locks and not the thread.
    """

    def start(
        argv: Sequence[str], streams: tuple[int, int, int], cwd: str, environ: Mapping[str, str]
    ) -> processes.Started:
        if tuple(argv[1:3]) != PROGRAM:
            return processes.start(argv, streams, cwd, environ)
        if threading.active_count() > 1:
            raise RuntimeError(f"a fork beside {threading.enumerate()}")
        pid = os.fork()
        if not pid:
            _serve(mutant, argv, streams, cwd, environ)
        return _Forked(pid)

    return start


def _serve(
    mutant: Mutant, argv: Sequence[str], streams: tuple[int, int, int], cwd: str, environ: Mapping[str, str]
) -> NoReturn:
    """Be the child."""
    try:
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environ)
        sys.argv = list(argv[2:])
        mutant.install()
        from localagent.shell import serve

        status = serve.serve(argv[5:])
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)
