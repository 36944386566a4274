"""Persistence of a run: what ``run.finished.persistence`` may claim.

``unstored`` becomes ``stored`` with the append of the required input, which is acknowledged by ``input.persisted``
exactly once; a later append that fails makes it ``degraded``, and it stays so. It says nothing of what was displayed.
It is also the second gate of a run's events: nothing passes before the input is stored (``JOINT_PASS``).
"""

from enum import unique
from typing import Final

from statemachines.rows import Emit, MachineSpec, Name, Scope, row, stay


@unique
class PersistenceState(Name):
    """States of a run's persistence."""

    UNSTORED = "unstored"
    STORED = "stored"
    DEGRADED = "degraded"


@unique
class PersistenceInput(Name):
    """Inputs of a run's persistence; all come from the run."""

    JOINT_INPUT_STORED = "input appended"
    JOINT_APPEND_FAILED = "later append failed"
    JOINT_COMPLETED = "runner completed"
    JOINT_PASS = "event of the run"


S, I = PersistenceState, PersistenceInput  # noqa: E741

REPORTED: Final = {S.UNSTORED: "not_started", S.STORED: "durable", S.DEGRADED: "degraded"}
"""State -> the value of ``run.finished.persistence`` (EVT-44)."""

PERSISTENCE = MachineSpec(
    name="persistence",
    title="Persistence of a run",
    states=tuple(S),
    inputs=tuple(I),
    initial=S.UNSTORED,
    finals=frozenset({S.DEGRADED}),
    scope=Scope.RUN,
    theory=__doc__ or "",
    rows=(
        row(S.UNSTORED, I.JOINT_INPUT_STORED, S.STORED, Emit.INPUT_PERSISTED, by="EVT-11 SESS-25"),
        *stay((S.STORED, S.DEGRADED), I.JOINT_INPUT_STORED, by="EVT-11"),
        row(S.STORED, I.JOINT_APPEND_FAILED, S.DEGRADED, Emit.DIAGNOSTIC, by="TURN-27 EVT-41"),
        row(S.DEGRADED, I.JOINT_APPEND_FAILED, S.DEGRADED, Emit.DIAGNOSTIC, by="EVT-41 EVT-51"),
        row(S.UNSTORED, I.JOINT_APPEND_FAILED, S.UNSTORED, by="TURN-26"),
        *stay(S, I.JOINT_COMPLETED, by="EVT-12 BASE-OP-156"),
        *stay(S, I.JOINT_PASS, by="EVT-12"),
    ),
)
