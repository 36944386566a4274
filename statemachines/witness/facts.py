"""Facts: the factual checks of admission, judged by what a trace shows.

The backend judges them by its data; an observer has the frames alone. So each answer is True, False or None: None
where frames do not show it, and then the backend's word is taken for it, and said to be. Structural checks are looked
up in the world. The order of checks is free except where the contract fixes it (D20 to D30), so a refusal is right
when any check with its code fails, whatever stands before it.
"""

import math
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from statemachines import admission as a
from statemachines.admission import LINE, METHODS, STARTUP_CODE, Admission, Check, Fires
from statemachines.approval import ApprovalState
from statemachines.attachment import HELD
from statemachines.client_call import ClientCallState
from statemachines.connection import ConnectionState
from statemachines.operation import OperationState
from statemachines.run import ACTIVE, FINISHING, OVER
from statemachines.snapshot import CURRENT
from statemachines.witness.ledger import ENVELOPE, Asked
from statemachines.witness.shapes import (
    EXTENSIONS,
    SHAPES,
    SIXTEEN,
    STARTUP_CODES,
    TURN_CODES,
    TYPES,
    misshapen,
    size_of,
)
from statemachines.witness.view import View

Verdict = bool | None
Fact = Callable[[View], Verdict]


def _all(*verdicts: Verdict) -> Verdict:
    """False if any is, else None if any is."""
    return False if False in verdicts else None if None in verdicts else True


def _unless(odd: bool) -> Verdict:
    """True, save that frames do not tell when something is odd."""
    return None if odd else True


def _walk(value: Any) -> tuple[int, bool]:
    """Depth in containers, and whether something stands in it that may be refused or not (D06, D07)."""
    depth, odd, level = 0, False, [value]
    while level:
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += [*each, *each.values()]
            elif isinstance(each, list):
                inner += each
            elif isinstance(each, str):
                odd = odd or any("\ud800" <= char <= "\udfff" for char in each)
            elif isinstance(each, float):
                odd = odd or not math.isfinite(each)
        depth += any(isinstance(each, dict | list) for each in level)
        level = inner
    return depth, odd


def _structure(v: View) -> Verdict:
    return None if v.asked.line.broken else _walk(v.asked.value)[0] <= 32


def _envelope(v: View) -> Verdict:
    frame = v.asked.frame
    if v.asked.line.broken or v.asked.line.repeated == "top" or set(frame) != ENVELOPE:
        return False
    version = frame["version"]
    sound = isinstance(frame["protocol"], str) and type(version) is int and 0 <= version < 2**32
    return _unless(not sound or not isinstance(frame["params"], dict) or _walk(frame)[1])  # D09, D15, D06, D07


def _ours(v: View) -> Verdict:
    version = v.asked.frame.get("version")
    return v.asked.frame.get("protocol") == "magi-code.local-agent" and type(version) is int and version == 1


def _params(v: View) -> Verdict:
    params, method = v.asked.frame.get("params"), v.asked.method
    if next(misshapen(f"params/{method}", params, "params"), None) is not None:
        return False
    free = method in ("initialize", "client.tool.result")  # where a key may repeat in free JSON (D13)
    if v.asked.line.repeated and not free:
        return False
    return _all(_unless(bool(v.asked.line.repeated)), _MORE[method](v) if method in _MORE else True)


def _paging(v: View) -> Verdict:
    return (v.asked.name("revision") is None) == (v.asked.name("cursor") is None)


def _names(v: View) -> Verdict:
    names = v.params["required_capabilities"]
    most = 18 if "client.tools" in names else 16
    return _all(len(set(names)) <= most, _unless(not names or len(names) > most))  # BASE-OP-73, BASE-OP-74


def _safe(*keys: str) -> Fact:
    """Control characters are unsafe; what else is, only the backend knows."""
    return lambda v: _unless(not all(str(v.params[key]).isprintable() for key in keys))


def _payload(v: View) -> Verdict:
    structured = size_of(v.params["structured"]) if "structured" in v.params else 0
    fits = len(v.params["text"].encode("utf-8", "surrogatepass")) + structured <= 32768
    return _all(fits, _unless(not TYPES["UUID"](v.params["call_id"])))


_MORE: Final[Mapping[str, Fact]] = {
    "initialize": _names,
    "session.list": _paging,
    "session.discover": _paging,
    "model.catalog": _paging,
    "model.catalog.status": _paging,
    "model.refresh": lambda _: None,  # whether the provider is configured (EXT-REFRESH-04)
    "selection.set": _safe("provider", "model"),
    "client.tool.result": _payload,
}
"""What params must be beside their shape."""


def _supported(v: View) -> Verdict:
    names = v.params.get("required_capabilities")
    asked = {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
    unsure = EXTENSIONS | SIXTEEN - v.ledger.claimed
    return _all(asked <= SIXTEEN | EXTENSIONS, _unless(bool(asked & unsure)))


def _registry(v: View) -> Verdict:
    names, tools = v.params.get("required_capabilities"), v.params.get("client_tools")
    due = isinstance(names, list) and "client.tools" in names
    return _all(due == ("client_tools" in v.params), _unless(bool(tools)))


def _known(v: View) -> Verdict:
    known = v.asked.method in METHODS
    return None if known and v.asked.method in SIXTEEN - v.ledger.claimed else known


def _same_revision(v: View) -> Verdict:
    snapshot, revision = v.ledger.snapshot("history"), v.asked.name("revision")
    if revision == v.ledger.acknowledged != snapshot.revision:
        return None  # D64
    return revision == snapshot.revision and v.asked.name("cursor") in snapshot.cursors


def _same_selection(v: View) -> Verdict:
    if v.asked.name("selection_revision") in v.ledger.outdated:
        return False
    return v.asked.name("selection_revision") == v.ledger.selection if v.ledger.settled else None


def _same_pages(v: View) -> Verdict:
    return v.asked.name("revision") == v.snapshot.revision and v.asked.name("cursor") in v.snapshot.cursors


def _same_run(v: View) -> Verdict:
    return (v.params.get("session_id"), v.params.get("run_id")) in v.run.known


def _same_call(v: View) -> Verdict:
    call = v.run.calls.get(str(v.params.get("call_id")))
    keys = ("session_id", "run_id", "task_id", "subagent_id")
    return (
        call is not None
        and v.params.get("instance_id") == v.ledger.instance
        and all(v.params.get(key) == call.get(key) for key in keys)
    )


FACTS: Final[Mapping[str, Fact]] = {
    a.SIZE.name: lambda v: v.asked.line.size <= 65536,
    a.STRUCTURE.name: _structure,
    a.ENVELOPE.name: _envelope,
    a.GRAMMAR.name: lambda v: all(TYPES["ID"](v.asked.frame.get(key)) for key in ("id", "method")),
    a.PROTOCOL.name: _ours,
    a.NEW_ID.name: lambda v: v.asked.fresh,
    a.QUOTA.name: lambda v: v.asked.within,
    a.KNOWN.name: _known,
    a.PARAMS.name: _params,
    a.SUPPORTED.name: _supported,
    a.REGISTRY.name: _registry,
    a.NEGOTIATED.name: lambda v: v.asked.method in v.negotiated,
    a.CALLS_NEGOTIATED.name: lambda v: "client.tools" in v.negotiated,
    a.SAME_SESSION.name: lambda v: v.params.get("session_id") == v.ledger.session,
    a.SAME_REVISION.name: _same_revision,
    a.SAME_SELECTION.name: _same_selection,
    a.SAME_CATALOG.name: lambda v: v.params.get("catalog_revision") == v.ledger.snapshot("catalog").revision,
    a.SAME_LISTING.name: _same_pages,
    a.SAME_PAGES.name: _same_pages,
    a.SAME_RUN.name: _same_run,
    a.SAME_APPROVAL.name: lambda v: _same_run(v) and v.asked.name("approval_id") in v.run.approvals,
    a.SAME_REQUEST.name: lambda v: v.work is not None and v.params.get("request_id") == v.work.id,
    a.SAME_CALL.name: _same_call,
    a.PROTECTED.name: lambda _: None,  # redaction is the backend's (CT-103, CT-104)
}
"""Factual check -> its answer."""


class Also(NamedTuple):
    """A refusal accepted beside our order of checks: these codes, where ``applies`` is not False."""

    methods: str
    codes: str
    by: str
    applies: Fact


_WORK: Final = " ".join(each.method for each in METHODS.values() if a.WORKER_FREE in each.checks)
_PAGES: Final = "session.list session.discover model.catalog model.catalog.status"


def _cleaning(v: View) -> Verdict:
    idle = v.world["run"] in OVER and v.world["operation"] is OperationState.IDLE
    return None if idle and v.ledger.worked else False


def _elsewhere(v: View) -> Verdict:
    return v.params.get("session_id") != v.ledger.session


def _detached(v: View) -> Verdict:
    return v.world["attachment"] not in HELD


ALSO: Final = (
    Also("", "unsupported_method", "BASE-OP-30", lambda v: not TYPES["ID"](v.asked.frame.get("method", "x"))),
    Also("", f"not_initialized {' '.join(STARTUP_CODES)}", "D14 BASE-OP-37",
         lambda v: v.asked.formed and v.asked.method not in METHODS
         and v.world["connection"] is not ConnectionState.READY),
    Also("model.catalog selection.set model.refresh", "busy", "D23 EXT-OP-41",
         lambda v: v.world["connection"] is ConnectionState.STARTING),
    Also(f"{_WORK} turn.start", "busy", "BASE-OP-105 BASE-OP-180", _cleaning),
    Also("session.list model.catalog selection.set", "unsupported_capability", "BASE-OP-77",
         lambda v: v.asked.method not in v.negotiated),
    Also("session.open", "session_missing session_invalid", "BASE-OP-95", lambda v: _params(v) is False),
    Also(f"{_PAGES} history.page", "stale_revision stale_catalog", "BASE-OP-108", lambda v: _params(v) is False),
    Also(_PAGES, "invalid_params", "D31", lambda v: v.asked.continues and not _same_pages(v)),
    Also("session.discover", "invalid_params", "EXT-OP-10 EXT-OP-11",
         lambda v: v.asked.continues and v.world["discover"] not in CURRENT),
    Also("turn.start", "content_limit", "BASE-OP-151", lambda v: _params(v) is False),
    Also("turn.start", " ".join(TURN_CODES - {"session_missing", "stale_session"}), "BASE-OP-154",
         lambda v: None if v.world["connection"] is ConnectionState.READY else False),
    Also("turn.cancel", "stale_run", "BASE-OP-158", lambda v: v.world["run"] in FINISHING),
    Also("turn.cancel approval.answer", "stale_session", "BASE-OP-160 BASE-OP-161", _elsewhere),
    Also("turn.cancel approval.answer", "session_missing", "BASE-OP-160 BASE-OP-161", _detached),
    Also("approval.answer", "stale_run", "BASE-OP-161", lambda v: not _same_run(v) or v.world["run"] not in ACTIVE),
    Also("turn.cancel approval.answer", "invalid_params", "BASE-OP-162",
         lambda v: any(key in v.params and not TYPES["UUID"](v.params[key]) for key in ("run_id", "approval_id"))),
)  # fmt: skip
"""The accepted sets of the decisions and open points, as far as they go beyond the lists of :data:`METHODS`."""


class Refusal(NamedTuple):
    """One ground for a refusal; ``certain`` when what was seen shows it."""

    why: str
    clauses: tuple[str, ...]
    certain: bool
    fires: Fires | None = None


def admission_of(asked: Asked) -> Admission | None:
    """The list of the method, that of a continuation where it has one of its own; None for no known request."""
    later = METHODS.get(f"{asked.method}/continuation") if asked.continues else None
    return later or METHODS.get(asked.method)


def instance_of(machine: str, asked: Asked) -> str:
    """The instance of a machine that a request means: the one it names where there are many."""
    key = {"approval": "approval_id", "client_call": "call_id"}.get(machine)
    return f"{machine}:{asked.params.get(key)}" if key else machine


def verdict(check: Check, view: View) -> Verdict:
    """The answer of one check: looked up, judged by what was seen, or None."""
    if not check.structural:
        return FACTS[check.name](view)
    named: Mapping[str, Enum] = {
        "approval": view.world.get(instance_of("approval", view.asked), ApprovalState.NONE),
        "client_call": view.world.get(instance_of("client_call", view.asked), ClientCallState.NONE),
    }
    return check.passes(ChainMap(dict(named), view.world))


def checks(asked: Asked) -> Iterator[tuple[Check, Fires | None]]:
    """The checks of a line, then those of its method as far as it has one."""
    yield from LINE[1:]  # whether anybody listens is asked before
    admission = admission_of(asked)
    for check in admission.checks if admission else ():
        yield check, None


def obstacle(view: View) -> Check | None:
    """The first check that an admitted request would have failed."""
    return next((check for check, _ in checks(view.asked) if verdict(check, view) is False), None)


def refusable(view: View) -> bool:
    """Whether some check may fail."""
    return any(verdict(check, view) is not True for check, _ in checks(view.asked))


def refusals(view: View, code: str) -> Iterator[Refusal]:
    """Every ground on which the request may be refused with this code, the certain ones first."""
    grounds = [
        Refusal(f"not {check.name}", check.clauses, answer is False, fires)
        for check, fires in checks(view.asked)
        if _says(check, view, code) and (answer := verdict(check, view)) is not True
    ]
    grounds += [
        Refusal("also accepted", tuple(also.by.split()), answer is True)
        for also in ALSO
        if code in also.codes.split()
        and (not also.methods or view.asked.method in also.methods.split())
        and (answer := also.applies(view)) is not False
    ]
    yield from sorted(grounds, key=lambda ground: not ground.certain)


def grounds_of(asked: Asked, ground: Refusal) -> tuple[str, ...]:
    """The clauses that a refusal bears out; none where the backend's word was taken for it."""
    if not ground.certain:
        return ()
    if ground.why != f"not {a.PARAMS.name}":
        return ground.clauses
    shape = f"params/{asked.method}"
    faults = misshapen(shape, asked.frame.get("params"), "params") if shape in SHAPES else ()
    return (*ground.clauses, *(clause for fault in faults for clause in fault.clauses))


def _says(check: Check, view: View, code: str) -> bool:
    if check.code == STARTUP_CODE:
        return code in ({view.ledger.failed} if view.ledger.failed else STARTUP_CODES)
    return check.code == code
