"""Whole stories: how a connection ends, and what becomes of the work it had. Each reads as a transcript."""

import pytest

from .stories import play

STORIES = {
    "the shortest life": """
eof
    ! StartCleanup
cleaned
    ! Exit 0
""",
    "shutdown before initialize, nothing after it (D45, D46)": """
> q1 shutdown {"now": true}
    < q1 invalid_params
>> q2 shutdown | q3 shutdown | q4 status
    < q2 ok
    ! StartCleanup
> q5 status
bytes {"protocol":
eof
cleaned
    ! Exit 0
""",
    "end of input during startup (D47); the worker's word is too late": """
> q1 initialize
    ! StartWorker 1 startup
eof
    < q1 startup_cancelled
    ! CancelWorker 1
    ! StartCleanup
~1 started
~1 gone
cleaned
    ! Exit 0
""",
    "shutdown during startup: its answer first (D44)": """
> q1 initialize
    ! StartWorker 1 startup
> q2 shutdown
    < q2 ok
    < q1 startup_cancelled
    ! CancelWorker 1
    ! StartCleanup
+ 1999
+ 1
    ! Exit 0
""",
    "a failed startup is told for good, and ends in order (BASE-OP-58)": """
> q1 initialize
    ! StartWorker 1 startup
~ start-failed mcp_unavailable
    < q1 mcp_unavailable
> q2 initialize
    < q2 already_initialized
> q3 session.create
    < q3 mcp_unavailable
> q4 turn.start
    < q4 mcp_unavailable
> q5 operation.cancel
    < q5 unsupported_capability
> q6 status
    < q6 ok
> q7 shutdown
    < q7 ok
    ! StartCleanup
cleaned
    ! Exit 0
""",
    "an attach that finishes after shutdown takes no effect (D83)": """
ready
attach
> q1 session.open
    ! StartWorker 3 session
> q2 shutdown
    < q2 ok
    ! CancelWorker 3
~ opened
    < q1 ok
    ! ReleaseLeases new
    ! StartCleanup
cleaned
    ! ReleaseLeases all
    ! Exit 0
""",
    "a first attach that finishes after the end of input": """
ready
> q1 session.create
    ! StartWorker 2 session
eof
    ! CancelWorker 2
~ created
    < q1 ok
    ! ReleaseLeases new
    ! StartCleanup
cleaned
    ! Exit 0
""",
    "shutdown answers before operation_cancelled (BASE-OP-60)": """
ready
> q1 session.list
    ! StartWorker 2 session
> q2 shutdown
    < q2 ok
    ! CancelWorker 2
> q3 status
~ stopped-op
    < q1 operation_cancelled
    ! StartCleanup
cleaned
    ! Exit 0
""",
    "shutdown during a run: approvals deny, calls are told, the terminal event follows (BASE-OP-62)": """
ready client.tools
attach
executing
~ ask
    * approval.requested
~ call
    * client.tool.call
> q1 shutdown
    < q1 ok
    * client.tool.cancel shutdown
    ! CancelWorker 3
    ! ResolveApproval 3 A False
    ! ResolveCall 3 C shutdown
~ ask
    ! ResolveApproval 3 A False
~ last m1 0
    * message.reconcile m1 0
~ stopped h3
~ gone
    * run.finished cancelled durable h3 -
    ! StartCleanup
cleaned
    ! ReleaseLeases all
    ! Exit 0
""",
    "a run that ends by itself while the input ends": """
ready
attach
executing
~ completed h3
eof
~ gone
    * run.finished completed durable h3 -
    ! StartCleanup
cleaned
    ! ReleaseLeases all
    ! Exit 0
""",
    "one byte too many behind three requests in one write (FRAME-19, BASE-OP-49)": """
ready
attach
>> q1 status | q2 session.list | q3 session.list
    < q1 ok
    < q3 busy
    ! StartWorker 3 session
oversize
    < null frame_too_large
    ! CancelWorker 3
> q4 status
eof
~ stopped-op
    < q2 operation_cancelled
    ! StartCleanup
cleaned
    ! ReleaseLeases all
    ! Exit 0
""",
    "a foreign version echoes the id and closes (BASE-OP-33)": """
ready
raw {"protocol":"magi-code.local-agent","version":2,"id":"x1","method":"status","params":{}}
    < x1 protocol_mismatch
    ! StartCleanup
> q1 status
cleaned
    ! Exit 0
""",
    "a foreign protocol wins over an id that was seen before (BASE-OP-34)": """
ready
> q1 status
    < q1 ok
raw {"protocol":"other","version":1,"id":"q1","method":"status","params":{}}
    < q1 protocol_mismatch
    ! StartCleanup
cleaned
    ! Exit 0
""",
    "one id too many (ENV-54)": """
ready
attach
executing
retain 4096
> s7 status
    < s7 duplicate_id
> q1 status
    < q1 request_limit
    ! CancelWorker 3
> s7 status
~ stopped
~ gone
    * run.finished cancelled durable - -
    ! StartCleanup
cleaned
    ! ReleaseLeases all
    ! Exit 0
""",
    "input ends inside a frame (FRAME-17, BASE-OP-53)": """
ready
bytes {"protocol":"magi-code.local-agent","version":1,"id":"q1","method":"status","params":{}}
eof
    < null incomplete_frame
    ! StartCleanup
cleaned
    ! Exit 0
""",
    "a broken pipe: work is cancelled, nobody is told (FLOW-08)": """
ready
attach
> q1 session.list
    ! StartWorker 3 session
broken
    ! CancelWorker 3
    ! StartCleanup
broken
~ stopped-op
cleaned
    ! ReleaseLeases all
    ! Exit 1
""",
    "a broken pipe during startup": """
> q1 initialize
    ! StartWorker 1 startup
broken
    ! CancelWorker 1
    ! StartCleanup
~ started
cleaned
    ! Exit 1
""",
    "a broken pipe after shutdown (FLOW-18)": """
ready
pipe 0
> q1 shutdown
    < q1 ok
broken
    ! StartCleanup
cleaned
    ! Exit 1
""",
    "teardown is slow: the process does not wait, leases go with it (BOUND-31)": """
ready
attach
eof
    ! StartCleanup
+ 2000
    ! Exit 0
cleaned
+ 2000
eof
broken
""",
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_it_ends_as_told(story: str) -> None:
    d = play(story)
    assert d.checker.status is not None, "every story ends"
    assert d.connection.closed
