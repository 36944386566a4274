"""The contents of a client tool registry, and the bound on a call: the ``client.tools`` extension (CT 3 to 5).

Schemas are checked against a bounded inline subset of JSON Schema, and never used: nothing in them is resolved,
compiled or evaluated (CT-45, CT-55 to CT-58).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import UNSET

from .errors import InvalidParams
from .ids import has_control, is_blank, is_client_tool_name
from .limits import LIMITS
from .measure import compact_bytes, depth, is_finite, utf8_bytes
from .names import CLIENT_TOOLS
from .params import InitializeParams, ToolDescriptor

_BOUNDS: Final = LIMITS.client_tools


def client_registry(form: InitializeParams) -> tuple[ToolDescriptor, ...] | None:
    """Return the effective descriptors in registration order, or None when ``client.tools`` is not required.

    Raises InvalidParams when ``client_tools`` is there without being required, or missing although required (CT-10,
    CT-11), for more than 32 tools (CT-32) or 32,768 compact bytes with the timeouts filled in (CT-40), for a name that
    repeats (CT-31) and for a faulty descriptor (CT-33 to CT-58).
    """
    tools = form.client_tools
    if CLIENT_TOOLS not in form.required_capabilities:
        _require(tools is UNSET, "client_tools without client.tools")
        return None
    if tools is UNSET:
        raise InvalidParams("client.tools without client_tools")
    _require(len(tools) <= _BOUNDS.tools, "too many tools")
    _require(len({tool.name for tool in tools}) == len(tools), "two tools of one name")
    for tool in tools:
        _check(tool)
    _require(compact_bytes(tools) <= _BOUNDS.registry_bytes, "registry too large")
    return tools


def arguments_fit(arguments: object) -> bool:
    """Tell whether a call may carry ``arguments``: an object of at most 16,384 compact bytes that JSON can carry.

    Its frame must stay within 32 containers (CT-OP-19). If the answer is no, the call fails locally with
    ``client_tool_payload_limit`` (CT-65, CT-68, CT-OP-18).
    """
    around = 2  # the frame and its data
    if not isinstance(arguments, dict) or depth(arguments) + around > LIMITS.json_depth or not is_finite(arguments):
        return False
    try:
        return compact_bytes(arguments) <= _BOUNDS.arguments_bytes
    except ValueError:  # a lone surrogate, or an integer of over 4,300 digits
        return False


def is_schema_object(schema: Mapping[str, Any]) -> bool:
    """Tell whether ``schema`` is in the subset: known keywords only, each with a value of its kind (CT-46 to CT-53).

    Bounds are not checked here; nesting must be bounded before, as the walk recurses.
    """
    return all(keyword in _KEYWORDS and _KEYWORDS[keyword](value) for keyword, value in schema.items())


def _check(tool: ToolDescriptor) -> None:
    """Check one descriptor: CT-33, CT-35 to CT-38, CT-41 to CT-43, and the schema. Raises InvalidParams."""
    _require(is_client_tool_name(tool.name), "name")
    _require(utf8_bytes(tool.description) <= _BOUNDS.description_bytes, "description too long")
    _require(not is_blank(tool.description), "description is blank")
    _require(not has_control(tool.description.replace("\n", "").replace("\t", "")), "description bears controls")
    _require(_BOUNDS.min_timeout_ms <= tool.timeout_ms <= _BOUNDS.max_timeout_ms, "timeout_ms")
    schema = tool.input_schema
    _require(depth(schema) <= _BOUNDS.schema_depth, "schema too deep")
    _require(compact_bytes(schema) <= _BOUNDS.schema_bytes, "schema too large")
    _require(schema.get("type") == "object", "the root of a schema is not of type object")
    _require(is_schema_object(schema), "schema outside the subset")


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise InvalidParams(otherwise)


# One predicate for each kind of keyword value (CT 4, CT-OP-12 to CT-OP-16). `type(x) is int` keeps booleans out.


def _schema(value: object) -> bool:
    return isinstance(value, bool) or (isinstance(value, dict) and is_schema_object(value))


def _schemas(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_schema, value))


def _named_schemas(value: object) -> bool:
    return isinstance(value, dict) and all(map(_schema, value.values()))


def _type(value: object) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)


def _distinct_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value) and len(set(value)) == len(value)


def _nonempty_array(value: object) -> bool:
    return isinstance(value, list) and bool(value)


def _anything(value: object) -> bool:
    return True


def _string(value: object) -> bool:
    return isinstance(value, str)


def _number(value: object) -> bool:
    return type(value) is int or type(value) is float


def _positive(value: object) -> bool:
    return (type(value) is int or type(value) is float) and value > 0


def _count(value: object) -> bool:
    return type(value) is int and value >= 0


def _boolean(value: object) -> bool:
    return isinstance(value, bool)


_TYPES: Final = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})

_KEYWORDS: Final[Mapping[str, Callable[[object], bool]]] = {
    "type": _type,
    **dict.fromkeys(("properties", "$defs", "definitions", "patternProperties"), _named_schemas),
    **dict.fromkeys(("items", "additionalProperties", "not", "contains", "propertyNames"), _schema),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _schemas),
    "required": _distinct_strings,
    "enum": _nonempty_array,
    **dict.fromkeys(("const", "default", "examples"), _anything),
    **dict.fromkeys(("description", "title", "pattern", "format", "$comment"), _string),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
    "multipleOf": _positive,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _count),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), _count),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated"), _boolean),
}
