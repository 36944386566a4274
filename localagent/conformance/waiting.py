"""Waiting for what a step of a case means, with the patience that was measured for this host and child."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from .driver import Child
from .lines import barrier_id
from .model import Calibration, Step
from .seen import Found, Seen

END_MS: Final = 6_000.0
"""How long the end may take: 2,000 ms for output, 2,000 ms for cleaning up, and half as much again."""


class StopError(Exception):
    """The case cannot go on: the marks that say why, the last with the number of the step for ``{}``."""


class Waiting(ABC):
    """A child, what was seen of it, and how long to wait for more."""

    def __init__(self, calibration: Calibration) -> None:
        self.calibration = calibration
        self.seen = Seen()
        self.fed = 0
        """How many of the child's records were looked at."""
        self.patience_over = False
        """Its end was waited for in vain already."""

    @abstractmethod
    def open(self) -> Child:
        """The child, started if need be."""

    @property
    def over(self) -> bool:
        """True when no answer or event can be seen any more."""
        return self.seen.end is not None or self.open().overflowed

    @property
    def end_ms(self) -> float:
        """How long to wait for the end of the child."""
        return max(END_MS, END_MS / 2 + 2 * self.calibration.margin_ms)

    def answer_ms(self, step: Step) -> float:
        """How long to wait: the first frame of a child may take long; a bound of the case is judged, not enforced."""
        usual = self.calibration.answer_ms if self.seen.frames else self.calibration.start_ms
        within: int = step.args.get("within_ms", 0)
        return max(usual, within + self.calibration.margin_ms)

    def find(self, step: Step, patience: float) -> Found:
        """What a step means, when it has come. Gives up when its time is over, or nothing can come any more."""
        found = list[Found]()

        def come() -> bool:
            found.extend(filter(None, [self.seen.find(step)]))
            return bool(found) or (self.over and step.kind != "exit")

        self.wait(come, patience, ends=step.kind == "exit")
        if not found:
            self.patience_over = step.kind == "exit"
            if "optional" in step.args:
                return Found()
            raise StopError(f"missing {', '.join(self._missing(step))}", "gave up {}")
        return found[0]

    def wait(self, come: Callable[[], bool], patience: float, *, ends: bool = False) -> bool:
        """Wait for something to be so, as records come; False if it is not so in ``patience`` ms.

        While an ``initialize`` is not answered there is more of it, unless the end of the child is waited for: startup
        has no bound, and what is asked meanwhile may wait for it.
        """
        child, begin = self.open(), time.monotonic()
        while True:
            self.look()
            if come():
                return True
            starting = bool(self.seen.starting) and not ends
            until = begin + max(patience, self.calibration.start_ms if starting else 0) / 1000
            if not child.wait(self.fed, until) and time.monotonic() >= until:
                return False

    def look(self) -> None:
        """Take notice of what has come meanwhile."""
        new = self.open().records(self.fed)
        self.fed += len(new)
        self.seen.feed(new)

    def _missing(self, step: Step) -> list[str]:
        """What a step waits for in vain, in words."""
        args: Any = step.args
        match step.kind:
            case "event":
                return [f"event {args['event']}"]
            case "exit":
                return ["exit"]
            case "absent" | "absent_answer" | "nothing":
                return [barrier_id(step)]
            case "answers":
                asked = zip(args["answers"], args["ids"], args["nths"], strict=True)
                return [name for name, id_, nth in asked if self.seen.answer(id_, nth) is None]
            case "answer":
                return [args["answer"] or "answer without an id"]
            case _:
                return [args.get("as", "init")]
