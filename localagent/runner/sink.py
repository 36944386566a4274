"""What a runner is given: where its events go, and how it learns that it should stop.

The shell implements it on top of the worker channel. All methods may be called from any thread of the turn. Deltas
never block. Everything else blocks until the channel has taken it, for 2,000 ms at most; then the run is undeliverable
and the call raises :class:`Undeliverable`, as does every later call except ``delta``.
"""

from collections.abc import Callable
from typing import Literal, Protocol


class Undeliverable(Exception):  # noqa: N818 - says what the event is
    """A critical event found no place for 2,000 ms: the run is over for the client (FLOW-13). Finish and leave."""


class Cancelled(Exception):  # noqa: N818 - says what the run is
    """The run was told to stop."""


class Sink(Protocol):
    """One turn's way out."""

    def cancelled(self) -> bool:
        """True once the turn was told to stop; it stays true."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait for a cancellation, at most ``seconds``; True when cancelled."""
        ...

    def input_appended(self, message_id: str, revision: str) -> None:
        """Say that the input is stored. Returns when the protocol loop has taken the event (EVT-12)."""
        ...

    def delta(self, message_id: str, text: str) -> None:
        """Redacted text for the eye, at most 4,000 bytes; may merge or drop."""
        ...

    def reconcile(self, message_id: str, part: int, text: str, last_part: bool, partial: bool) -> None:
        """One part of the authoritative text."""
        ...

    def activity(
        self,
        activity_id: str,
        kind: Literal["tool", "subagent", "compaction"],
        state: Literal["started", "completed", "failed"],
        name: str,
        summary: str,
    ) -> None:
        """An activity started or ended; summary at most 1,024 bytes, redacted."""
        ...

    def approval(self, summary: str) -> Callable[[], bool]:
        """Ask the user. What comes back waits for the answer: False on denial, expiry or cancellation (60,000 ms)."""
        ...

    def diagnostic(self, code: str, summary: str) -> None:
        """A diagnostic of the run."""
        ...

    def append_failed(self, summary: str) -> None:
        """A later append failed: persistence is degraded from here on."""
        ...
