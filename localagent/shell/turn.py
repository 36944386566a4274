"""A turn's way out: the runner's sink on one side, the loop on the other, the worker channel in between.

One lock and one condition. The runner's threads offer; a critical event that finds no place waits on the condition,
2,000 ms at most. The loop takes, one event at a time, and only while no frame is pending; the last word and the
departure stand behind the last event.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from localagent.core import worker
from localagent.core.channel import Channel, Offer
from localagent.core.commands import ResolveApproval
from localagent.protocol.limits import LIMITS
from localagent.runner.sink import Undeliverable
from statemachines.channel import CHANNEL

_REFILL: Final = LIMITS.worker_events // 2
"""Events left when whoever waits for a place is woken: half the places at once, not a change of threads for each."""

Clock = Callable[[], float]
"""Milliseconds on a monotonic clock."""


class Turn:
    """Implements :class:`localagent.runner.sink.Sink` for one job."""

    def __init__(self, job: int, clock: Clock, ring: Callable[[], None], fresh_id: Callable[[], str]) -> None:
        self.job = job
        self._clock, self._ring, self._fresh_id = clock, ring, fresh_id
        self._channel = Channel()
        self._changed = threading.Condition()
        self._last: deque[worker.WorkerMessage] = deque()
        self._urgent: deque[worker.WorkerMessage] = deque()
        self._answers: dict[str, bool] = {}
        self._awaited: worker.RunEvent | None = None
        self._stop = threading.Event()

    # the runner's side

    def cancelled(self) -> bool:
        """True once the turn was told to stop."""
        return self._stop.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for a cancellation, at most ``seconds``."""
        return self._stop.wait(seconds)

    def input_appended(self, message_id: str, revision: str) -> None:
        """Say that the input is stored; returns when the loop has taken it."""
        event = worker.InputAppended(message_id, revision)
        with self._changed:
            self._awaited = event
        self._emit(event)
        with self._changed:
            self._changed.wait_for(lambda: self._awaited is not event or self.cancelled())

    def input_failed(self, revision: str | None) -> None:
        """Say that the input could not be stored, and which revision the history has now, if any (BASE-OP-184)."""
        self._emit(worker.InputFailed(revision=revision))

    def delta(self, message_id: str, text: str) -> None:
        """Offer text for the eye; never waits."""
        with self._changed:
            self._channel.offer(worker.Delta(message_id, text), self._clock())
        self._ring()

    def reconcile(self, message_id: str, part: int, text: str, last_part: bool, partial: bool) -> None:
        """One part of the authoritative text."""
        self._emit(worker.Reconcile(message_id, part, text, last_part, partial))

    def activity(
        self,
        activity_id: str,
        kind: Literal["tool", "subagent", "compaction"],
        state: Literal["started", "completed", "failed"],
        name: str,
        summary: str,
    ) -> None:
        """An activity started or ended."""
        self._emit(worker.ActivityChanged(activity_id, kind, state, name, summary))

    def approval(self, summary: str) -> Callable[[], bool]:
        """Ask the user. The core answers in every case: by the client, by expiry, or by denying (APPR-07)."""
        approval_id = self._fresh_id()
        self._emit(worker.ApprovalWanted(approval_id, summary, self._clock()))

        def answer() -> bool:
            with self._changed:
                self._changed.wait_for(lambda: approval_id in self._answers or self.cancelled())
                return self._answers.get(approval_id, False)

        return answer

    def diagnostic(self, code: str, summary: str) -> None:
        """A diagnostic of the run."""
        self._emit(worker.Note(code, summary))

    def append_failed(self, summary: str) -> None:
        """A later append failed."""
        self._emit(worker.AppendFailed(summary))

    def leave(self, word: worker.TurnEnded | None) -> None:
        """The last word, if any, and the departure; behind every event that was taken on before."""
        with self._changed:
            if word is not None:
                self._last.append(worker.WorkerDone(self.job, word))
            self._last.append(worker.WorkerGone(self.job))
        self._ring()

    def _emit(self, event: worker.RunEvent) -> None:
        since = self._clock()
        with self._changed:
            while True:
                given_up = self._channel.state in CHANNEL.finals
                offer = self._channel.offer(event, self._clock(), since)
                if offer is Offer.WAIT:
                    rest = since + LIMITS.critical_wait_ms - self._clock()
                    self._changed.wait(max(rest, 0) / 1000)
                    continue
                if offer is Offer.GIVEN_UP and not given_up:
                    self._urgent.append(worker.WorkerUndeliverable(self.job))
                break
        self._ring()
        if offer is Offer.GIVEN_UP:
            raise Undeliverable

    # the loop's side

    def stop(self) -> None:
        """Tell the runner to stop."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()

    def resolve(self, answer: ResolveApproval) -> None:
        """Give the runner its answer; the first one stands."""
        with self._changed:
            self._answers.setdefault(answer.approval_id, answer.allow)
            self._changed.notify_all()

    def urgent(self) -> worker.WorkerMessage | None:
        """What must not wait for the pipe: that an event was undeliverable."""
        with self._changed:
            return self._urgent.popleft() if self._urgent else None

    def take(self) -> worker.WorkerMessage | None:
        """The next event, or the last words behind the last event; None when there is nothing."""
        with self._changed:
            event = self._channel.take()
            if event is None:
                return self._last.popleft() if self._last else None
            if len(self._channel) == _REFILL:
                self._changed.notify_all()
            return worker.WorkerEvent(self.job, event)

    def taken(self, message: worker.WorkerMessage) -> None:
        """The core has had the message: whoever waits for that goes on (EVT-12)."""
        if isinstance(message, worker.WorkerEvent) and message.event is self._awaited:
            with self._changed:
                self._awaited = None
                self._changed.notify_all()
