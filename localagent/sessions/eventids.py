"""Event ids: unique across the root, for all processes and for ever, handed out in blocks (REC-09)."""

import os
import re
import threading
from typing import Final

from . import files, leases
from .clock import CancelCheck, Clock
from .errors import Unsafe
from .paths import Root

SEQUENCE: Final = "event-id-sequence"
_BLOCK: Final = 1024
_LAST: Final = 2**64 - 1  # what 16 hexadecimal digits can say
_digits = re.compile(rb"\A[0-9]{1,20}\Z").match


class EventIds:
    """The ids of one child, all its sessions together. Ids that are not used are lost."""

    def __init__(self, root: Root, clock: Clock) -> None:
        self._root, self._clock = root, clock
        self._mutex = threading.Lock()
        self._block = range(0)

    def take(self, count: int, cancelled: CancelCheck) -> list[str]:
        """Return ``count`` fresh ids, in rising order.

        Raises Held, Unsafe, Cancelled or OSError; then no id was given out.
        """
        with self._mutex:
            if len(self._block) < count:
                self._block = self._reserve(max(count, _BLOCK), cancelled)
            taken, self._block = self._block[:count], self._block[count:]
        return [f"{number:x}" for number in taken]

    def _reserve(self, count: int, cancelled: CancelCheck) -> range:
        """Move the end on the disk behind ``count`` new ids, and only then return them."""
        with leases.waiting(self._root.sessions, SEQUENCE, self._clock, cancelled), self._root.sessions() as directory:
            last = end(directory)
            if last + count > _LAST:
                raise Unsafe("the event ids are used up")
            files.replace(SEQUENCE, str(last + count).encode(), directory, self._clock)
            return range(last + 1, last + count + 1)


def end(directory: int) -> int:
    """Return the end of the last block: decimal digits alone, absent means 0. Raises Unsafe or OSError."""
    try:
        descriptor = files.open_private(SEQUENCE, directory)
    except FileNotFoundError:
        return 0
    try:
        text = os.read(descriptor, 32)
    finally:
        os.close(descriptor)
    if not _digits(text):
        raise Unsafe("event-id-sequence is not a number")
    return int(text)
