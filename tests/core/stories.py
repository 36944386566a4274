"""Stories as text: what is given at the margin, all that comes of it indented below.

::

    > q1 turn.cancel {"run_id": "x"}   a request; its params are the usual ones of the method, with these changed
    >> a status | b status             several requests in one write
    raw {]                             one line as it stands; ``bytes x`` without its end, ``oversize`` 65,537 bytes
    ~ delta m1 hi                      a message of the worker that was started last; ``~2 gone`` of job 2
    + 2000                             so many milliseconds pass
    pipe 0                             the pipe takes so many bytes more; ``pipe all``
    eof, broken, cleaned               what they say
    retain 4096                        so many ids have been used
    ready CAPABILITIES, attach, turn, executing    a way to the usual places, not compared

``A`` stands for the id of the approval that ``ask`` asks for, ``C`` for that of ``call``.
Frames are written ``< id code`` (``ok`` for a result) and ``* event details``, commands ``! Name fields``.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from localagent.core import worker
from localagent.protocol import results
from localagent.protocol.codes import Code
from tests.kit.core_driver import STARTED, Driver, Out, attached, listed, request

from .asking import ALL, APPROVAL, CALL, approval, call, catalog, good, retain, selected

HISTORY: Final = results.HistoryPage(complete=True, entries=(), next_cursor=None, revision="h1", session_id="s1")
CARD: Final = {"title": "t"}
WORDS: Final[Mapping[str, Callable[..., worker.LastWord]]] = {
    "started": lambda: STARTED,
    "start-failed": lambda code: worker.StartFailed(Code(code)),
    "created": lambda session="s1": attached(session),
    "opened": lambda session="s2": attached(session, durable=True, revision="h9"),
    "listed": lambda revision="l1": listed(revision),
    "cataloged": lambda revision="c1": catalog(revision),
    "read": lambda: worker.Read(HISTORY, worker.Traced("history", worker.Effect.LAST_PAGE)),
    "refreshed": lambda revision: worker.Read(
        results.Refreshed(
            catalog_error=None, catalog_revision=revision, outcome="refreshed", provider="p1", reason=None
        ),
        worker.Traced("catalog", worker.Effect.REVISED, revision),
    ),
    "selected": lambda history="h5": selected(None if history == "-" else history),
    "refused": lambda code, snapshot=None, effect="CHANGED": worker.OperationFailed(
        Code(code), worker.Traced(snapshot, worker.Effect[effect]) if snapshot else None
    ),
    "stopped-op": lambda: worker.OperationCancelled(),
    "completed": lambda revision=None: worker.TurnEnded("completed", revision=revision),
    "failed": lambda code=None: worker.TurnEnded("failed", Code(code) if code else None),
    "stopped": lambda revision=None: worker.TurnEnded("stopped", revision=revision),
}
EVENTS: Final[Mapping[str, Callable[..., worker.RunEvent]]] = {
    "appended": lambda: worker.InputAppended("in1", "h2"),
    "input-failed": lambda: worker.InputFailed(),
    "append-failed": lambda: worker.AppendFailed("disk"),
    "delta": lambda message="m1", part="0": worker.Delta(message, "hi", int(part)),
    "part": lambda message="m1", part="0": worker.Reconcile(message, int(part), "hi", False, False),
    "last": lambda message="m1", part="0": worker.Reconcile(message, int(part), "hi", True, False),
    "activity": lambda state="started", name="a1": worker.ActivityChanged(name, "tool", state, "read", "x"),
    "card": lambda outcome=None: worker.CardShown("a1", CARD, outcome),
    "note": lambda: worker.Note("hint", "x"),
    "call-cancelled": lambda id_: worker.CallCancelled(id_),
}
Asked = Mapping[str, Callable[[Driver], worker.RunEvent]]
ASKED: Final[Asked] = {"ask": lambda d: approval(d), "call": lambda d: call(d)}


def play(story: str) -> Driver:
    """Run a story and compare; the driver as it stands at the end."""
    d = Driver()
    got: list[str] | None = None
    expected: list[str] = []
    where = ""
    for short in [*story.strip("\n").splitlines(), "end"]:
        line = re.sub(r"\b[AC]\b", lambda found: {"A": APPROVAL, "C": CALL}[found[0]], short)
        if line.startswith(" "):
            expected.append(line.strip())
            continue
        assert got is None or [where, *got] == [where, *expected]
        where, expected, got = line, [], None
        if line and line != "end":
            out = give(d, line)
            got = out.short() if out else None
    return d


def give(d: Driver, line: str) -> Out | None:
    """Give one input; None where the story does not look at what comes of it."""
    verb, _, rest = line.partition(" ")
    if verb.startswith("~"):
        return _say(d, int(verb[1:] or d.job), *rest.split())
    match verb, rest.split(maxsplit=2):
        case ">", words:
            return d.send(_request(d, *words))
        case ">>", _:
            return d.send(b"".join(_request(d, *each.split(maxsplit=2)) for each in rest.split("|")))
        case "oversize", []:
            return d.send(b"x" * 65_537)
        case "raw", _:
            return d.send(rest.encode() + b"\n")
        case "bytes", _:
            return d.send(rest.encode())
        case "retain", [count]:
            retain(d, int(count))
        case "+", [ms]:
            return d.wait(float(ms))
        case "pipe", [room]:
            return d.take(None if room == "all" else int(room))
        case (("eof" | "cleaned"), []):
            out: Out = getattr(d, verb)()
            return out
        case "broken", []:
            return d.breaks()
        case "ready", _:
            d.ready(*(ALL if rest == "all" else rest.split()))
        case (("attach" | "turn" | "executing"), []):
            getattr(d, verb)()
        case _:
            raise AssertionError(f"no such line: {line}")
    return None


def _request(d: Driver, id_: str, method: str, changed: str = "{}") -> bytes:
    params = {**good(method, d, *d.connection.facts.negotiated), **json.loads(changed)}
    return request(id_, method, params)


def _say(d: Driver, job: int, what: str, *details: str) -> Out:
    if what == "gone":
        return d.gone(job)
    if what == "undeliverable":
        return d.undeliverable(job)
    if what in WORDS:
        return d.done(WORDS[what](*details), job)
    return d.event(ASKED[what](d) if what in ASKED else EVENTS[what](*details), job)
