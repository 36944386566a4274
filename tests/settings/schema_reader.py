"""A second reader of the published schema: the keywords that it uses, as their specification has them, no others."""

import re
from typing import Any

TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "null": type(None),
    "boolean": bool,
    "integer": int,
}
SILENT = {"title", "description", "default", "$schema", "$defs"}


def is_valid(value: Any, schema: dict[str, Any], document: dict[str, Any]) -> bool:
    """Tell whether ``value`` is valid; a keyword that is not known here is an error."""
    return all(
        _holds(keyword, argument, value, schema, document)
        for keyword, argument in schema.items()
        if keyword not in SILENT
    )


def _holds(keyword: str, argument: Any, value: Any, schema: dict[str, Any], document: dict[str, Any]) -> bool:
    if keyword == "$ref":
        return is_valid(value, document["$defs"][argument.removeprefix("#/$defs/")], document)
    if keyword == "anyOf":
        return any(is_valid(value, each, document) for each in argument)
    if keyword == "enum":
        return any(type(value) is type(each) and value == each for each in argument)
    if keyword == "type":
        return isinstance(value, TYPES[argument]) and not (argument == "integer" and isinstance(value, bool))
    if isinstance(value, dict):
        return _object(keyword, argument, value, schema, document)
    if isinstance(value, list):
        return _array(keyword, argument, value, document)
    return _scalar(keyword, argument, value)


def _object(
    keyword: str, argument: Any, value: dict[str, Any], schema: dict[str, Any], document: dict[str, Any]
) -> bool:
    known = schema.get("properties", {})
    if keyword == "properties":
        return all(is_valid(value[key], each, document) for key, each in argument.items() if key in value)
    if keyword == "required":
        return all(key in value for key in argument)
    if keyword == "maxProperties":
        return len(value) <= int(argument)
    assert keyword == "additionalProperties", keyword
    others = [each for key, each in value.items() if key not in known]
    return not others if argument is False else all(is_valid(each, argument, document) for each in others)


def _array(keyword: str, argument: Any, value: list[Any], document: dict[str, Any]) -> bool:
    if keyword == "items":
        return all(is_valid(each, argument, document) for each in value)
    assert keyword == "maxItems", keyword
    return len(value) <= int(argument)


def _scalar(keyword: str, argument: Any, value: Any) -> bool:
    if keyword == "pattern":
        return not isinstance(value, str) or re.search(argument, value) is not None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if keyword in ("minimum", "maximum"):
        return not number or (value >= argument if keyword == "minimum" else value <= argument)
    return keyword in ("properties", "required", "maxProperties", "additionalProperties", "items", "maxItems")
