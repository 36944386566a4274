"""Time and cancellation, given from outside so that tests neither sleep nor race."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from .errors import Cancelled

CancelCheck = Callable[[], bool]
"""Asked between bounded steps; once it answers True the operation ends with :class:`.errors.Cancelled`."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The three things this room wants of time."""

    wall: Callable[[], int] = time.time_ns  # nanoseconds since 1970, as file times are
    steady: Callable[[], float] = time.monotonic  # seconds, for waiting
    sleep: Callable[[float], None] = time.sleep  # seconds


SYSTEM: Final = Clock()


def never() -> bool:
    """The token of an operation that nobody cancels."""
    return False


def proceed(cancelled: CancelCheck) -> None:
    """Raise Cancelled if the token is set."""
    if cancelled():
        raise Cancelled
