"""``initialize`` with client tools: form first, then the registry (D20, CT 2 to 5); and the bound on a call."""

import json
from typing import Any

import pytest

from localagent.protocol.client_tools import arguments_fit, client_registry, is_schema_object
from localagent.protocol.codec import Request, initialize_form, parse
from localagent.protocol.errors import InvalidParams
from localagent.protocol.measure import compact_bytes
from localagent.protocol.params import InitializeParams, ToolDescriptor

SCHEMA: dict[str, Any] = {"type": "object"}
TOOL: dict[str, Any] = {"name": "client__t", "description": "Does it.", "input_schema": SCHEMA}


def initialize(params: object) -> Request:
    line = {"protocol": "magi-code.local-agent", "version": 1, "id": "r1", "method": "initialize", "params": params}
    return parse(json.dumps(line).encode())


def form(params: object) -> InitializeParams:
    return initialize_form(initialize(params))


def registry(*tools: object) -> tuple[ToolDescriptor, ...] | None:
    return client_registry(form({"required_capabilities": ["client.tools"], "client_tools": tools}))


def bad_form(params: object) -> bool:
    with pytest.raises(InvalidParams):
        form(params)
    return True


def bad_registry(*tools: object) -> bool:
    """The form passes, so that an unknown capability would still be named before (D20, CT-OP-05)."""
    accepted = form({"required_capabilities": ["client.tools"], "client_tools": tools})
    with pytest.raises(InvalidParams):
        client_registry(accepted)
    return True


# The form


@pytest.mark.parametrize("params", [None, [], {}, {"required_capabilities": None}, {"required_capabilities": "status"}])
def test_wrong_shape(params: object) -> None:
    """NEG-08, NEG-09, NEG-13."""
    assert bad_form(params)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "é", "status\n", 1, None, ["status"]])
def test_a_name_outside_the_grammar(name: object) -> None:
    """ENV-12, BASE-OP-75."""
    assert bad_form({"required_capabilities": ["status", name]})


def test_no_name_and_repeated_names() -> None:
    """D20, BASE-OP-73, BASE-OP-74."""
    assert form({"required_capabilities": []}).required_capabilities == ()
    assert form({"required_capabilities": ["a", "a"]}).required_capabilities == ("a", "a")


@pytest.mark.parametrize(("count", "fits"), [(15, True), (16, True), (17, False), (18, False)])
def test_sixteen_names(count: int, fits: bool) -> None:
    """NEG-10; unknown and repeated names count (BASE-OP-76)."""
    params = {"required_capabilities": ["status"] * (count - 1) + ["unknown"]}
    assert form(params) if fits else bad_form(params)


@pytest.mark.parametrize(("count", "fits"), [(17, True), (18, True), (19, False)])
@pytest.mark.parametrize("at", [0, -1])
def test_eighteen_names_with_client_tools(count: int, fits: bool, at: int) -> None:
    """NEG-12, CT-14, wherever the name stands."""
    names = ["status"] * count
    names[at] = "client.tools"
    params = {"required_capabilities": names, "client_tools": []}
    assert form(params) if fits else bad_form(params)


@pytest.mark.parametrize(
    "tools",
    [
        None,
        {},
        "x",
        [None],
        [[]],
        ["client__t"],
        [{}],
        [{**TOOL, "extra": 1}],
        [{key: value for key, value in TOOL.items() if key != "name"}],
        [{key: value for key, value in TOOL.items() if key != "description"}],
        [{key: value for key, value in TOOL.items() if key != "input_schema"}],
        [{**TOOL, "name": 1}],
        [{**TOOL, "description": None}],
        [{**TOOL, "input_schema": []}],
        [{**TOOL, "input_schema": None}],
        [{**TOOL, "input_schema": True}],
        [{**TOOL, "timeout_ms": None}],
        [{**TOOL, "timeout_ms": 30000.0}],
        [{**TOOL, "timeout_ms": "30000"}],
        [{**TOOL, "timeout_ms": True}],
    ],
    ids=repr,
)
def test_faults_of_form(tools: object) -> None:
    """CT-12, CT-28 to CT-30, CT-OP-05, CT-OP-07: seen before an unknown capability."""
    assert bad_form({"required_capabilities": ["client.tools", "unknown"], "client_tools": tools})


@pytest.mark.parametrize(
    "place", ['{"name":"client__t",', '{"name":"client__t","description":"d","input_schema":{"type":"object",']
)
def test_a_key_twice_in_a_descriptor_or_schema(place: str) -> None:
    """CT-30, CT-OP-11."""
    whole = '{"name":"client__t","description":"d","input_schema":{"type":"object"}}'
    tool = place + whole[1:] if "schema" not in place else place + '"type":"object"}}'
    params = f'{{"required_capabilities":["client.tools"],"client_tools":[{tool}]}}'
    head = b'{"protocol":"magi-code.local-agent","version":1,"id":"r1","method":"initialize","params":'
    with pytest.raises(InvalidParams):
        initialize_form(parse(head + params.encode() + b"}"))


# Presence


def test_without_client_tools_there_is_no_registry() -> None:
    assert client_registry(form({"required_capabilities": ["status"]})) is None


@pytest.mark.parametrize("tools", [[], [TOOL]])
def test_client_tools_must_not_come_unasked(tools: object) -> None:
    """CT-11: told only after unknown names (D20)."""
    accepted = form({"required_capabilities": ["status"], "client_tools": tools})
    with pytest.raises(InvalidParams):
        client_registry(accepted)


def test_client_tools_must_come_when_asked() -> None:
    """CT-10."""
    accepted = form({"required_capabilities": ["client.tools"]})
    with pytest.raises(InvalidParams):
        client_registry(accepted)


def test_an_empty_registry() -> None:
    """CT-13."""
    assert registry() == ()


# Descriptors


def test_effective_descriptors_in_order() -> None:
    """CT-27, CT-39."""
    tools = registry({**TOOL, "name": "client__b", "timeout_ms": 1000}, TOOL)
    assert tools == (
        ToolDescriptor(name="client__b", description="Does it.", input_schema=SCHEMA, timeout_ms=1000),
        ToolDescriptor(name="client__t", description="Does it.", input_schema=SCHEMA, timeout_ms=30_000),
    )


@pytest.mark.parametrize(("count", "fits"), [(32, True), (33, False)])
def test_thirty_two_tools(count: int, fits: bool) -> None:
    """CT-32."""
    tools = [{**TOOL, "name": f"client__{index}"} for index in range(count)]
    assert registry(*tools) if fits else bad_registry(*tools)


def test_names_are_unique_and_case_sensitive() -> None:
    """CT-31, CT-34, CT-OP-10."""
    assert bad_registry(TOOL, TOOL)
    assert registry({**TOOL, "name": "client__A"}, {**TOOL, "name": "client__a"})


@pytest.mark.parametrize(
    ("name", "fits"), [("client__" + "x" * 56, True), ("client__" + "x" * 57, False), ("t", False)]
)
def test_tool_names(name: str, fits: bool) -> None:
    """CT-33."""
    tool = {**TOOL, "name": name}
    assert registry(tool) if fits else bad_registry(tool)


@pytest.mark.parametrize(
    ("description", "fits"),
    [
        ("x" * 2048, True),
        ("x" * 2049, False),
        ("é" * 1024, True),
        ("é" * 1024 + "x", False),
        ("a\n\tb", True),
        ("a\rb", False),
        ("a\x7f", False),
        ("a\x85b", False),
        ("", False),
        (" \n\u3000", False),
    ],
    ids=lambda value: repr(value)[:12],
)
def test_descriptions(description: str, fits: bool) -> None:
    """CT-35 to CT-37, CT-OP-08."""
    tool = {**TOOL, "description": description}
    assert registry(tool) if fits else bad_registry(tool)


@pytest.mark.parametrize(
    ("timeout", "fits"), [(999, False), (1000, True), (300_000, True), (300_001, False), (-1, False)]
)
def test_timeouts(timeout: int, fits: bool) -> None:
    """CT-38."""
    tool = {**TOOL, "timeout_ms": timeout}
    assert registry(tool) if fits else bad_registry(tool)


def padded(size: int) -> dict[str, Any]:
    """A schema of exactly ``size`` compact bytes."""
    schema = {"type": "object", "$comment": ""}
    return {**schema, "$comment": "é" + "x" * (size - compact_bytes(schema) - 2)}


@pytest.mark.parametrize(("size", "fits"), [(8191, True), (8192, True), (8193, False)])
def test_schema_bytes(size: int, fits: bool) -> None:
    """CT-41: compact bytes, non-ASCII raw."""
    tool = {**TOOL, "input_schema": padded(size)}
    assert compact_bytes(tool["input_schema"]) == size
    assert registry(tool) if fits else bad_registry(tool)


@pytest.mark.parametrize(("size", "fits"), [(32_768, True), (32_769, False)])
def test_registry_bytes_count_the_default_timeout(size: int, fits: bool) -> None:
    """CT-40: the array of effective descriptors."""

    def tools_with(last_schema: int) -> list[dict[str, Any]]:
        sizes = [7_800, 7_800, 7_800, 7_800, last_schema]
        return [{**TOOL, "name": f"client__{at}", "input_schema": padded(each)} for at, each in enumerate(sizes)]

    def effective(tools: list[dict[str, Any]]) -> int:
        return compact_bytes([{**tool, "timeout_ms": 30_000} for tool in tools])

    tools = tools_with(100 + size - effective(tools_with(100)))
    assert effective(tools) == size
    assert compact_bytes(tools) < 32_768  # it is the filled-in timeouts that go over
    assert registry(*tools) if fits else bad_registry(*tools)


def nested(containers: int) -> dict[str, Any]:
    """A schema whose ``default`` brings it to ``containers`` levels."""
    value: Any = 1
    for _ in range(containers - 1):
        value = [value]
    return {"type": "object", "default": value}


@pytest.mark.parametrize(("containers", "fits"), [(15, True), (16, True), (17, False)])
def test_schema_depth_counts_literals(containers: int, fits: bool) -> None:
    """CT-42, CT-OP-14."""
    tool = {**TOOL, "input_schema": nested(containers)}
    assert registry(tool) if fits else bad_registry(tool)


@pytest.mark.parametrize("root", [{}, {"type": "array"}, {"type": ["object"]}, {"type": None}, {"properties": {}}])
def test_the_root_says_object(root: object) -> None:
    """CT-43, CT-OP-12."""
    assert bad_registry({**TOOL, "input_schema": root})


def test_a_schema_outside_the_subset() -> None:
    """CT-52, CT-53: named here once through the whole registry; the subset itself is tested below."""
    assert bad_registry(TOOL, {**TOOL, "name": "client__u", "input_schema": {"type": "object", "$ref": "#"}})


# The schema subset

S: dict[str, Any] = {"type": "string"}
GOOD: list[tuple[str, list[Any]]] = [
    ("type", ["object", "array", "string", "number", "integer", "boolean", "null", ["string", "null"], ["null"]]),
    *[(word, [{}, {"a": S, "$ref": True, "type": {}}]) for word in ("properties", "$defs", "definitions")],
    ("patternProperties", [{"^(": S}]),
    *[(word, [S, {}, True, False]) for word in ("items", "additionalProperties", "not", "contains", "propertyNames")],
    *[(word, [[S], [True, {}]]) for word in ("allOf", "anyOf", "oneOf", "prefixItems")],
    ("required", [[], ["a"], ["a", "b"]]),
    ("enum", [[1], [None, {"$ref": 1}, "a", "a"]]),
    *[(word, [None, 1, {"$ref": [1]}, [], "x"]) for word in ("const", "default", "examples")],
    *[(word, ["", "x", "[("]) for word in ("description", "title", "pattern", "format", "$comment")],
    *[(w, [0, -1.5, 2**70]) for w in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")],
    ("multipleOf", [1, 0.1]),
    *[(w, [0, 7, 2**70]) for w in ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")],
    *[(word, [0, 7]) for word in ("minContains", "maxContains")],
    *[(word, [True, False]) for word in ("uniqueItems", "readOnly", "writeOnly", "deprecated")],
]
BAD: list[tuple[str, list[Any]]] = [
    ("type", [None, 1, "any", "Object", [], [1], ["string", "any"], {}, [["string"]]]),
    *[
        (w, [None, [], True, {"a": 1}, {"a": None}, {"a": {"$ref": "#"}}])
        for w in ("properties", "$defs", "definitions")
    ],
    ("patternProperties", [[], {"a": "string"}]),
    *[
        (w, [None, 1, "x", [], [S], {"x": 1}])
        for w in ("items", "additionalProperties", "not", "contains", "propertyNames")
    ],
    *[(word, [None, [], S, [1], [S, {"x": 1}], True]) for word in ("allOf", "anyOf", "oneOf", "prefixItems")],
    ("required", [None, "a", [1], ["a", "a"], {}, [["a"]], True]),
    ("enum", [None, [], {}, "a"]),
    *[(word, [None, 1, [], {}, True]) for word in ("description", "title", "pattern", "format", "$comment")],
    *[(w, [None, "1", True, []]) for w in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")],
    ("multipleOf", [0, 0.0, -1, -0.5, True, "1", None]),
    *[
        (w, [-1, 1.0, 2.0, True, "1", None])
        for w in ("minLength", "maxLength", "minItems", "maxItems", "minProperties")
    ],
    *[(w, [-1, 2.0, False, None]) for w in ("maxProperties", "minContains", "maxContains")],
    *[(word, [None, 0, 1, "true"]) for word in ("uniqueItems", "readOnly", "writeOnly", "deprecated")],
    *[(w, [{}, "x", True]) for w in ("$schema", "$ref", "$id", "$anchor", "$dynamicRef", "if", "then", "else", "")],
    *[
        (w, [{}, True])
        for w in ("dependentSchemas", "unevaluatedItems", "contentEncoding", "Type", "x-mine", "nullable")
    ],
]


def pairs(table: list[tuple[str, list[Any]]]) -> list[tuple[str, Any]]:
    return [(keyword, value) for keyword, values in table for value in values]


@pytest.mark.parametrize(("keyword", "value"), pairs(GOOD), ids=str)
def test_good_keywords(keyword: str, value: Any) -> None:
    """CT-46 to CT-51, CT-54, CT-57, CT-OP-12, CT-OP-15, CT-OP-16."""
    assert is_schema_object({keyword: value})
    assert is_schema_object({"properties": {"p": {"items": {keyword: value}}}})


@pytest.mark.parametrize(("keyword", "value"), pairs(BAD), ids=str)
def test_bad_keywords(keyword: str, value: Any) -> None:
    """CT-47 to CT-49, CT-51 to CT-53, CT-OP-12, CT-OP-13."""
    assert not is_schema_object({"type": "object", keyword: value})
    assert not is_schema_object({"anyOf": [True, {"properties": {"p": {keyword: value}}}]})


def test_all_keywords_of_the_table_are_known() -> None:
    """CT-46: 41 keywords."""
    assert len({keyword for keyword, _ in GOOD}) == len(GOOD) == 41


def test_the_example_of_the_contract() -> None:
    """CT 13."""
    schema = {
        "type": "object",
        "properties": {
            "gauge": {"type": "string", "minLength": 1, "maxLength": 40},
            "unit": {"enum": ["m", "ft"], "default": "m"},
        },
        "required": ["gauge"],
        "additionalProperties": False,
    }
    assert registry({**TOOL, "input_schema": schema})


# Arguments of a call


def string_arguments(size: int) -> dict[str, Any]:
    return {"a": "x" * (size - len('{"a":""}'))}


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ({}, True),
        (string_arguments(16_384), True),
        (string_arguments(16_385), False),
        ({"a": '"' * 8_188}, True),
        ({"a": '"' * 8_189}, False),
        ([], False),
        (None, False),
        ("x", False),
        ({"a": float("nan")}, False),
        ({"a": [float("inf")]}, False),
        ({"a": "\ud800"}, False),
        ({"a": 10**4299}, True),
        ({"a": 10**4300}, False),
        ({"a": nested(29)["default"]}, True),
        ({"a": nested(30)["default"]}, True),
        ({"a": nested(31)["default"]}, False),
    ],
)
def test_arguments_fit(arguments: object, fits: bool) -> None:
    """CT-65, CT-67, CT-OP-18, CT-OP-19: frame and data are two of the 32 containers."""
    assert arguments_fit(arguments) is fits
