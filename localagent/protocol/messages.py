"""Envelopes, and which struct belongs to which method and event (base 19.1, BASE-OP-47, BASE-OP-163).

The frames are for writing. To read one, decode it untyped and convert what it carries by RESULTS or EVENTS.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from . import events, params, results
from .codes import Code
from .names import CLIENT_TOOL_RESULT
from .params import Params
from .results import Output

METHODS: Final[Mapping[str, type[Params]]] = MappingProxyType(
    {
        "initialize": params.InitializeParams,
        "status": params.NoParams,
        "shutdown": params.NoParams,
        "session.create": params.NoParams,
        "session.open": params.SessionOpenParams,
        "session.list": params.PageParams,
        "session.discover": params.PageParams,
        "model.catalog": params.PageParams,
        "model.catalog.status": params.PageParams,
        "model.refresh": params.ModelRefreshParams,
        "operation.cancel": params.OperationCancelParams,
        "selection.set": params.SelectionSetParams,
        "history.page": params.HistoryPageParams,
        "turn.start": params.TurnStartParams,
        "turn.cancel": params.TurnCancelParams,
        "approval.answer": params.ApprovalAnswerParams,
        CLIENT_TOOL_RESULT: params.ClientToolResultParams,
    }
)
"""Method name to the struct of its params: the sixteen of NEG-01 and ``client.tool.result``."""

RESULTS: Final[Mapping[str, type[Output]]] = MappingProxyType(
    {
        "initialize": results.Initialized,
        "status": results.Status,
        "shutdown": results.Stopping,
        "session.create": results.Attached,
        "session.open": results.Attached,
        "session.list": results.ListingPage,
        "session.discover": results.DiscoverPage,
        "model.catalog": results.CatalogPage,
        "model.catalog.status": results.CatalogStatusPage,
        "model.refresh": results.Refreshed,
        "operation.cancel": results.Cancelling,
        "selection.set": results.SelectionSaved,
        "history.page": results.HistoryPage,
        "turn.start": results.TurnAccepted,
        "turn.cancel": results.CancellationRequested,
        "approval.answer": results.ApprovalRecorded,
        CLIENT_TOOL_RESULT: results.ToolResultAccepted,
    }
)
"""Method name to the struct of its result."""

EVENTS: Final[Mapping[str, type[Output]]] = MappingProxyType(
    {
        "input.persisted": events.InputPersisted,
        "message.delta": events.MessageDelta,
        "message.reconcile": events.MessageReconcile,
        "activity": events.Activity,
        "approval.requested": events.ApprovalRequested,
        "diagnostic": events.Diagnostic,
        "run.finished": events.RunFinished,
        "tool.card": events.ToolCard,
        "client.tool.call": events.ClientToolCall,
        "client.tool.cancel": events.ClientToolCancel,
    }
)
"""Event name to the struct of its ``data``: seven of base (EVT-02), one of ``tool.cards``, two of ``client.tools``."""

FREE_JSON: Final = frozenset({events.ToolCard, events.ClientToolCall, results.HistoryPage})
"""Results and data that may bear free JSON, where alone a NaN or a nesting too deep could hide."""

_EVENT_NAMES: Final = {data: name for name, data in EVENTS.items()}


class Failure(Output, frozen=True, kw_only=True):
    """The object ``error``: a code and nothing else (ENV-19, ERR-01)."""

    code: Code


class ResultFrame(Output, frozen=True, kw_only=True):
    """A response with a result (ENV-15 to ENV-18)."""

    id: str
    instance_id: str
    protocol: Literal["magi-code.local-agent"] = "magi-code.local-agent"
    result: Output
    seq: int
    type: Literal["response"] = "response"
    version: Literal[1] = 1


class ErrorFrame(Output, frozen=True, kw_only=True):
    """A response with an error; ``id`` is null when the request has none that can be told (ENV-19, ENV-22)."""

    error: Failure
    id: str | None
    instance_id: str
    protocol: Literal["magi-code.local-agent"] = "magi-code.local-agent"
    seq: int
    type: Literal["response"] = "response"
    version: Literal[1] = 1


class EventFrame(Output, frozen=True, kw_only=True):
    """An event: exactly these seven keys (BASE-OP-163, CT-OP-01)."""

    data: Output
    event: str
    instance_id: str
    protocol: Literal["magi-code.local-agent"] = "magi-code.local-agent"
    seq: int
    type: Literal["event"] = "event"
    version: Literal[1] = 1


Frame = ResultFrame | ErrorFrame | EventFrame

_FAILURES: Final = {code: Failure(code=code) for code in Code}


def response(instance_id: str, seq: int, id: str, result: Output) -> ResultFrame:  # noqa: A002 - the wire's own word
    """Build the answer that carries ``result`` (ENV-23)."""
    return ResultFrame(id=id, instance_id=instance_id, result=result, seq=seq)


def error(instance_id: str, seq: int, id: str | None, code: Code) -> ErrorFrame:  # noqa: A002 - the wire's own word
    """Build the answer that carries ``code`` and nothing else (ENV-19 to ENV-22)."""
    return ErrorFrame(error=_FAILURES[code], id=id, instance_id=instance_id, seq=seq)


def event(instance_id: str, seq: int, data: Output) -> EventFrame:
    """Build the event whose name belongs to the struct of ``data``, so that the two cannot disagree.

    Raises KeyError when ``data`` is no event's data.
    """
    return EventFrame(data=data, event=_EVENT_NAMES[type(data)], instance_id=instance_id, seq=seq)
