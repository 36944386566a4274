"""Classifiers: each predicate both ways, and the orders D20 to D31 by requests that are wrong in several ways."""

from typing import Any

import pytest

from localagent.core.routes import CODES, PREDICATES, Accepted, Asked, classify
from localagent.protocol.codec import parse
from localagent.protocol.codes import Code
from statemachines import admission
from statemachines.admission import Check
from statemachines.approval import ApprovalInput
from tests.kit.core_driver import TOOL, Driver, request, uuid

from .asking import ALL, APPROVAL, CALL, PLACES, at, good, retain

A = admission
NAME = "x" * 65


def asked(method: str, params: object) -> Asked:
    return Asked(parse(request("q", method, params)), method)


def holds(check: Check, method: str, d: Driver, changed: dict[str, Any] | list[Any]) -> bool:
    """The answer of a predicate, its params having been looked at before."""
    params = {**good(method, d, *d.connection.facts.negotiated), **changed} if isinstance(changed, dict) else changed
    question = asked(method, params)
    if check is not A.PARAMS and isinstance(params, dict):
        assert PREDICATES[A.PARAMS](question, d.connection.facts)
    return PREDICATES[check](question, d.connection.facts)


OTHER = {"session_id": "s9"}
WAYS: list[tuple[Check, str, str, dict[str, Any] | list[Any], bool]] = [
    (A.PARAMS, "status", "nothing said", {}, True),
    (A.PARAMS, "status", "nothing said", [], False),
    (A.PARAMS, "initialize", "nothing said", {}, True),
    (A.PARAMS, "initialize", "nothing said", {"required_capabilities": [NAME]}, False),
    (A.SUPPORTED, "initialize", "nothing said", {"required_capabilities": ["status", "tool.cards"]}, True),
    (A.SUPPORTED, "initialize", "nothing said", {"required_capabilities": ["status", "no.such"]}, False),
    (A.REGISTRY, "initialize", "nothing said", {}, True),
    (A.REGISTRY, "initialize", "nothing said", {"required_capabilities": ["client.tools"]}, False),
    (A.REGISTRY, "initialize", "nothing said", {"client_tools": [TOOL]}, False),
    (A.NEGOTIATED, "model.refresh", "nothing attached", {}, True),
    (A.NEGOTIATED, "model.refresh", "nothing said", {}, False),
    (A.CALLS_NEGOTIATED, "client.tool.result", "asking", {}, True),
    (A.CALLS_NEGOTIATED, "client.tool.result", "nothing said", {}, False),
    *((A.SAME_SESSION, method, "attached, everything read", {}, True) for method in ("history.page", "turn.start")),
    *((A.SAME_SESSION, method, "attached, everything read", OTHER, False) for method in ("history.page", "turn.start")),
    (A.SAME_SESSION, "selection.set", "attached, everything read", OTHER, False),
    (A.SAME_SESSION, "turn.start", "nothing attached", {}, False),
    (A.SAME_REVISION, "history.page", "attached, everything read", {}, True),
    (A.SAME_REVISION, "history.page", "attached, everything read", {"revision": "h0"}, False),
    (A.SAME_REVISION, "history.page", "nothing attached", {}, False),
    (A.SAME_LISTING, "session.list", "attached, everything read", {"revision": "l1", "cursor": "k"}, True),
    (A.SAME_LISTING, "session.list", "attached, everything read", {"revision": "l0", "cursor": "k"}, False),
    (A.SAME_PAGES, "model.catalog", "attached, everything read", {"revision": "c1", "cursor": "k"}, True),
    (A.SAME_PAGES, "model.catalog.status", "attached, everything read", {"revision": "c0", "cursor": "k"}, False),
    (A.SAME_SELECTION, "selection.set", "attached, everything read", {}, True),
    (A.SAME_SELECTION, "selection.set", "attached, everything read", {"selection_revision": "sel0"}, False),
    (A.SAME_SELECTION, "selection.set", "nothing said", {}, False),
    (A.SAME_CATALOG, "selection.set", "attached, everything read", {}, True),
    (A.SAME_CATALOG, "selection.set", "nothing attached", {}, False),
    (A.SAME_RUN, "turn.cancel", "executing", {}, True),
    (A.SAME_RUN, "turn.cancel", "executing", OTHER, False),
    (A.SAME_RUN, "turn.cancel", "executing", {"run_id": uuid(0xF)}, False),
    (A.SAME_APPROVAL, "approval.answer", "asking", {}, True),
    (A.SAME_APPROVAL, "approval.answer", "asking", {"run_id": uuid(0xF)}, False),
    (A.SAME_APPROVAL, "approval.answer", "asking", {"approval_id": CALL}, False),
    (A.SAME_REQUEST, "operation.cancel", "creating", {}, True),
    (A.SAME_REQUEST, "operation.cancel", "creating", {"request_id": "auto1"}, False),
    (A.SAME_CALL, "client.tool.result", "asking", {}, True),
    (A.SAME_CALL, "client.tool.result", "asking", {"call_id": APPROVAL}, False),
    (A.SAME_CALL, "client.tool.result", "asking", {"instance_id": uuid(0xF)}, False),
    (A.SAME_CALL, "client.tool.result", "asking", {"task_id": "t"}, False),
    (A.SAME_CALL, "client.tool.result", "asking", {"subagent_id": "t"}, False),
    (A.SAME_CALL, "client.tool.result", "asking", OTHER, False),
    (A.PROTECTED, "client.tool.result", "asking", {}, True),
]


@pytest.mark.parametrize(("check", "method", "place", "changed", "expected"), WAYS)
def test_each_predicate(check: Check, method: str, place: str, changed: Any, expected: bool) -> None:
    assert holds(check, method, at(place, *ALL), changed) is expected


def test_every_factual_check_of_a_method_has_a_predicate_that_is_tried_both_ways() -> None:
    factual = {check for entry in admission.METHODS.values() for check in entry.checks if not check.structural}
    assert set(PREDICATES) == factual
    assert {(check, True) for check in factual} <= {(check, expected) for check, *_, expected in WAYS}
    assert {(check, False) for check in factual - {A.PROTECTED}} <= {(check, expected) for check, *_, expected in WAYS}
    assert set(CODES) == {str(code) for code in Code}


NOT, BAD, BUSY, CAPABILITY = "not_initialized", "invalid_params", "busy", "unsupported_capability"
MANY = ["status"] * 16
ORDERS: list[tuple[str, str, tuple[str, ...], str, object, str]] = [
    # rule, place, negotiated, method, params, the code that wins
    ("D20", "starting", (), "initialize", [], "already_initialized"),
    ("D20", "startup failed", (), "initialize", {"required_capabilities": ["no.such"]}, "already_initialized"),
    ("D20", "nothing said", (), "initialize", {"required_capabilities": [*MANY, "no.such"]}, BAD),
    ("D20", "nothing said", (), "initialize", {"required_capabilities": ["no.such", NAME]}, BAD),
    ("D20", "nothing said", (), "initialize", {"required_capabilities": ["no.such"], "client_tools": 1}, BAD),
    ("D20", "nothing said", (), "initialize", {"required_capabilities": ["no.such", "client.tools"]}, CAPABILITY),
    ("D20", "nothing said", (), "initialize", {"required_capabilities": ["no.such"], "client_tools": []}, CAPABILITY),
    ("D20", "nothing said", (), "initialize", {"required_capabilities": ["client.tools"]}, BAD),
    ("D20", "nothing said", (), "initialize", {"required_capabilities": [], "client_tools": [TOOL]}, BAD),
    ("D68", "nothing said", (), "initialize", {"required_capabilities": [*MANY, "tool.cards"]}, BAD),
    ("D21", "executing", (), "shutdown", {"now": True}, BAD),
    ("D21", "starting", (), "shutdown", None, BAD),
    ("D22", "nothing said", (), "status", [], NOT),
    ("D22", "startup failed", (), "status", [], BAD),
    ("D23", "starting", (), "model.refresh", [], NOT),
    ("D23", "startup failed", (), "model.refresh", [], "mcp_unavailable"),
    ("D23", "creating", (), "model.refresh", [], BUSY),
    ("D23", "nothing attached", (), "model.refresh", [], CAPABILITY),
    ("D23", "executing", (), "model.refresh", [], CAPABILITY),
    ("D23", "executing", ALL, "model.refresh", [], BAD),
    ("D23", "creating", ALL, "history.page", {"session_id": 1}, BUSY),
    ("D23", "executing", (), "history.page", {"session_id": "s9", "revision": "h9"}, BUSY),
    ("D23", "run cancelled", (), "session.list", {"revision": "l9", "cursor": "k"}, BUSY),
    ("D24", "starting", (), "turn.start", [], NOT),
    ("D24", "startup failed", (), "turn.start", [], "mcp_unavailable"),
    ("D24", "creating", (), "turn.start", {"session_id": "s9", "prompt": " "}, BAD),
    ("D24", "creating", (), "turn.start", {"session_id": "s9", "prompt": "x"}, BUSY),
    ("D24", "executing", (), "turn.start", {"session_id": "s9", "prompt": "x"}, BUSY),
    ("D24", "nothing attached", (), "turn.start", {"session_id": "s9", "prompt": "x"}, "session_missing"),
    ("D24", "attached, everything read", (), "turn.start", {"session_id": "s9", "prompt": "x"}, "stale_session"),
    ("D25", "nothing said", (), "turn.cancel", {"session_id": "s9"}, BAD),
    ("D25", "starting", (), "turn.cancel", {"session_id": "s9", "run_id": "r"}, NOT),
    ("D25", "startup failed", (), "turn.cancel", {"session_id": "s9", "run_id": "r"}, "mcp_unavailable"),
    ("D25", "executing", (), "turn.cancel", {"session_id": "s9", "run_id": "r"}, "stale_run"),
    ("D26", "nothing said", (), "approval.answer", {"allow": 1}, BAD),
    ("D26", "startup failed", (), "approval.answer", {"allow": 1}, BAD),
    ("D27", "nothing said", (), "operation.cancel", [], CAPABILITY),
    ("D27", "startup failed", (), "operation.cancel", {"request_id": "q"}, CAPABILITY),
    ("D27", "creating", ALL, "operation.cancel", {"request_id": NAME}, BAD),
    ("D27", "creating", ALL, "operation.cancel", {"request_id": "q"}, "operation_missing"),
    ("D27", "starting", ALL, "operation.cancel", {"request_id": "auto1"}, "operation_missing"),
    ("D28", "nothing said", (), "client.tool.result", [], "unsupported_method"),
    ("D28", "asking", (), "client.tool.result", [], "unsupported_method"),
    ("D28", "starting", ALL, "client.tool.result", [], NOT),
    ("D28", "executing", ALL, "client.tool.result", {"call_id": "c"}, BAD),
    ("D29", "nothing attached", (), "history.page", {"session_id": "s9", "revision": "h9"}, "session_missing"),
    ("D29", "attached, everything read", (), "history.page", {"session_id": "s9", "revision": "h9"}, "stale_session"),
    ("D29", "attached, everything read", (), "history.page", {"session_id": "s1", "revision": "h9"}, "stale_revision"),
    ("D31", "attached, everything read", (), "session.list", {"revision": "l9", "cursor": "k"}, "stale_revision"),
    ("D31", "attached, everything read", (), "model.catalog", {"revision": "c9", "cursor": "k"}, "stale_catalog"),
    ("D31", "nothing attached", ALL, "model.catalog.status", {"revision": "c1", "cursor": "k"}, "stale_catalog"),
]
WRONG = {"session_id": "s9", "selection_revision": "x9", "catalog_revision": "c9", "provider": "p", "model": "m"}
ORDERS += [
    ("D30", place, (), "selection.set", WRONG | right, code)
    for place, right, code in (
        ("nothing attached", {}, "session_missing"),
        ("attached, everything read", {}, "stale_session"),
        ("attached, everything read", {"session_id": "s1"}, "stale_selection"),
        ("attached, everything read", {"session_id": "s1", "selection_revision": "sel-h1"}, "stale_catalog"),
        ("a run is over", {"session_id": "s1", "selection_revision": "sel-h1"}, "stale_catalog"),
        ("executing", {}, BUSY),
        ("executing", {"effort": {"mode": "set"}}, BAD),
        ("selecting", {"effort": None}, BUSY),
    )
]


@pytest.mark.parametrize(("rule", "place", "negotiated", "method", "params", "code"), ORDERS)
def test_the_first_check_that_fails_gives_the_code(
    rule: str, place: str, negotiated: tuple[str, ...], method: str, params: object, code: str
) -> None:
    assert place in PLACES
    assert at(place, *negotiated).ask(method, params, id_="q").answers == [("q", code)], rule


@pytest.mark.parametrize(
    ("required", "admitted"),
    [([], True), (["status", "status"], True), (MANY, True), ([*MANY, "status"], False)],
)
def test_how_many_capabilities(required: list[str], admitted: bool) -> None:
    """An empty list is fine, names may repeat and count again (D20)."""
    out = Driver().ask("initialize", {"required_capabilities": required})
    assert (out.commands != [], out.answers != []) == (admitted, not admitted)


@pytest.mark.parametrize(("count", "admitted"), [(17, True), (18, True), (19, False)])
def test_two_more_with_client_tools(count: int, admitted: bool) -> None:
    required = ["client.tools", *["status"] * (count - 1)]
    out = Driver().ask("initialize", {"required_capabilities": required, "client_tools": [TOOL]})
    assert (out.commands != []) is admitted


def test_a_refused_initialize_can_be_corrected() -> None:
    """NEG-19; its id is used up (BASE-OP-38)."""
    d = Driver()
    wrong: list[object] = [[], {"required_capabilities": ["no.such"]}, {"required_capabilities": ["client.tools"]}]
    for params in wrong:
        assert d.ask("initialize", params).commands == []
    assert d.ask("initialize", good("initialize", d), id_="auto1").answers == [("auto1", "duplicate_id")]
    assert d.ask("initialize", good("initialize", d)).commands


def test_the_order_of_a_line() -> None:
    """D01: duplicate id > quota > method > the method's own order."""
    d = Driver()
    d.ask("status", id_="q")
    assert d.ask("no.such", [], id_="q").answers == [("q", "duplicate_id")]
    assert d.ask("no.such", []).answers[0][1] == "unsupported_method"
    retain(d, 4_096)
    assert d.ask("no.such", [], id_="q").answers == [("q", "duplicate_id")]
    assert d.ask("no.such", [], id_="new").answers == [("new", "request_limit")]


@pytest.mark.parametrize(("allow", "fires"), [(True, ApprovalInput.RECV_ALLOW), (False, ApprovalInput.RECV_DENY)])
def test_what_an_answer_fires(allow: bool, fires: ApprovalInput) -> None:
    """The instance that is named, and the input that the answer is."""
    d = at("asking", *ALL)
    line = request("q", "approval.answer", good("approval.answer", d) | {"allow": allow})
    verdict = classify(parse(line), d.connection.facts, d.connection.engine)
    assert isinstance(verdict, Accepted)
    assert verdict.feed == (f"approval:{APPROVAL}", fires)
