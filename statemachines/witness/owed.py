"""What is owed: frames that rows have emitted and that were not seen yet, and which of them may come before which.

What a run tells keeps its order. Answers need not: a client tells them apart by their ids, so some may be overtaken by
what they cause, and the one of ``turn.start`` by those of later lines.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from statemachines.persistence import REPORTED
from statemachines.rows import KINDS, TERMINALS, Emit, Kind, Row
from statemachines.run import RunState
from statemachines.step import World
from statemachines.witness.frames import Told
from statemachines.witness.ledger import Asked

LATE: Final = frozenset({
    Emit.SHUTDOWN_RESULT, Emit.OPERATION_CANCEL_RESULT, Emit.TURN_CANCEL_RESULT, Emit.APPROVAL_ANSWER_RESULT,
    Emit.CLIENT_TOOL_RESULT_RESULT,
})  # fmt: skip
"""Answers that what they cause may overtake: BASE-OP-60, D44, EXT-OP-25; for ``turn.cancel`` see ``may_pass``."""
LATE_METHODS: Final = frozenset(
    {"shutdown", "operation.cancel", "turn.cancel", "approval.answer", "client.tool.result"}
)

_STORED: Final[Mapping[Any, str]] = REPORTED
_FAULTY_LINE: Final = frozenset({"invalid_frame", "invalid_request", "frame_too_large", "protocol_mismatch"})


class Owed(NamedTuple):
    """A frame that must still be seen: an emit of a row, or a refusal (no emit)."""

    emit: Emit | None
    names: frozenset[str]
    codes: frozenset[str]
    row: Row | None
    asked: Asked | None


def names_of(asked: Asked, code: str = "") -> frozenset[str]:
    """The ids an answer may bear: its own; null, or an echo, for a faulty line (D08, BASE-OP-27, BASE-OP-33)."""
    if not asked.formed:
        return frozenset({"", str(asked.frame.get("id", ""))})
    return frozenset({asked.id, ""} if code in _FAULTY_LINE else {asked.id})


def refusal(asked: Asked, code: str) -> Owed:
    """The refusal of a line."""
    return Owed(None, names_of(asked, code), frozenset({code}), None, asked)


def fits(item: Owed, told: Told, world: World) -> bool:
    """Whether the frame is the one that is owed. ``run.finished`` also tells the persistence."""
    if not item.names & told.names:
        return False
    if item.emit is Emit.INITIALIZE_CANCELLED and told.kind == "result":
        return True  # a startup that was ready before it saw the stop (BASE-OP-61)
    if told.code or item.codes:
        return told.code in item.codes and (item.emit is None or item.emit in told.emits)
    if item.emit not in told.emits or item.row is None:
        return False
    if item.emit in TERMINALS:
        given_up = item.row.source is RunState.FINISHING_UNDELIVERABLE
        stored = told.data.get("persistence") == _STORED[world["persistence"]]
        return stored and (not given_up or told.data.get("error_code") == "output_unavailable")
    return True  # a cancel event, too: which cause has which reason no clause says (CT-125, CT-OP-32)


def may_pass(earlier: Owed, item: Owed) -> bool:
    """Whether a frame may come before one that was owed earlier."""
    if earlier.emit in LATE:  # a cancelled run's terminal never precedes the acknowledgement (BASE-OP-181)
        return (earlier.emit, item.emit) != (Emit.TURN_CANCEL_RESULT, Emit.RUN_CANCELLED)
    if earlier.emit is Emit.TURN_START_RESULT:  # a turn is being admitted: answers may come, events not (EVT-03)
        return item.emit is None or KINDS[item.emit] is Kind.RESPONSE
    if earlier.emit is Emit.CLIENT_TOOL_CANCEL:  # that it precedes the terminal is a reading (CT-OP-23)
        return True
    return Emit.INITIALIZE_CANCELLED in (earlier.emit, item.emit)  # as with shutdown, in either order (D44)
