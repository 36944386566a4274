"""One whole life, input by input: startup, a session, a turn with everything in it, history, the end."""

from collections.abc import Callable
from typing import Final

from localagent.core import worker
from tests.kit.core_driver import STARTED, Driver, attached

from .asking import ALL, READS, approval, call, good

Move = Callable[[Driver], object]


def _ask(method: str) -> Move:
    return lambda d: d.ask(method, good(method, d, *ALL))


def _event(event: worker.RunEvent) -> Move:
    return lambda d: d.event(event, 3)


LIFE: Final[dict[str, Move]] = {
    "initialize": _ask("initialize"),
    "started": lambda d: d.done(STARTED, 1),
    "create": _ask("session.create"),
    "created": lambda d: d.done(attached(), 2),
    "turn.start": _ask("turn.start"),
    "appended": _event(worker.InputAppended("in1", "h2")),
    "delta": _event(worker.Delta("m1", "hé", 0)),
    "started tool": _event(worker.ActivityChanged("a1", "tool", "started", "read", "x")),
    "card": _event(worker.CardShown("a1", {"title": "t"}, None)),
    "asked": lambda d: d.event(approval(d), 3),
    "status": _ask("status"),
    "allowed": _ask("approval.answer"),
    "called": lambda d: d.event(call(d), 3),
    "result": _ask("client.tool.result"),
    "ended tool": _event(worker.ActivityChanged("a1", "tool", "completed", "read", "x")),
    "last card": _event(worker.CardShown("a1", {"title": "t"}, "success")),
    "part 0": _event(worker.Reconcile("m1", 0, "hé", False, False)),
    "part 1": _event(worker.Reconcile("m1", 1, "llo", True, False)),
    "note": _event(worker.Note("hint", "x")),
    "completed": lambda d: d.done(worker.TurnEnded("completed", revision="h3"), 3),
    "gone": lambda d: d.gone(3),
    "page": _ask("history.page"),
    "read": lambda d: d.done(worker.Read(READS["history.page"]), 4),
    "shutdown": _ask("shutdown"),
    "cleaned": lambda d: d.cleaned(),
}


def live(d: Driver, first: int = 0, last: int = len(LIFE)) -> Driver:
    """Do some of it, in order."""
    for move in list(LIFE.values())[first:last]:
        move(d)
    return d
