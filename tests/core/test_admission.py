"""Base 19.4 cell by cell: a real connection in each column, asked by each method, with good params and with bad."""

import json

import pytest

from localagent.core.connection import Connection
from statemachines.registry import MACHINES
from tests.kit.admission_table import COLUMNS, METHODS, OPTIONAL, ROWS, THEN, predict
from tests.kit.core_driver import SERVED, Driver, fresh_ids, request

from .asking import ALL, PLACES, at, bad, good

AT_ONCE = {"status", "shutdown", "turn.cancel", "approval.answer", "operation.cancel", "client.tool.result"}


def faults(method: str, place: str) -> set[str]:
    """What good params cannot make good: what they name is not there."""
    found = set()
    if place == "nothing attached":
        found.add("session_missing")
    if place != "asking":
        found |= {"stale_approval", "stale_client_tool_call"}
    if method == "selection.set" and place == "a run is over":
        found.add("stale_catalog")  # none was read
    return found


def states(d: Driver) -> dict[str, object]:
    engine = d.connection.engine
    return {name: engine.state(name) for machine in MACHINES for name in engine.instances(machine)}


def expect(d: Driver, place: str, method: str, params: object, fine: bool) -> str:
    """Ask, compare with the table; the outcome."""
    negotiated = d.connection.facts.negotiated
    outcome = predict(
        method,
        PLACES[place],
        negotiated=negotiated,
        params=fine,
        faults=faults(method, place),
        startup="mcp_unavailable",
    )
    before, out = states(d), d.ask(method, params)
    codes = [answer for _, answer in out.answers]
    if outcome == "none":
        assert (out.frames, out.commands) == ([], []), (place, method)
    elif outcome != "ok":
        assert (codes, out.commands) == ([outcome], []), (place, method, params)
    elif method in AT_ONCE:
        assert [type(code) for code in codes[:1]] == [dict], (place, method, codes)
    else:
        assert [type(code) for code in codes] == [dict] * (method == "turn.start"), (place, method, codes)
        assert [(type(each).__name__, getattr(each, "method", "")) for each in out.commands] == [
            ("StartWorker", method)
        ]
    if outcome != "ok":
        assert states(d) == before, "a refused request leaves every machine where it was"
    return outcome


@pytest.mark.parametrize("method", [*METHODS, "no.such.method"])
@pytest.mark.parametrize("place", PLACES)
def test_each_cell(place: str, method: str) -> None:
    for capabilities in (ALL, ()):
        d = at(place, *capabilities)
        params = good(method, d, *capabilities)
        if method in METHODS:
            for spoiled in bad(method, params):
                expect(d, place, method, spoiled, fine=False)
        expect(d, place, method, params, fine=True)


def test_the_table_is_whole() -> None:
    assert len(METHODS) == 17
    assert {len(cells) for cells, _ in ROWS.values()} == {len(COLUMNS)}
    assert set(PLACES.values()) == set(COLUMNS)
    assert set(THEN) <= set(METHODS)
    assert OPTIONAL.issubset(METHODS)


def test_every_cell_is_met() -> None:
    """The places above reach every column for every method with and without its capability."""
    met = {(method, PLACES[place]) for place in PLACES for method in METHODS}
    assert met == {(method, column) for method in METHODS for column in COLUMNS}


def test_the_sixteen_are_served_unless_something_else_is_said() -> None:
    connection = Connection(fresh_ids())
    for method in METHODS:
        list(connection.receive(request(method, method, 7), 0))
    codes = {}
    while connection.output:
        frame = json.loads(bytes(connection.output.head()))
        codes[frame["id"]] = frame["error"]["code"]
        connection.wrote(len(connection.output.head()), 0)
    assert [method for method in METHODS if codes[method] == "unsupported_method"] == ["client.tool.result"]


@pytest.mark.parametrize("method", [method for method in METHODS if method != "client.tool.result"])
def test_a_method_that_is_not_served(method: str) -> None:
    """A method that does not exist yet is unknown (D14), requiring it unsupported (NEG-14)."""
    d = Driver(SERVED - {method})
    assert d.ask(method, good(method, d)).answers == [("auto1", "unsupported_method")]
    if method != "initialize":
        assert d.ask("initialize", {"required_capabilities": [method]}).answers == [("auto2", "unsupported_capability")]
        d.ready()
        assert method not in d.frames[-1]["result"]["capabilities"]
        assert d.ask(method, good(method, d)).answers == [("auto4", "unsupported_method")]
