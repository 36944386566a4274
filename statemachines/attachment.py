"""The attachment: the one session a child holds, and the leases that go with it.

``lazy`` is attached with nothing stored yet, ``durable`` is stored as a history file. ``creating`` and ``opening``
are not states: until an attach succeeds the child is attached as before (STATUS-16), so they are the operation's
kind ``attach`` and the attachment keeps its state; a failed or cancelled attach therefore has no row here at all.

When the connection stops, an attachment is ``releasing``: its leases stay until the runtime is torn down (SESS-43);
``sealed`` is the end, with nothing attached and nothing to be attached. An attach that succeeds after the stop
never takes effect: the leases it took are let go at once, and those of the previous attachment with the teardown,
so whichever way that worker ends nobody's lease outlives the child. A teardown that is cut off by the cleanup wait
leaves its leases to the kernel, which frees them with the process. Where the same session is opened again, old and
new attachment share their leases, and releasing the previous one lets nothing go.
"""

from enum import unique

from statemachines.rows import Emit, MachineSpec, Name, row, rows, stay


@unique
class AttachmentState(Name):
    """States of the attachment."""

    NONE = "none"
    LAZY = "lazy"
    DURABLE = "durable"
    RELEASING = "releasing"
    SEALED = "sealed"


@unique
class AttachmentInput(Name):
    """Inputs of the attachment; all come from other machines."""

    JOINT_ATTACHED_LAZY = "attached, nothing stored"
    JOINT_ATTACHED_DURABLE = "attached, stored"
    JOINT_STORED = "input or selection stored"
    JOINT_STOP = "connection stops"
    JOINT_TEARDOWN = "runtime torn down"
    JOINT_DETACHED = "teardown left to process exit"


S, I = AttachmentState, AttachmentInput  # noqa: E741

HELD = (S.LAZY, S.DURABLE)

ATTACHMENT = MachineSpec(
    name="attachment",
    title="Attachment",
    states=tuple(S),
    inputs=tuple(I),
    initial=S.NONE,
    finals=frozenset({S.SEALED}),
    theory=__doc__ or "",
    rows=(
        row(S.NONE, I.JOINT_ATTACHED_LAZY, S.LAZY, by="SESS-21 SESS-19"),
        row(S.NONE, I.JOINT_ATTACHED_DURABLE, S.DURABLE, by="SESS-33 SESS-34"),
        *rows(HELD, I.JOINT_ATTACHED_LAZY, S.LAZY, Emit.RELEASE_PREVIOUS, by="SESS-14 SESS-21 SESS-23"),
        *rows(HELD, I.JOINT_ATTACHED_DURABLE, S.DURABLE, Emit.RELEASE_PREVIOUS, by="SESS-14 SESS-33"),
        row(S.LAZY, I.JOINT_STORED, S.DURABLE, by="SESS-24 SESS-26"),
        row(S.DURABLE, I.JOINT_STORED, S.DURABLE, by="EVT-11 SEL-68"),
        row(S.RELEASING, I.JOINT_STORED, S.RELEASING, by="SHUT-16 SEL-98"),
        row(S.NONE, I.JOINT_STOP, S.SEALED, by="FLOW-15"),
        *rows(HELD, I.JOINT_STOP, S.RELEASING, by="FLOW-23 FLOW-26"),
        *stay((S.RELEASING, S.SEALED), I.JOINT_ATTACHED_LAZY, Emit.RELEASE_NEW, by="FLOW-24 D83"),
        *stay((S.RELEASING, S.SEALED), I.JOINT_ATTACHED_DURABLE, Emit.RELEASE_NEW, by="FLOW-24 D83"),
        row(S.RELEASING, I.JOINT_TEARDOWN, S.SEALED, Emit.RELEASE_ALL, by="SESS-43 FLOW-26"),
        row(S.SEALED, I.JOINT_TEARDOWN, S.SEALED, by="SESS-43"),
        row(S.RELEASING, I.JOINT_DETACHED, S.SEALED, by="FLOW-28 BOUND-31"),
        row(S.SEALED, I.JOINT_DETACHED, S.SEALED, by="FLOW-28"),
    ),
)
