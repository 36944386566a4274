"""``localagent serve --stdio``: put the pieces together and end the process."""

import os
import sys
from collections.abc import Sequence

from . import launch


def serve(arguments: Sequence[str]) -> int:
    """Serve until the client is done. Returns a status only for help and for an invalid launch.

    Otherwise the process ends here, by ``os._exit`` with the status the core asked for: everything durable is done by
    then, and no thread or exit handler may hold it up.
    """
    if list(arguments) in (["--help"], ["-h"]):
        sys.stdout.write(launch.HELP)
        return 0
    try:
        launch.check(arguments)
    except launch.InvalidLaunch as fault:
        sys.stderr.write(f"localagent: {fault}\n")
        return 2
    pipes = launch.claim(os.environ)
    status = 1
    try:
        status = _run(pipes)
    except BaseException:
        import traceback

        traceback.print_exc()  # to LOCALAGENT_LOG, if anywhere
    os._exit(status)


def _fresh_id() -> str:
    """A UUID, version 4. The library's module costs a tenth of the time to the first answer."""
    data = bytearray(os.urandom(16))
    data[6] = data[6] & 0x0F | 0x40
    data[8] = data[8] & 0x3F | 0x80
    text = data.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _run(pipes: launch.Pipes) -> int:
    from localagent.core.connection import Connection

    from .backend import SERVED, LocalBackend
    from .loop import Loop, monotonic_ms
    from .wake import Wake
    from .workers import Workers

    sys.setswitchinterval(0.0005)  # a computing worker must not make the loop wait
    wake = Wake()
    workers = Workers(LocalBackend(_fresh_id, monotonic_ms), wake, monotonic_ms, _fresh_id)
    loop = Loop(pipes, Connection(_fresh_id, SERVED), workers, wake)
    loop.catch_signals()
    return loop.run()
