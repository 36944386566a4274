"""The output queue: frames in order, each with the moment it was queued. Arithmetic only."""

from collections import deque

from localagent.protocol.limits import LIMITS


class OutputQueue:
    """Frames that the pipe has not taken. Times are milliseconds; a partly written frame keeps its deadline."""

    def __init__(self) -> None:
        self._frames: deque[tuple[bytes, float]] = deque()
        self._written = 0

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def full(self) -> bool:
        """True when one more frame would be the 33rd (BOUND-22)."""
        return len(self._frames) >= LIMITS.pending_responses

    @property
    def deadline(self) -> float | None:
        """When the oldest frame has waited too long (BOUND-27); None while nothing waits."""
        return self._frames[0][1] + LIMITS.output_deadline_ms if self._frames else None

    def put(self, line: bytes, now: float) -> None:
        """Queue a frame, LF included."""
        self._frames.append((line, now))

    def head(self) -> memoryview:
        """The unwritten bytes of the oldest frame; empty when nothing waits."""
        return memoryview(self._frames[0][0])[self._written :] if self._frames else memoryview(b"")

    def wrote(self, count: int) -> None:
        """The pipe took ``count`` bytes of :meth:`head`."""
        self._written += count
        if self._written >= len(self._frames[0][0]):
            self._frames.popleft()
            self._written = 0

    def clear(self) -> None:
        """Forget everything: the output is lost."""
        self._frames.clear()
        self._written = 0
