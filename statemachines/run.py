"""The run: the life of one accepted ``turn.start``, from admission to its one ``run.finished``.

Outcome and cause are states, not flags: ``cancelling`` says who cancels (the user, a critical event that could not
be delivered, a stop of the connection), ``finishing`` says what ``run.finished`` will report. Whether the input is
stored is the persistence machine's business; what a run's text, activities, approvals and calls do, their own
machines'. This one is their gate: ``WORKER_DELTA``, ``WORKER_REPORT`` (reconciliation, activity, card) and
``WORKER_ASK`` (approval, client tool call) stand for "the worker has an event of that class", the coupling rows let
it through to the machine it is about or not. So nothing of the provider's leaves before the input is stored, no event
after the terminal, and nothing can be asked once the run is being cancelled: such a request is denied on the spot.
A diagnostic may leave at any time of an active run.

The runner's last word (completed, failed, stopped) decides the outcome, first word wins; ``run.finished`` comes
with the worker's departure (``WORKER_GONE``), when all is accounted for, never earlier. A worker that departs
without a word has failed. Once a critical event was undeliverable the remaining reconciliations are given up, but
``run.finished`` is still tried.
"""

from enum import unique

from statemachines.rows import Emit, MachineSpec, Name, Scope, row, rows, stay


@unique
class RunState(Name):
    """States of a run."""

    NONE = "none"
    ADMITTED = "admitted"
    EXECUTING = "executing"
    CANCELLING_USER = "cancelling(user)"
    CANCELLING_UNDELIVERABLE = "cancelling(undeliverable)"
    CANCELLING_STOP = "cancelling(stop)"
    FINISHING_COMPLETED = "finishing(completed)"
    FINISHING_FAILED = "finishing(failed)"
    FINISHING_CANCELLED = "finishing(cancelled)"
    FINISHING_UNDELIVERABLE = "finishing(undeliverable)"
    FINISHED = "finished"


@unique
class RunInput(Name):
    """Inputs of a run."""

    RECV_TURN_START = "turn.start admitted"
    RECV_TURN_CANCEL = "turn.cancel of it"
    WORKER_INPUT_APPENDED = "input appended"
    WORKER_INPUT_FAILED = "append of input failed"
    WORKER_APPEND_FAILED = "later append failed"
    WORKER_DELTA = "delta"
    WORKER_REPORT = "reconciliation, activity or card"
    WORKER_ASK = "approval or client call"
    WORKER_DIAGNOSTIC = "diagnostic"
    WORKER_COMPLETED = "runner completed"
    WORKER_FAILED = "runner failed"
    WORKER_STOPPED = "runner stopped"
    WORKER_GONE = "worker gone"
    JOINT_STOP = "connection stops"
    JOINT_UNDELIVERABLE = "critical event undeliverable"
    JOINT_UNSTORED = "completed without stored input"
    JOINT_GONE = "silent departure settled"


S, I = RunState, RunInput  # noqa: E741

CANCELLABLE = (S.ADMITTED, S.EXECUTING)
CANCELLING = (S.CANCELLING_USER, S.CANCELLING_UNDELIVERABLE, S.CANCELLING_STOP)
FINISHING = (S.FINISHING_COMPLETED, S.FINISHING_FAILED, S.FINISHING_CANCELLED, S.FINISHING_UNDELIVERABLE)
ACTIVE = CANCELLABLE + CANCELLING + FINISHING
ANSWERABLE = CANCELLABLE + CANCELLING[:2] + FINISHING
"""Active states that a request can meet: after a stop nothing is admitted."""
OVER = (S.NONE, S.FINISHED)
_ASKED = (S.CANCELLING_USER, S.CANCELLING_STOP)
_LOST = (S.CANCELLING_UNDELIVERABLE, S.FINISHING_UNDELIVERABLE)
_REPORTING = (S.FINISHING_COMPLETED, S.FINISHING_FAILED, S.FINISHING_CANCELLED)

RUN = MachineSpec(
    name="run",
    title="Run",
    states=tuple(S),
    inputs=tuple(I),
    initial=S.NONE,
    finals=frozenset({S.FINISHED}),
    scope=Scope.RUN,
    theory=__doc__ or "",
    rows=(
        row(S.NONE, I.RECV_TURN_START, S.ADMITTED, Emit.TURN_START_RESULT, Emit.START_TURN, by="TURN-10 EVT-03"),
        *rows(CANCELLABLE, I.RECV_TURN_CANCEL, S.CANCELLING_USER, Emit.TURN_CANCEL_RESULT, Emit.CANCEL_TURN,
              by="TURN-20 APPR-08"),
        *stay(CANCELLING[:2], I.RECV_TURN_CANCEL, Emit.TURN_CANCEL_RESULT, by="TURN-21"),
        *stay(FINISHING, I.RECV_TURN_CANCEL, Emit.TURN_CANCEL_RESULT, by="TURN-21 BASE-OP-158"),
        # the input
        row(S.ADMITTED, I.WORKER_INPUT_APPENDED, S.EXECUTING, by="EVT-11 EVT-12"),
        *stay(CANCELLING, I.WORKER_INPUT_APPENDED, by="EVT-11 BASE-OP-157"),
        *stay((S.EXECUTING, *FINISHING, *OVER), I.WORKER_INPUT_APPENDED, by="EVT-11 EVT-45"),
        row(S.ADMITTED, I.WORKER_INPUT_FAILED, S.FINISHING_FAILED, by="TURN-26"),
        *rows(_ASKED, I.WORKER_INPUT_FAILED, S.FINISHING_FAILED, by="TURN-26 D84"),
        row(S.CANCELLING_UNDELIVERABLE, I.WORKER_INPUT_FAILED, S.FINISHING_UNDELIVERABLE, by="FLOW-13 D84"),
        *stay((S.EXECUTING, *FINISHING, *OVER), I.WORKER_INPUT_FAILED, by="TURN-26 EVT-45"),
        *stay((S.EXECUTING, *CANCELLING, *FINISHING), I.WORKER_APPEND_FAILED, by="TURN-27 EVT-41"),
        *stay((S.ADMITTED, *OVER), I.WORKER_APPEND_FAILED, by="TURN-27 EVT-45"),
        # the gates: what passes is a coupling row
        *stay((S.EXECUTING, *_ASKED), I.WORKER_DELTA, by="EVT-15"),
        *stay((S.ADMITTED, *_LOST, *_REPORTING, *OVER), I.WORKER_DELTA, by="EVT-12 EVT-04"),
        *stay((S.EXECUTING, *_ASKED, *_REPORTING), I.WORKER_REPORT, by="EVT-31 EVT-47 EVT-50"),
        *stay((S.ADMITTED, *_LOST, *OVER), I.WORKER_REPORT, by="EVT-12 EVT-45 D86"),
        row(S.EXECUTING, I.WORKER_ASK, S.EXECUTING, by="EVT-36 CT-74"),
        *stay((S.ADMITTED, *CANCELLING, *FINISHING), I.WORKER_ASK, Emit.DENY, by="APPR-08 D87"),
        *stay(OVER, I.WORKER_ASK, by="EVT-45"),
        *stay((*CANCELLABLE, *_ASKED, *_REPORTING), I.WORKER_DIAGNOSTIC, Emit.DIAGNOSTIC, by="EVT-39 EVT-41"),
        *stay((*_LOST, *OVER), I.WORKER_DIAGNOSTIC, by="EVT-45 D86"),
        # the runner's last word
        row(S.EXECUTING, I.WORKER_COMPLETED, S.FINISHING_COMPLETED, by="EVT-26 EVT-47"),
        *rows(_ASKED, I.WORKER_COMPLETED, S.FINISHING_COMPLETED, by="BASE-OP-159 D85"),
        row(S.ADMITTED, I.WORKER_COMPLETED, S.FINISHING_FAILED, by="EVT-12 BASE-OP-156"),
        *rows((*CANCELLABLE, *_ASKED), I.WORKER_FAILED, S.FINISHING_FAILED, by="ERR-45 SEL-26 EVT-28"),
        *rows(CANCELLABLE, I.WORKER_STOPPED, S.FINISHING_FAILED, by="ERR-45 D85"),
        *rows(_ASKED, I.WORKER_STOPPED, S.FINISHING_CANCELLED, by="EVT-50 TURN-24"),
        *rows((S.CANCELLING_UNDELIVERABLE,), I.WORKER_COMPLETED, S.FINISHING_UNDELIVERABLE, by="FLOW-13"),
        *rows((S.CANCELLING_UNDELIVERABLE,), I.WORKER_FAILED, S.FINISHING_UNDELIVERABLE, by="FLOW-13"),
        *rows((S.CANCELLING_UNDELIVERABLE,), I.WORKER_STOPPED, S.FINISHING_UNDELIVERABLE, by="FLOW-13"),
        *stay((*FINISHING, *OVER), I.WORKER_COMPLETED, by="EVT-45"),
        *stay((*FINISHING, *OVER), I.WORKER_FAILED, by="EVT-45"),
        *stay((*FINISHING, *OVER), I.WORKER_STOPPED, by="EVT-45"),
        row(S.FINISHING_COMPLETED, I.JOINT_UNSTORED, S.FINISHING_FAILED, by="EVT-12 BASE-OP-156"),
        # the worker's departure
        row(S.FINISHING_COMPLETED, I.WORKER_GONE, S.FINISHED, Emit.RUN_COMPLETED, by="EVT-45 EVT-46"),
        row(S.FINISHING_FAILED, I.WORKER_GONE, S.FINISHED, Emit.RUN_FAILED, by="EVT-45 EVT-46"),
        row(S.FINISHING_CANCELLED, I.WORKER_GONE, S.FINISHED, Emit.RUN_CANCELLED, by="EVT-45 TURN-24"),
        row(S.FINISHING_UNDELIVERABLE, I.WORKER_GONE, S.FINISHED, Emit.RUN_CANCELLED, by="FLOW-13 EVT-48"),
        *rows(CANCELLABLE, I.WORKER_GONE, S.FINISHING_FAILED, by="EVT-45 D88"),
        *rows(_ASKED, I.WORKER_GONE, S.FINISHING_CANCELLED, by="EVT-45 D88"),
        row(S.CANCELLING_UNDELIVERABLE, I.WORKER_GONE, S.FINISHING_UNDELIVERABLE, by="EVT-45 D88"),
        row(S.FINISHING_FAILED, I.JOINT_GONE, S.FINISHED, Emit.RUN_FAILED, by="EVT-45 D88"),
        row(S.FINISHING_CANCELLED, I.JOINT_GONE, S.FINISHED, Emit.RUN_CANCELLED, by="EVT-45 D88"),
        row(S.FINISHING_UNDELIVERABLE, I.JOINT_GONE, S.FINISHED, Emit.RUN_CANCELLED, by="EVT-45 D88"),
        *stay(OVER, I.WORKER_GONE, by="EVT-45"),
        # from outside
        *rows(CANCELLABLE, I.JOINT_STOP, S.CANCELLING_STOP, Emit.CANCEL_TURN, by="SHUT-08 FLOW-23"),
        *stay((*CANCELLING[:2], *FINISHING, *OVER), I.JOINT_STOP, by="FLOW-23"),
        *rows(CANCELLABLE, I.JOINT_UNDELIVERABLE, S.CANCELLING_UNDELIVERABLE, Emit.CANCEL_TURN, by="FLOW-13 BOUND-25"),
        *rows(_ASKED, I.JOINT_UNDELIVERABLE, S.CANCELLING_UNDELIVERABLE, by="FLOW-13 D86"),
        *rows(_REPORTING, I.JOINT_UNDELIVERABLE, S.FINISHING_UNDELIVERABLE, by="FLOW-13 D86"),
        *stay(OVER, I.JOINT_UNDELIVERABLE, by="EVT-45"),
    ),
)  # fmt: skip
