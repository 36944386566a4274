"""Predicates of the rules about where a backend says that it stands: what was negotiated, status, selection.

A ``status`` may tell what an operation has brought before the answer of that operation comes (ENV-26).
"""

from collections.abc import Callable, Collection
from typing import Final

from statemachines.connection import ConnectionState
from statemachines.persistence import PersistenceState
from statemachines.run import ACTIVE, RunState
from statemachines.witness.ledger import ATTACHES, BRINGS, Asked, Data, Ledger
from statemachines.witness.shapes import DESCRIPTORS, SIXTEEN, STARTUP_CODES, TOOL_LIMITS
from statemachines.witness.view import View

NEGOTIATED: Final = {
    "session.discover": "EXT-DISC-23",
    "model.refresh": "EXT-REFRESH-53",
    "tool.cards": "TC-20",
    "client.tools": "CT-23",
}
"""Extension -> the clause by which its descriptor is there where it was negotiated, and nowhere else. Of others nothing
is said (EXT-OP-02, BASE-OP-46).
"""
DESCRIBED: Final = {
    "session.discover": "EXT-DISC-24",
    "model.refresh": "EXT-REFRESH-54",
    "tool.cards": "TC-20",
    "client.tools": "CT-24",
}
"""Extension -> the clause that says what its descriptor holds."""


def listed(v: View) -> bool:
    """The sixteen names and those that were negotiated; whether all sixteen are there is another rule's matter."""
    names = v.data["capabilities"]
    return sorted(names) == sorted(SIXTEEN & {*names} | v.negotiated - SIXTEEN)


def extended(name: str) -> Callable[[View], bool]:
    """A descriptor is there where its extension was negotiated, and nowhere else."""
    return lambda v: (name in _extensions(v)) == (name in v.negotiated)


def _extensions(v: View) -> Data:
    given = v.data.get("extensions", {})
    return given if isinstance(given, dict) else {}


def described(name: str, v: View) -> bool:
    """A descriptor, where it is there, holds what the contract says; whether it holds more is open (EXT-OP-02)."""
    given = _extensions(v).get(name, DESCRIPTORS[name])
    return isinstance(given, dict) and DESCRIPTORS[name].items() <= given.items()


def registered(v: View) -> bool:
    """``client_tools`` is what was registered, in whatever order; whether it has more limits is CT-OP-03."""
    if "client.tools" not in v.negotiated:
        return "client_tools" not in v.data
    given = v.data.get("client_tools")
    limits = given.get("limits") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(limits, dict):
        return False
    names = given.get("tools")
    known = isinstance(names, list) and sorted(map(str, names)) == sorted(v.tools)
    return known and TOOL_LIMITS.items() <= limits.items()


def registered_in_order(v: View) -> bool:
    """The names come in the order of the registration."""
    return not registered(v) or "client_tools" not in v.data or v.data["client_tools"]["tools"] == list(v.tools)


def registered_alike(key: str, v: View) -> bool:
    """The descriptor says the same, under whatever keys (CT-OP-02). Whether they are there is another rule's matter."""
    given, ours = v.data.get("client_tools"), _extensions(v).get("client.tools")
    if given is None or not registered(v) or not isinstance(ours, dict):
        return True
    if key == "tools":
        return given["tools"] in ours.values()
    return any(isinstance(each, dict) and given["limits"].items() <= each.items() for each in (ours, *ours.values()))


PHASES: Final = {"starting": "STATUS-04", "ready": "STATUS-06", "failed": "STATUS-18"}
"""What may be told of a connection -> the clause that says how."""


def ready(v: View) -> bool:
    """The status says that startup is complete."""
    return v.data["state"] in ("idle", "running")


def phase(at: str, v: View) -> bool:
    """Where the connection is; while startup is not answered yet, what is told of it (ENV-25, BASE-OP-84)."""
    connection, told = v.world["connection"], v.data["state"]
    if connection is ConnectionState.STARTING:
        return at == {"idle": "ready", "failed": "failed"}.get(told, "starting")
    return at == ("failed" if connection is ConnectionState.FAILED else "ready")


def state(v: View) -> bool:
    """That of the connection; startup may be over before it is answered (ENV-25, BASE-OP-84)."""
    told, connection = v.data["state"], v.world["connection"]
    if connection is ConnectionState.STARTING:
        return told == "idle" or (told in ("starting", "failed") and not v.ledger.ready)
    if connection is ConnectionState.FAILED:
        return told == "failed" and not v.ledger.ready
    return told in ("idle", "running")


def attached(v: View) -> bool:
    """The session of the last attachment, or of one whose answer is still to come (ENV-26)."""
    told, ledger = v.data["session_id"], v.ledger
    pending = ledger.before(v.asked, ATTACHES)
    if ledger.arrived:
        return bool(told == ledger.arrived and pending)
    ahead = told is not None and any(_may_bring(each, told, ledger) for each in pending)
    return told == (ledger.session or None) or ahead


def _may_bring(asked: Asked, session: str, ledger: Ledger) -> bool:
    return session == asked.name("session_id") if asked.method == "session.open" else session not in ledger.durable


def readiness(v: View) -> bool:
    """It fits the state, and the code with which startup failed."""
    told, given = v.data["state"], v.data["readiness"]
    if told == "failed":
        return given in ({v.ledger.failed} if v.ledger.failed else STARTUP_CODES)
    return bool(given == ("initializing" if told == "starting" else "ready"))


def running(v: View) -> bool:
    """State and id are those of the run."""
    if v.data["state"] == "running":  # for a moment also when it is over (BASE-OP-90)
        ours = v.data["run_id"] in [run for _, run in v.run.known]
        return v.world["run"] in (*ACTIVE, RunState.FINISHED) and ours
    return v.world["run"] not in ACTIVE and v.data["run_id"] is None


def replaced(v: View, by: Collection[str]) -> bool:
    """A selection is told, and one of these methods has replaced a selection revision."""
    return v.data.get("selection") is not None and any(each in by for each in v.ledger.outdated.values())


def renewed(v: View, by: Collection[str]) -> bool:
    """The selection revision is none that one of these methods has replaced."""
    told = v.data.get("selection")
    return told is None or v.ledger.outdated.get(told["revision"]) not in by


def steady(v: View) -> bool:
    """The selection revision is the current one, or one that may have come just now."""
    told, ledger = v.data.get("selection"), v.ledger
    if told is None or told["revision"] in ledger.outdated:
        return True
    if told["revision"] == ledger.replaced:
        return False
    return told["revision"] == ledger.selection or not ledger.settled or _may_rotate(v)


def kept(v: View) -> bool:
    """A selection is told, and nothing was seen that may have changed it since it was told last."""
    return v.data.get("selection") is not None and v.ledger.settled and not _may_rotate(v)


def _may_rotate(v: View) -> bool:
    """A run that has not stored its input yet may have seen that efforts have changed (SEL-26, SEL-28)."""
    admitted = v.world["run"] in ACTIVE and v.world["persistence"] is PersistenceState.UNSTORED
    return admitted or bool(v.ledger.before(v.asked, BRINGS))


def selected_anew(v: View) -> bool:
    """A fresh revision, or the same for the same choice, when nothing was written (BASE-OP-144)."""
    told, ledger = v.data["selection"], v.ledger
    if told["revision"] in {*ledger.outdated, ledger.replaced}:
        return False
    if told["revision"] != ledger.selection or ledger.replaced is not None:
        return True
    return all(told[key] == ledger.chosen.get(key) for key in ("provider", "model", "requested_effort"))


def _offers(v: View, support: str) -> list[list[str]]:
    """What efforts are permitted wherever controls are known so far."""
    told = v.data["choices"] if "choices" in v.data else filter(None, [v.data.get("selection")])
    return [each["permitted_efforts"] for each in told if each["effort_support"] == support]


PERMITTED: Final = (
    ("SEL-16", "default is not permitted, although controls are unknown",
     lambda v: all("default" in each for each in _offers(v, "unknown")), lambda v: bool(_offers(v, "unknown"))),
    ("SEL-17", "efforts are permitted, although controls are unknown",
     lambda v: all({*each} <= {"default"} for each in _offers(v, "unknown")), lambda v: bool(_offers(v, "unknown"))),
    ("BASE-OP-138", "efforts are permitted, although controls are unsupported",
     lambda v: all(each in (["default"], []) for each in _offers(v, "unsupported")),
     lambda v: bool(_offers(v, "unsupported"))),
)  # fmt: skip
"""Clause, fault, and the predicates of a rule."""


def effective(v: View) -> bool:
    """An effort with supported controls alone; null then, too, for a saved request not permitted (BASE-OP-140)."""
    told = v.data.get("selection")
    if told is None:
        return True
    supported = told["effort_support"] == "supported"
    if told["effective_effort"] is not None:
        return bool(supported)
    return not supported or told["requested_effort"] not in told["permitted_efforts"]


def authentic(v: View, relevant: bool) -> bool:
    """Of providers in use it is told whether one is authenticated, of others that nobody has looked."""
    looked = [each["authentication"] != "not_checked" for each in v.data["providers"] if each["relevant"] is relevant]
    return all(each is relevant for each in looked)


def relevance(v: View, relevant: bool) -> bool:
    """There is such a provider."""
    return any(each["relevant"] is relevant for each in v.data["providers"])
