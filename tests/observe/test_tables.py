"""The observer's own tables: every clause they cite exists, and every shape and fact is of use."""

import re
from pathlib import Path

import pytest

from localagent.conformance.register import find
from localagent.protocol.codes import Code
from localagent.protocol.messages import EVENTS, RESULTS
from localagent.protocol.results import Output
from statemachines import witness
from statemachines.admission import LINE, METHODS
from statemachines.witness.facts import ALSO, FACTS
from statemachines.witness.rules import RULES
from statemachines.witness.shapes import CODES, SHAPES, TURN_CODES, TYPES, WORKER_CODES

ROOM = Path(witness.__file__).parent
CLAUSE = re.compile(r"\b(?:D\d{2,3}|(?:[A-Z]+-)+\d+)\b")


@pytest.mark.parametrize("path", [*ROOM.glob("*.py"), ROOM.parent / "observe.py"], ids=lambda path: path.name)
def test_every_clause_that_is_cited_exists(path: Path) -> None:
    assert [each for each in set(CLAUSE.findall(path.read_text())) if not _known(each)] == []


def _known(clause: str) -> bool:
    try:
        find(clause)
    except KeyError:
        return clause in ("UTF-8", "RFC-3339")
    return True


def test_every_rule_is_about_a_frame_that_has_a_shape() -> None:
    coded = {f"event/run.finished/{code}" for code in Code}
    assert {kind for rule in RULES for kind in rule.on.split()} <= {*SHAPES, "frame", "event", *coded}


def test_every_factual_check_has_a_fact() -> None:
    checks = [check for check, _ in LINE] + [check for each in METHODS.values() for check in each.checks]
    assert {check.name for check in checks if not check.structural} == set(FACTS)


def test_every_method_and_event_has_its_shapes() -> None:
    methods = {name for name in METHODS if "/" not in name}
    assert {name.removeprefix("params/") for name in SHAPES if name.startswith("params/")} == methods
    assert {name.removeprefix("result/") for name in SHAPES if name.startswith("result/")} == methods
    assert {name.removeprefix("event/") for name in SHAPES if name.startswith("event/")} == set(EVENTS)


def test_every_kind_of_value_is_used() -> None:
    used = {kind for shape in SHAPES.values() for field in shape.fields for kind in field.kinds}
    assert {kind for kind in used if kind.isupper()} == set(TYPES)


def test_codes_are_those_of_the_protocol_layer() -> None:
    """Two tables, written apart: the codes of the wire, and those that an observer knows."""
    local = {Code.CLIENT_TOOL_BUSY, Code.CLIENT_TOOL_PAYLOAD_LIMIT}
    assert set(CODES) == set(Code) - local
    assert all(set(codes) <= CODES for codes in (*WORKER_CODES.values(), TURN_CODES, *(a.codes.split() for a in ALSO)))


@pytest.mark.parametrize(
    "name", sorted({*(f"event/{name}" for name in EVENTS), *(f"result/{name}" for name in RESULTS)})
)
def test_keys_are_those_of_the_protocol_layer(name: str) -> None:
    """Two tables, written apart: the structs that write the wire, and the shapes that read it."""
    kind, _, bare = name.partition("/")
    struct: type[Output] = EVENTS[bare] if kind == "event" else RESULTS[bare]
    keys = {field.key for field in SHAPES[name].fields}
    optional = {"client_tools", "extensions"} if bare == "initialize" else set()
    assert keys == set(struct.__struct_encode_fields__) - optional
