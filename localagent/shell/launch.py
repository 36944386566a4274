"""From a command line to a served connection: launch checks before any effect, then descriptors out of harm's way.

An invalid launch (D42, D43) ends with status 2 and one line on stderr; nothing has been read, written or created then.
After the checks descriptors 0 and 1 are moved away and replaced by ``/dev/null``, so that no library's print and no
child process can reach the client; 2 goes to the file named by ``LOCALAGENT_LOG``, or to ``/dev/null``.
"""

import contextlib
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass

USAGE = "usage: localagent serve --stdio"

HELP = f"""{USAGE}

Serve magi-code.local-agent, version 1, on stdin and stdout. Both must be pipes; a client starts this command as its
child process and speaks one JSON object a line. Ends when stdin ends, on a shutdown request, or on SIGTERM.

environment:
  MC_HOME         absolute path of the storage root (default: the user's data directory for localagent)
  LOCALAGENT_LOG  file for what would go to stderr (default: nothing is kept)

exit status:
  0  output drained   1  the client was lost, or work was cut off   2  invalid launch
"""


class InvalidLaunch(Exception):  # noqa: N818 - says what the launch is
    """The command line or a descriptor is not fit for serving; nothing has been done yet (START-09, START-10)."""


@dataclass(frozen=True, slots=True)
class Pipes:
    """The two ends that belong to the client: private descriptors, non-blocking, closed on exec."""

    stdin: int
    stdout: int


def check(arguments: Sequence[str], platform: str = sys.platform) -> None:
    """Raise :class:`InvalidLaunch` unless this process may serve (START-02, START-04 to START-08)."""
    if platform == "win32":
        raise InvalidLaunch("serving needs Unix pipes; Windows is not supported")
    if list(arguments) != ["--stdio"]:
        raise InvalidLaunch(f"serve takes --stdio and nothing else ({USAGE})")
    for fd, name in ((0, "stdin"), (1, "stdout")):
        try:
            mode = os.fstat(fd).st_mode
        except OSError:
            raise InvalidLaunch(f"{name} is closed; it must be a pipe") from None
        if not stat.S_ISFIFO(mode):
            raise InvalidLaunch(f"{name} is not a pipe")


def claim(environ: "os._Environ[str]") -> Pipes:
    """Move the client's pipes to private descriptors and put something harmless in their place."""
    import fcntl

    pipes = []
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for fd, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY)):
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
        os.dup2(null, fd)
        pipes.append(_nonblocking(moved, flags))
    log = _log(environ.get("LOCALAGENT_LOG"), null)
    os.dup2(log, 2)
    os.close(null)
    return Pipes(*pipes)


def _nonblocking(fd: int, flags: int) -> int:
    """Make a pipe end non-blocking without touching what the parent sees.

    O_NONBLOCK belongs to the open file description, which the parent may share. Linux opens the same pipe anew by its
    name in /proc, with flags of its own; elsewhere the flag is set on the shared one.
    """
    with contextlib.suppress(OSError):
        fresh = os.open(f"/proc/self/fd/{fd}", flags | os.O_NONBLOCK | os.O_CLOEXEC)
        os.close(fd)
        return fresh
    os.set_blocking(fd, False)
    return fd


def _log(path: str | None, null: int) -> int:
    if path:
        with contextlib.suppress(OSError):
            return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return null
