"""An approval: one question to the user, answered at most once.

``requested`` ends in one of four finals. Only ``allowed`` authorizes anything, and only the client's first answer
leads there: expiry after 60,000 ms, cancellation, the end of the run and a lost connection all deny. Several can be
pending at once; answers carry an identity, so each approval is a machine of its own. An answer to one that is not
``requested`` is refused by admission with ``stale_approval`` and never reaches this table.
"""

from enum import unique

from statemachines.rows import Emit, MachineSpec, Name, Scope, row, stay


@unique
class ApprovalState(Name):
    """States of an approval."""

    NONE = "none"
    REQUESTED = "requested"
    ALLOWED = "allowed"
    DENIED = "denied"
    EXPIRED = "expired"
    VOID = "void"


@unique
class ApprovalInput(Name):
    """Inputs of an approval."""

    RECV_ALLOW = "answer, allow true"
    RECV_DENY = "answer, allow false"
    WORKER_ASK = "tool needs permission"
    TIMER_EXPIRED = "60,000 ms passed"
    JOINT_VOID = "run cancelled or ended"


S, I = ApprovalState, ApprovalInput  # noqa: E741

_SETTLED = (S.ALLOWED, S.DENIED, S.EXPIRED, S.VOID)

APPROVAL = MachineSpec(
    name="approval",
    title="Approval",
    states=tuple(S),
    inputs=tuple(I),
    initial=S.NONE,
    finals=frozenset(_SETTLED),
    scope=Scope.RUN,
    many=True,
    theory=__doc__ or "",
    rows=(
        row(S.NONE, I.WORKER_ASK, S.REQUESTED, Emit.APPROVAL_REQUESTED, by="EVT-36 BOUND-26"),
        *stay((S.REQUESTED, S.ALLOWED, S.DENIED, S.EXPIRED), I.WORKER_ASK, by="EVT-37 APPR-03"),
        row(
            S.REQUESTED,
            I.RECV_ALLOW,
            S.ALLOWED,
            Emit.APPROVAL_ANSWER_RESULT,
            Emit.ALLOW,
            by="APPR-02 APPR-03",
        ),
        row(S.REQUESTED, I.RECV_DENY, S.DENIED, Emit.APPROVAL_ANSWER_RESULT, Emit.DENY, by="APPR-02 APPR-03"),
        row(S.REQUESTED, I.TIMER_EXPIRED, S.EXPIRED, Emit.DENY, by="APPR-06 APPR-07"),
        *stay((S.NONE, *_SETTLED), I.TIMER_EXPIRED, by="APPR-05"),
        row(S.REQUESTED, I.JOINT_VOID, S.VOID, Emit.DENY, by="APPR-08 APPR-09"),
        *stay((S.NONE, *_SETTLED), I.JOINT_VOID, by="APPR-05"),
    ),
)
