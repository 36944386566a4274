"""What the host and the child can do, measured before anything is judged: time limits are derived from it.

The child's figures are read off the transcript of the first probe; the host's is how much later than asked a sleeping
thread wakes up. The same thread goes on watching through the run: a time limit that a target missed while the host
itself was asleep says nothing about the target.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable
from statistics import median
from typing import Any, Final

from localagent.conformance.model import Calibration, Record, Transcript

TICK_SECONDS: Final = 0.01
"""How long the watching thread asks to sleep."""
SETTLE_SECONDS: Final = 0.3
"""How long the host is watched before the first case."""
STARVED_MS: Final = 150.0
"""A host that wakes a thread up this much too late may be the reason of any missed time limit."""
_KEPT: Final = 60_000  # samples: ten minutes


class Watch:
    """Measures how late the host wakes a thread up, from ``with`` to the end of it."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="conformance-watch", daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            begin = time.monotonic()
            time.sleep(TICK_SECONDS)
            end = time.monotonic()
            self._samples.append((end, 1000 * (end - begin - TICK_SECONDS)))

    def usual(self) -> float:
        """What 19 of 20 wake-ups so far stayed below, in ms; 1 before the first."""
        late = sorted(late for _, late in tuple(self._samples))
        return max(0.0, late[int(len(late) * 0.95)]) if late else 1.0

    def worst(self, since: float, until: float) -> float:
        """The latest wake-up between two times of ``time.monotonic()``, in ms; 0 if there was none."""
        inside = (late for at, late in tuple(self._samples) if since <= at <= until + TICK_SECONDS)
        return max(inside, default=0.0)


def measure(probe: Transcript, lag: float) -> Calibration:
    """Derive the calibration from a probe that went well: the first answer is the start, the others round trips.

    Without times in the transcript the values of :class:`Calibration` stay as they are.
    """
    asked: dict[str, float] = {}
    trips: list[float] = []
    for record in probe.records:
        if record.t is None:
            continue
        if record.kind == "client":
            asked |= dict.fromkeys(_ids(record), record.t)
        elif record.kind == "backend":
            trips += [record.t - asked.pop(each) for each in _ids(record) if each in asked]
    if not trips:
        return Calibration(lag=lag)
    begin = next((each.t for each in probe.records if each.kind == "backend" and each.t is not None), 0.0)
    return Calibration(round_trip=median(trips[1:] or trips), start=max(begin, trips[0]), lag=lag)


def _ids(record: Record) -> Iterable[str]:
    frame = frame_of(record)
    found = frame.get("id") if isinstance(frame, dict) else None
    return (found,) if isinstance(found, str) else ()


def frame_of(record: Record) -> Any:
    """The decoded line of a record; None if it is no JSON."""
    import json

    try:
        return json.loads(record.data)
    except (ValueError, RecursionError):
        return None
