"""``data`` of the ten events: seven of base, one of tool cards, two of client tools (base 22, TC 8.1, CT 6 and 8).

Fields stand in alphabetical order, which is the order of the keys on the wire (D70). The shapes are closed (NEG-32).
"""

from typing import Any, Literal

from .results import Output


class InputPersisted(Output, frozen=True, kw_only=True):
    """``input.persisted``: the required input is stored; precedes all provider work (EVT-09 to EVT-13)."""

    durable: bool = True
    message_id: str
    revision: str
    run_id: str
    session_id: str


class MessageDelta(Output, frozen=True, kw_only=True):
    """``message.delta``: best effort; at most 4,000 UTF-8 bytes, ``part`` from 0 (EVT-14 to EVT-19, BOUND-10)."""

    message_id: str
    part: int
    run_id: str
    session_id: str
    text: str


class MessageReconcile(Output, frozen=True, kw_only=True):
    """``message.reconcile``: replaces what was shown, once all parts are there (EVT-20 to EVT-26, D60, D61).

    ``text`` at most 4,000 UTF-8 bytes, ``part`` from 0 (BOUND-10).
    """

    last_part: bool
    message_id: str
    part: int
    partial: bool
    run_id: str
    session_id: str
    text: str


class Activity(Output, frozen=True, kw_only=True):
    """``activity``: ``summary`` at most 1,024 UTF-8 bytes; never raw params or results (EVT-31 to EVT-35, D75)."""

    activity_id: str
    kind: Literal["tool", "subagent", "compaction"]
    name: str
    run_id: str
    session_id: str
    state: Literal["started", "completed", "failed"]
    summary: str


class ApprovalRequested(Output, frozen=True, kw_only=True):
    """``approval.requested``: ``summary`` at most 1,024 UTF-8 bytes (EVT-36 to EVT-38, BASE-OP-175)."""

    approval_id: str
    expires_in_ms: int
    run_id: str
    session_id: str
    summary: str


class Diagnostic(Output, frozen=True, kw_only=True):
    """``diagnostic``: a label of the ID grammar and at most 1,024 UTF-8 bytes (EVT-39, EVT-40, BASE-OP-174)."""

    code: str
    run_id: str
    session_id: str
    summary: str


class RunFinished(Output, frozen=True, kw_only=True):
    """``run.finished``: once, last of its run; ``error_code`` is null unless a fault has one (EVT-42, BASE-OP-155)."""

    error_code: str | None
    outcome: Literal["completed", "cancelled", "failed"]
    persistence: Literal["durable", "degraded", "not_started"]
    revision: str | None
    run_id: str
    session_id: str


class ToolCard(Output, frozen=True, kw_only=True):
    """``tool.card``: one atomic snapshot; the card is free JSON here, its schema is TC's own (TC-155, TC-156)."""

    activity_id: str
    card: dict[str, Any]
    last_part: bool = True
    part: int = 0
    run_id: str
    session_id: str


class ClientToolCall(Output, frozen=True, kw_only=True):
    """``client.tool.call``: session and run of the root, even for a delegated call (CT-76 to CT-87).

    ``arguments`` is free JSON: check it by :func:`.client_tools.arguments_fit` before. ``timeout_ms`` is that of the
    effective descriptor, not what is left of it (CT-OP-20).
    """

    arguments: dict[str, Any]
    call_id: str
    name: str
    run_id: str
    session_id: str
    subagent_id: str | None
    task_id: str | None
    timeout_ms: int


class ClientToolCancel(Output, frozen=True, kw_only=True):
    """``client.tool.cancel``: the same five identities and a reason, no name (CT-124, CT-125, CT-OP-34)."""

    call_id: str
    reason: Literal["cancelled", "timeout", "run_finished", "shutdown"]
    run_id: str
    session_id: str
    subagent_id: str | None
    task_id: str | None
