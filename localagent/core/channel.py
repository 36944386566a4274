"""The worker channel: 32 places between a run's worker and the loop, and what becomes of an event that finds none.

Pure: the shell adds a lock and a condition. Deltas never wait. One merges into the last queued delta of its message
while that stays within 4,000 bytes, else it takes a place, else it is dropped and its part number is spent, so that
the client sees the gap (BASE-OP-170). Any other event waits for a place up to 2,000 ms; then it is undeliverable and
the channel gives up: from then on it takes nothing but the runner's last word, which never needs a place.
"""

from collections import deque
from enum import Enum, unique

from msgspec.structs import replace

from localagent.protocol.limits import LIMITS
from statemachines.channel import CHANNEL, ChannelInput

from .worker import Delta, RunEvent


@unique
class Offer(Enum):
    """What became of an event that was offered."""

    ACCEPTED = "accepted"
    MERGED = "merged"
    DROPPED = "dropped"
    WAIT = "wait"
    GIVEN_UP = "given up"


class Channel:
    """One run's channel. ``state`` is the channel machine's, and moves along its rows only."""

    def __init__(self) -> None:
        self.state: Enum = CHANNEL.initial
        self._places: deque[RunEvent] = deque()
        self._parts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def offer(self, event: RunEvent, now: float, since: float | None = None) -> Offer:
        """Offer an event that has been waiting since ``since`` (now, at the first offer).

        ``WAIT`` means: offer it again when a place was freed, or 2,000 ms after ``since``. ``GIVEN_UP`` is final for
        the run; the first one is to be reported to the core as ``WorkerUndeliverable``.
        """
        if self.state in CHANNEL.finals:
            return Offer.GIVEN_UP
        if isinstance(event, Delta):
            return self._offer_delta(event)
        if len(self._places) < LIMITS.worker_events:
            self._places.append(event)
            return Offer.ACCEPTED
        self._move(ChannelInput.WORKER_WAITS)
        if since is None or now < since + LIMITS.critical_wait_ms:
            return Offer.WAIT
        self._move(ChannelInput.WORKER_UNDELIVERABLE)
        return Offer.GIVEN_UP

    def take(self) -> RunEvent | None:
        """Take the oldest event out; None when there is none."""
        if not self._places:
            return None
        self._move(ChannelInput.OUTPUT_TAKEN)
        return self._places.popleft()

    def _offer_delta(self, delta: Delta) -> Offer:
        last = self._places[-1] if self._places else None
        if isinstance(last, Delta) and last.message_id == delta.message_id:
            text = last.text + delta.text
            if len(text.encode()) <= LIMITS.live_chunk_bytes:
                self._places[-1] = replace(last, text=text)
                return Offer.MERGED
        part = self._parts.get(delta.message_id, 0)
        self._parts[delta.message_id] = part + 1
        if len(self._places) >= LIMITS.worker_events:
            return Offer.DROPPED
        self._places.append(replace(delta, part=part))
        return Offer.ACCEPTED

    def _move(self, given: ChannelInput) -> None:
        self.state = CHANNEL.table[self.state, given].dest
