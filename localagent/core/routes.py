"""Classifiers: a request and the facts become one named input, or a refusal code.

The order of checks, their codes and what an accepted request fires stand in ``statemachines.admission``; here are
only the predicates that its factual checks name, and the data that goes along. Pure functions of request and facts.
"""

from collections.abc import Callable, Mapping
from typing import Final, cast

from msgspec import Struct

from localagent.protocol.client_tools import client_registry
from localagent.protocol.codec import Request, initialize_form, params_of
from localagent.protocol.codes import Code
from localagent.protocol.errors import InvalidParams
from localagent.protocol.limits import LIMITS
from localagent.protocol.messages import METHODS
from localagent.protocol.names import CLIENT_TOOLS
from localagent.protocol.params import (
    ApprovalAnswerParams,
    ClientToolResultParams,
    HistoryPageParams,
    InitializeParams,
    ModelRefreshParams,
    OperationCancelParams,
    PageParams,
    Params,
    SelectionSetParams,
    ToolDescriptor,
    TurnCancelParams,
    TurnStartParams,
)
from statemachines import admission
from statemachines.admission import Admission, Check
from statemachines.approval import ApprovalInput
from statemachines.step import Feed

from .engine import Engine
from .facts import Facts


class Asked(Struct):
    """A request on its way through its method's checks. ``params`` is set once they are checked."""

    request: Request
    method: str
    params: Params | None = None
    tools: tuple[ToolDescriptor, ...] | None = None


class Accepted(Struct, frozen=True):
    """An admitted request: what it feeds, and what goes along."""

    feed: Feed
    subject: Feed | None
    asked: Asked


Verdict = Accepted | Code


def _params(asked: Asked, facts: Facts) -> bool:
    try:
        asked.params = (
            initialize_form(asked.request) if asked.method == "initialize" else params_of(asked.method, asked.request)
        )
    except InvalidParams:
        return False
    return not isinstance(asked.params, ModelRefreshParams) or _is_refreshable(asked.params.provider, facts)


def _is_refreshable(provider: str, facts: Facts) -> bool:
    """Refused with the form, so that it is no admission and invalidates nothing (EXT-REFRESH-04, EXT-OP-35)."""
    known = facts.startup.refreshable
    return known is None or provider in known


def _registry(asked: Asked, facts: Facts) -> bool:
    try:
        asked.tools = client_registry(cast(InitializeParams, asked.params))
    except InvalidParams:
        return False
    return True


def _same_session(asked: Asked, facts: Facts) -> bool:
    params = cast("HistoryPageParams | SelectionSetParams | TurnStartParams", asked.params)
    return params.session_id == facts.session_id


def _same_run(asked: Asked, facts: Facts) -> bool:
    params = cast("TurnCancelParams | ApprovalAnswerParams | ClientToolResultParams", asked.params)
    return (params.session_id, params.run_id) == (facts.run.session_id, facts.run.run_id)


def _same_approval(asked: Asked, facts: Facts) -> bool:
    return _same_run(asked, facts) and cast(ApprovalAnswerParams, asked.params).approval_id in facts.run.approvals


def _same_call(asked: Asked, facts: Facts) -> bool:
    params = cast(ClientToolResultParams, asked.params)
    call = facts.run.calls.get(params.call_id)
    return (
        call is not None
        and _same_run(asked, facts)
        and params.instance_id == facts.instance_id
        and (params.task_id, params.subagent_id) == (call.task_id, call.subagent_id)
    )


def _paged(snapshot: str) -> Callable[[Asked, Facts], bool]:
    def same(asked: Asked, facts: Facts) -> bool:
        return cast("PageParams | HistoryPageParams", asked.params).revision == facts.revisions.get(snapshot)

    return same


PREDICATES: Final[Mapping[Check, Callable[[Asked, Facts], bool]]] = {
    admission.PARAMS: _params,
    admission.SUPPORTED: lambda asked, facts: (
        set(cast(InitializeParams, asked.params).required_capabilities) <= facts.served
    ),
    admission.REGISTRY: _registry,
    admission.NEGOTIATED: lambda asked, facts: asked.method in facts.negotiated,
    admission.CALLS_NEGOTIATED: lambda asked, facts: CLIENT_TOOLS in facts.negotiated,
    admission.SAME_SESSION: _same_session,
    admission.SAME_REVISION: _paged("history"),
    admission.SAME_LISTING: _paged("list"),
    admission.SAME_PAGES: _paged("catalog"),
    admission.SAME_SELECTION: lambda asked, facts: (
        facts.selection is not None
        and cast(SelectionSetParams, asked.params).selection_revision == facts.selection.revision
    ),
    admission.SAME_CATALOG: lambda asked, facts: (
        cast(SelectionSetParams, asked.params).catalog_revision == facts.revisions.get("catalog")
    ),
    admission.SAME_RUN: _same_run,
    admission.SAME_APPROVAL: _same_approval,
    admission.SAME_REQUEST: lambda asked, facts: (
        cast(OperationCancelParams, asked.params).request_id == facts.operation.request_id
    ),
    admission.SAME_CALL: _same_call,
    admission.PROTECTED: lambda asked, facts: True,
}
"""Factual check of a method -> its predicate. Whether a result survives redaction is the runner's to say later."""


CODES: Final = {str(code): code for code in Code}
"""Code as the tables spell it -> the code."""


def identity(request: Request, facts: Facts) -> Check | None:
    """The checks of a line behind its grammar: a new id, a free place, a known method. The failed one, or None.

    A new id is retained, whatever becomes of the request (D11).
    """
    if request.id in facts.ids:
        return admission.NEW_ID
    if len(facts.ids) >= LIMITS.requests_per_child:
        return admission.QUOTA
    facts.ids.add(request.id)
    known = request.method in METHODS and (request.method not in _BASE or request.method in facts.served)
    return None if known else admission.KNOWN


_BASE: Final = frozenset(METHODS) - {"client.tool.result"}


def classify(request: Request, facts: Facts, engine: Engine) -> Verdict:
    """Walk the method's checks in order: the first that fails gives its code, else the request is accepted."""
    asked = Asked(request, request.method)
    entry = admission.METHODS[request.method]
    for check in entry.checks:
        if not _passes(check, asked, facts, engine):
            return _code(check, facts)
    more = admission.METHODS.get(f"{request.method}/continuation")
    if more is not None and cast(PageParams, asked.params).revision is not None:
        for check in more.checks[len(entry.checks) :]:
            if not _passes(check, asked, facts, engine):
                return _code(check, facts)
    brings = entry.brings
    return Accepted(_feed(entry, asked), (brings.machine, brings.input) if brings else None, asked)


def _passes(check: Check, asked: Asked, facts: Facts, engine: Engine) -> bool:
    if not check.structural:
        return PREDICATES[check](asked, facts)
    return engine.passes(check, _addressed(asked))


def _addressed(asked: Asked) -> str:
    """The instance that a request names, if it names one."""
    if isinstance(asked.params, ApprovalAnswerParams):
        return f"approval:{asked.params.approval_id}"
    if isinstance(asked.params, ClientToolResultParams):
        return f"client_call:{asked.params.call_id}"
    return ""


def _code(check: Check, facts: Facts) -> Code:
    if check.code == admission.STARTUP_CODE:
        return facts.startup.failure or Code.STARTUP_FAILED
    return CODES[check.code]


def _feed(entry: Admission, asked: Asked) -> Feed:
    fires = entry.choices[0]
    if isinstance(asked.params, ApprovalAnswerParams) and not asked.params.allow:
        fires = next(each for each in entry.choices if each.input is ApprovalInput.RECV_DENY)
    return _addressed(asked) or fires.machine, fires.input
