"""Predicates of the rules about where a backend says that it stands: what was negotiated, status, selection.

A ``status`` may tell what an operation has brought before the answer of that operation comes (ENV-26).
"""

from statemachines.connection import ConnectionState
from statemachines.persistence import PersistenceState
from statemachines.run import ACTIVE, RunState
from statemachines.witness.ledger import ATTACHES, BRINGS, Asked, Data, Ledger
from statemachines.witness.shapes import DESCRIPTORS, STARTUP_CODES, TOOL_LIMITS
from statemachines.witness.view import View


def described(v: View) -> bool:
    """Of the extensions whose descriptor is known; of others nothing is said (EXT-OP-02, BASE-OP-46)."""
    given = v.data.get("extensions", {})
    if not isinstance(given, dict) or set(given) & set(DESCRIPTORS) != set(DESCRIPTORS) & v.negotiated:
        return False
    known = [(DESCRIPTORS[name], each) for name, each in given.items() if name in DESCRIPTORS]
    return all(isinstance(each, dict) and fixed.items() <= each.items() for fixed, each in known)


def registered(v: View) -> bool:
    """``client_tools`` is what was registered; whether it has more limits is CT-OP-03."""
    if "client.tools" not in v.negotiated:
        return "client_tools" not in v.data
    given = v.data.get("client_tools")
    limits = given.get("limits") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(limits, dict):
        return False
    return given.get("tools") == list(v.tools) and TOOL_LIMITS.items() <= limits.items()


def registered_alike(v: View) -> bool:
    """The descriptor says the same, under whatever keys (CT-OP-02). Whether they are there is another rule's matter."""
    given, extensions = v.data.get("client_tools"), v.data.get("extensions")
    ours = extensions.get("client.tools") if isinstance(extensions, dict) else None
    if given is None or not registered(v) or not isinstance(ours, dict):
        return True
    told = [ours, *ours.values()]
    limited = any(isinstance(each, dict) and given["limits"].items() <= each.items() for each in told)
    return limited and given["tools"] in told


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


def fresh_selection(v: View) -> bool:
    """The selection revision is the current one, or one that may have come just now."""
    told, ledger = v.data.get("selection"), v.ledger
    if told is None:
        return True
    if told["revision"] in {*ledger.outdated, ledger.replaced}:
        return False
    return told["revision"] == ledger.selection or not ledger.settled or _may_rotate(v)


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


def permits(each: Data) -> bool:
    """Without known controls nothing but ``default`` (BASE-OP-138)."""
    permitted: list[str] = each["permitted_efforts"]
    nothing_known = [["default"], []] if each["effort_support"] == "unsupported" else [["default"]]
    return bool(each["effort_support"] == "supported") or permitted in nothing_known


def effective(v: View) -> bool:
    """An effort with supported controls alone; null then, too, for a saved request not permitted (BASE-OP-140)."""
    told = v.data.get("selection")
    if told is None:
        return True
    supported = told["effort_support"] == "supported"
    if told["effective_effort"] is not None:
        return bool(supported)
    return not supported or told["requested_effort"] not in told["permitted_efforts"]
