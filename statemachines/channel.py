"""The worker channel: 32 places between a run's worker and the protocol loop.

Deltas never wait: they merge into the last queued one or drop. Any other event waits up to 2,000 ms for a place
(``full``); if none comes free, the event is undeliverable, which is said once, and from then on only the final
result passes (``given up``). It models the wait, not the contents: what is queued, merged or dropped is arithmetic
in the core.
"""

from enum import unique

from statemachines.rows import MachineSpec, Name, Scope, row, stay


@unique
class ChannelState(Name):
    """States of the worker channel."""

    ROOM = "room"
    FULL = "full"
    GIVEN_UP = "given up"


@unique
class ChannelInput(Name):
    """Inputs of the worker channel."""

    WORKER_WAITS = "critical event finds no place"
    WORKER_UNDELIVERABLE = "2,000 ms without a place"
    OUTPUT_TAKEN = "place freed"


S, I = ChannelState, ChannelInput  # noqa: E741

CHANNEL = MachineSpec(
    name="channel",
    title="Worker channel",
    states=tuple(S),
    inputs=tuple(I),
    initial=S.ROOM,
    finals=frozenset({S.GIVEN_UP}),
    scope=Scope.RUN,
    theory=__doc__ or "",
    rows=(
        row(S.ROOM, I.WORKER_WAITS, S.FULL, by="BOUND-24 FLOW-11"),
        row(S.FULL, I.OUTPUT_TAKEN, S.ROOM, by="FLOW-11"),
        row(S.FULL, I.WORKER_UNDELIVERABLE, S.GIVEN_UP, by="BOUND-25 FLOW-13"),
        *stay((S.FULL, S.GIVEN_UP), I.WORKER_WAITS, by="BOUND-24"),
        *stay((S.ROOM, S.GIVEN_UP), I.WORKER_UNDELIVERABLE, by="BOUND-25"),
        *stay((S.ROOM, S.GIVEN_UP), I.OUTPUT_TAKEN, by="FLOW-11"),
    ),
)
