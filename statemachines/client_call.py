"""A client tool call: work the client does, within a deadline the server keeps.

A call is published once and ends once: by the client's first valid result, by its deadline, or by cancellation,
which the client is told with a reason. Of a completion and a cancellation that meet, exactly one ends the call; the
later result is refused by admission with ``stale_client_tool_call``. The sixteen places, the sizes and the identity
are data.
"""

from enum import unique

from statemachines.rows import Emit, MachineSpec, Name, Row, Scope, row, stay


@unique
class ClientCallState(Name):
    """States of a client tool call."""

    NONE = "none"
    PUBLISHED = "published"
    ACCEPTED = "accepted"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@unique
class ClientCallInput(Name):
    """Inputs of a client tool call. Each way to end it without a result is a ``reason`` of CT-125."""

    RECV_RESULT = "client.tool.result"
    WORKER_CALL = "runner calls"
    WORKER_CALL_CANCELLED = "calling task cancelled"
    TIMER_EXPIRED = "timeout_ms passed"
    JOINT_CANCELLED = "run cancelled"
    JOINT_SHUTDOWN = "connection stops"
    JOINT_RUN_ENDED = "run ended"


S, I = ClientCallState, ClientCallInput  # noqa: E741

_ENDED = (S.ACCEPTED, S.EXPIRED, S.CANCELLED)
_QUIET = (S.NONE, *_ENDED)

REASONS = {
    I.TIMER_EXPIRED: "timeout",
    I.WORKER_CALL_CANCELLED: "cancelled",
    I.JOINT_CANCELLED: "cancelled",
    I.JOINT_SHUTDOWN: "shutdown",
    I.JOINT_RUN_ENDED: "run_finished",
}
"""Input -> ``reason`` of ``client.tool.cancel`` (CT-125, CT-OP-32)."""


def _ends(given: ClientCallInput, dest: ClientCallState, by: str) -> tuple[Row, ...]:
    return (
        row(S.PUBLISHED, given, dest, Emit.CLIENT_TOOL_CANCEL, Emit.FAIL_CALL, by=by),
        *stay(_QUIET, given, by="CT-128 CT-OP-33"),
    )


CLIENT_CALL = MachineSpec(
    name="client_call",
    title="Client tool call",
    states=tuple(S),
    inputs=tuple(I),
    initial=S.NONE,
    finals=frozenset(_ENDED),
    scope=Scope.RUN,
    many=True,
    theory=__doc__ or "",
    rows=(
        row(S.NONE, I.WORKER_CALL, S.PUBLISHED, Emit.CLIENT_TOOL_CALL, by="CT-74 CT-82"),
        *stay((S.PUBLISHED, *_ENDED), I.WORKER_CALL, by="CT-85 CT-132"),
        row(S.PUBLISHED, I.RECV_RESULT, S.ACCEPTED, Emit.CLIENT_TOOL_RESULT_RESULT, Emit.RETURN_CALL,
            by="CT-98 CT-99"),
        *_ends(I.TIMER_EXPIRED, S.EXPIRED, by="CT-118 CT-125"),
        *_ends(I.WORKER_CALL_CANCELLED, S.CANCELLED, by="CT-124 CT-125"),
        *_ends(I.JOINT_CANCELLED, S.CANCELLED, by="CT-124 CT-125"),
        *_ends(I.JOINT_SHUTDOWN, S.CANCELLED, by="CT-124 CT-125"),
        *_ends(I.JOINT_RUN_ENDED, S.CANCELLED, by="CT-124 CT-OP-23"),
    ),
)  # fmt: skip
