"""The keeper: one thread that renews leases every second while something is attached, and lets old ones go.

Both touch files, so neither belongs on the protocol loop.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

RENEWAL_SECONDS: Final = 1.0
"""How often a holder sets its locks' times (LEASE-04)."""


class Keeper:
    """Runs ``renew`` every second from the first :meth:`watch` on, and whatever it is handed in between."""

    def __init__(self, renew: Callable[[int], None]) -> None:
        self._renew = renew
        self._changed = threading.Condition()
        self._handed: deque[Callable[[], None]] = deque()
        self._thread: threading.Thread | None = None

    def watch(self) -> None:
        """Start, unless it runs already. Without a thread to be had leases age, and others judge them by their lock."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)
            self._thread.start()

    def hand(self, work: Callable[[], None]) -> None:
        """Have something done soon, off the loop."""
        with self._changed:
            self._handed.append(work)
            self._changed.notify()

    def settle(self) -> None:
        """Wait until everything handed in so far is done: a few files are removed, no more."""
        if self._thread is not None:
            done = threading.Event()
            self.hand(done.set)
            done.wait()

    def _run(self) -> None:
        due = time.monotonic() + RENEWAL_SECONDS
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._handed), max(0.0, due - time.monotonic()))
                work = self._handed.popleft() if self._handed else None
            if work is not None:
                work()
            elif time.monotonic() >= due:
                self._renew(time.time_ns())
                due = time.monotonic() + RENEWAL_SECONDS
