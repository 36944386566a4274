"""Appends that the stream does not wait for: one thread of a turn, in the order in which they were begun."""

import threading
from collections import deque
from collections.abc import Callable, Sequence

from localagent.runner.scribe import Handle
from localagent.sessions.records import Draft


class _Begun:
    """One append on its way."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self.drafts = drafts
        self.done = threading.Event()
        self.fault: Exception | None = None

    def result(self) -> None:
        """Wait until it is done; raises what it failed with."""
        self.done.wait()
        if self.fault is not None:
            raise self.fault


class Appender:
    """Implements :data:`localagent.runner.scribe.Later`. The thread lives from the first append to :meth:`close`."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._changed = threading.Condition()
        self._waiting: deque[_Begun] = deque()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def __call__(self, drafts: Sequence[Draft]) -> Callable[[], object]:
        """Begin an append; what comes back waits for it."""
        begun = _Begun(drafts)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="appender", daemon=True)
            self._thread.start()
        with self._changed:
            self._waiting.append(begun)
            self._changed.notify()
        return begun.result

    def close(self) -> None:
        """Let the thread go; whatever was begun has been waited for by then."""
        self._closing.set()
        with self._changed:
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting) or self._closing.is_set())
                if not self._waiting:
                    return
                begun = self._waiting.popleft()
            try:
                self._handle.append(begun.drafts)
            except Exception as fault:
                begun.fault = fault
            begun.done.set()
