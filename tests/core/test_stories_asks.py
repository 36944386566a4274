"""Whole stories: approvals and client tool calls, what ends them, and what the worker is told."""

import pytest

from .stories import play

STORIES = {
    "an approval is answered once (APPR-03, APPR-04)": """
ready
attach
executing
~ ask
    * approval.requested
> q1 approval.answer {"approval_id": "other"}
    < q1 stale_approval
> q2 approval.answer {"run_id": "other"}
    < q2 stale_approval
> q3 approval.answer {"session_id": "other"}
    < q3 stale_approval
> q4 approval.answer
    < q4 ok
    ! ResolveApproval 3 A True
> q5 approval.answer
    < q5 stale_approval
> q6 approval.answer {"allow": false}
    < q6 stale_approval
~ ask
+ 60000
""",
    "an approval is denied": """
ready
attach
executing
~ ask
    * approval.requested
> q1 approval.answer {"allow": false}
    < q1 ok
    ! ResolveApproval 3 A False
> q2 approval.answer
    < q2 stale_approval
""",
    "an approval expires, and a call times out (APPR-06, CT-118)": """
ready client.tools
attach
executing
~ ask
    * approval.requested
~ call
    * client.tool.call
+ 29999
+ 1
    * client.tool.cancel timeout
    ! ResolveCall 3 C timeout
> q1 client.tool.result
    < q1 stale_client_tool_call
+ 29999
+ 1
    ! ResolveApproval 3 A False
> q2 approval.answer
    < q2 stale_approval
""",
    "a call gets its result, once (CT-99, CT-115)": """
ready client.tools
attach
executing
~ call
    * client.tool.call
> q1 client.tool.result {"instance_id": "other"}
    < q1 stale_client_tool_call
> q2 client.tool.result {"task_id": "other"}
    < q2 stale_client_tool_call
> q3 client.tool.result {"text": 1}
    < q3 invalid_params
> q4 client.tool.result {"structured": null}
    < q4 ok
    ! ResolveCall 3 C ClientToolResultParams
> q5 client.tool.result
    < q5 stale_client_tool_call
~ call-cancelled C
""",
    "the task that made a call is cancelled; the run goes on (CT-OP-32)": """
ready client.tools
attach
executing
~ call
    * client.tool.call
~ call-cancelled C
    * client.tool.cancel cancelled
    ! ResolveCall 3 C cancelled
~ call
~ call-cancelled other
""",
    "the run ends and with it what it asked for": """
ready client.tools
attach
executing
~ ask
    * approval.requested
~ call
    * client.tool.call
~ completed
    * client.tool.cancel run_finished
    ! ResolveApproval 3 A False
    ! ResolveCall 3 C run_finished
~ gone
    * run.finished completed durable - -
""",
    "cancelled: what is pending is denied, what is asked later as well (APPR-08, D87)": """
ready client.tools
attach
executing
~ ask
    * approval.requested
~ call
    * client.tool.call
> q1 turn.cancel {"run_id": "other"}
    < q1 stale_run
> q2 turn.cancel
    < q2 ok
    * client.tool.cancel cancelled
    ! CancelWorker 3
    ! ResolveApproval 3 A False
    ! ResolveCall 3 C cancelled
> q3 turn.cancel
    < q3 ok
~ ask
    ! ResolveApproval 3 A False
~ call
    ! ResolveCall 3 C cancelled
~ delta m1
    * message.delta m1 0
~ last m1
    * message.reconcile m1 0
~ stopped h3
> q4 turn.cancel
    < q4 ok
~ gone
    * run.finished cancelled durable h3 -
> q5 turn.cancel
    < q5 stale_run
""",
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_it_is_asked_and_answered_as_told(story: str) -> None:
    assert play(story).finish() == 0
