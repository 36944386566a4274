"""The admission matrix: each method in the states that a client can tell apart."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from statemachines.admission import CALLS_NEGOTIATED, METHODS, NEGOTIATED, UNINITIALIZED, matrix_code
from statemachines.approval import ApprovalState
from statemachines.attachment import AttachmentState
from statemachines.client_call import ClientCallState
from statemachines.connection import ConnectionState
from statemachines.operation import OperationState
from statemachines.registry import MACHINES
from statemachines.run import RunState
from statemachines.snapshot import SnapshotState

_SCANS: Final = dict.fromkeys(("list", "discover", "catalog"), SnapshotState.PAGING)
_READY: Final[dict[str, Enum]] = {"connection": ConnectionState.READY, **_SCANS}
_ATTACHED: Final[dict[str, Enum]] = {
    **_READY, "attachment": AttachmentState.DURABLE, "history": SnapshotState.PAGING,
}  # fmt: skip

COLUMNS: Final[Mapping[str, Mapping[str, Enum]]] = {
    "uninitialized": {"connection": ConnectionState.UNINITIALIZED},
    "starting": {"connection": ConnectionState.STARTING},
    "ready, idle": _READY,
    "ready, idle, attached": _ATTACHED,
    "ready, session worker": {**_ATTACHED, "operation": OperationState.WORKING_READ},
    "ready, run": {
        **_ATTACHED,
        "run": RunState.EXECUTING,
        "approval": ApprovalState.REQUESTED,
        "client_call": ClientCallState.PUBLISHED,
    },
    "failed": {"connection": ConnectionState.FAILED},
    "stopping": {"connection": ConnectionState.STOPPING},
}
"""Column -> the states that differ from the initial ones. Snapshots, approval and call are taken as current."""


_NEGOTIATION: Final = (NEGOTIATED, CALLS_NEGOTIATED)


def matrix() -> dict[str, dict[str, str]]:
    """Method -> column -> ``accepted``, the code of the refusal, or ``none`` for no answer.

    Facts are taken to be in favour of the request, save that nothing is negotiated before ``initialize``.
    """
    initial = {name: spec.initial for name, spec in MACHINES.items()}
    return {
        method: {column: _code(method, {**initial, **states}) for column, states in COLUMNS.items()}
        for method in METHODS
    }


def _code(method: str, states: Mapping[str, Enum]) -> str:
    if UNINITIALIZED.passes(states):
        for check in METHODS[method].checks:
            if check in _NEGOTIATION or (check.structural and not check.passes(states)):
                return check.code
    return matrix_code(method, states)
