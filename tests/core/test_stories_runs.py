"""Whole stories: the life of a run. Each reads as a transcript; see :mod:`.stories`."""

import pytest

from .stories import play

STORIES = {
    "a whole turn": """
ready all
attach
> q1 turn.start
    < q1 ok
    ! StartWorker 3 turn
> q2 status
    < q2 ok
~ appended
    * input.persisted
~ delta m1 0
    * message.delta m1 0
~ delta m1 2
    * message.delta m1 2
~ activity started
    * activity a1 started
~ card
    * tool.card
~ activity completed
    * activity a1 completed
~ card success
    * tool.card
~ part m1 0
    * message.reconcile m1 0
~ delta m1 3
~ last m1 1
    * message.reconcile m1 1
~ delta m1 4
    * message.delta m1 4
~ last m1 0
    * message.reconcile m1 0
~ note
    * diagnostic hint
~ completed h3
~ gone
    * run.finished completed durable h3 -
~ gone
> q3 status
    < q3 ok
""",
    "what a worker says out of place does not reach the wire": """
ready all
attach
turn
~ delta
~ last
~ activity
~ card
~ append-failed
~ note
    * diagnostic hint
~ appended
    * input.persisted
~ appended
~ input-failed
~ activity completed
~ card
~ activity started
    * activity a1 started
~ activity started
~ card success
~ card
    * tool.card
~ activity failed
    * activity a1 failed
~ card
~ card success
~ card unknown
    * tool.card
~ card
~ card failure
~ card unknown
    * tool.card
~ activity completed
~ completed
~ delta
~ failed
~ stopped
~ gone
    * run.finished completed durable - -
~ note
~ last
~ completed
""",
    "completed wins over a cancellation that came later (BASE-OP-159)": """
ready
attach
executing
> q1 turn.cancel
    < q1 ok
    ! CancelWorker 3
~ completed h3
~ gone
    * run.finished completed durable h3 -
""",
    "the append of the input fails (TURN-26)": """
ready
attach
turn
~ input-failed
~ note
    * diagnostic hint
~ failed
~ gone
    * run.finished failed not_started - persistence_failed
""",
    "the append of the input fails while the run is cancelled (TURN-26, D84)": """
ready
attach
turn
> q1 turn.cancel
    < q1 ok
    ! CancelWorker 3
~ input-failed
~ gone
    * run.finished failed not_started - persistence_failed
""",
    "the input is stored although the run was cancelled (BASE-OP-157)": """
ready
attach
turn
> q1 turn.cancel
    < q1 ok
    ! CancelWorker 3
~ delta m1
~ appended
    * input.persisted
~ stopped h3
~ gone
    * run.finished cancelled durable h3 -
""",
    "completed without stored input is a failure (BASE-OP-156)": """
ready
attach
turn
> q1 turn.cancel
    < q1 ok
    ! CancelWorker 3
~ completed h3
~ gone
    * run.finished failed not_started h3 execution_failed
> q2 turn.start
    < q2 ok
    ! StartWorker 4 turn
~ completed
~ gone
    * run.finished failed not_started - execution_failed
""",
    "a later append fails: degraded, whatever was displayed (TURN-27)": """
ready
attach
executing
~ append-failed
    * diagnostic persistence_degraded
~ append-failed
    * diagnostic persistence_degraded
~ completed h3
~ append-failed
    * diagnostic persistence_degraded
~ gone
    * run.finished completed degraded h3 -
""",
    "stopped without being asked is a failure": """
ready
attach
executing
~ stopped
~ gone
    * run.finished failed durable - execution_failed
""",
    "failed with a code of its own (SEL-26)": """
ready
attach
turn
~ failed stale_selection
~ gone
    * run.finished failed not_started - stale_selection
""",
    "a critical event was undeliverable while executing (FLOW-13)": """
ready client.tools
attach
executing
~ call
    * client.tool.call
~ undeliverable
    * client.tool.cancel run_finished
    ! CancelWorker 3
    ! ResolveCall 3 C run_finished
~ undeliverable
~ delta
~ last
~ note
~ ask
    ! ResolveApproval 3 A False
> q1 turn.cancel
    < q1 ok
~ completed h3
~ gone
    * run.finished cancelled durable h3 output_unavailable
""",
    "undeliverable while it is cancelled": """
ready
attach
executing
> q1 turn.cancel
    < q1 ok
    ! CancelWorker 3
~ undeliverable
~ append-failed
    * diagnostic persistence_degraded
~ failed
~ gone
    * run.finished cancelled degraded - output_unavailable
""",
    "undeliverable while it finishes": """
ready
attach
executing
~ completed h3
~ undeliverable
~ last
~ gone
    * run.finished cancelled durable h3 output_unavailable
""",
    "undeliverable before the input is stored, then the append fails": """
ready
attach
turn
~ undeliverable
    ! CancelWorker 3
~ input-failed
~ gone
    * run.finished cancelled not_started - output_unavailable
""",
    "a worker leaves without a word (D88)": """
ready client.tools
attach
executing
~ call
    * client.tool.call
~ delta m1
    * message.delta m1 0
~ gone
    * client.tool.cancel run_finished
    * run.finished failed durable - execution_failed
    ! ResolveCall 3 C run_finished
> q1 turn.start
    < q1 ok
    ! StartWorker 4 turn
> q2 turn.cancel
    < q2 ok
    ! CancelWorker 4
~ gone
    * run.finished cancelled not_started - -
> q3 turn.start
    < q3 ok
    ! StartWorker 5 turn
~ undeliverable
    ! CancelWorker 5
~ gone
    * run.finished cancelled not_started - output_unavailable
""",
    "another kind's last word is a failure, but no departure (EVT-46)": """
ready
attach
executing
~ listed
> q1 turn.start
    < q1 busy
~ completed h3
~ gone
    * run.finished failed durable - execution_failed
> q2 turn.start
    < q2 ok
    ! StartWorker 4 turn
""",
    "a run does not inherit the last word of another": """
ready
attach
executing
~ completed h3
~ gone
    * run.finished completed durable h3 -
turn
~ gone
    * run.finished failed not_started - execution_failed
turn
~ failed content_limit
~ gone
    * run.finished failed not_started - content_limit
executing
~ gone
    * run.finished failed durable - execution_failed
""",
    "each run is new: identities, approvals and segments of the last one are gone": """
ready
attach
executing
~ ask
    * approval.requested
~ part m1 0
    * message.reconcile m1 0
~3 completed
    ! ResolveApproval 3 A False
~3 gone
    * run.finished completed durable - -
executing
~3 last m1 1
~ last m1 0
    * message.reconcile m1 0
> q1 approval.answer
    < q1 stale_approval
~ ask
    * approval.requested
> q2 approval.answer
    < q2 ok
    ! ResolveApproval 4 A True
""",
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_the_run_goes_as_told(story: str) -> None:
    assert play(story).finish() == 0
