"""Rules: what must hold between a frame and the frames before it.

A rule names the frames it is about, the clauses that demand it, each by itself, the fault in words, and a predicate
that is true when all is well. Of many rules most frames show nothing: ``shows`` says where a frame that is all right
shows that the clauses hold. A rule is asked before its frame is taken down in the ledger, of frames whose shape is
sound; ``world`` is the one after the frame.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from statemachines.attachment import AttachmentState
from statemachines.run import ACTIVE
from statemachines.witness import predicates as p
from statemachines.witness import standing
from statemachines.witness.ledger import ATTACHES
from statemachines.witness.shapes import SIXTEEN, Fault, size_of
from statemachines.witness.view import View


class Rule(NamedTuple):
    """``on`` names frames, several with spaces.

    ``frame``, ``event``, ``event/NAME``, ``event/NAME/CODE`` for those with that error code, ``result/METHOD``.
    """

    on: str
    by: str
    fault: str
    holds: Callable[[View], bool]
    shows: Callable[[View], bool] = p.always


def _where(on: str, by: str, fault: str, applies: Callable[[View], bool], holds: Callable[[View], bool]) -> Rule:
    """A rule about those of these frames to which it applies; the others neither break nor show it."""
    return Rule(on, by, fault, lambda v: not applies(v) or holds(v), applies)


SELECTS: Final = frozenset({"selection.set"})
_LISTS: Final = "result/session.list result/session.discover"
_CATALOGS: Final = "result/model.catalog result/model.catalog.status"
_CALLS: Final = "event/client.tool.call event/client.tool.cancel"

RULES: Final = (
    # the envelope
    Rule("frame", "ENV-18", "protocol or version is another",
         lambda v: (v.data["protocol"], v.data["version"]) == ("magi-code.local-agent", 1)),
    Rule("frame", "ENV-33", "instance_id is not that of the frames before",
         lambda v: v.data["instance_id"] == (v.ledger.instance or v.data["instance_id"])),
    _where("frame", "ENV-28", "the first seq is not 1", lambda v: v.ledger.seq == 0, lambda v: v.data["seq"] == 1),
    Rule("frame", "ENV-29", "seq does not increase", lambda v: v.data["seq"] > v.ledger.seq,
         lambda v: v.ledger.seq > 0),
    _where("frame", "ENV-30", "answers and events are counted apart", p.other_kind,
           lambda v: v.data["seq"] > v.ledger.seq),
    # initialize and status
    Rule("result/initialize", "NEG-02", "capabilities absent", lambda v: v.ledger.claimed <= {*v.data["capabilities"]}),
    _where("result/initialize", "NEG-03", "capabilities hold others than the sixteen",
           lambda v: not v.negotiated - SIXTEEN, standing.listed),
    _where("result/initialize", "TC-21", "capabilities are not the sixteen and what was negotiated",
           p.negotiated("tool.cards"), standing.listed),
    Rule("result/initialize", "CT-21", "client.tools is not where it was negotiated, or where it was not",
         lambda v: ("client.tools" in v.data["capabilities"]) == ("client.tools" in v.negotiated)),
    Rule("result/initialize", "NEG-28", "limits lack a bound of discovery or give it another value",
         lambda v: p.limited(v, "discovery_")),
    Rule("result/initialize", "NEG-29", "limits lack a bound of the catalog or give it another value",
         lambda v: p.limited(v, "catalog_")),
    Rule("result/initialize", "NEG-30", "limits lack selection_append_bytes or give it another value",
         lambda v: p.limited(v, "selection_")),
    _where("result/initialize", "TC-22", "limits are others than on a base connection",
           p.negotiated("tool.cards"), lambda v: p.limited(v, "")),
    *(Rule("result/initialize", clause, f"the descriptor of {name} is not where it was negotiated, or where it was not",
           standing.extended(name)) for name, clause in standing.NEGOTIATED.items()),
    *(Rule("result/initialize", clause, f"the descriptor of {name} has not its values",
           partial(standing.described, name), p.negotiated(name)) for name, clause in standing.DESCRIBED.items()),
    Rule("result/initialize", "CT-22", "client_tools does not repeat the registration", standing.registered),
    Rule("result/initialize", "CT-27", "client_tools names them in another order", standing.registered_in_order),
    *(Rule("result/initialize", clause, f"the descriptor has not the {key} of client_tools",
           partial(standing.registered_alike, key)) for clause, key in (("CT-25", "tools"), ("CT-26", "limits"))),
    *(_where("result/status", clause, fault, partial(standing.phase, at), holds)
      for fault, holds in (("state is not that of the connection", standing.state),
                           ("readiness does not fit the state", standing.readiness))
      for at, clause in standing.PHASES.items()),
    _where("result/status", "STATUS-14", "there is no run, and one is told",
           lambda v: v.world["run"] not in ACTIVE, standing.running),
    _where("result/status", "STATUS-15", "there is a run, and not it is told",
           lambda v: v.world["run"] in ACTIVE, standing.running),
    Rule("result/status", "STATUS-16", "session_id is not that of the last completed attachment", standing.attached),
    _where("result/status", "STATUS-05", "a selection is told while startup is pending",
           lambda v: v.data["state"] == "starting",
           lambda v: not any(v.data[k] for k in ("provider", "model", "context_id"))),
    _where("result/status", "STATUS-11", "context_id is missing", standing.ready,
           lambda v: v.data["context_id"] is not None),
    Rule("result/status", "ENV-36", "context_id changed",
         lambda v: v.data["context_id"] in (None, v.ledger.context or v.data["context_id"]),
         lambda v: bool(v.ledger.context) and v.data["context_id"] is not None),
    _where("result/status", "SEL-02", "there is a selection, although it is not ready",
           lambda v: not standing.ready(v), lambda v: v.data.get("selection") is None),
    _where("result/status", "SEL-03", "there is no selection, although it is ready",
           lambda v: standing.ready(v) and "selection" in v.data, lambda v: v.data["selection"] is not None),
    Rule("result/status", "SEL-21", "the selection revision is one from before an attachment",
         partial(standing.renewed, by=ATTACHES), partial(standing.replaced, by=ATTACHES)),
    Rule("result/status", "SEL-22", "the selection revision is one from before another selection",
         partial(standing.renewed, by=SELECTS), partial(standing.replaced, by=SELECTS)),
    Rule("result/status", "SEL-24", "the selection revision is another, although nothing was to change it",
         standing.steady, standing.kept),
    *(_where("result/status result/selection.set", clause, f"{what} is in effect, although controls are {support}",
             partial(p.chosen, support), standing.effective)
      for clause, what, support in (("SEL-13", "no effort", "supported"), ("SEL-14", "an effort", "unsupported"),
                                    ("SEL-15", "an effort", "unknown"))),
    *(Rule(f"result/status result/selection.set {_CATALOGS}", *permitted) for permitted in standing.PERMITTED),
    # sessions and history
    Rule("result/session.create", "HIST-04", "the revision was issued before",
         lambda v: v.data["revision"] not in v.ledger.issued, lambda v: bool(v.ledger.issued)),
    Rule("result/session.open", "HIST-47", "the revision was issued before",
         lambda v: v.data["revision"] not in v.ledger.issued, lambda v: bool(v.ledger.issued)),
    Rule("result/session.create", "STATUS-16", "a status told another session ahead",
         lambda v: v.data["session_id"] == (v.ledger.arrived or v.data["session_id"])),
    Rule("result/session.open", "SESS-31", "another session was opened",
         lambda v: v.data["session_id"] == v.params.get("session_id")),
    Rule("result/session.open", "SESS-24 SESS-26", "a stored session is told as lazy",
         lambda v: v.data["durable"] or v.data["session_id"] not in v.ledger.durable),
    Rule("result/history.page", "HIST-07", "the page is of another session",
         lambda v: v.data["session_id"] == v.params.get("session_id")),
    Rule("result/history.page", "HIST-04", "the page is of another revision",
         lambda v: v.data["revision"] == v.params.get("revision")),
    Rule("result/history.page", "HIST-13", "it is complete and has a next cursor",
         lambda v: not v.data["complete"] or v.data["next_cursor"] is None),
    Rule("result/history.page", "HIST-26", "the first part of a message is not 0",
         lambda v: all(p.continued(before, entry) or entry["part"] == 0 for before, entry in v.joints),
         lambda v: not all(p.continued(before, entry) for before, entry in v.joints)),
    Rule("result/history.page", "HIST-27", "the parts of a message are not contiguous",
         lambda v: all(p.contiguous(before, entry) for before, entry in v.joints), lambda v: bool(v.joints)),
    Rule("result/history.page", "HIST-27", "the last page ends inside a message",
         lambda v: v.data["next_cursor"] is not None or all(entry["last_part"] for _, entry in v.joints[-1:])),
    Rule("result/history.page", "TC-234", "tool_card was not negotiated",
         lambda v: "tool.cards" in v.negotiated or not any("tool_card" in entry for entry in v.data["entries"])),
    Rule("result/history.page", "TC-235", "tool_card is missing", lambda v: "tool.cards" not in v.negotiated
         or all("tool_card" in entry for entry in v.data["entries"] if p.first_of_tool(entry)),
         lambda v: any(map(p.first_of_tool, v.data["entries"]))),
    Rule("result/history.page", "TC-236", "tool_card is where it must not be",
         lambda v: "tool.cards" not in v.negotiated
         or not any("tool_card" in entry for entry in v.data["entries"] if not p.first_of_tool(entry)),
         lambda v: bool(v.data["entries"])),
    Rule("result/history.page", "TC-241", "the card is none that was saved",
         lambda v: all(map(p.saved, v.data["entries"])),
         lambda v: any(entry.get("tool_card") for entry in v.data["entries"])),
    Rule("result/history.page", "BASE-OP-117", "an entry is partial that cannot be",
         lambda v: all(not entry["partial"] or entry["kind"] in ("assistant", "activity", "diagnostic")
                       for entry in v.data["entries"])),
    Rule("result/history.page", "BOUND-16", "the page is too large", p.within),
    Rule("result/history.page", "BOUND-17", "the page has too many entries", lambda v: len(v.data["entries"]) <= 100),
    # listings and catalogs
    *(_where(on, clause, "the page is of another revision",
             p.continues, lambda v: v.data["revision"] == v.params["revision"])
      for on, clause in (("result/session.list", "LIST-05"), (_CATALOGS, "CAT-05"),
                         ("result/session.discover", "EXT-OP-08"))),
    *(Rule(on, clause, "complete and next_cursor disagree",
           lambda v: v.data["complete"] == (v.data["next_cursor"] is None))
      for on, clause in (("result/session.list", "LIST-86"), (_CATALOGS, "CAT-37"),
                         ("result/session.discover", "EXT-OP-04"))),
    Rule("result/session.list", "LIST-66", "the page is too large", p.within),
    Rule("result/model.catalog", "CAT-52", "the page is too large", p.within),
    Rule("result/model.catalog.status", "EXT-STATUS-13", "the page is too large", p.within),
    Rule("result/session.discover", "EXT-DISC-28", "the page is too large", p.within, p.never),
    Rule("result/session.list", "LIST-67", "the page has more entries than asked for", p.few),
    Rule(_CATALOGS, "CAT-53", "the page has more entries than asked for", p.few),
    Rule("result/session.discover", "EXT-DISC-28", "the page has more entries than asked for", p.few, p.never),
    Rule("result/session.list", "LIST-14", "entries are not in ascending order",
         lambda v: p.ascending(v, "session_id"), p.several),
    Rule(_LISTS, "LIST-29 LIST-30", "eligibility does not fit the notice",
         lambda v: all(p.verified(v, entry) for entry in v.data["sessions"]),
         lambda v: any(entry["notices"] for entry in v.data["sessions"])),
    _where(_LISTS, "LIST-33", "a session without a file is listed",
           lambda v: v.world["attachment"] is AttachmentState.LAZY, lambda v: not p.attached(v)),
    Rule(_LISTS, "LIST-44", "the attached session is told as busy",
         lambda v: all(entry["eligibility"] != "busy" for entry in p.attached(v)), lambda v: bool(p.attached(v))),
    Rule("result/session.discover", "EXT-OP-04", "progress, recovery and next_cursor disagree",
         lambda v: (v.data["progress"] == "complete", v.data["recovery"] == "none")
         == (v.data["complete"], v.data["complete"])),
    Rule("result/session.discover", "EXT-DISC-41 EXT-DISC-44 EXT-OP-10", "a used or foreign cursor was continued",
         lambda v: not v.asked.continues
         or (v.params["revision"] == v.snapshot.revision and v.asked.name("cursor") in v.snapshot.cursors), p.never),
    Rule(_CATALOGS, "CAT-21", "choices are not in ascending order",
         lambda v: p.ascending(v, "provider", "model", strictly=False), p.several),
    Rule(_CATALOGS, "CAT-22", "a choice is there twice",
         lambda v: not p.ascending(v, "provider", "model", strictly=False) or p.ascending(v, "provider", "model"),
         p.never),
    Rule(_CATALOGS, "CAT-49", "the revision was issued before",
         lambda v: v.asked.continues or v.data["revision"] not in v.ledger.issued,
         lambda v: not v.asked.continues and bool(v.snapshot.revision)),
    Rule("result/model.catalog.status", "EXT-STATUS-10", "there are more than 32 providers",
         lambda v: len(v.data["providers"]) <= 32),
    *(Rule("result/model.catalog.status", clause, "authentication does not fit relevance",
           partial(standing.authentic, relevant=relevant), partial(standing.relevance, relevant=relevant))
      for clause, relevant in (("EXT-STATUS-25", True), ("EXT-STATUS-26", False))),
    Rule("result/model.refresh", "EXT-REFRESH-15", "another provider was refreshed",
         lambda v: v.data["provider"] == v.params.get("provider")),
    _where("result/model.refresh", "EXT-REFRESH-17", "it succeeded, and there is a reason",
           lambda v: v.data["outcome"] == "refreshed", lambda v: v.data["reason"] is None),
    _where("result/model.refresh", "EXT-REFRESH-18", "it did not succeed, and there is no reason",
           lambda v: v.data["outcome"] != "refreshed", lambda v: v.data["reason"] is not None),
    _where("result/model.refresh", "EXT-REFRESH-46", "the scan has failed, and there is a revision",
           lambda v: v.data["catalog_error"] is not None, lambda v: v.data["catalog_revision"] is None),
    Rule("result/model.refresh", "EXT-REFRESH-47", "the scan has failed, and there is no error",
         lambda v: v.data["catalog_error"] is not None or v.data["catalog_revision"] is not None,
         lambda v: v.data["catalog_error"] is not None),
    Rule("result/operation.cancel", "EXT-CANCEL-09", "another request is named",
         lambda v: v.data["request_id"] == v.params.get("request_id")),
    Rule("result/selection.set", "SEL-78", "another session is named",
         lambda v: v.data["session_id"] == v.params.get("session_id")),
    Rule("result/selection.set", "SEL-82", "another catalog is named",
         lambda v: v.data["catalog_revision"] == v.params.get("catalog_revision")),
    Rule("result/selection.set", "SEL-64", "another model was selected",
         lambda v: all(v.data["selection"][key] in (None, v.params.get(key)) for key in ("provider", "model"))),
    Rule("result/selection.set", "SEL-22", "the selection revision is not fresh", standing.selected_anew),
    Rule("result/selection.set", "SEL-90", "history_revision does not fit the notices",
         lambda v: (v.data["history_revision"] is None) == ("history_unavailable" in v.data["notices"]),
         lambda v: "history_unavailable" in v.data["notices"]),
    # turns
    Rule("result/turn.start", "TURN-11", "the run id was used before", lambda v: v.data["run_id"] not in v.ledger.runs),
    *(_where(on, clause, "session_id or run_id is not that of the run",
             lambda v: bool(v.run.known), lambda v: (v.data["session_id"], v.data["run_id"]) in v.run.known)
      for on, clause in (("event", "EVT-01"), (_CALLS, "CT-78"))),
    Rule("event/message.delta", "EVT-17", "the part number does not increase",
         lambda v: v.data["part"] > v.segment.delta, lambda v: v.segment.delta >= 0),
    Rule("event/message.reconcile", "EVT-23 EVT-25", "the parts are not contiguous from 0",
         lambda v: v.data["part"] == v.segment.part + 1),
    Rule("event/message.reconcile", "BASE-OP-166", "partial differs from the part before",
         lambda v: v.segment.part < 0 or v.data["partial"] == v.segment.partial),
    Rule("event/message.reconcile", "BOUND-12", "the run's content passes 8 MiB",
         lambda v: sum(each.size for each in v.run.segments.values()) <= 8388608),
    Rule("event/message.reconcile event/message.delta", "BOUND-13", "the run has more than 512 segments",
         lambda v: len({*v.run.segments, v.data["message_id"]}) <= 512),
    Rule("event/activity", "BOUND-14", "the run has more than 4,096 activities",
         lambda v: len({*v.run.activities, v.data["activity_id"]}) <= 4096),
    Rule("event/approval.requested", "BOUND-26", "it expires later than the bound",
         lambda v: v.data["expires_in_ms"] <= 60000, p.never),
    Rule("event/run.finished", "BASE-OP-155 ERR-45", "error_code does not fit the outcome", p.terminal_code),
    Rule("event/run.finished/content_limit", "EVT-29 D61",
         "a run beyond its bounds does not say that its text is partial", p.told_whole),
    Rule("event/run.finished", "D61", "the last reconciliation's partial does not fit the outcome",
         lambda v: p.beyond_bounds(v) or p.told_whole(v)),
    Rule("event/run.finished", "EVT-47 EVT-26", "a segment with text was not reconciled", p.reconciled,
         lambda v: bool(v.run.segments)),
    Rule("event/run.finished", "EVT-52 HIST-48", "the revision was issued before", p.revised,
         lambda v: v.data["revision"] is not None),
    # tool cards
    Rule("event/tool.card", "TC-18", "tool.cards was not negotiated", lambda v: "tool.cards" in v.negotiated),
    Rule("event/tool.card", "TC-156", "a snapshot has one part, 0", lambda v: v.data["part"] == 0),
    Rule("event/tool.card", "TC-37", "the schema is not 1", lambda v: v.card["schema_version"] == 1),
    Rule("event/tool.card", "TC-46 TC-157", "the three ids differ",
         lambda v: v.data["activity_id"] == v.card["card_id"] == v.card["activity_id"]),
    Rule("event/tool.card", "TC-77 TC-157", "origin is not live", lambda v: v.card["origin"] == "live"),
    Rule("event/tool.card", "TC-59", "outcome does not fit the state",
         lambda v: (v.card["outcome"] is None) == (v.card["state"] == "running")),
    _where("event/tool.card", "TC-53", "a root has a parent",
           lambda v: v.card["parent_state"] == "root", lambda v: v.card["parent_activity_id"] is None),
    _where("event/tool.card", "TC-54", "an available parent is not named",
           lambda v: v.card["parent_state"] == "available", lambda v: v.card["parent_activity_id"] is not None),
    Rule("event/tool.card", "TC-85", "the reason does not fit the availability",
         lambda v: (v.card["detail"]["reason"] is None) == (v.card["detail"]["availability"] in ("complete", "none"))),
    Rule("event/tool.card", "TC-75 TC-170", "the revision does not begin at 0 or does not grow",
         lambda v: v.card["revision"] > v.shown["revision"] if v.shown else v.card["revision"] == 0),
    Rule("event/tool.card", "TC-176", "a finished card changed its changes or its decision", p.kept,
         lambda v: v.shown is not None and v.shown["state"] != "running" and v.card["state"] != "running"),
    _where("event/tool.card", "TC-99", "a known decision is no longer reported",
           lambda v: v.shown is not None and p.decided(v.shown), lambda v: p.decided(v.card)),
    Rule("event/tool.card", "TC-104", "it has more than 16 blocks", lambda v: len(v.card["blocks"]) <= 16),
    Rule("event/tool.card", "TC-132", "there are two omissions of one subject",
         lambda v: len({each["subject"] for each in v.card["omissions"]}) == len(v.card["omissions"])),
    Rule("event/tool.card", "TC-195", "the card is too large", lambda v: size_of(v.card) <= 16384),
    # client tools
    Rule(_CALLS, "NEG-34", "client.tools was not negotiated", lambda v: "client.tools" in v.negotiated),
    Rule(_CALLS, "CT-79 CT-OP-21", "one of task_id and subagent_id is null, the other is not",
         lambda v: (v.data["task_id"] is None) == (v.data["subagent_id"] is None)),
    Rule("event/client.tool.call", "CT-87", "the tool is not registered",
         lambda v: "client.tools" not in v.negotiated or v.data["name"] in v.tools),
    Rule("event/client.tool.call", "CT-39", "timeout_ms is longer than that of the descriptor",
         lambda v: v.data["timeout_ms"] <= p.timeout(v)),
    Rule("event/client.tool.call", "CT-OP-20", "timeout_ms is what remains of that of the descriptor",
         lambda v: v.data["timeout_ms"] >= p.timeout(v)),
    Rule("event/client.tool.call", "CT-65", "the arguments are too large",
         lambda v: size_of(v.data["arguments"]) <= 16384),
    Rule("event/client.tool.call", "CT-85", "the call id was used before",
         lambda v: v.data["call_id"] not in v.ledger.calls),
    Rule("event/client.tool.call", "CT-71", "more than 16 calls are pending", lambda v: p.pending(v) <= 16),
    Rule("event/client.tool.cancel", "CT-124", "the identity is not that of the call", p.same_call),
)  # fmt: skip
"""Every rule, in the order in which a conversation meets them."""

_BY_KIND: Final[Mapping[str, tuple[Rule, ...]]] = {
    kind: tuple(rule for rule in RULES if kind in rule.on.split()) for kind in {k for r in RULES for k in r.on.split()}
}


def violations(kind: str, view: View) -> Iterator[Fault]:
    """The rules of a kind of frame that do not hold. The status inside an ``initialize`` result is a status, too."""
    yield from (Fault(rule.fault, tuple(rule.by.split())) for rule in _BY_KIND.get(kind, ()) if not rule.holds(view))
    if kind == "result/initialize":
        yield from violations("result/status", replace(view, data=view.data["status"]))


def shown(kind: str, view: View) -> Iterator[str]:
    """The clauses of the rules of which this frame shows something."""
    for rule in _BY_KIND.get(kind, ()):
        if rule.shows(view):
            yield from rule.by.split()
    if kind == "result/initialize":
        yield from shown("result/status", replace(view, data=view.data["status"]))
