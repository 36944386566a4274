"""The ordered writer: what the pipe takes, refuses or breaks.

``open`` means that the pipe takes bytes, ``stalled`` that it refuses and frames wait; a stall is no reason to stop
reading. Three things lose the output for good: a 33rd frame while the pipe refuses, a frame that has waited 2,000 ms
(partial progress does not help), and a write error. Once the connection stops, the writer is ``draining``: it ends
``drained`` when its queue is empty and nothing is outstanding, or when the closing deadline of 2,000 ms finds the
queue empty and no run unfinished; otherwise it ends ``lost``. The process exits 0 after ``drained`` and 1 after
``lost``. That a frame was queued or written moves nothing, so neither is an input.
"""

from enum import unique
from typing import Final

from statemachines.rows import MachineSpec, Name, row, rows, stay


@unique
class OutputState(Name):
    """States of the ordered writer."""

    OPEN = "open"
    STALLED = "stalled"
    DRAINING = "draining"
    DRAINED = "drained"
    LOST = "lost"


@unique
class OutputInput(Name):
    """Inputs of the ordered writer."""

    OUTPUT_REFUSED = "pipe not writable"
    OUTPUT_EMPTIED = "queue emptied"
    OUTPUT_DRAINED = "queue emptied, nothing outstanding"
    OUTPUT_OVERFLOW = "33rd frame while the pipe refuses"
    OUTPUT_BROKEN = "write error"
    TIMER_OUTPUT = "oldest frame 2,000 ms in the queue"
    TIMER_CLOSING = "closing deadline, run or output left"
    TIMER_CLOSING_CLEAN = "closing deadline, no run, queue empty"
    JOINT_CLOSE = "connection stops"


S, I = OutputState, OutputInput  # noqa: E741

ENDED = (S.DRAINED, S.LOST)
EXIT_STATUS: Final = {S.DRAINED: 0, S.LOST: 1}
"""Final state -> exit status of the child (FLOW-18 to FLOW-20, D40, D41)."""

OUTPUT = MachineSpec(
    name="output",
    title="Output writer",
    states=tuple(S),
    inputs=tuple(I),
    initial=S.OPEN,
    finals=frozenset(ENDED),
    theory=__doc__ or "",
    rows=(
        row(S.OPEN, I.OUTPUT_REFUSED, S.STALLED, by="FLOW-02"),
        *stay((S.STALLED, S.DRAINING, *ENDED), I.OUTPUT_REFUSED, by="BOUND-28 FLOW-02"),
        row(S.STALLED, I.OUTPUT_EMPTIED, S.OPEN, by="FLOW-03"),
        *stay((S.OPEN, S.DRAINING, *ENDED), I.OUTPUT_EMPTIED, by="FLOW-03 FLOW-19"),
        row(S.DRAINING, I.OUTPUT_DRAINED, S.DRAINED, by="FLOW-20 D89"),
        row(S.STALLED, I.OUTPUT_DRAINED, S.OPEN, by="FLOW-03"),
        *stay((S.OPEN, *ENDED), I.OUTPUT_DRAINED, by="FLOW-03"),
        *rows((S.STALLED, S.DRAINING), I.OUTPUT_OVERFLOW, S.LOST, by="BOUND-22 FLOW-04 D49"),
        *stay((S.OPEN, *ENDED), I.OUTPUT_OVERFLOW, by="D49"),
        *rows((S.STALLED, S.DRAINING), I.TIMER_OUTPUT, S.LOST, by="BOUND-27 FLOW-06"),
        *stay((S.OPEN, *ENDED), I.TIMER_OUTPUT, by="BOUND-27 D90"),
        *rows((S.OPEN, S.STALLED, S.DRAINING), I.OUTPUT_BROKEN, S.LOST, by="FLOW-08 FLOW-09"),
        *stay(ENDED, I.OUTPUT_BROKEN, by="FLOW-10"),
        *rows((S.OPEN, S.STALLED), I.JOINT_CLOSE, S.DRAINING, by="SHUT-11 FLOW-17 ERR-05"),
        row(S.LOST, I.JOINT_CLOSE, S.LOST, by="FLOW-08"),
        row(S.DRAINING, I.TIMER_CLOSING, S.LOST, by="FLOW-18 FLOW-19 BASE-OP-59"),
        row(S.DRAINING, I.TIMER_CLOSING_CLEAN, S.DRAINED, by="FLOW-20 D89"),
        *stay((S.OPEN, S.STALLED, *ENDED), I.TIMER_CLOSING, by="BOUND-29"),
        *stay((S.OPEN, S.STALLED, *ENDED), I.TIMER_CLOSING_CLEAN, by="BOUND-29"),
    ),
)
