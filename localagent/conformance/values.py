"""Values in cases: references to what was seen, patterns that values must match, long texts. Pure.

A text ``$name.key.0`` stands for a value of an earlier answer or event, ``$null`` for null, ``$$`` begins a text with a
dollar sign. In what is sent, ``{fill = "x", count = 70000}`` is a long text; in raw text, ``${name.key}`` is the value
as it stands inside a JSON text.

Patterns: equal values; a table is a subset; an array is equal in length and item by item; ``*``, ``*string``,
``*integer``, ``*boolean``, ``*array``, ``*object``, ``*uuid``, ``*null``, ``*null?`` (anything or null) and ``!null``
for kinds of values; and tables of these keys alone: ``one_of`` patterns, ``not`` a pattern, ``contains`` patterns that
items of an array match, ``excludes`` those that none does, ``every`` what each item matches, ``none`` what no item
does, ``keys`` of an object and no others, ``min`` and ``max`` for numbers, ``regex`` for a whole text, ``length`` of an
array or of a text in characters, ``bytes`` of a text in UTF-8 or of other values as compact JSON; the last two are
numbers or patterns of numbers. ``{join = "text", where = p, is = q}``: those members of an array's items that match
``p``, or of all, joined, match ``q``.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from json import dumps
from typing import Any, Final

Lookup = Callable[[str], Any]
"""Gives the value of a name, which is a whole frame. Raises ``KeyError`` for a name that was not seen."""

_REFERENCE: Final = re.compile(r"\$([A-Za-z0-9_-]+)((?:\.[^.]+)*)\Z")
_INSIDE: Final = re.compile(r"\$\{([A-Za-z0-9_-]+(?:\.[^.{}]+)*)\}")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")


class DanglingError(LookupError):
    """A reference that leads nowhere; its text is the reference."""


def _is_integer(value: Any) -> bool:
    return type(value) is int


_KINDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "*": lambda value: True,
    "*null?": lambda value: True,
    "*null": lambda value: value is None,
    "!null": lambda value: value is not None,
    "*string": lambda value: isinstance(value, str),
    "*integer": _is_integer,
    "*boolean": lambda value: isinstance(value, bool),
    "*array": lambda value: isinstance(value, list),
    "*object": lambda value: isinstance(value, dict),
    "*uuid": lambda value: isinstance(value, str) and bool(_UUID.match(value)),
}
_JOIN: Final = frozenset({"join", "where", "is"})
_TESTS: Final = frozenset(
    {"one_of", "not", "contains", "excludes", "every", "none", "keys", "min", "max", "regex", "length", "bytes"}
)


def references(value: Any) -> Iterator[str]:
    """The names that a value of a case refers to, wherever in it; not ``null``."""
    if isinstance(value, str):
        if (found := _REFERENCE.match(value)) and found[1] != "null":
            yield found[1]
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from references(each)


def inside(text: str) -> Iterator[str]:
    """The names that a raw text refers to."""
    yield from (found[1].partition(".")[0] for found in _INSIDE.finditer(text))


def lookup(reference: str, names: Lookup) -> Any:
    """The value of ``$name.key.0``. Raises :class:`DanglingError` where it leads nowhere."""
    found = _REFERENCE.match(reference)
    if found is None:
        raise DanglingError(reference)
    if found[1] == "null":
        return None
    try:
        value = names(found[1])
        for key in found[2].split(".")[1:]:
            value = value[int(key)] if isinstance(value, list) else value[key]
    except (LookupError, TypeError, ValueError):
        raise DanglingError(reference) from None
    return value


def resolve(value: Any, names: Lookup) -> Any:
    """A value of a case as it is sent or compared. Raises :class:`DanglingError`."""
    if isinstance(value, str):
        if value.startswith("$$"):
            return value[1:]
        return lookup(value, names) if _REFERENCE.match(value) else value
    if isinstance(value, Mapping):
        if set(value) == {"fill", "count"}:
            return str(value["fill"]) * int(value["count"])
        return {key: resolve(each, names) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(each, names) for each in value]
    return value


def resolve_inside(text: str, names: Lookup) -> str:
    """A raw text with its ``${...}`` filled in; texts without their quotes, other values as JSON."""

    def filled(found: re.Match[str]) -> str:
        value = lookup(f"${found[1]}", names)
        written = dumps(value, ensure_ascii=False)
        return written[1:-1] if isinstance(value, str) else written

    return _INSIDE.sub(filled, text)


def unknown_words(pattern: Any) -> Iterator[str]:
    """Texts of a pattern that look like a kind of value but are none."""
    if isinstance(pattern, str):
        if pattern[:1] in ("*", "!") and pattern not in _KINDS:
            yield pattern
    elif isinstance(pattern, Mapping):
        for each in pattern.values():
            yield from unknown_words(each)
    elif isinstance(pattern, list | tuple):
        for each in pattern:
            yield from unknown_words(each)


def equal(one: Any, other: Any) -> bool:
    """True if two values are the same JSON; ``true`` is not ``1``."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return set(one) == set(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(equal(left, right) for left, right in zip(one, other, strict=True))
    return bool(one == other)


def mismatch(value: Any, pattern: Any, names: Lookup, where: str = "") -> str:
    """What is wrong with a value, and where in it; nothing if it matches. Raises :class:`DanglingError`."""
    place = where or "the value"
    if isinstance(pattern, str):
        if pattern in _KINDS:
            return "" if _KINDS[pattern](value) else f"{place} is {_short(value)}, not {pattern}"
        expected = resolve(pattern, names)
        return "" if equal(value, expected) else f"{place} is {_short(value)}, not {_short(expected)}"
    if isinstance(pattern, Mapping):
        if pattern and set(pattern) <= _TESTS:
            return next(filter(None, (_test(value, key, pattern[key], names, place) for key in pattern)), "")
        if {"join", "is"} <= set(pattern) <= _JOIN:
            return _joined(value, pattern, names, place)
        if not isinstance(value, Mapping):
            return f"{place} is {_short(value)}, not an object"
        for key, each in pattern.items():
            if key not in value:
                return f"{_inner(where, key)} is missing"
            if wrong := mismatch(value[key], each, names, _inner(where, key)):
                return wrong
        return ""
    if isinstance(pattern, list | tuple):
        if not isinstance(value, list):
            return f"{place} is {_short(value)}, not an array"
        if len(value) != len(pattern):
            return f"{place} has {len(value)} items, not {len(pattern)}"
        found = (
            mismatch(one, each, names, _inner(where, i))
            for i, (one, each) in enumerate(zip(value, pattern, strict=True))
        )
        return next(filter(None, found), "")
    return "" if equal(value, pattern) else f"{place} is {_short(value)}, not {_short(pattern)}"


def _test(value: Any, key: str, wanted: Any, names: Lookup, place: str) -> str:
    """What is wrong by one of :data:`_TESTS`."""
    seen = _short(value)
    match key:
        case "one_of":
            if all(mismatch(value, each, names) for each in wanted):
                return f"{place} is {seen}, none of {_short(wanted)}"
        case "not":
            if not mismatch(value, wanted, names):
                return f"{place} is {seen}, which it must not be"
        case "contains" | "excludes" | "every" | "none":
            return _items(value, key, wanted, names, place)
        case "keys":
            if not isinstance(value, Mapping) or set(value) != set(wanted):
                return f"{place} is {seen}, not an object of exactly {', '.join(wanted)}"
        case "min" | "max":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or (value < wanted if key == "min" else value > wanted):
                return f"{place} is {seen}, not {'at least' if key == 'min' else 'at most'} {wanted}"
        case "regex":
            if not isinstance(value, str) or not re.fullmatch(wanted, value):
                return f"{place} is {seen}, not as {wanted}"
        case "length":
            if not isinstance(value, str | list):
                return f"{place} is {seen}, not an array or a text"
            return mismatch(len(value), wanted, names, f"the length of {place}")
        case _:
            return mismatch(_bytes(value), wanted, names, f"the bytes of {place}")
    return ""


def _joined(value: Any, pattern: Mapping[str, Any], names: Lookup, place: str) -> str:
    """What is wrong with the joined texts of an array's items."""
    if not isinstance(value, list):
        return f"{place} is {_short(value)}, not an array"
    wanted = [item for item in value if not mismatch(item, pattern.get("where", "*"), names)]
    texts = [item.get(pattern["join"]) if isinstance(item, Mapping) else None for item in wanted]
    whole = "".join(each for each in texts if isinstance(each, str))
    return mismatch(whole, pattern["is"], names, f"the joined {pattern['join']} of {place}")


def _items(value: Any, key: str, wanted: Any, names: Lookup, place: str) -> str:
    """What is wrong with the items of an array."""
    if not isinstance(value, list):
        return f"{place} is {_short(value)}, not an array"
    if key in ("every", "none"):
        for number, item in enumerate(value):
            wrong = mismatch(item, wanted, names, _inner(place, number))
            if bool(wrong) is (key == "every"):
                return wrong or f"{_inner(place, number)} is {_short(item)}, which it must not be"
        return ""
    for each in wanted:
        if any(not mismatch(item, each, names) for item in value) is (key == "excludes"):
            return f"{place} {'has' if key == 'excludes' else 'lacks'} {_short(each)}"
    return ""


def _bytes(value: Any) -> int:
    text = value if isinstance(value, str) else dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode("utf-8", "surrogatepass"))


def _inner(where: str, key: str | int) -> str:
    return f"{where}.{key}" if where else str(key)


def _short(value: Any) -> str:
    try:
        text = dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(type(value))
    return text if len(text) <= 100 else f"{text[:97]}..."
