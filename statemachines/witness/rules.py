"""Rules: what must hold between a frame and the frames before it.

A rule names the frames it is about, the clauses that demand it, the fault in words, and a predicate that is true when
all is well. It is asked before its frame is taken down in the ledger, of frames whose shape is sound; ``world`` is
the one after the frame.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from statemachines.attachment import AttachmentState
from statemachines.client_call import ClientCallState
from statemachines.witness import standing
from statemachines.witness.ledger import Data, entries_of
from statemachines.witness.shapes import LIMITS, SIXTEEN, Fault, size_of
from statemachines.witness.view import View


class Rule(NamedTuple):
    """``on`` names frames, several with spaces.

    ``frame``, ``event``, ``event/NAME``, ``event/NAME/CODE`` for those with that error code, ``result/METHOD``.
    """

    on: str
    by: str
    fault: str
    holds: Callable[[View], bool]


def _contiguous(before: Data | None, entry: Data) -> bool:
    if before is None or before["last_part"]:
        return bool(entry["part"] == 0 and (before is None or entry["message_id"] != before["message_id"]))
    return bool(entry["message_id"] == before["message_id"] and entry["part"] == before["part"] + 1)


def _carded(v: View, entry: Data) -> bool:
    due = "tool.cards" in v.negotiated and entry["kind"] == "activity" and entry["part"] == 0
    card = entry.get("tool_card")
    saved = card is None or (
        (card["origin"], card["state"], card["revision"]) == ("saved", "finished", 0)
        and card["card_id"] == card["activity_id"] == entry["message_id"]
    )
    return ("tool_card" in entry) == due and saved


def _ascending(v: View, *keys: str) -> bool:
    def order(entry: Data) -> list[bytes]:
        return [entry[key].encode() for key in keys]

    return all(before is None or order(before) < order(entry) for before, entry in v.joints)


def _few(v: View) -> bool:
    limit = v.params.get("limit")
    return len(entries_of(v.data)) <= (limit if isinstance(limit, int) else 100)


def _listed(v: View, entry: Data) -> bool:
    told = bool(entry["notices"])
    attached = entry["session_id"] == v.ledger.session
    lazy = attached and v.world["attachment"] is AttachmentState.LAZY
    fits = {"available": not told or attached, "cwd_unverified": told, "busy": not attached}  # BASE-OP-132
    return fits[entry["eligibility"]] and not lazy


def _decided(card: Data) -> bool:
    return bool(card["metadata"]["public_protection"]["decision"] != "not_reported")


def _parent(card: Data) -> bool:
    has = card["parent_activity_id"] is not None
    return {"root": not has, "available": has}.get(card["parent_state"], True)


def _kept(v: View) -> bool:
    last = v.shown
    if last is None or last["state"] == "running" or v.card["state"] == "running":
        return True  # running again, or another outcome, is the card machine's matter
    kept = last["changes"] in ("unknown", v.card["changes"])
    return kept and (_decided(v.card) or not _decided(last))


def _same_call(v: View) -> bool:
    call = v.run.calls.get(v.data["call_id"], {})
    return all(call.get(key, v.data[key]) == v.data[key] for key in ("task_id", "subagent_id"))


def _pending(v: View) -> int:
    """Without those whose result was sent: its answer may come later than the next call."""
    sent = {f"client_call:{each.name('call_id')}" for each in v.ledger.waiting if each.method == "client.tool.result"}
    return sum(state is ClientCallState.PUBLISHED for name, state in v.world.items() if name not in sent)


def _timeout(v: View) -> int:
    """That of the effective descriptor."""
    told: int = v.tools.get(v.data["name"], {}).get("timeout_ms", 30000)
    return told


def _revised(v: View) -> bool:
    """A failed input append may leave the revision as it was (BASE-OP-184)."""
    told, unstored = v.data["revision"], v.data["persistence"] == "not_started"
    return told not in v.ledger.issued or (unstored and told == v.ledger.snapshot("history").revision)


def _terminal_code(v: View) -> bool:
    outcome, code = v.data["outcome"], v.data["error_code"]
    return code is None if outcome == "completed" else outcome == "cancelled" or code is not None


def _given_up(v: View) -> bool:
    """The remaining reconciliations could not be delivered (FLOW-13, D86)."""
    return bool(v.data["error_code"] == "output_unavailable")


def _beyond_bounds(v: View) -> bool:
    return bool(v.data["error_code"] == "content_limit")


def _told_whole(v: View) -> bool:
    """In a run that did not complete a segment before the last may be told as the whole that it is (BASE-OP-166)."""
    if v.data["outcome"] == "completed":
        return not any(each.partial for each in v.run.segments.values())
    return _given_up(v) or v.run.partial in (None, True)


def _reconciled(v: View) -> bool:
    return _given_up(v) or not any(each.owing or each.part >= 0 for each in v.run.segments.values())


_LISTS: Final = "result/session.list result/session.discover"
_CATALOGS: Final = "result/model.catalog result/model.catalog.status"
_CALLS: Final = "event/client.tool.call event/client.tool.cancel"

RULES: Final = (
    # the envelope
    Rule("frame", "ENV-18", "protocol or version is another",
         lambda v: (v.data["protocol"], v.data["version"]) == ("magi-code.local-agent", 1)),
    Rule("frame", "ENV-33", "instance_id is not that of the frames before",
         lambda v: v.data["instance_id"] == (v.ledger.instance or v.data["instance_id"])),
    Rule("frame", "ENV-28", "the first seq is not 1", lambda v: v.ledger.seq > 0 or v.data["seq"] == 1),
    Rule("frame", "ENV-29 ENV-30", "seq does not increase", lambda v: v.data["seq"] > v.ledger.seq),
    # initialize and status
    Rule("result/initialize", "NEG-02", "capabilities absent", lambda v: v.ledger.claimed <= {*v.data["capabilities"]}),
    Rule("result/initialize", "NEG-03 TC-21 CT-21", "capabilities hold others than what was negotiated",
         lambda v: sorted(c := v.data["capabilities"]) == sorted(SIXTEEN & {*c} | v.negotiated - SIXTEEN)),
    Rule("result/initialize", "NEG-28 NEG-29 NEG-30 TC-22", "limits lack a named bound or give it another value",
         lambda v: LIMITS.items() <= v.data["limits"].items()),
    Rule("result/initialize", "EXT-DISC-23 EXT-REFRESH-53 TC-20 CT-23", "extensions are not those negotiated",
         standing.described),
    Rule("result/initialize", "CT-22 CT-27", "client_tools does not repeat the registration", standing.registered),
    Rule("result/initialize", "CT-25 CT-26", "the descriptor does not say the same as client_tools",
         standing.registered_alike),
    Rule("result/status", "STATUS-04 STATUS-06 STATUS-18", "state is not that of the connection", standing.state),
    Rule("result/status", "STATUS-04 STATUS-06 STATUS-18", "readiness does not fit the state", standing.readiness),
    Rule("result/status", "STATUS-14 STATUS-15", "state and run_id are not those of the run", standing.running),
    Rule("result/status", "STATUS-16", "session_id is not that of the last completed attachment", standing.attached),
    Rule("result/status", "STATUS-05", "a selection is told while startup is pending",
         lambda v: v.data["state"] != "starting" or not any(v.data[k] for k in ("provider", "model", "context_id"))),
    Rule("result/status", "STATUS-11", "context_id is missing",
         lambda v: v.data["context_id"] is not None or v.data["state"] not in ("idle", "running")),
    Rule("result/status", "ENV-36", "context_id changed",
         lambda v: v.data["context_id"] in (None, v.ledger.context or v.data["context_id"])),
    Rule("result/status", "SEL-02 SEL-03", "selection is not there when ready, or there when not",
         lambda v: "selection" not in v.data
         or (v.data["selection"] is not None) == (v.data["state"] in ("idle", "running"))),
    Rule("result/status", "SEL-21 SEL-22 SEL-24", "the selection revision is not the current one",
         standing.fresh_selection),
    Rule("result/status result/selection.set", "SEL-13 SEL-14 SEL-15", "effective_effort does not fit effort_support",
         standing.effective),
    Rule("result/status result/selection.set", "SEL-16 SEL-17", "efforts are permitted without known controls",
         lambda v: v.data.get("selection") is None or standing.permits(v.data["selection"])),
    # sessions and history
    Rule("result/session.create result/session.open", "HIST-47 HIST-48", "the revision was issued before",
         lambda v: v.data["revision"] not in v.ledger.issued),
    Rule("result/session.create", "STATUS-16", "a status told another session ahead",
         lambda v: v.data["session_id"] == (v.ledger.arrived or v.data["session_id"])),
    Rule("result/session.open", "SESS-31", "another session was opened",
         lambda v: v.data["session_id"] == v.params.get("session_id")),
    Rule("result/session.open", "SESS-24 SESS-26", "a stored session is told as lazy",
         lambda v: v.data["durable"] or v.data["session_id"] not in v.ledger.durable),
    Rule("result/history.page", "HIST-04 HIST-07", "the page is of another session or revision",
         lambda v: all(v.data[key] == v.params.get(key) for key in ("session_id", "revision"))),
    Rule("result/history.page", "HIST-13", "it is complete and has a next cursor",
         lambda v: not v.data["complete"] or v.data["next_cursor"] is None),
    Rule("result/history.page", "HIST-26 HIST-27", "the parts of a message are not contiguous",
         lambda v: all(_contiguous(before, entry) for before, entry in v.joints)),
    Rule("result/history.page", "HIST-27", "the last page ends inside a message",
         lambda v: v.data["next_cursor"] is not None or all(entry["last_part"] for _, entry in v.joints[-1:])),
    Rule("result/history.page", "TC-234 TC-235 TC-236 TC-241", "tool_card is not where it is due, or not saved",
         lambda v: all(_carded(v, entry) for entry in v.data["entries"])),
    Rule("result/history.page", "HIST-15 HIST-17 HIST-35 BASE-OP-117", "an entry is partial that cannot be",
         lambda v: all(not entry["partial"] or entry["kind"] in ("assistant", "activity", "diagnostic")
                       for entry in v.data["entries"])),
    Rule("result/history.page", "BOUND-16", "the page is too large", lambda v: size_of(v.data) <= 32768),
    Rule("result/history.page", "BOUND-17", "the page has too many entries", lambda v: len(v.data["entries"]) <= 100),
    # listings and catalogs
    Rule(f"result/session.list {_CATALOGS}", "LIST-56 CAT-45", "the page is of another revision",
         lambda v: not v.asked.continues or v.data["revision"] == v.params["revision"]),
    Rule("result/session.discover", "EXT-OP-08", "the revision changed within a scan",
         lambda v: not v.asked.continues or v.data["revision"] == v.params["revision"]),
    Rule(f"{_LISTS} {_CATALOGS}", "LIST-86 CAT-37 EXT-OP-04", "complete and next_cursor disagree",
         lambda v: v.data["complete"] == (v.data["next_cursor"] is None)),
    Rule(f"{_LISTS} {_CATALOGS}", "LIST-66 CAT-52 EXT-DISC-24", "the page is too large",
         lambda v: size_of(v.data) <= 32768),
    Rule(f"{_LISTS} {_CATALOGS}", "LIST-67 CAT-53 EXT-DISC-24", "the page has more entries than asked for", _few),
    Rule("result/session.list", "LIST-14", "entries are not in ascending order", lambda v: _ascending(v, "session_id")),
    Rule(_LISTS, "LIST-29 LIST-30 LIST-33 LIST-44", "eligibility does not fit the notice or the attachment",
         lambda v: all(_listed(v, entry) for entry in v.data["sessions"])),
    Rule("result/session.discover", "EXT-OP-04", "progress, recovery and next_cursor disagree",
         lambda v: (v.data["progress"] == "complete", v.data["recovery"] == "none")
         == (v.data["complete"], v.data["complete"])),
    Rule("result/session.discover", "EXT-DISC-41 EXT-DISC-44 EXT-OP-10", "a used or foreign cursor was continued",
         lambda v: not v.asked.continues
         or (v.params["revision"] == v.snapshot.revision and v.asked.name("cursor") in v.snapshot.cursors)),
    Rule(_CATALOGS, "CAT-21 CAT-22", "choices are not in ascending order",
         lambda v: _ascending(v, "provider", "model")),
    Rule(_CATALOGS, "CAT-49", "the revision was issued before",
         lambda v: v.asked.continues or v.data["revision"] not in v.ledger.issued),
    Rule(_CATALOGS, "SEL-16 SEL-17", "efforts are permitted without known controls",
         lambda v: all(standing.permits(choice) for choice in v.data["choices"])),
    Rule("result/model.catalog.status", "EXT-STATUS-10", "there are more than 32 providers",
         lambda v: len(v.data["providers"]) <= 32),
    Rule("result/model.catalog.status", "EXT-STATUS-25 EXT-STATUS-26", "authentication does not fit relevance",
         lambda v: all(each["relevant"] == (each["authentication"] != "not_checked") for each in v.data["providers"])),
    Rule("result/model.refresh", "EXT-REFRESH-15", "another provider was refreshed",
         lambda v: v.data["provider"] == v.params.get("provider")),
    Rule("result/model.refresh", "EXT-REFRESH-17 EXT-REFRESH-18", "reason does not fit the outcome",
         lambda v: (v.data["reason"] is None) == (v.data["outcome"] == "refreshed")),
    Rule("result/model.refresh", "EXT-REFRESH-46 EXT-REFRESH-47", "revision and error of the scan disagree",
         lambda v: (v.data["catalog_revision"] is None) == (v.data["catalog_error"] is not None)),
    Rule("result/operation.cancel", "EXT-CANCEL-09", "another request is named",
         lambda v: v.data["request_id"] == v.params.get("request_id")),
    Rule("result/selection.set", "SEL-78 SEL-82", "another session or catalog is named",
         lambda v: all(v.data[key] == v.params.get(key) for key in ("session_id", "catalog_revision"))),
    Rule("result/selection.set", "SEL-64", "another model was selected",
         lambda v: all(v.data["selection"][key] in (None, v.params.get(key)) for key in ("provider", "model"))),
    Rule("result/selection.set", "SEL-22", "the selection revision is not fresh", standing.selected_anew),
    Rule("result/selection.set", "SEL-90", "history_revision does not fit the notices",
         lambda v: (v.data["history_revision"] is None) == ("history_unavailable" in v.data["notices"])),
    # turns
    Rule("result/turn.start", "TURN-11", "the run id was used before", lambda v: v.data["run_id"] not in v.ledger.runs),
    Rule("event", "EVT-01 CT-78", "session_id or run_id is not that of the run",
         lambda v: not v.run.known or (v.data["session_id"], v.data["run_id"]) in v.run.known),
    Rule("event/message.delta", "EVT-17", "the part number does not increase",
         lambda v: v.data["part"] > v.segment.delta),
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
         lambda v: v.data["expires_in_ms"] <= 60000),
    Rule("event/run.finished", "BASE-OP-155 ERR-45", "error_code does not fit the outcome", _terminal_code),
    Rule("event/run.finished/content_limit", "EVT-29 D61",
         "a run beyond its bounds does not say that its text is partial", _told_whole),
    Rule("event/run.finished", "D61", "the last reconciliation's partial does not fit the outcome",
         lambda v: _beyond_bounds(v) or _told_whole(v)),
    Rule("event/run.finished", "EVT-47 EVT-26", "a segment with text was not reconciled", _reconciled),
    Rule("event/run.finished", "EVT-52", "the revision was issued before", _revised),
    # tool cards
    Rule("event/tool.card", "TC-18", "tool.cards was not negotiated", lambda v: "tool.cards" in v.negotiated),
    Rule("event/tool.card", "TC-156", "a snapshot has one part, 0", lambda v: v.data["part"] == 0),
    Rule("event/tool.card", "TC-37", "the schema is not 1", lambda v: v.card["schema_version"] == 1),
    Rule("event/tool.card", "TC-46 TC-157", "the three ids differ",
         lambda v: v.data["activity_id"] == v.card["card_id"] == v.card["activity_id"]),
    Rule("event/tool.card", "TC-77 TC-157", "origin is not live", lambda v: v.card["origin"] == "live"),
    Rule("event/tool.card", "TC-59", "outcome does not fit the state",
         lambda v: (v.card["outcome"] is None) == (v.card["state"] == "running")),
    Rule("event/tool.card", "TC-53 TC-54", "the parent does not fit parent_state", lambda v: _parent(v.card)),
    Rule("event/tool.card", "TC-85", "the reason does not fit the availability",
         lambda v: (v.card["detail"]["reason"] is None) == (v.card["detail"]["availability"] in ("complete", "none"))),
    Rule("event/tool.card", "TC-75 TC-170", "the revision does not begin at 0 or does not grow",
         lambda v: v.card["revision"] > v.shown["revision"] if v.shown else v.card["revision"] == 0),
    Rule("event/tool.card", "TC-176", "a finished card changed its changes or its decision", _kept),
    Rule("event/tool.card", "TC-99", "a known decision is no longer reported",
         lambda v: v.shown is None or _decided(v.card) or not _decided(v.shown)),
    Rule("event/tool.card", "TC-104 TC-132", "it has more than 16 blocks, or two omissions of one subject",
         lambda v: len(v.card["blocks"]) <= 16
         and len({each["subject"] for each in v.card["omissions"]}) == len(v.card["omissions"])),
    Rule("event/tool.card", "TC-195", "the card is too large", lambda v: size_of(v.card) <= 16384),
    # client tools
    Rule(_CALLS, "NEG-34", "client.tools was not negotiated", lambda v: "client.tools" in v.negotiated),
    Rule(_CALLS, "CT-79 CT-OP-21", "one of task_id and subagent_id is null, the other is not",
         lambda v: (v.data["task_id"] is None) == (v.data["subagent_id"] is None)),
    Rule("event/client.tool.call", "CT-87", "the tool is not registered",
         lambda v: "client.tools" not in v.negotiated or v.data["name"] in v.tools),
    Rule("event/client.tool.call", "CT-39", "timeout_ms is longer than that of the descriptor",
         lambda v: v.data["timeout_ms"] <= _timeout(v)),
    Rule("event/client.tool.call", "CT-OP-20", "timeout_ms is what remains of that of the descriptor",
         lambda v: v.data["timeout_ms"] >= _timeout(v)),
    Rule("event/client.tool.call", "CT-65", "the arguments are too large",
         lambda v: size_of(v.data["arguments"]) <= 16384),
    Rule("event/client.tool.call", "CT-85", "the call id was used before",
         lambda v: v.data["call_id"] not in v.ledger.calls),
    Rule("event/client.tool.call", "CT-71", "more than 16 calls are pending", lambda v: _pending(v) <= 16),
    Rule("event/client.tool.cancel", "CT-124", "the identity is not that of the call", _same_call),
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
