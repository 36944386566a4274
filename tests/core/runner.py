"""A pretended turn: what its worker says next, through a real channel, and what a broken one might say instead."""

from collections import deque
from typing import Any, Final

from hypothesis import strategies as st

from localagent.core import worker
from localagent.core.channel import Channel, Offer
from tests.kit.core_driver import Driver, uuid

KINDS: Final = (
    *("delta", "delta", "part", "last", "activity", "card", "ask", "ask", "call", "note"),
    *("append-failed", "call-cancelled", "appended", "input-failed"),
)
OUTCOMES: Final = (None, "success", "failure", "cancelled", "unknown", "interrupted")


class Runner:
    """The worker of the turn that was started last. One thread: while an event waits for its place, nothing is said."""

    def __init__(self, d: Driver) -> None:
        self.d = d
        self.job = d.job if d.started else 0
        self.channel = Channel()
        self.waiting: tuple[worker.RunEvent, float] | None = None
        self.last: deque[worker.TurnEnded | None] = deque()
        self.stored = False
        self.parts: dict[str, int] = {}
        self.activities: list[str] = []
        self.asked: list[str] = []
        self.count = 0

    @staticmethod
    def events() -> st.SearchStrategy[tuple[str, int]]:
        return st.tuples(st.sampled_from(KINDS), st.integers(0, 5))

    def sensible(self, kind: str, n: int) -> worker.RunEvent:
        """An event that a sound runner could say now: first that the input is stored, or that it is not."""
        if not self.stored and kind != "input-failed":
            self.stored = True
            return worker.InputAppended("in1", "h2")
        self.count += 1
        message, now = f"m{n % 2}", self.d.now
        match kind:
            case "delta":
                return worker.Delta(message, "é" * (1, 3, 700, 1_999, 2_000, 40)[n])
            case "part" | "last":
                part = self.parts.pop(message, 0)
                if kind == "part":
                    self.parts[message] = part + 1
                return worker.Reconcile(message, part, "x" * (n * 800), kind == "last", n > 2)
            case "activity":
                if self.activities and n % 2:
                    name = self.activities.pop()
                    return worker.ActivityChanged(name, "tool", "completed" if n > 1 else "failed", "read", "x")
                self.activities.append(f"a{self.count}")
                return worker.ActivityChanged(self.activities[-1], "subagent", "started", "read", "x")
            case "card":
                return worker.CardShown(self.activities[-1] if self.activities else "a0", {"n": n}, OUTCOMES[n])
            case "ask":
                self.asked.append(uuid(0x1000 + self.count))
                return worker.ApprovalWanted(self.asked[-1], "may I?", now)
            case "call":
                self.asked.append(uuid(0x2000 + self.count))
                return worker.CallWanted(self.asked[-1], "client__pick", {"n": n}, 1_000 * (1 + n * 5), now)
            case "call-cancelled":
                return worker.CallCancelled(self.asked[n % len(self.asked)] if self.asked else uuid(0))
            case "append-failed":
                return worker.AppendFailed("disk")
            case _:
                return worker.Note("hint", "x")

    def absurd(self, kind: str, n: int) -> worker.RunEvent:
        """An event at the wrong moment, said twice, or about something that does not exist."""
        self.count += 1
        known = self.asked[n % len(self.asked)] if self.asked else uuid(0x3000 + self.count)
        events: dict[str, Any] = {
            "delta": worker.Delta("odd", "x", self.count),
            "part": worker.Reconcile("odd", 0, "x", True, False),
            "last": worker.Reconcile("odd", 0, "x", True, True),
            "activity": worker.ActivityChanged("odd", "tool", ("completed", "failed", "started")[n % 3], "read", "x"),
            "card": worker.CardShown("odd", {}, OUTCOMES[n]),
            "ask": worker.ApprovalWanted(known, "again?", self.d.now - 30_000 * n),
            "call": worker.CallWanted(known, "client__pick", {}, 1_000, self.d.now),
            "call-cancelled": worker.CallCancelled(known),
            "appended": worker.InputAppended("in2", "h2"),
            "input-failed": worker.InputFailed(),
            "append-failed": worker.AppendFailed("disk"),
            "note": worker.Note("odd", "x"),
        }
        event: worker.RunEvent = events[kind]
        return event

    def offer(self, kind: str, n: int) -> None:
        """Say a sensible event, unless an earlier one still waits or the last word was said."""
        if self.waiting is None and not self.last:
            self.waiting = self.sensible(kind, n), self.d.now
            self.again()

    def again(self) -> None:
        """Offer what waits once more."""
        if self.waiting is not None:
            offered = self.channel.offer(self.waiting[0], self.d.now, self.waiting[1])
            if offered is not Offer.WAIT:
                self.waiting = None
            if offered is Offer.GIVEN_UP:
                self.d.undeliverable(self.job)

    def end(self, word: worker.TurnEnded | None, leaves: bool) -> None:
        """The last word, and the departure; behind every event that has a place."""
        if word is not None:
            self.last.append(word)
        if leaves:
            self.last.append(None)

    def deliver(self, most: int) -> None:
        """The loop takes events, one by one, while no frame is pending."""
        for _ in range(most):
            if not self.d.connection.takes_events:
                return
            event = self.channel.take()
            if event is not None:
                self.d.event(event, self.job)
                self.again()
            elif self.last:
                word = self.last.popleft()
                self.d.gone(self.job) if word is None else self.d.done(word, self.job)
