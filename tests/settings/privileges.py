"""Running a piece of a test as a user who may not read everything: root gives its privileges up in a child."""

import os
import traceback
from collections.abc import Callable

NOBODY = 65534


def unprivileged(act: Callable[[], None]) -> None:
    """Run ``act`` in a forked child without privileges; its failure is ours."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            act()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
