"""Predicates of the rules about pages, runs and cards: what holds of a frame, and what it shows at all.

A page is judged with the entry before its first, where that is known; what a run has said is in the ledger.
"""

from collections.abc import Callable

from statemachines.client_call import ClientCallState
from statemachines.witness.ledger import Data, entries_of
from statemachines.witness.shapes import LIMITS, size_of
from statemachines.witness.view import View


def always(v: View) -> bool:
    """Each of these frames shows it."""
    return True


def never(v: View) -> bool:
    """A frame can break it; one that does not shows nothing."""
    return False


def continued(before: Data | None, entry: Data) -> bool:
    """An entry goes on with the message before it, which was not at its end."""
    return before is not None and not before["last_part"]


def contiguous(before: Data | None, entry: Data) -> bool:
    """An entry is the next part of the message before it, or one of another message; how that begins is not asked."""
    if before is None:
        return True
    same = bool(entry["message_id"] == before["message_id"])
    return same and entry["part"] == before["part"] + 1 if continued(before, entry) else not same


def first_of_tool(entry: Data) -> bool:
    """An entry of history is the first part of a tool."""
    return bool(entry["kind"] == "activity" and entry["part"] == 0)


def saved(entry: Data) -> bool:
    """The card of an entry, if it has one, is one that was saved."""
    card = entry.get("tool_card")
    return card is None or (
        (card["origin"], card["state"], card["revision"]) == ("saved", "finished", 0)
        and card["card_id"] == card["activity_id"] == entry["message_id"]
    )


def ascending(v: View, *keys: str, strictly: bool = True) -> bool:
    """Entries are in the order of these keys, by their bytes; not strictly: some may be equal."""

    def order(entry: Data) -> list[bytes]:
        return [entry[key].encode() for key in keys]

    pairs = [(order(before), order(entry)) for before, entry in v.joints if before is not None]
    return all(before < entry or (before == entry and not strictly) for before, entry in pairs)


def several(v: View) -> bool:
    """There is an order to be seen: an entry with one before it, maybe on the page before."""
    return any(before is not None for before, _ in v.joints)


def few(v: View) -> bool:
    """There are no more entries than were asked for."""
    limit = v.params.get("limit")
    return len(entries_of(v.data)) <= (limit if isinstance(limit, int) else 100)


def attached(v: View) -> list[Data]:
    """The attached session, where it is among the entries."""
    return [entry for entry in v.data["sessions"] if entry["session_id"] == v.ledger.session]


def verified(v: View, entry: Data) -> bool:
    """Notice and eligibility go together; the attached session is available all the same (BASE-OP-132)."""
    told, ours = bool(entry["notices"]), entry["session_id"] == v.ledger.session
    return {"available": not told or ours, "cwd_unverified": told}.get(entry["eligibility"], True)


def decided(card: Data) -> bool:
    """A card tells a decision of protection."""
    return bool(card["metadata"]["public_protection"]["decision"] != "not_reported")


def kept(v: View) -> bool:
    """A card that was finished has kept its changes and its decision."""
    last = v.shown
    if last is None or last["state"] == "running" or v.card["state"] == "running":
        return True  # running again, or another outcome, is the card machine's matter
    kept = last["changes"] in ("unknown", v.card["changes"])
    return kept and (decided(v.card) or not decided(last))


def same_call(v: View) -> bool:
    """A cancellation names the call as it was made."""
    call = v.run.calls.get(v.data["call_id"], {})
    return all(call.get(key, v.data[key]) == v.data[key] for key in ("task_id", "subagent_id"))


def pending(v: View) -> int:
    """Without those whose result was sent: its answer may come later than the next call."""
    sent = {f"client_call:{each.name('call_id')}" for each in v.ledger.waiting if each.method == "client.tool.result"}
    return sum(state is ClientCallState.PUBLISHED for name, state in v.world.items() if name not in sent)


def timeout(v: View) -> int:
    """That of the effective descriptor."""
    told: int = v.tools.get(v.data["name"], {}).get("timeout_ms", 30000)
    return told


def revised(v: View) -> bool:
    """A failed input append may leave the revision as it was (BASE-OP-184)."""
    told, unstored = v.data["revision"], v.data["persistence"] == "not_started"
    return told not in v.ledger.issued or (unstored and told == v.ledger.snapshot("history").revision)


def terminal_code(v: View) -> bool:
    """The code fits the outcome."""
    outcome, code = v.data["outcome"], v.data["error_code"]
    return code is None if outcome == "completed" else outcome == "cancelled" or code is not None


def given_up(v: View) -> bool:
    """The remaining reconciliations could not be delivered (FLOW-13, D86)."""
    return bool(v.data["error_code"] == "output_unavailable")


def beyond_bounds(v: View) -> bool:
    """The run has passed a bound of its content."""
    return bool(v.data["error_code"] == "content_limit")


def told_whole(v: View) -> bool:
    """In a run that did not complete a segment before the last may be told as the whole that it is (BASE-OP-166)."""
    if v.data["outcome"] == "completed":
        return not any(each.partial for each in v.run.segments.values())
    return given_up(v) or v.run.partial in (None, True)


def reconciled(v: View) -> bool:
    """No text was shown that no reconciliation has replaced."""
    return given_up(v) or not any(each.owing or each.part >= 0 for each in v.run.segments.values())


def other_kind(v: View) -> bool:
    """An event behind an answer, or an answer behind an event."""
    return v.ledger.told not in ("", kind_of(v.data))


def kind_of(frame: Data) -> str:
    """An answer or an event."""
    return "event" if "event" in frame else "answer"


def limited(v: View, prefix: str) -> bool:
    """The bounds whose names begin so are there, with their values."""
    due = {key: value for key, value in LIMITS.items() if key.startswith(prefix)}
    return bool(due.items() <= v.data["limits"].items())


def negotiated(name: str) -> Callable[[View], bool]:
    """A name was negotiated."""
    return lambda v: name in v.negotiated


def continues(v: View) -> bool:
    """The request went on from a cursor."""
    return v.asked.continues


def chosen(support: str, v: View) -> bool:
    """There is a selection, of a model with such controls."""
    told = v.data.get("selection")
    return told is not None and told["effort_support"] == support


def within(v: View) -> bool:
    """The result is no larger than a page may be."""
    return size_of(v.data) <= 32768
