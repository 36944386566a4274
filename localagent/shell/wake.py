"""Waking the loop: one byte into a non-blocking pipe, unless one is on its way already.

``signal.set_wakeup_fd`` writes to the same pipe, so a signal wakes the loop like anything else.
"""

import contextlib
import os
import threading


class Wake:
    """A self-pipe with a signalled flag; :meth:`ring` may be called from any thread."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        for fd in (self.reader, self.writer):
            os.set_blocking(fd, False)
        self._lock = threading.Lock()
        self._signalled = False

    def ring(self) -> None:
        """Make the reader readable; cheap when it is already."""
        with self._lock:
            if self._signalled:
                return
            self._signalled = True
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes as well
            os.write(self.writer, b"\0")

    def hush(self) -> None:
        """Empty the pipe, then clear the flag: what was rung for is looked at after this call."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.reader, 4096):
                pass
        with self._lock:
            self._signalled = False
