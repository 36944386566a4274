"""Faults of negotiation: what is served before, without and after it."""

from typing import Any

from .mutant import fault
from .tools import around, bounds, instead_of, passed, unchecked


@fault
def second_initialize_accepted() -> None:
    """A second initialize is answered like the first."""
    from localagent.core import fill

    instead_of("already_initialized", lambda self, request: fill._initialized(self.facts, self.engine))


@fault
def status_before_initialize() -> None:
    """status is answered before initialize."""
    from localagent.protocol.results import Status

    def answer(self: Any, request: Any) -> Any:
        known = self.facts.startup
        return Status(
            context_id=known.context_id,
            model=None,
            provider=None,
            readiness="initializing",
            run_id=None,
            session_id=None,
            state="starting",
        )

    instead_of("not_initialized", lambda self, request: answer(self, request) if request.method == "status" else None)


@fault
def unsupported_capability_ignored() -> None:
    """A required capability that is not supported is passed over."""
    passed("SUPPORTED")


@fault
def discovery_without_negotiation() -> None:
    """session.discover is served though its name was not required."""
    unchecked("session.discover", "NEGOTIATED")


@fault
def catalog_status_without_negotiation() -> None:
    """model.catalog.status is served though its name was not required."""
    unchecked("model.catalog.status", "NEGOTIATED")


@fault
def refresh_without_negotiation() -> None:
    """model.refresh is served though its name was not required."""
    unchecked("model.refresh", "NEGOTIATED")


@fault
def operation_cancel_without_negotiation() -> None:
    """operation.cancel is served though its name was not required."""
    unchecked("operation.cancel", "NEGOTIATED")


@fault
def capabilities_bound_below() -> None:
    """Sixteen required capabilities are too many."""
    from localagent.protocol import params

    bounds(params, required_capabilities=15)


@fault
def capabilities_bound_above() -> None:
    """Seventeen required capabilities are not too many."""
    from localagent.protocol import params

    bounds(params, required_capabilities=17)


@fault
def refused_initialize_counts() -> None:
    """After a refused initialize another one is a second one."""
    from localagent.core import routes
    from localagent.protocol.codes import Code

    tried = [False]

    @around(routes, "classify")
    def classify(original: Any, request: Any, facts: Any, engine: Any) -> Any:
        if request.method != "initialize":
            return original(request, facts, engine)
        verdict = Code.ALREADY_INITIALIZED if tried[0] else original(request, facts, engine)
        tried[0] = True
        return verdict


@fault
def empty_requirement_unsupported() -> None:
    """A requirement of nothing is a capability that is not supported."""
    from localagent.core import routes
    from localagent.protocol.codes import Code

    @around(routes, "classify")
    def classify(original: Any, request: Any, facts: Any, engine: Any) -> Any:
        nothing = request.method == "initialize" and request.params == {"required_capabilities": []}
        return Code.UNSUPPORTED_CAPABILITY if nothing else original(request, facts, engine)
